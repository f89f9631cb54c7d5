//! `anchorite eval qa` and `anchorite eval loop`: questions asked of a set's knowledge base.

use std::path::Path;
use std::time::Duration;

use anchorite::{AskOptions, BudgetLimits, Engine, ModelInUse, Piece, Status, Strategy};
use anchorite_eval::{Collection, Ledger, Query, collections, sampled};
use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::json;

use super::answers::{Asked, Figures, table};
use super::arguments::Questions;
use super::knowledge::Knowledge;
use super::{Progress, build, cache};
use crate::Found;
use crate::output::Output;

#[derive(Serialize)]
struct Row {
    set: String,
    strategy: String,
    #[serde(flatten)]
    figures: Figures,
}

/// A graph, and what is left out of it.
struct System {
    name: String,
    strategy: Strategy,
    without: Vec<Piece>,
}

/// What people build first: search, read, write, and believe it.
const SINGLE_SHOT: &str = "single-shot";

impl System {
    fn named(name: &str) -> Result<Self> {
        let (strategy, without) = match name {
            SINGLE_SHOT => (Strategy::Simple, vec![Piece::Links, Piece::Held, Piece::Support, Piece::Usefulness]),
            _ => (name.parse()?, Vec::new()),
        };
        Ok(Self { name: name.to_owned(), strategy, without })
    }

    fn without(&self, piece: Piece) -> Self {
        let without = self.without.iter().copied().chain([piece]).collect();
        Self { name: format!("{} −{}", self.name, piece.name()), strategy: self.strategy, without }
    }
}

#[derive(Serialize)]
struct Report {
    rows: Vec<Row>,
    models: Vec<ModelInUse>,
}

pub(crate) fn run(engine: &Engine, arguments: &Questions, default: &[&str], output: &Output) -> Result<Found> {
    let named = &arguments.strategy;
    let names: Vec<&str> = if named.is_empty() { default.to_vec() } else { named.iter().map(String::as_str).collect() };
    let pieces: Vec<Piece> = arguments.without.iter().map(|name| name.parse()).collect::<Result<_, _>>()?;
    let mut systems: Vec<System> = Vec::new();
    for name in names {
        let system = System::named(name)?;
        let ablated: Vec<System> = match name {
            SINGLE_SHOT => Vec::new(),
            _ => pieces.iter().map(|&piece| system.without(piece)).collect(),
        };
        systems.push(system);
        systems.extend(ablated);
    }
    let cache = cache(arguments.data.cache.as_deref())?;
    if let Some(folder) = &arguments.results {
        std::fs::create_dir_all(folder).with_context(|| format!("can't make the folder {}", folder.display()))?;
    }
    let sets = collections(&arguments.data.data, &arguments.data.sets)?;
    let mut rows = Vec::new();
    for collection in &sets {
        let queries = chosen(collection, arguments);
        if queries.is_empty() {
            output.remark(format_args!("{}: no question with a known answer; left out", collection.name));
            continue;
        }
        let knowledge = Knowledge::of(engine, collection, &cache, output)?;
        for system in &systems {
            let asked = ask(engine, arguments, system, collection, &queries, &knowledge, output)?;
            let gold = |query: &Query| collection.judgements.get(&query.id);
            let figures = Figures::of(queries.iter().zip(&asked).map(|(query, asked)| (*query, asked, gold(query))));
            rows.push(Row { set: collection.name.clone(), strategy: system.name.clone(), figures });
        }
    }
    if rows.is_empty() {
        bail!("{}: no set has questions with `answers` or `answerable`", arguments.data.data.display());
    }
    let report = Report { rows, models: engine.models().in_use() };
    if output.json {
        output.document(&report)?;
    } else {
        let rows =
            report.rows.iter().map(|row| (row.set.as_str(), row.strategy.as_str(), &row.figures)).collect::<Vec<_>>();
        output.line(table(&rows))?;
    }
    Ok(Found::Yes)
}

/// The questions that can be scored, sampled.
fn chosen<'c>(collection: &'c Collection, arguments: &Questions) -> Vec<&'c Query> {
    let scored = |query: &&Query| {
        let known = !query.answers().is_empty() || !query.answer_parts().is_empty();
        // Where a set only says whether there is an answer, declining is all that can be scored.
        (known || query.fields.contains_key("answerable") || !query.is_answerable())
            && arguments.only.as_ref().is_none_or(|only| query.has(&only.field, &only.value))
    };
    let mut queries = sampled(collection.queries.iter().filter(scored).collect(), |query: &&Query| &query.id);
    queries.truncate(arguments.limit.unwrap_or(usize::MAX));
    queries
}

fn ask(
    engine: &Engine,
    arguments: &Questions,
    system: &System,
    collection: &Collection,
    queries: &[&Query],
    knowledge: &Knowledge,
    output: &Output,
) -> Result<Vec<Asked>> {
    // Opened first, so that no question pays for it and the results can be told by their models.
    engine.models().reranker()?;
    if !arguments.no_generator {
        engine.models().generator()?;
    }
    let models: Vec<String> = engine.models().in_use().into_iter().map(|model| model.sha256).collect();
    let depends_on = json!({
        "build": build(),
        "models": models,
        "strategy": system.name,
        "generator": !arguments.no_generator,
        "max_rounds": arguments.max_rounds,
        "timeout": arguments.timeout,
    });
    let file = format!("{}.{}.jsonl", collection.name, system.name.replace(" −", "-without-"));
    let mut ledger = match &arguments.results {
        Some(folder) => Ledger::<Asked>::open(&folder.join(file), &depends_on)?,
        None => Ledger::open_or_renew(&knowledge.folder.join(file), &depends_on)?,
    };
    let options = AskOptions {
        strategy: system.strategy,
        without: system.without.clone(),
        budget: BudgetLimits {
            rounds: Some(arguments.max_rounds.max(1)),
            time: Some(Duration::from_secs(arguments.timeout)),
            ..BudgetLimits::default()
        },
        no_generator: arguments.no_generator,
        ..AskOptions::default()
    };
    let mut progress = Progress::new(output, format!("{}: {}", collection.name, system.name), queries.len());
    let mut all = Vec::with_capacity(queries.len());
    for (index, query) in queries.iter().enumerate() {
        let asked = match ledger.get(&query.id) {
            Some(known) => known.clone(),
            None => {
                let asked = one(engine, &knowledge.kb, query, &options, knowledge)?;
                ledger.insert(&query.id, asked.clone())?;
                asked
            }
        };
        all.push(asked);
        progress.at(index + 1);
    }
    Ok(all)
}

fn one(engine: &Engine, kb: &Path, query: &Query, options: &AskOptions, knowledge: &Knowledge) -> Result<Asked> {
    let answer = engine.ask(kb, &query.text, options, &mut |_| {}).with_context(|| format!("question {}", query.id))?;
    let documents = |sources: &mut dyn Iterator<Item = &String>| {
        let mut documents: Vec<String> =
            sources.map(|source| Ok(knowledge.document(source)?.to_owned())).collect::<Result<_>>()?;
        documents.sort();
        documents.dedup();
        anyhow::Ok(documents)
    };
    let mut asked = Asked {
        answer: answer.answer.clone(),
        declined: answer.status == Status::Declined,
        confidence: answer.confidence,
        judged: answer.state.judged,
        answerable: query.is_answerable(),
        right: None,
        cited: documents(&mut answer.citations.iter().map(|citation| &citation.source))?,
        useful: documents(&mut answer.state.useful_documents.iter())?,
        stopped_by: answer.stopped_by.map(|cap| cap.to_string()),
        rounds: answer.rounds,
        generator_calls: answer.spent.generator_calls,
        tokens_read: answer.spent.tokens_read,
        tokens_written: answer.spent.tokens_written,
        seconds: answer.seconds,
    };
    asked.right = asked.is_right(query);
    Ok(asked)
}
