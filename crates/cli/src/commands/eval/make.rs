//! `anchorite eval make`: a test set of one's own documents, for the other measurements.
//!
//! Questions are written by the generator from single passages and kept if they pass checks. One document in five is left
//! out of the set's corpus: what is asked of it has no answer there, and the right reply is to decline.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anchorite::core::Passage;
use anchorite::store::{KnowledgeBase, StoredDocument};
use anchorite::{Engine, ModelInUse};
use anchorite_eval::sampled;
use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::Progress;
use super::arguments::Make;
use crate::Found;
use crate::output::Output;

/// Bytes that a passage must have for a question to be made of it.
const LEAST_BYTES: usize = 120;
/// Documents looked at for each question wanted, at most.
const TRIES: usize = 6;
/// One document in so many is left out of the corpus.
const LEFT_OUT: u8 = 5;

#[derive(Serialize)]
struct Report {
    folder: String,
    documents: usize,
    questions: usize,
    unanswerable: usize,
    models: Vec<ModelInUse>,
}

pub(crate) fn run(engine: &Engine, arguments: &Make, output: &Output) -> Result<Found> {
    if engine.models().generator()?.is_none() {
        bail!("there is no generator to write questions; run `cargo xtask setup`, or name one with --generator");
    }
    let folder = &arguments.out;
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        bail!("{} is not empty; name a new folder", folder.display());
    }
    let snapshot = KnowledgeBase::at(&arguments.place.kb).snapshot()?;
    let all = snapshot.documents(0, usize::MAX)?;
    let mut progress = Progress::new(output, "questions".to_owned(), arguments.questions);
    let (mut queries, mut judged, mut unanswerable) = (Vec::new(), Vec::new(), 0);
    for summary in
        sampled(all.iter().collect(), |summary| &summary.source).into_iter().take(arguments.questions * TRIES)
    {
        if queries.len() == arguments.questions {
            break;
        }
        let Some(passage) = choose(snapshot.chunks_of(summary.id)?) else { continue };
        let Some(made) = engine.question_from(&passage)? else { continue };
        let answerable = !is_left_out(&summary.source);
        let id = format!("q{}", queries.len() + 1);
        let answers = if answerable { vec![made.answer.clone()] } else { Vec::new() };
        if answerable {
            judged.push(format!("{id}\t{}\t1", summary.source));
        } else {
            unanswerable += 1;
        }
        queries.push(
            json!({
                "_id": id, "text": made.question, "answers": answers, "answerable": answerable,
                "made_from": { "source": summary.source, "start": passage.start, "end": passage.end, "answer": made.answer },
            })
            .to_string(),
        );
        progress.at(queries.len());
    }
    if queries.is_empty() {
        bail!("no question could be made of the {} documents; they may be too short", all.len());
    }
    let mut corpus = Vec::new();
    for summary in all.iter().filter(|summary| !is_left_out(&summary.source)) {
        if let Some(StoredDocument { source, title, text, .. }) = snapshot.document(summary.id)? {
            corpus.push(json!({ "_id": source, "title": title, "text": text }).to_string());
        }
    }
    judged.insert(0, "query-id\tcorpus-id\tscore".to_owned());
    let files = BTreeMap::from([("corpus.jsonl", &corpus), ("queries.jsonl", &queries), ("qrels.tsv", &judged)]);
    fs::create_dir_all(folder).with_context(|| format!("can't make the folder {}", folder.display()))?;
    for (name, lines) in files {
        write(&folder.join(name), lines)?;
    }
    let report = Report {
        folder: folder.display().to_string(),
        documents: corpus.len(),
        questions: queries.len(),
        unanswerable,
        models: engine.models().in_use(),
    };
    if output.json {
        output.document(&report)?;
    } else {
        output.line(format_args!(
            "{} questions, {} of them without an answer, about {} documents: {}; read them before you trust them",
            report.questions, report.unanswerable, report.documents, report.folder
        ))?;
    }
    Ok(Found::Yes)
}

/// The longest passage, if it is long enough: short ones are headings and captions.
fn choose(passages: Vec<Passage>) -> Option<Passage> {
    passages.into_iter().max_by_key(|passage| passage.text.len()).filter(|passage| passage.text.len() >= LEAST_BYTES)
}

/// The same documents each time, whatever else there is.
fn is_left_out(source: &str) -> bool {
    Sha256::digest(format!("left out? {source}")).first().is_some_and(|byte| byte % LEFT_OUT == 0)
}

fn write(path: &Path, lines: &[String]) -> Result<()> {
    fs::write(path, lines.join("\n") + "\n").with_context(|| format!("can't write {}", path.display()))
}
