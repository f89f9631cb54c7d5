//! Files, folders and standard input to documents, one at a time.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use anchorite_core::{Document, LimitExceeded, Limits};
use flate2::read::MultiGzDecoder;

use crate::decode::{decode, without_mark};
use crate::item::{Item, ReadError, SkipReason};
use crate::records::{Records, is_blank};
use crate::source::{FileSource, Found, Kind, Sources};
use crate::title::markdown_title;

/// Reads documents from `paths`: files, folders with all that is in them, and `-` for standard input.
///
/// A `.txt` or `.md` file is one document; each line of a `.jsonl` file is one (`_id`, `title`, `text`; further fields are
/// metadata). Each may be compressed (`.gz`). Standard input is JSONL if its first character is `{`, else one text.
/// Nothing is read before the iterator is asked for it, and only one document or line is held at a time.
#[must_use]
pub fn read(paths: &[PathBuf], limits: &Limits) -> Reader {
    Reader {
        sources: Sources::new(paths.to_vec()),
        limits: limits.clone(),
        progress: Progress::default(),
        standard_input: Some(Box::new(io::stdin())),
        current: None,
    }
}

/// Bytes of all files that [`read`] would read, as they are on disk; `None` if standard input is among them. It looks at
/// every name and reads no content.
#[must_use]
pub fn total_bytes(paths: &[PathBuf]) -> Option<u64> {
    crate::source::total_bytes(paths)
}

/// How many bytes a [`Reader`] has read so far, as they are on disk. Clones show the same reader.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    /// Bytes read so far; those of files that were given up count too.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The documents of some paths; see [`read`].
pub struct Reader {
    sources: Sources,
    limits: Limits,
    progress: Progress,
    standard_input: Option<Box<dyn Read + Send>>,
    current: Option<RecordFile>,
}

/// A JSONL file that is being read.
struct RecordFile {
    records: Records,
    compressed: bool,
    stamp: Option<Stamp>,
}

impl Reader {
    /// Reads `input` where a path is `-`.
    #[must_use]
    pub fn with_standard_input(mut self, input: impl Read + Send + 'static) -> Self {
        self.standard_input = Some(Box::new(input));
        self
    }

    /// How far this reader is, to be looked at while it is used.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    fn open(&mut self, file: &FileSource) -> Result<Option<Item>, ReadError> {
        let failed = |source| ReadError::Io { path: file.name.clone(), source };
        let opened = Arc::new(File::open(&file.path).map_err(failed)?);
        let stamp = Stamp::of(&opened).map_err(failed)?;
        let metered = Metered { reader: Arc::clone(&opened), progress: self.progress.clone(), left: stamp.length };
        let (kind, compressed) = (file.format.kind, file.format.compressed);
        if !compressed {
            let (limit, allowed) = self.most_bytes(kind);
            LimitExceeded::check(|| file.name.clone(), limit, stamp.length, allowed)?;
        }
        let bytes: Box<dyn Read + Send> =
            if compressed { Box::new(MultiGzDecoder::new(BufReader::new(metered))) } else { Box::new(metered) };
        if kind == Kind::Records {
            let records = Records::new(bytes, file.name.clone(), &self.limits);
            self.current = Some(RecordFile { records, compressed, stamp: Some(stamp) });
            return Ok(None);
        }
        let bytes = self.whole(bytes, &file.name, compressed)?;
        if !stamp.still_holds() {
            return Ok(Some(Item::Skipped { source: file.name.clone(), reason: SkipReason::Changed }));
        }
        let title = |text: &str| match kind {
            Kind::Markdown => markdown_title(text).unwrap_or(&file.stem).to_owned(),
            _ => file.stem.clone(),
        };
        Ok(Some(self.document(bytes, &file.name, title)))
    }

    fn most_bytes(&self, kind: Kind) -> (&'static str, u64) {
        let document = self.limits.document_bytes as u64;
        if kind == Kind::Records || self.limits.file_bytes < document {
            ("file_bytes", self.limits.file_bytes)
        } else {
            ("document_bytes", document)
        }
    }

    fn whole(&self, bytes: impl Read, name: &str, compressed: bool) -> Result<Vec<u8>, ReadError> {
        let (limit, allowed) = self.most_bytes(Kind::Text);
        let mut whole = Vec::new();
        bytes
            .take(allowed.saturating_add(1))
            .read_to_end(&mut whole)
            .map_err(|source| read_error(name, compressed, source))?;
        LimitExceeded::check(|| name.to_owned(), limit, whole.len() as u64, allowed)?;
        Ok(whole)
    }

    fn document(&self, bytes: Vec<u8>, name: &str, title: impl Fn(&str) -> String) -> Item {
        let decoded = decode(bytes);
        let skipped = |reason| Item::Skipped { source: name.to_owned(), reason };
        if decoded.is_hardly_text() {
            return skipped(SkipReason::NotText);
        }
        let text = decoded.text;
        if text.trim_matches(is_blank).is_empty() {
            return skipped(SkipReason::Blank);
        }
        // UTF-16 grows when it becomes UTF-8.
        let (actual, allowed) = (text.len() as u64, self.limits.document_bytes as u64);
        if let Err(error) = LimitExceeded::check(|| name.to_owned(), "document_bytes", actual, allowed) {
            return Item::Error(error.into());
        }
        let (source, title) = (name.to_owned(), title(&text));
        let document = Document { source, title, text, metadata: Default::default(), outline: Vec::new() };
        Item::Document { document, warning: decoded.lost.some() }
    }

    fn open_standard_input(&mut self) -> Result<Option<Item>, ReadError> {
        const NAME: &str = "-";
        let Some(input) = self.standard_input.take() else {
            return Ok(Some(Item::Skipped { source: NAME.to_owned(), reason: SkipReason::Blank }));
        };
        let mut input = Metered { reader: input, progress: self.progress.clone(), left: 0 };
        let most = self.limits.document_bytes.min(self.limits.line_bytes);
        let failed = |source| ReadError::Io { path: NAME.to_owned(), source };
        let (beginning, first) = beginning(&mut input, most).map_err(failed)?;
        let bytes = Cursor::new(beginning).chain(input);
        if first == Some(b'{') {
            let records = Records::new(bytes, NAME.to_owned(), &self.limits);
            self.current = Some(RecordFile { records, compressed: false, stamp: None });
            return Ok(None);
        }
        let bytes = self.whole(bytes, NAME, false)?;
        Ok(Some(self.document(bytes, NAME, |text| markdown_title(text).unwrap_or_default().to_owned())))
    }

    /// The next record of the JSONL file that is being read; `None` when it is over.
    fn record(&mut self) -> Option<Item> {
        let file = self.current.as_mut()?;
        let name = file.records.name().to_owned();
        match file.records.next() {
            Ok(Some(item)) => Some(item),
            Ok(None) => {
                let whole = file.stamp.as_ref().is_none_or(Stamp::still_holds);
                self.current = None;
                if whole {
                    return None;
                }
                Some(Item::Error(ReadError::Changed { path: name }))
            }
            Err(source) => {
                let compressed = file.compressed;
                self.current = None;
                Some(Item::Error(read_error(&name, compressed, source)))
            }
        }
    }
}

impl Iterator for Reader {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.record() {
                return Some(item);
            }
            let opened = match self.sources.next()? {
                Found::Other(item) => return Some(item),
                Found::File(file) => self.open(&file),
                Found::StandardInput => self.open_standard_input(),
            };
            match opened {
                Ok(Some(item)) => return Some(item),
                Ok(None) => {}
                Err(error) => return Some(Item::Error(error)),
            }
        }
    }
}

fn read_error(name: &str, compressed: bool, source: io::Error) -> ReadError {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    let path = name.to_owned();
    if compressed && matches!(source.kind(), InvalidData | InvalidInput | UnexpectedEof) {
        ReadError::Compressed { path, source }
    } else {
        ReadError::Io { path, source }
    }
}

/// Reads until something is there that is not blank, or `most` bytes. What was read, and that byte.
fn beginning(input: &mut impl Read, most: usize) -> io::Result<(Vec<u8>, Option<u8>)> {
    let mut read = Vec::new();
    let mut piece = [0; 4096];
    loop {
        // A byte order mark has three bytes, and pipes may give them one by one.
        if read.len() >= 3 {
            let first = without_mark(&read).iter().find(|byte| !byte.is_ascii_whitespace()).copied();
            if first.is_some() || read.len() >= most {
                return Ok((read, first));
            }
        }
        match input.read(&mut piece) {
            Ok(0) => {
                let first = read.trim_ascii_start().first().copied();
                return Ok((read, first));
            }
            Ok(count) => read.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A file's length and time of change when it was opened.
struct Stamp {
    file: Arc<File>,
    length: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(file: &Arc<File>) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { file: Arc::clone(file), length: metadata.len(), modified: metadata.modified().ok() })
    }

    fn still_holds(&self) -> bool {
        Self::of(&self.file).is_ok_and(|now| now.length == self.length && now.modified == self.modified)
    }
}

/// Counts what is read; when it is done with, what was left of the file counts as read too.
struct Metered<R> {
    reader: R,
    progress: Progress,
    left: u64,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.progress.0.fetch_add(count as u64, Ordering::Relaxed);
        self.left = self.left.saturating_sub(count as u64);
        Ok(count)
    }
}

impl<R> Drop for Metered<R> {
    fn drop(&mut self) {
        self.progress.0.fetch_add(self.left, Ordering::Relaxed);
    }
}
