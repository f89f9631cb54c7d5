//! Ingest: documents are read one at a time, cut, embedded in batches, and written in one transaction that becomes one
//! generation. Memory is bounded by one batch.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anchorite_core::{Chunk, Document, Embedder, Embedding, InferenceError, Limits, Role, titled};
use anchorite_formats::{Item, Reader, read, total_bytes};
use anchorite_infer::BiEncoder;
use anchorite_store::{Batch, KnowledgeBase, Outcome, Refresh};
use anchorite_text::{ChunkError, Chunker};
use serde::Serialize;

use crate::{Engine, Error};

/// Tokens of a chunk at most, title included; less where the model reads less.
const CHUNK_TOKENS: usize = 220;
/// Tokens that a chunk repeats of the one before it at most.
const OVERLAP_TOKENS: usize = 40;
/// Chunks embedded together.
const BATCH_CHUNKS: usize = 256;

/// How far an ingest is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IngestProgress {
    /// Documents are read and embedded.
    Reading {
        /// Bytes read.
        bytes: u64,
        /// Bytes there are; `None` for standard input.
        total: Option<u64>,
        /// Documents written.
        documents: u64,
        /// Chunks written.
        chunks: u64,
    },
    /// The search indexes are brought up to date.
    Indexing {
        /// Chunks done.
        done: u64,
        /// Chunks there are.
        total: u64,
    },
}

/// A file or record that was not taken in, or not as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attention {
    /// Where.
    pub source: String,
    /// Why.
    pub reason: String,
}

/// What an ingest did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct IngestReport {
    /// New documents.
    pub added: u64,
    /// Documents that took the place of what their source held before.
    pub replaced: u64,
    /// Sources whose content was there already under another source.
    pub duplicates: u64,
    /// Documents that were there already.
    pub unchanged: u64,
    /// Documents of which only the metadata was new.
    pub metadata_updated: u64,
    /// Chunks written.
    pub chunks: u64,
    /// Generation of the knowledge base afterwards.
    pub generation: i64,
    /// Left out for a good reason: empty, hidden, not text.
    pub skipped: Vec<Attention>,
    /// Taken in with a remark: characters that could not be decoded.
    pub warnings: Vec<Attention>,
    /// Could not be taken in.
    pub failed: Vec<Attention>,
    /// What was done with the search indexes.
    pub indexes: Option<Refresh>,
    /// Seconds it took, models not counted.
    pub seconds: f64,
}

impl IngestReport {
    fn count(&mut self, outcome: Outcome, chunks: usize) {
        match outcome {
            Outcome::Added => self.added += 1,
            Outcome::Replaced => self.replaced += 1,
            Outcome::Duplicate => self.duplicates += 1,
            Outcome::MetadataUpdated => self.metadata_updated += 1,
            Outcome::Unchanged => self.unchanged += 1,
        }
        if matches!(outcome, Outcome::Added | Outcome::Replaced) {
            self.chunks += chunks as u64;
        }
    }

    fn documents(&self) -> u64 {
        self.added + self.replaced + self.duplicates + self.unchanged + self.metadata_updated
    }

    /// True if the knowledge base is as it was.
    #[must_use]
    pub fn nothing_new(&self) -> bool {
        self.added + self.replaced + self.duplicates + self.metadata_updated == 0
    }
}

/// Cuts texts for what `embedder` reads.
pub(crate) fn chunker_for(embedder: &dyn Embedder, limits: &Limits) -> Result<Chunker, ChunkError> {
    let tokens = CHUNK_TOKENS.min(embedder.max_tokens().saturating_sub(2).max(8));
    Ok(Chunker::new(tokens, OVERLAP_TOKENS.min(tokens / 4))?.with_limits(limits))
}

impl Engine {
    /// The settings that decide what an ingest makes of a document: two knowledge bases of the same documents and the same
    /// bi-encoder differ where these differ.
    #[must_use]
    pub fn ingest_settings(&self) -> String {
        let (_, precision) = self.models.compute();
        format!("chunks of {CHUNK_TOKENS} tokens, {OVERLAP_TOKENS} in common, vectors in {precision}")
    }

    /// Reads `paths` (files, folders, `-` for standard input) into the knowledge base `kb`, which is made if it is not
    /// there. What is there already is left alone; what changed takes the place of what its source held before.
    ///
    /// # Errors
    /// If a path does not exist, nothing could be read and something failed, the knowledge base can't be written or was
    /// made with another bi-encoder, or a model fails. Nothing is written then.
    pub fn ingest(
        &self,
        kb: &Path,
        paths: &[PathBuf],
        on_progress: &mut dyn FnMut(&IngestProgress),
    ) -> Result<IngestReport, Error> {
        if let Some(path) = paths.iter().find(|path| path.as_os_str() != "-" && !path.exists()) {
            return Err(Error::NoSuchPath { path: path.display().to_string() });
        }
        let embedder = self.models.embedder()?;
        let started = Instant::now();
        let total = total_bytes(paths);
        let mut reader = read(paths, &self.limits);
        let mut report = IngestReport::default();
        let Some(first) = next_document(&mut reader, &mut report) else {
            // Nothing to write: the knowledge base is not even opened.
            if let Some(failed) = report.failed.first() {
                return Err(Error::NothingRead { reason: failed.reason.clone() });
            }
            report.seconds = started.elapsed().as_secs_f64();
            return Ok(report);
        };
        let place = KnowledgeBase::at(kb);
        let mut writer = place.create_or_open_writer(embedder.fingerprint(), embedder.dim())?;
        let intake = Intake {
            embedder: &embedder,
            chunker: chunker_for(&*embedder, &self.limits)?,
            batch: writer.begin("ingest")?,
            pending: Vec::new(),
            pending_chunks: 0,
        };
        report.generation = intake.all(first, &mut reader, total, &mut report, on_progress)?;
        report.indexes = Some(writer.refresh_caches(&mut |done, total| {
            on_progress(&IngestProgress::Indexing { done: done as u64, total: total as u64 });
        })?);
        report.seconds = started.elapsed().as_secs_f64();
        Ok(report)
    }
}

/// The next document; what comes before it and is none goes into the report.
fn next_document(reader: &mut Reader, report: &mut IngestReport) -> Option<Document> {
    for item in reader {
        match item {
            Item::Document { document, remarks } => {
                for remark in remarks {
                    report.warnings.push(Attention { source: document.source.clone(), reason: remark.to_string() });
                }
                return Some(document);
            }
            Item::Skipped { source, reason } => report.skipped.push(Attention { source, reason: reason.to_string() }),
            Item::Error(error) => {
                let source = error.place().to_owned();
                report.failed.push(Attention { source, reason: error.to_string() });
            }
        }
    }
    None
}

struct Intake<'a> {
    embedder: &'a BiEncoder,
    chunker: Chunker,
    batch: Batch<'a>,
    pending: Vec<(Document, Vec<Chunk>)>,
    pending_chunks: usize,
}

impl Intake<'_> {
    /// Takes in `first` and all that follows it in one transaction; returns the generation that it became.
    fn all(
        mut self,
        first: Document,
        reader: &mut Reader,
        total: Option<u64>,
        report: &mut IngestReport,
        on_progress: &mut dyn FnMut(&IngestProgress),
    ) -> Result<i64, Error> {
        let bytes = reader.progress();
        let mut next = Some(first);
        while let Some(document) = next {
            self.take(document, report)?;
            let (documents, chunks) = (report.documents(), report.chunks);
            on_progress(&IngestProgress::Reading { bytes: bytes.bytes(), total, documents, chunks });
            next = next_document(reader, report);
        }
        self.flush(report)?;
        Ok(self.batch.commit()?.id)
    }

    fn take(&mut self, document: Document, report: &mut IngestReport) -> Result<(), Error> {
        if !self.batch.classify(&document)?.needs_chunks() {
            let outcome = self.batch.add(&document, &[])?;
            report.count(outcome, 0);
            return Ok(());
        }
        match self.chunker.chunk(&document.title, &document.text, self.embedder) {
            Ok(chunks) => {
                self.pending_chunks += chunks.len();
                self.pending.push((document, chunks));
            }
            Err(error) => report.failed.push(Attention { source: document.source, reason: error.to_string() }),
        }
        if self.pending_chunks >= BATCH_CHUNKS { self.flush(report) } else { Ok(()) }
    }

    fn flush(&mut self, report: &mut IngestReport) -> Result<(), Error> {
        let pending = std::mem::take(&mut self.pending);
        self.pending_chunks = 0;
        let all: Vec<(&Document, &Chunk)> =
            pending.iter().flat_map(|(document, chunks)| chunks.iter().map(move |chunk| (document, chunk))).collect();
        let mut vectors = match self.embed(&all) {
            Ok(vectors) => vectors.into_iter().map(Some).collect::<Vec<_>>(),
            // One text whose vector is unusable must not keep the others out (F20).
            Err(InferenceError::Embedding(_)) => {
                all.iter().map(|pair| self.embed(&[*pair]).ok().and_then(|mut vectors| vectors.pop())).collect()
            }
            Err(error) => return Err(error.into()),
        }
        .into_iter();
        for (document, chunks) in &pending {
            let own: Option<Vec<(Chunk, Embedding)>> = chunks
                .iter()
                .map(|chunk| (chunk.clone(), vectors.next().flatten()))
                .map(|(chunk, vector)| vector.map(|vector| (chunk, vector)))
                .collect::<Vec<_>>()
                .into_iter()
                .collect();
            match own {
                Some(own) => {
                    let outcome = self.batch.add(document, &own)?;
                    report.count(outcome, own.len());
                }
                None => report.failed.push(Attention {
                    source: document.source.clone(),
                    reason: "the model gives no usable vector for a part of it".to_owned(),
                }),
            }
        }
        Ok(())
    }

    fn embed(&self, pairs: &[(&Document, &Chunk)]) -> Result<Vec<Embedding>, InferenceError> {
        // A chunk is embedded with its title, as rerankers and generators read it.
        let texts: Vec<String> = pairs.iter().map(|(document, chunk)| titled(&document.title, &chunk.text)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        self.embedder.embed(Role::Document, &texts)
    }
}
