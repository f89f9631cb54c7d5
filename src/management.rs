//! What the owner of a knowledge base does with it beside asking: correcting, deleting, and carrying it out in plain files.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anchorite_core::Document;
use anchorite_store::{Deletion, KnowledgeBase, Removal, Snapshot, StoreError, StoredDocument};
use serde::Serialize;

use crate::ask::THREADS;
use crate::ingest::{IngestOptions, IngestReport};
use crate::{Engine, Error};

/// A knowledge base of up to so many chunks is compacted at once when something is erased; that of a larger one is left to
/// its owner, since the search indexes are built anew.
const COMPACTED_AT_ONCE: u64 = 50_000;

/// What a deletion did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeletionReport {
    /// What went.
    pub deleted: Deletion,
    /// The generation that it made.
    pub generation: i64,
    /// Threads of questions that had read it, and went with it.
    pub threads: Vec<String>,
    /// Whether no file holds a word of it any more. If not, that is still to be done: `anchorite kb compact`.
    pub reclaimed: bool,
}

/// What an export wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExportReport {
    /// The generation shown.
    pub generation: i64,
    /// Documents written.
    pub documents: u64,
    /// Lines of the audit trail written.
    pub audit: u64,
}

/// A document by its source, or by its number.
///
/// # Errors
/// [`Error::NoSuchDocument`] if there is none that may be seen; or if the database fails.
pub fn find_document(snapshot: &Snapshot, name: &str) -> Result<StoredDocument, Error> {
    if let Some(document) = snapshot.document_by_source(name)? {
        return Ok(document);
    }
    let by_number = match name.parse() {
        Ok(id) => snapshot.document(id)?,
        Err(_) => None,
    };
    by_number.ok_or_else(|| Error::NoSuchDocument { name: name.to_owned() })
}

/// Deletes documents, each by source or number, all or none.
///
/// # Errors
/// [`Error::NoSuchDocument`] for a name that is none; or if the knowledge base can't be written.
pub fn delete(kb: &Path, names: &[String], removal: Removal, actor: &str) -> Result<DeletionReport, Error> {
    let place = KnowledgeBase::at(kb);
    // A reader that is still open would keep the deleted words in the database's log: it goes before the writer comes.
    let (documents, chunks) = {
        let snapshot = place.snapshot()?;
        let find = |name: &String| Ok((name.clone(), find_document(&snapshot, name)?));
        (names.iter().map(find).collect::<Result<Vec<_>, Error>>()?, snapshot.stats()?.chunks)
    };
    let mut report = DeletionReport::default();
    let mut writer = place.open_writer()?.by(actor);
    let mut batch = writer.begin("delete")?;
    let mut gone = Vec::new();
    for (name, document) in &documents {
        let by_source = document.source == *name || document.aliases.contains(name);
        let deleted = if by_source {
            batch.remove_source(name, removal)?
        } else {
            batch.delete_document(document.id, removal)?
        };
        if deleted.documents > 0 {
            gone.push(document.id);
        }
        report.deleted.sources += deleted.sources;
        report.deleted.documents += deleted.documents;
        report.deleted.chunks += deleted.chunks;
    }
    report.generation = batch.commit()?.id;
    if removal == Removal::Erase {
        report.threads = forget_threads(kb, &gone)?;
        if chunks <= COMPACTED_AT_ONCE {
            report.reclaimed = true;
        }
    }
    if report.reclaimed {
        writer.reclaim(&mut |_, _| ())?;
    } else {
        writer.refresh_caches(&mut |_, _| ())?;
    }
    Ok(report)
}

/// Removes the threads whose checkpoints hold passages of `documents`; returns their names.
fn forget_threads(kb: &Path, documents: &[i64]) -> Result<Vec<String>, Error> {
    let folder = kb.join(THREADS);
    let failed = |path: &Path, source| Error::Store(StoreError::Io { path: path.to_owned(), source });
    let mut forgotten = Vec::new();
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(forgotten),
        Err(error) => return Err(failed(&folder, error)),
    };
    for entry in entries {
        let thread = entry.map_err(|error| failed(&folder, error))?.path();
        let mut holds = false;
        for file in fs::read_dir(&thread).into_iter().flatten().flatten() {
            let text = fs::read_to_string(file.path()).unwrap_or_default();
            // Checkpoints are JSON behind a line of their own; the state in them is JSON once more, within a string.
            let json = text.split_once('\n').map_or("", |(_, json)| json).replace('\\', "");
            holds |= documents.iter().any(|id| {
                [format!("\"document\":{id},"), format!("\"document\":{id}}}")].iter().any(|mark| json.contains(mark))
            });
        }
        if holds {
            fs::remove_dir_all(&thread).map_err(|error| failed(&thread, error))?;
            let name = thread.file_name().unwrap_or_default().to_string_lossy();
            forgotten.push(name.strip_prefix("thread-").unwrap_or(&name).to_owned());
        }
    }
    Ok(forgotten)
}

/// Writes what a view shows into plain files in `folder`, which must not exist or be empty: `documents.jsonl` (as `ingest`
/// reads them), `texts/NUMBER.txt`, `sources.jsonl`, `generations.jsonl`, `audit.jsonl`.
///
/// # Errors
/// If the folder holds something, a file can't be written, or the database fails.
pub fn export(snapshot: &Snapshot, folder: &Path) -> Result<ExportReport, Error> {
    let failed = |path: &Path, source| Error::Store(StoreError::Io { path: path.to_owned(), source });
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    if fs::read_dir(folder).map_err(|error| failed(folder, error))?.next().is_some() {
        let error = std::io::Error::other("the folder is not empty; name a new one");
        return Err(failed(folder, error));
    }
    let texts = folder.join("texts");
    fs::create_dir(&texts).map_err(|error| failed(&texts, error))?;
    let mut report = ExportReport { generation: snapshot.generation().id, ..ExportReport::default() };
    let mut documents = Lines::new(folder.join("documents.jsonl"))?;
    let mut sources = Lines::new(folder.join("sources.jsonl"))?;
    const PAGE: usize = 500;
    for offset in (0..).step_by(PAGE) {
        let page = snapshot.documents(offset, PAGE)?;
        for summary in &page {
            let Some(document) = snapshot.document(summary.id)? else { continue };
            let path = texts.join(format!("{}.txt", document.id));
            fs::write(&path, &document.text).map_err(|error| failed(&path, error))?;
            documents.write(&serde_json::json!({
                "_id": document.source, "title": document.title, "text": document.text, "metadata": document.metadata,
                "also": document.aliases, "hash": document.hash, "added_at": document.added_at,
                "generation": document.generation, "document": document.id,
            }))?;
            report.documents += 1;
        }
        if page.len() < PAGE {
            break;
        }
    }
    for offset in (0..).step_by(PAGE) {
        let page = snapshot.sources(offset, PAGE)?;
        page.iter().try_for_each(|source| sources.write(source))?;
        if page.len() < PAGE {
            break;
        }
    }
    let mut generations = Lines::new(folder.join("generations.jsonl"))?;
    snapshot.history(usize::MAX >> 1)?.iter().try_for_each(|generation| generations.write(generation))?;
    let mut audit = Lines::new(folder.join("audit.jsonl"))?;
    for entry in snapshot.audit(None, usize::MAX >> 1)? {
        audit.write(&entry)?;
        report.audit += 1;
    }
    [documents, sources, generations, audit].into_iter().try_for_each(Lines::finish)?;
    Ok(report)
}

/// A file of JSON lines.
struct Lines {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Lines {
    fn new(path: PathBuf) -> Result<Self, Error> {
        match File::create(&path) {
            Ok(file) => Ok(Self { path, file: BufWriter::new(file) }),
            Err(source) => Err(Error::Store(StoreError::Io { path, source })),
        }
    }

    fn failed(&self, source: std::io::Error) -> Error {
        Error::Store(StoreError::Io { path: self.path.clone(), source })
    }

    fn write(&mut self, value: &impl Serialize) -> Result<(), Error> {
        let written = serde_json::to_writer(&mut self.file, value)
            .map_err(std::io::Error::from)
            .and_then(|()| self.file.write_all(b"\n"));
        written.map_err(|error| self.failed(error))
    }

    fn finish(mut self) -> Result<(), Error> {
        let flushed = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        flushed.map_err(|error| self.failed(error))
    }
}

impl Engine {
    /// Puts `text` in place of what `source` holds; title and metadata stay. The former text can be gone back to.
    ///
    /// # Errors
    /// [`Error::NoSuchDocument`] if there is no such source; else as [`Engine::ingest`].
    pub fn correct(&self, kb: &Path, source: &str, text: &str, options: &IngestOptions) -> Result<IngestReport, Error> {
        let document = {
            let snapshot = KnowledgeBase::at(kb).snapshot()?;
            let stored = snapshot
                .document_by_source(source)?
                .ok_or_else(|| Error::NoSuchDocument { name: source.to_owned() })?;
            let metadata = snapshot.source_metadata(source)?.unwrap_or_default();
            Document {
                source: source.to_owned(),
                title: stored.title,
                text: text.to_owned(),
                metadata,
                outline: Vec::new(),
            }
        };
        self.ingest_documents(kb, vec![document], "correct", options)
    }
}
