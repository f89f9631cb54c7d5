//! Watching: what is added to folders, changed, moved or deleted is so in the knowledge base soon after.
//!
//! The system's notices only say that it is time to look; what is there is seen by looking. So a notice that gets lost, or
//! never comes (network drives), costs time and nothing else. A file is read when its length and time of change have stood
//! still between two looks: never one that is half written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anchorite_formats::{FileState, files};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};

use crate::{Engine, Error, IngestOptions, IngestProgress, IngestReport};

/// How long a file must stand still.
const STILL: Duration = Duration::from_millis(700);
/// How long it takes at most to see that the end was asked for.
const TICK: Duration = Duration::from_millis(200);
/// How often is looked where the system gives notice, and where it does not.
const LOOK: Duration = Duration::from_secs(60);
const LOOK_WITHOUT_NOTICES: Duration = Duration::from_secs(3);

/// What a watch has to say.
#[derive(Debug)]
pub enum WatchEvent<'r> {
    /// What was there is taken in, and changes are waited for; `without_notices` says why they are looked for every few
    /// seconds instead, if they are.
    Watching {
        /// Files that are watched.
        files: usize,
        /// Why the system gives no notice.
        without_notices: Option<String>,
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
        // Notices are asked for first, so that none is missed while the first ingest runs.
        let (notices, _watcher, without_notices) = match notices(paths) {
            Ok((notices, watcher)) => (Some(notices), Some(watcher), None),
            Err(reason) => (None, None, Some(reason)),
        };
        let mut watch = Watch { engine: self, kb, paths, options, taken: Files::new(), sources: BTreeMap::new() };
        let mut seen = look(paths);
        watch.update(&seen, on_event)?;
        on_event(WatchEvent::Watching { files: seen.len(), without_notices });
        while wait(notices.as_ref(), stop) {
            let now = look(paths);
            if watch.differs(&now) {
                // Once more after a while: what stands still by then is whole.
                seen = now;
                if !sleep(STILL, stop) {
                    break;
                }
                let still = look(paths);
                let settled = watch.settled(&seen, &still);
                watch.update(&settled, on_event)?;
            }
        }
        Ok(())
    }
}

/// Notices of the system for all of `paths`; the error is why there are none.
fn notices(paths: &[PathBuf]) -> Result<(Receiver<()>, RecommendedWatcher), String> {
    let (sender, receiver) = channel();
    let mut watcher = notify::recommended_watcher(move |_| {
        // Nobody listens any more when the watch has ended.
        let _ = sender.send(());
    })
    .map_err(|error| error.to_string())?;
    for path in paths {
        watcher.watch(path, RecursiveMode::Recursive).map_err(|error| error.to_string())?;
    }
    Ok((receiver, watcher))
}

/// Waits until it is time to look; false if the end was asked for.
fn wait(notices: Option<&Receiver<()>>, stop: &AtomicBool) -> bool {
    let Some(notices) = notices else { return sleep(LOOK_WITHOUT_NOTICES, stop) };
    let began = Instant::now();
    while began.elapsed() < LOOK {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        match notices.recv_timeout(TICK) {
            Ok(()) => {
                // Many come at once.
                while notices.try_recv().is_ok() {}
                return true;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return sleep(LOOK_WITHOUT_NOTICES, stop),
        }
    }
    true
}

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
        // What is missing was missing twice, or it was only away for a moment.
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
