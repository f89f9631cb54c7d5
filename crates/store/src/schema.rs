//! The database file: how it is opened, what tables it has, and how it is recognised.
//!
//! Rows of `documents` are never changed, only added and removed; everything that can be different about the same content
//! from two places (metadata, time, who may see it) is in `sources`. Identifiers are `AUTOINCREMENT`: one that was visible
//! once is never given again, so a cache that still knows a removed chunk can't confuse it with a new one.
//!
//! What was, and can be rolled back to, is in `past_sources` (which content a source had, from which generation to which)
//! and `past_documents` (content that no source has any more). Nothing reads these but history; compaction empties them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anchorite_core::ModelFingerprint;
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags, OptionalExtension};

use crate::error::{At, StoreError};
use crate::migrate;

/// Name of the database in a knowledge base's folder.
pub(crate) const DATABASE_FILE: &str = "anchorite.db";
/// Files that SQLite keeps beside it.
pub(crate) const BESIDE_DATABASE: [&str; 3] = ["anchorite.db-wal", "anchorite.db-shm", "anchorite.db-journal"];
/// Written into the database's header: "Anch".
const APPLICATION_ID: i64 = 0x416e_6368;
/// Version of the tables below.
pub(crate) const FORMAT: i64 = 3;
/// How long to wait for the short moments in which SQLite itself locks the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// A vector of 384 components takes 1.5 KiB: with SQLite's usual 4 KiB pages a quarter of the file would be padding.
const PAGE_SIZE: u32 = 8192;

const TABLES: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE generations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    committed_at INTEGER NOT NULL,
    documents_added INTEGER NOT NULL DEFAULT 0,
    documents_removed INTEGER NOT NULL DEFAULT 0,
    chunks_added INTEGER NOT NULL DEFAULT 0,
    chunks_removed INTEGER NOT NULL DEFAULT 0,
    note TEXT NOT NULL,
    actor TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE documents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    hash TEXT NOT NULL,
    title TEXT NOT NULL,
    added_at INTEGER NOT NULL,
    generation INTEGER NOT NULL REFERENCES generations,
    text TEXT NOT NULL,
    outline TEXT NOT NULL DEFAULT '[]'
) STRICT;
CREATE UNIQUE INDEX documents_by_hash ON documents (hash);
CREATE TABLE sources (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL,
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    added_at INTEGER NOT NULL,
    generation INTEGER NOT NULL REFERENCES generations,
    metadata TEXT NOT NULL,
    owner TEXT NOT NULL DEFAULT '',
    access TEXT NOT NULL DEFAULT '',
    dated INTEGER NOT NULL DEFAULT 0,
    expires_at INTEGER
) STRICT;
CREATE UNIQUE INDEX sources_by_source ON sources (source);
CREATE INDEX sources_by_document ON sources (document);
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    start_byte INTEGER NOT NULL,
    end_byte INTEGER NOT NULL
) STRICT;
CREATE INDEX chunks_by_document ON chunks (document);
CREATE TABLE vectors (chunk INTEGER PRIMARY KEY REFERENCES chunks ON DELETE CASCADE, vector BLOB NOT NULL) STRICT;
CREATE TABLE tombstones (chunk INTEGER PRIMARY KEY, generation INTEGER NOT NULL) STRICT;
CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    action TEXT NOT NULL,
    source TEXT NOT NULL,
    document INTEGER NOT NULL,
    hash TEXT NOT NULL,
    generation INTEGER NOT NULL,
    actor TEXT NOT NULL DEFAULT '',
    chain TEXT NOT NULL DEFAULT ''
) STRICT;
";

/// What was.
pub(crate) const HISTORY: &str = "
CREATE TABLE past_sources (
    id INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    hash TEXT NOT NULL,
    added_at INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    owner TEXT NOT NULL,
    access TEXT NOT NULL,
    dated INTEGER NOT NULL,
    expires_at INTEGER,
    from_generation INTEGER NOT NULL,
    to_generation INTEGER NOT NULL,
    erased INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX past_sources_by_hash ON past_sources (hash);
CREATE INDEX past_sources_by_source ON past_sources (source);
CREATE TABLE past_documents (
    hash TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    outline TEXT NOT NULL,
    chunks TEXT NOT NULL,
    vectors BLOB NOT NULL
) STRICT;
";

/// What is known of the search indexes. They can be built again, so a change of this table needs no migration: it is made
/// anew.
pub(crate) const CACHES: &str = "
DROP TABLE IF EXISTS caches;
CREATE TABLE caches (
    kind TEXT PRIMARY KEY,
    generation INTEGER NOT NULL,
    tombstones_from INTEGER NOT NULL,
    last_chunk INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    built_at INTEGER NOT NULL,
    stamp TEXT NOT NULL,
    strays TEXT NOT NULL,
    expansion INTEGER NOT NULL,
    recall REAL
) STRICT, WITHOUT ROWID;
";

/// For what expires, and for what happened to a source.
pub(crate) const MEMORY_INDEXES: &str = "
CREATE INDEX sources_by_expiry ON sources (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX audit_by_source ON audit (source);
";

/// Lines of the audit trail are written once.
pub(crate) const AUDIT_IS_APPEND_ONLY: &str = "
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'lines of the audit trail are never changed'); END;
CREATE TRIGGER audit_is_not_removed BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'lines of the audit trail are never removed'); END;
";

/// What a knowledge base was made with; never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) embedder: ModelFingerprint,
    pub(crate) dim: usize,
}

impl Identity {
    /// Fails unless `given` can be compared with what is inside.
    pub(crate) fn check(&self, folder: &Path, given: &ModelFingerprint, dim: usize) -> Result<(), StoreError> {
        // The hash alone decides: the same weights under another folder name are the same model.
        if self.embedder.sha256 == given.sha256 && self.dim == dim {
            return Ok(());
        }
        let describe = |model: &ModelFingerprint, dim: usize| {
            let digits: String = model.sha256.chars().take(8).collect();
            format!("{} ({digits}, {dim} dimensions)", model.name)
        };
        Err(StoreError::ModelMismatch {
            path: folder.to_owned(),
            recorded: describe(&self.embedder, self.dim),
            given: describe(given, dim),
        })
    }
}

/// Opens the database for writing; `create` is what to make it with if there is nothing yet. Touches nothing that is not a
/// knowledge base of this format.
pub(crate) fn open_for_writing(
    folder: &Path,
    vfs: Option<&str>,
    create: Option<&Identity>,
    now: i64,
) -> Result<(Connection, Identity), StoreError> {
    let path = folder.join(DATABASE_FILE);
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if create.is_some() {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let mut connection = connect(&path, flags, vfs).at(folder)?;
    prepare(&connection).at(folder)?;
    let found = recognise(&connection, folder)?;
    if connection.is_readonly(MAIN_DB).at(folder)? {
        return Err(StoreError::ReadOnly { path: folder.to_owned() });
    }
    // `secure_delete` overwrites what is removed: a deleted document must not be readable in the file.
    let settings = "
        PRAGMA synchronous = FULL;
        PRAGMA fullfsync = ON;
        PRAGMA checkpoint_fullfsync = ON;
        PRAGMA secure_delete = ON;
        PRAGMA foreign_keys = ON;
        PRAGMA cache_size = -32768;";
    if found == Found::Nothing {
        let Some(identity) = create else { return Err(StoreError::Missing { path: folder.to_owned() }) };
        // Until the log is in use there is a journal, and its removal must outlast the power as well: where it came back,
        // what was written to the log since would be lost.
        connection.pragma_update(None, "synchronous", "EXTRA").at(folder)?;
        connection.pragma_update(None, "page_size", PAGE_SIZE).at(folder)?;
        use_wal(&connection, folder)?;
        connection.execute_batch(settings).at(folder)?;
        create_tables(&mut connection, identity, now).at(folder)?;
        return Ok((connection, identity.clone()));
    }
    use_wal(&connection, folder)?;
    connection.execute_batch(settings).at(folder)?;
    if let Found::Older(format) = found {
        migrate::migrate(&mut connection, folder, format)?;
    }
    let identity = read_identity(&connection, folder)?;
    Ok((connection, identity))
}

fn connect(path: &Path, flags: OpenFlags, vfs: Option<&str>) -> rusqlite::Result<Connection> {
    match vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs),
        None => Connection::open_with_flags(path, flags),
    }
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(64);
    connection.busy_timeout(BUSY_TIMEOUT)
}

fn use_wal(connection: &Connection, folder: &Path) -> Result<(), StoreError> {
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).at(folder)?;
    if mode == "wal" {
        return Ok(());
    }
    let message = format!("the file system does not support SQLite's write-ahead log (journal mode {mode})");
    Err(StoreError::Io { path: folder.to_owned(), source: std::io::Error::other(message) })
}

fn create_tables(connection: &mut Connection, identity: &Identity, now: i64) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for part in [TABLES, HISTORY, CACHES, MEMORY_INDEXES, AUDIT_IS_APPEND_ONLY] {
        transaction.execute_batch(part)?;
    }
    let entries = [
        ("embedder_name", identity.embedder.name.clone()),
        ("embedder_sha256", identity.embedder.sha256.clone()),
        ("dimensions", identity.dim.to_string()),
        ("created_at", now.to_string()),
    ];
    for (key, value) in entries {
        transaction.execute("INSERT INTO meta (key, value) VALUES (?1, ?2)", (key, value))?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()
}

/// Opens the database for reading and begins the transaction that holds the present generation. A read-only folder will do.
pub(crate) fn open_for_reading(folder: &Path, vfs: Option<&str>) -> Result<(Connection, Identity), StoreError> {
    let path = folder.join(DATABASE_FILE);
    let open = |path: &Path, flags: OpenFlags| -> Result<(Connection, Found), StoreError> {
        let flags = flags | OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = connect(path, flags, vfs).at(folder)?;
        prepare(&connection).at(folder)?;
        connection.execute_batch("BEGIN").at(folder)?;
        let found = recognise(&connection, folder)?;
        Ok((connection, found))
    };
    let (connection, found) = match open(&path, OpenFlags::empty()) {
        Err(error) if cannot_share(&error) => {
            // No writer is at work here and none can be: the file is as good as a picture, once the log is empty.
            if log_has_content(folder) {
                return Err(StoreError::NeedsRecovery { path: folder.to_owned() });
            }
            open(&immutable_uri(&path)?, OpenFlags::SQLITE_OPEN_URI)?
        }
        other => other?,
    };
    match found {
        Found::KnowledgeBase => {}
        Found::Nothing => return Err(StoreError::Missing { path: folder.to_owned() }),
        Found::Older(found) => {
            return Err(StoreError::OlderFormat { path: folder.to_owned(), found, supported: FORMAT });
        }
    }
    let identity = read_identity(&connection, folder)?;
    Ok((connection, identity))
}

/// True if SQLite could not make the files beside the database through which readers and writers find each other.
fn cannot_share(error: &StoreError) -> bool {
    match error {
        StoreError::ReadOnly { .. } => true,
        StoreError::Sqlite { source, .. } => source.sqlite_error_code() == Some(ErrorCode::CannotOpen),
        _ => false,
    }
}

fn log_has_content(folder: &Path) -> bool {
    let log = folder.join(format!("{DATABASE_FILE}-wal"));
    std::fs::metadata(log).is_ok_and(|metadata| metadata.len() > 0)
}

fn immutable_uri(path: &Path) -> Result<PathBuf, StoreError> {
    let absolute = std::path::absolute(path).at(path)?;
    let text = absolute.to_str().ok_or_else(|| StoreError::Io {
        path: path.to_owned(),
        source: std::io::Error::other("the path is not Unicode, which a read-only knowledge base needs"),
    })?;
    let mut uri = String::from("file:");
    if cfg!(windows) {
        uri.push('/');
    }
    for byte in text.bytes() {
        match byte {
            b'\\' if cfg!(windows) => uri.push('/'),
            b'/' | b'.' | b'-' | b'_' | b':' => uri.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    Ok(uri.into())
}

#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// An empty file: its creation was not finished.
    Nothing,
    /// A knowledge base of this format.
    KnowledgeBase,
    /// One of an earlier format, which a writer brings up to date.
    Older(i64),
}

fn recognise(connection: &Connection, folder: &Path) -> Result<Found, StoreError> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0)).at(folder);
    let (application, format) = (number("application_id")?, number("user_version")?);
    if application == APPLICATION_ID {
        return match format {
            FORMAT => Ok(Found::KnowledgeBase),
            older if migrate::is_possible(older) => Ok(Found::Older(older)),
            _ => Err(StoreError::Format { path: folder.to_owned(), found: format, supported: FORMAT }),
        };
    }
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).at(folder)?;
    if application == 0 && tables == 0 {
        return Ok(Found::Nothing);
    }
    let reason = "its anchorite.db is the database of another program".into();
    Err(StoreError::NotAKnowledgeBase { path: folder.to_owned(), reason })
}

fn read_identity(connection: &Connection, folder: &Path) -> Result<Identity, StoreError> {
    let entry = |key: &str| -> Result<String, StoreError> {
        connection
            .query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0))
            .optional()
            .at(folder)?
            .ok_or_else(|| StoreError::Damaged { path: folder.to_owned(), what: format!("its entry {key} is missing") })
    };
    let dim = entry("dimensions")?;
    let dim = dim.parse().ok().filter(|&dim: &usize| dim > 0).ok_or_else(|| StoreError::Damaged {
        path: folder.to_owned(),
        what: format!("its vectors are said to have {dim} dimensions"),
    })?;
    let embedder = ModelFingerprint { name: entry("embedder_name")?, sha256: entry("embedder_sha256")? };
    Ok(Identity { embedder, dim })
}
