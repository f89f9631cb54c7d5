//! Hits, and the best `k` of a stream of them in one fixed order.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

/// A chunk that a search found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// Identifier of the chunk.
    pub chunk: i64,
    /// Larger is better; comparable within one list only.
    pub score: f32,
}

impl Hit {
    /// By score; of equal scores the older chunk is better. A total order, so that results never depend on the way a
    /// search took.
    fn better(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.chunk.cmp(&self.chunk))
    }
}

#[derive(Clone, Copy, Debug)]
struct Ordered(Hit);

impl PartialEq for Ordered {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.better(&other.0)
    }
}

/// Keeps the best `k` hits.
#[derive(Debug)]
pub(crate) struct TopK {
    k: usize,
    heap: BinaryHeap<Reverse<Ordered>>,
}

impl TopK {
    pub(crate) fn new(k: usize) -> Self {
        Self { k, heap: BinaryHeap::new() }
    }

    pub(crate) fn push(&mut self, hit: Hit) {
        if self.heap.len() < self.k {
            self.heap.push(Reverse(Ordered(hit)));
        } else if let Some(mut worst) = self.heap.peek_mut()
            && hit.better(&worst.0.0).is_gt()
        {
            *worst = Reverse(Ordered(hit));
        }
    }

    /// The score below which nothing can enter any more; an equal score still may.
    pub(crate) fn threshold(&self) -> Option<f32> {
        if self.k == 0 {
            return Some(f32::INFINITY);
        }
        if self.heap.len() < self.k { None } else { self.heap.peek().map(|worst| worst.0.0.score) }
    }

    /// Best first.
    pub(crate) fn into_hits(self) -> Vec<Hit> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse(Ordered(hit))| hit).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn top_k_is_the_head_of_the_sorted_list(scores in prop::collection::vec(-3i8..3, 0..60), k in 0usize..20) {
            let hits: Vec<Hit> = scores.iter().zip(1..).map(|(&s, chunk)| Hit { chunk, score: f32::from(s) }).collect();
            let mut top = TopK::new(k);
            hits.iter().rev().for_each(|&hit| top.push(hit));
            let mut sorted = hits;
            sorted.sort_by(|a, b| b.better(a));
            sorted.truncate(k);
            prop_assert_eq!(top.into_hits(), sorted);
        }
    }
}
