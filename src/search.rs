//! Search: BM25 and dense, fused by score, the best of them read again by the cross-encoder; more than was asked, if wished.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use anchorite_core::{Budget, Embedder, Embedding, Generator, LimitExceeded, Passage, RetrieveError, Retriever, Role};
use anchorite_infer::{BiEncoder, CrossEncoder};
use anchorite_rag::{Expanded, Expansion, Parts, Variant, expand, merge};
use anchorite_store::{Filter, KnowledgeBase, Mode, Snapshot, Viewer};
use serde::Serialize;

use crate::ranking::{follow_links, prefer_recent, rank};
use crate::{Engine, Error};

/// Passages that each index gives to fusion.
pub(crate) const CANDIDATES: usize = 100;

/// What hypothetical passages weigh in the vector that is searched with; the query has the rest.
const HYPOTHETICAL_SHARE: f32 = 0.3;

/// Passages that the cross-encoder reads for a search.
pub const RERANKED: usize = 50;

/// Who looks, and what for beside the words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ViewOptions {
    /// Who looks; whoever holds the files sees everything.
    pub viewer: Viewer,
    /// Documents that don't fulfil it are not looked at.
    pub filter: Option<Filter>,
    /// Days in which a document loses half of what its age can cost it; `None` if age does not matter. See
    /// [`crate::Scores::recency`].
    pub half_life: Option<f64>,
}

impl ViewOptions {
    /// The knowledge base at `kb` as it is now, as far as it may be seen and is wanted.
    ///
    /// # Errors
    /// If it can't be opened.
    pub fn snapshot(&self, kb: &Path) -> Result<Snapshot, Error> {
        let snapshot = KnowledgeBase::at(kb).snapshot()?.seen_by(self.viewer.clone());
        Ok(match &self.filter {
            Some(filter) => snapshot.filtered(filter.clone()),
            None => snapshot,
        })
    }
}

/// How to search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchOptions {
    /// Passages to return.
    pub k: usize,
    /// Which indexes to ask.
    pub mode: Mode,
    /// Whether the cross-encoder reads the best of them.
    pub rerank: bool,
    /// Whether what the best of them name by title is looked at too; only with the cross-encoder.
    pub links: bool,
    /// Ways to ask more than was asked; those that need a generator open it.
    pub expand: Vec<Expansion>,
    /// Who looks, and what for beside the words.
    pub view: ViewOptions,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self { k: 10, mode: Mode::Hybrid, rerank: true, links: true, expand: Vec::new(), view: ViewOptions::default() }
    }
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchResults {
    /// The query.
    pub query: String,
    /// Generation of the knowledge base that was searched.
    pub generation: i64,
    /// Further queries that were asked, and what made them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    /// The passages, best first.
    pub results: Vec<Passage>,
    /// Beside each passage the query that found it, where there were several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub found_by: Vec<String>,
}

/// One state of a knowledge base with the models to search it.
pub struct KnowledgeRetriever {
    snapshot: Snapshot,
    embedder: Option<Arc<BiEncoder>>,
    reranker: Option<Arc<CrossEncoder>>,
    mode: Mode,
    depth: usize,
    links: bool,
    half_life: Option<f64>,
}

impl KnowledgeRetriever {
    /// The knowledge base as it was when the retriever was made.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The vector to search with: the query's, moved towards the mean of `hypothetical`.
    fn embed(&self, query: &str, hypothetical: &[String]) -> Result<Option<Embedding>, RetrieveError> {
        let Some(embedder) = &self.embedder else { return Ok(None) };
        let Some(vector) = embedder.embed(Role::Query, &[query])?.pop() else { return Ok(None) };
        let texts: Vec<&str> = hypothetical.iter().map(String::as_str).collect();
        if texts.is_empty() {
            return Ok(Some(vector));
        }
        let passages = embedder.embed(Role::Document, &texts)?;
        // Vectors that cancel each other out say nothing: the query alone does.
        Ok(Some(vector.blended(&passages, HYPOTHETICAL_SHARE).unwrap_or(vector)))
    }
}

impl Retriever for KnowledgeRetriever {
    fn retrieve(&self, query: &str, k: usize) -> Result<Vec<Passage>, RetrieveError> {
        self.retrieve_like(query, &[], k)
    }

    fn retrieve_like(&self, query: &str, hypothetical: &[String], k: usize) -> Result<Vec<Passage>, RetrieveError> {
        if query.trim().is_empty() {
            return Err(RetrieveError::EmptyQuery);
        }
        let vector = self.embed(query, hypothetical)?;
        // Age may bring forward what is not among the first.
        let wanted = if self.reranker.is_some() || self.half_life.is_some() { k.max(self.depth) } else { k };
        let mut passages = self
            .snapshot
            .search(query, vector.as_ref(), self.mode, wanted, CANDIDATES)
            .map_err(|error| RetrieveError::Store(Box::new(error)))?;
        if let Some(reranker) = &self.reranker {
            rank(reranker.as_ref(), query, &mut passages, self.depth)?;
            if self.links {
                follow_links(reranker.as_ref(), &self.snapshot, query, &mut passages)?;
            }
        }
        if let Some(half_life) = self.half_life {
            prefer_recent(&mut passages, half_life, SystemTime::now());
        }
        passages.truncate(k);
        Ok(passages)
    }
}

impl Engine {
    /// Opens a knowledge base for searching as `options` say; the cross-encoder reads the best `depth` passages.
    ///
    /// # Errors
    /// If it is none, was made with another bi-encoder, or a model can't be loaded.
    pub fn retriever(&self, kb: &Path, options: &SearchOptions, depth: usize) -> Result<KnowledgeRetriever, Error> {
        let &SearchOptions { mode, rerank, links, .. } = options;
        let snapshot = options.view.snapshot(kb)?;
        let embedder = match mode {
            Mode::Bm25 => None,
            Mode::Dense | Mode::Hybrid => {
                let embedder = self.models.embedder()?;
                snapshot.check_model(embedder.fingerprint(), embedder.dim())?;
                Some(embedder)
            }
        };
        let reranker = if rerank { self.models.reranker()? } else { None };
        let half_life = options.view.half_life;
        Ok(KnowledgeRetriever { snapshot, embedder, reranker, mode, depth, links, half_life })
    }

    /// Searches a knowledge base.
    ///
    /// # Errors
    /// If the query is empty or too long, the knowledge base can't be opened, or a model fails.
    pub fn search(&self, kb: &Path, query: &str, options: &SearchOptions) -> Result<SearchResults, Error> {
        self.check_question("query", query)?;
        LimitExceeded::check(|| "-k".to_owned(), "results", options.k as u64, self.limits.results as u64)?;
        let retriever = self.retriever(kb, options, RERANKED)?;
        self.search_with(&retriever, query, options.k, &options.expand)
    }

    /// Searches with a retriever that is open already, and in the given further ways.
    ///
    /// # Errors
    /// If a model can't be loaded or fails, or the database fails.
    pub fn search_with(
        &self,
        retriever: &KnowledgeRetriever,
        query: &str,
        k: usize,
        ways: &[Expansion],
    ) -> Result<SearchResults, Error> {
        let expanded = self.expand(retriever, query, ways)?;
        let mut results = SearchResults {
            query: query.to_owned(),
            generation: retriever.snapshot.generation().id,
            variants: expanded.queries,
            results: retriever.retrieve_like(query, &expanded.hypothetical, k)?,
            found_by: Vec::new(),
        };
        if !results.variants.is_empty() {
            let mut lists = vec![(query, std::mem::take(&mut results.results))];
            for variant in &results.variants {
                lists.push((&variant.text, retriever.retrieve(&variant.text, k)?));
            }
            let mut found = merge(lists);
            found.truncate(k);
            (results.results, results.found_by) = found.into_iter().map(|found| (found.passage, found.query)).unzip();
        }
        Ok(results)
    }

    /// What to look for beside `query` itself.
    ///
    /// # Errors
    /// If a model can't be loaded or fails.
    pub fn expand(&self, retriever: &KnowledgeRetriever, query: &str, ways: &[Expansion]) -> Result<Expanded, Error> {
        if ways.is_empty() {
            return Ok(Expanded::default());
        }
        let generator = if ways.iter().any(|way| way.needs_generator()) { self.models.generator()? } else { None };
        let parts = Parts {
            retriever,
            embedder: retriever.embedder.as_deref().map(|model| model as &dyn Embedder),
            reranker: None,
            generator: generator.as_deref().map(|model| model as &dyn Generator),
            probe: None,
            asker: None,
            settings: &self.settings,
        };
        Ok(expand(&parts, query, ways, &Budget::unlimited())?)
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
