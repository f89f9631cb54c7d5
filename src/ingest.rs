//! Ingest: documents are read one at a time, cut, embedded in batches, and written in one transaction that becomes one
//! generation. Memory is bounded by one batch.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use anchorite_core::{Chunk, Document, Embedder, Embedding, InferenceError, Limits, Role, titled};
use anchorite_formats::{Item, Reader, read, total_bytes};
use anchorite_infer::BiEncoder;
use anchorite_store::{Batch, Custody, Expiry, KnowledgeBase, Outcome, Refresh, days};
use anchorite_text::{ChunkError, Chunker, SecretKind, redacted, secrets};
use serde::{Deserialize, Serialize};

use crate::{Engine, Error};

/// Tokens of a chunk at most, title included; less where the model reads less.
const CHUNK_TOKENS: usize = 220;
/// Tokens that a chunk repeats of the one before it at most.
const OVERLAP_TOKENS: usize = 40;
/// Chunks embedded together.
const BATCH_CHUNKS: usize = 256;
/// Bytes of the headings that a chunk is embedded with at most: some two dozen tokens, so that a chunk still fits its model.
const HEADING_BYTES: usize = 100;

/// Fields of a document's metadata that say what [`Custody`] says of all.
const OWNER: &str = "_owner";
const ACCESS: &str = "_access";
const DATED: [&str; 2] = ["_date", "date"];
const EXPIRES: &str = "_expires";

/// What is done with a document that has secrets in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SecretPolicy {
    /// Nobody looks for them.
    Allow,
    /// It is taken in, and the report tells of them.
    #[default]
    Flag,
    /// It is taken in with an asterisk for each of their bytes.
    Redact,
    /// It is not taken in.
    Refuse,
}

impl FromStr for SecretPolicy {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "allow" => Ok(Self::Allow),
            "flag" => Ok(Self::Flag),
            "redact" => Ok(Self::Redact),
            "refuse" => Ok(Self::Refuse),
            _ => Err(Error::UnknownName {
                what: "policy for secrets",
                name: name.into(),
                known: "allow, flag, redact, refuse",
            }),
        }
    }
}

/// How documents are taken in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IngestOptions {
    /// Whose they are, who may see them, and how long they are kept. Fields of a document itself (`_owner`, `_access`,
    /// `_date` or `date`, `_expires`) weigh more.
    pub custody: Custody,
    /// What is done with secrets.
    pub secrets: SecretPolicy,
    /// Who does it, for the history and the audit trail.
    pub actor: String,
    /// Opens encrypted files.
    pub password: Option<String>,
}

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
    /// Sources that were forgotten because they are no longer there.
    pub removed: u64,
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
    /// What should be known of how files were taken apart: in this process, or without some limit.
    pub notice: Option<String>,
    /// Sources whose term had ended, and which were erased.
    pub expired: u64,
    /// What was done with the search indexes.
    pub indexes: Option<Refresh>,
    /// Seconds it took, models not counted.
    pub seconds: f64,
    /// Every source that was read, where that is asked for.
    #[serde(skip)]
    pub(crate) sources: Option<BTreeSet<String>>,
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
        self.added + self.replaced + self.duplicates + self.metadata_updated + self.removed + self.expired == 0
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
        format!(
            "chunks of {CHUNK_TOKENS} tokens under their headings, {OVERLAP_TOKENS} in common, vectors in {precision}"
        )
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
        options: &IngestOptions,
        on_progress: &mut dyn FnMut(&IngestProgress),
    ) -> Result<IngestReport, Error> {
        if let Some(path) = paths.iter().find(|path| path.as_os_str() != "-" && !path.exists()) {
            return Err(Error::NoSuchPath { path: path.display().to_string() });
        }
        let mut report = IngestReport::default();
        let result = self.take_in(kb, paths, options, &BTreeSet::new(), &mut report, on_progress);
        result.map(|()| report)
    }

    /// Takes `paths` in, and forgets those of the `known` sources that are not among what was read, unless their file could
    /// not be read. All of it is one generation.
    pub(crate) fn take_in(
        &self,
        kb: &Path,
        paths: &[PathBuf],
        options: &IngestOptions,
        known: &BTreeSet<String>,
        report: &mut IngestReport,
        on_progress: &mut dyn FnMut(&IngestProgress),
    ) -> Result<(), Error> {
        let embedder = self.models.embedder()?;
        let started = Instant::now();
        let total = total_bytes(paths);
        let mut reader =
            read(paths, &self.limits).with_password(options.password.clone()).with_program(self.extractor.clone());
        let first = next_document(&mut reader, report);
        if first.is_none() && known.is_empty() {
            // Nothing to write: the knowledge base is not even opened.
            report.notice = reader.notice();
            if let Some(failed) = report.failed.first() {
                return Err(Error::NothingRead { reason: failed.reason.clone() });
            }
            report.seconds = started.elapsed().as_secs_f64();
            return Ok(());
        }
        let place = KnowledgeBase::at(kb);
        let mut writer = place.create_or_open_writer(embedder.fingerprint(), embedder.dim())?.by(&options.actor);
        let intake = Intake {
            embedder: &embedder,
            chunker: chunker_for(&*embedder, &self.limits)?,
            batch: writer.begin("ingest")?,
            options,
            pending: Vec::new(),
            pending_chunks: 0,
        };
        report.generation = intake.all(first, &mut reader, total, known, report, on_progress)?;
        report.notice = reader.notice();
        report.indexes = Some(writer.refresh_caches(&mut |done, total| {
            on_progress(&IngestProgress::Indexing { done: done as u64, total: total as u64 });
        })?);
        report.seconds = started.elapsed().as_secs_f64();
        Ok(())
    }

    /// Takes in documents that are there already, as one change that `note` names.
    pub(crate) fn ingest_documents(
        &self,
        kb: &Path,
        documents: Vec<Document>,
        note: &str,
        options: &IngestOptions,
    ) -> Result<IngestReport, Error> {
        let embedder = self.models.embedder()?;
        let started = Instant::now();
        let mut report = IngestReport::default();
        let place = KnowledgeBase::at(kb);
        let mut writer = place.create_or_open_writer(embedder.fingerprint(), embedder.dim())?.by(&options.actor);
        let mut intake = Intake {
            embedder: &embedder,
            chunker: chunker_for(&*embedder, &self.limits)?,
            batch: writer.begin(note)?,
            options,
            pending: Vec::new(),
            pending_chunks: 0,
        };
        for document in documents {
            intake.take(document, &mut report)?;
        }
        intake.flush(&mut report)?;
        if let Some(failed) = report.failed.first() {
            return Err(Error::NothingRead { reason: format!("{}: {}", failed.source, failed.reason) });
        }
        report.generation = intake.commit()?;
        report.indexes = Some(writer.refresh_caches(&mut |_, _| ())?);
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
                if let Some(sources) = &mut report.sources {
                    sources.insert(document.source.clone());
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

/// Deals with the secrets of a document; false if it is not taken in because of them.
fn admit_secrets(document: &mut Document, policy: SecretPolicy, report: &mut IngestReport) -> bool {
    if policy == SecretPolicy::Allow {
        return true;
    }
    let found = secrets(&document.text);
    if found.is_empty() {
        return true;
    }
    let mut kinds: Vec<SecretKind> = found.iter().map(|secret| secret.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let kinds = kinds.iter().map(SecretKind::to_string).collect::<Vec<_>>().join(", ");
    let line = document.text[..found[0].span.start].matches('\n').count() + 1;
    let what = format!("it holds {kinds} ({} in all, the first in line {line})", found.len());
    let source = document.source.clone();
    match policy {
        SecretPolicy::Refuse => {
            let reason = format!("{what}; take it in with --secrets redact or --secrets flag if that is intended");
            report.failed.push(Attention { source, reason });
            return false;
        }
        SecretPolicy::Redact => {
            document.text = redacted(&document.text, &found);
            report.warnings.push(Attention { source, reason: format!("{what}; asterisks stand in their place") });
        }
        _ => report.warnings.push(Attention { source, reason: format!("{what}; see --secrets") }),
    }
    true
}

/// What is said of all documents, and of this one by its own metadata.
fn custody_of(document: &Document, general: &Custody) -> Custody {
    let text = |key: &str| document.metadata.get(key).and_then(|value| value.as_str());
    let dated = DATED.iter().find_map(|key| text(key).and_then(days::milliseconds));
    Custody {
        owner: text(OWNER).map(str::to_owned).or_else(|| general.owner.clone()),
        access: text(ACCESS).map(str::to_owned).or_else(|| general.access.clone()),
        dated: dated.or(general.dated),
        expiry: text(EXPIRES).and_then(days::milliseconds).map(Expiry::At).or(general.expiry),
    }
}

struct Intake<'a> {
    embedder: &'a BiEncoder,
    chunker: Chunker,
    batch: Batch<'a>,
    options: &'a IngestOptions,
    pending: Vec<(Document, Vec<Chunk>)>,
    pending_chunks: usize,
}

impl Intake<'_> {
    /// Takes in `first` and all that follows it in one transaction; returns the generation that it became.
    fn all(
        mut self,
        first: Option<Document>,
        reader: &mut Reader,
        total: Option<u64>,
        known: &BTreeSet<String>,
        report: &mut IngestReport,
        on_progress: &mut dyn FnMut(&IngestProgress),
    ) -> Result<i64, Error> {
        let bytes = reader.progress();
        report.expired = self.batch.remove_expired()?.sources;
        let mut next = first;
        while let Some(document) = next {
            self.take(document, report)?;
            let (documents, chunks) = (report.documents(), report.chunks);
            on_progress(&IngestProgress::Reading { bytes: bytes.bytes(), total, documents, chunks });
            next = next_document(reader, report);
        }
        self.flush(report)?;
        // What was moved is there under its new name by now, so its text and vectors stay.
        let seen = report.sources.take().unwrap_or_default();
        for source in known.iter().filter(|source| !seen.contains(*source)) {
            let file = source.split('#').next().unwrap_or(source);
            if !report.failed.iter().any(|failed| failed.source.contains(file)) {
                report.removed += self.batch.delete_source(source)?.sources;
            }
        }
        report.sources = Some(seen);
        self.commit()
    }

    /// Returns the generation that it became.
    fn commit(self) -> Result<i64, Error> {
        Ok(self.batch.commit()?.id)
    }

    fn take(&mut self, mut document: Document, report: &mut IngestReport) -> Result<(), Error> {
        if !admit_secrets(&mut document, self.options.secrets, report) {
            return Ok(());
        }
        self.batch.keep_as(custody_of(&document, &self.options.custody));
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
                    self.batch.keep_as(custody_of(document, &self.options.custody));
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
        let texts: Vec<String> = pairs.iter().map(|(document, chunk)| in_context(document, chunk)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        self.embedder.embed(Role::Document, &texts)
    }
}

/// A chunk as it is embedded: behind its document's title, as rerankers and generators read it, and behind the headings that
/// it stands under, which say what it is about where its own words don't. The innermost say most and are kept.
fn in_context(document: &Document, chunk: &Chunk) -> String {
    let mut headings = document.headings_over(chunk.start);
    headings.retain(|heading| *heading != document.title);
    let mut path = String::new();
    for heading in headings.iter().rev() {
        if path.len() + heading.len() > HEADING_BYTES {
            break;
        }
        path = if path.is_empty() { (*heading).to_owned() } else { format!("{heading}, {path}") };
    }
    titled(&document.title, &titled(&path, &chunk.text))
}

#[cfg(test)]
mod tests {
    use anchorite_core::{Landmark, LandmarkKind};

    use super::*;

    #[test]
    fn m33_a_chunk_is_embedded_under_its_headings_and_its_offsets_stay_true() {
        let text = "# Title\n\n## Part\n\nwords".to_owned();
        let heading = |at, level, end| Landmark { at, kind: LandmarkKind::Heading { level, end } };
        let outline = vec![heading(0, 1, 7), heading(9, 2, 16)];
        let (source, title) = (String::new(), "Title".to_owned());
        let document = Document { source, title, text: text.clone(), metadata: Default::default(), outline };
        let chunk = |start: usize, end: usize| Chunk { ordinal: 0, start, end, text: text[start..end].to_owned() };
        assert_eq!(in_context(&document, &chunk(18, 23)), "Title. Part. words");
        assert_eq!(in_context(&document, &chunk(9, 23)), "Title. ## Part\n\nwords");
        assert_eq!(in_context(&document, &chunk(0, 23)), text);
        let long = Document { title: "x".repeat(5), text: format!("# {}\n\nwords", "y".repeat(300)), ..document };
        let long = Document { outline: vec![heading(0, 1, 302)], ..long };
        assert_eq!(
            in_context(&long, &Chunk { ordinal: 0, start: 304, end: 309, text: "words".to_owned() }),
            "xxxxx. words"
        );
    }
}
