//! Reciprocal rank fusion (Cormack, Clarke and Büttcher 2009, "Reciprocal rank fusion outperforms Condorcet and
//! individual rank learning methods", SIGIR): a result's score is the sum over lists of `1 / (k + rank)`.

use std::collections::HashMap;

use crate::ranking::Hit;

/// The paper's constant: how little the first ranks count more than the next.
pub const RANK_CONSTANT: f32 = 60.0;

/// Place of a result in one list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// From 1.
    pub rank: usize,
    /// The list's own score.
    pub score: f32,
}

/// A result of the fusion.
#[derive(Clone, Debug, PartialEq)]
pub struct Fused {
    /// Identifier of the chunk.
    pub chunk: i64,
    /// Sum of reciprocal ranks.
    pub score: f32,
    /// Its place in each list, in the order the lists were given; `None` where it is absent.
    pub places: Vec<Option<Placed>>,
}

/// Fuses lists that are sorted best first, each naming a chunk at most once. Best first; of equal sums the one with the
/// better best rank comes first, then the older chunk.
#[must_use]
pub fn reciprocal_rank_fusion(lists: &[&[Hit]], rank_constant: f32) -> Vec<Fused> {
    let mut fused: HashMap<i64, Fused> = HashMap::new();
    for (list, hits) in lists.iter().enumerate() {
        for (hit, rank) in hits.iter().zip(1..) {
            let entry = fused.entry(hit.chunk).or_insert_with(|| Fused {
                chunk: hit.chunk,
                score: 0.0,
                places: vec![None; lists.len()],
            });
            if entry.places[list].is_none() {
                entry.score += 1.0 / (rank_constant + rank as f32);
                entry.places[list] = Some(Placed { rank, score: hit.score });
            }
        }
    }
    let best_rank = |fused: &Fused| fused.places.iter().flatten().map(|placed| placed.rank).min();
    let mut fused: Vec<Fused> = fused.into_values().collect();
    fused.sort_by(|a, b| {
        b.score.total_cmp(&a.score).then_with(|| best_rank(a).cmp(&best_rank(b))).then_with(|| a.chunk.cmp(&b.chunk))
    });
    fused
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hits(chunks: &[i64]) -> Vec<Hit> {
        chunks.iter().zip(0..).map(|(&chunk, i)| Hit { chunk, score: 1.0 - i as f32 / 100.0 }).collect()
    }

    #[test]
    fn m32_a_chunk_found_by_both_beats_one_found_by_one() {
        let fused = reciprocal_rank_fusion(&[&hits(&[1, 2, 3]), &hits(&[4, 3, 5])], RANK_CONSTANT);
        assert_eq!(fused.iter().map(|f| f.chunk).collect::<Vec<_>>(), [3, 1, 4, 2, 5]);
        assert!((fused[0].score - (1.0 / 63.0 + 1.0 / 62.0)).abs() < 1e-7);
        assert_eq!(fused[0].places[0].map(|p| p.rank), Some(3));
        assert_eq!(fused[0].places[1].map(|p| p.rank), Some(2));
        assert_eq!(fused[1].places[1], None);
    }

    #[test]
    fn m32_one_list_keeps_its_order() {
        let fused = reciprocal_rank_fusion(&[&hits(&[9, 4, 7]), &[]], RANK_CONSTANT);
        assert_eq!(fused.iter().map(|f| f.chunk).collect::<Vec<_>>(), [9, 4, 7]);
        assert!(reciprocal_rank_fusion(&[], RANK_CONSTANT).is_empty());
    }

    proptest! {
        /// Moving a chunk up in one list never moves it down in the fusion.
        #[test]
        fn m32_fusion_is_monotonic(
            first in Just((0..12i64).collect::<Vec<_>>()).prop_shuffle(),
            second in Just((6..18i64).collect::<Vec<_>>()).prop_shuffle(),
            at in 1usize..12,
        ) {
            let position = |list: &[i64]| {
                reciprocal_rank_fusion(&[&hits(list), &hits(&second)], RANK_CONSTANT)
                    .iter()
                    .position(|f| f.chunk == first[at])
            };
            let mut raised = first.clone();
            raised.swap(at, at - 1);
            prop_assert!(position(&raised) <= position(&first));
        }
    }
}
