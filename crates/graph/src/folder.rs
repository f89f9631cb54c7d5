//! Checkpoints in a folder: `FOLDER/thread-NAME/SEQUENCE.json`, one file each.
//!
//! A file's first line is `anchorite-checkpoint VERSION SHA256`; the rest is the checkpoint as JSON, of which the line holds
//! the hash. A file is written under another name, flushed to the disk and then renamed, so it is there whole or not at
//! all. One lock file per thread orders writers, also of several processes. Media assumption: renaming within a folder is
//! atomic.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Checkpoint, CheckpointError, Checkpointer, ThreadId};

const MAGIC: &str = "anchorite-checkpoint";
const VERSION: u32 = 1;
/// Larger files are taken as damaged instead of being read into memory.
const LARGEST_FILE: u64 = 1 << 30;
const LOCK: &str = "lock";
const UNFINISHED: &str = "unfinished";

/// What a file holds: the checkpoint and, so that a file in the wrong folder is noticed, its thread.
#[derive(Serialize, Deserialize)]
struct Stored<C> {
    thread: ThreadId,
    checkpoint: C,
}

/// Checkpoints in a folder that outlive the program.
#[derive(Clone, Debug)]
pub struct FolderCheckpointer {
    folder: PathBuf,
}

impl FolderCheckpointer {
    /// Uses `folder`; it is made when the first checkpoint is kept.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    fn thread_folder(&self, thread: &ThreadId) -> PathBuf {
        self.folder.join(escape(thread.as_str()))
    }

    fn sequences(&self, thread: &ThreadId) -> Result<Vec<u64>, CheckpointError> {
        let folder = self.thread_folder(thread);
        let mut sequences: Vec<u64> = list(&folder)?
            .iter()
            .filter_map(|name| name.strip_suffix(".json"))
            .filter_map(|stem| stem.parse().ok().filter(|sequence| format!("{sequence:020}") == stem))
            .collect();
        sequences.sort_unstable();
        Ok(sequences)
    }

    fn read(&self, thread: &ThreadId, sequence: u64) -> Result<Checkpoint, CheckpointError> {
        let path = self.thread_folder(thread).join(file_name(sequence));
        let size = fs::metadata(&path).map_err(io_at(&path))?.len();
        if size > LARGEST_FILE {
            return Err(CheckpointError::Damaged { path, what: format!("it has {size} bytes") });
        }
        let bytes = fs::read(&path).map_err(io_at(&path))?;
        parse(&path, &bytes, thread, sequence)
    }
}

impl Checkpointer for FolderCheckpointer {
    fn put(&self, thread: &ThreadId, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
        let folder = self.thread_folder(thread);
        fs::create_dir_all(&folder).map_err(io_at(&folder))?;
        let lock_path = folder.join(LOCK);
        let lock = File::create(&lock_path).map_err(io_at(&lock_path))?;
        lock.lock().map_err(io_at(&lock_path))?;

        if self.sequences(thread)?.last().is_some_and(|last| *last >= checkpoint.sequence) {
            return Err(CheckpointError::Conflict { thread: thread.to_string(), sequence: checkpoint.sequence });
        }
        // The lock is held, so an unfinished file is a crash's, and is written over.
        let unfinished = folder.join(UNFINISHED);
        let write = || {
            let mut file = File::create(&unfinished)?;
            file.write_all(&render(thread, checkpoint)?)?;
            file.sync_all()
        };
        write().map_err(io_at(&unfinished))?;
        let path = folder.join(file_name(checkpoint.sequence));
        fs::rename(&unfinished, &path).map_err(io_at(&path))?;
        sync_folder(&folder).map_err(io_at(&folder))?;
        if checkpoint.sequence == 0 {
            sync_folder(&self.folder).map_err(io_at(&self.folder))?;
        }
        Ok(())
    }

    fn latest(&self, thread: &ThreadId) -> Result<Option<Checkpoint>, CheckpointError> {
        self.sequences(thread)?.last().map(|sequence| self.read(thread, *sequence)).transpose()
    }

    fn history(&self, thread: &ThreadId) -> Result<Vec<Checkpoint>, CheckpointError> {
        self.sequences(thread)?.into_iter().map(|sequence| self.read(thread, sequence)).collect()
    }

    fn threads(&self) -> Result<Vec<ThreadId>, CheckpointError> {
        let mut threads: Vec<ThreadId> = list(&self.folder)?.iter().filter_map(|name| unescape(name)).collect();
        threads.sort();
        Ok(threads)
    }

    fn forget(&self, thread: &ThreadId) -> Result<(), CheckpointError> {
        let folder = self.thread_folder(thread);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(io_at(&folder)),
        }
    }
}

fn io_at(path: &Path) -> impl FnOnce(io::Error) -> CheckpointError {
    let path = path.to_owned();
    move |source| CheckpointError::Io { path, source }
}

/// Names in a folder; none if it does not exist. Names that are not Unicode are not ours.
fn list(folder: &Path) -> Result<Vec<String>, CheckpointError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(io_at(folder))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry.map_err(io_at(folder))?.file_name().into_string().ok());
    }
    Ok(names)
}

fn file_name(sequence: u64) -> String {
    format!("{sequence:020}.json")
}

fn hash(body: &[u8]) -> String {
    Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn render(thread: &ThreadId, checkpoint: &Checkpoint) -> Result<Vec<u8>, io::Error> {
    let body = serde_json::to_vec(&Stored { thread: thread.clone(), checkpoint })?;
    let mut bytes = format!("{MAGIC} {VERSION} {}\n", hash(&body)).into_bytes();
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

fn parse(path: &Path, bytes: &[u8], thread: &ThreadId, sequence: u64) -> Result<Checkpoint, CheckpointError> {
    let damaged = |what: &str| CheckpointError::Damaged { path: path.to_owned(), what: what.to_owned() };
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(|| damaged("it has no first line"))?;
    let (head, body) = (&bytes[..end], &bytes[end + 1..]);
    let head = std::str::from_utf8(head).map_err(|_| damaged("its first line is not text"))?;
    let mut words = head.split(' ');
    if words.next() != Some(MAGIC) {
        return Err(damaged("it does not begin as a checkpoint does"));
    }
    let found: u32 =
        words.next().and_then(|word| word.parse().ok()).ok_or_else(|| damaged("its version is no number"))?;
    if found != VERSION {
        return Err(CheckpointError::Version { path: path.to_owned(), found, known: VERSION });
    }
    if words.next() != Some(hash(body).as_str()) {
        return Err(damaged("its content does not match its hash"));
    }
    let stored: Stored<Checkpoint> = serde_json::from_slice(body).map_err(|error| damaged(&error.to_string()))?;
    if stored.thread != *thread || stored.checkpoint.sequence != sequence {
        return Err(damaged("it belongs to another thread or place"));
    }
    Ok(stored.checkpoint)
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Other systems can't flush a folder; their renames are journalled.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

const PREFIX: &str = "thread-";

/// A folder name for any thread. Only `a-z`, `0-9`, `-` and `_` stay, so that no name leaves the folder, and no two names
/// meet on a file system that ignores case.
fn escape(thread: &str) -> String {
    let mut name = PREFIX.to_owned();
    for byte in thread.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    name
}

/// The thread of a folder name that [`escape`] gave; `None` for others.
fn unescape(name: &str) -> Option<ThreadId> {
    let mut rest = name.strip_prefix(PREFIX)?;
    let mut bytes = Vec::new();
    while let Some(first) = rest.chars().next() {
        if first == '%' {
            bytes.push(u8::from_str_radix(rest.get(1..3)?, 16).ok()?);
            rest = &rest[3..];
        } else {
            bytes.push(u8::try_from(first).ok()?);
            rest = &rest[first.len_utf8()..];
        }
    }
    let thread = ThreadId::new(String::from_utf8(bytes).ok()?).ok()?;
    (escape(thread.as_str()) == name).then_some(thread)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn m08_every_thread_name_is_one_folder_name(id in "\\PC{1,20}") {
            let thread = ThreadId::new(id).expect("short, no control characters");
            let name = escape(thread.as_str());
            prop_assert!(name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'%')));
            prop_assert!(name.len() <= 255);
            prop_assert_eq!(unescape(&name), Some(thread));
        }
    }
}
