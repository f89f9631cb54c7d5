//! One list from several.
//!
//! By score: each list's scores are brought to 0 … 1, and a result's score is their mean (Bruch, Gai and Ingber 2023, "An
//! analysis of fusion functions for hybrid retrieval", TOIS). How far the first stands above the rest is kept, so that a
//! list that is sure outweighs one that is not. Hybrid search uses this.
//!
//! By rank: reciprocal rank fusion (Cormack, Clarke and Büttcher 2009, "Reciprocal rank fusion outperforms Condorcet and
//! individual rank learning methods", SIGIR), where a result's score is the sum over lists of `1 / (k + rank)`. It needs no
//! scores, and is there for lists whose scores can't be compared.

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
    /// What the fusion ordered by.
    pub score: f32,
    /// Its place in each list, in the order the lists were given; `None` where it is absent.
    pub places: Vec<Option<Placed>>,
}

/// Scores to fuse, and where their scale begins.
#[derive(Clone, Copy, Debug)]
pub struct Scored<'h> {
    /// Best first, each chunk at most once.
    pub hits: &'h [Hit],
    /// The score of what has nothing to do with the query; `None` where nobody knows it and the last of the list has to do.
    pub zero: Option<f32>,
}

impl Scored<'_> {
    /// A score as a share of the way from zero to the best.
    fn share(&self, score: f32) -> f32 {
        let best = self.hits.first().map_or(0.0, |hit| hit.score);
        let zero = self.zero.or(self.hits.last().map(|hit| hit.score)).unwrap_or(0.0);
        // All equal, or one alone: as good as there is.
        if best > zero { ((score - zero) / (best - zero)).clamp(0.0, 1.0) } else { 1.0 }
    }
}

/// Fuses lists by score; a chunk that is not in a list counts 0 there. Best first; of equal scores the one with the better
/// best rank comes first, then the older chunk.
#[must_use]
pub fn score_fusion(lists: &[Scored<'_>]) -> Vec<Fused> {
    let hits: Vec<&[Hit]> = lists.iter().map(|list| list.hits).collect();
    let share = 1.0 / lists.len().max(1) as f32;
    fuse(&hits, |list, placed| share * lists[list].share(placed.score))
}

/// Fuses lists that are sorted best first, each naming a chunk at most once, by rank. Best first; of equal sums the one
/// with the better best rank comes first, then the older chunk.
#[must_use]
pub fn reciprocal_rank_fusion(lists: &[&[Hit]], rank_constant: f32) -> Vec<Fused> {
    fuse(lists, |_, placed| 1.0 / (rank_constant + placed.rank as f32))
}

/// Adds up what each list gives to a result, by the number of the list and the place in it.
fn fuse(lists: &[&[Hit]], gives: impl Fn(usize, Placed) -> f32) -> Vec<Fused> {
    let mut fused: HashMap<i64, Fused> = HashMap::new();
    for (list, hits) in lists.iter().enumerate() {
        for (hit, rank) in hits.iter().zip(1..) {
            let entry = fused.entry(hit.chunk).or_insert_with(|| Fused {
                chunk: hit.chunk,
                score: 0.0,
                places: vec![None; lists.len()],
            });
            if entry.places[list].is_none() {
                let placed = Placed { rank, score: hit.score };
                entry.score += gives(list, placed);
                entry.places[list] = Some(placed);
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

    fn scored(scores: &[(i64, f32)]) -> Vec<Hit> {
        scores.iter().map(|&(chunk, score)| Hit { chunk, score }).collect()
    }

    #[test]
    fn m32_a_list_that_is_sure_outweighs_one_that_is_not() {
        let words = scored(&[(1, 20.0), (2, 4.0), (3, 3.0)]);
        let dense = scored(&[(4, 0.31), (2, 0.30), (5, 0.27), (1, 0.26), (6, 0.10)]);
        let lists = [Scored { hits: &words, zero: Some(0.0) }, Scored { hits: &dense, zero: None }];
        let fused = score_fusion(&lists);
        // 1: (1 + 0.762) / 2; 2: (0.2 + 0.952) / 2; 4: 1 / 2; 5: 0.81 / 2; 3: 0.15 / 2; 6: 0.
        assert_eq!(fused.iter().map(|f| f.chunk).collect::<Vec<_>>(), [1, 2, 4, 5, 3, 6]);
        assert!((fused[0].score - (1.0 + 16.0 / 21.0) / 2.0).abs() < 1e-6, "{fused:?}");
        assert_eq!(fused[4].places[1], None);
        let by_rank = reciprocal_rank_fusion(&[&words, &dense], RANK_CONSTANT);
        assert_eq!(by_rank[0].chunk, 2, "where by rank the two seconds win");
    }

    #[test]
    fn m32_scores_of_one_list_keep_its_order_and_equal_ones_count_in_full() {
        let one = scored(&[(9, 3.0), (4, 2.0), (7, 2.0)]);
        let lists = [Scored { hits: &one, zero: Some(0.0) }, Scored { hits: &[], zero: None }];
        assert_eq!(score_fusion(&lists).iter().map(|f| f.chunk).collect::<Vec<_>>(), [9, 4, 7]);
        let same = scored(&[(1, 0.5), (2, 0.5)]);
        assert!(score_fusion(&[Scored { hits: &same, zero: None }]).iter().all(|fused| fused.score == 1.0));
        assert!(score_fusion(&[]).is_empty());
    }

    proptest! {
        /// A better score in one list never moves a chunk down in the fusion.
        #[test]
        fn m32_score_fusion_is_monotonic(
            first in prop::collection::vec(1u8..100, 2..12),
            second in prop::collection::vec(1u8..100, 2..12),
            at in 0usize..12,
        ) {
            let list = |scores: &[u8], from: i64| {
                let mut hits: Vec<Hit> =
                    scores.iter().zip(from..).map(|(&score, chunk)| Hit { chunk, score: f32::from(score) }).collect();
                hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.chunk.cmp(&b.chunk)));
                hits
            };
            let at = at % first.len();
            let position = |first: &[u8]| {
                let (words, dense) = (list(first, 0), list(&second, 4));
                let lists = [Scored { hits: &words, zero: Some(0.0) }, Scored { hits: &dense, zero: None }];
                score_fusion(&lists).iter().position(|fused| fused.chunk == at as i64)
            };
            let mut raised = first.clone();
            // Up to the best of the list, so that the scale stays as it is.
            raised[at] = *first.iter().max().expect("two at least");
            prop_assert!(position(&raised) <= position(&first));
        }

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
