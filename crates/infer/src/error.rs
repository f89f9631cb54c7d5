//! Why a model could not be loaded.

use std::path::PathBuf;

use thiserror::Error;

/// Why a model could not be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// Finding, verifying or reading the model's files failed.
    #[error(transparent)]
    Model(#[from] anchorite_models::ModelError),
    /// A value of the file's metadata is missing or makes no sense.
    #[error("the model's metadata `{key}`: {problem}")]
    Metadata {
        /// The key.
        key: String,
        /// What is wrong.
        problem: String,
    },
    /// A tensor is missing or has the wrong shape.
    #[error("the model's tensor `{name}`: {problem}")]
    Tensor {
        /// The tensor.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// The tokenizer can't be used.
    #[error("the tokenizer {origin}: {problem}")]
    Tokenizer {
        /// Its file.
        origin: String,
        /// What is wrong.
        problem: String,
    },
    /// The chat template can't be used.
    #[error("the chat template of {model}: {problem}")]
    Template {
        /// The model.
        model: String,
        /// What is wrong.
        problem: String,
    },
    /// The device can't be used.
    #[error("the device `{device}`: {problem}")]
    Device {
        /// As asked for.
        device: String,
        /// What is wrong.
        problem: String,
    },
    /// There is no such precision.
    #[error("the precision `{given}` is unknown; write int8 or f32")]
    Precision {
        /// As asked for.
        given: String,
    },
    /// A file can't be read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The backend failed.
    #[error("loading {model}: {source}")]
    Backend {
        /// The model.
        model: String,
        /// What candle said.
        source: candle_core::Error,
    },
}
