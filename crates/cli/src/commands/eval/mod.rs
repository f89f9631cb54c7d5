//! `anchorite eval`: the engine measured on test collections.

mod answers;
pub(crate) mod arguments;
mod attacks;
mod grounding;
mod held;
mod knowledge;
mod make;
mod questions;
mod relevance;
mod retrieval;

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anchorite::Engine;
use anchorite_eval::{Collection, collections};
use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use crate::Found;
use crate::output::Output;
use arguments::{Data, Eval, EvalAction};

/// Seconds between two lines of progress.
const PROGRESS: f64 = 15.0;

pub(crate) fn run(engine: &Engine, arguments: &Eval, output: &Output) -> Result<Found> {
    match &arguments.action {
        EvalAction::Retrieval(arguments) => retrieval::run(engine, arguments, output),
        EvalAction::Grounding(arguments) => grounding::run(engine, arguments, output),
        EvalAction::Relevance(arguments) => relevance::run(engine, arguments, output),
        EvalAction::Held(arguments) => held::run(engine, arguments, output),
        EvalAction::Make(arguments) => make::run(engine, arguments, output),
        EvalAction::Qa(arguments) => questions::run(engine, arguments, &["multi-agent"], output),
        EvalAction::Attacks(arguments) => attacks::run(engine, arguments, output),
        EvalAction::Loop(arguments) => questions::run(engine, arguments, &["single-shot", "multi-agent"], output),
    }
}

/// The folder that keeps what is worth keeping between runs.
fn cache(named: Option<&Path>) -> Result<PathBuf> {
    let folder = match named {
        Some(folder) => folder.to_owned(),
        None => anchorite::model_files::cache_folder()
            .ok_or_else(|| anyhow!("there is no home folder to keep a cache in; name a folder with --cache"))?
            .join("eval"),
    };
    std::fs::create_dir_all(&folder).with_context(|| format!("can't make the folder {}", folder.display()))?;
    // Sources of documents begin with this path, so that it must read the same in every run.
    std::fs::canonicalize(&folder).with_context(|| format!("can't find the folder {}", folder.display()))
}

/// The sets that say which documents a query is answered by.
fn judged_sets(data: &Data, output: &Output) -> Result<Vec<Collection>> {
    let mut found = collections(&data.data, &data.sets)?;
    found.retain(|collection| {
        let judged = !collection.judged_queries().is_empty();
        if !judged {
            output.remark(format_args!("{}: no query has a relevant document; left out", collection.name));
        }
        judged
    });
    if found.is_empty() {
        bail!("{}: no set has judgements (qrels.tsv)", data.data.display());
    }
    Ok(found)
}

/// Tells builds of the program apart: results of one are not taken for results of another.
fn build() -> Value {
    let metadata = std::env::current_exe().and_then(std::fs::metadata);
    let modified = metadata.as_ref().ok().and_then(|metadata| metadata.modified().ok());
    // A whole number, since it is compared with what was written to a file: a fraction need not be read back to the bit.
    let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map(|time| time.as_micros() as u64);
    json!([metadata.map(|metadata| metadata.len()).unwrap_or_default(), since])
}

/// Says how far a long run is, now and then.
struct Progress<'a> {
    output: &'a Output,
    what: String,
    total: usize,
    started: std::time::Instant,
    told: f64,
}

impl<'a> Progress<'a> {
    fn new(output: &'a Output, what: String, total: usize) -> Self {
        Self { output, what, total, started: std::time::Instant::now(), told: 0.0 }
    }

    fn at(&mut self, done: usize) {
        let seconds = self.started.elapsed().as_secs_f64();
        if seconds - self.told >= PROGRESS {
            self.told = seconds;
            self.output.remark(format_args!("{}: {done} of {}, {seconds:.0} s", self.what, self.total));
        }
    }
}
