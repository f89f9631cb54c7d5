//! `anchorite bench`

mod generator;
mod search;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anchorite::{BenchOptions, BenchPair, BenchReport, Engine};
use anyhow::{Context, Result, anyhow, bail};
use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Found;
use crate::arguments::{BenchWhat, BenchWorkload};
use crate::output::Output;

/// Texts of each synthetic length.
const SYNTHETIC: usize = 64;

/// Words that are one token in the vocabulary of every English BERT.
const WORDS: [&str; 16] = [
    "time", "people", "water", "house", "world", "school", "state", "family", "student", "group", "country", "problem",
    "hand", "part", "place", "case",
];

#[derive(Deserialize)]
struct TextLine {
    text: String,
}

pub(crate) fn run(engine: &Engine, what: &BenchWhat, output: &Output) -> Result<Found> {
    let report = match what {
        BenchWhat::Embed(workload) => {
            let texts = workloads(
                workload,
                |length, index| words(length.saturating_sub(2), index),
                |line: TextLine| line.text,
            )?;
            engine.bench_embed(&texts, BenchOptions { repeats: workload.repeats })?
        }
        BenchWhat::Rerank(workload) => {
            let pair = |length: usize, index| BenchPair {
                query: words(8.min(length / 2), 0),
                passage: words(length.saturating_sub(8.min(length / 2) + 3), index),
            };
            let pairs = workloads(workload, pair, |pair: BenchPair| pair)?;
            let report = engine.bench_rerank(&pairs, BenchOptions { repeats: workload.repeats })?;
            let Some(report) = report else {
                bail!(
                    "there is no reranker; run `cargo xtask setup`, or point `--models DIR` to a folder that has one"
                );
            };
            report
        }
        BenchWhat::Generate(arguments) => return generator::run(engine, arguments, output),
        BenchWhat::Search(arguments) => return search::run(engine, arguments, output),
    };
    show(&report, output)?;
    Ok(Found::Yes)
}

/// The file's lines as one workload, or one workload for each synthetic length.
fn workloads<L: DeserializeOwned, T>(
    workload: &BenchWorkload,
    synthetic: impl Fn(usize, usize) -> T,
    from_line: impl Fn(L) -> T,
) -> Result<Vec<(String, Vec<T>)>> {
    let Some(path) = &workload.data else {
        let one = |length: &usize| {
            let texts = (0..SYNTHETIC).map(|index| synthetic(*length, index)).collect();
            (format!("{SYNTHETIC} × {length} tokens"), texts)
        };
        return Ok(workload.lengths.iter().map(one).collect());
    };
    let texts = read(path, workload.limit)?.into_iter().map(from_line).collect::<Vec<_>>();
    if texts.is_empty() {
        bail!("{} has no lines; nothing can be measured", path.display());
    }
    Ok(vec![(path.display().to_string(), texts)])
}

fn read<L: DeserializeOwned>(path: &Path, limit: usize) -> Result<Vec<L>> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("can't read {name}"))?;
    let plain: Box<dyn Read> = if path.extension().is_some_and(|end| end == "gz") {
        Box::new(MultiGzDecoder::new(file))
    } else {
        Box::new(file)
    };
    let lines = BufReader::new(plain).lines().take(limit).zip(1..);
    lines
        .map(|(line, number)| {
            let line = line.with_context(|| format!("{name}, line {number}"))?;
            serde_json::from_str(&line).map_err(|error| anyhow!("{name}, line {number}: {error}"))
        })
        .collect()
}

/// `count` words, other ones for each `index`.
fn words(count: usize, index: usize) -> String {
    let word = |place: usize| WORDS[(index * 7 + place * (index % 5 + 1)) % WORDS.len()];
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

fn show(report: &BenchReport, output: &Output) -> Result<()> {
    if output.json {
        return Ok(output.document(report)?);
    }
    output.line(format_args!(
        "{} · {} · {} · {} · {} threads · a plain product reaches {:.0} billion operations/s",
        report.model, report.precision, report.device, report.instructions, report.threads, report.product_gigaops
    ))?;
    output.line(format_args!(
        "{:<28} {:>7} {:>9} {:>10} {:>10} {:>8} {:>8} {:>8} {:>6}",
        "workload", "texts", "tokens", "texts/s", "tokens/s", "p50 ms", "p95 ms", "p99 ms", "share"
    ))?;
    for row in &report.rows {
        let end = row.workload.chars().rev().take(28).collect::<Vec<_>>().into_iter().rev().collect::<String>();
        output.line(format_args!(
            "{end:<28} {:>7} {:>9} {:>10.1} {:>10.0} {:>8.2} {:>8.2} {:>8.2} {:>5.0}%",
            row.texts,
            row.tokens,
            row.texts_per_second,
            row.tokens_per_second,
            row.p50_ms,
            row.p95_ms,
            row.p99_ms,
            row.share_of_product * 100.0
        ))?;
    }
    if let Some(bytes) = report.peak_memory_bytes {
        output.line(format_args!("peak memory {:.0} MB", bytes as f64 / 1e6))?;
    }
    Ok(())
}
