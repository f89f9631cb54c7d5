//! `anchorite eval held`: can the generator's states tell whether passages hold the answer, and a probe that reads them.

use std::path::Path;

use anchorite::core::Generator;
use anchorite::{Engine, ModelInUse, Probe};
use anchorite_eval::{Collection, Ledger, Logistic, Query, Table, auroc, collections, cross_validated, sampled};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::arguments::{Held, Only};
use super::knowledge::Knowledge;
use super::{Progress, build, cache};
use crate::Found;
use crate::output::Output;

/// Parts that questions are dealt into: each is judged by a probe fitted to the others.
const FOLDS: usize = 8;

/// A question as the generator met it.
#[derive(Clone, Serialize, Deserialize)]
struct Example {
    /// The passages at hand hold the answer; `None` if there were none to read.
    held: Option<bool>,
    /// A state for each layer.
    states: Vec<Vec<f32>>,
}

#[derive(Serialize)]
struct Row {
    layer: usize,
    set: String,
    questions: usize,
    held: usize,
    /// Of the probe that was started from, which knew none of the questions.
    before: Option<f64>,
    /// Of probes that did not know the questions.
    auroc: Option<f64>,
}

#[derive(Serialize)]
struct Report {
    rows: Vec<Row>,
    best_layer: usize,
    models: Vec<ModelInUse>,
}

pub(crate) fn run(engine: &Engine, arguments: &Held, output: &Output) -> Result<Found> {
    let Some(generator) = engine.models().generator()? else {
        bail!("there is no generator; run `cargo xtask setup`, or name one with --generator");
    };
    engine.models().reranker()?;
    let start = arguments.from.as_deref().map(|path| engine.probe(path)).transpose()?.flatten();
    let layers = match &start {
        Some(probe) => vec![probe.layer],
        None if arguments.layers.is_empty() => usual(generator.spec().layers),
        None => arguments.layers.clone(),
    };
    let start = start.map(|probe| Logistic {
        weights: probe.weights.iter().map(|weight| f64::from(*weight)).collect(),
        bias: f64::from(probe.bias),
    });
    let from = start.as_ref();
    let cache = cache(arguments.data.cache.as_deref())?;
    let mut sets: Vec<(String, Vec<(usize, Example)>)> = Vec::new();
    for (index, collection) in collections(&arguments.data.data, &arguments.data.sets)?.iter().enumerate() {
        let of = |numbers: &[usize]| numbers.get(index).or(numbers.last()).copied();
        let part = (of(&arguments.skip).unwrap_or(0), of(&arguments.limit).unwrap_or(usize::MAX));
        sets.push((collection.name.clone(), examples(engine, arguments, collection, part, &layers, &cache, output)?));
    }
    let mut all: Vec<(&str, &Example, bool)> = Vec::new();
    let mut groups = Vec::new();
    for (number, (set, examples)) in sets.iter().enumerate() {
        for (question, example) in examples {
            if let Some(held) = example.held {
                all.push((set, example, held));
                // Questions of all sets have numbers of their own.
                groups.push(question * sets.len() + number);
            }
        }
    }
    let labels: Vec<bool> = all.iter().map(|(_, _, held)| *held).collect();
    if auroc(&labels.iter().map(|held| (0.0, *held)).collect::<Vec<_>>()).is_none() {
        bail!(
            "all {} questions are of one kind; name sets that have questions with and without an answer",
            labels.len()
        );
    }
    let mut rows = Vec::new();
    let mut best = (0, f64::MIN);
    for (index, &layer) in layers.iter().enumerate() {
        let states: Vec<&[f32]> = all.iter().map(|(_, example, _)| example.states[index].as_slice()).collect();
        let said = cross_validated(&states, &labels, &groups, (arguments.ridge, from), FOLDS);
        let before: Option<Vec<f64>> = from.map(|from| states.iter().map(|state| from.log_odds(state)).collect());
        let mut row = |name: &str, among: &dyn Fn(&str) -> bool| {
            let of = |said: &[f64]| -> Vec<(f64, bool)> {
                (0..all.len()).filter(|&at| among(all[at].0)).map(|at| (said[at], labels[at])).collect()
            };
            let scored = of(&said);
            let held = scored.iter().filter(|(_, held)| *held).count();
            let area = auroc(&scored);
            let before = before.as_ref().and_then(|before| auroc(&of(before)));
            rows.push(Row { layer, set: name.to_owned(), questions: scored.len(), held, before, auroc: area });
            area
        };
        for (set, _) in &sets {
            row(set, &|name| name == set);
        }
        let area = row("all", &|_| true).unwrap_or_default();
        if area > best.1 {
            best = (index, area);
        }
    }
    if let Some(path) = &arguments.fit {
        let states: Vec<&[f32]> = all.iter().map(|(_, example, _)| example.states[best.0].as_slice()).collect();
        let fitted = Logistic::fit(&states, &labels, arguments.ridge, from);
        let probe = Probe {
            model: generator.fingerprint().name.clone(),
            layer: layers[best.0],
            bias: fitted.bias as f32,
            weights: fitted.weights.iter().map(|weight| *weight as f32).collect(),
        };
        std::fs::write(path, serde_json::to_string(&probe)? + "\n")
            .with_context(|| format!("can't write {}", path.display()))?;
    }
    let report = Report { rows, best_layer: layers[best.0], models: engine.models().in_use() };
    if output.json {
        output.document(&report)?;
    } else {
        output.line(table(&report))?;
    }
    Ok(Found::Yes)
}

/// Layers in which what a text says lies open: behind the middle, before words are chosen.
fn usual(layers: usize) -> Vec<usize> {
    [60, 68, 76, 84].into_iter().map(|percent| layers * percent / 100).collect()
}

fn examples(
    engine: &Engine,
    arguments: &Held,
    collection: &Collection,
    (skip, limit): (usize, usize),
    layers: &[usize],
    cache: &Path,
    output: &Output,
) -> Result<Vec<(usize, Example)>> {
    let knowledge = Knowledge::of(engine, collection, cache, output)?;
    let only = |query: &&Query| {
        let known = query.fields.contains_key("answerable") || collection.judgements.contains_key(&query.id);
        let wanted = |only: &Only| !query.fields.contains_key(&only.field) || query.has(&only.field, &only.value);
        known && arguments.only.as_ref().is_none_or(wanted)
    };
    let queries = sampled(collection.queries.iter().filter(only).collect(), |query: &&Query| &query.id);
    let queries: Vec<&Query> = queries.into_iter().skip(skip).take(limit).collect();
    let models: Vec<String> = engine.models().in_use().into_iter().map(|model| model.sha256).collect();
    let depends_on = json!({ "build": build(), "models": models, "layers": layers });
    let mut ledger = Ledger::<Example>::open_or_renew(&knowledge.folder.join("held.jsonl"), &depends_on)?;
    let mut progress = Progress::new(output, format!("{}: questions", collection.name), queries.len());
    let mut found = Vec::with_capacity(2 * queries.len());
    for (index, query) in queries.iter().enumerate() {
        let mut met = |without: &[&str]| -> Result<Example> {
            let key = if without.is_empty() { query.id.clone() } else { format!("{} without its documents", query.id) };
            if let Some(known) = ledger.get(&key) {
                return Ok(known.clone());
            }
            let hidden = |source: &str| knowledge.document(source).is_ok_and(|document| without.contains(&document));
            let example = match engine.states(&knowledge.kb, &query.text, layers, &hidden)? {
                None => Example { held: None, states: Vec::new() },
                Some(met) => {
                    let sources = met.sources.iter().map(|source| knowledge.document(source));
                    let sources: Vec<&str> = sources.collect::<Result<_>>()?;
                    Example { held: Some(holds(collection, query, &sources)), states: met.states }
                }
            };
            ledger.insert(&key, example.clone())?;
            Ok(example)
        };
        let example = met(&[])?;
        // The same question over passages that are as near, but hold nothing.
        let needed: Vec<&str> =
            collection.judgements.get(&query.id).into_iter().flatten().map(|(id, _)| id.as_str()).collect();
        if example.held == Some(true) && !needed.is_empty() {
            found.push((index, met(&needed)?));
        }
        found.push((index, example));
        progress.at(index + 1);
    }
    Ok(found)
}

/// True if the question has an answer and all documents that it needs are among `sources`; where a set has no judgements,
/// what it says of the question is all that is known.
fn holds(collection: &Collection, query: &Query, sources: &[&str]) -> bool {
    let needed = collection.judgements.get(&query.id);
    query.is_answerable()
        && needed.is_none_or(|needed| {
            let mut relevant = needed.iter().filter(|(_, grade)| **grade > 0).map(|(document, _)| document.as_str());
            // Documents that repeat each other are all called relevant; one of them is enough where there are many.
            match needed.len() {
                0 => true,
                1..=4 if query.answer_parts().is_empty() && !query.fields.contains_key("documents") => {
                    relevant.all(|document| sources.contains(&document))
                }
                _ => relevant.any(|document| sources.contains(&document)),
            }
        })
}

fn table(report: &Report) -> Table {
    let area = |area: Option<f64>| area.map_or("–".to_owned(), |area| format!("{area:.3}"));
    let mut table = Table::new(&["layer", "set", "questions", "held", "before", "AUROC"]);
    for row in &report.rows {
        table.row(vec![
            row.layer.to_string(),
            row.set.clone(),
            row.questions.to_string(),
            row.held.to_string(),
            area(row.before),
            area(row.auroc),
        ]);
    }
    table
}
