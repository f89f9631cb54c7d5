//! `anchorite eval relevance`: what a cross-encoder's logit is worth, on judged queries; how its passages are graded, and how
//! they would be by weights fitted to them.

use std::path::Path;

use anchorite::core::{Retriever, Scores};
use anchorite::{Engine, ModelInUse, RERANKED, RelevanceScale, SearchOptions};
use anchorite_eval::{Collection, Ledger, Logistic, Query, Table, auroc, calibration, cross_validated, sampled};
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::arguments::Relevance;
use super::knowledge::Knowledge;
use super::{Progress, build, cache, judged_sets};
use crate::Found;
use crate::output::Output;

/// The best passages of each query.
const PASSAGES: usize = 10;
/// Parts that queries are dealt into: each is judged by weights fitted to the others.
const FOLDS: usize = 8;

/// A passage that a search found.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Example {
    logit: f32,
    fused: f32,
    linked: bool,
    /// Its document is judged relevant.
    helps: bool,
}

impl Example {
    fn features(self) -> [f32; 3] {
        [self.logit, self.fused, f32::from(u8::from(self.linked))]
    }

    fn graded(self, scale: RelevanceScale) -> f64 {
        let linked_from = self.linked.then_some(0);
        f64::from(scale.probability(self.logit, &Scores { fused: Some(self.fused), linked_from, ..Scores::default() }))
    }
}

#[derive(Serialize)]
struct Row {
    set: String,
    passages: usize,
    helpful: usize,
    /// Of the logit alone.
    logit_auroc: Option<f64>,
    /// Of the weights in use.
    auroc: Option<f64>,
    expected_calibration_error: f64,
    /// The same of weights that did not know the query.
    fitted_auroc: Option<f64>,
    fitted_expected_calibration_error: f64,
}

#[derive(Serialize)]
struct Report {
    rows: Vec<Row>,
    in_use: RelevanceScale,
    /// Fitted to all that was found; each set weighs as much as it has passages.
    fitted: RelevanceScale,
    models: Vec<ModelInUse>,
}

pub(crate) fn run(engine: &Engine, arguments: &Relevance, output: &Output) -> Result<Found> {
    if engine.models().reranker()?.is_none() {
        bail!("there is no reranker; run `cargo xtask setup`, or name one with --reranker");
    }
    let cache = cache(arguments.data.cache.as_deref())?;
    let mut found: Vec<(usize, usize, Example)> = Vec::new();
    let sets = judged_sets(&arguments.data, output)?;
    for (set, collection) in sets.iter().enumerate() {
        for (query, examples) in examples(engine, arguments, collection, &cache, output)?.into_iter().enumerate() {
            // Queries of all sets have numbers of their own.
            found.extend(examples.into_iter().map(|example| (set, query * sets.len() + set, example)));
        }
    }
    let labels: Vec<bool> = found.iter().map(|(_, _, example)| example.helps).collect();
    if labels.iter().all(|helps| *helps) || !labels.contains(&true) {
        bail!(
            "all {} passages are of one kind; name sets of which some, and not all, that is found is judged relevant",
            labels.len()
        );
    }
    let features: Vec<[f32; 3]> = found.iter().map(|(_, _, example)| example.features()).collect();
    let features: Vec<&[f32]> = features.iter().map(<[f32; 3]>::as_slice).collect();
    let groups: Vec<usize> = found.iter().map(|(_, group, _)| *group).collect();
    let unknown = cross_validated(&features, &labels, &groups, (arguments.ridge, None), FOLDS);
    let fitted = Logistic::fit(&features, &labels, arguments.ridge, None);
    let weight = |at: usize| fitted.weights[at] as f32;
    let in_use = engine.relevance_scale()?;
    let row = |name: &str, among: &dyn Fn(usize) -> bool| {
        let at: Vec<usize> = (0..found.len()).filter(|&at| among(found[at].0)).collect();
        let scored =
            |said: &dyn Fn(usize) -> f64| -> Vec<(f64, bool)> { at.iter().map(|&at| (said(at), labels[at])).collect() };
        let known = scored(&|at| found[at].2.graded(in_use));
        let fitted = scored(&|at| 1.0 / (1.0 + (-unknown[at]).exp()));
        Row {
            set: name.to_owned(),
            passages: at.len(),
            helpful: known.iter().filter(|(_, helps)| *helps).count(),
            logit_auroc: auroc(&scored(&|at| f64::from(found[at].2.logit))),
            auroc: auroc(&known),
            expected_calibration_error: calibration(&known).expected_error,
            fitted_auroc: auroc(&fitted),
            fitted_expected_calibration_error: calibration(&fitted).expected_error,
        }
    };
    let mut rows: Vec<Row> =
        sets.iter().enumerate().map(|(set, collection)| row(&collection.name, &|other| other == set)).collect();
    if rows.len() > 1 {
        rows.push(row("all", &|_| true));
    }
    let fitted = RelevanceScale { logit: weight(0), fused: weight(1), linked: weight(2), constant: fitted.bias as f32 };
    let report = Report { rows, in_use, fitted, models: engine.models().in_use() };
    if output.json {
        output.document(&report)?;
    } else {
        output.line(table(&report))?;
        output.line("")?;
        output.line(format_args!("in use: {}", line(&report.in_use)))?;
        output.line(format_args!("fitted: {}", line(&report.fitted)))?;
    }
    Ok(Found::Yes)
}

/// For each judged query, what the loop would grade in its first round.
fn examples(
    engine: &Engine,
    arguments: &Relevance,
    collection: &Collection,
    cache: &Path,
    output: &Output,
) -> Result<Vec<Vec<Example>>> {
    let knowledge = Knowledge::of(engine, collection, cache, output)?;
    let mut queries: Vec<&Query> = sampled(collection.judged_queries(), |query: &&Query| &query.id);
    queries.truncate(arguments.limit.unwrap_or(usize::MAX));
    let models: Vec<String> = engine.models().in_use().into_iter().map(|model| model.sha256).collect();
    let depends_on = json!({ "build": build(), "models": models, "passages": PASSAGES });
    let mut ledger = Ledger::<Vec<Example>>::open_or_renew(&knowledge.folder.join("relevance.jsonl"), &depends_on)?;
    let mut progress = Progress::new(output, format!("{}: queries", collection.name), queries.len());
    let retriever = engine.retriever(&knowledge.kb, &SearchOptions::default(), RERANKED)?;
    let mut found = Vec::with_capacity(queries.len());
    for (index, query) in queries.iter().enumerate() {
        if ledger.get(&query.id).is_none() {
            let judged = &collection.judgements[&query.id];
            let mut examples = Vec::with_capacity(PASSAGES);
            for passage in retriever.retrieve(&query.text, PASSAGES)? {
                if let (Some(logit), Some(fused)) = (passage.scores.rerank, passage.scores.fused) {
                    let grade = judged.get(knowledge.document(&passage.source)?);
                    let (linked, helps) = (passage.scores.linked_from.is_some(), grade.is_some_and(|grade| *grade > 0));
                    examples.push(Example { logit, fused, linked, helps });
                }
            }
            ledger.insert(&query.id, examples)?;
        }
        found.extend(ledger.get(&query.id).cloned());
        progress.at(index + 1);
    }
    Ok(found)
}

/// As `[loop]` of a settings file has it.
fn line(scale: &RelevanceScale) -> String {
    let RelevanceScale { logit, fused, linked, constant } = scale;
    format!(
        "relevance_scale = {{ logit = {logit:.3}, fused = {fused:.2}, linked = {linked:.2}, constant = {constant:.2} }}"
    )
}

fn table(report: &Report) -> Table {
    let mut table =
        Table::new(&["set", "passages", "helpful", "logit alone", "AUROC", "ECE", "fitted AUROC", "fitted ECE"]);
    let area = |area: Option<f64>| area.map_or("–".to_owned(), |area| format!("{area:.3}"));
    for row in &report.rows {
        table.row(vec![
            row.set.clone(),
            row.passages.to_string(),
            row.helpful.to_string(),
            area(row.logit_auroc),
            area(row.auroc),
            format!("{:.3}", row.expected_calibration_error),
            area(row.fitted_auroc),
            format!("{:.3}", row.fitted_expected_calibration_error),
        ]);
    }
    table
}
