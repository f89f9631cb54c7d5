//! Scores of pairs that were read before. A loop asks for the same query and passage in round after round; the score of a
//! pair is a function of the pair alone, so that nobody can tell a kept one from a new one.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;
use sha2::{Digest, Sha256};

/// Pairs kept, the least recently asked for going first: some 4 MB.
const PAIRS: NonZeroUsize = NonZeroUsize::new(65_536).expect("not zero");

/// A query and a passage, as half a SHA-256: no two pairs that anybody can find share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PairKey([u8; 16]);

impl PairKey {
    pub(crate) fn new(query: &str, passage: &str) -> Self {
        let mut hash = Sha256::new();
        // The length keeps apart pairs that differ in where the query ends.
        hash.update((query.len() as u64).to_le_bytes());
        hash.update(query);
        hash.update(passage);
        let mut key = [0; 16];
        key.copy_from_slice(&hash.finalize()[..16]);
        Self(key)
    }
}

/// The scores of one model.
pub(crate) struct ScoreCache(Mutex<LruCache<PairKey, f32>>);

impl ScoreCache {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(LruCache::new(PAIRS)))
    }

    /// The score of each pair that is known.
    pub(crate) fn known(&self, keys: &[PairKey]) -> Vec<Option<f32>> {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.iter().map(|key| cache.get(key).copied()).collect()
    }

    pub(crate) fn keep(&self, scores: &HashMap<PairKey, f32>) {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, score) in scores {
            cache.put(*key, *score);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m27_pairs_are_told_apart_by_where_the_query_ends() {
        assert_ne!(PairKey::new("ab", "c"), PairKey::new("a", "bc"));
        assert_eq!(PairKey::new("ab", "c"), PairKey::new("ab", "c"));
    }

    #[test]
    fn m27_what_was_kept_is_known_and_nothing_else() {
        let cache = ScoreCache::new();
        let (kept, other) = (PairKey::new("q", "p"), PairKey::new("q", "r"));
        cache.keep(&HashMap::from([(kept, 1.5)]));
        assert_eq!(cache.known(&[other, kept]), [None, Some(1.5)]);
    }
}
