//! What the nodes work with.

use anchorite_core::{Generator, InferenceError, Passage, Reranker, Retriever};

use crate::Settings;

/// The parts of an engine that a graph uses. A missing reranker or generator makes the service smaller, not absent: grades
/// then rest on the bi-encoder, and answers are sentences taken from the passages.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    /// Finds passages.
    pub retriever: &'a dyn Retriever,
    /// Scores pairs of texts.
    pub reranker: Option<&'a dyn Reranker>,
    /// Writes.
    pub generator: Option<&'a dyn Generator>,
    /// Numbers that can be turned.
    pub settings: &'a Settings,
}

impl Parts<'_> {
    /// Logits of `texts` as answers to `query`; `None` without a reranker.
    ///
    /// # Errors
    /// If the reranker fails.
    pub fn scores(&self, query: &str, texts: &[&str]) -> Result<Option<Vec<f32>>, InferenceError> {
        match self.reranker {
            Some(reranker) if !texts.is_empty() => reranker.score(query, texts).map(Some),
            _ => Ok(None),
        }
    }
}

/// Passages that fit into `tokens`, from the first on; the rest is left out, never the question (F22).
pub(crate) fn fit<'p>(passages: &[&'p Passage], tokens: usize, generator: &dyn Generator) -> Vec<&'p Passage> {
    let mut left = tokens;
    let mut kept = Vec::new();
    for passage in passages {
        let cost = generator.count(&passage.full_text()) + 8;
        if cost > left {
            break;
        }
        left -= cost;
        kept.push(*passage);
    }
    kept
}
