//! What needs a second process: another user, another writer, a sudden end. The second process is this test program again,
//! running one of the ignored tests below.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anchorite_store::{CacheSettings, KnowledgeBase, Mode, StoreError};
use tempfile::tempdir;

use crate::support::{DIM, add, document, eager, embed, invented, model, snapshot, writer};

const FOLDER: &str = "ANCHORITE_STORE_TEST_FOLDER";

fn again(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", test, "--ignored", "--nocapture"]).env(FOLDER, folder);
    command
}

fn given_folder() -> KnowledgeBase {
    KnowledgeBase::at(std::env::var_os(FOLDER).expect("run by another test"))
}

#[test]
#[ignore = "run by f08_a_writer_in_another_process_is_told_the_holder"]
fn child_asks_for_the_lock() {
    let Err(StoreError::Locked { holder, .. }) = given_folder().open_writer() else { panic!("two writers") };
    let parent = std::env::var("ANCHORITE_STORE_TEST_PARENT").expect("run by another test");
    assert!(holder.contains(&parent), "{holder}");
    assert_eq!(given_folder().snapshot().expect("reader").bm25("violin", 3).expect("found").len(), 1);
}

#[test]
fn f08_a_writer_in_another_process_is_told_the_holder() {
    let folder = tempdir().expect("folder");
    let mut writer = writer(&KnowledgeBase::at(folder.path()));
    add(&mut writer, &[document("a", "", "A violin.")]);
    let mut child = again("processes::child_asks_for_the_lock", folder.path());
    let output =
        child.env("ANCHORITE_STORE_TEST_PARENT", std::process::id().to_string()).output().expect("second process");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
#[ignore = "run by f02_what_was_acknowledged_survives_two_hundred_sudden_ends"]
#[allow(clippy::print_stdout)]
fn child_writes_until_it_is_ended() {
    let place = given_folder().with_settings(eager());
    let mut writer = writer(&place);
    let first = writer.generation().expect("read").id;
    for i in first.. {
        add(&mut writer, &[invented(&format!("d{i}"), i.unsigned_abs(), 5)]);
        println!("\nkept d{i}");
        if i % 8 == 0 {
            writer.refresh_caches(&mut |_, _| {}).expect("refreshed");
        }
    }
}

#[test]
fn f02_what_was_acknowledged_survives_two_hundred_sudden_ends() {
    let folder = tempdir().expect("folder");
    let mut acknowledged = Vec::new();
    for round in 0..200 {
        let mut child = again("processes::child_writes_until_it_is_ended", folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("second process");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let kept = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("kept ").map(str::to_owned));
        let before = acknowledged.len();
        acknowledged.extend(kept.take(1 + round % 3));
        // At work on the next document, or on the indexes: the pause moves the end about.
        std::thread::sleep(std::time::Duration::from_micros(1_300 * (round as u64 % 7)));
        child.kill().expect("ended");
        child.wait().expect("ended");
        let snapshot = snapshot(folder.path());
        assert_eq!(snapshot.stats().expect("stats").documents, snapshot.generation().id.unsigned_abs());
        let all = round == 199;
        for source in &acknowledged[if all { 0 } else { before }..] {
            let stored = snapshot.document_by_source(source).expect("read").expect("acknowledged");
            let chunks = snapshot.chunks_of(stored.id).expect("read");
            assert_eq!(chunks.len(), 5, "whole");
            let hits = snapshot.dense(&embed(&chunks[0].text), 1).expect("found");
            assert!(hits[0].score > 0.999);
        }
    }
    assert!(acknowledged.len() >= 300, "{}", acknowledged.len());
    let findings = snapshot(folder.path()).verify().findings;
    assert!(findings.is_empty(), "{findings:?}");
}

/// Chunks that the other process takes in, in batches of this many.
const TAKEN_IN: usize = 50_000;
const AT_ONCE: usize = 2_500;

#[test]
#[ignore = "run by m33_two_processes_one_takes_in_fifty_thousand_chunks_while_the_other_searches"]
fn child_takes_in_fifty_thousand_chunks() {
    let settings = CacheSettings { newer_chunks: 5_000, ..CacheSettings::default() };
    let place = given_folder().with_settings(settings);
    let mut writer = writer(&place);
    for first in (0..TAKEN_IN).step_by(AT_ONCE) {
        let documents: Vec<_> =
            (0..AT_ONCE / 50).map(|at| invented(&format!("d{}", first + at), (first + at) as u64, 50)).collect();
        add(&mut writer, &documents);
        writer.refresh_caches(&mut |_, _| {}).expect("refreshed");
    }
}

#[test]
fn m33_two_processes_one_takes_in_fifty_thousand_chunks_while_the_other_searches() {
    let folder = tempdir().expect("folder");
    drop(writer(&KnowledgeBase::at(folder.path())));
    let mut child = again("processes::child_takes_in_fifty_thousand_chunks", folder.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("second process");
    let (mut seen, mut searches) = (0, 0);
    let status = loop {
        let snapshot = snapshot(folder.path());
        let chunks = snapshot.stats().expect("stats").chunks;
        assert!(chunks.is_multiple_of(AT_ONCE as u64), "a part of a batch was seen: {chunks}");
        assert!(chunks >= seen, "chunks went away");
        seen = chunks;
        for at in 0..3 {
            let words = format!("{} {}", crate::support::word(at), crate::support::word(at + 9));
            let found = snapshot.search(&words, Some(&embed(&words)), Mode::Hybrid, 10, 50).expect("found");
            assert_eq!(found.len(), if chunks == 0 { 0 } else { 10 });
            searches += 1;
        }
        if let Some(status) = child.try_wait().expect("asked") {
            break status;
        }
    };
    assert!(status.success());
    assert_eq!(snapshot(folder.path()).stats().expect("stats").chunks, TAKEN_IN as u64);
    assert!(searches > 20, "{searches} searches");
}

#[cfg(unix)]
mod read_only {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;

    use super::*;

    #[test]
    #[ignore = "run by f07_a_read_only_folder_is_searched_and_not_written"]
    fn child_reads_a_read_only_folder() {
        let place = given_folder();
        let probe = place.folder().join("probe");
        assert!(fs::write(&probe, "x").is_err(), "the folder should be read-only");
        let snapshot = place.snapshot().expect("readable");
        assert_eq!(snapshot.bm25("river", 3).expect("found").len(), 3);
        assert_eq!(snapshot.dense(&embed("river castle"), 3).expect("found").len(), 3);
        for result in [place.create_or_open_writer(&model(), DIM).map(drop), place.open_writer().map(drop)] {
            assert!(matches!(result, Err(StoreError::ReadOnly { .. })), "{result:?}");
        }
    }

    #[test]
    #[ignore = "run by f07_a_read_only_folder_with_an_unfinished_log_is_named"]
    fn child_reads_an_unfinished_folder() {
        let result = given_folder().snapshot();
        assert!(matches!(result, Err(StoreError::NeedsRecovery { .. })), "{result:?}");
    }

    #[test]
    #[ignore = "run by f07_a_read_only_folder_with_an_unfinished_log_is_named"]
    fn child_finds_the_violin() {
        assert_eq!(given_folder().snapshot().expect("readable").bm25("violin", 3).expect("found").len(), 1);
    }

    fn set_modes(folder: &Path, of_folder: u32, of_file: u32) {
        for entry in fs::read_dir(folder).expect("folder") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                set_modes(&path, of_folder, of_file);
            } else {
                fs::set_permissions(&path, Permissions::from_mode(of_file)).expect("changed");
            }
        }
        fs::set_permissions(folder, Permissions::from_mode(of_folder)).expect("changed");
    }

    /// Runs a test on `folder` as somebody who must obey its permissions.
    fn as_reader(test: &str, folder: &Path) {
        set_modes(folder, 0o555, 0o444);
        let mut child = again(test, folder);
        let root = fs::metadata(folder).expect("folder").uid() == 0;
        // The program lies where others may not look: they get a copy.
        let shared = tempdir().expect("folder");
        if root {
            fs::set_permissions(shared.path(), Permissions::from_mode(0o755)).expect("changed");
            let program = shared.path().join("program");
            fs::copy(std::env::current_exe().expect("this program"), &program).expect("copied");
            child = Command::new(program);
            child.args(["--exact", test, "--ignored", "--nocapture"]).env(FOLDER, folder);
            child.current_dir("/").uid(65_534).gid(65_534);
        }
        let output = child.output().expect("second process");
        set_modes(folder, 0o755, 0o644);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && out.contains("1 passed"), "{out}{err}");
    }

    #[test]
    fn f07_a_read_only_folder_is_searched_and_not_written() {
        let folder = tempdir().expect("folder");
        let mut writer = writer(&KnowledgeBase::at(folder.path()).with_settings(eager()));
        let many: Vec<_> = (0..10).map(|i| invented(&format!("d{i}"), i, 20)).collect();
        add(&mut writer, &many);
        writer.refresh_caches(&mut |_, _| {}).expect("refreshed");
        drop(writer);
        as_reader("processes::read_only::child_reads_a_read_only_folder", folder.path());
        // The same where a reader left the files through which readers and writers find each other.
        drop(snapshot(folder.path()));
        as_reader("processes::read_only::child_reads_a_read_only_folder", folder.path());
    }

    #[test]
    fn f07_a_read_only_folder_with_an_unfinished_log_is_named() {
        let (folder, copy) = (tempdir().expect("folder"), tempdir().expect("folder"));
        let mut writer = writer(&KnowledgeBase::at(folder.path()));
        add(&mut writer, &[document("a", "", "A violin.")]);
        for name in ["anchorite.db", "anchorite.db-wal"] {
            fs::copy(folder.path().join(name), copy.path().join(name)).expect("copied");
        }
        as_reader("processes::read_only::child_reads_an_unfinished_folder", copy.path());
        // The remedy that the message names.
        drop(KnowledgeBase::at(copy.path()).snapshot().expect("recovered"));
        as_reader("processes::read_only::child_finds_the_violin", copy.path());
    }
}
