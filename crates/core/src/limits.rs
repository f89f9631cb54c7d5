//! Every limit on an input, in one place.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Sizes beyond which an input is refused. Crossing one is a typed error that names the limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Largest file of records, and largest total of one compressed file, in bytes.
    pub file_bytes: u64,
    /// Longest line of a JSONL file, in bytes.
    pub line_bytes: usize,
    /// Longest text of one document, in bytes.
    pub document_bytes: usize,
    /// Largest file of a format that is read whole before it is taken apart (PDF, office, mail, archive), in bytes.
    pub packed_file_bytes: u64,
    /// Most entries of all archives, and attachments of all messages, in one file.
    pub archive_entries: u64,
    /// How deep archives and messages may lie in each other.
    pub archive_depth: u64,
    /// Largest total of what the archives in one file hold, unpacked, in bytes.
    pub archive_bytes: u64,
    /// How many times larger than packed an entry of an archive may be. Entries below a megabyte are not asked.
    pub archive_ratio: u64,
    /// Memory (address space) of the process that takes files apart, in bytes.
    pub extraction_memory_bytes: u64,
    /// Longest that taking one file apart may take, in seconds.
    pub extraction_seconds: u64,
    /// Most chunks of one document.
    pub document_chunks: usize,
    /// Longest question or query, in characters.
    pub question_chars: usize,
    /// Most results of one search.
    pub results: usize,
    /// Largest header of a safetensors file, in bytes.
    pub safetensors_header_bytes: u64,
    /// Largest `tokenizer.json`, in bytes.
    pub tokenizer_bytes: u64,
    /// Largest part of an ONNX file that is no numbers of weights, in bytes.
    pub onnx_description_bytes: u64,
    /// Most metadata entries, and most tensors, of a GGUF file.
    pub gguf_entries: u64,
    /// Longest string in a GGUF file's metadata, in bytes.
    pub gguf_string_bytes: u64,
    /// Most elements of an array in a GGUF file's metadata.
    pub gguf_array_elements: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: 8 << 30,
            line_bytes: 64 << 20,
            document_bytes: 64 << 20,
            packed_file_bytes: 256 << 20,
            archive_entries: 65_536,
            archive_depth: 6,
            archive_bytes: 2 << 30,
            archive_ratio: 250,
            extraction_memory_bytes: 2 << 30,
            extraction_seconds: 60,
            document_chunks: 1_000_000,
            question_chars: 8_000,
            results: 10_000,
            safetensors_header_bytes: 16 << 20,
            tokenizer_bytes: 64 << 20,
            onnx_description_bytes: 16 << 20,
            gguf_entries: 65_536,
            gguf_string_bytes: 16 << 20,
            gguf_array_elements: 4 << 20,
        }
    }
}

/// An input crossed a limit.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "{what} is {actual}, and the limit `{limit}` is {allowed}; raise it in anchorite.toml under [limits] if this is intended"
)]
pub struct LimitExceeded {
    /// What was too large, with its name: "line 7 of notes.jsonl".
    pub what: String,
    /// The field of [`Limits`].
    pub limit: &'static str,
    /// The size found.
    pub actual: u64,
    /// The size allowed.
    pub allowed: u64,
}

impl LimitExceeded {
    /// `Ok` if `actual` is within `allowed`.
    ///
    /// # Errors
    /// [`LimitExceeded`] naming `what` and `limit` otherwise.
    pub fn check(what: impl FnOnce() -> String, limit: &'static str, actual: u64, allowed: u64) -> Result<(), Self> {
        if actual <= allowed { Ok(()) } else { Err(Self { what: what(), limit, actual, allowed }) }
    }
}
