//! Files, folders and standard input to documents, one at a time.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use anchorite_core::{LimitExceeded, Limits};
use flate2::read::MultiGzDecoder;

use crate::child::{Next, Program, Running, Workers, panicked};
use crate::decode::{decode, without_mark};
use crate::extract::extract;
use crate::item::{ExtractError, Item, ReadError, SkipReason};
use crate::kind::{self, HEAD, Kind};
use crate::records::Records;
use crate::source::{FileSource, Found, Sources};

/// Reads documents from `paths`: files, folders with all that is in them, and `-` for standard input.
///
/// What a file is is told by its content. Each line of a `.jsonl` file is a document (`_id`, `title`, `text`; further fields
/// are metadata), and so is each file in an archive and each attachment of a message. Every file may be compressed (`.gz`).
/// Standard input is JSONL if its first character is `{`, else one file.
/// Nothing is read before the iterator is asked for it, and only one file, or line of JSONL, is held at a time.
#[must_use]
pub fn read(paths: &[PathBuf], limits: &Limits) -> Reader {
    Reader {
        sources: Sources::new(paths.to_vec()),
        limits: limits.clone(),
        password: None,
        progress: Progress::default(),
        standard_input: Some(Box::new(io::stdin())),
        workers: None,
        slots: VecDeque::new(),
        notice: None,
    }
}

/// Files that are taken apart at once, one of them being read.
const AT_ONCE: usize = 2;

/// Bytes of all files that [`read`] would read, as they are on disk; `None` if standard input is among them. It looks at
/// every name and reads no content.
#[must_use]
pub fn total_bytes(paths: &[PathBuf]) -> Option<u64> {
    crate::source::total_bytes(paths)
}

/// A file that [`read`] would read, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    /// Where it is.
    pub path: PathBuf,
    /// How documents name it.
    pub name: String,
    /// Its length in bytes.
    pub length: u64,
    /// When it was last changed, where the system knows.
    pub modified: Option<SystemTime>,
}

/// The files that [`read`] would read, in its order, as they are now. It reads no content.
#[must_use]
pub fn files(paths: &[PathBuf]) -> Vec<FileState> {
    let state = |found| match found {
        Found::File(FileSource { path, name, .. }) => {
            // What has gone since is not among them.
            let metadata = std::fs::metadata(&path).ok()?;
            Some(FileState { path, name, length: metadata.len(), modified: metadata.modified().ok() })
        }
        Found::Other(_) | Found::StandardInput => None,
    };
    Sources::new(paths.to_vec()).filter_map(state).collect()
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
    password: Option<String>,
    progress: Progress,
    standard_input: Option<Box<dyn Read + Send>>,
    workers: Option<Workers>,
    /// What was begun and is not given out yet, in the order it is to be.
    slots: VecDeque<Slot>,
    notice: Option<String>,
}

/// Something that items come from.
enum Slot {
    Item(Item),
    Records(RecordFile),
    Running(Running),
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

    /// Opens encrypted files with `password`.
    #[must_use]
    pub fn with_password(mut self, password: Option<String>) -> Self {
        self.password = password;
        self
    }

    /// Takes files of formats that may harm apart in a process of their own: `program` (see [`child`](crate::child)).
    #[must_use]
    pub fn with_program(mut self, program: Option<Program>) -> Self {
        self.workers = program.map(|program| Workers::new(program, self.limits.clone(), self.password.clone()));
        self
    }

    /// What should be known of how files are taken apart: that it is done in this process, or what the other one could not
    /// be limited in. `None` as long as nothing was taken apart.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        let unlimited = self.workers.as_ref().map(Workers::unlimited).filter(|unlimited| !unlimited.is_empty());
        let words = |unlimited: &[String]| {
            format!("the process that takes files apart is not limited in this: {}", unlimited.join(", "))
        };
        self.notice.clone().or_else(|| unlimited.map(words))
    }

    /// How far this reader is, to be looked at while it is used.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Reads a file, or begins to: what it holds is given out afterwards.
    fn open(&mut self, file: &FileSource) -> Result<(), ReadError> {
        let failed = |source| ReadError::Io { path: file.name.clone(), source };
        let opened = Arc::new(File::open(&file.path).map_err(failed)?);
        let stamp = Stamp::of(&opened).map_err(failed)?;
        let mut bytes = Metered { reader: Arc::clone(&opened), progress: self.progress.clone(), left: stamp.length };
        let mut head = Vec::new();
        bytes.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(failed)?;
        let magic = kind::by_magic(&head);
        if let Some(compressed) = as_records(&file.file_name, magic) {
            if !compressed {
                let (actual, allowed) = (stamp.length, self.limits.file_bytes);
                LimitExceeded::check(|| file.name.clone(), "file_bytes", actual, allowed)?;
            }
            let bytes = Cursor::new(head).chain(bytes);
            let bytes: Box<dyn Read + Send> =
                if compressed { Box::new(MultiGzDecoder::new(BufReader::new(bytes))) } else { Box::new(bytes) };
            let records = Records::new(bytes, file.name.clone(), &self.limits);
            self.slots.push_back(Slot::Records(RecordFile { records, compressed, stamp: Some(stamp) }));
            return Ok(());
        }
        if magic == Some(Kind::Other) {
            self.found(Item::Skipped { source: file.name.clone(), reason: SkipReason::UnknownFormat });
            return Ok(());
        }
        let (limit, allowed) = self.most_bytes(&head, magic);
        LimitExceeded::check(|| file.name.clone(), limit, stamp.length, allowed)?;
        let whole = whole(Cursor::new(head).chain(bytes), &file.name, limit, allowed)?;
        if !stamp.still_holds() {
            self.found(Item::Skipped { source: file.name.clone(), reason: SkipReason::Changed });
            return Ok(());
        }
        self.extract(&file.name, &file.file_name, whole);
        Ok(())
    }

    fn found(&mut self, item: Item) {
        self.slots.push_back(Slot::Item(item));
    }

    /// Takes a file apart, or has it taken apart.
    fn extract(&mut self, source: &str, name: &str, bytes: Vec<u8>) {
        let risky = may_harm(&bytes, name);
        if let Some(workers) = self.workers.as_mut().filter(|_| risky) {
            match workers.begin(source, name, bytes) {
                Ok(running) => self.slots.push_back(Slot::Running(running)),
                Err(error) => self.found(Item::Error(error.into())),
            }
            return;
        }
        if risky && self.notice.is_none() {
            self.notice = Some(
                "files are taken apart in this process, so one that is made to harm can end it; name a program for that"
                    .to_owned(),
            );
        }
        let (slots, limits, password) = (&mut self.slots, &self.limits, self.password.as_deref());
        let taken = catch_unwind(AssertUnwindSafe(|| {
            extract(source, name, bytes, limits, password, &mut |item| slots.push_back(Slot::Item(item)));
        }));
        if let Err(panic) = taken {
            let how = panicked(&*panic);
            self.found(Item::Error(ExtractError::Died { path: source.to_owned(), how }.into()));
        }
    }

    /// The most bytes of a file that is read whole, and the limit's name.
    fn most_bytes(&self, head: &[u8], magic: Option<Kind>) -> (&'static str, u64) {
        if magic.is_some() || head.starts_with(b"From ") {
            ("packed_file_bytes", self.limits.packed_file_bytes)
        } else {
            ("document_bytes", self.limits.document_bytes as u64)
        }
    }

    fn open_standard_input(&mut self) -> Result<(), ReadError> {
        const NAME: &str = "-";
        let Some(input) = self.standard_input.take() else {
            self.found(Item::Skipped { source: NAME.to_owned(), reason: SkipReason::Blank });
            return Ok(());
        };
        let mut input = Metered { reader: input, progress: self.progress.clone(), left: 0 };
        let most = self.limits.document_bytes.min(self.limits.line_bytes);
        let failed = |source| ReadError::Io { path: NAME.to_owned(), source };
        let (beginning, first) = beginning(&mut input, most).map_err(failed)?;
        let (limit, allowed) = self.most_bytes(&beginning, kind::by_magic(&beginning));
        let bytes = Cursor::new(beginning).chain(input);
        if first == Some(b'{') {
            let records = Records::new(bytes, NAME.to_owned(), &self.limits);
            self.slots.push_back(Slot::Records(RecordFile { records, compressed: false, stamp: None }));
            return Ok(());
        }
        let bytes = whole(bytes, NAME, limit, allowed)?;
        self.extract(NAME, "", bytes);
        Ok(())
    }

    /// Begins with files until there is something to give out, and with one more while another process is at work.
    /// False when there are no more.
    fn begin(&mut self) -> bool {
        loop {
            match self.slots.front() {
                Some(Slot::Running(_)) if self.slots.len() < AT_ONCE => {}
                Some(_) => return true,
                None => {}
            }
            let opened = match self.sources.next() {
                None => return !self.slots.is_empty(),
                Some(Found::Other(item)) => {
                    self.found(item);
                    Ok(())
                }
                Some(Found::File(file)) => self.open(&file),
                Some(Found::StandardInput) => self.open_standard_input(),
            };
            if let Err(error) = opened {
                self.found(Item::Error(error));
            }
        }
    }
}

impl Iterator for Reader {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        while self.begin() {
            match self.slots.pop_front()? {
                Slot::Item(item) => return Some(item),
                Slot::Records(mut file) => {
                    let (item, over) = file.next();
                    if !over {
                        self.slots.push_front(Slot::Records(file));
                    }
                    if item.is_some() {
                        return item;
                    }
                }
                Slot::Running(mut running) => match running.next(&self.limits) {
                    Next::Item(item) => {
                        self.slots.push_front(Slot::Running(running));
                        return Some(item);
                    }
                    Next::Done => {
                        if let Some(workers) = &mut self.workers {
                            workers.end(running);
                        }
                    }
                    Next::Lost(item) => return Some(item),
                },
            }
        }
        None
    }
}

impl RecordFile {
    /// The next record, if there is one, and whether the file is over.
    fn next(&mut self) -> (Option<Item>, bool) {
        let name = self.records.name().to_owned();
        match self.records.next() {
            Ok(Some(item)) => (Some(item), false),
            Ok(None) => {
                let whole = self.stamp.as_ref().is_none_or(Stamp::still_holds);
                ((!whole).then_some(Item::Error(ReadError::Changed { path: name })), true)
            }
            Err(source) => (Some(Item::Error(read_error(&name, self.compressed, source))), true),
        }
    }
}

/// Is `bytes` of a format whose parsers run in a process of their own?
fn may_harm(bytes: &[u8], name: &str) -> bool {
    let head = &bytes[..bytes.len().min(HEAD)];
    kind::by_magic(head).is_some_and(Kind::is_risky) || {
        let text = decode(head.to_vec(), None).text;
        kind::by_text(&text, name).is_risky()
    }
}

/// A file of records is read line by line, and so is known by its name: whether it is compressed, if it is one.
fn as_records(name: &str, magic: Option<Kind>) -> Option<bool> {
    let lower = name.to_ascii_lowercase();
    let (stem, compressed) = match lower.strip_suffix(".gz") {
        Some(stem) => (stem, magic == Some(Kind::Gzip)),
        None => (lower.as_str(), false),
    };
    let plain = magic.is_none() && !lower.ends_with(".gz");
    ((stem.ends_with(".jsonl") || stem.ends_with(".ndjson")) && (compressed || plain)).then_some(compressed)
}

fn whole(bytes: impl Read, name: &str, limit: &'static str, allowed: u64) -> Result<Vec<u8>, ReadError> {
    let mut whole = Vec::new();
    bytes
        .take(allowed.saturating_add(1))
        .read_to_end(&mut whole)
        .map_err(|source| ReadError::Io { path: name.to_owned(), source })?;
    LimitExceeded::check(|| name.to_owned(), limit, whole.len() as u64, allowed)?;
    Ok(whole)
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
