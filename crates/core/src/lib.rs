//! Values, traits, errors, limits and budgets shared by every crate. No input or output happens here.
//!
//! Architecture invariant: nothing in this crate opens a file, a socket or a clock other than the monotonic one that
//! [`Budget`] reads. Implementations of the traits live elsewhere (`infer`, `store`, the facade).

mod answer;
mod budget;
mod conflict;
pub mod days;
mod document;
mod embedding;
mod error;
mod limits;
mod traits;
mod typed;

pub use answer::{Answer, AnswerState, Citation, Claim, Judged, Status, StepRecord, Verdict};
pub use budget::{Budget, BudgetExceeded, BudgetLimits, Spent};
pub use conflict::{Conflict, ConflictRule, ConflictSide, UnknownRule};
pub use document::{Chunk, ContentHash, Document, Landmark, LandmarkKind, Passage, Scores, titled};
pub use embedding::{Embedding, EmbeddingError};
pub use error::{InferenceError, RetrieveError};
pub use limits::{LimitExceeded, Limits};
pub use traits::{
    Constraint, DraftCounts, Embedder, FinishReason, GenerateOptions, Generation, Generator, Message, ModelFingerprint,
    Prompt, Reranker, Retriever, Role, Speaker, TokenCounter,
};
pub use typed::generate_as;
