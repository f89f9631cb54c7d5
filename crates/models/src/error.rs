//! Errors: one enum for finding and checking models, one for the ONNX import.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anchorite_core::LimitExceeded;
use thiserror::Error;

use crate::ModelRole;

/// Why a model can't be used.
#[derive(Debug, Error)]
pub enum ModelError {
    /// No folder has it.
    #[error("{}", missing_message(*role, wanted, looked, others))]
    Missing {
        /// What the model is for.
        role: ModelRole,
        /// Its name.
        wanted: String,
        /// Every place looked at, in order.
        looked: Vec<PathBuf>,
        /// Names of models of this role that are there.
        others: Vec<String>,
    },
    /// The folder given for models has none.
    #[error("{} {reason}; point `--models` or ANCHORITE_MODELS to a folder with one folder per model, or run `cargo xtask setup`", folder.display())]
    NoModels {
        /// The folder.
        folder: PathBuf,
        /// "does not exist", "holds no model", …
        reason: &'static str,
    },
    /// A file is missing, cut short, edited or contradicts another.
    #[error("{}: {reason}; {remedy}", path.display())]
    Invalid {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong.
        reason: String,
        /// What to do.
        remedy: String,
    },
    /// The model is of a kind that can't be run.
    #[error("{}: the {what} `{found}` is not supported; known: {known}", path.display())]
    Unsupported {
        /// The file that says so.
        path: PathBuf,
        /// "model_type", "pooling", …
        what: &'static str,
        /// What the file says.
        found: String,
        /// What would work.
        known: String,
    },
    /// A safetensors file whose header must not be trusted.
    #[error("{}: damaged safetensors file{}: {reason}; copy the file again from where it came", path.display(), tensor.as_ref().map(|name| format!(", tensor `{name}`")).unwrap_or_default())]
    Safetensors {
        /// The file.
        path: PathBuf,
        /// The tensor, if one is to blame.
        tensor: Option<String>,
        /// What is wrong.
        reason: String,
    },
    /// A GGUF file whose header must not be trusted.
    #[error("{}: damaged GGUF file at byte {offset}: {reason}; copy the file again from where it came", path.display())]
    Gguf {
        /// The file.
        path: PathBuf,
        /// Where reading stopped.
        offset: u64,
        /// What is wrong.
        reason: String,
    },
    /// Some size is beyond what is allowed.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// The model does not fit into memory.
    #[error("{model} needs about {} MiB of memory and {} MiB are free; close other programs or choose a smaller model (profile `small` or `tiny`)", needed >> 20, available >> 20)]
    TooLarge {
        /// The model.
        model: String,
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        available: u64,
    },
    /// The operating system refused.
    #[error("can't {action} {}: {source}", path.display())]
    Io {
        /// "read", "write", …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The list of known models is wrong.
    #[error("{origin}: {reason}")]
    Manifest {
        /// Where the list came from.
        origin: String,
        /// What is wrong.
        reason: String,
    },
}

impl ModelError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn invalid(path: &Path, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Invalid { path: path.to_path_buf(), reason: reason.into(), remedy: remedy.into() }
    }

    pub(crate) fn unsupported(path: &Path, what: &'static str, found: impl Into<String>, known: &[&str]) -> Self {
        Self::Unsupported { path: path.to_path_buf(), what, found: found.into(), known: known.join(", ") }
    }
}

fn missing_message(role: ModelRole, wanted: &str, looked: &[PathBuf], others: &[String]) -> String {
    let places: Vec<String> = looked.iter().map(|place| place.display().to_string()).collect();
    let mut message = format!("no {role} `{wanted}` in {}", places.join(", "));
    if places.is_empty() {
        message = format!("no {role} `{wanted}`: there is no folder to look in");
    }
    if !others.is_empty() {
        let _ = write!(message, " (there: {})", others.join(", "));
    }
    message.push_str("; run `cargo xtask setup`, or point `--models DIR` to a folder that has it");
    message
}

/// Why an ONNX file can't be turned into safetensors.
#[derive(Debug, Error)]
pub enum ImportError {
    /// Not an ONNX file.
    #[error("{}: not an ONNX file: {reason}", path.display())]
    Decode {
        /// The file.
        path: PathBuf,
        /// What the decoder said.
        reason: String,
    },
    /// The weights lie in another file.
    #[error("tensor `{tensor}` lies outside the ONNX file; give a file that holds its own weights")]
    ExternalData {
        /// The tensor.
        tensor: String,
    },
    /// A tensor has a type the importer does not read.
    #[error("tensor `{tensor}` has ONNX data type {data_type}; the importer reads 1 (float), 2 (uint8) and 3 (int8)")]
    DataType {
        /// The tensor.
        tensor: String,
        /// Number of the type in the ONNX format.
        data_type: i32,
    },
    /// A tensor the architecture needs is not there.
    #[error("the ONNX file has no tensor for `{tensor}`")]
    MissingTensor {
        /// Its name in safetensors.
        tensor: String,
    },
    /// A tensor has another shape than the architecture needs.
    #[error("tensor `{tensor}` has shape {found:?} instead of {expected:?}")]
    Shape {
        /// The tensor.
        tensor: String,
        /// The shape needed.
        expected: Vec<usize>,
        /// The shape found.
        found: Vec<usize>,
    },
    /// A tensor's bytes do not match its shape.
    #[error("tensor `{tensor}` of shape {shape:?} holds {found} values")]
    Data {
        /// The tensor.
        tensor: String,
        /// The shape.
        shape: Vec<i64>,
        /// Values found.
        found: usize,
    },
    /// Scale or zero point do not fit the weights.
    #[error("the quantised tensor `{tensor}` can't be scaled back: {reason}")]
    Quantisation {
        /// The tensor.
        tensor: String,
        /// What is wrong.
        reason: String,
    },
    /// Weights that belong to no tensor of the architecture: the graph is not the one the importer knows.
    #[error("the ONNX file has weights the importer can't place: {}", tensors.join(", "))]
    Leftover {
        /// Their names.
        tensors: Vec<String>,
    },
    /// The graph does not say something that is needed.
    #[error("the ONNX graph does not tell the {fact}: {reason}")]
    Fact {
        /// "number of attention heads", …
        fact: &'static str,
        /// What was found instead.
        reason: String,
    },
    /// Reading or writing the model's other files failed.
    #[error(transparent)]
    Model(#[from] ModelError),
}
