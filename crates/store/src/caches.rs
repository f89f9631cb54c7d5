//! When caches are built, extended, kept or thrown away, and how what is on disk is matched with what the database records.
//!
//! Invariant: a cache is used only if its bytes have the recorded hash. Its record tells which chunks it can know (up to
//! `last_chunk`) and since which generation removals must be looked up in `tombstones`. Everything else is searched from
//! the database, so a cache that is missing, stale, foreign or damaged costs time and never a result.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};
use tantivy::TantivyError;

use crate::ann::{self, GraphBuilder};
use crate::ann_file;
use crate::ann_graph::Graph;
use crate::bm25::{self, DiskBuilder, WordIndex};
use crate::error::{At, StoreError};
use crate::records::now;
use crate::self_audit;
use crate::snapshot::newest_generation;
use crate::storage::{Storage, folder_stamp, publish_dir};
use crate::writer::{KnowledgeBase, Writer};
use crate::{texts, vectors};

/// Vectors that are read at once for the graph.
const BATCH: usize = 8192;

/// When caches are worth their time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheSettings {
    /// Below this many chunks there are no caches: exact search is as fast.
    pub exact_below: usize,
    /// A cache may be behind by this many chunks …
    pub newer_chunks: usize,
    /// … or by this fraction of its entries, whichever is more.
    pub newer_fraction: f64,
    /// A cache is built anew once this fraction of its entries was removed.
    pub removed_fraction: f64,
    /// Exact search holds up to this many vectors in memory, and reads more from the database each time.
    pub vectors_in_memory: usize,
    /// Caches from this size in bytes on are mapped rather than read, where this machine wrote them and nobody changed them
    /// since.
    pub mapped_from: u64,
    /// Threads that build a cache; 0 takes all processors.
    pub threads: usize,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self {
            exact_below: 2_000,
            newer_chunks: 2_000,
            newer_fraction: 0.1,
            removed_fraction: 0.2,
            vectors_in_memory: 100_000,
            mapped_from: 32 << 20,
            threads: 0,
        }
    }
}

/// What was done with a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refreshed {
    /// The knowledge base is small and needs none.
    NotNeeded,
    /// It is whole and near enough.
    Kept,
    /// New chunks were added to it.
    Extended,
    /// It was built from the database.
    Built,
}

/// What [`Writer::refresh_caches`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refresh {
    /// With the index of vectors.
    pub ann: Refreshed,
    /// With the index of words.
    pub bm25: Refreshed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ann,
    Bm25,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ann => "ann",
            Self::Bm25 => "bm25",
        }
    }

    fn parent(self, place: &KnowledgeBase) -> PathBuf {
        place.folder.join(self.name())
    }
}

/// What the database says of a cache.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) generation: i64,
    /// Removals in later generations concern the entries.
    pub(crate) tombstones_from: i64,
    /// Chunks after this one are not in it.
    pub(crate) last_chunk: i64,
    pub(crate) entries: usize,
    sha256: String,
    /// Of the files as they were written; empty where the system tells none.
    stamp: String,
    /// Nodes of the graph that no way leads to.
    strays: Vec<u32>,
    /// Nodes that a search of the graph keeps in view.
    expansion: usize,
    /// Share of the nearest that sampled searches of the graph found when it was built.
    pub(crate) recall: Option<f64>,
}

impl Record {
    pub(crate) fn read(connection: &Connection, kind: Kind) -> rusqlite::Result<Option<Self>> {
        connection
            .prepare_cached(
                "SELECT generation, tombstones_from, last_chunk, entries, sha256, stamp, strays, expansion, recall
                 FROM caches WHERE kind = ?1",
            )?
            .query_row([kind.name()], |row| {
                Ok(Self {
                    generation: row.get(0)?,
                    tombstones_from: row.get(1)?,
                    last_chunk: row.get(2)?,
                    entries: row.get(3)?,
                    sha256: row.get(4)?,
                    stamp: row.get(5)?,
                    strays: serde_json::from_str(&row.get::<_, String>(6)?).unwrap_or_default(),
                    expansion: row.get(7)?,
                    recall: row.get(8)?,
                })
            })
            .optional()
    }

    fn folder(&self, place: &KnowledgeBase, kind: Kind) -> PathBuf {
        kind.parent(place).join(self.generation.to_string())
    }

    /// How many of its entries the knowledge base no longer has.
    pub(crate) fn removed_entries(&self, connection: &Connection) -> rusqlite::Result<usize> {
        let live: usize = connection
            .prepare_cached("SELECT count(*) FROM chunks WHERE id <= ?1")?
            .query_row([self.last_chunk], |row| row.get(0))?;
        Ok(self.entries.saturating_sub(live))
    }

    /// Chunks that must not be returned from it. An extended cache may never have held some of them.
    pub(crate) fn removed(&self, connection: &Connection) -> rusqlite::Result<HashSet<i64>> {
        connection
            .prepare_cached("SELECT chunk FROM tombstones WHERE chunk <= ?1 AND generation > ?2")?
            .query_map([self.last_chunk, self.tombstones_from], |row| row.get(0))?
            .collect()
    }

    /// Chunks that came after it.
    pub(crate) fn newer(&self, connection: &Connection) -> rusqlite::Result<u64> {
        connection
            .prepare_cached("SELECT count(*) FROM chunks WHERE id > ?1")?
            .query_row([self.last_chunk], |row| row.get(0))
    }

    /// True if the files are those that this machine wrote, untouched since, and large enough to be mapped.
    fn may_be_mapped(&self, place: &KnowledgeBase, kind: Kind) -> bool {
        let folder = self.folder(place, kind);
        let large = || {
            let names = place.storage.list(&folder).unwrap_or_default();
            let size = |name| std::fs::metadata(folder.join(name)).map_or(0, |metadata| metadata.len());
            names.iter().map(size).sum::<u64>() >= place.settings.mapped_from
        };
        !self.stamp.is_empty() && folder_stamp(&*place.storage, &folder).as_ref() == Some(&self.stamp) && large()
    }

    fn expected_ann(&self, dim: usize) -> ann_file::Expected {
        ann::expected(dim, self.entries, self.last_chunk)
    }

    fn ann_bytes(&self, place: &KnowledgeBase) -> Result<Vec<u8>, String> {
        ann::read_verified(&*place.storage, &self.folder(place, Kind::Ann), &self.sha256)
    }

    /// For searching.
    pub(crate) fn load_ann(&self, place: &KnowledgeBase, dim: usize) -> Result<Graph, String> {
        let mapped = self
            .may_be_mapped(place, Kind::Ann)
            .then(|| Graph::map(&self.folder(place, Kind::Ann), ann::FILE, &self.expected_ann(dim)));
        let mut graph = match mapped {
            Some(Ok(graph)) => graph,
            _ => self.read_ann(place, dim)?,
        };
        graph.set_breadth(self.expansion);
        graph.set_strays(&self.strays);
        Ok(graph)
    }

    /// For checking.
    pub(crate) fn read_ann(&self, place: &KnowledgeBase, dim: usize) -> Result<Graph, String> {
        Graph::from_bytes(self.ann_bytes(place)?, &self.expected_ann(dim))
    }

    /// For adding to it.
    fn grow_ann(&self, place: &KnowledgeBase, dim: usize) -> Result<GraphBuilder, String> {
        GraphBuilder::from_bytes(&self.ann_bytes(place)?, &self.expected_ann(dim))
    }

    /// For searching.
    pub(crate) fn load_bm25(&self, place: &KnowledgeBase) -> Result<WordIndex, String> {
        let mapped = self
            .may_be_mapped(place, Kind::Bm25)
            .then(|| bm25::map(&self.folder(place, Kind::Bm25)).and_then(|files| WordIndex::open(files, self.entries)));
        match mapped {
            Some(Ok(index)) => Ok(index),
            _ => self.read_bm25(place),
        }
    }

    /// For checking.
    pub(crate) fn read_bm25(&self, place: &KnowledgeBase) -> Result<WordIndex, String> {
        let files = bm25::read_verified(&*place.storage, &self.folder(place, Kind::Bm25), &self.sha256)?;
        WordIndex::open(files, self.entries)
    }

    fn is_whole(&self, place: &KnowledgeBase, kind: Kind, dim: usize) -> bool {
        let folder = self.folder(place, kind);
        if self.may_be_mapped(place, kind) {
            return true;
        }
        // Not the hash alone: what is found whole here may be mapped from now on, and is then not walked again.
        let verified = match kind {
            Kind::Ann => self.read_ann(place, dim).map(|_| ()),
            Kind::Bm25 => self.read_bm25(place).map(|_| ()),
        };
        if let Err(reason) = &verified {
            tracing::warn!(folder = %folder.display(), reason, "a search index is damaged and will be built again");
        }
        verified.is_ok()
    }
}

enum Plan {
    Drop,
    Keep,
    Extend(Box<GraphBuilder>, Record),
    Build,
}

/// State of the chunks when a refresh begins; as there is one writer, they stay so.
struct Present {
    generation: i64,
    chunks: usize,
    last_chunk: i64,
}

impl Present {
    fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let generation = newest_generation(connection)?.id;
        connection.query_row("SELECT count(*), coalesce(max(id), 0) FROM chunks", [], |row| {
            Ok(Self { generation, chunks: row.get(0)?, last_chunk: row.get(1)? })
        })
    }
}

pub(crate) fn refresh(writer: &mut Writer, progress: &mut dyn FnMut(usize, usize)) -> Result<Refresh, StoreError> {
    let present = Present::read(&writer.connection).at(&writer.place.folder)?;
    let ann = plan(writer, Kind::Ann, &present)?;
    let bm25 = plan(writer, Kind::Bm25, &present)?;
    let work = |plan: &Plan| match plan {
        Plan::Drop | Plan::Keep => 0,
        // At most as many as there are; entries that were removed since only make the guess too small.
        Plan::Extend(_, record) => present.chunks.saturating_sub(record.entries),
        Plan::Build => present.chunks,
    };
    let (ann_work, total) = (work(&ann), work(&ann) + work(&bm25));
    let ann = apply(writer, Kind::Ann, ann, &present, &mut |done| progress(done.min(ann_work), total))?;
    let bm25 = apply(writer, Kind::Bm25, bm25, &present, &mut |done| progress((ann_work + done).min(total), total))?;
    Ok(Refresh { ann, bm25 })
}

/// Forgets the caches that hold anything of what was removed, so that they are built anew.
pub(crate) fn forget_where_removed(writer: &Writer) -> Result<(), StoreError> {
    let (connection, folder) = (&writer.connection, &writer.place.folder);
    for kind in [Kind::Ann, Kind::Bm25] {
        let Some(record) = Record::read(connection, kind).at(folder)? else { continue };
        if record.removed_entries(connection).at(folder)? > 0 {
            connection.execute("DELETE FROM caches WHERE kind = ?1", [kind.name()]).at(folder)?;
        }
    }
    Ok(())
}

fn plan(writer: &Writer, kind: Kind, present: &Present) -> Result<Plan, StoreError> {
    let (place, connection, settings) = (&writer.place, &writer.connection, &writer.place.settings);
    let folder = &place.folder;
    if present.chunks < settings.exact_below.max(1) {
        return Ok(Plan::Drop);
    }
    let Some(record) = Record::read(connection, kind).at(folder)? else { return Ok(Plan::Build) };
    let removed = record.removed_entries(connection).at(folder)?;
    let newer = record.newer(connection).at(folder)? as f64;
    if removed as f64 > record.entries as f64 * settings.removed_fraction {
        return Ok(Plan::Build);
    }
    let may_be_behind = (settings.newer_chunks as f64).max(record.entries as f64 * settings.newer_fraction);
    if newer <= may_be_behind {
        return Ok(if record.is_whole(place, kind, writer.identity.dim) { Plan::Keep } else { Plan::Build });
    }
    // Words are indexed faster than their index is copied; only the graph of vectors is dear enough to be extended.
    if kind == Kind::Ann
        && let Ok(builder) = record.grow_ann(place, writer.identity.dim)
    {
        return Ok(Plan::Extend(Box::new(builder), record));
    }
    Ok(Plan::Build)
}

fn apply(
    writer: &mut Writer,
    kind: Kind,
    plan: Plan,
    present: &Present,
    progress: &mut dyn FnMut(usize),
) -> Result<Refreshed, StoreError> {
    let place = writer.place.clone();
    let parent = kind.parent(&place);
    let (refreshed, keep) = match plan {
        Plan::Drop => {
            let forget = writer.connection.execute("DELETE FROM caches WHERE kind = ?1", [kind.name()]);
            forget.at(&place.folder)?;
            (Refreshed::NotNeeded, None)
        }
        Plan::Keep => (Refreshed::Kept, restamp(writer, kind)?),
        Plan::Extend(builder, old) => {
            let record = build_ann(writer, &parent, *builder, Some(&old), present, progress)?;
            (Refreshed::Extended, Some(write_record(writer, kind, record)?))
        }
        Plan::Build => {
            let record = match kind {
                Kind::Ann => {
                    let builder = GraphBuilder::new(writer.identity.dim).map_err(|message| failed(&parent, message))?;
                    build_ann(writer, &parent, builder, None, present, progress)?
                }
                Kind::Bm25 => build_bm25(writer, &parent, present, progress)?,
            };
            (Refreshed::Built, Some(write_record(writer, kind, record)?))
        }
    };
    clear_old(&*place.storage, &parent, keep.as_ref());
    Ok(refreshed)
}

/// The record of a cache that was just found whole. Where the folder was copied from elsewhere, its files are this machine's
/// from here on.
fn restamp(writer: &Writer, kind: Kind) -> Result<Option<Record>, StoreError> {
    let (place, connection) = (&writer.place, &writer.connection);
    let Some(mut record) = Record::read(connection, kind).at(&place.folder)? else { return Ok(None) };
    let stamp = folder_stamp(&*place.storage, &record.folder(place, kind)).unwrap_or_default();
    if stamp != record.stamp {
        let write = connection.execute("UPDATE caches SET stamp = ?2 WHERE kind = ?1", (kind.name(), &stamp));
        write.at(&place.folder)?;
        record.stamp = stamp;
    }
    Ok(Some(record))
}

fn failed(path: &Path, message: impl Into<String>) -> StoreError {
    StoreError::Index { path: path.to_owned(), message: message.into() }
}

/// A full disk is told as such, if tantivy passes it on.
fn from_tantivy(path: &Path, error: TantivyError) -> StoreError {
    match error {
        TantivyError::IoError(source) if source.kind() == io::ErrorKind::StorageFull => {
            StoreError::StorageFull { path: path.to_owned() }
        }
        error => failed(path, error.to_string()),
    }
}

/// An empty folder to build in.
fn workplace(storage: &dyn Storage, parent: &Path) -> Result<PathBuf, StoreError> {
    let folder = parent.join("new");
    storage.remove(&folder).at(&folder)?;
    storage.create_dir_all(&folder).at(&folder)?;
    Ok(folder)
}

fn build_ann(
    writer: &Writer,
    parent: &Path,
    builder: GraphBuilder,
    old: Option<&Record>,
    present: &Present,
    progress: &mut dyn FnMut(usize),
) -> Result<Record, StoreError> {
    let (place, storage) = (&writer.place, &*writer.place.storage);
    let after = old.map_or(0, |old| old.last_chunk);
    let to_add: usize = writer
        .connection
        .query_row("SELECT count(*) FROM vectors WHERE chunk > ?1", [after], |row| row.get(0))
        .at(&place.folder)?;
    let threads = match place.settings.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    builder.reserve(to_add, threads).map_err(|message| failed(parent, message))?;
    let mut added = 0;
    let (mut chunks, mut components) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH * writer.identity.dim));
    let mut add = |chunks: &mut Vec<i64>, components: &mut Vec<f32>| {
        builder.add_all(chunks, components, threads).map_err(|message| failed(parent, message))?;
        added += chunks.len();
        progress(added);
        chunks.clear();
        components.clear();
        Ok(())
    };
    vectors::for_each(&writer.connection, &place.folder, writer.identity.dim, after, |chunk, vector| {
        chunks.push(chunk);
        components.extend_from_slice(vector);
        if chunks.len() == BATCH { add(&mut chunks, &mut components) } else { Ok(()) }
    })?;
    add(&mut chunks, &mut components)?;
    let bytes = builder.to_bytes().map_err(|message| failed(parent, message))?;
    drop(builder);
    let folder = workplace(storage, parent)?;
    storage.write(&folder.join(ann::FILE), &bytes).at(parent)?;
    let sha256 = ann::hash(&bytes);
    let entries = old.map_or(0, |old| old.entries) + added;
    let expected = ann::expected(writer.identity.dim, entries, present.last_chunk);
    let mut graph = Graph::from_bytes(bytes, &expected).map_err(|message| failed(parent, message))?;
    let strays = graph.find_strays();
    graph.set_strays(&strays);
    let (expansion, recall) = self_audit::tune(&mut graph);
    let target = parent.join(present.generation.to_string());
    publish_dir(storage, parent, &folder, &target).at(parent)?;
    Ok(Record {
        generation: present.generation,
        tombstones_from: old.map_or(present.generation, |old| old.tombstones_from),
        last_chunk: present.last_chunk,
        entries,
        sha256,
        stamp: folder_stamp(storage, &target).unwrap_or_default(),
        strays,
        expansion,
        recall,
    })
}

fn build_bm25(
    writer: &Writer,
    parent: &Path,
    present: &Present,
    progress: &mut dyn FnMut(usize),
) -> Result<Record, StoreError> {
    let (place, storage) = (&writer.place, &*writer.place.storage);
    let folder = workplace(storage, parent)?;
    let mut builder = DiskBuilder::new(&folder).map_err(|error| from_tantivy(parent, error))?;
    let mut added = 0;
    texts::for_each(&writer.connection, &place.folder, 0, |chunk, title, text| {
        builder.add(chunk, title, text).map_err(|error| from_tantivy(parent, error))?;
        added += 1;
        progress(added);
        Ok(())
    })?;
    builder.finish().map_err(|error| from_tantivy(parent, error))?;
    let sha256 = bm25::seal(storage, &folder).at(parent)?;
    let target = parent.join(present.generation.to_string());
    publish_dir(storage, parent, &folder, &target).at(parent)?;
    Ok(Record {
        generation: present.generation,
        tombstones_from: present.generation,
        last_chunk: present.last_chunk,
        entries: added,
        sha256,
        stamp: folder_stamp(storage, &target).unwrap_or_default(),
        strays: Vec::new(),
        expansion: 0,
        recall: None,
    })
}

/// From here on the new cache is used. Tombstones that no cache needs any more are forgotten.
fn write_record(writer: &mut Writer, kind: Kind, record: Record) -> Result<Record, StoreError> {
    let write = |connection: &mut Connection| -> rusqlite::Result<()> {
        let transaction = connection.transaction()?;
        transaction.execute(
            "INSERT OR REPLACE INTO caches (kind, generation, tombstones_from, last_chunk, entries, sha256, built_at,
                                            stamp, strays, expansion, recall)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            (
                kind.name(),
                record.generation,
                record.tombstones_from,
                record.last_chunk,
                record.entries,
                &record.sha256,
                now(),
                &record.stamp,
                serde_json::to_string(&record.strays).unwrap_or_default(),
                record.expansion,
                record.recall,
            ),
        )?;
        transaction
            .execute("DELETE FROM tombstones WHERE generation <= (SELECT min(tombstones_from) FROM caches)", [])?;
        transaction.commit()
    };
    write(&mut writer.connection).at(&writer.place.folder)?;
    Ok(record)
}

/// Removes caches of other generations. Readers that hold them have them in memory; what can't be removed now (a scanner
/// may hold a file open) is removed the next time.
fn clear_old(storage: &dyn Storage, parent: &Path, keep: Option<&Record>) {
    let keep = keep.map(|record| record.generation.to_string());
    for name in storage.list(parent).unwrap_or_default() {
        if keep.as_deref().is_some_and(|keep| name == keep) {
            continue;
        }
        if let Err(error) = storage.remove(&parent.join(&name)) {
            tracing::debug!(folder = %parent.display(), ?name, %error, "an old search index could not be removed");
        }
    }
}
