//! What the nodes work with.

use anchorite_core::{Budget, Embedder, Generator, InferenceError, Passage, Prompt, Reranker, Retriever, Role};

use crate::{Piece, Probe, Settings};

/// The parts of an engine that a graph uses. A missing reranker or generator makes the service smaller, not absent: grades
/// then rest on the bi-encoder, and answers are sentences taken from the passages.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    /// Finds passages.
    pub retriever: &'a dyn Retriever,
    /// Says how near texts are to each other in meaning.
    pub embedder: Option<&'a dyn Embedder>,
    /// Scores pairs of texts.
    pub reranker: Option<&'a dyn Reranker>,
    /// Writes.
    pub generator: Option<&'a dyn Generator>,
    /// Reads from the generator's state whether passages hold an answer.
    pub probe: Option<&'a Probe>,
    /// Who asks, where that is not the holder of the files.
    pub asker: Option<&'a str>,
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

    /// The generator's probability of "Yes" to a question of judgement, for what it is worth; `None` without a generator, or
    /// if its opinion is worth nothing.
    ///
    /// # Errors
    /// If the generator fails or the budget is used up.
    pub fn opinion(&self, prompt: &Prompt, budget: &Budget) -> Result<Option<f32>, InferenceError> {
        let scale = self.settings.opinion.unwrap_or_default();
        match self.generator {
            Some(generator) if scale.slope > 0.0 => {
                Ok(scale.weigh(generator.choose(prompt, &["Yes", "No"], budget)?[0]))
            }
            _ => Ok(None),
        }
    }

    /// Probability that the passages of `prompt` hold the answer it asks for, as the generator's state tells; `None` where
    /// there is no probe for this generator.
    ///
    /// # Errors
    /// If the generator fails or the budget is used up.
    pub fn held(&self, prompt: &Prompt, budget: &Budget) -> Result<Option<f32>, InferenceError> {
        let (Some(generator), Some(probe)) = (self.generator, self.probe.filter(|_| self.settings.has(Piece::Held)))
        else {
            return Ok(None);
        };
        let states = generator.states(prompt, &[probe.layer], budget)?;
        Ok(states.and_then(|states| probe.probability(states.first()?)))
    }

    /// Cosine similarity of each of `texts` to `query`, as queries; `None` without a bi-encoder.
    ///
    /// # Errors
    /// If the bi-encoder fails.
    pub fn similarities(&self, query: &str, texts: &[&str]) -> Result<Option<Vec<f32>>, InferenceError> {
        let Some(embedder) = self.embedder.filter(|_| !texts.is_empty()) else { return Ok(None) };
        let all: Vec<&str> = std::iter::once(query).chain(texts.iter().copied()).collect();
        let vectors = embedder.embed(Role::Query, &all)?;
        Ok(vectors.split_first().map(|(query, texts)| texts.iter().map(|text| query.cosine(text)).collect()))
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
