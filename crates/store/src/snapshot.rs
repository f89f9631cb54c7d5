//! A reader's view: one generation, unchanged for as long as it is held, whatever a writer commits meanwhile.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anchorite_core::{ContentHash, ModelFingerprint, Passage};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::caches::{Kind, Record};
use crate::error::{At, StoreError};
use crate::records::{Action, AuditEntry, CacheState, DocumentSummary, Generation, Stats, StoredDocument};
use crate::schema::{self, Identity};
use crate::search::{Meaning, Words};
use crate::texts;
use crate::titles::Titles;
use crate::writer::KnowledgeBase;

/// The newest generation that `connection` sees; generation 0 if nothing was ever committed.
pub(crate) fn newest_generation(connection: &Connection) -> rusqlite::Result<Generation> {
    let newest = generations(connection, 1)?.pop();
    Ok(newest.unwrap_or_default())
}

fn generations(connection: &Connection, limit: usize) -> rusqlite::Result<Vec<Generation>> {
    connection
        .prepare_cached(
            "SELECT id, committed_at, documents_added, documents_removed, chunks_added, chunks_removed, note
             FROM generations ORDER BY id DESC LIMIT ?1",
        )?
        .query_map([limit], |row| {
            Ok(Generation {
                id: row.get(0)?,
                committed_at: row.get(1)?,
                documents_added: row.get(2)?,
                documents_removed: row.get(3)?,
                chunks_added: row.get(4)?,
                chunks_removed: row.get(5)?,
                note: row.get(6)?,
            })
        })?
        .collect()
}

/// One generation of a knowledge base, for reading and searching. It may be shared between threads.
///
/// It holds a read transaction: a writer's log can't shrink below it, so a snapshot should be replaced now and then where
/// a writer is busy.
pub struct Snapshot {
    connection: Mutex<Connection>,
    pub(crate) place: KnowledgeBase,
    pub(crate) identity: Identity,
    generation: Generation,
    pub(crate) meaning: Mutex<Option<Arc<Meaning>>>,
    pub(crate) words: Mutex<Option<Arc<Words>>>,
    pub(crate) titles: Mutex<Option<Arc<Titles>>>,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("folder", &self.place.folder)
            .field("generation", &self.generation.id)
            .finish_non_exhaustive()
    }
}

impl Snapshot {
    pub(crate) fn open(place: &KnowledgeBase) -> Result<Self, StoreError> {
        let (connection, identity) = schema::open_for_reading(&place.folder)?;
        let generation = newest_generation(&connection).at(&place.folder)?;
        Ok(Self {
            connection: Mutex::new(connection),
            place: place.clone(),
            identity,
            generation,
            meaning: Mutex::new(None),
            words: Mutex::new(None),
            titles: Mutex::new(None),
        })
    }

    /// The database. Nothing is ever half-changed behind this lock, so a panic elsewhere does not spoil it.
    pub(crate) fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The generation shown.
    #[must_use]
    pub fn generation(&self) -> &Generation {
        &self.generation
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

    /// Fails unless `embedder` made the vectors inside.
    ///
    /// # Errors
    /// [`StoreError::ModelMismatch`].
    pub fn check_model(&self, embedder: &ModelFingerprint, dim: usize) -> Result<(), StoreError> {
        self.identity.check(&self.place.folder, embedder, dim)
    }

    /// The passages of the given chunks in the order given, without scores. Unknown chunks are left out.
    ///
    /// # Errors
    /// If the database fails.
    pub fn passages(&self, chunks: &[i64]) -> Result<Vec<Passage>, StoreError> {
        let connection = self.connection();
        let passages = chunks.iter().map(|&chunk| texts::passage(&connection, &self.place.folder, chunk));
        passages.filter_map(Result::transpose).collect()
    }

    /// All passages of a document in order; none if there is no such document.
    ///
    /// # Errors
    /// If the database fails.
    pub fn chunks_of(&self, document: i64) -> Result<Vec<Passage>, StoreError> {
        let chunks: Vec<i64> = self
            .connection()
            .prepare_cached("SELECT id FROM chunks WHERE document = ?1 ORDER BY ordinal, id")
            .and_then(|mut statement| statement.query_map([document], |row| row.get(0))?.collect())
            .at(&self.place.folder)?;
        self.passages(&chunks)
    }

    /// A document by its identifier.
    ///
    /// # Errors
    /// If the database fails.
    pub fn document(&self, id: i64) -> Result<Option<StoredDocument>, StoreError> {
        read_document(&self.connection(), id).at(&self.place.folder)
    }

    /// The document that `source` brought.
    ///
    /// # Errors
    /// If the database fails.
    pub fn document_by_source(&self, source: &str) -> Result<Option<StoredDocument>, StoreError> {
        let connection = self.connection();
        let id: Option<i64> = connection
            .prepare_cached("SELECT document FROM sources WHERE source = ?1")
            .and_then(|mut statement| statement.query_row([source], |row| row.get(0)).optional())
            .at(&self.place.folder)?;
        id.map_or(Ok(None), |id| read_document(&connection, id).at(&self.place.folder))
    }

    /// Documents in order of their identifiers.
    ///
    /// # Errors
    /// If the database fails.
    pub fn documents(&self, offset: usize, limit: usize) -> Result<Vec<DocumentSummary>, StoreError> {
        self.connection()
            .prepare_cached(
                "SELECT d.id, (SELECT source FROM sources WHERE document = d.id ORDER BY id LIMIT 1), d.title,
                        octet_length(d.text), (SELECT count(*) FROM chunks WHERE document = d.id), d.added_at, d.generation
                 FROM documents d ORDER BY d.id LIMIT ?2 OFFSET ?1",
            )
            .and_then(|mut statement| {
                let read = |row: &Row<'_>| {
                    Ok(DocumentSummary {
                        id: row.get(0)?,
                        source: row.get(1)?,
                        title: row.get(2)?,
                        bytes: row.get(3)?,
                        chunks: row.get(4)?,
                        added_at: row.get(5)?,
                        generation: row.get(6)?,
                    })
                };
                statement.query_map([offset, limit], read)?.collect()
            })
            .at(&self.place.folder)
    }

    /// Figures.
    ///
    /// # Errors
    /// If the database fails.
    pub fn stats(&self) -> Result<Stats, StoreError> {
        let connection = self.connection();
        let read = || -> rusqlite::Result<Stats> {
            let mut caches = Vec::new();
            for kind in [Kind::Ann, Kind::Bm25] {
                if let Some(record) = Record::read(&connection, kind)? {
                    caches.push(CacheState {
                        kind: kind.name().to_owned(),
                        generation: record.generation,
                        entries: record.entries as u64,
                        removed: record.removed_entries(&connection)? as u64,
                        newer: record.newer(&connection)?,
                    });
                }
            }
            connection.query_row(
                "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM sources), (SELECT count(*) FROM chunks),
                        (SELECT coalesce(sum(octet_length(text)), 0) FROM documents),
                        (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size)",
                [],
                |row| {
                    Ok(Stats {
                        generation: self.generation.id,
                        documents: row.get(0)?,
                        sources: row.get(1)?,
                        chunks: row.get(2)?,
                        text_bytes: row.get(3)?,
                        database_bytes: row.get(4)?,
                        embedder: self.identity.embedder.clone(),
                        dimensions: self.identity.dim,
                        caches,
                    })
                },
            )
        };
        read().at(&self.place.folder)
    }

    /// The newest `limit` generations, newest first.
    ///
    /// # Errors
    /// If the database fails.
    pub fn history(&self, limit: usize) -> Result<Vec<Generation>, StoreError> {
        generations(&self.connection(), limit).at(&self.place.folder)
    }

    /// The newest `limit` lines of the audit trail, newest first; only those of `source` if one is given.
    ///
    /// # Errors
    /// If the database fails.
    pub fn audit(&self, source: Option<&str>, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        self.connection()
            .prepare_cached(
                "SELECT at, action, source, document, hash, generation FROM audit
                 WHERE ?1 IS NULL OR source = ?1 ORDER BY id DESC LIMIT ?2",
            )
            .and_then(|mut statement| statement.query_map((source, limit), read_audit_entry)?.collect())
            .at(&self.place.folder)
    }
}

fn read_audit_entry(row: &Row<'_>) -> rusqlite::Result<AuditEntry> {
    let action: String = row.get(1)?;
    let known = Action::ALL.into_iter().find(|known| known.as_str() == action);
    Ok(AuditEntry {
        at: row.get(0)?,
        action: known.ok_or_else(|| unreadable(1, format!("unknown action {action}")))?,
        source: row.get(2)?,
        document: row.get(3)?,
        hash: ContentHash::from_hex(row.get(4)?),
        generation: row.get(5)?,
    })
}

fn unreadable(column: usize, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, error.into())
}

fn read_document(connection: &Connection, id: i64) -> rusqlite::Result<Option<StoredDocument>> {
    let mut sources: Vec<(String, String)> = connection
        .prepare_cached("SELECT source, metadata FROM sources WHERE document = ?1 ORDER BY id")?
        .query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    if sources.is_empty() {
        return Ok(None);
    }
    let (source, metadata) = sources.remove(0);
    let metadata: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(&metadata).map_err(|error| unreadable(1, error))?;
    connection
        .prepare_cached("SELECT hash, title, text, added_at, generation FROM documents WHERE id = ?1")?
        .query_row([id], |row| {
            Ok(StoredDocument {
                id,
                source,
                aliases: sources.into_iter().map(|(source, _)| source).collect(),
                title: row.get(1)?,
                text: row.get(2)?,
                metadata,
                hash: ContentHash::from_hex(row.get(0)?),
                added_at: row.get(3)?,
                generation: row.get(4)?,
            })
        })
        .optional()
}
