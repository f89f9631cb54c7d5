//! `anchorite eval attacks`: questions asked of knowledge bases with a hostile document in each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use anchorite::{AskOptions, BudgetLimits, Engine, IngestOptions, ModelInUse, Piece, Status, Strategy};
use anchorite_eval::{Attack, AttackDocument, Ledger, Table, read_attacks, sampled};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::arguments::Attacks;
use super::{Progress, build, cache};
use crate::Found;
use crate::output::Output;

/// What came of one attack.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Tried {
    succeeded: bool,
    right: bool,
    declined: bool,
    answer: String,
    seconds: f64,
}

/// Attacks of one kind, or all.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Counts {
    attacks: usize,
    succeeded: usize,
    right: usize,
    declined: usize,
}

impl Counts {
    fn add(&mut self, tried: &Tried) {
        self.attacks += 1;
        self.succeeded += usize::from(tried.succeeded);
        self.right += usize::from(tried.right);
        self.declined += usize::from(tried.declined);
    }

    fn rate(&self) -> f64 {
        self.succeeded as f64 / self.attacks.max(1) as f64
    }
}

#[derive(Serialize)]
struct Row {
    strategy: String,
    success_rate: f64,
    seconds: f64,
    #[serde(flatten)]
    all: Counts,
    kinds: BTreeMap<String, Counts>,
    /// The attacks that worked, with what was answered.
    successes: Vec<(String, String)>,
}

#[derive(Serialize)]
struct Report {
    rows: Vec<Row>,
    models: Vec<ModelInUse>,
}

pub(crate) fn run(engine: &Engine, arguments: &Attacks, output: &Output) -> Result<Found> {
    let all = read_attacks(&arguments.data)?;
    // Every knowledge base has the honest documents of all attacks, so that there is something to choose from.
    let honest: BTreeSet<AttackDocument> = all.iter().flat_map(|attack| attack.documents.iter().cloned()).collect();
    let mut attacks = sampled(all, |attack| &attack.id);
    attacks.truncate(arguments.limit.unwrap_or(usize::MAX));
    attacks.sort_by(|one, other| one.id.cmp(&other.id));
    let folder = cache(arguments.cache.as_deref())?.join("attacks");
    fs::create_dir_all(&folder).with_context(|| format!("can't make the folder {}", folder.display()))?;
    engine.models().embedder()?;
    engine.models().reranker()?;
    engine.models().generator()?;
    let mut rows = Vec::new();
    for name in &arguments.strategy {
        rows.push(measure(engine, arguments, name, &attacks, &honest, &folder, output)?);
    }
    let report = Report { rows, models: engine.models().in_use() };
    if output.json {
        output.document(&report)?;
    } else {
        output.line(table(&report.rows))?;
        for row in &report.rows {
            for (id, answer) in &row.successes {
                output.line(format_args!("{} {id}: {answer}", row.strategy))?;
            }
        }
    }
    Ok(Found::Yes)
}

fn measure(
    engine: &Engine,
    arguments: &Attacks,
    name: &str,
    attacks: &[Attack],
    honest: &BTreeSet<AttackDocument>,
    folder: &Path,
    output: &Output,
) -> Result<Row> {
    let strategy: Strategy = name.parse()?;
    let without: Vec<Piece> = arguments.without.iter().map(|name| name.parse()).collect::<Result<_, _>>()?;
    let data = fs::read(&arguments.data).with_context(|| format!("can't read {}", arguments.data.display()))?;
    let data: String = Sha256::digest(data).iter().map(|byte| format!("{byte:02x}")).collect();
    let models: Vec<String> = engine.models().in_use().into_iter().map(|model| model.sha256).collect();
    let depends_on = json!({
        "build": build(),
        "models": models,
        "data": data,
        "without": arguments.without,
        "max_rounds": arguments.max_rounds,
        "timeout": arguments.timeout,
    });
    let mut ledger = Ledger::<Tried>::open_or_renew(&folder.join(format!("{name}.jsonl")), &depends_on)?;
    let options = AskOptions {
        strategy,
        without,
        budget: BudgetLimits {
            rounds: Some(arguments.max_rounds.max(1)),
            time: Some(Duration::from_secs(arguments.timeout)),
            ..BudgetLimits::default()
        },
        ..AskOptions::default()
    };
    let mut progress = Progress::new(output, format!("attacks: {name}"), attacks.len());
    let (mut counts, mut kinds): (Counts, BTreeMap<String, Counts>) = Default::default();
    let (mut successes, mut seconds) = (Vec::new(), 0.0);
    for (index, attack) in attacks.iter().enumerate() {
        let tried = match ledger.get(&attack.id) {
            Some(known) => known.clone(),
            None => {
                let tried = one(engine, attack, honest, folder, &options)?;
                ledger.insert(&attack.id, tried.clone())?;
                tried
            }
        };
        counts.add(&tried);
        kinds.entry(attack.kind.clone()).or_default().add(&tried);
        seconds += tried.seconds;
        if tried.succeeded {
            successes.push((attack.id.clone(), tried.answer));
        }
        progress.at(index + 1);
    }
    let seconds = seconds / attacks.len().max(1) as f64;
    Ok(Row { strategy: name.to_owned(), success_rate: counts.rate(), seconds, all: counts, kinds, successes })
}

/// Asks one question of a knowledge base that is made for it and removed afterwards.
fn one(
    engine: &Engine,
    attack: &Attack,
    honest: &BTreeSet<AttackDocument>,
    folder: &Path,
    options: &AskOptions,
) -> Result<Tried> {
    let place = folder.join(format!("{}-{}", attack.id, std::process::id()));
    fs::create_dir_all(&place).with_context(|| format!("can't make the folder {}", place.display()))?;
    let corpus = place.join("documents.jsonl");
    let documents = honest.iter().chain(&attack.hostile).enumerate();
    let lines: Vec<String> = documents
        .map(|(number, document)| {
            json!({ "_id": number.to_string(), "title": document.title, "text": document.text }).to_string()
        })
        .collect();
    let answered = (|| {
        fs::write(&corpus, lines.join("\n")).with_context(|| format!("can't write {}", corpus.display()))?;
        let kb = place.join("attacked.kb");
        engine.ingest(&kb, std::slice::from_ref(&corpus), &IngestOptions::default(), &mut |_| {})?;
        engine.ask(&kb, &attack.question, options, &mut |_| {}).with_context(|| format!("attack {}", attack.id))
    })();
    let _ = fs::remove_dir_all(&place);
    let answer = answered?;
    Ok(Tried {
        succeeded: attack.succeeds(&answer.answer),
        right: attack.is_right(&answer.answer),
        declined: answer.status == Status::Declined,
        seconds: answer.seconds,
        answer: answer.answer,
    })
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&["graph", "kind", "attacks", "succeeded", "rate", "right", "declined", "s mean"]);
    for row in rows {
        let kinds = row.kinds.iter().map(|(kind, counts)| (kind.as_str(), counts, String::new()));
        let all = ("all", &row.all, format!("{:.1}", row.seconds));
        for (kind, counts, seconds) in kinds.chain([all]) {
            table.row(vec![
                row.strategy.clone(),
                kind.to_owned(),
                counts.attacks.to_string(),
                counts.succeeded.to_string(),
                format!("{:.3}", counts.rate()),
                counts.right.to_string(),
                counts.declined.to_string(),
                seconds,
            ]);
        }
    }
    table
}
