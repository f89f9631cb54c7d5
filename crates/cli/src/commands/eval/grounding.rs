//! `anchorite eval grounding`: the judge of claims that the loop uses, on labelled pairs.

use std::path::Path;
use std::time::Instant;

use anchorite::{Engine, ModelInUse, Signals};
use anchorite_eval::{Calibration, Ledger, Pair, Table, auroc, calibration, pair_sets, sampled};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::arguments::Grounding;
use super::{Progress, build, cache};
use crate::Found;
use crate::output::Output;

/// What the judge said of a pair.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Graded {
    probability: f64,
    /// What it rests on, for whoever wants to weigh it anew.
    signals: Option<Signals>,
    supported: bool,
    tokens_read: u64,
    seconds: f64,
}

#[derive(Serialize)]
struct Set {
    name: String,
    pairs: usize,
    supported: usize,
    auroc: Option<f64>,
    expected_calibration_error: f64,
    seconds_a_claim: f64,
    tokens_a_claim: f64,
    #[serde(skip)]
    scored: Vec<(f64, bool)>,
}

#[derive(Serialize)]
struct Report {
    sets: Vec<Set>,
    /// Over the sets that have claims of both kinds.
    mean_auroc: Option<f64>,
    mean_expected_calibration_error: f64,
    seconds_a_claim: f64,
    /// Of all sets together.
    reliability: Calibration,
    models: Vec<ModelInUse>,
}

pub(crate) fn run(engine: &Engine, arguments: &Grounding, output: &Output) -> Result<Found> {
    let cache = cache(arguments.data.cache.as_deref())?.join("grounding");
    std::fs::create_dir_all(&cache).with_context(|| format!("can't make the folder {}", cache.display()))?;
    // Opened first, so that no claim pays for it and the results can be told by their models.
    engine.models().embedder()?;
    engine.models().reranker()?;
    if !arguments.no_generator {
        engine.models().generator()?;
    }
    let sets = pair_sets(&arguments.data.data, &arguments.data.sets)?
        .into_iter()
        .map(|(name, pairs)| measure(engine, arguments, name, pairs, &cache, output))
        .collect::<Result<Vec<Set>>>()?;
    let areas: Vec<f64> = sets.iter().filter_map(|set| set.auroc).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let errors: Vec<f64> = sets.iter().map(|set| set.expected_calibration_error).collect();
    let seconds: Vec<f64> = sets.iter().map(|set| set.seconds_a_claim).collect();
    let all: Vec<(f64, bool)> = sets.iter().flat_map(|set| set.scored.iter().copied()).collect();
    let report = Report {
        mean_auroc: (!areas.is_empty()).then(|| mean(&areas)),
        mean_expected_calibration_error: mean(&errors),
        seconds_a_claim: mean(&seconds),
        reliability: calibration(&all),
        models: engine.models().in_use(),
        sets,
    };
    if output.json {
        output.document(&report)?;
    } else {
        output.line(table(&report))?;
        output.line("")?;
        output.line(reliability(&report.reliability))?;
    }
    Ok(Found::Yes)
}

fn measure(
    engine: &Engine,
    arguments: &Grounding,
    name: String,
    pairs: Vec<Pair>,
    cache: &Path,
    output: &Output,
) -> Result<Set> {
    let models: Vec<String> = engine.models().in_use().into_iter().map(|model| model.sha256).collect();
    let data = std::fs::canonicalize(&arguments.data.data)?;
    let depends_on = json!({ "build": build(), "models": models, "generator": !arguments.no_generator, "data": data.to_string_lossy() });
    let mut ledger = Ledger::<Graded>::open_or_renew(&cache.join(format!("{name}.jsonl")), &depends_on)?;
    let mut pairs = sampled(pairs, |pair| &pair.id);
    pairs.truncate(arguments.limit.unwrap_or(usize::MAX));
    let mut progress = Progress::new(output, format!("{name}: claims"), pairs.len());
    let mut graded = Vec::with_capacity(pairs.len());
    for (index, pair) in pairs.iter().enumerate() {
        let known = match ledger.get(&pair.id) {
            Some(known) => *known,
            None => {
                let started = Instant::now();
                let support =
                    engine.claim_support(&pair.question, &pair.claim, &pair.premise, !arguments.no_generator)?;
                let seconds = started.elapsed().as_secs_f64();
                let new = Graded {
                    probability: f64::from(support.probability),
                    signals: support.signals,
                    supported: pair.supported,
                    tokens_read: support.tokens_read,
                    seconds,
                };
                ledger.insert(&pair.id, new)?;
                new
            }
        };
        graded.push(known);
        progress.at(index + 1);
    }
    let scored: Vec<(f64, bool)> =
        graded.iter().zip(&pairs).map(|(graded, pair)| (graded.probability, pair.supported)).collect();
    let count = pairs.len().max(1) as f64;
    Ok(Set {
        name,
        pairs: pairs.len(),
        supported: pairs.iter().filter(|pair| pair.supported).count(),
        auroc: auroc(&scored),
        expected_calibration_error: calibration(&scored).expected_error,
        seconds_a_claim: graded.iter().map(|graded| graded.seconds).sum::<f64>() / count,
        tokens_a_claim: graded.iter().map(|graded| graded.tokens_read as f64).sum::<f64>() / count,
        scored,
    })
}

fn table(report: &Report) -> Table {
    let mut table = Table::new(&["set", "pairs", "supported", "AUROC", "ECE", "s/claim", "tokens/claim"]);
    let area = |area: Option<f64>| area.map_or("–".to_owned(), |area| format!("{area:.3}"));
    for set in &report.sets {
        table.row(vec![
            set.name.clone(),
            set.pairs.to_string(),
            set.supported.to_string(),
            area(set.auroc),
            format!("{:.3}", set.expected_calibration_error),
            format!("{:.2}", set.seconds_a_claim),
            format!("{:.0}", set.tokens_a_claim),
        ]);
    }
    if report.sets.len() > 1 {
        table.row(vec![
            format!("mean of {}", report.sets.len()),
            String::new(),
            String::new(),
            area(report.mean_auroc),
            format!("{:.3}", report.mean_expected_calibration_error),
            format!("{:.2}", report.seconds_a_claim),
        ]);
    }
    table
}

fn reliability(calibration: &Calibration) -> Table {
    let mut table = Table::new(&["probability", "claims", "said", "true"]);
    for bin in &calibration.bins {
        table.row(vec![
            format!("{:.1}…{:.1}", bin.from, bin.to),
            bin.count.to_string(),
            format!("{:.3}", bin.said),
            format!("{:.3}", bin.true_share),
        ]);
    }
    table
}
