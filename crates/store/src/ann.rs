//! The approximate index: a usearch graph over cosine (Malkov and Yashunin 2018, HNSW). It only proposes candidates; their
//! scores come from the database.
//!
//! Entries are only ever added, by one thread, after reserving room for them: removing and adding again, and adding from
//! several threads, are where the library has lost nodes. What was removed from the knowledge base stays in the graph as a
//! bridge, is refused by the predicate of the search, and goes when the index is built anew.

use std::path::Path;

use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

use crate::ann_file::{self, Expected};
use crate::storage::{FolderHash, Storage};

/// Name of the file in the cache's folder.
pub(crate) const FILE: &str = "index.usearch";
const CONNECTIVITY: usize = 16;
const EXPANSION_ADD: usize = 128;
const EXPANSION_SEARCH: usize = 192;
/// Searches that may run at once; more are answered exactly.
const SEARCH_THREADS: usize = 64;
/// Half the size of `f32`, and as fast: usearch without its SIMD kernels computes `f16` four times slower. What the rounding
/// costs in order is made good by exact scores for the candidates.
const SCALAR: ScalarKind = ScalarKind::BF16;
/// The library's number for [`SCALAR`].
const SCALAR_IN_FILE: u8 = 4;
const SCALAR_BYTES: usize = 2;

/// A loaded or growing index. Keys are chunk identifiers.
pub(crate) struct AnnIndex {
    index: Index,
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
        Index::new(&options).map(|index| Self { index }).map_err(|error| error.to_string())
    }

    /// Makes room for `additional` entries more; must come before [`AnnIndex::add`], after loading as well.
    pub(crate) fn reserve(&self, additional: usize) -> Result<(), String> {
        self.index.reserve_capacity_and_threads(self.index.size() + additional, 1).map_err(|error| error.to_string())
    }

    pub(crate) fn add(&self, chunk: i64, vector: &[f32]) -> Result<(), String> {
        self.index.add(chunk.unsigned_abs(), vector).map_err(|error| error.to_string())
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; self.index.serialized_length()];
        self.index.save_to_buffer(&mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    /// Checks and loads.
    pub(crate) fn from_bytes(bytes: &[u8], dim: usize, entries: usize, last_chunk: i64) -> Result<Self, String> {
        let expected = Expected {
            dim,
            entries,
            last_chunk,
            connectivity: CONNECTIVITY,
            scalar_kind: SCALAR_IN_FILE,
            scalar_bytes: SCALAR_BYTES,
        };
        ann_file::check(bytes, &expected)?;
        let index = Self::new(dim)?;
        index.index.load_from_buffer(bytes).map_err(|error| error.to_string())?;
        index
            .index
            .reserve_capacity_and_threads(index.index.size(), SEARCH_THREADS)
            .map_err(|error| error.to_string())?;
        Ok(index)
    }

    /// True if `chunk` was added.
    pub(crate) fn contains(&self, chunk: i64) -> bool {
        self.index.contains(chunk.unsigned_abs())
    }

    /// The nearest chunks that `admits` lets through, nearest first by the index's own rounded numbers.
    pub(crate) fn search(&self, query: &[f32], count: usize, admits: &dyn Fn(i64) -> bool) -> Result<Vec<i64>, String> {
        let matches = self.index.filtered_search(query, count, |key| admits(key.cast_signed()));
        let matches = matches.map_err(|error| error.to_string())?;
        Ok(matches.keys.into_iter().map(u64::cast_signed).collect())
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
        (0..count).map(|_| (0..DIM).map(|_| random.random_range(-1.0..1.0)).collect()).collect()
    }

    fn built(count: usize) -> Vec<u8> {
        let index = AnnIndex::new(DIM).expect("index");
        index.reserve(count).expect("room");
        for (vector, chunk) in vectors(count).iter().zip(1..) {
            index.add(chunk, vector).expect("added");
        }
        index.to_bytes().expect("bytes")
    }

    #[test]
    fn an_index_comes_back_as_it_was_and_grows_on() {
        let bytes = built(300);
        let index = AnnIndex::from_bytes(&bytes, DIM, 300, 300).expect("whole");
        let all = vectors(400);
        assert_eq!(index.search(&all[41], 1, &|_| true), Ok(vec![42]));
        index.reserve(100).expect("room");
        for (vector, chunk) in all[300..].iter().zip(301..) {
            index.add(chunk, vector).expect("added");
        }
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
