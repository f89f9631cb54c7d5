//! Building the approximate index: a usearch graph over cosine (Malkov and Yashunin 2018, HNSW). It only proposes candidates;
//! their scores come from the database.
//!
//! A vector is a byte per component, compared by our own product of bytes: a quarter of the memory, and of the time that
//! memory costs. Components of a vector of length one lie around 0 with a deviation of 1/√dim; what is beyond
//! [`SPREAD`] deviations is cut off.
//!
//! Entries are only ever added, after reserving room for them: removing and adding again is where the library has lost
//! nodes. Adding from several threads can leave nodes that no link leads to; so can HNSW itself. They are looked for when
//! the file is written ([`Graph::find_strays`](crate::ann_graph::Graph::find_strays)), and compared one by one in each search. What was
//! removed from the knowledge base stays in the graph as a bridge, is refused by the predicate of the search, and goes when
//! the index is built anew.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use anchorite_kernels::{Isa, byte_metric};
use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

use crate::ann_file::{self, Expected};
use crate::storage::{FolderHash, Storage};

/// Name of the file in the cache's folder.
pub(crate) const FILE: &str = "index.usearch";
pub(crate) const CONNECTIVITY: usize = 16;
const EXPANSION_ADD: usize = 128;
/// Nodes that a search keeps in view, unless the index's own audit found it too few.
pub(crate) const EXPANSION_SEARCH: usize = 128;
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

/// A growing index. Keys are chunk identifiers.
pub(crate) struct GraphBuilder {
    index: Index,
    dim: usize,
}

/// Components as bytes.
pub(crate) fn quantised(vector: &[f32]) -> Vec<i8> {
    let scale = 127.0 * (vector.len() as f32).sqrt() / SPREAD;
    vector.iter().map(|x| (x * scale).round().clamp(-127.0, 127.0) as i8).collect()
}

/// What the file of an index of so many entries must be like.
pub(crate) fn expected(dim: usize, entries: usize, last_chunk: i64) -> Expected {
    Expected {
        dim,
        entries,
        last_chunk,
        connectivity: CONNECTIVITY,
        scalar_kind: SCALAR_IN_FILE,
        scalar_bytes: SCALAR_BYTES,
    }
}

impl GraphBuilder {
    pub(crate) fn new(dim: usize) -> Result<Self, String> {
        let mut made = Self::empty(dim)?;
        made.compare_bytes();
        Ok(made)
    }

    fn empty(dim: usize) -> Result<Self, String> {
        let options = IndexOptions {
            dimensions: dim,
            metric: MetricKind::Cos,
            quantization: SCALAR,
            connectivity: CONNECTIVITY,
            expansion_add: EXPANSION_ADD,
            expansion_search: EXPANSION_SEARCH,
            multi: false,
        };
        Ok(Self { index: Index::new(&options).map_err(|error| error.to_string())?, dim })
    }

    /// Has the library compare vectors with our product. A loaded file brings the library's own back, so this comes after
    /// loading; and once only, since the library forgets to free the metric that it had before.
    fn compare_bytes(&mut self) {
        self.index.change_metric::<i8>(byte_metric(Isa::detect(), self.dim));
    }

    /// Makes room for `additional` entries more on `threads` threads; must come before [`GraphBuilder::add_all`].
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
            loop {
                let from = next.fetch_add(AT_ONCE, Ordering::Relaxed);
                if from >= chunks.len() {
                    return Ok(());
                }
                for at in from..(from + AT_ONCE).min(chunks.len()) {
                    let bytes = quantised(&components[at * self.dim..(at + 1) * self.dim]);
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

    /// Checks and loads, for adding more.
    pub(crate) fn from_bytes(bytes: &[u8], expected: &Expected) -> Result<Self, String> {
        ann_file::check(bytes, expected)?;
        let mut index = Self::empty(expected.dim)?;
        index.index.load_from_buffer(bytes).map_err(|error| error.to_string())?;
        index.compare_bytes();
        Ok(index)
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
    use proptest::prelude::*;

    use super::*;
    use crate::ann_graph::Graph;
    use crate::ann_graph::tests::{DIM, add, built, vectors};
    use crate::trial;

    #[test]
    fn an_index_comes_back_as_it_was_and_grows_on() {
        let bytes = built(300);
        let all = vectors(400);
        let graph = Graph::from_bytes(bytes.clone(), &expected(DIM, 300, 300)).expect("whole");
        assert_eq!(graph.search(&all[41], 1, &|_| true), vec![42]);
        let builder = GraphBuilder::from_bytes(&bytes, &expected(DIM, 300, 300)).expect("whole");
        add(&builder, &all[300..], 301);
        let grown = Graph::from_bytes(builder.to_bytes().expect("bytes"), &expected(DIM, 400, 400)).expect("whole");
        assert_eq!(grown.search(&all[350], 1, &|_| true), vec![351]);
        assert_eq!(grown.search(&all[41], 1, &|_| true), vec![42]);
    }

    #[test]
    fn f34_every_vector_that_several_threads_added_finds_itself() {
        const COUNT: usize = ALONE + 4_000;
        let (builder, all) = (GraphBuilder::new(DIM).expect("index"), vectors(COUNT));
        let chunks: Vec<i64> = (1..=COUNT as i64).collect();
        builder.reserve(COUNT, 8).expect("room");
        for part in [0..ALONE, ALONE..COUNT] {
            builder.add_all(&chunks[part.clone()], &all[part].concat(), 8).expect("added");
        }
        let bytes = builder.to_bytes().expect("bytes");
        let mut graph = Graph::from_bytes(bytes, &expected(DIM, COUNT, COUNT as i64)).expect("whole");
        graph.set_strays(&graph.find_strays());
        let mut missed = |breadth: usize| {
            graph.set_breadth(breadth);
            let found = |vector: &Vec<f32>, chunk: &i64| graph.search(vector, 10, &|_| true).contains(chunk);
            all.iter().zip(&chunks).filter(|(vector, chunk)| !found(vector, chunk)).count()
        };
        // A search may end in a hollow; a wide one hardly ever does.
        let (narrow, wide) = (missed(EXPANSION_SEARCH), missed(1024));
        assert!(narrow <= COUNT / 500 && wide <= COUNT / 2_000, "{narrow} and {wide} lost");
    }

    #[test]
    fn f10_a_file_of_other_shape_is_refused() {
        let bytes = built(50);
        let refused = |dim, entries, last| Graph::from_bytes(bytes.clone(), &expected(dim, entries, last)).is_err();
        assert!(!refused(DIM, 50, 50));
        assert!(refused(DIM + 1, 50, 50) && refused(DIM, 49, 50) && refused(DIM, 50, 49) && refused(DIM, 0, 50));
        for length in 0..bytes.len() {
            assert!(Graph::from_bytes(bytes[..length].to_vec(), &expected(DIM, 50, 50)).is_err(), "cut to {length}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(Graph::from_bytes(longer, &expected(DIM, 50, 50)).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        /// Whatever a hostile file with a right hash holds: it is refused, or it is searched and grows within bounds.
        #[test]
        fn f10_flipped_bytes_never_reach_out_of_bounds(
            flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            static WHOLE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
            let whole = WHOLE.get_or_init(|| trial::graph_file(60).expect("built"));
            let graph = 8 + 60 * DIM * SCALAR_BYTES;
            let mut bytes = whole.clone();
            for (at, value) in flips {
                // The vectors at the beginning are numbers without meaning for memory safety; aim at the rest.
                let at = graph + at.index(bytes.len() - graph);
                bytes[at] = value;
            }
            trial::try_graph_file(&bytes, 60).ok();
        }
    }
}
