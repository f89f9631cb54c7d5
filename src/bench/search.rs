//! Measures the knowledge base at scale, with invented vectors in clusters and invented words of Zipf's frequencies: taking
//! in, building the indexes, opening, searching with and without conditions.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anchorite_core::{Chunk, Document, Embedder, Embedding, ModelFingerprint, Role};
use anchorite_store::{KnowledgeBase, Mode, Snapshot, StoreError};
use serde::Serialize;

use super::peak_memory;
use crate::{Engine, Error, ViewOptions};

/// Chunks of a document.
const CHUNKS: usize = 10;
/// Words of a chunk.
const WORDS: usize = 40;
/// Different words.
const VOCABULARY: usize = 50_000;
/// Vectors about one centre, on average.
const CLUSTER: usize = 500;
/// How far from its centre a vector lies, in lengths of the centre.
const SCATTER: f32 = 0.6;
/// Documents fall into so many classes, by which conditions choose.
const CLASSES: usize = 200;
/// Queries that are compared with looking at every vector.
const EXACT: usize = 200;

/// What to measure with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchWorkload {
    /// Vectors.
    pub vectors: usize,
    /// Their components.
    pub dim: usize,
    /// Queries of each kind.
    pub queries: usize,
    /// A folder for the knowledge base: empty or not there, or one that an earlier run left, which is only searched.
    pub folder: PathBuf,
    /// A folder to save vectors and queries in, as `f32`, little-endian, for measuring another program with them.
    pub save: Option<PathBuf>,
}

/// Milliseconds of a kind of search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchRow {
    /// What was searched.
    pub search: String,
    /// Searches.
    pub searches: usize,
    /// Half of them took less.
    pub p50_ms: f64,
    /// 99 of 100 took less.
    pub p99_ms: f64,
    /// Share of the ten nearest that were found; where it was measured.
    pub recall: Option<f64>,
}

/// How fast a knowledge base took its vectors in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BuildRates {
    /// Vectors a second until the database had acknowledged them all.
    pub ingest_per_second: f64,
    /// Vectors a second that the graph was built with.
    pub graph_per_second: f64,
    /// Chunks a second that the index of words was built with.
    pub words_per_second: f64,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchBenchReport {
    /// Vectors.
    pub vectors: usize,
    /// Their components.
    pub dim: usize,
    /// How fast it was built; `None` if an earlier run did that.
    #[serde(flatten)]
    pub built: Option<BuildRates>,
    /// Milliseconds to open the knowledge base and to find by meaning for the first time.
    pub open_ms: f64,
    /// The same, by words.
    pub open_words_ms: f64,
    /// Bytes of the graph's file for each vector.
    pub graph_bytes_per_vector: f64,
    /// Bytes of the database for each vector, text included.
    pub database_bytes_per_vector: f64,
    /// Most memory that this process has held, in bytes; `None` where the system does not say.
    pub peak_memory_bytes: Option<u64>,
    /// One row for each kind of search.
    pub rows: Vec<SearchRow>,
}

/// Numbers that look random and depend on a seed alone (Steele, Lea and Flood 2014, SplitMix).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// 0 … 1, without 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// About normal: the sum of four uniform ones, of deviation 1.
    fn normal(&mut self) -> f32 {
        let sum: f64 = (0..4).map(|_| self.unit()).sum();
        ((sum - 2.0) * 1.732) as f32
    }
}

/// The vectors and words of the bench, each from its number.
struct Invented {
    dim: usize,
    centres: usize,
}

impl Invented {
    fn vector(&self, seed: u64, number: usize) -> Vec<f32> {
        let mut dice = Dice(seed ^ (number as u64).wrapping_mul(0xD134_2543_DE82_EF95));
        let centre = (dice.next() as usize) % self.centres;
        let mut of_centre = Dice(0xC0FF_EE00 ^ (centre as u64).wrapping_mul(0xA24B_AED4_963E_E407));
        (0..self.dim).map(|_| of_centre.normal() + SCATTER * dice.normal()).collect()
    }

    /// By Zipf's law, roughly: the r-th word has a share of 1/r.
    fn words(&self, dice: &mut Dice, count: usize) -> String {
        let mut text = String::with_capacity(count * 7);
        for at in 0..count {
            if at > 0 {
                text.push(' ');
            }
            let rank = (VOCABULARY as f64).powf(dice.unit()) as usize;
            text.push_str(&format!("w{rank}x"));
        }
        text
    }

    fn document(&self, number: usize, chunks: usize) -> (Document, Vec<(usize, usize)>) {
        let mut dice = Dice(number as u64 ^ 0x7EAF);
        let (mut text, mut spans) = (String::new(), Vec::new());
        for _ in 0..chunks {
            let start = text.len();
            text.push_str(&self.words(&mut dice, WORDS));
            text.push_str(".\n");
            spans.push((start, text.len()));
        }
        let metadata = BTreeMap::from([("class".to_owned(), (number % CLASSES).into())]);
        let source = format!("invented/{number}.txt");
        (Document { source, title: format!("Document {number}"), text, metadata, outline: Vec::new() }, spans)
    }

    fn embedding(&self, seed: u64, number: usize) -> Result<Embedding, Error> {
        let unusable = |error| Error::Inference(anchorite_core::InferenceError::Embedding(error));
        Embedding::new(self.vector(seed, number)).map_err(unusable)
    }
}

/// Measures the knowledge base; it is left in the folder.
///
/// # Errors
/// If the folder can't be written, or the database fails.
pub fn bench_search(workload: &SearchWorkload, on_progress: &mut dyn FnMut(&str)) -> Result<SearchBenchReport, Error> {
    let &SearchWorkload { vectors, dim, queries, .. } = workload;
    let invented = Invented { dim, centres: (vectors / CLUSTER).max(1) };
    let place = KnowledgeBase::at(&workload.folder);
    let is_there = match place.snapshot() {
        Ok(snapshot) => snapshot.check_model(&model(), dim).is_ok() && snapshot.stats()?.chunks as usize == vectors,
        Err(_) => false,
    };
    let built = if is_there { None } else { Some(build(workload, &invented, &place, on_progress)?) };

    on_progress("searching");
    let asked: Vec<(String, Embedding)> = (0..queries)
        .map(|number| {
            let words = invented.words(&mut Dice(number as u64 ^ 0xA5_C0DE), 6);
            invented.embedding(2, number).map(|embedding| (words, embedding))
        })
        .collect::<Result<_, Error>>()?;
    if let Some(folder) = &workload.save {
        let mut saved = Saved::new(folder, "vectors.f32")?;
        (0..vectors).try_for_each(|number| saved.write(invented.embedding(1, number)?.as_slice()))?;
        saved.finish()?;
        let mut saved = Saved::new(folder, "queries.f32")?;
        asked.iter().try_for_each(|(_, embedding)| saved.write(embedding.as_slice()))?;
        saved.finish()?;
    }
    let (open_ms, snapshot) = opened(&place, |snapshot| snapshot.dense(&asked[0].1, 10).map(drop))?;
    let (open_words_ms, _) = opened(&place, |snapshot| snapshot.bm25(&asked[0].0, 10).map(drop))?;
    let mut rows = searched(&snapshot, &asked)?;
    for (share, classes) in [("50 %", 100), ("5 %", 10), ("0.5 %", 1)] {
        let condition = format!("class < {classes}");
        let Ok(filter) = condition.parse() else { continue };
        let view = snapshot.filtered(filter);
        // The condition is looked up once for each view; searches after that know its chunks.
        view.dense(&asked[0].1, 1)?;
        rows.push(row(&format!("dense, {share} admitted"), &view, &asked, Mode::Dense, EXACT)?);
    }
    let bytes = |kind: &str| folder_bytes(&workload.folder.join(kind)) as f64 / vectors as f64;
    Ok(SearchBenchReport {
        vectors,
        dim,
        built,
        open_ms,
        open_words_ms,
        graph_bytes_per_vector: bytes("ann"),
        database_bytes_per_vector: snapshot.stats()?.database_bytes as f64 / vectors as f64,
        peak_memory_bytes: peak_memory(),
        rows,
    })
}

/// What is said to have made the vectors.
fn model() -> ModelFingerprint {
    ModelFingerprint { name: "invented".to_owned(), sha256: "0".repeat(64) }
}

fn build(
    workload: &SearchWorkload,
    invented: &Invented,
    place: &KnowledgeBase,
    on_progress: &mut dyn FnMut(&str),
) -> Result<BuildRates, Error> {
    let &SearchWorkload { vectors, dim, .. } = workload;

    on_progress("taking in");
    let mut writer = place.create_or_open_writer(&model(), dim)?;
    let mut spent = 0.0;
    let mut batch = writer.begin("bench")?;
    for first in (0..vectors).step_by(CHUNKS) {
        let (document, spans) = invented.document(first / CHUNKS, CHUNKS.min(vectors - first));
        let mut chunks = Vec::with_capacity(spans.len());
        for (ordinal, (start, end)) in spans.into_iter().enumerate() {
            let embedding = invented.embedding(1, first + ordinal)?;
            let text = document.text[start..end].to_owned();
            chunks.push((Chunk { ordinal: ordinal as u32, start, end, text }, embedding));
        }
        let started = Instant::now();
        batch.add(&document, &chunks)?;
        spent += started.elapsed().as_secs_f64();
    }
    let started = Instant::now();
    batch.commit()?;
    spent += started.elapsed().as_secs_f64();
    let ingest_per_second = vectors as f64 / spent;

    on_progress("building the indexes");
    let started = Instant::now();
    let mut graph = 0.0;
    writer.refresh_caches(&mut |done, _| {
        if done <= vectors {
            graph = started.elapsed().as_secs_f64();
        }
    })?;
    let words = started.elapsed().as_secs_f64() - graph;
    Ok(BuildRates {
        ingest_per_second,
        graph_per_second: vectors as f64 / graph,
        words_per_second: vectors as f64 / words,
    })
}

/// A kind of search for each of `asked`; the first `exact` of them are compared with looking at every vector.
fn row(
    name: &str,
    snapshot: &Snapshot,
    asked: &[(String, Embedding)],
    mode: Mode,
    exact: usize,
) -> Result<SearchRow, Error> {
    let mut times = Vec::with_capacity(asked.len());
    for (words, embedding) in asked {
        let started = Instant::now();
        snapshot.search(words, Some(embedding), mode, 10, 100)?;
        times.push(started.elapsed().as_secs_f64() * 1000.0);
    }
    let recall = if exact > 0 { Some(recall(snapshot, &asked[..exact.min(asked.len())])?) } else { None };
    Ok(SearchRow {
        search: name.to_owned(),
        searches: times.len(),
        p50_ms: quantile(&mut times, 0.50),
        p99_ms: quantile(&mut times, 0.99),
        recall,
    })
}

fn searched(snapshot: &Snapshot, asked: &[(String, Embedding)]) -> Result<Vec<SearchRow>, Error> {
    [("dense", Mode::Dense, EXACT), ("bm25", Mode::Bm25, 0), ("hybrid", Mode::Hybrid, 0)]
        .into_iter()
        .map(|(name, mode, exact)| row(name, snapshot, asked, mode, exact))
        .collect()
}

impl Engine {
    /// Measures searches for `queries` in the knowledge base `kb`: their time, and how many of the ten nearest vectors the
    /// graph finds.
    ///
    /// # Errors
    /// If the knowledge base can't be opened, or a query can't be embedded.
    pub fn bench_queries(&self, kb: &Path, queries: &[String]) -> Result<Vec<SearchRow>, Error> {
        let snapshot = ViewOptions::default().snapshot(kb)?;
        let texts: Vec<&str> = queries.iter().map(String::as_str).collect();
        let vectors = self.models().embedder()?.embed(Role::Query, &texts)?;
        let asked: Vec<(String, Embedding)> = queries.iter().cloned().zip(vectors).collect();
        // What the first search opens is not part of the others.
        if let Some((words, embedding)) = asked.first() {
            snapshot.search(words, Some(embedding), Mode::Hybrid, 10, 100)?;
        }
        searched(&snapshot, &asked)
    }
}

fn opened(
    place: &KnowledgeBase,
    first: impl Fn(&Snapshot) -> Result<(), StoreError>,
) -> Result<(f64, Snapshot), Error> {
    let started = Instant::now();
    let snapshot = place.snapshot()?;
    first(&snapshot)?;
    Ok((started.elapsed().as_secs_f64() * 1000.0, snapshot))
}

fn recall(snapshot: &Snapshot, asked: &[(String, Embedding)]) -> Result<f64, Error> {
    let embeddings: Vec<&Embedding> = asked.iter().map(|(_, embedding)| embedding).collect();
    let (mut wanted, mut found) = (0, 0);
    for (embedding, exact) in embeddings.iter().zip(snapshot.dense_exact_all(&embeddings, 10)?) {
        let hits = snapshot.dense(embedding, 10)?;
        wanted += exact.len();
        found += exact.iter().filter(|exact| hits.iter().any(|hit| hit.chunk == exact.chunk)).count();
    }
    Ok(found as f64 / wanted.max(1) as f64)
}

fn quantile(times: &mut [f64], share: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    let at = (times.len() as f64 * share) as usize;
    times.get(at.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Numbers in a file, one after the other.
struct Saved {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Saved {
    fn new(folder: &Path, name: &str) -> Result<Self, Error> {
        let path = folder.join(name);
        let created = std::fs::create_dir_all(folder).and_then(|()| File::create(&path));
        match created {
            Ok(file) => Ok(Self { path, file: BufWriter::with_capacity(1 << 20, file) }),
            Err(source) => Err(Error::Store(StoreError::Io { path, source })),
        }
    }

    fn write(&mut self, numbers: &[f32]) -> Result<(), Error> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.file.write_all(&bytes).map_err(|source| Error::Store(StoreError::Io { path: self.path.clone(), source }))
    }

    fn finish(mut self) -> Result<(), Error> {
        self.file.flush().map_err(|source| Error::Store(StoreError::Io { path: self.path, source }))
    }
}
