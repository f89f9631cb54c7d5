//! Whether a knowledge base is what it was: every hash computed again, every invariant looked at.
//!
//! What SQLite checks of itself comes first, then what this crate promises: texts have their hashes, chunks lie in their
//! texts, every chunk has a vector of unit length, counts add up, the audit trail knows every source, nothing that was removed is there,
//! and the caches are the files that were written. A check that can't be made is a finding like any other.

use std::collections::HashMap;

use anchorite_core::ContentHash;
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use crate::audit::AuditEntry;
use crate::caches::{Kind, Record, Refresh};
use crate::error::{At, StoreError};
use crate::snapshot::Snapshot;
use crate::writer::Writer;

/// Findings of one kind that are told at most; a file with a torn middle has thousands.
const MOST: usize = 100;

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What kind of thing is wrong.
    pub kind: FindingKind,
    /// A line that names it.
    pub what: String,
}

/// What kind of thing is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// SQLite finds its own file damaged, or a table can't be read.
    Database,
    /// A document's text, title or hash.
    Document,
    /// A source, or its metadata.
    Source,
    /// A chunk's place in its text.
    Chunk,
    /// A vector.
    Vector,
    /// Something that was removed is there, or the counts of a generation are not right.
    History,
    /// The audit trail.
    Audit,
    /// A search index. It is built again from the database by [`Writer::repair_caches`]; until then it is not used.
    Cache,
}

impl FindingKind {
    /// True if nothing is lost by it, and it can be mended here.
    #[must_use]
    pub fn can_be_repaired(self) -> bool {
        self == Self::Cache
    }
}

/// What a check saw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// The generation that was looked at.
    pub generation: i64,
    /// Documents whose hash was computed.
    pub documents: u64,
    /// Chunks and vectors looked at.
    pub chunks: u64,
    /// Search indexes whose hash was computed.
    pub caches: u64,
    /// What is wrong; nothing, if all is well.
    pub findings: Vec<Finding>,
    /// Further findings that are not told one by one.
    pub more: u64,
}

impl Verification {
    fn find(&mut self, kind: FindingKind, what: String) {
        if self.findings.iter().filter(|finding| finding.kind == kind).count() < MOST {
            self.findings.push(Finding { kind, what });
        } else {
            self.more += 1;
        }
    }

    /// Runs a check; that it could not be made is a finding.
    fn check(&mut self, what: &str, check: impl FnOnce(&mut Self) -> rusqlite::Result<()>) {
        if let Err(error) = check(self) {
            self.find(FindingKind::Database, format!("{what} can't be read: {error}"));
        }
    }
}

impl Snapshot {
    /// Looks at everything in this generation: all texts, all vectors, all files. It takes as long as reading them.
    #[must_use]
    pub fn verify(&self) -> Verification {
        let mut seen = Verification { generation: self.generation().id, ..Verification::default() };
        let connection = self.connection();
        seen.check("the database", |seen| database(&connection, seen));
        seen.check("the documents", |seen| documents(&connection, seen));
        seen.check("the sources", |seen| sources(&connection, seen));
        seen.check("the chunks", |seen| chunks(&connection, seen));
        seen.check("the vectors", |seen| vectors(&connection, self.dim(), seen));
        seen.check("the history", |seen| history(&connection, self.generation().id, seen));
        seen.check("what was", |seen| past(&connection, seen));
        seen.check("the audit trail", |seen| audit(&connection, seen));
        for kind in [Kind::Ann, Kind::Bm25] {
            seen.check("the records of the search indexes", |seen| self.cache(&connection, kind, seen));
        }
        seen
    }

    fn cache(&self, connection: &Connection, kind: Kind, seen: &mut Verification) -> rusqlite::Result<()> {
        let Some(record) = Record::read(connection, kind)? else { return Ok(()) };
        seen.caches += 1;
        let name = kind.name();
        let last: i64 = connection.query_row("SELECT coalesce(max(id), 0) FROM chunks", [], |row| row.get(0))?;
        let given: Option<i64> = connection
            .query_row("SELECT seq FROM sqlite_sequence WHERE name = 'chunks'", [], |row| row.get(0))
            .optional()?;
        if record.generation > self.generation().id || record.last_chunk > given.unwrap_or(0).max(last) {
            seen.find(FindingKind::Cache, format!("the index {name} is said to know what is not there yet"));
        }
        let opened = match kind {
            Kind::Ann => record.read_ann(&self.shared.place, self.dim()).map(|_| ()),
            Kind::Bm25 => record.read_bm25(&self.shared.place).map(|_| ()),
        };
        if let Err(problem) = opened {
            seen.find(FindingKind::Cache, format!("the index {name} of generation {}: {problem}", record.generation));
        }
        Ok(())
    }
}

impl Writer {
    /// Throws away the search indexes in which [`Snapshot::verify`] finds something, and builds them again.
    ///
    /// # Errors
    /// As [`Writer::refresh_caches`].
    pub fn repair_caches(&mut self, progress: &mut dyn FnMut(usize, usize)) -> Result<Refresh, StoreError> {
        let folder = self.place.folder.clone();
        let snapshot = Snapshot::open(&self.place)?;
        for kind in [Kind::Ann, Kind::Bm25] {
            let mut seen = Verification::default();
            seen.check("the record", |seen| snapshot.cache(&snapshot.connection(), kind, seen));
            if !seen.findings.is_empty() {
                self.connection.execute("DELETE FROM caches WHERE kind = ?1", [kind.name()]).at(&folder)?;
            }
        }
        drop(snapshot);
        self.refresh_caches(progress)
    }
}

/// SQLite's own check of every page, and of every reference between tables.
fn database(connection: &Connection, seen: &mut Verification) -> rusqlite::Result<()> {
    let mut check = connection.prepare("PRAGMA integrity_check")?;
    for line in check.query_map([], |row| row.get::<_, String>(0))? {
        let line = line?;
        if line != "ok" {
            seen.find(FindingKind::Database, line.replace('\n', "; "));
        }
    }
    let mut check = connection.prepare("PRAGMA foreign_key_check")?;
    let rows = check
        .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, String>(2)?)))?;
    for row in rows {
        let (table, id, parent) = row?;
        let id = id.map(|id| format!(" {id}")).unwrap_or_default();
        seen.find(
            FindingKind::Database,
            format!("the entry{id} of {table} refers to an entry of {parent} that is not there"),
        );
    }
    Ok(())
}

fn documents(connection: &Connection, seen: &mut Verification) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(
        "SELECT d.id, d.hash, d.title, d.text, (SELECT source FROM sources s WHERE s.document = d.id ORDER BY s.id LIMIT 1)
         FROM documents d ORDER BY d.id",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (id, hash): (i64, String) = (row.get(0)?, row.get(1)?);
        let (title, text, source): (String, String, Option<String>) = (row.get(2)?, row.get(3)?, row.get(4)?);
        seen.documents += 1;
        let name = source.as_deref().unwrap_or("no source");
        if ContentHash::of(&title, &text).as_str() != hash {
            seen.find(
                FindingKind::Document,
                format!("document {id} ({name}) is not what its hash says: ingest it again"),
            );
        }
        if source.is_none() {
            seen.find(FindingKind::Document, format!("document {id} (\"{title}\") comes from nowhere"));
        }
    }
    Ok(())
}

fn sources(connection: &Connection, seen: &mut Verification) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("SELECT source, metadata FROM sources ORDER BY id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (source, metadata): (String, String) = (row.get(0)?, row.get(1)?);
        if serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&metadata).is_err() {
            seen.find(FindingKind::Source, format!("the metadata of {source} is no JSON object"));
        }
    }
    Ok(())
}

fn chunks(connection: &Connection, seen: &mut Verification) -> rusqlite::Result<()> {
    let mut texts = connection.prepare("SELECT id, text FROM documents ORDER BY id")?;
    let mut statement = connection
        .prepare("SELECT id, ordinal, start_byte, end_byte FROM chunks WHERE document = ?1 ORDER BY ordinal, id")?;
    let mut documents = texts.query([])?;
    while let Some(row) = documents.next()? {
        let (document, text): (i64, String) = (row.get(0)?, row.get(1)?);
        let rows = statement.query_map([document], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?, row.get::<_, i64>(3)?))
        })?;
        let mut expected = 0;
        for row in rows {
            let (chunk, ordinal, start, end) = row?;
            let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
            let part = range.and_then(|(start, end)| text.get(start..end));
            if part.is_none_or(|part| part.is_empty() && !text.is_empty()) {
                seen.find(
                    FindingKind::Chunk,
                    format!("chunk {chunk} ({start}..{end}) is no part of document {document}"),
                );
            }
            if ordinal != expected {
                seen.find(
                    FindingKind::Chunk,
                    format!("chunk {chunk} of document {document} is number {ordinal}, not {expected}"),
                );
            }
            expected = ordinal + 1;
        }
        if expected == 0 && !text.trim().is_empty() {
            seen.find(FindingKind::Chunk, format!("document {document} has text and no chunk: nothing of it is found"));
        }
    }
    Ok(())
}

fn vectors(connection: &Connection, dim: usize, seen: &mut Verification) -> rusqlite::Result<()> {
    let mut statement = connection
        .prepare("SELECT c.id, v.vector FROM chunks c LEFT JOIN vectors v ON v.chunk = c.id ORDER BY c.id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        seen.chunks += 1;
        let chunk: i64 = row.get(0)?;
        let problem = match row.get_ref(1)?.as_blob() {
            Err(_) => Some("is not there".to_owned()),
            Ok(bytes) if bytes.len() != dim * size_of::<f32>() => Some(format!("has {} bytes", bytes.len())),
            Ok(bytes) => {
                let (numbers, _) = bytes.as_chunks::<4>();
                let square: f64 = numbers.iter().map(|number| f64::from(f32::from_le_bytes(*number)).powi(2)).sum();
                let unit = square.is_finite() && (square - 1.0).abs() < 1e-3;
                (!unit).then(|| format!("has the length {}", square.sqrt()))
            }
        };
        if let Some(problem) = problem {
            seen.find(FindingKind::Vector, format!("the vector of chunk {chunk} {problem}"));
        }
    }
    Ok(())
}

fn history(connection: &Connection, generation: i64, seen: &mut Verification) -> rusqlite::Result<()> {
    let (added, removed): (i64, i64) = connection.query_row(
        "SELECT coalesce(sum(documents_added - documents_removed), 0), coalesce(sum(chunks_added - chunks_removed), 0)
         FROM generations",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    for (table, sum) in [("documents", added), ("chunks", removed)] {
        let count: i64 = connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
        if count != sum {
            seen.find(
                FindingKind::History,
                format!("there are {count} {table}, and {sum} by what all generations did"),
            );
        }
        let most: i64 =
            connection.query_row(&format!("SELECT coalesce(max(id), 0) FROM {table}"), [], |row| row.get(0))?;
        let given: Option<i64> = connection
            .query_row("SELECT seq FROM sqlite_sequence WHERE name = ?1", [table], |row| row.get(0))
            .optional()?;
        if given.unwrap_or(0) < most {
            seen.find(FindingKind::History, format!("numbers of {table} could be given a second time"));
        }
    }
    let missing: i64 =
        connection.query_row("SELECT coalesce(max(id), 0) - count(*) FROM generations", [], |row| row.get(0))?;
    if missing != 0 {
        seen.find(FindingKind::History, format!("{missing} generations are not told of any more"));
    }
    let mut statement = connection.prepare("SELECT t.chunk FROM tombstones t JOIN chunks c ON c.id = t.chunk")?;
    for chunk in statement.query_map([], |row| row.get::<_, i64>(0))? {
        seen.find(FindingKind::History, format!("chunk {} was removed and is there", chunk?));
    }
    let mut statement = connection.prepare("SELECT chunk FROM tombstones WHERE generation > ?1 OR generation < 1")?;
    for chunk in statement.query_map(params![generation], |row| row.get::<_, i64>(0))? {
        seen.find(FindingKind::History, format!("chunk {} was removed by a generation that there is not", chunk?));
    }
    Ok(())
}

/// What was: former contents have their hashes, nothing erased is there, and whatever can be gone back to is.
fn past(connection: &Connection, seen: &mut Verification) -> rusqlite::Result<()> {
    let mut statement =
        connection.prepare("SELECT hash, title, text, chunks, octet_length(vectors) FROM past_documents")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (hash, title, text): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if ContentHash::of(&title, &text).as_str() != hash {
            seen.find(FindingKind::History, format!("the former document {hash} is not what its hash says"));
        }
        let (spans, bytes): (String, usize) = (row.get(3)?, row.get(4)?);
        let spans: Option<Vec<(u32, usize, usize)>> = serde_json::from_str(&spans).ok();
        let fits = spans.is_some_and(|spans| {
            bytes % spans.len().max(1) == 0 && spans.iter().all(|&(_, start, end)| text.get(start..end).is_some())
        });
        if !fits {
            seen.find(FindingKind::History, format!("the former document {hash} does not fit its parts"));
        }
    }
    let queries = [
        (
            "SELECT p.hash FROM past_documents p WHERE NOT EXISTS
             (SELECT 1 FROM past_sources s WHERE s.hash = p.hash AND s.erased = 0)",
            "of which nobody knows is kept",
        ),
        (
            "SELECT DISTINCT s.hash FROM past_sources s WHERE s.erased = 0
             AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.hash = s.hash)
             AND NOT EXISTS (SELECT 1 FROM past_documents p WHERE p.hash = s.hash)",
            "that could be gone back to is missing",
        ),
        ("SELECT hash FROM past_sources WHERE from_generation >= to_generation", "is said to have gone before it came"),
    ];
    for (query, what) in queries {
        let mut statement = connection.prepare(query)?;
        for hash in statement.query_map([], |row| row.get::<_, String>(0))? {
            seen.find(FindingKind::History, format!("a former document {what}: {}", hash?));
        }
    }
    Ok(())
}

/// Each line's hash is that of the line and the one before; the newest line of each source says that it is there, with the
/// content that it has.
fn audit(connection: &Connection, seen: &mut Verification) -> rusqlite::Result<()> {
    let mut newest: HashMap<String, (bool, i64, ContentHash)> = HashMap::new();
    let mut statement =
        connection.prepare(&format!("SELECT {}, chain, id FROM audit ORDER BY id", AuditEntry::COLUMNS))?;
    let mut rows = statement.query([])?;
    let mut before = String::new();
    while let Some(row) = rows.next()? {
        let (entry, chain, id) = (AuditEntry::from_row(row)?, row.get::<_, String>(7)?, row.get::<_, i64>(8)?);
        if entry.chained(&before) != chain {
            seen.find(
                FindingKind::Audit,
                format!("line {id} of the audit trail, or the one before, is not what was written"),
            );
        }
        before = chain;
        // Removing a document follows the taking away of its last source, under that source's name.
        newest.insert(entry.source, (entry.action.leaves_a_source(), entry.document, entry.hash));
    }
    let mut statement = connection
        .prepare("SELECT s.source, d.id, d.hash FROM sources s JOIN documents d ON d.id = s.document ORDER BY s.id")?;
    let mut rows = statement.query([])?;
    let mut live = 0;
    while let Some(row) = rows.next()? {
        live += 1;
        let (source, document, hash): (String, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        match newest.get(&source) {
            Some((true, known, content)) if *known == document && content.as_str() == hash => {}
            Some(_) => seen.find(FindingKind::Audit, format!("the audit trail tells otherwise of {source}")),
            None => seen.find(FindingKind::Audit, format!("the audit trail does not know {source}")),
        }
    }
    let told = newest.values().filter(|(is_there, ..)| *is_there).count();
    if told > live {
        seen.find(FindingKind::Audit, format!("{} sources are not there, and nobody took them away", told - live));
    }
    Ok(())
}
