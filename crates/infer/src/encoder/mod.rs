//! Encoders: the bi-encoder that turns texts into vectors and the cross-encoder that scores pairs of texts.

mod activation;
mod batch;
mod bert;
mod bi_encoder;
mod cross_encoder;

pub use self::bi_encoder::BiEncoder;
pub use self::cross_encoder::CrossEncoder;
