//! What is read from a knowledge base, and what is reported about changes to it.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use anchorite_core::{ContentHash, Landmark, ModelFingerprint};
use serde::{Deserialize, Serialize};

/// One committed change of the whole knowledge base.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// Counts up from 1; 0 is the empty knowledge base.
    pub id: i64,
    /// When, in milliseconds since 1970.
    pub committed_at: i64,
    /// Documents added.
    pub documents_added: u64,
    /// Documents removed, those that were replaced included.
    pub documents_removed: u64,
    /// Chunks added.
    pub chunks_added: u64,
    /// Chunks removed.
    pub chunks_removed: u64,
    /// What it was for.
    pub note: String,
    /// Who made it; empty where nobody said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub actor: String,
}

/// What a knowledge base knows of a document before it is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Neither source nor content is known. Needs chunks.
    New,
    /// The source is known with other content, which will be replaced. Needs chunks.
    Changed,
    /// The content is known from another source, and this source will be noted beside it. Needs no chunks.
    Duplicate,
    /// Source and content are known, and the metadata differs. Needs no chunks.
    MetadataChanged,
    /// Nothing is new.
    Unchanged,
}

impl Known {
    /// True if the document must be cut and embedded before it is added.
    #[must_use]
    pub fn needs_chunks(self) -> bool {
        matches!(self, Self::New | Self::Changed)
    }
}

/// What adding a document did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is new.
    Added,
    /// It took the place of what its source held before.
    Replaced,
    /// Its content was there already; its source was noted.
    Duplicate,
    /// Only its metadata was new.
    MetadataUpdated,
    /// Everything was there already.
    Unchanged,
}

/// What a deletion removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletion {
    /// Sources forgotten.
    pub sources: u64,
    /// Documents removed. Fewer than sources if the same content has other sources still.
    pub documents: u64,
    /// Chunks removed.
    pub chunks: u64,
}

/// A document as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredDocument {
    /// Never reused.
    pub id: i64,
    /// The first source that brought this content.
    pub source: String,
    /// Further sources of the same content, oldest first.
    pub aliases: Vec<String>,
    /// May be empty.
    pub title: String,
    /// The whole text.
    pub text: String,
    /// Fields that came with `source`.
    pub metadata: BTreeMap<String, serde_json::Value>,
    /// Pages and headings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outline: Vec<Landmark>,
    /// Whose it is; empty if nobody's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// Its access label; empty if everybody may see it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub access: String,
    /// The date it is of, in milliseconds since 1970.
    pub dated: i64,
    /// When it goes, in milliseconds since 1970; never, if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    /// Hash of title and text.
    pub hash: ContentHash,
    /// Milliseconds since 1970.
    pub added_at: i64,
    /// The generation that added it.
    pub generation: i64,
}

/// A line in a list of documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentSummary {
    /// Never reused.
    pub id: i64,
    /// The first source that brought this content.
    pub source: String,
    /// May be empty.
    pub title: String,
    /// Length of the text in bytes.
    pub bytes: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Milliseconds since 1970.
    pub added_at: i64,
    /// The generation that added it.
    pub generation: i64,
}

/// A source with its figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceSummary {
    /// Where it came from.
    pub source: String,
    /// The document that has its content.
    pub document: i64,
    /// Length of the text in bytes.
    pub bytes: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// When it was added with this content, in milliseconds since 1970.
    pub added_at: i64,
    /// The generation since which it is as it is.
    pub generation: i64,
    /// Whose it is; empty if nobody's.
    pub owner: String,
    /// Its access label; empty if everybody may see it.
    pub access: String,
    /// The date it is of, in milliseconds since 1970.
    pub dated: i64,
    /// When it goes, in milliseconds since 1970; never, if `None`.
    pub expires_at: Option<i64>,
    /// How many contents it has had.
    pub versions: u64,
}

/// State of one search index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheState {
    /// "ann" or "bm25".
    pub kind: String,
    /// The generation it was built for.
    pub generation: i64,
    /// Chunks in it, removed ones included.
    pub entries: u64,
    /// Chunks in it that were removed since.
    pub removed: u64,
    /// Chunks that came since, and are searched without it.
    pub newer: u64,
    /// Share of the ten nearest that sampled searches of the graph found when it was built; `None` for words, and where it
    /// is too small to be audited.
    pub recall: Option<f64>,
}

/// Figures of a knowledge base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// The generation shown.
    pub generation: i64,
    /// Documents of different content.
    pub documents: u64,
    /// Sources; more than documents if some have the same content.
    pub sources: u64,
    /// Chunks.
    pub chunks: u64,
    /// Bytes of text.
    pub text_bytes: u64,
    /// Bytes of the database.
    pub database_bytes: u64,
    /// Contents that no source has any more, kept for going back.
    pub former_documents: u64,
    /// The model its vectors are made by.
    pub embedder: ModelFingerprint,
    /// Components of a vector.
    pub dimensions: usize,
    /// Its search indexes; a small knowledge base has none and needs none.
    pub caches: Vec<CacheState>,
}

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
}
