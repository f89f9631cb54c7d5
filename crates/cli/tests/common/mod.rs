//! Running the program in a folder of its own. Models come from where the program finds them; where there are none, a test
//! says so and ends.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_anchorite");

/// Its variables, but for the one that says where models are: a developer's own must not change a test.
const VARIABLES: &[&str] = &[
    "ANCHORITE_PROFILE",
    "ANCHORITE_EMBEDDER",
    "ANCHORITE_RERANKER",
    "ANCHORITE_GENERATOR",
    "ANCHORITE_DEVICE",
    "ANCHORITE_THREADS",
    "ANCHORITE_CONFIG",
    "ANCHORITE_KB",
    "ANCHORITE_LOG",
    "ANCHORITE_PASSWORD",
    "ANCHORITE_SEALED",
];

/// Takes the program's variables out of a command.
pub(crate) fn without_settings(command: &mut Command) -> &mut Command {
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command
}

/// A folder that the program runs in, removed at the end.
pub(crate) struct Workplace {
    folder: TempDir,
}

impl Workplace {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// One in which the models of profile `tiny` can be found, or `None` with a printed reason.
    pub(crate) fn with_models() -> Option<Self> {
        let place = Self::new();
        let found = place.run(&["models", "path", "--profile", "tiny"]);
        if found.code == 0 {
            return Some(place);
        }
        eprintln!("skipped: {}", found.stderr.trim());
        None
    }

    /// One with models and a knowledge base `rivers.kb` of [`RIVERS`].
    pub(crate) fn with_rivers() -> Option<Self> {
        let place = Self::with_models()?;
        for (name, text) in RIVERS {
            place.write(&format!("rivers/{name}"), text);
        }
        let ingest = place.run(&["ingest", "rivers", "--kb", "rivers.kb"]);
        assert_eq!(ingest.code, 0, "{ingest:?}");
        Some(place)
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, content).expect("a file");
        path
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        without_settings(&mut command).args(arguments).current_dir(self.path()).stdin(Stdio::null());
        command
    }

    /// Runs the program to its end, with nothing on standard input.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        Run::of(arguments, &self.command(arguments).output().expect("the program starts"))
    }

    pub(crate) fn run_with_input(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Run {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        // A program that refuses its arguments does not read; its exit code tells.
        let _ = child.stdin.take().expect("a pipe").write_all(input.as_ref());
        Run::of(arguments, &child.wait_with_output().expect("the program ends"))
    }

    /// Runs the program, which must end with `code`, and reads the JSON document it prints.
    pub(crate) fn json(&self, arguments: &[&str], code: i32) -> Value {
        let mut arguments = arguments.to_vec();
        arguments.push("--json");
        let run = self.run(&arguments);
        assert_eq!(run.code, code, "{run:?}");
        run.json()
    }

    /// Every file with its content, so that two looks can be compared. What SQLite and the writer's lock keep for the time
    /// of a connection is left out: it holds no document.
    pub(crate) fn content(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        gather(self.path(), &mut found);
        found
    }
}

fn gather(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() {
            found.insert(path.clone(), Vec::new());
            gather(&path, found);
        } else if !name.ends_with("-shm") && name != "writer.lock" {
            let content = fs::read(&path).unwrap_or_default();
            if !(name.ends_with("-wal") && content.is_empty()) {
                found.insert(path, content);
            }
        }
    }
}

/// How a run of the program ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) arguments: Vec<String>,
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn of(arguments: &[&str], output: &Output) -> Self {
        Self {
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout.clone()).expect("UTF-8 on standard output"),
            stderr: String::from_utf8(output.stderr.clone()).expect("UTF-8 on standard error"),
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// One JSON document a line.
    pub(crate) fn records(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
    }

    /// An error as people meet it: exit code 2, one line that holds each of `says`, and no result.
    pub(crate) fn is_refused(&self, says: &[&str]) {
        assert_eq!(self.code, 2, "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        assert_eq!(self.stderr.lines().filter(|line| !line.trim().is_empty()).count(), 1, "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        for word in says {
            assert!(self.stderr.contains(word), "no {word:?} in {self:?}");
        }
    }
}

/// The field at a JSON pointer, which must be there.
pub(crate) fn at<'v>(value: &'v Value, pointer: &str) -> &'v Value {
    value.pointer(pointer).unwrap_or_else(|| panic!("nothing at {pointer} in {value:#}"))
}

pub(crate) fn text_at<'v>(value: &'v Value, pointer: &str) -> &'v str {
    at(value, pointer).as_str().unwrap_or_else(|| panic!("no string at {pointer} in {value:#}"))
}

pub(crate) fn number_at(value: &Value, pointer: &str) -> u64 {
    at(value, pointer).as_u64().unwrap_or_else(|| panic!("no whole number at {pointer} in {value:#}"))
}

pub(crate) fn list_at<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    at(value, pointer).as_array().unwrap_or_else(|| panic!("no list at {pointer} in {value:#}"))
}

/// The strings of one field of each element.
pub(crate) fn each_text<'v>(list: &'v [Value], field: &str) -> Vec<&'v str> {
    list.iter().map(|element| text_at(element, &format!("/{field}"))).collect()
}

/// Names and contents of a few small documents. Letters of more than one byte show whether offsets are bytes.
pub(crate) const RIVERS: &[(&str, &str)] = &[
    ("danube.txt", "The Danube rises in the Black Forest and flows into the Black Sea. The Danube is 2,850 km long.\n"),
    ("elbe.txt", "The Elbe rises in the Krkonoše mountains of Bohemia. It flows through Dresden and Hamburg.\n"),
    ("rhine.md", "# The Rhine\n\nDer »Vater Rhein« flows past Köln and Düsseldorf. The Rhine is 1,233 km long.\n"),
    ("tiber.md", "# The Tiber\n\nThe Tiber flows through Rome. It rises at Monte Fumaiolo in Emilia-Romagna.\n"),
];
