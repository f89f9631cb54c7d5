//! A reader's view: one generation, unchanged for as long as it is held, whatever a writer commits meanwhile.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anchorite_core::{ContentHash, ModelFingerprint, Passage};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use crate::audit::AuditEntry;
use crate::caches::{Kind, Record};
use crate::custody::Particulars;
use crate::error::{At, StoreError};
use crate::filter::Filter;
use crate::records::{CacheState, DocumentSummary, Generation, SourceSummary, Stats, StoredDocument, now};
use crate::schema::{self, Identity};
use crate::search::{Meaning, Words};
use crate::texts;
use crate::titles::Titles;
use crate::view::{ChunkSet, Selection, View, Viewer};
use crate::writer::KnowledgeBase;

/// The newest generation that `connection` sees; generation 0 if nothing was ever committed.
pub(crate) fn newest_generation(connection: &Connection) -> rusqlite::Result<Generation> {
    let newest = generations(connection, 1)?.pop();
    Ok(newest.unwrap_or_default())
}

fn generations(connection: &Connection, limit: usize) -> rusqlite::Result<Vec<Generation>> {
    connection
        .prepare_cached(
            "SELECT id, committed_at, documents_added, documents_removed, chunks_added, chunks_removed, note, actor
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
                actor: row.get(7)?,
            })
        })?
        .collect()
}

/// What all views of one generation have in common.
pub(crate) struct Shared {
    connection: Mutex<Connection>,
    pub(crate) place: KnowledgeBase,
    pub(crate) identity: Identity,
    generation: Generation,
    pub(crate) meaning: Mutex<Option<Arc<Meaning>>>,
    pub(crate) words: Mutex<Option<Arc<Words>>>,
    pub(crate) titles: Mutex<Option<Arc<Titles>>>,
}

/// One generation of a knowledge base, for reading and searching. It may be shared between threads.
///
/// It shows what its view admits: everything at first, or what [`Snapshot::seen_by`] and [`Snapshot::filtered`] leave. What
/// has expired is never shown. It holds a read transaction: a writer's log can't shrink below it, so a snapshot should be
/// replaced now and then where a writer is busy.
pub struct Snapshot {
    pub(crate) shared: Arc<Shared>,
    view: View,
    selection: Mutex<Option<Chosen>>,
}

/// The chunks that a view admits, and until when.
#[derive(Clone)]
struct Chosen {
    chunks: Arc<Selection>,
    until: Option<i64>,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("folder", &self.folder())
            .field("generation", &self.shared.generation.id)
            .field("view", &self.view)
            .finish_non_exhaustive()
    }
}

impl Snapshot {
    pub(crate) fn open(place: &KnowledgeBase) -> Result<Self, StoreError> {
        let (connection, identity) = schema::open_for_reading(&place.folder, place.storage.sqlite_vfs())?;
        let generation = newest_generation(&connection).at(&place.folder)?;
        let shared = Shared {
            connection: Mutex::new(connection),
            place: place.clone(),
            identity,
            generation,
            meaning: Mutex::new(None),
            words: Mutex::new(None),
            titles: Mutex::new(None),
        };
        Ok(Self { shared: Arc::new(shared), view: View::default(), selection: Mutex::new(None) })
    }

    fn with_view(&self, view: View) -> Self {
        Self { shared: self.shared.clone(), view, selection: Mutex::new(None) }
    }

    /// The same generation as `viewer` may see it.
    #[must_use]
    pub fn seen_by(&self, viewer: Viewer) -> Self {
        self.with_view(View { viewer, filter: self.view.filter.clone() })
    }

    /// The same generation, only of it what `filter` admits; a filter there is already must admit it too.
    #[must_use]
    pub fn filtered(&self, filter: Filter) -> Self {
        let filter = match &self.view.filter {
            Some(present) => Filter::All(vec![present.clone(), filter]),
            None => filter,
        };
        self.with_view(View { viewer: self.view.viewer.clone(), filter: Some(filter) })
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// The folder of the knowledge base.
    pub(crate) fn folder(&self) -> &std::path::Path {
        &self.shared.place.folder
    }

    /// The database. Nothing is ever half-changed behind this lock, so a panic elsewhere does not spoil it.
    pub(crate) fn connection(&self) -> MutexGuard<'_, Connection> {
        self.shared.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The chunks that may be found. They are looked up once, and again when something expires.
    pub(crate) fn selection(&self) -> Result<Arc<Selection>, StoreError> {
        let mut slot = self.selection.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now();
        if let Some(chosen) = slot.as_ref().filter(|chosen| chosen.until.is_none_or(|until| now < until)) {
            return Ok(chosen.chunks.clone());
        }
        let chosen = self.choose(now).at(self.folder())?;
        *slot = Some(chosen.clone());
        Ok(chosen.chunks)
    }

    fn choose(&self, now: i64) -> rusqlite::Result<Chosen> {
        let connection = self.connection();
        let (first, until): (Option<i64>, Option<i64>) = connection.query_row(
            "SELECT min(expires_at), min(expires_at) FILTER (WHERE expires_at > ?1) FROM sources
             WHERE expires_at IS NOT NULL",
            [now],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        if self.view.is_whole() && first.is_none_or(|first| first > now) {
            return Ok(Chosen { chunks: Arc::new(Selection::All), until });
        }
        let condition = self.view.condition(now);
        let chunks: ChunkSet = connection
            .prepare(&format!(
                "SELECT c.id FROM chunks c WHERE c.document IN
                 (SELECT s.document FROM sources s JOIN documents d ON d.id = s.document WHERE {})",
                condition.text
            ))?
            .query_map(params_from_iter(condition.values), |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        Ok(Chosen { chunks: Arc::new(Selection::Only(chunks)), until })
    }

    /// The sources of a document that may be seen, oldest first.
    fn sources_of(&self, connection: &Connection, document: i64) -> rusqlite::Result<Vec<SourceOf>> {
        let condition = self.view.condition(now());
        let values = std::iter::once(Value::Integer(document)).chain(condition.values);
        connection
            .prepare_cached(&format!(
                "SELECT s.source, s.metadata, s.owner, s.access, s.dated, s.expires_at
                 FROM sources s JOIN documents d ON d.id = s.document WHERE s.document = ? AND {} ORDER BY s.id",
                condition.text
            ))?
            .query_map(params_from_iter(values), |row| Ok((row.get(0)?, Particulars::from_row(row, 1)?)))?
            .collect()
    }

    /// A passage under the name of a source that may be seen; `None` if there is none.
    pub(crate) fn passage(&self, connection: &Connection, chunk: i64) -> Result<Option<Passage>, StoreError> {
        let Some(mut passage) = texts::passage(connection, self.folder(), chunk)? else { return Ok(None) };
        let Some((source, particulars)) =
            self.sources_of(connection, passage.document).at(self.folder())?.into_iter().next()
        else {
            return Ok(None);
        };
        passage.source = source;
        passage.dated = particulars.dated;
        passage.owner = particulars.owner;
        Ok(Some(passage))
    }

    /// The generation shown.
    #[must_use]
    pub fn generation(&self) -> &Generation {
        &self.shared.generation
    }

    /// The model whose vectors are inside.
    #[must_use]
    pub fn embedder(&self) -> &ModelFingerprint {
        &self.shared.identity.embedder
    }

    /// Components of a vector.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.shared.identity.dim
    }

    /// Fails unless `embedder` made the vectors inside.
    ///
    /// # Errors
    /// [`StoreError::ModelMismatch`].
    pub fn check_model(&self, embedder: &ModelFingerprint, dim: usize) -> Result<(), StoreError> {
        self.shared.identity.check(self.folder(), embedder, dim)
    }

    /// The passages of the given chunks in the order given, without scores. Unknown chunks are left out.
    ///
    /// # Errors
    /// If the database fails.
    pub fn passages(&self, chunks: &[i64]) -> Result<Vec<Passage>, StoreError> {
        let connection = self.connection();
        let passages = chunks.iter().map(|&chunk| self.passage(&connection, chunk));
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
            .at(self.folder())?;
        self.passages(&chunks)
    }

    /// A document by its identifier.
    ///
    /// # Errors
    /// If the database fails.
    pub fn document(&self, id: i64) -> Result<Option<StoredDocument>, StoreError> {
        self.read_document(&self.connection(), id).at(self.folder())
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
            .at(self.folder())?;
        let Some(id) = id else { return Ok(None) };
        let document = self.read_document(&connection, id).at(self.folder())?;
        // A name that may not be seen finds nothing, even if the same text may be seen under another.
        Ok(document.filter(|document| document.source == source || document.aliases.iter().any(|name| name == source)))
    }

    /// What came with `source` beside title and text; `None` if there is no such source.
    ///
    /// # Errors
    /// If the database fails.
    pub fn source_metadata(&self, source: &str) -> Result<Option<BTreeMap<String, serde_json::Value>>, StoreError> {
        let condition = self.view.condition(now());
        let values = std::iter::once(Value::Text(source.to_owned())).chain(condition.values);
        self.connection()
            .prepare_cached(&format!(
                "SELECT s.metadata FROM sources s JOIN documents d ON d.id = s.document WHERE s.source = ? AND {}",
                condition.text
            ))
            .and_then(|mut statement| {
                let read = |row: &Row<'_>| {
                    serde_json::from_str(&row.get::<_, String>(0)?).map_err(|error| unreadable(0, error))
                };
                statement.query_row(params_from_iter(values), read).optional()
            })
            .at(self.folder())
    }

    /// Documents in order of their identifiers.
    ///
    /// # Errors
    /// If the database fails.
    pub fn documents(&self, offset: usize, limit: usize) -> Result<Vec<DocumentSummary>, StoreError> {
        let condition = self.view.condition(now());
        let query = format!(
            "SELECT d.id, s.source, d.title, octet_length(d.text),
                    (SELECT count(*) FROM chunks WHERE document = d.id), d.added_at, d.generation, min(s.id)
             FROM documents d JOIN sources s ON s.document = d.id WHERE {} GROUP BY d.id ORDER BY d.id LIMIT ? OFFSET ?",
            condition.text
        );
        let bounds = [limit, offset].map(|bound| Value::Integer(i64::try_from(bound).unwrap_or(i64::MAX)));
        self.connection()
            .prepare_cached(&query)
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
                statement.query_map(params_from_iter(condition.values.into_iter().chain(bounds)), read)?.collect()
            })
            .at(self.folder())
    }

    /// Sources in the order of their names, with their figures.
    ///
    /// # Errors
    /// If the database fails.
    pub fn sources(&self, offset: usize, limit: usize) -> Result<Vec<SourceSummary>, StoreError> {
        let condition = self.view.condition(now());
        let query = format!(
            "SELECT s.source, s.document, octet_length(d.text), (SELECT count(*) FROM chunks WHERE document = d.id),
                    s.added_at, s.generation, s.metadata, s.owner, s.access, s.dated, s.expires_at,
                    (SELECT count(*) FROM audit a WHERE a.source = s.source AND a.action IN ('add', 'alias'))
             FROM sources s JOIN documents d ON d.id = s.document WHERE {} ORDER BY s.source LIMIT ? OFFSET ?",
            condition.text
        );
        let bounds = [limit, offset].map(|bound| Value::Integer(i64::try_from(bound).unwrap_or(i64::MAX)));
        self.connection()
            .prepare_cached(&query)
            .and_then(|mut statement| {
                let read = |row: &Row<'_>| {
                    let particulars = Particulars::from_row(row, 6)?;
                    Ok(SourceSummary {
                        source: row.get(0)?,
                        document: row.get(1)?,
                        bytes: row.get(2)?,
                        chunks: row.get(3)?,
                        added_at: row.get(4)?,
                        generation: row.get(5)?,
                        owner: particulars.owner,
                        access: particulars.access,
                        dated: particulars.dated,
                        expires_at: particulars.expires_at,
                        versions: row.get(11)?,
                    })
                };
                statement.query_map(params_from_iter(condition.values.into_iter().chain(bounds)), read)?.collect()
            })
            .at(self.folder())
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
                        recall: record.recall,
                    });
                }
            }
            let condition = self.view.condition(now());
            let query = format!(
                "WITH seen AS (SELECT s.document AS id FROM sources s JOIN documents d ON d.id = s.document WHERE {}),
                      shown AS (SELECT DISTINCT id FROM seen)
                 SELECT (SELECT count(*) FROM shown), (SELECT count(*) FROM seen),
                        (SELECT count(*) FROM chunks WHERE document IN shown),
                        (SELECT coalesce(sum(octet_length(text)), 0) FROM documents WHERE id IN shown),
                        (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size),
                        (SELECT count(*) FROM past_documents)",
                condition.text
            );
            connection.query_row(&query, params_from_iter(condition.values), |row| {
                Ok(Stats {
                    generation: self.shared.generation.id,
                    documents: row.get(0)?,
                    sources: row.get(1)?,
                    chunks: row.get(2)?,
                    text_bytes: row.get(3)?,
                    database_bytes: row.get(4)?,
                    former_documents: row.get(5)?,
                    embedder: self.shared.identity.embedder.clone(),
                    dimensions: self.shared.identity.dim,
                    caches,
                })
            })
        };
        read().at(self.folder())
    }

    /// The newest `limit` generations, newest first.
    ///
    /// # Errors
    /// If the database fails.
    pub fn history(&self, limit: usize) -> Result<Vec<Generation>, StoreError> {
        generations(&self.connection(), limit).at(self.folder())
    }

    /// The newest `limit` lines of the audit trail, newest first; only those of `source` if one is given. Of what a view
    /// hides there are no lines, nor of what is no longer there unless the viewer holds the files.
    ///
    /// # Errors
    /// If the database fails.
    pub fn audit(&self, source: Option<&str>, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        let mut values = vec![source.map_or(Value::Null, |source| Value::Text(source.to_owned()))];
        let mut seen = String::new();
        if !self.view.is_whole() {
            let condition = self.view.condition(now());
            seen = format!(
                "AND a.source IN (SELECT s.source FROM sources s JOIN documents d ON d.id = s.document WHERE {})",
                condition.text
            );
            values.extend(condition.values);
        }
        values.push(Value::Integer(i64::try_from(limit).unwrap_or(i64::MAX)));
        let query = format!(
            "SELECT {} FROM audit a WHERE coalesce(a.source = ?, TRUE) {seen} ORDER BY a.id DESC LIMIT ?",
            AuditEntry::COLUMNS
        );
        self.connection()
            .prepare_cached(&query)
            .and_then(|mut statement| statement.query_map(params_from_iter(values), AuditEntry::from_row)?.collect())
            .at(self.folder())
    }

    fn read_document(&self, connection: &Connection, id: i64) -> rusqlite::Result<Option<StoredDocument>> {
        let mut sources = self.sources_of(connection, id)?;
        if sources.is_empty() {
            return Ok(None);
        }
        let (source, particulars) = sources.remove(0);
        let Particulars { metadata, owner, access, dated, expires_at } = particulars;
        let metadata: BTreeMap<String, serde_json::Value> =
            serde_json::from_str(&metadata).map_err(|error| unreadable(1, error))?;
        connection
            .prepare_cached("SELECT hash, title, text, added_at, generation, outline FROM documents WHERE id = ?1")?
            .query_row([id], |row| {
                let outline: String = row.get(5)?;
                Ok(StoredDocument {
                    id,
                    source,
                    aliases: sources.into_iter().map(|(source, _)| source).collect(),
                    title: row.get(1)?,
                    text: row.get(2)?,
                    metadata,
                    outline: serde_json::from_str(&outline).map_err(|error| unreadable(5, error))?,
                    owner,
                    access,
                    dated,
                    expires_at,
                    hash: ContentHash::from_hex(row.get(0)?),
                    added_at: row.get(3)?,
                    generation: row.get(4)?,
                })
            })
            .optional()
    }
}

/// A source with what is known of it.
type SourceOf = (String, Particulars);

fn unreadable(column: usize, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, error.into())
}
