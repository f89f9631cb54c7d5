//! What `--kb` may name, and what it must refuse without touching it.

use std::fs;
use std::path::Path;

use anchorite_core::ModelFingerprint;
use anchorite_store::{KnowledgeBase, StoreError};
use rusqlite::Connection;
use tempfile::tempdir;

use crate::support::{DIM, add, document, model, writer};

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_plain_file_is_refused_and_left_alone() {
    let folder = tempdir().expect("folder");
    let file = folder.path().join("notes.txt");
    fs::write(&file, "my notes").expect("written");
    for place in [KnowledgeBase::at(&file), KnowledgeBase::at(file.join("inside"))] {
        let results = [
            place.create_or_open_writer(&model(), DIM).map(drop),
            place.open_writer().map(drop),
            place.snapshot().map(drop),
        ];
        for result in results {
            assert!(matches!(result, Err(StoreError::NotAKnowledgeBase { .. })), "{result:?}");
        }
    }
    assert_eq!(fs::read_to_string(&file).expect("read"), "my notes");
    assert_eq!(names(folder.path()), ["notes.txt"]);
}

#[test]
fn a_folder_with_other_things_is_refused_and_left_alone() {
    let folder = tempdir().expect("folder");
    fs::write(folder.path().join("thesis.md"), "text").expect("written");
    let place = KnowledgeBase::at(folder.path());
    let refused = place.create_or_open_writer(&model(), DIM).expect_err("refused");
    assert!(matches!(refused, StoreError::NotAKnowledgeBase { .. }));
    assert!(refused.to_string().contains("other things"), "{refused}");
    assert!(matches!(place.snapshot(), Err(StoreError::NotAKnowledgeBase { .. })));
    assert_eq!(names(folder.path()), ["thesis.md"]);
}

#[test]
fn nothing_there_is_missing_for_readers_and_a_beginning_for_a_writer() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path().join("deep/inside/my.kb"));
    assert!(matches!(place.snapshot(), Err(StoreError::Missing { .. })));
    assert!(matches!(place.open_writer(), Err(StoreError::Missing { .. })));
    assert!(names(folder.path()).is_empty(), "asking makes nothing");
    drop(writer(&place));
    assert_eq!(place.snapshot().expect("there").generation().id, 0);
}

#[test]
fn f11_another_model_is_refused_with_the_remedy() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path());
    drop(writer(&place));
    let other = ModelFingerprint { name: "other-model".into(), sha256: "cd".repeat(32) };
    for (fingerprint, dim) in [(&other, DIM), (&model(), DIM + 1)] {
        let error = place.create_or_open_writer(fingerprint, dim).expect_err("refused");
        assert!(matches!(error, StoreError::ModelMismatch { .. }));
        let message = error.to_string();
        assert!(message.contains("word-hashes") && message.contains("again into a new folder"), "{message}");
        let snapshot = place.snapshot().expect("readable");
        assert!(matches!(snapshot.check_model(fingerprint, dim), Err(StoreError::ModelMismatch { .. })));
    }
    let renamed = ModelFingerprint { name: "the same in another folder".into(), ..model() };
    place.snapshot().expect("readable").check_model(&renamed, DIM).expect("the same weights");
}

#[test]
fn f12_a_newer_format_is_refused_and_left_alone() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path());
    drop(writer(&place));
    let database = folder.path().join("anchorite.db");
    Connection::open(&database).expect("database").pragma_update(None, "user_version", 99).expect("changed");
    let before = fs::read(&database).expect("read");
    for result in [place.create_or_open_writer(&model(), DIM).map(drop), place.snapshot().map(drop)] {
        assert!(matches!(result, Err(StoreError::Format { found: 99, .. })), "{result:?}");
    }
    assert_eq!(fs::read(&database).expect("read"), before);
}

#[test]
fn another_programs_database_is_refused_and_left_alone() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path());
    let database = folder.path().join("anchorite.db");
    Connection::open(&database).expect("database").execute_batch("CREATE TABLE mine (x)").expect("table");
    let foreign = fs::read(&database).expect("read");
    for bytes in [foreign, b"this is not an SQLite file, but long enough to look like a header........".repeat(40)] {
        fs::write(&database, &bytes).expect("written");
        for result in [place.create_or_open_writer(&model(), DIM).map(drop), place.snapshot().map(drop)] {
            assert!(matches!(result, Err(StoreError::NotAKnowledgeBase { .. })), "{result:?}");
        }
        assert_eq!(fs::read(&database).expect("read"), bytes);
    }
}

#[test]
fn an_interrupted_creation_is_finished_by_the_next_writer() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path());
    fs::write(folder.path().join("writer.lock"), "").expect("written");
    assert!(matches!(place.snapshot(), Err(StoreError::Missing { .. })));
    fs::write(folder.path().join("anchorite.db"), "").expect("written");
    assert!(matches!(place.snapshot(), Err(StoreError::Missing { .. })));
    assert!(matches!(place.open_writer(), Err(StoreError::Missing { .. })));
    add(&mut writer(&place), &[document("a", "", "Saddle.")]);
    assert_eq!(place.snapshot().expect("there").bm25("saddle", 1).expect("found").len(), 1);
}

#[test]
fn a_closed_knowledge_base_is_its_database_alone() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path());
    add(&mut writer(&place), &[document("a", "", "Pepper.")]);
    assert_eq!(names(folder.path()), ["anchorite.db", "writer.lock"]);
}

#[test]
fn a_deleted_text_is_not_left_in_the_database_file() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path());
    let mut writer = writer(&place);
    add(&mut writer, &[document("a", "", "The password of the safe is swordfish."), document("b", "", "Stays.")]);
    let mut batch = writer.begin("delete").expect("begun");
    batch.delete_source("a").expect("deleted");
    batch.commit().expect("committed");
    drop(writer);
    let bytes = fs::read(folder.path().join("anchorite.db")).expect("read");
    let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("Stays.") && !holds("swordfish"));
}

#[test]
fn a_path_with_signs_that_mean_something_in_an_address() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path().join("50% & more? #1 ü.kb"));
    add(&mut writer(&place), &[document("a", "", "Pepper.")]);
    assert_eq!(place.snapshot().expect("there").stats().expect("stats").documents, 1);
}
