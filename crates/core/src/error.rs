//! Errors of the operations behind the traits of this crate.

use thiserror::Error;

use crate::{BudgetExceeded, EmbeddingError, LimitExceeded};

/// Why a model could not compute something.
#[derive(Debug, Error)]
pub enum InferenceError {
    /// There is nothing to compute on.
    #[error("the {what} is empty; give some text")]
    EmptyInput {
        /// What was empty: "question", "prompt", …
        what: &'static str,
    },
    /// The model gave a vector that can't be used.
    #[error(transparent)]
    Embedding(#[from] EmbeddingError),
    /// The prompt does not fit the model's context.
    #[error(
        "the prompt has {tokens} tokens and the model reads at most {limit}; shorten it or choose a model with a longer context"
    )]
    PromptTooLong {
        /// Tokens of the prompt.
        tokens: usize,
        /// Context length less the room kept for the answer.
        limit: usize,
    },
    /// The model's output is not numbers.
    #[error(
        "the model {model} gave logits that are not numbers; its file may be damaged (run `anchorite models verify`)"
    )]
    NotANumber {
        /// The model.
        model: String,
    },
    /// A text can't be written as it was asked to be.
    #[error("the text can't be written so: {problem}; change the schema, pattern or grammar, or allow more tokens")]
    Constraint {
        /// What stands against it.
        problem: String,
    },
    /// Some size is beyond what is allowed.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// Tokens or time ran out.
    #[error(transparent)]
    Budget(#[from] BudgetExceeded),
    /// The backend failed.
    #[error("{model}: {message}")]
    Backend {
        /// The model.
        model: String,
        /// What the backend said.
        message: String,
    },
}

/// Why a search failed.
#[derive(Debug, Error)]
pub enum RetrieveError {
    /// The query has no words.
    #[error("the query is empty; write what you look for")]
    EmptyQuery,
    /// A model failed.
    #[error(transparent)]
    Inference(#[from] InferenceError),
    /// The knowledge base failed.
    #[error("{0}")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
}
