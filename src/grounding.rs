//! Grading a claim against a text, with the judges that the loop uses.

use anchorite_core::{Budget, Embedder, Generator, LimitExceeded, Passage, Reranker, Scores};
use anchorite_rag::{Parts, Settings, Signals, readable, support};
use anchorite_text::Chunker;

use crate::ask::Nothing;
use crate::ingest::chunker_for;
use crate::models::with_known;
use crate::{Engine, Error};

/// Tokens of evidence that the generator reads for a claim: what it has not read before takes its time.
const JUDGED: usize = 220;

/// What the loop's judges say of a claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClaimSupport {
    /// Probability that the text supports it: that of its least supported sentence.
    pub probability: f32,
    /// What that sentence's probability rests on; `None` if there is no sentence.
    pub signals: Option<Signals>,
    /// Tokens that the generator read for it.
    pub tokens_read: u64,
}

impl Engine {
    /// Probability that `evidence` supports `claim`, the answer to `question` (which may be empty). The evidence is cut
    /// into passages as a document is. `generator` false leaves the generator's opinion out.
    ///
    /// # Errors
    /// If the claim is empty, the evidence is too long, or a model fails.
    pub fn claim_support(
        &self,
        question: &str,
        claim: &str,
        evidence: &str,
        generator: bool,
    ) -> Result<ClaimSupport, Error> {
        if claim.trim().is_empty() {
            return Err(Error::EmptyInput { what: "claim" });
        }
        let (actual, allowed) = (evidence.len() as u64, self.limits.document_bytes as u64);
        LimitExceeded::check(|| "the length of the evidence".to_owned(), "document_bytes", actual, allowed)?;
        let embedder = self.models().embedder()?;
        let generator = if generator { self.models().generator()? } else { None };
        let reranker = self.models().reranker()?;
        let passages = passages(&chunker_for(&*embedder, &self.limits)?, evidence, &*embedder)?;
        let passages: Vec<&Passage> = passages.iter().collect();
        let settings = with_known(&self.settings, reranker.as_deref(), generator.as_deref());
        let settings = Settings { judge_tokens: Some(JUDGED), ..settings };
        let parts = Parts {
            retriever: &Nothing,
            embedder: Some(&*embedder),
            reranker: reranker.as_deref().map(|model| model as &dyn Reranker),
            generator: generator.as_deref().map(|model| model as &dyn Generator),
            probe: None,
            asker: None,
            settings: &settings,
        };
        let budget = Budget::unlimited();
        let (passages, notes) = readable(&parts, question, &passages);
        let grounding = support(&parts, question, claim, &passages, &notes, &budget)?;
        let least = grounding.signals.iter().copied().min_by(|a, b| a.probability().total_cmp(&b.probability()));
        // A text without a sentence states nothing, and nothing is supported.
        let probability = least.map_or(0.0, Signals::probability);
        Ok(ClaimSupport { probability, signals: least, tokens_read: budget.spent().tokens_read })
    }
}

fn passages(chunker: &Chunker, evidence: &str, embedder: &dyn Embedder) -> Result<Vec<Passage>, Error> {
    let passage = |chunk: anchorite_core::Chunk| Passage {
        chunk: i64::from(chunk.ordinal),
        document: 0,
        source: String::new(),
        title: String::new(),
        start: chunk.start,
        end: chunk.end,
        text: chunk.text,
        dated: 0,
        owner: String::new(),
        scores: Scores::default(),
    };
    Ok(chunker.chunk("", evidence, embedder)?.into_iter().map(passage).collect())
}
