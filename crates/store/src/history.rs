//! What a knowledge base was: the sources of any earlier generation, what differs between two, and the way back.
//!
//! A generation is rebuilt from what is there now and from what was: a source that is there has been so since its
//! generation; `past_sources` has each former state of a source with the generations between which it held. Content that no
//! source has any more lies in `past_documents`, cut and embedded, so that going back needs no model.

use std::collections::BTreeMap;

use anchorite_core::ContentHash;
use rusqlite::{Connection, OptionalExtension, params_from_iter};
use serde::{Deserialize, Serialize};

use crate::audit::Action;
use crate::batch::{Batch, Removal, document_of, source_row};
use crate::custody::Particulars;
use crate::error::{At, StoreError};
use crate::filter::Sql;
use crate::records::{Generation, now};
use crate::snapshot::{Snapshot, newest_generation};
use crate::writer::Writer;

/// The entry of `meta` that tells the oldest generation that can be rebuilt.
const BEGINS: &str = "history_begins";

/// A difference between two generations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The source.
    pub source: String,
    /// What became of it.
    pub kind: ChangeKind,
    /// Its content before; `None` if it was not there.
    pub before: Option<ContentHash>,
    /// Its content after; `None` if it was not there.
    pub after: Option<ContentHash>,
}

/// What became of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It came.
    Added,
    /// It went.
    Removed,
    /// It has other content.
    Replaced,
    /// Its metadata, owner, label, date or term is another.
    Described,
}

/// What a rollback did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollback {
    /// The generation that it made.
    pub generation: i64,
    /// Sources that are there again.
    pub added: u64,
    /// Sources that are no longer there.
    pub removed: u64,
    /// Sources that have their former content again.
    pub replaced: u64,
    /// Sources of which only what is known beside the content changed back.
    pub described: u64,
    /// Sources that could not come back, since they were erased.
    pub erased: Vec<String>,
}

/// What compaction did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// The generation that it made.
    pub generation: i64,
    /// The oldest generation that can be gone back to.
    pub history_begins: i64,
    /// Former contents that were let go of.
    pub documents: u64,
    /// Bytes of the database before.
    pub bytes_before: u64,
    /// Bytes of the database after.
    pub bytes_after: u64,
}

/// A source as it was in some generation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    hash: ContentHash,
    particulars: Particulars,
    erased: bool,
}

/// The sources of `generation` that `condition` admits.
fn states(connection: &Connection, generation: i64, condition: &Sql) -> rusqlite::Result<BTreeMap<String, State>> {
    let columns = "s.metadata, s.owner, s.access, s.dated, s.expires_at";
    let query = format!(
        "SELECT s.source, d.hash, 0, {columns} FROM sources s JOIN documents d ON d.id = s.document
         WHERE s.generation <= {generation} AND {condition}
         UNION ALL
         SELECT s.source, s.hash, s.erased, {columns} FROM past_sources s LEFT JOIN past_documents d ON d.hash = s.hash
         WHERE s.from_generation <= {generation} AND s.to_generation > {generation} AND {condition}",
        condition = condition.text
    );
    let values = condition.values.iter().chain(&condition.values);
    connection
        .prepare(&query)?
        .query_map(params_from_iter(values), |row| {
            let state = State {
                hash: ContentHash::from_hex(row.get(1)?),
                erased: row.get(2)?,
                particulars: Particulars::from_row(row, 3)?,
            };
            Ok((row.get(0)?, state))
        })?
        .collect()
}

fn everything() -> Sql {
    Sql { text: "TRUE".to_owned(), values: Vec::new() }
}

/// The oldest generation that can be rebuilt.
fn begins(connection: &Connection) -> rusqlite::Result<i64> {
    let begins: Option<String> =
        connection.query_row("SELECT value FROM meta WHERE key = ?1", [BEGINS], |row| row.get(0)).optional()?;
    Ok(begins.and_then(|begins| begins.parse().ok()).unwrap_or(0))
}

/// Fails unless `generation` can be rebuilt.
fn check(connection: &Connection, folder: &std::path::Path, generation: i64) -> Result<(), StoreError> {
    if generation < 0 || generation > newest_generation(connection).at(folder)?.id {
        return Err(StoreError::NoSuchGeneration { path: folder.to_owned(), generation });
    }
    let begins = begins(connection).at(folder)?;
    if generation < begins {
        return Err(StoreError::Compacted { path: folder.to_owned(), begins });
    }
    Ok(())
}

/// Puts a document that is about to go into the history.
pub(crate) fn archive(connection: &Connection, document: i64) -> rusqlite::Result<()> {
    let mut spans: Vec<(u32, usize, usize)> = Vec::new();
    let mut vectors: Vec<u8> = Vec::new();
    let mut statement = connection.prepare_cached(
        "SELECT c.ordinal, c.start_byte, c.end_byte, v.vector FROM chunks c JOIN vectors v ON v.chunk = c.id
         WHERE c.document = ?1 ORDER BY c.id",
    )?;
    let mut rows = statement.query([document])?;
    while let Some(row) = rows.next()? {
        spans.push((row.get(0)?, row.get(1)?, row.get(2)?));
        vectors.extend_from_slice(row.get_ref(3)?.as_blob().unwrap_or_default());
    }
    let spans = serde_json::to_string(&spans).unwrap_or_default();
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO past_documents (hash, title, text, outline, chunks, vectors)
             SELECT hash, title, text, outline, ?2, ?3 FROM documents WHERE id = ?1",
        )?
        .execute((document, spans, vectors))?;
    Ok(())
}

/// Takes out of the history what `source` held, now `hash` and before: its own past, and that of the same content anywhere,
/// unless another source has it still.
pub(crate) fn erase(connection: &Connection, source: &str, hash: &ContentHash) -> rusqlite::Result<()> {
    let mut hashes: Vec<String> = connection
        .prepare_cached("SELECT DISTINCT hash FROM past_sources WHERE source = ?1")?
        .query_map([source], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    hashes.push(hash.as_str().to_owned());
    connection
        .prepare_cached("UPDATE past_sources SET erased = 1, metadata = '{}' WHERE source = ?1")?
        .execute([source])?;
    let mut forget = connection.prepare_cached(
        "UPDATE past_sources SET erased = 1, metadata = '{}'
         WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM documents WHERE hash = ?1)",
    )?;
    let mut remove = connection.prepare_cached("DELETE FROM past_documents WHERE hash = ?1")?;
    for hash in &hashes {
        forget.execute([hash])?;
        remove.execute([hash])?;
    }
    Ok(())
}

/// A content of the history, as it goes back in.
struct Former {
    title: String,
    text: String,
    outline: String,
    spans: Vec<(u32, usize, usize)>,
    vectors: Vec<u8>,
}

fn former(connection: &Connection, hash: &ContentHash) -> rusqlite::Result<Option<Former>> {
    connection
        .prepare_cached("SELECT title, text, outline, chunks, vectors FROM past_documents WHERE hash = ?1")?
        .query_row([hash.as_str()], |row| {
            let spans: String = row.get(3)?;
            let spans = serde_json::from_str(&spans).map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(3, rusqlite::types::Type::Text, error.into())
            })?;
            Ok(Former { title: row.get(0)?, text: row.get(1)?, outline: row.get(2)?, spans, vectors: row.get(4)? })
        })
        .optional()
}

impl Snapshot {
    /// What is different in generation `to` from generation `from`, in the order of sources; as far as it may be seen.
    ///
    /// # Errors
    /// If there is no such generation, its history was let go of, or the database fails.
    pub fn diff(&self, from: i64, to: i64) -> Result<Vec<Change>, StoreError> {
        let folder = self.folder();
        let connection = self.connection();
        for generation in [from, to] {
            check(&connection, folder, generation)?;
        }
        let condition = self.view().condition(now());
        let mut before = states(&connection, from, &condition).at(folder)?;
        let after = states(&connection, to, &condition).at(folder)?;
        let mut changes: Vec<Change> = Vec::new();
        for (source, after) in after {
            let change = |kind, before: Option<&State>| Change {
                source: source.clone(),
                kind,
                before: before.map(|state| state.hash.clone()),
                after: Some(after.hash.clone()),
            };
            match before.remove(&source) {
                None => changes.push(change(ChangeKind::Added, None)),
                Some(was) if was.hash != after.hash => changes.push(change(ChangeKind::Replaced, Some(&was))),
                Some(was) if was.particulars != after.particulars && !was.erased && !after.erased => {
                    changes.push(change(ChangeKind::Described, Some(&was)));
                }
                Some(_) => {}
            }
        }
        let gone = before.into_iter().map(|(source, was)| Change {
            source,
            kind: ChangeKind::Removed,
            before: Some(was.hash),
            after: None,
        });
        changes.extend(gone);
        changes.sort_by(|a, b| a.source.cmp(&b.source));
        Ok(changes)
    }

    /// The oldest generation that can be gone back to.
    ///
    /// # Errors
    /// If the database fails.
    pub fn history_begins(&self) -> Result<i64, StoreError> {
        begins(&self.connection()).at(self.folder())
    }
}

impl Batch<'_> {
    /// Makes the sources those of `generation` again. What was erased can't come back: that is an error, unless
    /// `without_erased` says to go on without.
    ///
    /// # Errors
    /// If there is no such generation, its history was let go of, something of it was erased, or the database fails.
    pub fn roll_back_to(&mut self, generation: i64, without_erased: bool) -> Result<Rollback, StoreError> {
        let folder = self.folder;
        check(&self.transaction, folder, generation)?;
        if generation >= self.generation.id {
            return Err(StoreError::NoSuchGeneration { path: folder.to_owned(), generation });
        }
        let wanted = states(&self.transaction, generation, &everything()).at(folder)?;
        let present = states(&self.transaction, self.generation.id, &everything()).at(folder)?;
        let mut rollback = Rollback { generation: self.generation.id, ..Rollback::default() };
        let mut restored: Vec<(&String, &State)> = Vec::new();
        for (source, state) in &wanted {
            let same = present.get(source).is_some_and(|now| now.hash == state.hash);
            let content = same || {
                let live = document_of(&self.transaction, &state.hash).at(folder)?.is_some();
                !state.erased && (live || former(&self.transaction, &state.hash).at(folder)?.is_some())
            };
            if content { restored.push((source, state)) } else { rollback.erased.push(source.clone()) }
        }
        if !rollback.erased.is_empty() && !without_erased {
            return Err(StoreError::Erased { path: folder.to_owned(), generation, erased: rollback.erased });
        }
        for (source, state) in restored {
            let row = source_row(&self.transaction, source).at(folder)?;
            match &row {
                Some(row) if row.hash == state.hash => {
                    if row.particulars != state.particulars && !state.erased {
                        self.describe(source, row, &state.particulars)?;
                        rollback.described += 1;
                    }
                    continue;
                }
                Some(row) => {
                    self.unlink(source, row, Action::Unlink, Removal::Restorable)?;
                    rollback.replaced += 1;
                }
                None => rollback.added += 1,
            }
            let (document, action) = match document_of(&self.transaction, &state.hash).at(folder)? {
                Some(document) => (document, Action::Alias),
                None => (self.restore(&state.hash)?, Action::Add),
            };
            self.link(source, document, &state.hash, &state.particulars, action)?;
        }
        for source in present.keys().filter(|source| !wanted.contains_key(*source)) {
            if let Some(row) = source_row(&self.transaction, source).at(folder)? {
                self.unlink(source, &row, Action::Unlink, Removal::Restorable)?;
                rollback.removed += 1;
            }
        }
        Ok(rollback)
    }

    /// Brings a content of the history back as a new document.
    fn restore(&mut self, hash: &ContentHash) -> Result<i64, StoreError> {
        let damaged = |what: &str| StoreError::Damaged {
            path: self.folder.to_owned(),
            what: format!("the former document {hash} {what}"),
        };
        let Some(former) = former(&self.transaction, hash).at(self.folder)? else {
            return Err(damaged("is not in the history"));
        };
        let Former { title, text, outline, spans, vectors } = former;
        if ContentHash::of(&title, &text) != *hash {
            return Err(damaged("is not what its hash says"));
        }
        let bytes = vectors.len() / spans.len().max(1);
        if bytes * spans.len() != vectors.len() || spans.iter().any(|&(_, start, end)| text.get(start..end).is_none()) {
            return Err(damaged("does not fit its parts"));
        }
        let vectors = vectors.chunks_exact(bytes.max(1)).map(<[u8]>::to_vec);
        let chunks =
            spans.into_iter().zip(vectors).map(|((ordinal, start, end), vector)| (ordinal, start, end, vector));
        self.insert_content(hash, &title, &text, &outline, chunks)
    }
}

impl Writer {
    /// Lets go of the history before `begins` (of all of it, if `None`), gives the space back, and takes what was removed out
    /// of the search indexes. Afterwards no file of the knowledge base holds a word of what is not there.
    ///
    /// # Errors
    /// If there is no such generation, or the database fails. Where a reader holds an older state, the space is given back
    /// by the next compaction.
    pub fn compact(
        &mut self,
        begins: Option<i64>,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Compaction, StoreError> {
        let folder = self.place.folder.clone();
        let newest = newest_generation(&self.connection).at(&folder)?.id;
        let from = begins.unwrap_or(newest);
        check(&self.connection, &folder, from)?;
        let bytes_before = self.bytes().at(&folder)?;
        let mut batch = self.begin("compact")?;
        let documents = batch.forget_before(from)?;
        let Generation { id, .. } = batch.commit()?;
        self.reclaim(progress)?;
        let bytes_after = self.bytes().at(&folder)?;
        let from = if from == newest { id } else { from };
        Ok(Compaction { generation: id, history_begins: from, documents, bytes_before, bytes_after })
    }

    fn bytes(&self) -> rusqlite::Result<u64> {
        let query = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        self.connection.query_row(query, [], |row| row.get(0))
    }

    /// Gives the space of what was removed back to the system, and builds the search indexes anew in which there is any of
    /// it. The history stays.
    ///
    /// # Errors
    /// If the database fails, or an index can't be built.
    pub fn reclaim(&mut self, progress: &mut dyn FnMut(usize, usize)) -> Result<(), StoreError> {
        let folder = self.place.folder.clone();
        self.shrink().at(&folder)?;
        self.rebuild_where_removed(progress).map(drop)
    }

    /// Gives the space of what was removed back to the system.
    fn shrink(&mut self) -> rusqlite::Result<()> {
        let (free, all): (i64, i64) = self.connection.query_row(
            "SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        if free * 5 > all {
            self.connection.execute_batch("VACUUM")?;
        }
        // The log still has the pages as they were. Readers at work may forbid this; then the next to close does it.
        self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    }
}

impl Batch<'_> {
    /// Lets go of everything that held only before generation `begins`; returns how many contents went.
    fn forget_before(&mut self, begins: i64) -> Result<u64, StoreError> {
        // Letting go of all of it makes this generation the first that can be gone back to.
        let newest = begins >= self.generation.id - 1;
        let begins = if newest { self.generation.id } else { begins };
        let forget = |connection: &Connection| -> rusqlite::Result<u64> {
            connection.execute("DELETE FROM past_sources WHERE to_generation <= ?1", [begins])?;
            let documents = connection.execute(
                "DELETE FROM past_documents WHERE hash NOT IN (SELECT hash FROM past_sources WHERE erased = 0)",
                [],
            )?;
            connection
                .execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)", (BEGINS, begins.to_string()))?;
            Ok(documents as u64)
        };
        let documents = forget(&self.transaction).at(self.folder)?;
        self.touch();
        Ok(documents)
    }
}
