//! A change of a knowledge base: all of it or nothing.
//!
//! A document is its content (title and text); sources point to it. Adding follows four rules:
//! 1. Source and content known: nothing to do, or the source's metadata is brought up to date.
//! 2. Source known with other content: the source is taken from the old document, which is removed with its chunks unless
//!    another source still has it. Then rule 3 or 4.
//! 3. Content known from another source: the source is noted there. No chunk is added, so nothing is found twice.
//! 4. Otherwise document, source, chunks and vectors are added.
//!
//! Removing a source takes it from its document, which is removed once it has no source left. What is replaced stays in the
//! history, where a rollback finds it; what is deleted is erased from the history too, unless [`Removal::Restorable`] is
//! asked for.

use std::collections::BTreeMap;
use std::path::Path;

use anchorite_core::{Chunk, ContentHash, Document, Embedding};
use rusqlite::{Connection, OptionalExtension, Transaction};

use crate::audit::{self, Action, AuditEntry};
use crate::custody::{Custody, Particulars};
use crate::error::{At, StoreError};
use crate::history;
use crate::records::{Deletion, Generation, Known, Outcome, now};
use crate::snapshot;
use crate::vectors::encode;

/// What becomes of something that is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It goes for good, with all that its source held before: no rollback brings it back.
    Erase,
    /// It stays in the history until that is compacted.
    Restorable,
}

/// A change in preparation.
#[derive(Debug)]
pub struct Batch<'writer> {
    pub(crate) transaction: Transaction<'writer>,
    pub(crate) folder: &'writer Path,
    dim: usize,
    pub(crate) generation: Generation,
    previous: Generation,
    custody: Custody,
    /// Hash of the newest line of the audit trail.
    chain: String,
    touched: bool,
}

/// What the database holds for a source and a content.
pub(crate) struct Match {
    hash: ContentHash,
    particulars: Particulars,
    /// Document of the source, and whether it has this content.
    by_source: Option<SourceRow>,
    /// Document of the content.
    by_content: Option<i64>,
}

pub(crate) struct SourceRow {
    pub(crate) id: i64,
    pub(crate) document: i64,
    pub(crate) hash: ContentHash,
    added_at: i64,
    generation: i64,
    pub(crate) particulars: Particulars,
}

/// What adding `document` would do.
pub(crate) fn classify(
    connection: &Connection,
    folder: &Path,
    document: &Document,
    custody: &Custody,
) -> Result<(Known, Match), StoreError> {
    let hash = document.content_hash();
    let by_source = source_row(connection, &document.source).at(folder)?;
    let by_content = document_of(connection, &hash).at(folder)?;
    let metadata = write_metadata(&document.metadata, folder)?;
    let before = by_source.as_ref().map(|row| &row.particulars);
    let particulars = Particulars::wanted(metadata, custody, before, now());
    let known = match (&by_source, by_content) {
        (Some(row), _) if row.hash == hash && row.particulars == particulars => Known::Unchanged,
        (Some(row), _) if row.hash == hash => Known::MetadataChanged,
        (_, Some(_)) => Known::Duplicate,
        (Some(_), None) => Known::Changed,
        (None, None) => Known::New,
    };
    Ok((known, Match { hash, particulars, by_source, by_content }))
}

/// The document with this content.
pub(crate) fn document_of(connection: &Connection, hash: &ContentHash) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT id FROM documents WHERE hash = ?1")?
        .query_row([hash.as_str()], |row| row.get(0))
        .optional()
}

pub(crate) fn source_row(connection: &Connection, source: &str) -> rusqlite::Result<Option<SourceRow>> {
    connection
        .prepare_cached(
            "SELECT s.id, s.document, d.hash, s.added_at, s.generation,
                    s.metadata, s.owner, s.access, s.dated, s.expires_at
             FROM sources s JOIN documents d ON d.id = s.document WHERE s.source = ?1",
        )?
        .query_row([source], |row| {
            Ok(SourceRow {
                id: row.get(0)?,
                document: row.get(1)?,
                hash: ContentHash::from_hex(row.get(2)?),
                added_at: row.get(3)?,
                generation: row.get(4)?,
                particulars: Particulars::from_row(row, 5)?,
            })
        })
        .optional()
}

fn write_metadata(metadata: &BTreeMap<String, serde_json::Value>, folder: &Path) -> Result<String, StoreError> {
    serde_json::to_string(metadata)
        .map_err(|error| StoreError::Io { path: folder.to_owned(), source: std::io::Error::other(error) })
}

impl<'writer> Batch<'writer> {
    pub(crate) fn begin(
        transaction: Transaction<'writer>,
        folder: &'writer Path,
        dim: usize,
        note: &str,
        actor: &str,
    ) -> Result<Self, StoreError> {
        let previous = snapshot::newest_generation(&transaction).at(folder)?;
        let committed_at = now();
        transaction
            .execute(
                "INSERT INTO generations (committed_at, note, actor) VALUES (?1, ?2, ?3)",
                (committed_at, note, actor),
            )
            .at(folder)?;
        let generation = Generation {
            id: transaction.last_insert_rowid(),
            committed_at,
            note: note.to_owned(),
            actor: actor.to_owned(),
            ..Default::default()
        };
        let chain = audit::newest_hash(&transaction).at(folder)?;
        Ok(Self { transaction, folder, dim, generation, previous, custody: Custody::default(), chain, touched: false })
    }

    /// Says whose the documents are that are added from here on, who may see them, and how long they are kept.
    pub fn keep_as(&mut self, custody: Custody) {
        self.custody = custody;
    }

    /// As [`crate::Writer::classify`], with this batch's own changes seen.
    ///
    /// # Errors
    /// If the database fails.
    pub fn classify(&self, document: &Document) -> Result<Known, StoreError> {
        classify(&self.transaction, self.folder, document, &self.custody).map(|(known, _)| known)
    }

    /// Adds a document with its chunks and their vectors, by the rules at the head of this module. Where
    /// [`Known::needs_chunks`] is false, `chunks` is not looked at and may be empty.
    ///
    /// # Errors
    /// If a chunk does not fit the text, a vector has another dimension, or the database fails.
    pub fn add(&mut self, document: &Document, chunks: &[(Chunk, Embedding)]) -> Result<Outcome, StoreError> {
        let (known, found) = classify(&self.transaction, self.folder, document, &self.custody)?;
        if known == Known::Unchanged {
            return Ok(Outcome::Unchanged);
        }
        if known.needs_chunks() {
            self.check_chunks(document, chunks)?;
        }
        self.touched = true;
        if let (Known::MetadataChanged, Some(row)) = (known, &found.by_source) {
            self.describe(&document.source, row, &found.particulars)?;
            return Ok(Outcome::MetadataUpdated);
        }
        let replaced = match &found.by_source {
            Some(row) => {
                self.unlink(&document.source, row, Action::Unlink, Removal::Restorable)?;
                true
            }
            None => false,
        };
        let (id, action) = match found.by_content {
            Some(id) => (id, Action::Alias),
            None => (self.insert_document(document, &found.hash, chunks)?, Action::Add),
        };
        self.link(&document.source, id, &found.hash, &found.particulars, action)?;
        Ok(match (replaced, action) {
            (true, _) => Outcome::Replaced,
            (false, Action::Alias) => Outcome::Duplicate,
            (false, _) => Outcome::Added,
        })
    }

    /// Changes what is known of a source beside its content; `metadata` replaces all of it, `custody` what it names.
    /// False if there is no such source.
    ///
    /// # Errors
    /// If the database fails.
    pub fn describe_source(
        &mut self,
        source: &str,
        metadata: Option<&BTreeMap<String, serde_json::Value>>,
        custody: &Custody,
    ) -> Result<bool, StoreError> {
        let Some(row) = source_row(&self.transaction, source).at(self.folder)? else { return Ok(false) };
        let metadata = match metadata {
            Some(metadata) => write_metadata(metadata, self.folder)?,
            None => row.particulars.metadata.clone(),
        };
        let wanted = Particulars::wanted(metadata, custody, Some(&row.particulars), now());
        if wanted != row.particulars {
            self.describe(source, &row, &wanted)?;
        }
        Ok(true)
    }

    /// Takes `source` away, and its document with it if no other source has the same content. It is erased; see
    /// [`Batch::remove_source`].
    ///
    /// # Errors
    /// If the database fails.
    pub fn delete_source(&mut self, source: &str) -> Result<Deletion, StoreError> {
        self.remove_source(source, Removal::Erase)
    }

    /// Takes `source` away, and its document with it if no other source has the same content.
    ///
    /// # Errors
    /// If the database fails.
    pub fn remove_source(&mut self, source: &str, removal: Removal) -> Result<Deletion, StoreError> {
        let before = self.removed();
        let row = source_row(&self.transaction, source).at(self.folder)?;
        if let Some(row) = &row {
            self.unlink(source, row, Action::Unlink, removal)?;
        }
        Ok(self.deletion(u64::from(row.is_some()), before))
    }

    /// Removes a document with all its sources.
    ///
    /// # Errors
    /// If the database fails.
    pub fn delete_document(&mut self, id: i64, removal: Removal) -> Result<Deletion, StoreError> {
        let before = self.removed();
        let sources: Vec<String> = self
            .transaction
            .prepare_cached("SELECT source FROM sources WHERE document = ?1 ORDER BY id")
            .and_then(|mut statement| statement.query_map([id], |row| row.get(0))?.collect())
            .at(self.folder)?;
        for source in &sources {
            self.remove_source(source, removal)?;
        }
        Ok(self.deletion(sources.len() as u64, before))
    }

    /// Erases every source whose term has ended.
    ///
    /// # Errors
    /// If the database fails.
    pub fn remove_expired(&mut self) -> Result<Deletion, StoreError> {
        let before = self.removed();
        let sources: Vec<String> = self
            .transaction
            .prepare_cached("SELECT source FROM sources WHERE expires_at <= ?1 ORDER BY id")
            .and_then(|mut statement| statement.query_map([now()], |row| row.get(0))?.collect())
            .at(self.folder)?;
        for source in &sources {
            if let Some(row) = source_row(&self.transaction, source).at(self.folder)? {
                self.unlink(source, &row, Action::Expire, Removal::Erase)?;
            }
        }
        Ok(self.deletion(sources.len() as u64, before))
    }

    /// Makes the change visible and durable: when this returns, it is on the medium. A batch that changed nothing makes no
    /// generation; the present one is returned.
    ///
    /// # Errors
    /// If the database fails; then nothing of the batch is kept.
    pub fn commit(self) -> Result<Generation, StoreError> {
        let Self { transaction, folder, mut generation, previous, touched, .. } = self;
        if !touched {
            transaction.rollback().at(folder)?;
            return Ok(previous);
        }
        generation.committed_at = now();
        let counts = (
            generation.id,
            generation.documents_added,
            generation.documents_removed,
            generation.chunks_added,
            generation.chunks_removed,
            generation.committed_at,
        );
        transaction
            .execute(
                "UPDATE generations SET documents_added = ?2, documents_removed = ?3, chunks_added = ?4,
                 chunks_removed = ?5, committed_at = ?6 WHERE id = ?1",
                counts,
            )
            .at(folder)?;
        transaction.commit().at(folder)?;
        Ok(generation)
    }

    fn check_chunks(&self, document: &Document, chunks: &[(Chunk, Embedding)]) -> Result<(), StoreError> {
        if chunks.is_empty() && !document.text.trim().is_empty() {
            return Err(StoreError::NoChunks { document: document.source.clone() });
        }
        for (chunk, embedding) in chunks {
            let reason = match document.text.get(chunk.start..chunk.end) {
                Some(text) if text == chunk.text => None,
                Some(_) => Some("the text there is another"),
                None if chunk.start > chunk.end || chunk.end > document.text.len() => Some("the text ends before"),
                None => Some("an end is inside a character"),
            };
            if let Some(reason) = reason {
                let (ordinal, start, end) = (chunk.ordinal, chunk.start, chunk.end);
                return Err(StoreError::InvalidChunk {
                    document: document.source.clone(),
                    ordinal,
                    start,
                    end,
                    reason,
                });
            }
            if embedding.dim() != self.dim {
                return Err(StoreError::DimensionMismatch { expected: self.dim, given: embedding.dim() });
            }
        }
        Ok(())
    }

    fn insert_document(
        &mut self,
        document: &Document,
        hash: &ContentHash,
        chunks: &[(Chunk, Embedding)],
    ) -> Result<i64, StoreError> {
        let outline = serde_json::to_string(&document.outline)
            .map_err(|error| StoreError::Io { path: self.folder.to_owned(), source: std::io::Error::other(error) })?;
        let spans = chunks.iter().map(|(chunk, embedding)| (chunk.ordinal, chunk.start, chunk.end, encode(embedding)));
        self.insert_content(hash, &document.title, &document.text, &outline, spans)
    }

    /// Writes a document with its chunks: ordinal, first byte, one past the last, vector as it is kept.
    pub(crate) fn insert_content(
        &mut self,
        hash: &ContentHash,
        title: &str,
        text: &str,
        outline: &str,
        chunks: impl Iterator<Item = (u32, usize, usize, Vec<u8>)>,
    ) -> Result<i64, StoreError> {
        self.touched = true;
        let Self { transaction, generation, folder, .. } = self;
        let insert = || -> rusqlite::Result<(i64, u64)> {
            transaction
                .prepare_cached(
                    "INSERT INTO documents (hash, title, added_at, generation, text, outline)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute((hash.as_str(), title, generation.committed_at, generation.id, text, outline))?;
            let id = transaction.last_insert_rowid();
            let mut insert_chunk = transaction.prepare_cached(
                "INSERT INTO chunks (document, ordinal, start_byte, end_byte) VALUES (?1, ?2, ?3, ?4)",
            )?;
            let mut insert_vector =
                transaction.prepare_cached("INSERT INTO vectors (chunk, vector) VALUES (?1, ?2)")?;
            let mut count = 0;
            for (ordinal, start, end, vector) in chunks {
                insert_chunk.execute((id, ordinal, start, end))?;
                insert_vector.execute((transaction.last_insert_rowid(), vector))?;
                count += 1;
            }
            // What is there again need not be remembered.
            transaction.prepare_cached("DELETE FROM past_documents WHERE hash = ?1")?.execute([hash.as_str()])?;
            Ok((id, count))
        };
        let (id, count) = insert().at(folder)?;
        generation.documents_added += 1;
        generation.chunks_added += count;
        Ok(id)
    }

    /// Points a source to a document.
    pub(crate) fn link(
        &mut self,
        source: &str,
        document: i64,
        hash: &ContentHash,
        particulars: &Particulars,
        action: Action,
    ) -> Result<(), StoreError> {
        self.touched = true;
        let Particulars { metadata, owner, access, dated, expires_at } = particulars;
        let Generation { id, committed_at, .. } = self.generation;
        self.transaction
            .prepare_cached(
                "INSERT INTO sources (source, document, added_at, generation, metadata, owner, access, dated, expires_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )
            .and_then(|mut statement| {
                statement.execute((source, document, committed_at, id, metadata, owner, access, dated, expires_at))
            })
            .at(self.folder)?;
        self.audit(action, source, document, hash)
    }

    /// Writes what is known of a source beside its content.
    pub(crate) fn describe(&mut self, source: &str, row: &SourceRow, wanted: &Particulars) -> Result<(), StoreError> {
        self.touched = true;
        self.remember(source, row, Removal::Restorable)?;
        let Particulars { metadata, owner, access, dated, expires_at } = wanted;
        self.transaction
            .prepare_cached(
                "UPDATE sources SET generation = ?2, metadata = ?3, owner = ?4, access = ?5, dated = ?6, expires_at = ?7
                 WHERE id = ?1",
            )
            .and_then(|mut statement| {
                statement.execute((row.id, self.generation.id, metadata, owner, access, dated, expires_at))
            })
            .at(self.folder)?;
        self.audit(Action::Metadata, source, row.document, &row.hash)
    }

    /// Writes into the history what a source was until now. What came in this very generation was never seen.
    fn remember(&mut self, source: &str, row: &SourceRow, removal: Removal) -> Result<(), StoreError> {
        if row.generation == self.generation.id {
            return Ok(());
        }
        let Particulars { metadata, owner, access, dated, expires_at } = &row.particulars;
        let span = (row.generation, self.generation.id);
        self.transaction
            .prepare_cached(
                "INSERT INTO past_sources (source, hash, added_at, metadata, owner, access, dated, expires_at,
                                           from_generation, to_generation, erased)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )
            .and_then(|mut statement| {
                statement.execute((
                    source,
                    row.hash.as_str(),
                    row.added_at,
                    metadata,
                    owner,
                    access,
                    dated,
                    expires_at,
                    span.0,
                    span.1,
                    removal == Removal::Erase,
                ))
            })
            .map(drop)
            .at(self.folder)
    }

    /// Takes a source from its document, and removes the document if it was the last one.
    pub(crate) fn unlink(
        &mut self,
        source: &str,
        row: &SourceRow,
        action: Action,
        removal: Removal,
    ) -> Result<(), StoreError> {
        self.touched = true;
        self.remember(source, row, removal)?;
        let others: bool = self
            .transaction
            .execute("DELETE FROM sources WHERE id = ?1", [row.id])
            .and_then(|_| {
                self.transaction
                    .prepare_cached("SELECT EXISTS (SELECT 1 FROM sources WHERE document = ?1)")?
                    .query_row([row.document], |row| row.get(0))
            })
            .at(self.folder)?;
        self.audit(action, source, row.document, &row.hash)?;
        if !others {
            let (id, generation) = (row.document, self.generation.id);
            if removal == Removal::Restorable {
                history::archive(&self.transaction, id).at(self.folder)?;
            }
            let remove = || -> rusqlite::Result<usize> {
                let chunks = self
                    .transaction
                    .prepare_cached(
                        "INSERT INTO tombstones (chunk, generation) SELECT id, ?2 FROM chunks WHERE document = ?1",
                    )?
                    .execute([id, generation])?;
                // Sources, chunks and vectors go with it.
                self.transaction.prepare_cached("DELETE FROM documents WHERE id = ?1")?.execute([id])?;
                Ok(chunks)
            };
            let chunks = remove().at(self.folder)?;
            self.generation.documents_removed += 1;
            self.generation.chunks_removed += chunks as u64;
            self.audit(Action::Remove, source, id, &row.hash)?;
        }
        if removal == Removal::Erase {
            history::erase(&self.transaction, source, &row.hash).at(self.folder)?;
            self.audit(Action::Erase, source, row.document, &row.hash)?;
        }
        Ok(())
    }

    /// Makes a generation even of a batch that changed no document.
    pub(crate) fn touch(&mut self) {
        self.touched = true;
    }

    fn audit(&mut self, action: Action, source: &str, document: i64, hash: &ContentHash) -> Result<(), StoreError> {
        let entry = AuditEntry {
            at: now(),
            action,
            source: source.to_owned(),
            document,
            hash: hash.clone(),
            generation: self.generation.id,
            actor: self.generation.actor.clone(),
        };
        self.chain = audit::append(&self.transaction, &entry, &self.chain).at(self.folder)?;
        Ok(())
    }

    /// Documents and chunks removed so far.
    fn removed(&self) -> (u64, u64) {
        (self.generation.documents_removed, self.generation.chunks_removed)
    }

    fn deletion(&self, sources: u64, before: (u64, u64)) -> Deletion {
        Deletion {
            sources,
            documents: self.generation.documents_removed - before.0,
            chunks: self.generation.chunks_removed - before.1,
        }
    }
}
