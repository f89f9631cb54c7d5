//! Why a search does not find a document: each stage is asked in turn whether it still has it.

use std::path::Path;

use anchorite_core::{Embedder, Embedding, Passage, Reranker, Retriever, Role, days};
use anchorite_rag::{Parts, relevance};
use anchorite_store::{Hit, KnowledgeBase, Placed, Snapshot, StoreError, StoredDocument, Viewer};
use serde::Serialize;

use crate::management::find_document;
use crate::models::with_known;
use crate::search::{CANDIDATES, RERANKED};
use crate::{Engine, Error, SearchOptions, ViewOptions};

/// Ranks by words are looked for down to here.
const DEEPEST: usize = 100_000;

/// A stage, and what it made of the document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stage {
    /// Its name.
    pub name: &'static str,
    /// Whether it passed the document on.
    pub kept: bool,
    /// What it saw.
    pub finding: String,
}

/// The way of a document through a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WhyNot {
    /// The query.
    pub query: String,
    /// The document as it was named.
    pub document: String,
    /// The stages, in order, down to the one that lost it.
    pub stages: Vec<Stage>,
    /// The stage that lost it; `None` if it is found.
    pub lost_at: Option<&'static str>,
    /// The least change that would keep it.
    pub remedy: Option<String>,
    /// Its rank, where it is found.
    pub rank: Option<usize>,
}

impl WhyNot {
    fn kept(&mut self, name: &'static str, finding: impl Into<String>) {
        self.stages.push(Stage { name, kept: true, finding: finding.into() });
    }

    fn lost(mut self, name: &'static str, finding: impl Into<String>, remedy: impl Into<String>) -> Self {
        self.stages.push(Stage { name, kept: false, finding: finding.into() });
        self.lost_at = Some(name);
        self.remedy = Some(remedy.into());
        self
    }
}

impl Engine {
    /// Follows `document` (a source or a number) through a search for `query` that wants `k` passages. Of what the viewer
    /// may not see nothing is told but that it is not there.
    ///
    /// # Errors
    /// If the query is empty, the knowledge base can't be opened, or a model fails.
    pub fn why_not(
        &self,
        kb: &Path,
        document: &str,
        query: &str,
        view: ViewOptions,
        k: usize,
    ) -> Result<WhyNot, Error> {
        self.check_question("query", query)?;
        let mut way = WhyNot { query: query.to_owned(), document: document.to_owned(), ..WhyNot::default() };
        let all = KnowledgeBase::at(kb).snapshot()?.seen_by(view.viewer.clone());
        let stored = match find_document(&all, document) {
            Ok(stored) => stored,
            Err(Error::NoSuchDocument { .. }) => return absent(way, &all, document, &view.viewer),
            Err(error) => return Err(error),
        };
        let chunks: Vec<i64> = all.chunks_of(stored.id)?.iter().map(|passage| passage.chunk).collect();
        let since = format!(
            "document {} since generation {} ({})",
            stored.id,
            stored.generation,
            days::moment(stored.added_at)
        );
        way.kept("ingest", since);
        if chunks.is_empty() {
            let finding = "it has no text that could be cut";
            return Ok(way.lost("cut", finding, "look at what was read of it: `anchorite kb show`"));
        }
        way.kept("cut", format!("{} chunks", chunks.len()));
        if let Some(filter) = &view.filter {
            if all.filtered(filter.clone()).document(stored.id)?.is_none() {
                let finding = format!("its metadata do not fulfil the condition: {}", metadata(&stored));
                return Ok(way.lost(
                    "filter",
                    finding,
                    "leave --where out, or change the metadata with `anchorite kb set`",
                ));
            }
            way.kept("filter", "it fulfils the condition");
        }
        let options = SearchOptions { view, ..SearchOptions::default() };
        let retriever = self.retriever(kb, &options, RERANKED)?;
        self.through_search(way, &retriever, &options, &stored, &chunks, k)
    }

    fn through_search(
        &self,
        mut way: WhyNot,
        retriever: &crate::KnowledgeRetriever,
        options: &SearchOptions,
        stored: &StoredDocument,
        chunks: &[i64],
        k: usize,
    ) -> Result<WhyNot, Error> {
        let (snapshot, query) = (retriever.snapshot(), way.query.clone());
        let embedder = self.models.embedder()?;
        let Some(vector) = embedder.embed(Role::Query, &[&query])?.pop() else { return Ok(way) };
        let (words, dense) = (by_words(snapshot, &query, chunks)?, by_meaning(snapshot, &vector, chunks)?);
        let told = |place: &Option<Placed>, nothing: &str| match place {
            Some(placed) => format!("rank {}, score {:.3}", placed.rank, placed.score),
            None => nothing.to_owned(),
        };
        let exact = snapshot.exact_place(&vector, chunks)?;
        let within = |place: &Option<Placed>| place.is_some_and(|placed| placed.rank <= CANDIDATES);
        let finding = told(&words, "no word of the query is in it or its title");
        way.stages.push(Stage { name: "words", kept: within(&words), finding });
        if within(&exact) && !within(&dense) && !within(&words) {
            let finding = format!("{} by exact search, and the index of vectors misses it", told(&exact, ""));
            return Ok(way.lost(
                "ann",
                finding,
                "have the index built anew: `anchorite kb verify --repair`, `anchorite kb compact`",
            ));
        }
        way.stages.push(Stage { name: "meaning", kept: within(&dense), finding: told(&exact, "it has no vector") });
        let found = snapshot.search(&query, Some(&vector), options.mode, DEEPEST, CANDIDATES)?;
        let own =
            |passages: &[Passage]| passages.iter().position(|passage| passage.document == stored.id).map(|at| at + 1);
        let Some(fused) = own(&found) else {
            let nearest = [&words, &exact].into_iter().flatten().map(|placed| placed.rank).min().unwrap_or(0);
            let remedy = format!(
                "put into the query what stands in it (its title: \"{}\"); by words or meaning it is {nearest}th, and {CANDIDATES} are fused",
                stored.title
            );
            return Ok(way.lost("fusion", format!("neither ranking has it among its first {CANDIDATES}"), remedy));
        };
        let reranker = self.models.reranker()?;
        let ranked = retriever.retrieve(&query, RERANKED.max(k))?;
        let Some(rank) = own(&ranked) else {
            let remedy = format!("ask for {fused} passages (-k {fused})");
            return Ok(way.lost(
                "fusion",
                format!("rank {fused} of both rankings together; {RERANKED} are read on"),
                remedy,
            ));
        };
        way.kept("fusion", format!("rank {fused} of both rankings together"));
        let name = if reranker.is_some() { "rerank" } else { "order" };
        let logit = ranked[rank - 1].scores.rerank.map(|logit| format!(", logit {logit:.2}")).unwrap_or_default();
        if rank > k {
            let remedy = if fused <= k && reranker.is_some() {
                format!("leave the cross-encoder out (--no-rerank), or ask for {rank} passages (-k {rank})")
            } else {
                format!("ask for {rank} passages (-k {rank})")
            };
            return Ok(way.lost(name, format!("rank {rank}{logit}; {k} are wanted"), remedy));
        }
        way.kept(name, format!("rank {rank}{logit}"));
        way.rank = Some(rank);
        let settings = &with_known(&self.settings, reranker.as_deref(), None);
        let parts = Parts {
            retriever,
            embedder: None,
            reranker: reranker.as_deref().map(|model| model as &dyn Reranker),
            generator: None,
            probe: None,
            asker: None,
            settings,
        };
        let graded = relevance(&parts, &ranked[rank - 1..rank], &[&query])?;
        let probability = graded.first().map_or(0.0, |(probability, _)| *probability);
        let finding = format!("helps with probability {probability:.2}; `ask` keeps from {:.2} on", settings.relevance);
        if probability < settings.relevance {
            let remedy = format!(
                "`search` shows it; for `ask` lower `relevance` in [loop] of anchorite.toml to {probability:.2}"
            );
            return Ok(way.lost("grade", finding, remedy));
        }
        way.kept("grade", finding);
        Ok(way)
    }
}

/// What became of something that is not there, as far as its owner may know.
fn absent(way: WhyNot, snapshot: &Snapshot, name: &str, viewer: &Viewer) -> Result<WhyNot, Error> {
    const REMEDY: &str = "ingest it, or name it as `anchorite kb sources` does";
    if *viewer != Viewer::Holder {
        return Ok(way.lost("ingest", "there is no such document", REMEDY));
    }
    Ok(match snapshot.audit(Some(name), 1)?.first() {
        Some(last) => {
            let by = if last.actor.is_empty() { String::new() } else { format!(" by {}", last.actor) };
            let finding = format!(
                "it was there; in generation {} ({}) it went: {}{by}",
                last.generation,
                days::moment(last.at),
                last.action.as_str()
            );
            way.lost("ingest", finding, "ingest it again, or see `anchorite kb rollback`")
        }
        None => way.lost("ingest", "it was never taken in", REMEDY),
    })
}

fn metadata(stored: &StoredDocument) -> String {
    serde_json::to_string(&stored.metadata).unwrap_or_default().chars().take(200).collect()
}

/// The best place of one of `chunks` in a list.
fn placed(hits: &[Hit], chunks: &[i64]) -> Option<Placed> {
    let at = hits.iter().position(|hit| chunks.contains(&hit.chunk))?;
    Some(Placed { rank: at + 1, score: hits[at].score })
}

fn by_words(snapshot: &Snapshot, query: &str, chunks: &[i64]) -> Result<Option<Placed>, StoreError> {
    Ok(placed(&snapshot.bm25(query, DEEPEST)?, chunks))
}

/// As the search itself finds it, by the index where there is one.
fn by_meaning(snapshot: &Snapshot, vector: &Embedding, chunks: &[i64]) -> Result<Option<Placed>, StoreError> {
    Ok(placed(&snapshot.dense(vector, CANDIDATES)?, chunks))
}
