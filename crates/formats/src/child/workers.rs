//! The parent's side: processes that are given files, watched, and replaced.

use std::io::{BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use anchorite_core::Limits;

use super::protocol::{Answer, Hello, Request, receive, send};
use crate::item::{ExtractError, Item};

/// A program that takes files apart for its parent: it calls [`serve`](super::serve).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The executable file.
    pub path: PathBuf,
    /// What it is called with.
    pub arguments: Vec<String>,
}

/// A process is replaced after so many files.
const MOST_FILES: usize = 500;
/// A process is replaced after so many bytes.
const MOST_BYTES: u64 = 1 << 30;
/// How long a process may take to begin.
const START: Duration = Duration::from_secs(20);
/// Documents that lie ready while the parent is at others.
const AHEAD: usize = 8;

/// A process with its pipes.
struct Worker {
    process: Child,
    requests: Sender<(Request, Vec<u8>)>,
    answers: Receiver<Result<Answer, String>>,
    files: usize,
    bytes: u64,
    busy: Duration,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended by itself; either way it must not be left behind.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Processes that take files apart, as many as are needed at once.
pub(crate) struct Workers {
    program: Program,
    limits: Limits,
    password: Option<String>,
    idle: Vec<Worker>,
    /// What the processes could not limit themselves in.
    unlimited: Vec<String>,
}

/// A file that is being taken apart.
pub(crate) struct Running {
    worker: Worker,
    source: String,
    /// Time that may still be spent waiting for this file.
    left: Duration,
    /// Bytes of text that may still come.
    room: u64,
}

/// What a process has to say of its file.
pub(crate) enum Next {
    Item(Item),
    /// There is nothing more; the process may be used again.
    Done,
    /// There is nothing more, and the process is no longer.
    Lost(Item),
}

impl Workers {
    pub(crate) fn new(program: Program, limits: Limits, password: Option<String>) -> Self {
        Self { program, limits, password, idle: Vec::new(), unlimited: Vec::new() }
    }

    /// What could not be limited, if anything.
    pub(crate) fn unlimited(&self) -> &[String] {
        &self.unlimited
    }

    /// Gives a file to a process.
    pub(crate) fn begin(&mut self, source: &str, name: &str, bytes: Vec<u8>) -> Result<Running, ExtractError> {
        let mut worker = match self.idle.pop() {
            Some(worker) => worker,
            None => self.start().map_err(|how| ExtractError::Died { path: source.to_owned(), how })?,
        };
        worker.files += 1;
        worker.bytes += bytes.len() as u64;
        let request = Request { source: source.to_owned(), name: name.to_owned(), length: bytes.len() as u64 };
        // A process that has died since is noticed when its answer is waited for.
        let _ = worker.requests.send((request, bytes));
        let left = Duration::from_secs(self.limits.extraction_seconds);
        let room = self.limits.archive_bytes.saturating_add(self.limits.document_bytes as u64);
        Ok(Running { worker, source: source.to_owned(), left, room })
    }

    /// Takes a process back that is done with its file.
    pub(crate) fn end(&mut self, running: Running) {
        let worker = running.worker;
        let limit = Duration::from_secs(self.limits.extraction_seconds.saturating_mul(5));
        if worker.files < MOST_FILES && worker.bytes < MOST_BYTES && worker.busy < limit {
            self.idle.push(worker);
        }
    }

    fn start(&mut self) -> Result<Worker, String> {
        let mut command = Command::new(&self.program.path);
        command.args(&self.program.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        if cfg!(unix) {
            // Nothing that stands in the environment is any of its business.
            command.env_clear();
        }
        let failed = |error: std::io::Error| format!("could not be started ({}: {error})", self.program.path.display());
        let mut process = command.spawn().map_err(failed)?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("has no pipes".to_owned());
        };
        let hello = Hello { limits: self.limits.clone(), password: self.password.clone() };
        let (requests, wanted) = channel();
        std::thread::spawn(move || write(input, &hello, &wanted));
        let (given, answers) = sync_channel(AHEAD);
        // Every character may be written as six in JSON.
        let most = self.limits.document_bytes.saturating_mul(6).saturating_add(1 << 20);
        std::thread::spawn(move || read(BufReader::with_capacity(1 << 16, output), most, &given));
        let mut worker = Worker { process, requests, answers, files: 0, bytes: 0, busy: Duration::ZERO };
        match worker.answers.recv_timeout(START) {
            Ok(Ok(Answer::Ready { unlimited })) => {
                self.unlimited = unlimited;
                Ok(worker)
            }
            Ok(_) | Err(RecvTimeoutError::Timeout) => Err("did not begin as it should".to_owned()),
            Err(RecvTimeoutError::Disconnected) => Err(format!("{} before it began", ended(&worker.process.wait()))),
        }
    }
}

/// Writes requests for as long as there are any. When the process has gone, so has the reason to go on.
fn write(mut input: impl Write, hello: &Hello, wanted: &Receiver<(Request, Vec<u8>)>) {
    if send(&mut input, hello).and_then(|()| input.flush()).is_err() {
        return;
    }
    for (request, bytes) in wanted {
        let written = send(&mut input, &request).and_then(|()| input.write_all(&bytes)).and_then(|()| input.flush());
        if written.is_err() {
            return;
        }
    }
}

fn read(mut output: impl std::io::Read, most: usize, given: &SyncSender<Result<Answer, String>>) {
    loop {
        let answer = match receive(&mut output, most) {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => return,
            Err(error) => Err(error.to_string()),
        };
        let last = answer.is_err();
        if given.send(answer).is_err() || last {
            return;
        }
    }
}

impl Running {
    /// The next thing in the file. The time that the parent takes over it does not count against the process.
    pub(crate) fn next(&mut self, limits: &Limits) -> Next {
        let began = Instant::now();
        let answer = self.worker.answers.recv_timeout(self.left);
        let waited = began.elapsed();
        self.left = self.left.saturating_sub(waited);
        self.worker.busy += waited;
        let path = self.source.clone();
        let lost = |error: ExtractError| Next::Lost(Item::Error(error.into()));
        match answer {
            Ok(Ok(Answer::Document { document, remarks })) => {
                let length = document.text.len() as u64;
                let is_whole = crate::extract::is_whole(&document, &self.source, limits);
                if length > self.room || !is_whole {
                    return lost(ExtractError::Died { path, how: "wrote what no document can be".to_owned() });
                }
                self.room -= length;
                Next::Item(Item::Document { document, remarks })
            }
            Ok(Ok(Answer::Skipped { source, reason })) => Next::Item(Item::Skipped { source, reason }),
            Ok(Ok(Answer::Failed(error))) => Next::Item(Item::Error(error.into())),
            Ok(Ok(Answer::Done)) => Next::Done,
            Ok(Ok(Answer::Ready { .. })) => {
                lost(ExtractError::Died { path, how: "began anew in the middle".to_owned() })
            }
            Ok(Err(how)) => lost(ExtractError::Died { path, how }),
            Err(RecvTimeoutError::Timeout) => lost(ExtractError::Overtime { path, seconds: limits.extraction_seconds }),
            Err(RecvTimeoutError::Disconnected) => {
                let how = ended(&self.worker.process.wait());
                lost(ExtractError::Died { path, how })
            }
        }
    }
}

/// How a process ended, as the end of a sentence about it.
fn ended(status: &std::io::Result<ExitStatus>) -> String {
    let Ok(status) = status else { return "ended".to_owned() };
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(status) {
        return match signal {
            6 => "was aborted (out of memory, or of stack)".to_owned(),
            9 => "was killed (out of memory?)".to_owned(),
            11 => "was killed by signal 11 (a wrong access to memory)".to_owned(),
            other => format!("was killed by signal {other}"),
        };
    }
    match status.code() {
        Some(code) => format!("ended with code {code}"),
        None => "ended".to_owned(),
    }
}
