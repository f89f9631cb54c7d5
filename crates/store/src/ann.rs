//! The approximate index: a usearch graph over cosine (Malkov and Yashunin 2018, HNSW). It only proposes candidates; their
//! scores come from the database.
//!
//! A vector is a byte per component, compared by our own product of bytes: a quarter of the memory, and of the time that
//! memory costs. Components of a vector of length one lie around 0 with a deviation of 1/√dim; what is beyond
//! [`SPREAD`] deviations is cut off.
//!
//! Entries are only ever added, after reserving room for them: removing and adding again is where the library has lost
//! nodes. Adding from several threads can leave nodes that no link leads to; so can HNSW itself. They are looked for when
//! the file is written ([`crate::ann_file::strays`]), and compared one by one in each search. What was removed from the
//! knowledge base stays in the graph as a bridge, is refused by the predicate of the search, and goes when the index is
//! built anew.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use anchorite_kernels::{Isa, byte_dot, byte_metric};
use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

use crate::ann_file::{self, Expected};
use crate::ranking::{Hit, TopK};
use crate::storage::{FolderHash, Storage};

/// Name of the file in the cache's folder.
pub(crate) const FILE: &str = "index.usearch";
const CONNECTIVITY: usize = 16;
const EXPANSION_ADD: usize = 128;
/// Nodes that a search keeps in view, unless the index's own audit found it too few.
pub(crate) const EXPANSION_SEARCH: usize = 128;
/// Searches that may run at once; more are answered exactly.
const SEARCH_THREADS: usize = 64;
const SCALAR: ScalarKind = ScalarKind::I8;
/// The library's number for [`SCALAR`].
const SCALAR_IN_FILE: u8 = 23;
const SCALAR_BYTES: usize = 1;
/// Deviations from 0 that a byte reaches.
const SPREAD: f32 = 4.5;
/// The first so many entries are added by one thread: while a graph is small, threads that add to it beside each other leave
/// whole groups of nodes behind.
const ALONE: usize = 8_192;
/// Entries that a thread takes at a time.
const AT_ONCE: usize = 64;
/// Fewest vectors that a thread of their own is worth its beginning for.
const SHARE: usize = 4_096;

/// A loaded or growing index. Keys are chunk identifiers.
pub(crate) struct AnnIndex {
    index: Index,
    dim: usize,
}

/// Components as bytes.
fn quantised(vector: &[f32], into: &mut Vec<i8>) {
    let scale = 127.0 * (vector.len() as f32).sqrt() / SPREAD;
    into.clear();
    into.extend(vector.iter().map(|x| (x * scale).round().clamp(-127.0, 127.0) as i8));
}

impl AnnIndex {
    pub(crate) fn new(dim: usize) -> Result<Self, String> {
        let options = IndexOptions {
            dimensions: dim,
            metric: MetricKind::Cos,
            quantization: SCALAR,
            connectivity: CONNECTIVITY,
            expansion_add: EXPANSION_ADD,
            expansion_search: EXPANSION_SEARCH,
            multi: false,
        };
        let mut made = Self { index: Index::new(&options).map_err(|error| error.to_string())?, dim };
        made.compare_bytes();
        Ok(made)
    }

    /// Has the library compare vectors with our product. A loaded file brings the library's own back.
    fn compare_bytes(&mut self) {
        self.index.change_metric::<i8>(byte_metric(Isa::detect(), self.dim));
    }

    /// Makes room for `additional` entries more on `threads` threads; must come before [`AnnIndex::add_all`].
    pub(crate) fn reserve(&self, additional: usize, threads: usize) -> Result<(), String> {
        self.index
            .reserve_capacity_and_threads(self.index.size() + additional, threads)
            .map_err(|error| error.to_string())
    }

    /// Adds vectors on all of `threads` threads, which take them from `batch` as they come: chunks, and their components one
    /// after the other.
    pub(crate) fn add_all(&self, chunks: &[i64], components: &[f32], threads: usize) -> Result<(), String> {
        let threads = if self.index.size() < ALONE { 1 } else { threads };
        let next = AtomicUsize::new(0);
        let add = || -> Result<(), String> {
            let mut bytes = Vec::with_capacity(self.dim);
            loop {
                let from = next.fetch_add(AT_ONCE, Ordering::Relaxed);
                if from >= chunks.len() {
                    return Ok(());
                }
                for at in from..(from + AT_ONCE).min(chunks.len()) {
                    quantised(&components[at * self.dim..(at + 1) * self.dim], &mut bytes);
                    self.index.add(chunks[at].unsigned_abs(), &bytes[..]).map_err(|error| error.to_string())?;
                }
            }
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(add)).collect();
            let own = add();
            let ended = others
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err("a thread that adds vectors has ended".to_owned())));
            ended.fold(own, Result::and)
        })
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; self.index.serialized_length()];
        self.index.save_to_buffer(&mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    /// The chunks in a written index that no link leads to.
    pub(crate) fn strays(&self, bytes: &[u8], entries: usize) -> Result<Vec<i64>, String> {
        ann_file::strays(bytes, &Self::expected(self.dim, entries, i64::MAX))
    }

    fn expected(dim: usize, entries: usize, last_chunk: i64) -> Expected {
        Expected {
            dim,
            entries,
            last_chunk,
            connectivity: CONNECTIVITY,
            scalar_kind: SCALAR_IN_FILE,
            scalar_bytes: SCALAR_BYTES,
        }
    }

    /// Checks and loads.
    pub(crate) fn from_bytes(bytes: &[u8], dim: usize, entries: usize, last_chunk: i64) -> Result<Self, String> {
        ann_file::check(bytes, &Self::expected(dim, entries, last_chunk))?;
        let mut index = Self::new(dim)?;
        index.index.load_from_buffer(bytes).map_err(|error| error.to_string())?;
        index.reserve(0, SEARCH_THREADS)?;
        index.compare_bytes();
        Ok(index)
    }

    /// Maps a file that this machine wrote and nobody changed since. Nothing can be added.
    pub(crate) fn map(path: &Path, dim: usize, entries: usize) -> Result<Self, String> {
        let path = path.to_str().ok_or("its path is not Unicode")?;
        let mut index = Self::new(dim)?;
        index.reserve(0, SEARCH_THREADS)?;
        index.index.view(path).map_err(|error| error.to_string())?;
        if index.index.size() != entries || index.index.dimensions() != dim {
            return Err("it has another size than was recorded".to_owned());
        }
        index.compare_bytes();
        Ok(index)
    }

    /// True if `chunk` was added.
    pub(crate) fn contains(&self, chunk: i64) -> bool {
        self.index.contains(chunk.unsigned_abs())
    }

    /// The nearest chunks that `admits` lets through, nearest first by bytes.
    pub(crate) fn search(&self, query: &[f32], count: usize, admits: &dyn Fn(i64) -> bool) -> Result<Vec<i64>, String> {
        let mut bytes = Vec::with_capacity(self.dim);
        quantised(query, &mut bytes);
        let matches = self.index.filtered_search(&bytes[..], count, |key| admits(key.cast_signed()));
        let matches = matches.map_err(|error| error.to_string())?;
        Ok(matches.keys.into_iter().map(u64::cast_signed).collect())
    }

    /// The `count` nearest of `chunks` by bytes, each compared; those that are not in the index are left out. Many are shared
    /// among the processors.
    pub(crate) fn nearest_of(&self, query: &[f32], count: usize, chunks: &[i64]) -> Result<Vec<i64>, String> {
        let mut wanted = Vec::with_capacity(self.dim);
        quantised(query, &mut wanted);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let share = chunks.len().div_ceil(processors).max(SHARE);
        let hits = std::thread::scope(|scope| {
            let mut shares = chunks.chunks(share);
            let own = shares.next().unwrap_or_default();
            let compared = |share| self.compared(&wanted, count, share);
            let others: Vec<_> = shares.map(|share| scope.spawn(move || compared(share))).collect();
            let mut hits = compared(own)?;
            for other in others {
                let ended = || Err("a thread that compares vectors has ended".to_owned());
                hits.extend(other.join().unwrap_or_else(|_| ended())?);
            }
            Ok::<_, String>(hits)
        })?;
        let mut top = TopK::new(count);
        hits.into_iter().for_each(|hit| top.push(hit));
        Ok(top.into_hits().into_iter().map(|hit| hit.chunk).collect())
    }

    /// The best of `chunks`, with their products with `wanted`.
    fn compared(&self, wanted: &[i8], count: usize, chunks: &[i64]) -> Result<Vec<Hit>, String> {
        let (isa, mut bytes, mut top) = (Isa::detect(), vec![0i8; self.dim], TopK::new(count));
        for &chunk in chunks {
            if self.index.get(chunk.unsigned_abs(), &mut bytes[..]).map_err(|error| error.to_string())? == 1 {
                top.push(Hit { chunk, score: byte_dot(isa, wanted, &bytes) as f32 });
            }
        }
        Ok(top.into_hits())
    }

    /// Changes how many nodes a search keeps in view.
    pub(crate) fn set_expansion(&self, expansion: usize) {
        self.index.change_expansion_search(expansion);
    }
}

/// SHA-256 of the cache folder with this file in it.
pub(crate) fn hash(bytes: &[u8]) -> String {
    let mut hash = FolderHash::new();
    hash.add(FILE, bytes);
    hash.finish()
}

/// The file's bytes, if they are those that were recorded.
pub(crate) fn read_verified(storage: &dyn Storage, folder: &Path, sha256: &str) -> Result<Vec<u8>, String> {
    let bytes = storage.read(&folder.join(FILE)).map_err(|error| error.to_string())?;
    if hash(&bytes) == sha256 { Ok(bytes) } else { Err("its bytes are not those that were written".to_owned()) }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    const DIM: usize = 8;

    fn vectors(count: usize) -> Vec<Vec<f32>> {
        let mut random = StdRng::seed_from_u64(5);
        let mut vector = || -> Vec<f32> { (0..DIM).map(|_| random.random_range(-1.0..1.0f32)).collect() };
        let unit = |vector: Vec<f32>| {
            let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            vector.into_iter().map(|x| x / length).collect()
        };
        (0..count).map(|_| unit(vector())).collect()
    }

    fn add(index: &AnnIndex, vectors: &[Vec<f32>], first: i64) {
        let chunks: Vec<i64> = (first..first + vectors.len() as i64).collect();
        index.reserve(chunks.len(), 2).expect("room");
        index.add_all(&chunks, &vectors.concat(), 2).expect("added");
    }

    fn built(count: usize) -> Vec<u8> {
        let index = AnnIndex::new(DIM).expect("index");
        add(&index, &vectors(count), 1);
        index.to_bytes().expect("bytes")
    }

    #[test]
    fn an_index_comes_back_as_it_was_and_grows_on() {
        let bytes = built(300);
        let index = AnnIndex::from_bytes(&bytes, DIM, 300, 300).expect("whole");
        let all = vectors(400);
        assert_eq!(index.search(&all[41], 1, &|_| true), Ok(vec![42]));
        add(&index, &all[300..], 301);
        let grown = AnnIndex::from_bytes(&index.to_bytes().expect("bytes"), DIM, 400, 400).expect("whole");
        assert_eq!(grown.search(&all[350], 1, &|_| true), Ok(vec![351]));
        assert_eq!(grown.search(&all[41], 1, &|_| true), Ok(vec![42]));
    }

    #[test]
    fn f33_removed_entries_are_passed_over_and_enough_others_found() {
        let index = AnnIndex::from_bytes(&built(300), DIM, 300, 300).expect("whole");
        let removed: HashSet<i64> = (1..=300).filter(|chunk| chunk % 10 != 0).collect();
        let found = index.search(&vectors(1)[0], 30, &|chunk| !removed.contains(&chunk)).expect("found");
        assert_eq!(found.len(), 30);
        assert!(found.iter().all(|chunk| chunk % 10 == 0), "{found:?}");
    }

    #[test]
    fn f34_every_vector_that_several_threads_added_finds_itself() {
        const COUNT: usize = ALONE + 4_000;
        let (index, all) = (AnnIndex::new(DIM).expect("index"), vectors(COUNT));
        let chunks: Vec<i64> = (1..=COUNT as i64).collect();
        index.reserve(COUNT, 8).expect("room");
        for part in [0..ALONE, ALONE..COUNT] {
            index.add_all(&chunks[part.clone()], &all[part].concat(), 8).expect("added");
        }
        let bytes = index.to_bytes().expect("bytes");
        let strays = index.strays(&bytes, COUNT).expect("looked for");
        let index = AnnIndex::from_bytes(&bytes, DIM, COUNT, COUNT as i64).expect("whole");
        let missed = |breadth: usize| {
            index.set_expansion(breadth);
            let found = |vector: &Vec<f32>, chunk: &i64| {
                index.search(vector, 10, &|_| true).expect("found").contains(chunk) || strays.contains(chunk)
            };
            all.iter().zip(&chunks).filter(|(vector, chunk)| !found(vector, chunk)).count()
        };
        // A search may end in a hollow; a wide one hardly ever does.
        assert!(missed(EXPANSION_SEARCH) <= COUNT / 500, "{}", missed(EXPANSION_SEARCH));
        assert!(missed(1024) <= COUNT / 2_000, "lost");
    }

    #[test]
    fn nodes_that_no_link_leads_to_are_told() {
        let bytes = built(300);
        let index = AnnIndex::from_bytes(&bytes, DIM, 300, 300).expect("whole");
        let before = index.strays(&bytes, 300).expect("looked for");
        // All links of the lowest level lead nowhere: what is left are nodes of higher levels.
        let mut cut = bytes.clone();
        let nodes = 8 + 300 * DIM + 64 + 40 + 300 * 2;
        let levels: Vec<usize> = (0..300)
            .map(|at| usize::from(u16::from_le_bytes([bytes[nodes - 600 + 2 * at], bytes[nodes - 599 + 2 * at]])))
            .collect();
        let mut at = nodes;
        for &level in &levels {
            cut[at + 10..at + 14].copy_from_slice(&[0; 4]);
            at += 10 + (4 + 4 * 32) + level * (4 + 4 * 16);
        }
        let on_lowest = levels.iter().filter(|&&level| level == 0).count();
        let strays = index.strays(&cut, 300).expect("looked for");
        assert!(strays.len() >= on_lowest - 1 && before.len() < 10, "{} {}", strays.len(), before.len());
    }

    #[test]
    fn f10_a_file_of_other_shape_is_refused() {
        let bytes = built(50);
        let refused = |dim, entries, last| AnnIndex::from_bytes(&bytes, dim, entries, last).is_err();
        assert!(!refused(DIM, 50, 50));
        assert!(refused(DIM + 1, 50, 50) && refused(DIM, 49, 50) && refused(DIM, 50, 49) && refused(DIM, 0, 50));
        for length in 0..bytes.len() {
            assert!(AnnIndex::from_bytes(&bytes[..length], DIM, 50, 50).is_err(), "cut to {length}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(AnnIndex::from_bytes(&longer, DIM, 50, 50).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        /// Whatever a hostile file with a right hash holds: it is refused, or it loads and answers within bounds.
        #[test]
        fn f10_flipped_bytes_never_reach_out_of_bounds(
            flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            static WHOLE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
            let whole = WHOLE.get_or_init(|| built(60));
            let graph = 8 + 60 * DIM * SCALAR_BYTES;
            let mut bytes = whole.clone();
            for (at, value) in flips {
                // The vectors at the beginning are numbers without meaning for memory safety; aim at the rest.
                let at = graph + at.index(bytes.len() - graph);
                bytes[at] = value;
            }
            if let Ok(index) = AnnIndex::from_bytes(&bytes, DIM, 60, 60) {
                let found = index.search(&vectors(1)[0], 20, &|chunk| chunk != 3).expect("answers");
                prop_assert!(found.iter().all(|chunk| (1..=60).contains(chunk) && *chunk != 3));
            }
        }
    }
}
