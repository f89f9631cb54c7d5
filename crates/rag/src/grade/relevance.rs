//! Decision 2: is a passage of use?

use anchorite_core::{InferenceError, Passage, Scores};
use serde::{Deserialize, Serialize};

use super::sigmoid;
use crate::Parts;

/// What a cross-encoder's logit of a passage is worth beside where the passage stood: log-odds that it helps, by logistic
/// regression on judged queries (`anchorite eval relevance`). The default is that of `ms-marco-MiniLM-L-12-v2`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelevanceScale {
    /// Multiplies the logit.
    pub logit: f32,
    /// Multiplies the fused score, 0 … 1.
    pub fused: f32,
    /// Is added where one of the best passages names the document: the second passage of a question of two steps does not
    /// look like an answer to it.
    pub linked: f32,
    /// Is added.
    pub constant: f32,
}

impl Default for RelevanceScale {
    fn default() -> Self {
        Self { logit: 0.15, fused: 2.2, linked: 2.8, constant: -3.4 }
    }
}

impl RelevanceScale {
    /// Probability that a passage helps whose logit is `logit` and that a search gave these scores. What no fusion has ranked
    /// has the logit alone, read as log-odds.
    #[must_use]
    pub fn probability(&self, logit: f32, scores: &Scores) -> f32 {
        let linked = if scores.linked_from.is_some() { self.linked } else { 0.0 };
        let sum = |fused: f32| self.logit * logit + self.fused * fused + linked + self.constant;
        sigmoid(scores.fused.map_or(logit, sum))
    }
}

/// For each passage the probability that it helps with one of `queries`, and which of them it helps most with. Without a
/// cross-encoder, cosine similarity is mapped to log-odds (0.4 is even).
///
/// # Errors
/// If the reranker fails.
pub fn relevance(
    parts: &Parts<'_>,
    passages: &[Passage],
    queries: &[&str],
) -> Result<Vec<(f32, usize)>, InferenceError> {
    let texts: Vec<String> = passages.iter().map(Passage::full_text).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut best: Vec<(f32, usize)> = passages
        .iter()
        .map(|passage| (passage.scores.dense.map_or(0.0, |cosine| sigmoid(12.0 * (cosine - 0.4))), 0))
        .collect();
    let scale = parts.settings.relevance_scale.unwrap_or_default();
    for (index, query) in queries.iter().enumerate() {
        let Some(logits) = parts.scores(query, &texts)? else { continue };
        for ((slot, logit), passage) in best.iter_mut().zip(logits).zip(passages) {
            let probability = scale.probability(logit, &passage.scores);
            if index == 0 || probability > slot.0 {
                *slot = (probability, index);
            }
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use anchorite_testkit::{ListRetriever, OverlapReranker};

    use super::*;
    use crate::Settings;

    #[test]
    fn m11_m20_what_is_named_by_a_good_passage_may_look_unlike_an_answer() {
        let (reranker, settings) = (OverlapReranker::default(), Settings::default());
        let retriever = ListRetriever::new(&[]);
        let parts = Parts {
            retriever: &retriever,
            embedder: None,
            reranker: Some(&reranker),
            generator: None,
            probe: None,
            asker: None,
            settings: &settings,
        };
        let passage = |text: &str, fused: f32, linked_from: Option<i64>| Passage {
            chunk: 1,
            document: 1,
            source: "a.md".to_owned(),
            title: String::new(),
            start: 0,
            end: text.len(),
            text: text.to_owned(),
            dated: 0,
            owner: String::new(),
            scores: Scores { fused: Some(fused), linked_from, ..Scores::default() },
        };
        let passages = [
            passage("The museum opens at nine.", 1.0, None),
            passage("Clara Winter sang in a choir.", 0.0, None),
            passage("Clara Winter sang in a choir.", 0.0, Some(7)),
        ];
        let graded = relevance(&parts, &passages, &["When does the museum open?"]).expect("grades");
        let [good, unrelated, named] = [0, 1, 2].map(|index: usize| graded[index].0);
        assert!(
            good > settings.relevance && unrelated < settings.relevance && named > settings.relevance,
            "{graded:?}"
        );
    }
}
