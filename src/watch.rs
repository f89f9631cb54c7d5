//! Watching: what is added to folders, changed, moved or deleted is so in the knowledge base soon after.
//!
//! Files are looked at every few seconds, less often where that takes long: names, lengths and times of change, no content.
//! It is the same on every system and on network drives, where systems give no notice of changes; the usual library for such
//! notices brings one of sockets with it. A file is read when it has stood still between two looks: never one that is half
//! written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anchorite_formats::{FileState, files};

use crate::{Engine, Error, IngestOptions, IngestProgress, IngestReport};

/// How long a file must stand still.
const STILL: Duration = Duration::from_millis(700);
/// How long it takes at most to see that the end was asked for.
const TICK: Duration = Duration::from_millis(200);
/// How long there is between two looks at least.
const PAUSE: Duration = Duration::from_secs(1);
/// A look may take one part in so many of the time.
const SHARE: u32 = 30;

/// What a watch has to say.
#[derive(Debug)]
pub enum WatchEvent<'r> {
    /// What was there is taken in, and changes are waited for.
    Watching {
        /// Files that are watched.
        files: usize,
    },
    /// An ingest is on its way.
    Progress(&'r IngestProgress),
    /// Something was taken in or forgotten.
    Ingested(&'r IngestReport),
}

/// The files of the last look, by the names that documents have.
type Files = BTreeMap<String, FileState>;

impl Engine {
    /// Ingests `paths`, then keeps the knowledge base as the files are, until `stop` is set. A file that is deleted is
    /// forgotten; a folder that goes as a whole is not, since that is how a drive looks that is not there.
    ///
    /// # Errors
    /// As [`Engine::ingest`]; standard input can't be watched.
    pub fn watch(
        &self,
        kb: &Path,
        paths: &[PathBuf],
        options: &IngestOptions,
        stop: &AtomicBool,
        on_event: &mut dyn FnMut(WatchEvent<'_>),
    ) -> Result<(), Error> {
        if let Some(path) = paths.iter().find(|path| path.as_os_str() == "-" || !path.exists()) {
            return Err(Error::NoSuchPath { path: path.display().to_string() });
        }
        let mut watch = Watch { engine: self, kb, paths, options, taken: Files::new(), sources: BTreeMap::new() };
        let first = look(paths);
        watch.update(&first, on_event)?;
        on_event(WatchEvent::Watching { files: first.len() });
        let mut pause = PAUSE;
        while sleep(pause, stop) {
            let began = Instant::now();
            let now = look(paths);
            pause = PAUSE.max(began.elapsed() * SHARE);
            if watch.differs(&now) {
                // Once more after a while: what stands still by then is whole.
                if !sleep(STILL, stop) {
                    break;
                }
                let settled = watch.settled(&now, &look(paths));
                watch.update(&settled, on_event)?;
            }
        }
        Ok(())
    }
}

/// Waits; false if the end was asked for.
fn sleep(time: Duration, stop: &AtomicBool) -> bool {
    let began = Instant::now();
    while began.elapsed() < time {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::sleep(TICK.min(time));
    }
    !stop.load(Ordering::Relaxed)
}

fn look(paths: &[PathBuf]) -> Files {
    files(paths).into_iter().map(|file| (file.name.clone(), file)).collect()
}

struct Watch<'w> {
    engine: &'w Engine,
    kb: &'w Path,
    paths: &'w [PathBuf],
    options: &'w IngestOptions,
    /// The files as they were when they were read.
    taken: Files,
    /// What each file held.
    sources: BTreeMap<String, BTreeSet<String>>,
}

impl Watch<'_> {
    fn differs(&self, now: &Files) -> bool {
        *now != self.taken
    }

    /// The files to go by: those that stood still between two looks as they are, others as they were when they were read.
    fn settled(&self, before: &Files, now: &Files) -> Files {
        let mut settled = Files::new();
        for (name, file) in now {
            if before.get(name) == Some(file) {
                settled.insert(name.clone(), file.clone());
            } else if let Some(taken) = self.taken.get(name) {
                settled.insert(name.clone(), taken.clone());
            }
        }
        // What is missing must be missing twice: some programs write by putting a new file in the old one's place.
        for (name, file) in &self.taken {
            if !now.contains_key(name) && (before.contains_key(name) || !self.root_is_there(file)) {
                settled.insert(name.clone(), file.clone());
            }
        }
        settled
    }

    /// Is the path there that this file was found under?
    fn root_is_there(&self, file: &FileState) -> bool {
        self.paths.iter().filter(|root| file.path.starts_with(root)).any(|root| *root == file.path || root.exists())
    }

    /// Takes in what is new or changed in `files` and forgets what is not there.
    fn update(&mut self, files: &Files, on_event: &mut dyn FnMut(WatchEvent<'_>)) -> Result<(), Error> {
        let first = self.taken.is_empty() && self.sources.is_empty();
        let changed: Vec<&FileState> =
            files.iter().filter(|(name, file)| self.taken.get(*name) != Some(*file)).map(|(_, file)| file).collect();
        let gone: Vec<&String> = self.taken.keys().filter(|name| !files.contains_key(*name)).collect();
        if changed.is_empty() && gone.is_empty() && !first {
            self.taken = files.clone();
            return Ok(());
        }
        let touched = changed.iter().map(|file| &file.name).chain(gone.iter().copied());
        let known: BTreeSet<String> = touched.filter_map(|name| self.sources.get(name)).flatten().cloned().collect();
        let mut report = IngestReport { sources: Some(BTreeSet::new()), ..IngestReport::default() };
        // The first time, everything that is skipped is reported as well.
        let paths: Vec<PathBuf> =
            if first { self.paths.to_vec() } else { changed.iter().map(|file| file.path.clone()).collect() };
        let engine = self.engine;
        let taken = engine.take_in(self.kb, &paths, self.options, &known, &mut report, &mut |progress| {
            on_event(WatchEvent::Progress(progress));
        });
        match taken {
            // One damaged file does not end a watch.
            Ok(()) | Err(Error::NothingRead { .. }) => {}
            Err(error) => return Err(error),
        }
        let read = report.sources.take().unwrap_or_default();
        let failed = |name: &str| report.failed.iter().any(|failed| failed.source.contains(name));
        for name in &gone {
            self.sources.remove(*name);
        }
        for file in &changed {
            if !failed(&file.name) {
                self.sources.remove(&file.name);
            }
        }
        for source in read {
            if let Some(name) = file_of(&source, files) {
                self.sources.entry(name.to_owned()).or_default().insert(source);
            }
        }
        self.taken = files.clone();
        on_event(WatchEvent::Ingested(&report));
        Ok(())
    }
}

/// The file that a source is in: its own name, or what stands before one of its `#`.
fn file_of<'s>(source: &'s str, files: &Files) -> Option<&'s str> {
    let borders = source.match_indices('#').map(|(at, _)| at).chain([source.len()]);
    borders.map(|at| &source[..at]).find(|name| files.contains_key(*name))
}
