//! Results kept line by line, so that a run that was stopped goes on where it was.
//!
//! The first line says what run the others belong to (models, settings, build); results of another run are never mixed in.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::EvalError;

/// Results by key, in a file of JSON lines.
pub struct Ledger<T> {
    path: PathBuf,
    file: File,
    known: HashMap<String, T>,
}

impl<T: Serialize + DeserializeOwned> Ledger<T> {
    /// Opens `path`, or makes it. `run` is all that the results depend on.
    ///
    /// # Errors
    /// [`EvalError::OtherRun`] if the file belongs to another run; or if it can't be read or written.
    pub fn open(path: &Path, run: &Value) -> Result<Self, EvalError> {
        let io = || EvalError::io(path);
        let mut text = String::new();
        let options = OpenOptions::new().read(true).append(true).create(true).open(path);
        let mut file = options.map_err(io())?;
        file.read_to_string(&mut text).map_err(io())?;
        let mut known = HashMap::new();
        let mut lines = text.split_inclusive('\n');
        let mut whole = 0;
        if let Some(first) = lines.next() {
            if serde_json::from_str::<Value>(first).ok().as_ref() != Some(run) {
                return Err(EvalError::OtherRun { path: path.to_owned() });
            }
            whole += first.len();
        }
        for line in lines.by_ref() {
            // A line cut short by a crash is the last one; what it was about is done again.
            let Ok((key, value)) = serde_json::from_str::<(String, T)>(line) else { break };
            if !line.ends_with('\n') {
                break;
            }
            known.insert(key, value);
            whole += line.len();
        }
        file.set_len(whole as u64).map_err(io())?;
        if whole == 0 {
            writeln!(file, "{run}").map_err(io())?;
        }
        Ok(Self { path: path.to_owned(), file, known })
    }

    /// The same, but results of another run are thrown away: for files that are nobody's but the program's.
    ///
    /// # Errors
    /// If the file can't be read or written.
    pub fn open_or_renew(path: &Path, run: &Value) -> Result<Self, EvalError> {
        match Self::open(path, run) {
            Err(EvalError::OtherRun { .. }) => {
                std::fs::remove_file(path).map_err(EvalError::io(path))?;
                Self::open(path, run)
            }
            opened => opened,
        }
    }

    /// The result kept under `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&T> {
        self.known.get(key)
    }

    /// Keeps a result; it is handed to the system before this returns.
    ///
    /// # Errors
    /// If writing fails.
    pub fn insert(&mut self, key: &str, value: T) -> Result<(), EvalError> {
        writeln!(self.file, "{}", json!([key, &value])).map_err(EvalError::io(&self.path))?;
        self.known.insert(key.to_owned(), value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m41_a_stopped_run_goes_on_where_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("results.jsonl");
        let run = json!({"models": ["one"]});
        let mut ledger = Ledger::<u32>::open(&path, &run).expect("opens");
        ledger.insert("a", 1).expect("writes");
        ledger.insert("b", 2).expect("writes");
        drop(ledger);
        let text = std::fs::read_to_string(&path).expect("reads");
        std::fs::write(&path, &text[..text.len() - 3]).expect("cuts the last line short");
        let mut ledger = Ledger::<u32>::open(&path, &run).expect("opens");
        assert_eq!((ledger.get("a"), ledger.get("b")), (Some(&1), None));
        ledger.insert("b", 3).expect("writes");
        drop(ledger);
        assert_eq!(Ledger::<u32>::open(&path, &run).expect("opens").get("b"), Some(&3));
    }

    #[test]
    fn m41_results_of_another_run_are_never_mixed_in() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("results.jsonl");
        Ledger::<u32>::open(&path, &json!(1)).expect("opens").insert("a", 1).expect("writes");
        assert!(matches!(Ledger::<u32>::open(&path, &json!(2)), Err(EvalError::OtherRun { .. })));
        assert_eq!(Ledger::<u32>::open(&path, &json!(1)).expect("still there").get("a"), Some(&1));
        assert_eq!(Ledger::<u32>::open_or_renew(&path, &json!(2)).expect("opens").get("a"), None);
    }
}
