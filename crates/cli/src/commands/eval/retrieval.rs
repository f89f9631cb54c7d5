//! `anchorite eval retrieval`: every way to search, on every set.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use anchorite::core::Retriever;
use anchorite::{Engine, Expansion, Mode, ModelInUse, ModelRole, RERANKED, SearchOptions};
use anchorite_eval::{Collection, Interval, Ledger, Query, RetrievalScores, Run, Table, mean_with_interval};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::arguments::{Retrieval, System};
use super::knowledge::{Knowledge, TakenIn};
use super::{Progress, build, cache, judged_sets};
use crate::Found;
use crate::output::Output;

/// Passages asked for: enough to score a hundred documents where each is one passage.
const PASSAGES: usize = 100;

/// What was found for a query.
#[derive(Serialize, Deserialize)]
struct Answered {
    ranking: Vec<(String, f32)>,
    seconds: f64,
}

/// One way to search, on one set.
#[derive(Serialize)]
struct Measured {
    system: &'static str,
    ndcg_10: Interval,
    recall_10: Interval,
    recall_100: Interval,
    mrr_10: Interval,
    /// nDCG less that of the better of `bm25` and `dense`, query by query.
    #[serde(skip_serializing_if = "Option::is_none")]
    above_best_single: Option<Interval>,
    seconds_a_query: f64,
    #[serde(skip)]
    scores: Vec<RetrievalScores>,
}

#[derive(Serialize)]
struct Set {
    name: String,
    queries: usize,
    taken_in: TakenIn,
    systems: Vec<Measured>,
}

/// Means over sets, each set weighing the same.
#[derive(Serialize)]
struct Mean {
    system: &'static str,
    ndcg_10: f64,
    recall_10: f64,
    recall_100: f64,
    mrr_10: f64,
    seconds_a_query: f64,
}

#[derive(Serialize)]
struct Report {
    sets: Vec<Set>,
    mean: Vec<Mean>,
    models: Vec<ModelInUse>,
}

pub(crate) fn run(engine: &Engine, arguments: &Retrieval, output: &Output) -> Result<Found> {
    let cache = cache(arguments.data.cache.as_deref())?;
    if let Some(folder) = &arguments.runs {
        std::fs::create_dir_all(folder).with_context(|| format!("can't make the folder {}", folder.display()))?;
    }
    let found = judged_sets(&arguments.data, output)?;
    let sets = found
        .iter()
        .map(|collection| measure(engine, arguments, collection, &cache, output))
        .collect::<Result<Vec<_>>>()?;
    let mean = means(&sets);
    let report = Report { sets, mean, models: engine.models().in_use() };
    if output.json {
        output.document(&report)?;
    } else {
        output.line(table(&report))?;
    }
    Ok(Found::Yes)
}

fn measure(
    engine: &Engine,
    arguments: &Retrieval,
    collection: &Collection,
    cache: &Path,
    output: &Output,
) -> Result<Set> {
    let knowledge = Knowledge::of(engine, collection, cache, output)?;
    let mut queries = collection.judged_queries();
    queries.truncate(arguments.limit_queries.unwrap_or(usize::MAX));
    let mut systems = Vec::new();
    for &system in &arguments.systems {
        let (run, seconds) = search(engine, system, &queries, &collection.name, &knowledge, output)?;
        if let Some(folder) = &arguments.runs {
            let path = folder.join(format!("{}.{}.run", collection.name, system.name()));
            run.write(&path, &format!("anchorite-{}", system.name()))?;
        }
        let scores: Vec<RetrievalScores> = queries
            .iter()
            .map(|query| RetrievalScores::of(&run.documents(&query.id), &collection.judgements[&query.id]))
            .collect();
        let interval =
            |part: fn(&RetrievalScores) -> f64| mean_with_interval(&scores.iter().map(part).collect::<Vec<_>>());
        systems.push(Measured {
            system: system.name(),
            ndcg_10: interval(|scores| scores.ndcg_10),
            recall_10: interval(|scores| scores.recall_10),
            recall_100: interval(|scores| scores.recall_100),
            mrr_10: interval(|scores| scores.reciprocal_rank_10),
            above_best_single: None,
            seconds_a_query: seconds / queries.len() as f64,
            scores,
        });
    }
    compare(&mut systems);
    Ok(Set { name: collection.name.clone(), queries: queries.len(), taken_in: knowledge.taken_in, systems })
}

/// The run of a system and the seconds it took; what an earlier run of this build found is not searched again.
fn search(
    engine: &Engine,
    system: System,
    queries: &[&Query],
    name: &str,
    knowledge: &Knowledge,
    output: &Output,
) -> Result<(Run, f64)> {
    let mode = match system {
        System::Bm25 => Mode::Bm25,
        System::Dense => Mode::Dense,
        _ => Mode::Hybrid,
    };
    let rerank = !matches!(system, System::Bm25 | System::Dense | System::Hybrid);
    let options = SearchOptions { mode, rerank, links: rerank && system != System::Rerank, ..SearchOptions::default() };
    let ways: Vec<Expansion> = system.expansion().into_iter().collect();
    let writes = ways.iter().any(|way| way.needs_generator());
    if writes && engine.models().generator()?.is_none() {
        bail!("there is no generator; run `cargo xtask setup`, or leave `{}` out of --systems", system.name());
    }
    if rerank && engine.models().reranker()?.is_none() {
        bail!("there is no reranker; run `cargo xtask setup`, or leave `rerank` out of --systems");
    }
    let used = |model: &ModelInUse| match model.role {
        ModelRole::Embedder => true,
        ModelRole::Reranker => rerank,
        ModelRole::Generator => writes,
    };
    let models: Vec<String> = engine.models().in_use().into_iter().filter(used).map(|model| model.sha256).collect();
    let depends_on = json!({ "build": build(), "models": models, "passages": PASSAGES });
    let path = knowledge.folder.join(format!("rankings-{}.jsonl", system.name()));
    let mut ledger = Ledger::<Answered>::open_or_renew(&path, &depends_on)?;
    let mut progress = Progress::new(output, format!("{name}: {}", system.name()), queries.len());
    let (mut retriever, mut known) = (None, HashMap::new());
    let (mut run, mut seconds) = (Run::new(), 0.0);
    for (index, query) in queries.iter().enumerate() {
        if ledger.get(&query.id).is_none() {
            let retriever = match &retriever {
                Some(retriever) => retriever,
                None => {
                    let opened = engine.retriever(&knowledge.kb, &options, RERANKED)?;
                    // The indexes are loaded by the first search, which is not what a query takes.
                    opened.retrieve(&query.text, PASSAGES)?;
                    retriever.insert(opened)
                }
            };
            let started = Instant::now();
            let passages = engine.search_with(retriever, &query.text, PASSAGES, &ways)?.results;
            let seconds = started.elapsed().as_secs_f64();
            let ranking = knowledge.ranking(retriever.snapshot(), &mut known, &passages, &query.excluded())?;
            ledger.insert(&query.id, Answered { ranking, seconds })?;
        }
        if let Some(answered) = ledger.get(&query.id) {
            run.insert(&query.id, answered.ranking.iter().cloned());
            seconds += answered.seconds;
        }
        progress.at(index + 1);
    }
    Ok((run, seconds))
}

/// Compares the fused ways with the better of their components.
fn compare(systems: &mut [Measured]) {
    let single = |measured: &&Measured| measured.system == "bm25" || measured.system == "dense";
    let best = systems.iter().filter(single).max_by(|a, b| a.ndcg_10.mean.total_cmp(&b.ndcg_10.mean));
    let Some(best) = best.map(|best| best.scores.clone()) else { return };
    for measured in systems.iter_mut().filter(|measured| !single(&&**measured)) {
        let differences: Vec<f64> =
            measured.scores.iter().zip(&best).map(|(scores, best)| scores.ndcg_10 - best.ndcg_10).collect();
        measured.above_best_single = Some(mean_with_interval(&differences));
    }
}

fn means(sets: &[Set]) -> Vec<Mean> {
    let Some(first) = sets.first() else { return Vec::new() };
    let mean = |system: &'static str| {
        let rows: Vec<&Measured> =
            sets.iter().flat_map(|set| &set.systems).filter(|measured| measured.system == system).collect();
        let of = |part: fn(&Measured) -> f64| rows.iter().map(|row| part(row)).sum::<f64>() / rows.len() as f64;
        Mean {
            system,
            ndcg_10: of(|row| row.ndcg_10.mean),
            recall_10: of(|row| row.recall_10.mean),
            recall_100: of(|row| row.recall_100.mean),
            mrr_10: of(|row| row.mrr_10.mean),
            seconds_a_query: of(|row| row.seconds_a_query),
        }
    };
    first.systems.iter().map(|measured| mean(measured.system)).collect()
}

fn table(report: &Report) -> Table {
    let mut table = Table::new(&[
        "set",
        "queries",
        "system",
        "nDCG@10",
        "95 %",
        "recall@10",
        "recall@100",
        "MRR@10",
        "above best single",
        "s/query",
    ]);
    let value = |value: f64| format!("{value:.3}");
    for set in &report.sets {
        for row in &set.systems {
            table.row(vec![
                set.name.clone(),
                set.queries.to_string(),
                row.system.to_owned(),
                value(row.ndcg_10.mean),
                format!("{:.3}…{:.3}", row.ndcg_10.low, row.ndcg_10.high),
                value(row.recall_10.mean),
                value(row.recall_100.mean),
                value(row.mrr_10.mean),
                row.above_best_single.map_or(String::new(), |above| format!("{:+.3}", above.mean)),
                value(row.seconds_a_query),
            ]);
        }
    }
    for row in report.mean.iter().filter(|_| report.sets.len() > 1) {
        table.row(vec![
            format!("mean of {}", report.sets.len()),
            String::new(),
            row.system.to_owned(),
            value(row.ndcg_10),
            String::new(),
            value(row.recall_10),
            value(row.recall_100),
            value(row.mrr_10),
            String::new(),
            value(row.seconds_a_query),
        ]);
    }
    table
}
