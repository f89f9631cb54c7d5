//! Decision 2: is a passage of use?

use anchorite_core::{InferenceError, Passage};

use super::sigmoid;
use crate::Parts;

/// Weights of the cross-encoder's logit, of the fused score and of being named by one of the best passages, and the
/// constant, by logistic regression. On the first ten passages of 60 queries each of hotpotqa, musique and twowiki they
/// order with an AUROC of .87, the logit alone with .77 (the second passage of a question of two steps does not look like
/// an answer to it), and say .18 on average where .21 is true.
const LOGIT: f32 = 0.15;
const FUSED: f32 = 2.2;
const LINKED: f32 = 2.8;
const CONSTANT: f32 = -3.4;

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
    for (index, query) in queries.iter().enumerate() {
        let Some(logits) = parts.scores(query, &texts)? else { continue };
        for ((slot, logit), passage) in best.iter_mut().zip(logits).zip(passages) {
            let linked = if passage.scores.linked_from.is_some() { LINKED } else { 0.0 };
            // Passages that no fusion has ranked have the logit alone, read as log-odds.
            let sum = passage.scores.fused.map_or(logit, |fused| LOGIT * logit + FUSED * fused + linked + CONSTANT);
            let probability = sigmoid(sum);
            if index == 0 || probability > slot.0 {
                *slot = (probability, index);
            }
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use anchorite_core::Scores;
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
