//! What can go wrong with a knowledge base. Each message says what, where, and what to do.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use anchorite_core::LimitExceeded;
use rusqlite::ErrorCode;
use thiserror::Error;

/// Why an operation on a knowledge base failed.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The path exists and is something else.
    #[error(
        "{} is not a knowledge base: {reason}; name a new folder, or one that `anchorite ingest` made",
        path.display()
    )]
    NotAKnowledgeBase {
        /// The path given.
        path: PathBuf,
        /// What it is instead.
        reason: String,
    },
    /// There is nothing at the path.
    #[error(
        "there is no knowledge base at {}; make one with `anchorite ingest PATH --kb {}`",
        path.display(),
        path.display()
    )]
    Missing {
        /// The path given.
        path: PathBuf,
    },
    /// Somebody else writes.
    #[error("the knowledge base {} is being written by {holder}; wait until it has finished, or stop it", path.display())]
    Locked {
        /// The knowledge base.
        path: PathBuf,
        /// Who writes: "process 4711 (anchorite)".
        holder: String,
    },
    /// The folder or a file in it can't be written.
    #[error(
        "the knowledge base {} is read-only here: searching and asking work, changing it does not; \
         change the permissions of the folder, or copy it",
        path.display()
    )]
    ReadOnly {
        /// The knowledge base.
        path: PathBuf,
    },
    /// The last writer ended without closing, and what it left can't be read in a read-only folder.
    #[error(
        "the knowledge base {} was not closed properly and its folder is read-only; \
         open it once where it can be written, for example with `anchorite kb stats`",
        path.display()
    )]
    NeedsRecovery {
        /// The knowledge base.
        path: PathBuf,
    },
    /// The vectors inside come from another model.
    #[error(
        "the knowledge base {} was made with the embedder {recorded}, and {given} was given; \
         their vectors cannot be compared: use {recorded}, or ingest the documents again into a new folder",
        path.display()
    )]
    ModelMismatch {
        /// The knowledge base.
        path: PathBuf,
        /// The model that made it: name, beginning of its hash, dimension.
        recorded: String,
        /// The model that was given, in the same form.
        given: String,
    },
    /// A vector has another number of components than the knowledge base's.
    #[error(
        "a vector of {given} components was given and the knowledge base holds vectors of {expected}; \
         use the embedder that made it"
    )]
    DimensionMismatch {
        /// Components of the knowledge base's vectors.
        expected: usize,
        /// Components given.
        given: usize,
    },
    /// Made by another version of the program.
    #[error(
        "the knowledge base {} has format {found} and this program reads format {supported}; \
         use the version of anchorite that made it, or ingest the documents again into a new folder",
        path.display()
    )]
    Format {
        /// The knowledge base.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The format of this program.
        supported: i64,
    },
    /// Made by an earlier version of the program, and not brought up to date yet.
    #[error(
        "the knowledge base {} has format {found}, and this program reads format {supported}; bring it up to date by opening \
         it once where it can be written, for example with `anchorite kb stats`",
        path.display()
    )]
    OlderFormat {
        /// The knowledge base.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The format of this program.
        supported: i64,
    },
    /// There is no such generation.
    #[error("the knowledge base {} has no generation {generation}; `anchorite kb history` shows those there are", path.display())]
    NoSuchGeneration {
        /// The knowledge base.
        path: PathBuf,
        /// The generation asked for.
        generation: i64,
    },
    /// What a generation held is no longer there.
    #[error(
        "generation {generation} of {} can't be brought back whole: {} of its sources were erased ({}); \
         roll back without them (`--without-erased`), or ingest them again",
        path.display(),
        erased.len(),
        erased.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ")
    )]
    Erased {
        /// The knowledge base.
        path: PathBuf,
        /// The generation asked for.
        generation: i64,
        /// Sources whose content is gone.
        erased: Vec<String>,
    },
    /// The history before some generation was let go of.
    #[error("the history of {} begins with generation {begins}; what was before it was compacted away", path.display())]
    Compacted {
        /// The knowledge base.
        path: PathBuf,
        /// The oldest generation that can be gone back to.
        begins: i64,
    },
    /// No space is left.
    #[error("no space is left for {}; free some and run the command again: what was finished is kept", path.display())]
    StorageFull {
        /// What was being written.
        path: PathBuf,
    },
    /// The system does not let a file grow any further.
    #[error(
        "the system refuses to write to {} any further: a limit on the size of files (`ulimit -f`), or a failing disk; \
         raise the limit and run the command again: what was finished is kept",
        path.display()
    )]
    WriteRefused {
        /// What was being written.
        path: PathBuf,
    },
    /// This process may not open any more files.
    #[error("too many files are open for {}; raise the limit (`ulimit -n`) and run the command again", path.display())]
    TooManyOpenFiles {
        /// What was to be opened.
        path: PathBuf,
    },
    /// The database contradicts itself.
    #[error("the knowledge base {} is damaged: {what}; restore it from a copy, or ingest the documents again", path.display())]
    Damaged {
        /// The knowledge base.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// A chunk does not belong to the text of its document.
    #[error("chunk {ordinal} of {document} is not a part of its text ({start}..{end}): {reason}")]
    InvalidChunk {
        /// The document's source.
        document: String,
        /// Which chunk.
        ordinal: u32,
        /// First byte claimed.
        start: usize,
        /// One past the last byte claimed.
        end: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// A new document came with text but without chunks.
    #[error("{document} has text and was given no chunks; cut it first")]
    NoChunks {
        /// The document's source.
        document: String,
    },
    /// A search by meaning needs the query's vector.
    #[error("the search mode {mode} needs the query's embedding; give one, or search by bm25")]
    MissingEmbedding {
        /// The mode asked for.
        mode: &'static str,
    },
    /// Something is larger than allowed.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// The database failed.
    #[error("the database {} failed: {source}", path.display())]
    Sqlite {
        /// The database file or its folder.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// Reading or writing failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An index could not be built or asked. The documents are safe.
    #[error("the search index {} failed: {message}; delete the folder, it will be built again", path.display())]
    Index {
        /// The folder of the index.
        path: PathBuf,
        /// What the library said.
        message: String,
    },
}

impl StoreError {
    /// Names the file or folder in an error of the system.
    pub(crate) fn from_io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::StorageFull { path },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path },
            io::ErrorKind::FileTooLarge => Self::WriteRefused { path },
            _ if lacks_descriptors(&source) => Self::TooManyOpenFiles { path },
            _ => Self::Io { path, source },
        }
    }

    /// Names the database in an error of SQLite.
    pub(crate) fn from_sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::StorageFull { path },
            Some(ErrorCode::ReadOnly) => Self::ReadOnly { path },
            Some(ErrorCode::SystemIoFailure) if is_refused_write(&source) => Self::WriteRefused { path },
            // SQLite does not say why; while there is no descriptor to be had, nothing else opens either.
            Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure)
                if File::open(&path).is_err_and(|error| lacks_descriptors(&error)) =>
            {
                Self::TooManyOpenFiles { path }
            }
            Some(ErrorCode::NotADatabase) => {
                Self::NotAKnowledgeBase { path, reason: "its anchorite.db is not an SQLite database".into() }
            }
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { path, what: source.to_string() },
            _ => Self::Sqlite { path, source },
        }
    }
}

/// True where the process, or the system, has no descriptor left.
fn lacks_descriptors(error: &io::Error) -> bool {
    // EMFILE and ENFILE of every Unix; ERROR_TOO_MANY_OPEN_FILES of Windows.
    error.raw_os_error().is_some_and(|code| if cfg!(windows) { code == 4 } else { code == 24 || code == 23 })
}

/// True where the system would not write, for another reason than a full disk.
fn is_refused_write(error: &rusqlite::Error) -> bool {
    const WRITE: i32 = rusqlite::ffi::SQLITE_IOERR_WRITE;
    const TRUNCATE: i32 = rusqlite::ffi::SQLITE_IOERR_TRUNCATE;
    matches!(error.sqlite_error(), Some(said) if said.extended_code == WRITE || said.extended_code == TRUNCATE)
}

/// Adds the place to an error that does not know it.
pub(crate) trait At<T> {
    /// `self`, with `path` named in the error.
    fn at(self, path: &Path) -> Result<T, StoreError>;
}

impl<T> At<T> for Result<T, io::Error> {
    fn at(self, path: &Path) -> Result<T, StoreError> {
        self.map_err(|error| StoreError::from_io(path, error))
    }
}

impl<T> At<T> for Result<T, rusqlite::Error> {
    fn at(self, path: &Path) -> Result<T, StoreError> {
        self.map_err(|error| StoreError::from_sqlite(path, error))
    }
}
