//! Files are taken apart in a process of their own, which dies alone (F31, and F32 for files that change into anything).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anchorite_core::Limits;
use anchorite_formats::child::Program;
use anchorite_formats::{ExtractError, Item, ReadError, read};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tempfile::TempDir;

fn faulty() -> Option<Program> {
    Some(Program { path: PathBuf::from(env!("CARGO_BIN_EXE_faulty-child")), arguments: Vec::new() })
}

fn honest() -> Option<Program> {
    Some(Program { path: PathBuf::from(env!("CARGO_BIN_EXE_anchorite-extract")), arguments: Vec::new() })
}

fn folder(files: &[&str]) -> (TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let paths = files.iter().map(|name| {
        let path = folder.path().join(name);
        // A beginning that is read in the other process.
        fs::write(&path, "%PDF-1.7 but not really").expect("writes");
        path
    });
    let paths = paths.collect();
    (folder, paths)
}

fn limits() -> Limits {
    Limits { extraction_seconds: 2, extraction_memory_bytes: 512 << 20, ..Limits::default() }
}

/// One line an item, with the last part of paths.
fn lines(paths: &[PathBuf], limits: &Limits) -> Vec<String> {
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    read(paths, limits)
        .with_program(faulty())
        .map(|item| match item {
            Item::Document { document, .. } => format!("{}: {}", last(&document.source), document.text),
            Item::Skipped { source, reason } => format!("{} skipped: {reason:?}", last(&source)),
            Item::Error(ReadError::Extract(ExtractError::Died { path, how })) => format!("{} died: {how}", last(&path)),
            Item::Error(ReadError::Extract(ExtractError::Overtime { path, seconds })) => {
                format!("{} over {seconds} s", last(&path))
            }
            Item::Error(error) => format!("error: {error}"),
        })
        .collect()
}

#[test]
fn f31_a_child_that_dies_takes_one_file_with_it() {
    let names = [
        "good.1",
        "overflow.pdf",
        "good.2",
        "abort.pdf",
        "memory.pdf",
        "good.3",
        "exit.pdf",
        "panic.pdf",
        "forge.pdf",
        "good.4",
    ];
    let (_folder, paths) = folder(&names);
    // Nothing hangs here: on a busy machine dying may take its time.
    let lines = lines(&paths, &Limits { extraction_seconds: 120, ..limits() });
    assert_eq!(lines.len(), names.len(), "{lines:#?}");
    for (name, line) in names.iter().zip(&lines) {
        let (name, kind) = (name.to_owned(), name.split('.').next().expect("a kind"));
        let expected = if kind == "good" { format!("{name}: 23 bytes") } else { format!("{name} died: ") };
        assert!(line.starts_with(&expected), "{line} in {lines:#?}");
    }
    assert!(lines[7].contains("on purpose"), "a fault of the parser is said: {}", lines[7]);
    assert!(lines[8].contains("wrote what no document can be"), "another file's name is not believed: {}", lines[8]);
}

#[test]
fn f31_a_child_that_hangs_is_given_up() {
    let (_folder, paths) = folder(&["hang.pdf", "good.pdf", "sleep.pdf"]);
    let started = Instant::now();
    let lines = lines(&paths, &limits());
    assert_eq!(lines, ["hang.pdf over 2 s", "good.pdf: 23 bytes", "sleep.pdf over 2 s"]);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn f31_a_child_that_writes_without_end_is_stopped() {
    let (_folder, paths) = folder(&["flood.pdf", "good.pdf"]);
    let limits = Limits { archive_bytes: 2 << 20, document_bytes: 1 << 20, ..limits() };
    let lines = lines(&paths, &limits);
    let documents = lines.iter().filter(|line| line.starts_with("flood.pdf: again")).count();
    assert!((1..=20).contains(&documents), "{documents}");
    assert_eq!(lines[documents..], ["flood.pdf died: wrote what no document can be", "good.pdf: 23 bytes"]);
}

#[cfg(target_os = "linux")]
#[test]
fn f31_a_child_has_no_files_no_network_and_no_processes() {
    let (_folder, paths) = folder(&["probe.pdf"]);
    assert_eq!(lines(&paths, &limits()), ["probe.pdf: nothing"]);
    let mut reader = read(&paths, &limits()).with_program(faulty());
    assert_eq!(reader.notice(), None);
    assert!(reader.next().is_some());
    assert_eq!(reader.notice(), None, "seccomp or Landlock is there on every kernel that tests run on");
}

#[test]
fn f31_a_program_that_is_not_there_is_said() {
    let (_folder, paths) = folder(&["a.pdf", "b.pdf"]);
    let nowhere = Program { path: PathBuf::from("/nowhere/at/all"), arguments: Vec::new() };
    let items: Vec<Item> = read(&paths, &limits()).with_program(Some(nowhere)).collect();
    assert_eq!(items.len(), 2);
    for item in items {
        match item {
            Item::Error(ReadError::Extract(ExtractError::Died { how, .. })) => {
                assert!(how.contains("could not be started"), "{how}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn f31_without_a_program_it_is_done_here_and_said() {
    let (_folder, paths) = folder(&["a.pdf"]);
    let mut reader = read(&paths, &limits());
    assert_eq!(reader.notice(), None);
    assert!(matches!(reader.next(), Some(Item::Error(_))));
    assert!(reader.notice().expect("a notice").contains("in this process"));
}

#[test]
fn f31_the_child_reads_what_this_process_reads() {
    let Some(messy) = messy() else { return };
    let paths = [messy];
    let show = |item: Item| format!("{item:?}");
    let here: Vec<String> = read(&paths, &Limits::default()).map(show).collect();
    let there: Vec<String> = read(&paths, &Limits::default()).with_program(honest()).map(show).collect();
    assert_eq!(here.len(), there.len());
    for (here, there) in here.iter().zip(&there) {
        assert_eq!(here, there);
    }
}

/// The folder of real files with a trouble each, if it is there.
fn messy() -> Option<PathBuf> {
    let inside = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = inside.ancestors().map(|folder| folder.join("shared/data/messy")).find(|place| place.is_dir());
    if found.is_none() {
        eprintln!("skipped: shared/data/messy is not beside the checkout");
    }
    found
}

/// Files as damage, cut-off downloads and careless editors leave them.
fn mutated(original: &[u8], random: &mut StdRng) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..random.random_range(1..=4) {
        if bytes.len() < 4 {
            break;
        }
        let at = random.random_range(0..bytes.len());
        let length = random.random_range(1..=(bytes.len() - at).min(2000));
        match random.random_range(0..7) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..at + length)),
            2 => bytes[at..at + length].fill(0),
            3 => {
                let copy = bytes[at..at + length].to_vec();
                bytes.splice(at..at, copy);
            }
            4 => bytes[at..at + length].iter_mut().for_each(|byte| *byte = random.random()),
            5 => bytes[at] ^= 1 << random.random_range(0..8),
            _ => {
                for _ in 0..50 {
                    let at = random.random_range(0..bytes.len());
                    bytes[at] = random.random();
                }
            }
        }
    }
    bytes
}

#[test]
fn f31_two_hundred_damaged_files_are_all_reported_on() {
    let Some(messy) = messy() else { return };
    let mut originals: Vec<PathBuf> =
        fs::read_dir(messy).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    originals.retain(|path| path.extension().is_some_and(|ending| ending != "jsonl"));
    originals.sort();
    let folder = tempfile::tempdir().expect("temporary folder");
    let mut random = StdRng::seed_from_u64(7);
    let mut names = Vec::new();
    for number in 0..200 {
        let original = &originals[number % originals.len()];
        let name = format!("{number:03}-{}", original.file_name().expect("a name").to_string_lossy());
        let bytes = mutated(&fs::read(original).expect("reads"), &mut random);
        fs::write(folder.path().join(&name), bytes).expect("writes");
        names.push(name);
    }
    let limits = Limits { extraction_seconds: 10, extraction_memory_bytes: 1 << 30, ..Limits::default() };
    let reader = read(&[folder.path().to_owned()], &limits).with_program(honest());
    let mut reported = std::collections::BTreeSet::new();
    let mut documents = 0;
    for item in reader {
        let place = match &item {
            Item::Document { document, .. } => document.source.clone(),
            Item::Skipped { source, .. } => source.clone(),
            Item::Error(error) => error.place().to_owned(),
        };
        documents += usize::from(matches!(item, Item::Document { .. }));
        reported.extend(names.iter().find(|name| place.contains(name.as_str())));
    }
    let missing: Vec<&String> = names.iter().filter(|name| !reported.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(documents > 80, "only {documents} could still be read");
}
