//! The one writer of a knowledge base.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anchorite_core::{Document, ModelFingerprint};
use rusqlite::{Connection, TransactionBehavior};

use crate::batch::{self, Batch};
use crate::caches::{self, CacheSettings, Refresh};
use crate::custody::Custody;
use crate::error::{At, StoreError};
use crate::lock::{LOCK_FILE, WriterLock};
use crate::records::{Generation, Known, now};
use crate::schema::{self, DATABASE_FILE, Identity};
use crate::snapshot::{self, Snapshot};
use crate::storage::{Disk, Storage};

/// A knowledge base's place, and how to treat its caches.
#[derive(Clone, Debug)]
pub struct KnowledgeBase {
    pub(crate) folder: PathBuf,
    pub(crate) settings: CacheSettings,
    pub(crate) storage: Arc<dyn Storage>,
}

impl KnowledgeBase {
    /// Names the folder; nothing is read or written yet.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), settings: CacheSettings::default(), storage: Arc::new(Disk) }
    }

    /// Changes when caches are built.
    #[must_use]
    pub fn with_settings(mut self, settings: CacheSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Reads and writes caches through `storage`.
    #[must_use]
    pub fn with_storage(mut self, storage: Arc<dyn Storage>) -> Self {
        self.storage = storage;
        self
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Opens the knowledge base for reading, as it is now: later changes are not seen.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if there is none; [`StoreError::NotAKnowledgeBase`], [`StoreError::Format`] or
    /// [`StoreError::Damaged`] if what is there can't be read.
    pub fn snapshot(&self) -> Result<Snapshot, StoreError> {
        match examine(&self.folder)? {
            Place::KnowledgeBase => match Snapshot::open(self) {
                // A writer brings an older format up to date, and finishes what a sudden end left. One that is at work has
                // done so already, or is an earlier program.
                Err(unfinished @ (StoreError::OlderFormat { .. } | StoreError::NeedsRecovery { .. })) => {
                    match self.open_writer() {
                        Ok(writer) => drop(writer),
                        Err(StoreError::ReadOnly { .. }) => return Err(unfinished),
                        Err(error) => return Err(error),
                    }
                    Snapshot::open(self)
                }
                other => other,
            },
            Place::Absent | Place::Empty => Err(StoreError::Missing { path: self.folder.clone() }),
        }
    }

    /// Opens the knowledge base for writing, and makes it first if there is none.
    ///
    /// # Errors
    /// [`StoreError::Locked`] at once if there is a writer; [`StoreError::ModelMismatch`] if it holds another model's
    /// vectors; [`StoreError::NotAKnowledgeBase`] if something else is there, which is left untouched.
    pub fn create_or_open_writer(&self, embedder: &ModelFingerprint, dim: usize) -> Result<Writer, StoreError> {
        if dim == 0 {
            return Err(StoreError::DimensionMismatch { expected: 1, given: 0 });
        }
        if examine(&self.folder)? == Place::Absent {
            fs::create_dir_all(&self.folder).at(&self.folder)?;
            if let Some(parent) = self.folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                self.storage.sync_dir(parent).at(parent)?;
            }
        }
        let identity = Identity { embedder: embedder.clone(), dim };
        let writer = self.writer(Some(&identity))?;
        writer.identity.check(&self.folder, embedder, dim)?;
        Ok(writer)
    }

    /// Opens an existing knowledge base for changes that need no model, like deleting.
    ///
    /// # Errors
    /// As [`KnowledgeBase::create_or_open_writer`], and [`StoreError::Missing`] if there is none.
    pub fn open_writer(&self) -> Result<Writer, StoreError> {
        match examine(&self.folder)? {
            Place::KnowledgeBase => self.writer(None),
            Place::Absent | Place::Empty => Err(StoreError::Missing { path: self.folder.clone() }),
        }
    }

    fn writer(&self, create: Option<&Identity>) -> Result<Writer, StoreError> {
        let lock = WriterLock::take(&self.folder)?;
        let (connection, identity) = schema::open_for_writing(&self.folder, self.storage.sqlite_vfs(), create, now())?;
        self.storage.sync_dir(&self.folder).at(&self.folder)?;
        Ok(Writer { connection, identity, place: self.clone(), actor: String::new(), _lock: lock })
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    Absent,
    Empty,
    KnowledgeBase,
}

/// What is at `folder`, by names alone.
fn examine(folder: &Path) -> Result<Place, StoreError> {
    let refuse = |reason: &str| Err(StoreError::NotAKnowledgeBase { path: folder.to_owned(), reason: reason.into() });
    let metadata = match fs::metadata(folder) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Place::Absent),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return refuse("a part of its path is a file"),
        Err(source) => return Err(StoreError::Io { path: folder.to_owned(), source }),
    };
    if !metadata.is_dir() {
        return refuse("it is a file");
    }
    match fs::metadata(folder.join(DATABASE_FILE)) {
        Ok(database) if database.is_file() => return Ok(Place::KnowledgeBase),
        Ok(_) => return refuse("its anchorite.db is not a file"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).at(folder),
    }
    for entry in fs::read_dir(folder).at(folder)? {
        // These alone are left where a creation was interrupted.
        let name = entry.at(folder)?.file_name();
        if name != LOCK_FILE && !schema::BESIDE_DATABASE.iter().any(|&beside| name == beside) {
            return refuse("it is a folder with other things in it");
        }
    }
    Ok(Place::Empty)
}

/// Changes a knowledge base. There is at most one in all processes.
#[derive(Debug)]
pub struct Writer {
    // Declared before the lock: the database is closed before the next writer may come.
    pub(crate) connection: Connection,
    pub(crate) identity: Identity,
    pub(crate) place: KnowledgeBase,
    actor: String,
    _lock: WriterLock,
}

impl Writer {
    /// Says who makes the changes from here on; the history and the audit trail tell it.
    #[must_use]
    pub fn by(mut self, actor: impl Into<String>) -> Self {
        self.actor = actor.into();
        self
    }

    /// The model whose vectors are inside.
    #[must_use]
    pub fn embedder(&self) -> &ModelFingerprint {
        &self.identity.embedder
    }

    /// Components of a vector.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.identity.dim
    }

    /// The newest generation.
    ///
    /// # Errors
    /// If the database fails.
    pub fn generation(&self) -> Result<Generation, StoreError> {
        snapshot::newest_generation(&self.connection).at(&self.place.folder)
    }

    /// What adding `document` would do, so that known documents need not be cut and embedded.
    ///
    /// # Errors
    /// If the database fails.
    pub fn classify(&self, document: &Document) -> Result<Known, StoreError> {
        batch::classify(&self.connection, &self.place.folder, document, &Custody::default()).map(|(known, _)| known)
    }

    /// Begins a change. Nothing of it is visible or kept until [`Batch::commit`]; dropping it undoes it. `note` says what
    /// it is for, in the history.
    ///
    /// # Errors
    /// If the database fails.
    pub fn begin(&mut self, note: &str) -> Result<Batch<'_>, StoreError> {
        let folder = &self.place.folder;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).at(folder)?;
        Batch::begin(transaction, folder, self.identity.dim, note, &self.actor)
    }

    /// Brings the search indexes up to date where that is worth it: if they are missing, damaged, or far behind. Searches
    /// give the same without; they only take longer. `progress` is told chunks done and chunks to do.
    ///
    /// # Errors
    /// If a file can't be written or the database fails. The old state keeps serving.
    pub fn refresh_caches(&mut self, progress: &mut dyn FnMut(usize, usize)) -> Result<Refresh, StoreError> {
        caches::refresh(self, progress)
    }

    /// The same, and builds those anew in which there is anything that was removed.
    pub(crate) fn rebuild_where_removed(
        &mut self,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Refresh, StoreError> {
        caches::forget_where_removed(self)?;
        caches::refresh(self, progress)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Moves the log into the database, so that the folder can be copied or made read-only. Readers at work may forbid
        // it; then the next one to close does it.
        // And nobody waits for readers here.
        let _ = self.connection.busy_timeout(Duration::ZERO);
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
}
