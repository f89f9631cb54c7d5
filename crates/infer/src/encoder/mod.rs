//! Encoders: the bi-encoder that turns texts into vectors and the cross-encoder that scores pairs of texts.

mod batch;
mod bert;
mod bi_encoder;
mod body;
mod cost;
mod cross_encoder;
mod native;
#[cfg(test)]
mod parity_tests;
mod score_cache;
mod weights;

use std::fmt;
use std::str::FromStr;

pub use self::bi_encoder::BiEncoder;
pub use self::cost::{Cost, product_instructions, product_speed};
pub use self::cross_encoder::CrossEncoder;
use crate::error::LoadError;

/// What an encoder multiplies with on the processor. On other devices it is single precision in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// 8-bit integers: weights with a scale per output, activations with a scale per token. Attention and normalisation
    /// stay in single precision.
    #[default]
    Int8,
    /// Single precision: the reference.
    F32,
}

impl FromStr for Precision {
    type Err = LoadError;

    fn from_str(text: &str) -> Result<Self, LoadError> {
        match text {
            "int8" => Ok(Self::Int8),
            "f32" => Ok(Self::F32),
            _ => Err(LoadError::Precision { given: text.to_owned() }),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Int8 => "int8",
            Self::F32 => "f32",
        })
    }
}
