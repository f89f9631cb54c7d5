//! Retrieval metrics as `trec_eval` computes them.
//!
//! nDCG with linear gain and a discount of `log2(rank + 1)` (Järvelin and Kekäläinen 2002, "Cumulated gain-based
//! evaluation of IR techniques"), recall of relevant documents, and the reciprocal rank of the first relevant one
//! (Voorhees 1999). A document without a grade is not relevant.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Grades of one query's documents: 0 is not relevant, more is better.
pub type Grades = BTreeMap<String, u32>;

fn grade(grades: &Grades, document: &str) -> u32 {
    grades.get(document).copied().unwrap_or(0)
}

fn relevant(grades: &Grades) -> usize {
    grades.values().filter(|&&grade| grade > 0).count()
}

fn discounted(gains: impl Iterator<Item = u32>) -> f64 {
    gains.zip(2u32..).map(|(gain, next)| f64::from(gain) / f64::from(next).log2()).sum()
}

/// nDCG of the first `cutoff` documents, 0 … 1; 0 if nothing is relevant.
#[must_use]
pub fn ndcg<D: AsRef<str>>(ranking: &[D], grades: &Grades, cutoff: usize) -> f64 {
    let mut best: Vec<u32> = grades.values().copied().collect();
    best.sort_unstable_by(|a, b| b.cmp(a));
    let ideal = discounted(best.into_iter().take(cutoff));
    let found = discounted(ranking.iter().take(cutoff).map(|document| grade(grades, document.as_ref())));
    if ideal > 0.0 { found / ideal } else { 0.0 }
}

/// Share of the relevant documents among the first `cutoff`; 0 if nothing is relevant.
#[must_use]
pub fn recall<D: AsRef<str>>(ranking: &[D], grades: &Grades, cutoff: usize) -> f64 {
    let found = ranking.iter().take(cutoff).filter(|document| grade(grades, document.as_ref()) > 0).count();
    if found == 0 { 0.0 } else { found as f64 / relevant(grades) as f64 }
}

/// `1 / rank` of the first relevant document among the first `cutoff`; 0 if there is none.
#[must_use]
pub fn reciprocal_rank<D: AsRef<str>>(ranking: &[D], grades: &Grades, cutoff: usize) -> f64 {
    let first = ranking.iter().take(cutoff).position(|document| grade(grades, document.as_ref()) > 0);
    first.map_or(0.0, |index| 1.0 / (index + 1) as f64)
}

/// The metrics of one ranking.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetrievalScores {
    /// nDCG of the first ten.
    pub ndcg_10: f64,
    /// Recall of the first ten.
    pub recall_10: f64,
    /// Recall of the first hundred.
    pub recall_100: f64,
    /// Reciprocal rank within the first ten.
    pub reciprocal_rank_10: f64,
}

impl RetrievalScores {
    /// Scores a ranking, best first.
    #[must_use]
    pub fn of<D: AsRef<str>>(ranking: &[D], grades: &Grades) -> Self {
        Self {
            ndcg_10: ndcg(ranking, grades, 10),
            recall_10: recall(ranking, grades, 10),
            recall_100: recall(ranking, grades, 100),
            reciprocal_rank_10: reciprocal_rank(ranking, grades, 10),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn grades(of: &[(&str, u32)]) -> Grades {
        of.iter().map(|&(document, grade)| (document.to_owned(), grade)).collect()
    }

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-12
    }

    #[test]
    fn m41_values_worked_out_by_hand() {
        let grades = grades(&[("a", 4), ("b", 1), ("c", 2), ("z", 0)]);
        let ranking = ["x", "a", "z", "c"];
        // Gains 0, 4, 0, 2 over log2 of 2, 3, 4, 5; at best 4, 2, 1.
        let found = 4.0 / 3f64.log2() + 2.0 / 5f64.log2();
        let ideal = 4.0 + 2.0 / 3f64.log2() + 1.0 / 2.0;
        assert!(close(ndcg(&ranking, &grades, 10), found / ideal));
        assert!(close(ndcg(&ranking, &grades, 3), 4.0 / 3f64.log2() / ideal));
        assert!(close(recall(&ranking, &grades, 10), 2.0 / 3.0));
        assert!(close(recall(&ranking, &grades, 2), 1.0 / 3.0));
        assert!(close(reciprocal_rank(&ranking, &grades, 10), 0.5));
        assert!(close(reciprocal_rank(&ranking, &grades, 1), 0.0));
    }

    /// Made with `ir_measures.calc_aggregate([nDCG@10, R@10, RR@10], …)` 0.4.3 (pytrec_eval) from these very rankings.
    #[test]
    fn m41_values_of_trec_eval() {
        type Case<'c> = (&'c [&'c str], &'c [(&'c str, u32)]);
        let rankings: [Case<'_>; 3] = [
            (&["d3", "d1", "d9", "d2"], &[("d1", 2), ("d2", 1), ("d5", 3)]),
            (&["d7", "d8"], &[("d8", 1)]),
            (
                &["e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8", "e9", "e10", "e11", "e12"],
                &[("e2", 1), ("e4", 4), ("e10", 2), ("e11", 3), ("e12", 1), ("e99", 0)],
            ),
        ];
        let expected = [
            [0.355_435_951_580_986_2, 0.666_666_666_666_666_6, 0.5],
            [0.630_929_753_571_457_5, 1.0, 0.5],
            [0.380_239_232_734_961_6, 0.6, 0.5],
        ];
        for ((ranking, graded), expected) in rankings.iter().zip(expected) {
            let grades = grades(graded);
            let scores = RetrievalScores::of(ranking, &grades);
            let given = [scores.ndcg_10, scores.recall_10, scores.reciprocal_rank_10];
            for (one, other) in given.into_iter().zip(expected) {
                assert!((one - other).abs() < 1e-9, "{given:?} {expected:?}");
            }
        }
    }

    #[test]
    fn nothing_found_and_nothing_relevant_are_zero() {
        assert_eq!(RetrievalScores::of::<&str>(&[], &grades(&[("a", 1)])).ndcg_10, 0.0);
        let none = RetrievalScores::of(&["a"], &grades(&[("a", 0)]));
        assert_eq!((none.ndcg_10, none.recall_10, none.reciprocal_rank_10), (0.0, 0.0, 0.0));
    }

    proptest! {
        /// Every metric lies within 0 … 1, is 1 for the ideal order, and swapping a better document up never lowers it.
        #[test]
        fn m41_metrics_are_bounded_and_monotonic(graded in prop::collection::vec(0u32..5, 1..30), at in 1usize..30) {
            let names: Vec<String> = (0..graded.len()).map(|index| format!("d{index}")).collect();
            let grades: Grades = names.iter().cloned().zip(graded.iter().copied()).collect();
            let scores = RetrievalScores::of(&names, &grades);
            for value in [scores.ndcg_10, scores.recall_10, scores.recall_100, scores.reciprocal_rank_10] {
                prop_assert!((0.0..=1.0 + 1e-12).contains(&value));
            }
            let mut ideal = names.clone();
            ideal.sort_by_key(|name| std::cmp::Reverse(grades[name]));
            if graded.iter().any(|&grade| grade > 0) {
                prop_assert!((ndcg(&ideal, &grades, 10) - 1.0).abs() < 1e-12);
            }
            if at < names.len() && grades[&names[at]] >= grades[&names[at - 1]] {
                let mut raised = names;
                raised.swap(at, at - 1);
                prop_assert!(ndcg(&raised, &grades, 10) + 1e-12 >= scores.ndcg_10);
            }
        }
    }
}
