//! Checkpoints: what a run knew after each node, under a thread's name.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anchorite_core::StepRecord;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Name of a thread of runs: a conversation, a question. Any short text without control characters; a [`Checkpointer`]
/// that uses it as a file name escapes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ThreadId(String);

/// Why a text is no [`ThreadId`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{id:?} can't name a thread: use 1 to {} bytes without control characters", ThreadId::LONGEST)]
pub struct ThreadIdError {
    /// The text (its beginning, if it is long).
    pub id: String,
}

impl ThreadId {
    /// Most bytes of a name. Escaped it still fits a file name.
    pub const LONGEST: usize = 80;

    /// Checks a name.
    ///
    /// # Errors
    /// If it is empty, too long, or has control characters.
    pub fn new(id: impl Into<String>) -> Result<Self, ThreadIdError> {
        let id = id.into();
        if id.is_empty() || id.len() > Self::LONGEST || id.chars().any(char::is_control) {
            return Err(ThreadIdError { id: id.chars().take(Self::LONGEST).collect() });
        }
        Ok(Self(id))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ThreadId {
    type Error = ThreadIdError;

    fn try_from(id: String) -> Result<Self, ThreadIdError> {
        Self::new(id)
    }
}

impl From<ThreadId> for String {
    fn from(id: ThreadId) -> Self {
        id.0
    }
}

/// What a run knew after a node (or before the first one).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Position in the thread, from 0; several runs of one thread count on.
    pub sequence: u64,
    /// Sequence of the checkpoint with which its run began.
    pub run: u64,
    /// Name of the graph.
    pub graph: String,
    /// Which step of its run it follows; 0 is the beginning.
    pub step: u64,
    /// What the node did; its name is [`START`](crate::START) at the beginning.
    pub record: StepRecord,
    /// The node that comes next, or [`END`](crate::END).
    pub next: String,
    /// The state, as JSON.
    pub state_json: String,
    /// When it was made, in milliseconds since 1970-01-01 UTC.
    pub unix_millis: u64,
}

impl Checkpoint {
    /// Name of the node that ran.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.record.node
    }

    pub(crate) fn now() -> u64 {
        // A clock before 1970 is a broken clock; the time is for people, nothing depends on it.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
    }
}

/// Why checkpoints could not be kept or read.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// The file system failed.
    #[error("{}: {source}; check that the folder exists and may be written", .path.display())]
    Io {
        /// File or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not what was written.
    #[error("the checkpoint {} is damaged ({what}); remove it to go back to the one before", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The file has a version that this program does not read.
    #[error("the checkpoint {} has version {found}, and this program reads up to {known}; use a newer program", .path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version known.
        known: u32,
    },
    /// Another run wrote to the thread at the same time.
    #[error(
        "the thread {thread:?} already has checkpoint {sequence}: another run is writing to it; give each run its own thread"
    )]
    Conflict {
        /// The thread.
        thread: String,
        /// The position in question.
        sequence: u64,
    },
    /// Another kind of checkpointer failed.
    #[error("{0}")]
    Other(#[source] Box<dyn Error + Send + Sync>),
}

/// Keeps checkpoints. What `put` acknowledged is there afterwards, whole; what it did not is absent, whole.
pub trait Checkpointer: Send + Sync {
    /// Adds a checkpoint to a thread. Its sequence must be new.
    ///
    /// # Errors
    /// [`CheckpointError::Conflict`] if it is not, or if it can't be kept.
    fn put(&self, thread: &ThreadId, checkpoint: &Checkpoint) -> Result<(), CheckpointError>;

    /// The latest checkpoint of a thread.
    ///
    /// # Errors
    /// If it can't be read.
    fn latest(&self, thread: &ThreadId) -> Result<Option<Checkpoint>, CheckpointError>;

    /// All checkpoints of a thread, oldest first.
    ///
    /// # Errors
    /// If one can't be read.
    fn history(&self, thread: &ThreadId) -> Result<Vec<Checkpoint>, CheckpointError>;

    /// All threads, sorted.
    ///
    /// # Errors
    /// If they can't be listed.
    fn threads(&self) -> Result<Vec<ThreadId>, CheckpointError>;

    /// Removes a thread with all its checkpoints. A thread that is not there is no error.
    ///
    /// # Errors
    /// If it can't be removed.
    fn forget(&self, thread: &ThreadId) -> Result<(), CheckpointError>;
}

/// Checkpoints that live as long as this value.
#[derive(Debug, Default)]
pub struct MemoryCheckpointer(Mutex<BTreeMap<ThreadId, Vec<Checkpoint>>>);

impl MemoryCheckpointer {
    /// No checkpoints yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ThreadId, Vec<Checkpoint>>> {
        // Each change is one push or removal, so a panic elsewhere leaves the map whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Checkpointer for MemoryCheckpointer {
    fn put(&self, thread: &ThreadId, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
        let mut threads = self.lock();
        let checkpoints = threads.entry(thread.clone()).or_default();
        if checkpoints.last().is_some_and(|last| last.sequence >= checkpoint.sequence) {
            return Err(CheckpointError::Conflict { thread: thread.to_string(), sequence: checkpoint.sequence });
        }
        checkpoints.push(checkpoint.clone());
        Ok(())
    }

    fn latest(&self, thread: &ThreadId) -> Result<Option<Checkpoint>, CheckpointError> {
        Ok(self.lock().get(thread).and_then(|checkpoints| checkpoints.last().cloned()))
    }

    fn history(&self, thread: &ThreadId) -> Result<Vec<Checkpoint>, CheckpointError> {
        Ok(self.lock().get(thread).cloned().unwrap_or_default())
    }

    fn threads(&self) -> Result<Vec<ThreadId>, CheckpointError> {
        Ok(self.lock().keys().cloned().collect())
    }

    fn forget(&self, thread: &ThreadId) -> Result<(), CheckpointError> {
        self.lock().remove(thread);
        Ok(())
    }
}
