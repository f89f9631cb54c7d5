//! Decision 2: is a passage of use?

use anchorite_core::{InferenceError, Passage};

use super::sigmoid;
use crate::Parts;

/// For each passage the probability that it helps with one of `queries`, and which of them it helps most with. The
/// cross-encoder's logit is read as log-odds, which is how such models are trained; without one, cosine similarity is
/// mapped to log-odds (0.4 is even).
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
        let Some(scores) = parts.scores(query, &texts)? else { continue };
        for (slot, score) in best.iter_mut().zip(scores) {
            let probability = sigmoid(score);
            if index == 0 || probability > slot.0 {
                *slot = (probability, index);
            }
        }
    }
    Ok(best)
}
