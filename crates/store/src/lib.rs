//! The knowledge base: SQLite is the truth, usearch and tantivy are caches.
//!
//! ```text
//! my.kb/
//!   anchorite.db        everything: documents, sources, chunks, vectors, generations, audit trail, records of the caches
//!   ann/<generation>/   usearch graph over the vectors
//!   bm25/<generation>/  tantivy index of the words
//!   writer.lock         held by the one writer
//! ```
//!
//! Architecture invariants, each with the tests that hold it in `tests/store/`:
//! - What [`Batch::commit`] acknowledged is on disk; what was not is absent, whole (`generations.rs`, `processes.rs`).
//! - A removed chunk is in no result, whatever the state of the caches (`model.rs`, `caches.rs`).
//! - A cache is used only if its bytes have the hash that the database records, or if it is the very file that this machine
//!   wrote and found whole (by its stamp); without caches results are the same
//!   (`caches.rs`).
//! - One writer, any number of readers; a reader sees the generation that it opened (`generations.rs`, `processes.rs`).
//! - Identifiers are never used again (`documents.rs`).
//! - What is damaged is found (`verify.rs`).

mod ann;
mod ann_file;
mod ann_graph;
mod audit;
mod batch;
mod bm25;
mod caches;
mod custody;
mod error;
mod filter;
mod fusion;
mod history;
mod language;
mod lock;
mod migrate;
mod ranking;
mod records;
mod schema;
mod search;
mod self_audit;
mod snapshot;
mod storage;
mod texts;
mod titles;
#[doc(hidden)]
pub mod trial;
mod vectors;
mod verify;
mod view;
mod writer;

pub use audit::{Action, AuditEntry};
pub use batch::{Batch, Removal};
pub use caches::{CacheSettings, Refresh, Refreshed};
pub use custody::{Custody, Expiry};
pub use error::StoreError;
pub use filter::{Field, Filter, FilterError, Operand, Operator};
pub use fusion::{Fused, Placed, RANK_CONSTANT, Scored, reciprocal_rank_fusion, score_fusion};
pub use history::{Change, ChangeKind, Compaction, Rollback};
pub use ranking::Hit;
pub use records::{
    CacheState, Deletion, DocumentSummary, Generation, Known, Outcome, SourceSummary, Stats, StoredDocument,
};
pub use search::Mode;
pub use snapshot::Snapshot;
pub use storage::{Disk, Storage};
pub use titles::Link;
pub use verify::{Finding, FindingKind, Verification};
pub use view::{PRIVATE, PUBLIC, Viewer};
pub use writer::{KnowledgeBase, Writer};
