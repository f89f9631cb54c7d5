//! `ingest --watch`: the knowledge base follows the files, and ends in good order (M33, F32, F37).
#![cfg(unix)]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use common::{Workplace, number_at, text_at};
use serde_json::Value;

struct Watching {
    process: Child,
    reports: Receiver<Value>,
}

impl Watching {
    fn begin(place: &Workplace, more: &[&str]) -> Self {
        let mut process = place
            .command(&[&["ingest", "notes", "--kb", "notes.kb", "--watch", "--json"], more].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        let (sender, reports) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).expect("a report"));
            }
        });
        Self { process, reports }
    }

    fn next(&self) -> Value {
        self.reports.recv_timeout(Duration::from_secs(60)).expect("a report")
    }

    fn interrupt(mut self) -> Option<i32> {
        let sent = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status().expect("kill runs");
        assert!(sent.success());
        self.process.wait().expect("it ends").code()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // Already ended where the test went well.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn sources(place: &Workplace) -> Vec<String> {
    let listed = place.json(&["kb", "list", "--kb", "notes.kb"], 0);
    let listed = listed.as_array().expect("a list");
    let mut sources: Vec<String> = listed.iter().map(|document| text_at(document, "/source").to_owned()).collect();
    sources.sort();
    sources
}

#[test]
fn m33_a_watched_folder_is_followed_until_ctrl_c() {
    let Some(place) = Workplace::with_models() else { return };
    place.write("notes/a.txt", "The Danube is 2,850 km long.");
    place.write("notes/records.jsonl", "{\"_id\": \"1\", \"text\": \"One.\"}\n{\"_id\": \"2\", \"text\": \"Two.\"}\n");
    let watching = Watching::begin(&place, &[]);
    assert_eq!(number_at(&watching.next(), "/added"), 3);

    place.write("notes/b.txt", "The Rhine is 1,233 km long.");
    assert_eq!(number_at(&watching.next(), "/added"), 1);

    place.write("notes/a.txt", "The Danube is 2,850 km long, from Donaueschingen.");
    assert_eq!(number_at(&watching.next(), "/replaced"), 1);

    fs::create_dir(place.path().join("notes/deep")).expect("a folder");
    fs::rename(place.path().join("notes/b.txt"), place.path().join("notes/deep/c.txt")).expect("moves");
    let moved = watching.next();
    assert_eq!(number_at(&moved, "/removed"), 1, "{moved:#}");

    // A record that is gone from its file is gone.
    place.write("notes/records.jsonl", "{\"_id\": \"2\", \"text\": \"Two.\"}\n");
    assert_eq!(number_at(&watching.next(), "/removed"), 1);

    fs::remove_file(place.path().join("notes/a.txt")).expect("deletes");
    assert_eq!(number_at(&watching.next(), "/removed"), 1);

    assert_eq!(watching.interrupt(), Some(130));
    assert_eq!(sources(&place), ["notes/deep/c.txt", "notes/records.jsonl#2"]);
    assert_eq!(place.run(&["kb", "verify", "--kb", "notes.kb"]).code, 0);
}

#[test]
fn f32_a_file_that_is_being_written_is_read_when_it_is_whole() {
    let Some(place) = Workplace::with_models() else { return };
    place.write("notes/a.txt", "The Danube is 2,850 km long.");
    let watching = Watching::begin(&place, &[]);
    watching.next();
    let mut file = fs::File::create(place.path().join("notes/slow.txt")).expect("a file");
    for part in 0..12 {
        writeln!(file, "Part {part} of a text that is written slowly.").expect("writes");
        std::thread::sleep(Duration::from_millis(200));
    }
    drop(file);
    let report = watching.next();
    assert_eq!(number_at(&report, "/added"), 1, "{report:#}");
    assert!(watching.reports.recv_timeout(Duration::from_secs(3)).is_err(), "it is read once");
    assert_eq!(watching.interrupt(), Some(130));
    let shown = place.json(&["kb", "show", "notes/slow.txt", "--kb", "notes.kb"], 0);
    assert!(shown.to_string().contains("Part 11 of a text"), "{shown:#}");
}

#[cfg(target_os = "linux")]
#[test]
fn m03_m33_a_sealed_process_follows_too() {
    let Some(place) = Workplace::with_models() else { return };
    let tried = place.run(&["graph", "simple", "--sealed"]);
    if tried.code != 0 {
        return eprintln!("skipped: {}", tried.stderr.trim());
    }
    place.write("notes/a.txt", "The Danube is 2,850 km long.");
    let watching = Watching::begin(&place, &["--sealed"]);
    assert_eq!(number_at(&watching.next(), "/added"), 1);
    place.write("notes/deep/b.csv", "river,km\nRhine,1233\nElbe,1094\n");
    assert_eq!(number_at(&watching.next(), "/added"), 1);
    fs::remove_file(place.path().join("notes/a.txt")).expect("removed");
    assert_eq!(number_at(&watching.next(), "/removed"), 1);
    assert_eq!(watching.interrupt(), Some(130));
    assert_eq!(sources(&place), ["notes/deep/b.csv"]);
}
