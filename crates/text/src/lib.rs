//! Text to sentences to chunks.
//!
//! [`Chunker`] cuts a document into chunks of whole sentences; [`sentences`] tells where sentences begin and end.
//!
//! Architecture invariant: every offset lies on a character border, and nothing but white space is left out.

mod chunk;
mod fragment;
mod secrets;
mod sentence;

pub use chunk::{ChunkError, Chunker};
pub use secrets::{Secret, SecretKind, redacted, secrets};
pub use sentence::{Sentence, Sentences, sentences};
