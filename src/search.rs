//! Search: BM25 and dense, fused by score, the best of them read again by the cross-encoder.

use std::path::Path;
use std::sync::Arc;

use anchorite_core::{Embedder, Embedding, LimitExceeded, Passage, Reranker, RetrieveError, Retriever, Role};
use anchorite_infer::{BiEncoder, CrossEncoder};
use anchorite_store::{KnowledgeBase, Mode, Snapshot};
use serde::Serialize;

use crate::{Engine, Error};

/// Passages that each index gives to fusion.
const CANDIDATES: usize = 100;

/// Passages that the cross-encoder reads for a search.
pub const RERANKED: usize = 50;

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchOptions {
    /// Passages to return.
    pub k: usize,
    /// Which indexes to ask.
    pub mode: Mode,
    /// Whether the cross-encoder orders the best of them.
    pub rerank: bool,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self { k: 10, mode: Mode::Hybrid, rerank: true }
    }
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchResults {
    /// The query.
    pub query: String,
    /// Generation of the knowledge base that was searched.
    pub generation: i64,
    /// The passages, best first.
    pub results: Vec<Passage>,
}

/// One state of a knowledge base with the models to search it.
pub struct KnowledgeRetriever {
    snapshot: Snapshot,
    embedder: Option<Arc<BiEncoder>>,
    reranker: Option<Arc<CrossEncoder>>,
    mode: Mode,
    depth: usize,
}

impl KnowledgeRetriever {
    /// The knowledge base as it was when the retriever was made.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    fn embed(&self, query: &str) -> Result<Option<Embedding>, RetrieveError> {
        match &self.embedder {
            Some(embedder) => Ok(embedder.embed(Role::Query, &[query])?.pop()),
            None => Ok(None),
        }
    }
}

impl Retriever for KnowledgeRetriever {
    fn retrieve(&self, query: &str, k: usize) -> Result<Vec<Passage>, RetrieveError> {
        if query.trim().is_empty() {
            return Err(RetrieveError::EmptyQuery);
        }
        let vector = self.embed(query)?;
        let wanted = if self.reranker.is_some() { k.max(self.depth) } else { k };
        let mut passages = self
            .snapshot
            .search(query, vector.as_ref(), self.mode, wanted, CANDIDATES)
            .map_err(|error| RetrieveError::Store(Box::new(error)))?;
        if let Some(reranker) = &self.reranker {
            rerank(reranker.as_ref(), query, &mut passages, self.depth)?;
        }
        passages.truncate(k);
        Ok(passages)
    }
}

/// Orders the first `depth` of `passages` by cross-encoder; what follows keeps its place behind them.
fn rerank(reranker: &dyn Reranker, query: &str, passages: &mut [Passage], depth: usize) -> Result<(), RetrieveError> {
    let depth = passages.len().min(depth);
    let head = &mut passages[..depth];
    let texts: Vec<String> = head.iter().map(Passage::full_text).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for (passage, score) in head.iter_mut().zip(reranker.score(query, &texts)?) {
        passage.scores.rerank = Some(score);
    }
    // Equal scores keep the order of fusion, since the sort is stable.
    head.sort_by(|a, b| b.scores.rerank.partial_cmp(&a.scores.rerank).unwrap_or(std::cmp::Ordering::Equal));
    for (index, passage) in head.iter_mut().enumerate() {
        passage.scores.rerank_rank = Some(index + 1);
    }
    Ok(())
}

impl Engine {
    /// Opens a knowledge base for searching; the cross-encoder, if `rerank` says so, reads the best `depth` passages.
    ///
    /// # Errors
    /// If it is none, was made with another bi-encoder, or a model can't be loaded.
    pub fn retriever(&self, kb: &Path, mode: Mode, rerank: bool, depth: usize) -> Result<KnowledgeRetriever, Error> {
        let snapshot = KnowledgeBase::at(kb).snapshot()?;
        let embedder = match mode {
            Mode::Bm25 => None,
            Mode::Dense | Mode::Hybrid => {
                let embedder = self.models.embedder()?;
                snapshot.check_model(embedder.fingerprint(), embedder.dim())?;
                Some(embedder)
            }
        };
        let reranker = if rerank { self.models.reranker()? } else { None };
        Ok(KnowledgeRetriever { snapshot, embedder, reranker, mode, depth })
    }

    /// Searches a knowledge base.
    ///
    /// # Errors
    /// If the query is empty or too long, the knowledge base can't be opened, or a model fails.
    pub fn search(&self, kb: &Path, query: &str, options: SearchOptions) -> Result<SearchResults, Error> {
        self.check_question("query", query)?;
        LimitExceeded::check(|| "-k".to_owned(), "results", options.k as u64, self.limits.results as u64)?;
        let retriever = self.retriever(kb, options.mode, options.rerank, RERANKED)?;
        let results = retriever.retrieve(query, options.k)?;
        Ok(SearchResults { query: query.to_owned(), generation: retriever.snapshot.generation().id, results })
    }

    pub(crate) fn check_question(&self, what: &'static str, text: &str) -> Result<(), Error> {
        if text.trim().is_empty() {
            return Err(Error::EmptyInput { what });
        }
        let length = text.chars().count() as u64;
        LimitExceeded::check(
            || format!("the length of the {what}"),
            "question_chars",
            length,
            self.limits.question_chars as u64,
        )?;
        Ok(())
    }
}
