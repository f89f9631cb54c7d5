//! Bytes to text to chunks: reading documents, decoding, sentence-aware cutting.
//!
//! [`read`] gives the documents of files, folders and standard input one at a time; [`Chunker`] cuts one into chunks of whole
//! sentences; [`sentences`] tells where sentences begin and end.
//!
//! Architecture invariants: a document's text is what its bytes decode to, unchanged, so offsets into it stay true (what
//! can't be decoded becomes U+FFFD and is reported, as does NUL); every offset lies on a character border; nothing is left
//! out in silence.

mod chunk;
mod decode;
mod fragment;
mod item;
mod read;
mod records;
mod secrets;
mod sentence;
mod source;
mod title;

pub use chunk::{ChunkError, Chunker};
pub use decode::DecodeWarning;
pub use item::{Item, ReadError, SkipReason};
pub use read::{Progress, Reader, read, total_bytes};
pub use secrets::{Secret, SecretKind, redacted, secrets};
pub use sentence::{Sentence, Sentences, sentences};
