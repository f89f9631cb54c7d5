//! The knowledge base of a test collection: made once, in parts, and kept.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use anchorite::core::{Embedder, Passage};
use anchorite::store::Snapshot;
use anchorite::{Engine, IngestOptions, SecretPolicy};
use anchorite_eval::{Collection, Record};
use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Progress;
use crate::output::Output;

/// Documents of one part. A part is one transaction: a run that is stopped loses the part it was in.
const PART: usize = 500;

/// Folder of the parts, which are removed once they are in.
const PARTS: &str = "parts";

/// What was taken in so far.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct TakenIn {
    /// Lines of the corpus read.
    pub(crate) documents: usize,
    /// Chunks made of them.
    pub(crate) chunks: u64,
    /// Documents left out since they hold no text, and documents that failed.
    pub(crate) left_out: usize,
    /// Seconds it took, over all runs.
    pub(crate) seconds: f64,
    complete: bool,
}

/// A collection's knowledge base.
pub(crate) struct Knowledge {
    /// The knowledge base.
    pub(crate) kb: PathBuf,
    /// Folder for results on it.
    pub(crate) folder: PathBuf,
    /// What it holds.
    pub(crate) taken_in: TakenIn,
    /// Beginning of each source in it.
    prefix: String,
}

impl Knowledge {
    /// Finds it in `cache`, or makes it there.
    pub(crate) fn of(engine: &Engine, collection: &Collection, cache: &Path, output: &Output) -> Result<Self> {
        let embedder = engine.models().embedder()?;
        let depends_on = [collection.corpus_hash()?, embedder.fingerprint().sha256.clone(), engine.ingest_settings()];
        let key: String =
            Sha256::digest(depends_on.join("\n")).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        let folder = cache.join(format!("{}-{key}", collection.name));
        let parts = folder.join(PARTS);
        fs::create_dir_all(&parts).with_context(|| format!("can't make the folder {}", parts.display()))?;
        let state = folder.join("taken-in.json");
        let mut taken_in: TakenIn = match fs::read(&state) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            Err(_) => TakenIn::default(),
        };
        let kb = folder.join("collection.kb");
        if !taken_in.complete {
            let mut records = collection.records()?.skip(taken_in.documents);
            let mut progress = Progress::new(output, format!("{}: documents taken in", collection.name), 0);
            loop {
                let part: Vec<Record> = records.by_ref().take(PART).collect::<Result<_, _>>()?;
                if part.is_empty() {
                    break;
                }
                let path = parts.join(format!("{:06}.jsonl", taken_in.documents));
                let lines: Vec<&str> = part.iter().map(|record| record.line.as_str()).collect();
                fs::write(&path, lines.join("\n")).with_context(|| format!("can't write {}", path.display()))?;
                // Collections are public, and what looks like a secret in them is none.
                let options = IngestOptions { secrets: SecretPolicy::Allow, ..IngestOptions::default() };
                let report = engine.ingest(&kb, std::slice::from_ref(&path), &options, &mut |_| {})?;
                if let Some(failed) = report.failed.first() {
                    output.remark(format_args!("{}: not taken in: {}", collection.name, failed.reason));
                }
                taken_in.documents += part.len();
                taken_in.chunks += report.chunks;
                taken_in.left_out += report.failed.len() + report.skipped.len();
                taken_in.seconds += report.seconds;
                keep(&state, &taken_in)?;
                fs::remove_file(&path).with_context(|| format!("can't remove {}", path.display()))?;
                progress.total = taken_in.documents;
                progress.at(taken_in.documents);
            }
            taken_in.complete = true;
            keep(&state, &taken_in)?;
        }
        let prefix = format!("{}/", parts.display()).replace(std::path::MAIN_SEPARATOR, "/");
        Ok(Self { kb, folder, taken_in, prefix })
    }

    /// The document of the collection that `source` came from.
    pub(crate) fn document<'s>(&self, source: &'s str) -> Result<&'s str> {
        let record = source.strip_prefix(&self.prefix).and_then(|rest| rest.split_once(".jsonl#"));
        record
            .map(|(_, id)| id)
            .ok_or_else(|| anyhow!("{} was made in another place; delete {}", self.kb.display(), self.folder.display()))
    }

    /// Documents in the order of their best passages, with the scores of these. Documents with the same content are one
    /// in the knowledge base: each of them stands in the ranking. `excluded` ones do not.
    pub(crate) fn ranking(
        &self,
        snapshot: &Snapshot,
        known: &mut HashMap<i64, Vec<String>>,
        passages: &[Passage],
        excluded: &[String],
    ) -> Result<Vec<(String, f32)>> {
        let mut seen = HashSet::new();
        let mut ranking = Vec::new();
        for passage in passages.iter().filter(|passage| seen.insert(passage.document)) {
            let documents = match known.get(&passage.document) {
                Some(documents) => documents,
                None => {
                    let stored = snapshot.document(passage.document)?;
                    let sources =
                        stored.iter().flat_map(|stored| std::iter::once(&stored.source).chain(&stored.aliases));
                    let documents = sources.map(|source| Ok(self.document(source)?.to_owned()));
                    known.entry(passage.document).or_insert(documents.collect::<Result<_>>()?)
                }
            };
            let scores = &passage.scores;
            let score = scores.blended.or(scores.fused).or(scores.dense).or(scores.bm25).unwrap_or_default();
            ranking.extend(
                documents
                    .iter()
                    .filter(|document| !excluded.contains(document))
                    .map(|document| (document.clone(), score)),
            );
        }
        Ok(ranking)
    }
}

fn keep(path: &Path, taken_in: &TakenIn) -> Result<()> {
    let text = serde_json::to_string(taken_in)?;
    fs::write(path, text).with_context(|| format!("can't write {}", path.display()))
}
