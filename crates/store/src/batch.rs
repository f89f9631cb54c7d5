//! A change of a knowledge base: all of it or nothing.
//!
//! A document is its content (title and text); sources point to it. Adding follows four rules:
//! 1. Source and content known: nothing to do, or the source's metadata is brought up to date.
//! 2. Source known with other content: the source is taken from the old document, which is removed with its chunks unless
//!    another source still has it. Then rule 3 or 4.
//! 3. Content known from another source: the source is noted there. No chunk is added, so nothing is found twice.
//! 4. Otherwise document, source, chunks and vectors are added.
//!
//! Deleting a source takes it from its document, which is removed once it has no source left.

use std::collections::BTreeMap;
use std::path::Path;

use anchorite_core::{Chunk, ContentHash, Document, Embedding};
use rusqlite::{Connection, OptionalExtension, Transaction};

use crate::error::{At, StoreError};
use crate::records::{Action, Deletion, Generation, Known, Outcome, now};
use crate::snapshot;
use crate::vectors::encode;

/// A change in preparation.
#[derive(Debug)]
pub struct Batch<'writer> {
    transaction: Transaction<'writer>,
    folder: &'writer Path,
    dim: usize,
    generation: Generation,
    previous: Generation,
    touched: bool,
}

/// What the database holds for a source and a content.
pub(crate) struct Match {
    hash: ContentHash,
    metadata: String,
    /// Document of the source, and whether it has this content.
    by_source: Option<SourceRow>,
    /// Document of the content.
    by_content: Option<i64>,
}

struct SourceRow {
    id: i64,
    document: i64,
    hash: ContentHash,
    metadata: String,
}

/// What adding `document` would do.
pub(crate) fn classify(
    connection: &Connection,
    folder: &Path,
    document: &Document,
) -> Result<(Known, Match), StoreError> {
    let hash = document.content_hash();
    let by_source = source_row(connection, &document.source).at(folder)?;
    let by_content = connection
        .prepare_cached("SELECT id FROM documents WHERE hash = ?1")
        .and_then(|mut statement| statement.query_row([hash.as_str()], |row| row.get(0)).optional())
        .at(folder)?;
    let metadata = write_metadata(&document.metadata, folder)?;
    let known = match (&by_source, by_content) {
        (Some(row), _) if row.hash == hash && row.metadata == metadata => Known::Unchanged,
        (Some(row), _) if row.hash == hash => Known::MetadataChanged,
        (_, Some(_)) => Known::Duplicate,
        (Some(_), None) => Known::Changed,
        (None, None) => Known::New,
    };
    Ok((known, Match { hash, metadata, by_source, by_content }))
}

fn source_row(connection: &Connection, source: &str) -> rusqlite::Result<Option<SourceRow>> {
    connection
        .prepare_cached(
            "SELECT s.id, s.document, d.hash, s.metadata FROM sources s JOIN documents d ON d.id = s.document
             WHERE s.source = ?1",
        )?
        .query_row([source], |row| {
            Ok(SourceRow {
                id: row.get(0)?,
                document: row.get(1)?,
                hash: ContentHash::from_hex(row.get(2)?),
                metadata: row.get(3)?,
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
    ) -> Result<Self, StoreError> {
        let previous = snapshot::newest_generation(&transaction).at(folder)?;
        let committed_at = now();
        transaction
            .execute("INSERT INTO generations (committed_at, note) VALUES (?1, ?2)", (committed_at, note))
            .at(folder)?;
        let generation = Generation {
            id: transaction.last_insert_rowid(),
            committed_at,
            note: note.to_owned(),
            ..Default::default()
        };
        Ok(Self { transaction, folder, dim, generation, previous, touched: false })
    }

    /// As [`crate::Writer::classify`], with this batch's own changes seen.
    ///
    /// # Errors
    /// If the database fails.
    pub fn classify(&self, document: &Document) -> Result<Known, StoreError> {
        classify(&self.transaction, self.folder, document).map(|(known, _)| known)
    }

    /// Adds a document with its chunks and their vectors, by the rules at the head of this module. Where
    /// [`Known::needs_chunks`] is false, `chunks` is not looked at and may be empty.
    ///
    /// # Errors
    /// If a chunk does not fit the text, a vector has another dimension, or the database fails.
    pub fn add(&mut self, document: &Document, chunks: &[(Chunk, Embedding)]) -> Result<Outcome, StoreError> {
        let (known, found) = classify(&self.transaction, self.folder, document)?;
        if known == Known::Unchanged {
            return Ok(Outcome::Unchanged);
        }
        if known.needs_chunks() {
            self.check_chunks(document, chunks)?;
        }
        self.touched = true;
        if let (Known::MetadataChanged, Some(row)) = (known, &found.by_source) {
            self.transaction
                .execute("UPDATE sources SET metadata = ?1 WHERE id = ?2", (&found.metadata, row.id))
                .at(self.folder)?;
            self.audit(Action::Metadata, &document.source, row.document, &found.hash)?;
            return Ok(Outcome::MetadataUpdated);
        }
        let replaced = match &found.by_source {
            Some(row) => {
                self.unlink(&document.source, row)?;
                true
            }
            None => false,
        };
        let (id, action) = match found.by_content {
            Some(id) => (id, Action::Alias),
            None => (self.insert_document(document, &found.hash, chunks)?, Action::Add),
        };
        self.transaction
            .prepare_cached(
                "INSERT INTO sources (source, document, added_at, generation, metadata) VALUES (?1, ?2, ?3, ?4, ?5)",
            )
            .and_then(|mut statement| {
                let generation = &self.generation;
                statement.execute((&document.source, id, generation.committed_at, generation.id, &found.metadata))
            })
            .at(self.folder)?;
        self.audit(action, &document.source, id, &found.hash)?;
        Ok(match (replaced, action) {
            (true, _) => Outcome::Replaced,
            (false, Action::Alias) => Outcome::Duplicate,
            (false, _) => Outcome::Added,
        })
    }

    /// Takes `source` away, and its document with it if no other source has the same content.
    ///
    /// # Errors
    /// If the database fails.
    pub fn delete_source(&mut self, source: &str) -> Result<Deletion, StoreError> {
        let before = (self.generation.documents_removed, self.generation.chunks_removed);
        let Some(row) = source_row(&self.transaction, source).at(self.folder)? else { return Ok(Deletion::default()) };
        self.unlink(source, &row)?;
        Ok(self.deletion(1, before))
    }

    /// Removes a document with all its sources.
    ///
    /// # Errors
    /// If the database fails.
    pub fn delete_document(&mut self, id: i64) -> Result<Deletion, StoreError> {
        let before = (self.generation.documents_removed, self.generation.chunks_removed);
        let sources: Vec<String> = self
            .transaction
            .prepare_cached("SELECT source FROM sources WHERE document = ?1 ORDER BY id")
            .and_then(|mut statement| statement.query_map([id], |row| row.get(0))?.collect())
            .at(self.folder)?;
        for source in &sources {
            if let Some(row) = source_row(&self.transaction, source).at(self.folder)? {
                self.unlink(source, &row)?;
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
        let Self { transaction, generation, folder, .. } = self;
        let insert = || -> rusqlite::Result<i64> {
            transaction
                .prepare_cached(
                    "INSERT INTO documents (hash, title, added_at, generation, text) VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute((hash.as_str(), &document.title, generation.committed_at, generation.id, &document.text))?;
            let id = transaction.last_insert_rowid();
            let mut insert_chunk = transaction.prepare_cached(
                "INSERT INTO chunks (document, ordinal, start_byte, end_byte) VALUES (?1, ?2, ?3, ?4)",
            )?;
            let mut insert_vector =
                transaction.prepare_cached("INSERT INTO vectors (chunk, vector) VALUES (?1, ?2)")?;
            for (chunk, embedding) in chunks {
                insert_chunk.execute((id, chunk.ordinal, chunk.start, chunk.end))?;
                insert_vector.execute((transaction.last_insert_rowid(), encode(embedding)))?;
            }
            Ok(id)
        };
        let id = insert().at(folder)?;
        generation.documents_added += 1;
        generation.chunks_added += chunks.len() as u64;
        Ok(id)
    }

    /// Takes a source from its document, and removes the document if it was the last one.
    fn unlink(&mut self, source: &str, row: &SourceRow) -> Result<(), StoreError> {
        self.touched = true;
        let others: bool = self
            .transaction
            .execute("DELETE FROM sources WHERE id = ?1", [row.id])
            .and_then(|_| {
                self.transaction
                    .prepare_cached("SELECT EXISTS (SELECT 1 FROM sources WHERE document = ?1)")?
                    .query_row([row.document], |row| row.get(0))
            })
            .at(self.folder)?;
        self.audit(Action::Unlink, source, row.document, &row.hash)?;
        if others {
            return Ok(());
        }
        let (id, generation) = (row.document, self.generation.id);
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
        self.audit(Action::Remove, source, id, &row.hash)
    }

    fn audit(&self, action: Action, source: &str, document: i64, hash: &ContentHash) -> Result<(), StoreError> {
        self.transaction
            .prepare_cached(
                "INSERT INTO audit (at, action, source, document, hash, generation) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )
            .and_then(|mut statement| {
                statement.execute((now(), action.as_str(), source, document, hash.as_str(), self.generation.id))
            })
            .at(self.folder)?;
        Ok(())
    }

    fn deletion(&self, sources: u64, before: (u64, u64)) -> Deletion {
        Deletion {
            sources,
            documents: self.generation.documents_removed - before.0,
            chunks: self.generation.chunks_removed - before.1,
        }
    }
}
