//! Knowledge bases of every format there ever was, as their programs left them in `tests/fixtures/`.

use std::fs;
use std::path::{Path, PathBuf};

use anchorite_store::{KnowledgeBase, StoreError};
use tempfile::tempdir;

use crate::support::{add, document, eager, embed, writer};

fn fixture(format: i64, folder: &Path) -> KnowledgeBase {
    let file: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "tests", "fixtures", &format!("format-{format}.db")].iter().collect();
    fs::copy(file, folder.join("anchorite.db")).expect("copied");
    KnowledgeBase::at(folder).with_settings(eager())
}

/// What the first two formats' fixtures hold alike.
fn holds_what_it_held(place: &KnowledgeBase) {
    let snapshot = place.snapshot().expect("opens");
    let danube = snapshot.document_by_source("notes/danube.txt").expect("read").expect("there");
    assert_eq!(danube.aliases, ["copy/danube.txt"]);
    assert!(danube.text.starts_with("The river rises in the Black Forest."));
    assert_eq!(danube.metadata["year"], 2021);
    assert_eq!((danube.owner.as_str(), danube.access.as_str(), danube.expires_at), ("", "", None));
    assert_eq!(danube.dated, danube.added_at);
    let stats = snapshot.stats().expect("stats");
    assert_eq!((stats.documents, stats.sources), (8, 9));
    assert!(snapshot.document_by_source("i3").expect("read").is_none());
    let found = snapshot.dense(&embed("A parcel costs five euro"), 1).expect("found");
    assert!(found[0].score > 0.999);
    assert_eq!(snapshot.passages(&[found[0].chunk]).expect("read")[0].source, "rates.txt");
    assert_eq!(snapshot.bm25("fridays", 3).expect("found").len(), 1);
    let trail = snapshot.audit(Some("board.txt"), 10).expect("read");
    let actions: Vec<&str> = trail.iter().map(|line| line.action.as_str()).collect();
    assert_eq!(actions, ["add", "remove", "unlink", "add"]);
    let findings = snapshot.verify().findings;
    assert!(findings.is_empty(), "{findings:?}");
}

#[test]
fn f12_the_first_format_is_brought_up_to_date_by_whoever_opens_it() {
    for by_a_writer in [false, true] {
        let folder = tempdir().expect("folder");
        let place = fixture(1, folder.path());
        if by_a_writer {
            drop(place.open_writer().expect("opens"));
        }
        holds_what_it_held(&place);
        let mut writer = writer(&place);
        add(&mut writer, &[document("new", "", "The pepper is new. ")]);
        writer.refresh_caches(&mut |_, _| ()).expect("built");
        drop(writer);
        assert!(place.snapshot().expect("opens").verify().findings.is_empty());
    }
}

#[test]
fn f12_an_older_format_that_cannot_be_written_is_refused_with_the_remedy() {
    let folder = tempdir().expect("folder");
    let place = fixture(1, folder.path());
    let writer = crate::support::writer(&KnowledgeBase::at(folder.path().join("other")));
    drop(writer);
    // Another program of the earlier version is at work on it.
    let lock = fs::File::create(folder.path().join("writer.lock")).expect("made");
    lock.try_lock().expect("free");
    let refused = place.snapshot().expect_err("refused");
    assert!(matches!(refused, StoreError::Locked { .. }), "{refused}");
}
