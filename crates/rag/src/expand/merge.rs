//! One list of passages from the lists of several queries.

use std::collections::HashMap;

use anchorite_core::Passage;
use serde::{Deserialize, Serialize};

/// A passage, and the query that it answers best.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The passage, with the scores of that query.
    pub passage: Passage,
    /// The query.
    pub query: String,
}

/// Merges what several queries found: each passage once, with its best score and the query that gave it. Best first; of
/// equal scores, what an earlier query found comes first.
#[must_use]
pub fn merge<Q: AsRef<str>>(lists: Vec<(Q, Vec<Passage>)>) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let mut places: HashMap<i64, usize> = HashMap::new();
    for (query, passages) in lists {
        for passage in passages {
            match places.get(&passage.chunk) {
                Some(&place) if score(&passage) > score(&found[place].passage) => {
                    found[place] = Found { passage, query: query.as_ref().to_owned() };
                }
                Some(_) => {}
                None => {
                    places.insert(passage.chunk, found.len());
                    found.push(Found { passage, query: query.as_ref().to_owned() });
                }
            }
        }
    }
    found.sort_by(|a, b| score(&b.passage).total_cmp(&score(&a.passage)));
    found
}

/// What the last stage that saw a passage ordered by.
fn score(passage: &Passage) -> f32 {
    let scores = &passage.scores;
    scores.blended.or(scores.rerank).or(scores.fused).or(scores.dense).or(scores.bm25).unwrap_or(f32::NEG_INFINITY)
}

#[cfg(test)]
mod tests {
    use anchorite_core::Scores;

    use super::*;

    fn passage(chunk: i64, fused: f32) -> Passage {
        Passage {
            chunk,
            document: chunk,
            source: format!("{chunk}.md"),
            title: String::new(),
            start: 0,
            end: 1,
            text: "x".to_owned(),
            dated: 0,
            owner: String::new(),
            scores: Scores { fused: Some(fused), ..Scores::default() },
        }
    }

    #[test]
    fn m25_each_passage_comes_once_with_its_best_score_and_query() {
        let lists = vec![
            ("one", vec![passage(1, 0.9), passage(2, 0.2)]),
            ("two", vec![passage(2, 0.8), passage(3, 0.5), passage(1, 0.1)]),
        ];
        let found = merge(lists);
        let seen: Vec<(i64, &str)> = found.iter().map(|found| (found.passage.chunk, found.query.as_str())).collect();
        assert_eq!(seen, [(1, "one"), (2, "two"), (3, "two")]);
        assert_eq!(found[1].passage.scores.fused, Some(0.8));
    }
}
