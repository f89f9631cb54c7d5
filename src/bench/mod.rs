//! Measures the models on this machine: throughput, latency, memory, and the share of the machine that is used.

mod generator;
mod search;

use std::time::Instant;

use anchorite_core::{Embedder, Role};
use anchorite_infer::{Cost, product_speed};
use serde::{Deserialize, Serialize};

pub use self::generator::{GeneratorReport, GeneratorWorkload, Replies};
pub use self::search::{BuildRates, SearchBenchReport, SearchRow, SearchWorkload, bench_search};
use crate::{Engine, Error};

/// Calls of one text, or of one query with its passages, that latency is measured with at most.
const CALLS: usize = 100;

/// What to measure with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BenchOptions {
    /// Runs over everything; the median is reported.
    pub repeats: usize,
}

impl Default for BenchOptions {
    fn default() -> Self {
        Self { repeats: 5 }
    }
}

/// A query and a passage.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct BenchPair {
    /// The query. Pairs of one query that follow each other are one call.
    pub query: String,
    /// The passage.
    pub passage: String,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchReport {
    /// The model.
    pub model: String,
    /// `int8` or `f32`.
    pub precision: String,
    /// `cpu`, `cuda:0`, …
    pub device: String,
    /// The instruction set of the processor that kernels run on.
    pub instructions: String,
    /// Threads.
    pub threads: usize,
    /// Billions of operations a second that a plain product reaches on all threads.
    pub product_gigaops: f64,
    /// One row for each workload.
    pub rows: Vec<BenchRow>,
    /// Most memory that this process has held, in bytes; `None` where the system does not say.
    pub peak_memory_bytes: Option<u64>,
}

/// One workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchRow {
    /// What was read.
    pub workload: String,
    /// Texts, or pairs.
    pub texts: usize,
    /// Tokens of all of them.
    pub tokens: usize,
    /// Texts, or pairs, a second: the median of the runs.
    pub texts_per_second: f64,
    /// Tokens a second.
    pub tokens_per_second: f64,
    /// Milliseconds of a call with one text (or one query with its passages): half of the calls took less.
    pub p50_ms: f64,
    /// 95 of 100 calls took less.
    pub p95_ms: f64,
    /// 99 of 100 calls took less.
    pub p99_ms: f64,
    /// Operations a second, of those of a plain product. Attention is single precision in any case, so that int8 can't reach
    /// 1 on long texts.
    pub share_of_product: f64,
}

impl Engine {
    /// Measures the bi-encoder on workloads of texts, each with a name.
    ///
    /// # Errors
    /// If the model can't be opened or fails.
    pub fn bench_embed(
        &self,
        workloads: &[(String, Vec<String>)],
        options: BenchOptions,
    ) -> Result<BenchReport, Error> {
        let embedder = self.models.embedder()?;
        let mut report = self.report(embedder.fingerprint().name.clone());
        for (name, texts) in workloads {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let mut cost = Cost::default();
            for text in &texts {
                cost += embedder.cost(text)?;
            }
            let whole = |texts: &[&str]| embedder.embed(Role::Document, texts).map(|_| ()).map_err(Error::from);
            let seconds = median_of(options.repeats, || whole(&texts))?;
            let calls = texts.iter().take(CALLS).map(|text| timed(|| whole(&[text]))).collect::<Result<_, _>>()?;
            report.rows.push(report.row(name, texts.len(), cost, seconds, calls));
        }
        report.peak_memory_bytes = peak_memory();
        Ok(report)
    }

    /// Measures the cross-encoder on workloads of pairs, each with a name. `None` if there is no cross-encoder.
    ///
    /// # Errors
    /// If the model can't be opened or fails.
    pub fn bench_rerank(
        &self,
        workloads: &[(String, Vec<BenchPair>)],
        options: BenchOptions,
    ) -> Result<Option<BenchReport>, Error> {
        let Some(reranker) = self.models.reranker()? else { return Ok(None) };
        let mut report = self.report(anchorite_core::Reranker::fingerprint(reranker.as_ref()).name.clone());
        for (name, pairs) in workloads {
            let mut cost = Cost::default();
            for pair in pairs {
                cost += reranker.cost(&pair.query, &pair.passage)?;
            }
            let queries: Vec<(&str, Vec<&str>)> = pairs
                .chunk_by(|a, b| a.query == b.query)
                .map(|pairs| (pairs[0].query.as_str(), pairs.iter().map(|pair| pair.passage.as_str()).collect()))
                .collect();
            let call =
                |(query, passages): &(&str, Vec<&str>)| reranker.read(query, passages).map(|_| ()).map_err(Error::from);
            let seconds = median_of(options.repeats, || queries.iter().try_for_each(call))?;
            let calls = queries.iter().take(CALLS).map(|query| timed(|| call(query))).collect::<Result<_, _>>()?;
            report.rows.push(report.row(name, pairs.len(), cost, seconds, calls));
        }
        report.peak_memory_bytes = peak_memory();
        Ok(Some(report))
    }

    fn report(&self, model: String) -> BenchReport {
        let (device, precision) = self.models.compute();
        let (speed, instructions) = product_speed(precision);
        BenchReport {
            model,
            precision: precision.to_string(),
            device: device.to_string(),
            instructions: instructions.to_owned(),
            threads: anchorite_infer::threads(),
            product_gigaops: speed / 1e9,
            rows: Vec::new(),
            peak_memory_bytes: None,
        }
    }
}

impl BenchReport {
    fn row(&self, workload: &str, texts: usize, cost: Cost, seconds: f64, mut calls: Vec<f64>) -> BenchRow {
        calls.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let last = calls.len().saturating_sub(1);
            calls.get((last as f64 * share).round() as usize).map_or(0.0, |seconds| seconds * 1e3)
        };
        BenchRow {
            workload: workload.to_owned(),
            texts,
            tokens: cost.tokens,
            texts_per_second: texts as f64 / seconds,
            tokens_per_second: cost.tokens as f64 / seconds,
            p50_ms: at(0.5),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            share_of_product: cost.operations / seconds / (self.product_gigaops * 1e9),
        }
    }
}

/// Seconds that `run` takes: the median of `repeats` runs after one that warms up.
fn median_of(repeats: usize, run: impl Fn() -> Result<(), Error>) -> Result<f64, Error> {
    run()?;
    let mut times = (0..repeats.max(1)).map(|_| timed(&run)).collect::<Result<Vec<f64>, Error>>()?;
    Ok(middle(&mut times))
}

/// The median of at least one time.
fn middle(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn timed(run: impl FnOnce() -> Result<(), Error>) -> Result<f64, Error> {
    let started = Instant::now();
    run()?;
    Ok(started.elapsed().as_secs_f64())
}

/// The high-water mark of this process's memory, where Linux keeps it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
