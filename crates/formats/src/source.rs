//! What the given paths hold: files, and folders walked in the order of names.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use crate::item::{Item, ReadError, SkipReason};

/// A file to read.
#[derive(Debug)]
pub(crate) struct FileSource {
    pub(crate) path: PathBuf,
    /// The path as documents name it.
    pub(crate) name: String,
    /// The last part of the path.
    pub(crate) file_name: String,
}

/// What the walk came upon.
pub(crate) enum Found {
    StandardInput,
    File(FileSource),
    Other(Item),
}

/// Walks the paths one after the other.
pub(crate) struct Sources {
    paths: std::vec::IntoIter<PathBuf>,
    folder: Option<Folder>,
}

struct Folder {
    walk: walkdir::IntoIter,
    /// The folder that was named, with links resolved; `None` if that failed, and then no link is followed.
    real: Option<PathBuf>,
}

/// The path that stands for standard input.
const STANDARD_INPUT: &str = "-";

impl Sources {
    pub(crate) fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths: paths.into_iter(), folder: None }
    }
}

impl Iterator for Sources {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            if let Some(folder) = &mut self.folder {
                match folder.next() {
                    Some(found) => return Some(found),
                    None => self.folder = None,
                }
            }
            let path = self.paths.next()?;
            if path.as_os_str() == STANDARD_INPUT {
                return Some(Found::StandardInput);
            }
            match fs::metadata(&path) {
                Err(source) => return Some(Found::Other(Item::Error(ReadError::Io { path: name_of(&path), source }))),
                Ok(metadata) if metadata.is_dir() => self.folder = Some(Folder::new(&path)),
                Ok(metadata) => return Some(file(&path, &metadata)),
            }
        }
    }
}

impl Folder {
    fn new(path: &Path) -> Self {
        // A folder that can't be resolved can't be listed either: the walk reports why.
        Self {
            walk: WalkDir::new(path).follow_links(true).sort_by_file_name().into_iter(),
            real: fs::canonicalize(path).ok(),
        }
    }

    fn next(&mut self) -> Option<Found> {
        loop {
            let found = match self.walk.next()? {
                Ok(entry) => self.entry(&entry),
                Err(error) => Some(Found::Other(walk_error(error))),
            };
            if found.is_some() {
                return found;
            }
        }
    }

    /// `None` for a folder that is walked into.
    fn entry(&mut self, entry: &DirEntry) -> Option<Found> {
        let path = entry.path();
        let is_folder = entry.file_type().is_dir();
        let reason = if entry.depth() > 0 && entry.file_name().as_encoded_bytes().starts_with(b".") {
            Some(SkipReason::Hidden)
        } else if entry.depth() > 0 && entry.path_is_symlink() && !self.is_inside(path) {
            Some(SkipReason::LinkOutside)
        } else {
            None
        };
        if let Some(reason) = reason {
            if is_folder {
                self.walk.skip_current_dir();
            }
            return Some(skipped(path, reason));
        }
        if is_folder {
            return None;
        }
        Some(match entry.metadata() {
            Ok(metadata) => file(path, &metadata),
            Err(error) => Found::Other(walk_error(error)),
        })
    }

    fn is_inside(&self, path: &Path) -> bool {
        match (&self.real, fs::canonicalize(path)) {
            (Some(real), Ok(target)) => target.starts_with(real),
            _ => false,
        }
    }
}

fn walk_error(error: walkdir::Error) -> Item {
    let path = error.path().map(name_of).unwrap_or_default();
    if error.loop_ancestor().is_some() {
        return Item::Skipped { source: path, reason: SkipReason::LinkLoop };
    }
    Item::Error(ReadError::Io { path, source: error.into() })
}

fn file(path: &Path, metadata: &Metadata) -> Found {
    let Some(file_name) = path.file_name().and_then(|name| name.to_str()).filter(|_| path.to_str().is_some()) else {
        return skipped(path, SkipReason::NameNotUnicode);
    };
    if !metadata.is_file() {
        return skipped(path, SkipReason::NotAFile);
    }
    Found::File(FileSource { path: path.to_owned(), name: name_of(path), file_name: file_name.to_owned() })
}

fn skipped(path: &Path, reason: SkipReason) -> Found {
    Found::Other(Item::Skipped { source: name_of(path), reason })
}

/// The path as it was given, with forward slashes on every system.
fn name_of(path: &Path) -> String {
    let name = path.to_string_lossy();
    if std::path::MAIN_SEPARATOR == '/' { name.into_owned() } else { name.replace(std::path::MAIN_SEPARATOR, "/") }
}

/// Bytes of all files under the paths, compressed ones as they are on disk; `None` if standard input is among them.
/// What can't be read counts nothing: reading reports it.
pub(crate) fn total_bytes(paths: &[PathBuf]) -> Option<u64> {
    let mut total = 0;
    for found in Sources::new(paths.to_vec()) {
        match found {
            Found::StandardInput => return None,
            Found::File(file) => total += fs::metadata(&file.path).map_or(0, |metadata| metadata.len()),
            Found::Other(_) => {}
        }
    }
    Some(total)
}
