//! A search that runs inside the lock: of the knowledge base given, or of a small one made there and then.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anchorite::store::KnowledgeBase;
use anchorite::{Engine, IngestOptions, SearchOptions};
use anyhow::{Context, Result, anyhow};
use serde::Serialize;

use crate::arguments::Doctor;
use crate::sealing;

/// What the small knowledge base holds.
const DOCUMENTS: &[(&str, &str)] = &[
    ("bakery.txt", "The bakery on the square opens at six in the morning. Its rye bread is sold out by nine.\n"),
    ("ferry.txt", "The ferry to the island leaves every hour. The last boat back departs at half past eight.\n"),
    ("library.txt", "The reading room of the town library closes at six on weekdays and at two on Saturdays.\n"),
    ("museum.txt", "The museum shows tools of clockmakers. Children under twelve pay nothing.\n"),
];

const QUERY: &str = "When does the library close on Saturday?";

/// What came of the search.
#[derive(Serialize)]
pub(super) struct Searched {
    pub(super) kb: PathBuf,
    pub(super) made_for_this: bool,
    pub(super) documents: u64,
    pub(super) query: String,
    pub(super) results: usize,
    pub(super) best_source: String,
    pub(super) best_text: String,
    pub(super) models: Vec<String>,
    pub(super) seconds: f64,
    /// Why it did not run.
    pub(super) problem: Option<String>,
}

pub(super) fn run(engine: &Engine, arguments: &Doctor) -> Searched {
    let mut searched = Searched {
        kb: arguments.kb.clone().unwrap_or_default(),
        made_for_this: arguments.kb.is_none(),
        documents: 0,
        query: arguments.query.clone().unwrap_or_default(),
        results: 0,
        best_source: String::new(),
        best_text: String::new(),
        models: Vec::new(),
        seconds: 0.0,
        problem: None,
    };
    let begin = Instant::now();
    let ran = match &arguments.kb {
        Some(kb) => existing(engine, kb, &mut searched),
        None => made(engine, &mut searched),
    };
    searched.seconds = begin.elapsed().as_secs_f64();
    searched.models =
        engine.models().in_use().into_iter().map(|model| format!("{} ({})", model.name, model.role)).collect();
    searched.problem = ran.err().map(|error| format!("{error:#}"));
    searched
}

/// Makes a knowledge base in the cache, which is open to the locked process, searches it, and removes it.
fn made(engine: &Engine, searched: &mut Searched) -> Result<()> {
    let folder = sealing::cache()?.join(format!("proof-{}", std::process::id()));
    let documents = folder.join("documents");
    fs::create_dir_all(&documents).with_context(|| format!("can't make the folder {}", documents.display()))?;
    searched.kb = folder.join("proof.kb");
    QUERY.clone_into(&mut searched.query);
    let ran = (|| {
        for (name, text) in DOCUMENTS {
            fs::write(documents.join(name), text).with_context(|| format!("can't write {name}"))?;
        }
        engine.ingest(
            &searched.kb.clone(),
            std::slice::from_ref(&documents),
            &IngestOptions::default(),
            &mut |_| {},
        )?;
        search(engine, &searched.kb.clone(), searched)
    })();
    let _ = fs::remove_dir_all(&folder);
    ran
}

/// Searches for what was asked, or for what the first document is called, which is there to be found.
fn existing(engine: &Engine, kb: &Path, searched: &mut Searched) -> Result<()> {
    if searched.query.is_empty() {
        let first = KnowledgeBase::at(kb).snapshot()?.documents(0, 1)?.into_iter().next();
        let first = first.ok_or_else(|| anyhow!("{} holds no document", kb.display()))?;
        searched.query = if first.title.trim().is_empty() { first.source } else { first.title };
    }
    search(engine, kb, searched)
}

fn search(engine: &Engine, kb: &Path, searched: &mut Searched) -> Result<()> {
    searched.documents = KnowledgeBase::at(kb).snapshot()?.stats()?.documents;
    let found = engine.search(kb, &searched.query, &SearchOptions::default())?;
    let best = found.results.first().ok_or_else(|| anyhow!("nothing was found for {:?}", searched.query))?;
    searched.results = found.results.len();
    searched.best_source.clone_from(&best.source);
    searched.best_text.clone_from(&best.text);
    Ok(())
}
