//! Searching a snapshot: by meaning, by words, or both.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anchorite_core::{Embedding, Passage, Scores};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use crate::ann_graph::Graph;
use crate::bm25::{self, MemoryBuilder, WordIndex};
use crate::caches::{Kind, Record};
use crate::error::{At, StoreError};
use crate::fusion::{Placed, Scored, score_fusion};
use crate::ranking::{Hit, TopK};
use crate::snapshot::Snapshot;
use crate::vectors::Matrix;
use crate::view::Selection;
use crate::writer::KnowledgeBase;
use crate::{texts, vectors};

/// Which rankings a search uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Words and meaning, fused by score.
    #[default]
    Hybrid,
    /// Meaning: cosine similarity of embeddings.
    Dense,
    /// Words.
    Bm25,
}

/// Up to so many chunks, a selection is compared one by one, in the bytes of the cache, rather than looked for in the graph …
const NARROW: usize = 60_000;

/// … and up to this part of all: a search of the graph would walk past too many that are not wanted.
const NARROW_SHARE: usize = 16;

/// Without a cache, up to so many vectors are fetched by their numbers; of more, all are read in their order.
const FETCHED_ONE_BY_ONE: usize = 2_000;

/// What is needed to search vectors: the cache, if there is a good one, and the rest.
pub(crate) struct Meaning {
    cached: Option<CachedVectors>,
    rest: Rest,
}

struct CachedVectors {
    graph: Graph,
    removed: HashSet<i64>,
    entries: usize,
}

/// Vectors that the cache does not have.
enum Rest {
    Memory(Matrix),
    /// Too many to hold: those after this chunk are read each time.
    Database(i64),
}

/// What is needed to search words: the cache, if there is a good one, and an index in memory of the rest.
pub(crate) struct Words {
    cached: Option<WordIndex>,
    removed: HashSet<i64>,
    rest: Option<WordIndex>,
}

/// The cache's record and content if it is whole, with the removed chunks; a warning and `None` otherwise.
fn load_cache<T>(
    connection: &Connection,
    place: &KnowledgeBase,
    kind: Kind,
    load: impl FnOnce(&Record) -> Result<T, String>,
) -> rusqlite::Result<Option<(Record, T, HashSet<i64>)>> {
    let Some(record) = Record::read(connection, kind)? else { return Ok(None) };
    match load(&record) {
        Ok(loaded) => {
            let removed = record.removed(connection)?;
            Ok(Some((record, loaded, removed)))
        }
        Err(reason) => {
            let folder = place.folder.display();
            tracing::warn!(%folder, cache = kind.name(), reason, "searching without an index; the next ingest builds it");
            Ok(None)
        }
    }
}

impl Meaning {
    fn load(connection: &Connection, place: &KnowledgeBase, dim: usize) -> Result<Self, StoreError> {
        let folder = &place.folder;
        let loaded = load_cache(connection, place, Kind::Ann, |record| record.load_ann(place, dim)).at(folder)?;
        let after = loaded.as_ref().map_or(0, |(record, ..)| record.last_chunk);
        let count: usize =
            connection.query_row("SELECT count(*) FROM chunks WHERE id > ?1", [after], |row| row.get(0)).at(folder)?;
        let rest = if count <= place.settings.vectors_in_memory {
            Rest::Memory(Matrix::read(connection, folder, dim, after)?)
        } else {
            Rest::Database(after)
        };
        let cached = loaded.map(|(record, graph, mut removed)| {
            // A chunk may have come and gone between two extensions without ever being in the graph.
            removed.retain(|&chunk| graph.contains(chunk));
            CachedVectors { graph, removed, entries: record.entries }
        });
        Ok(Self { cached, rest })
    }

    /// Candidates of the cache for the best `k` of `selection`; `None` if exact search must be used instead.
    fn candidates(&self, query: &[f32], k: usize, selection: &Selection) -> Option<Vec<i64>> {
        let Some(cached) = &self.cached else { return Some(Vec::new()) };
        let live = cached.entries.saturating_sub(cached.removed.len());
        let admits = |chunk: i64| !cached.removed.contains(&chunk) && selection.contains(chunk);
        // The index rounds its numbers: some more than `k` are looked at again with exact ones.
        let wanted = k + k / 2 + 16;
        let found = match selection {
            Selection::Only(chunks) if chunks.len() < live && chunks.len() <= NARROW.max(live / NARROW_SHARE) => {
                let chunks: Vec<i64> = chunks.iter().filter(|chunk| !cached.removed.contains(chunk)).collect();
                cached.graph.nearest_of(query, wanted, &chunks)
            }
            _ => {
                let live = if let Selection::Only(chunks) = selection { live.min(chunks.len()) } else { live };
                let wanted = wanted.min(live);
                if wanted * 4 > live {
                    return None;
                }
                let found = cached.graph.search(query, wanted, &admits);
                if found.len() < wanted {
                    return None;
                }
                found
            }
        };
        Some(found)
    }
}

impl Words {
    fn load(connection: &Connection, place: &KnowledgeBase) -> Result<Self, StoreError> {
        let folder = &place.folder;
        let loaded = load_cache(connection, place, Kind::Bm25, |record| record.load_bm25(place)).at(folder)?;
        let after = loaded.as_ref().map_or(0, |(record, ..)| record.last_chunk);
        let failed = |error: tantivy::TantivyError| index_error(folder, &error);
        let mut builder = MemoryBuilder::new().map_err(failed)?;
        let mut any = false;
        texts::for_each(connection, folder, after, |chunk, title, text| {
            any = true;
            builder.add(chunk, title, text).map_err(failed)
        })?;
        let rest = if any { Some(builder.finish().map_err(failed)?) } else { None };
        let (cached, removed) = loaded.map_or((None, HashSet::new()), |(_, index, removed)| (Some(index), removed));
        Ok(Self { cached, removed, rest })
    }
}

fn index_error(folder: &Path, error: &tantivy::TantivyError) -> StoreError {
    StoreError::Index { path: folder.join(Kind::Bm25.name()), message: error.to_string() }
}

/// What `slot` holds; loaded first if it is empty.
pub(crate) fn loaded<T>(
    slot: &Mutex<Option<Arc<T>>>,
    load: impl FnOnce() -> Result<T, StoreError>,
) -> Result<Arc<T>, StoreError> {
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(present) = &*slot {
        return Ok(present.clone());
    }
    let fresh = Arc::new(load()?);
    *slot = Some(fresh.clone());
    Ok(fresh)
}

impl Snapshot {
    /// The `k` chunks nearest to `query` by cosine, best first. Scores are exact; where an index is used, a chunk may be
    /// missed (recall is measured, not guaranteed), and never is a removed one found or a new one overlooked.
    ///
    /// # Errors
    /// [`StoreError::DimensionMismatch`] if the query has another dimension; or if the database fails.
    pub fn dense(&self, query: &Embedding, k: usize) -> Result<Vec<Hit>, StoreError> {
        if query.dim() != self.dim() {
            return Err(StoreError::DimensionMismatch { expected: self.dim(), given: query.dim() });
        }
        let meaning = loaded(&self.shared.meaning, || {
            Meaning::load(&self.connection(), &self.shared.place, self.shared.identity.dim)
        })?;
        let (query, folder) = (query.as_slice(), self.folder());
        let selection = self.selection()?;
        let mut top = TopK::new(k);
        let Some(candidates) = meaning.candidates(query, k, &selection) else {
            self.compare_all(query, &selection, &mut top)?;
            return Ok(top.into_hits());
        };
        vectors::rescore(&self.connection(), folder, query, candidates, &mut top)?;
        match &meaning.rest {
            Rest::Memory(matrix) => matrix.scan(folder, query, &selection, &mut top)?,
            Rest::Database(after) => {
                vectors::scan(&self.connection(), folder, *after, &selection, &mut [(query, &mut top)])?;
            }
        }
        Ok(top.into_hits())
    }

    /// Exact search over the selected vectors in the database.
    fn compare_all(&self, query: &[f32], selection: &Selection, top: &mut TopK) -> Result<(), StoreError> {
        let (connection, folder) = (self.connection(), self.folder());
        match selection {
            Selection::Only(chunks) if chunks.len() <= FETCHED_ONE_BY_ONE => {
                vectors::rescore(&connection, folder, query, chunks.iter(), top)
            }
            _ => vectors::scan(&connection, folder, 0, selection, &mut [(query, top)]),
        }
    }

    /// The same by comparing with every vector: the measure for [`Snapshot::dense`].
    ///
    /// # Errors
    /// As [`Snapshot::dense`].
    pub fn dense_exact(&self, query: &Embedding, k: usize) -> Result<Vec<Hit>, StoreError> {
        if query.dim() != self.dim() {
            return Err(StoreError::DimensionMismatch { expected: self.dim(), given: query.dim() });
        }
        let mut top = TopK::new(k);
        self.compare_all(query.as_slice(), &*self.selection()?, &mut top)?;
        Ok(top.into_hits())
    }

    /// The same for several queries; every vector is read once.
    ///
    /// # Errors
    /// As [`Snapshot::dense`].
    pub fn dense_exact_all(&self, queries: &[&Embedding], k: usize) -> Result<Vec<Vec<Hit>>, StoreError> {
        if let Some(query) = queries.iter().find(|query| query.dim() != self.dim()) {
            return Err(StoreError::DimensionMismatch { expected: self.dim(), given: query.dim() });
        }
        if queries.is_empty() {
            return Ok(Vec::new());
        }
        let mut tops: Vec<TopK> = queries.iter().map(|_| TopK::new(k)).collect();
        let mut asked: Vec<(&[f32], &mut TopK)> =
            queries.iter().zip(&mut tops).map(|(query, top)| (query.as_slice(), top)).collect();
        vectors::scan(&self.connection(), self.folder(), 0, &*self.selection()?, &mut asked)?;
        Ok(tops.into_iter().map(TopK::into_hits).collect())
    }

    /// The place that the nearest of `chunks` has among all that may be found, by comparing with every vector; `None` if none
    /// of them may be.
    ///
    /// # Errors
    /// As [`Snapshot::dense`].
    pub fn exact_place(&self, query: &Embedding, chunks: &[i64]) -> Result<Option<Placed>, StoreError> {
        let selection = self.selection()?;
        let mut best = TopK::new(1);
        let seen = chunks.iter().copied().filter(|&chunk| selection.contains(chunk));
        vectors::rescore(&self.connection(), self.folder(), query.as_slice(), seen, &mut best)?;
        let Some(best) = best.into_hits().pop() else { return Ok(None) };
        let mut rank = 1;
        let (folder, dim) = (self.folder(), self.dim());
        vectors::for_each(&self.connection(), folder, dim, 0, |chunk, vector| {
            if selection.contains(chunk) && vectors::dot(query.as_slice(), vector) > best.score {
                rank += 1;
            }
            Ok(())
        })?;
        Ok(Some(Placed { rank, score: best.score }))
    }

    /// The `k` chunks that match the words of `query` best, by BM25 over title and text. Everything in `query` is plain
    /// words; a query without words finds nothing.
    ///
    /// # Errors
    /// If the database or the index fails.
    pub fn bm25(&self, query: &str, k: usize) -> Result<Vec<Hit>, StoreError> {
        let words = loaded(&self.shared.words, || Words::load(&self.connection(), &self.shared.place))?;
        let indexes: Vec<&WordIndex> = words.cached.iter().chain(&words.rest).collect();
        let selection = self.selection()?;
        let admits = |chunk: i64| !words.removed.contains(&chunk) && selection.contains(chunk);
        bm25::search(&indexes, query, k, &admits).map_err(|error| index_error(self.folder(), &error))
    }

    /// The best `k` passages with their ranks and scores. In [`Mode::Hybrid`] the best `candidates` of each ranking are
    /// fused by [`score_fusion`].
    ///
    /// # Errors
    /// [`StoreError::MissingEmbedding`] if the mode needs one; else as [`Snapshot::dense`] and [`Snapshot::bm25`].
    pub fn search(
        &self,
        query: &str,
        embedding: Option<&Embedding>,
        mode: Mode,
        k: usize,
        candidates: usize,
    ) -> Result<Vec<Passage>, StoreError> {
        let depth = if mode == Mode::Hybrid { candidates.max(k) } else { k };
        let name = if mode == Mode::Hybrid { "hybrid" } else { "dense" };
        let dense = match (mode, embedding) {
            (Mode::Bm25, _) => Vec::new(),
            (_, Some(embedding)) => self.dense(embedding, depth)?,
            (_, None) => return Err(StoreError::MissingEmbedding { mode: name }),
        };
        let words = if mode == Mode::Dense { Vec::new() } else { self.bm25(query, depth)? };
        // BM25 without a word in common is 0; where similarity begins to mean something depends on model and query.
        let lists = [Scored { hits: &words, zero: Some(0.0) }, Scored { hits: &dense, zero: None }];
        let mut fused = score_fusion(&lists);
        fused.truncate(k);
        let connection = self.connection();
        let mut passages = Vec::with_capacity(fused.len());
        for (result, rank) in fused.iter().zip(1..) {
            let Some(passage) = self.passage(&connection, result.chunk)? else { continue };
            let is_fused = mode == Mode::Hybrid;
            let scores = Scores {
                bm25_rank: result.places[0].map(|placed| placed.rank),
                bm25: result.places[0].map(|placed| placed.score),
                dense_rank: result.places[1].map(|placed| placed.rank),
                dense: result.places[1].map(|placed| placed.score),
                fused_rank: is_fused.then_some(rank),
                fused: is_fused.then_some(result.score),
                ..Scores::default()
            };
            passages.push(Passage { scores, ..passage });
        }
        Ok(passages)
    }
}
