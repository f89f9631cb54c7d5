//! One error for the whole engine: each part's own, passed on as it is.

use anchorite_core::{InferenceError, LimitExceeded, RetrieveError};
use anchorite_graph::{CheckpointError, CompileError, RunError, ThreadIdError};
use anchorite_infer::LoadError;
use anchorite_models::ModelError;
use anchorite_rag::MeetError;
use anchorite_store::StoreError;
use anchorite_text::ChunkError;
use thiserror::Error;

/// Why the engine could not do what was asked. Reaching the end of a budget, or finding nothing, is no error.
#[derive(Debug, Error)]
pub enum Error {
    /// Nothing was asked.
    #[error("the {what} is empty; write what you want to know")]
    EmptyInput {
        /// "question" or "query".
        what: &'static str,
    },
    /// A path to read does not exist.
    #[error("{path}: no such file or folder; check the path")]
    NoSuchPath {
        /// The path.
        path: String,
    },
    /// Nothing could be read.
    #[error("nothing was taken in: {reason}")]
    NothingRead {
        /// The first failure.
        reason: String,
    },
    /// A name that stands for nothing.
    #[error("there is no {what} {name:?}; choose one of {known}")]
    UnknownName {
        /// What it should be the name of.
        what: &'static str,
        /// The name.
        name: String,
        /// The names there are.
        known: &'static str,
    },
    /// There is no such document, or the viewer may not see it.
    #[error("there is no document {name:?}; `anchorite kb list` shows what is there")]
    NoSuchDocument {
        /// Source or number.
        name: String,
    },
    /// A model could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A model could not be found or is damaged.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The knowledge base failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A model failed.
    #[error(transparent)]
    Inference(#[from] InferenceError),
    /// A search failed.
    #[error(transparent)]
    Retrieve(#[from] RetrieveError),
    /// A text could not be cut.
    #[error(transparent)]
    Chunk(#[from] ChunkError),
    /// A graph could not be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A graph is wired wrongly.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// Checkpoints could not be kept or read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A thread has a name that can't be used.
    #[error(transparent)]
    Thread(#[from] ThreadIdError),
    /// A probe can't be used.
    #[error("{origin}: {problem}; fit one with `anchorite eval held --fit FILE`, or leave `probe` out of the settings")]
    Probe {
        /// The file, or what it is otherwise.
        origin: String,
        /// What is wrong.
        problem: String,
    },
    /// Some size is beyond what is allowed.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}

impl From<MeetError> for Error {
    fn from(error: MeetError) -> Self {
        match error {
            MeetError::Compile(error) => error.into(),
            MeetError::Run(error) => error.into(),
            MeetError::Inference(error) => error.into(),
        }
    }
}
