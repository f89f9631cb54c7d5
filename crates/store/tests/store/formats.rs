//! Knowledge bases of every format there ever was, as their programs left them in `tests/fixtures/`.

use std::fs;
use std::path::{Path, PathBuf};

use anchorite_core::{Landmark, LandmarkKind};
use anchorite_store::{Custody, Expiry, KnowledgeBase, StoreError};
use tempfile::tempdir;

use crate::support::{add, document, eager, embed, writer};

fn fixture(format: i64, folder: &Path) -> KnowledgeBase {
    let file: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "tests", "fixtures", &format!("format-{format}.db")].iter().collect();
    fs::copy(file, folder.join("anchorite.db")).expect("copied");
    KnowledgeBase::at(folder).with_settings(eager())
}

/// What the first format's fixture holds.
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

/// Writes the fixture of the present format: `ANCHORITE_STORE_FIXTURE=FILE cargo nextest run -p anchorite-store --run-ignored
/// only writes_a_fixture`. To be done once, before the format changes; the file then stays as it is.
#[test]
#[ignore = "run by hand, when the format is about to change"]
fn writes_a_fixture() {
    let file = std::env::var_os("ANCHORITE_STORE_FIXTURE").expect("where to write it");
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path());
    let mut open = writer(&place).by("ann");
    let mut danube =
        document("notes/danube.txt", "The Danube", "The river rises in the Black Forest. It passes four capitals. ");
    danube.metadata.insert("year".into(), 2021.into());
    danube.outline = vec![Landmark { at: 0, kind: LandmarkKind::Page(1) }];
    add(
        &mut open,
        &[danube, document("board.txt", "Board", "The board meets on Mondays. "), document("gone.txt", "", "Erased. ")],
    );
    let mut batch = open.begin("owned").expect("begun");
    batch.keep_as(Custody {
        owner: Some("ann".into()),
        access: Some("crew".into()),
        dated: Some(86_400_000),
        expiry: Some(Expiry::At(i64::MAX)),
    });
    let rota = document("rota.txt", "Rota", "Olaf steers on Fridays. ");
    batch.add(&rota, &crate::support::cut(&rota)).expect("added");
    batch.commit().expect("committed");
    add(&mut open, &[document("board.txt", "Board", "The board meets on Fridays. It votes at noon. ")]);
    crate::support::delete(&mut open, "gone.txt");
    drop(open);
    fs::copy(folder.path().join("anchorite.db"), file).expect("written");
}

/// The third differs from the second in what is recorded of the caches, which are built anew.
#[test]
fn f12_the_second_and_the_third_format_hold_what_they_held() {
    for format in [2, 3] {
        let folder = tempdir().expect("folder");
        holds_an_owned_source(&fixture(format, folder.path()));
    }
}

fn holds_an_owned_source(place: &KnowledgeBase) {
    let snapshot = place.snapshot().expect("opens");
    assert_eq!(snapshot.generation().id, 4);
    let danube = snapshot.document_by_source("notes/danube.txt").expect("read").expect("there");
    assert_eq!((danube.metadata["year"].as_i64(), danube.outline.len()), (Some(2021), 1));
    let rota = &snapshot.sources(0, 10).expect("listed")[2];
    assert_eq!((rota.owner.as_str(), rota.access.as_str(), rota.dated), ("ann", "crew", 86_400_000));
    assert_eq!(rota.expires_at, Some(i64::MAX));
    assert_eq!(snapshot.audit(Some("gone.txt"), 1).expect("read")[0].action.as_str(), "erase");
    assert_eq!(snapshot.stats().expect("stats").former_documents, 1);
    let findings = snapshot.verify().findings;
    assert!(findings.is_empty(), "{findings:?}");
    drop(snapshot);
    let mut open = place.open_writer().expect("opens");
    let mut batch = open.begin("back").expect("begun");
    assert_eq!(batch.roll_back_to(1, true).expect("goes back").erased, ["gone.txt"]);
    batch.commit().expect("committed");
    let text = place.snapshot().expect("opens").document_by_source("board.txt").expect("read").expect("there").text;
    assert_eq!(text, "The board meets on Mondays. ");
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
