//! Transactions, isolation, and the single writer.

use anchorite_store::{KnowledgeBase, StoreError};
use tempfile::tempdir;

use crate::support::{DIM, add, cut, delete, document, eager, embed, invented, model, snapshot, writer};

#[test]
fn f08_a_second_writer_is_refused_at_once_and_readers_go_on() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path());
    let mut first = writer(&place);
    add(&mut first, &[document("a", "", "Copper.")]);
    let Err(StoreError::Locked { holder, .. }) = place.create_or_open_writer(&model(), DIM) else {
        panic!("two writers")
    };
    assert!(holder.contains(&std::process::id().to_string()), "{holder}");
    assert!(matches!(place.open_writer(), Err(StoreError::Locked { .. })));
    assert_eq!(place.snapshot().expect("reader").bm25("copper", 1).expect("found").len(), 1);
    drop(first);
    place.open_writer().expect("free again");
}

#[test]
fn a_reader_keeps_its_generation_while_a_writer_commits() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path()).with_settings(eager());
    let mut writer = writer(&place);
    add(&mut writer, &[document("a", "", "The old castle."), document("b", "", "A garden.")]);
    writer.refresh_caches(&mut |_, _| {}).expect("refreshed");
    // One reader looks before the change, the other only afterwards.
    let (early, late) = (snapshot(folder.path()), snapshot(folder.path()));
    let before = early.bm25("castle", 5).expect("found");
    add(&mut writer, &[document("a", "", "The new castle."), document("c", "", "A castle on the river.")]);
    delete(&mut writer, "b");
    writer.refresh_caches(&mut |_, _| {}).expect("refreshed");
    for reader in [&early, &late] {
        assert_eq!(reader.generation().id, 1);
        assert_eq!(reader.bm25("castle", 5).expect("found"), before);
        assert_eq!(reader.dense(&embed("castle garden"), 9).expect("found").len(), 2);
        assert!(reader.document_by_source("b").expect("read").is_some());
        assert!(reader.document_by_source("c").expect("read").is_none());
        assert_eq!(reader.passages(&[before[0].chunk]).expect("read")[0].text, "The old castle.");
    }
    let now = snapshot(folder.path());
    assert_eq!(now.generation().id, 3);
    assert_eq!(now.bm25("castle", 5).expect("found").len(), 2);
    let history: Vec<i64> = now.history(2).expect("history").iter().map(|generation| generation.id).collect();
    assert_eq!(history, [3, 2]);
}

#[test]
fn f01_a_batch_that_is_dropped_leaves_nothing() {
    let folder = tempdir().expect("folder");
    let mut writer = writer(&KnowledgeBase::at(folder.path()));
    add(&mut writer, &[document("a", "", "Winter.")]);
    {
        let mut batch = writer.begin("abandoned").expect("begun");
        let other = document("b", "", "Summer.");
        batch.add(&other, &cut(&other)).expect("added");
        batch.delete_source("a").expect("deleted");
        let seen = snapshot(folder.path());
        assert!(seen.document_by_source("b").expect("read").is_none(), "an open batch is visible to nobody");
    }
    let snapshot = snapshot(folder.path());
    assert_eq!(snapshot.generation().id, 1);
    assert_eq!(snapshot.stats().expect("stats").documents, 1);
    assert_eq!(snapshot.bm25("winter", 5).expect("found").len(), 1);
    assert_eq!(snapshot.audit(None, 9).expect("trail").len(), 1);
    assert_eq!(writer.generation().expect("read").id, 1);
}

#[test]
fn what_was_committed_is_found_without_a_refresh() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path()).with_settings(eager());
    let mut writer = writer(&place);
    let many: Vec<_> = (0..20).map(|i| invented(&format!("d{i}"), i, 20)).collect();
    add(&mut writer, &many);
    writer.refresh_caches(&mut |_, _| {}).expect("refreshed");
    // As if the process ended between the commit and the refresh.
    add(&mut writer, &[document("new", "", "A zeppelin lands at dawn.")]);
    drop(writer);
    let snapshot = snapshot(folder.path());
    let stats = snapshot.stats().expect("stats");
    assert_eq!(stats.caches.iter().map(|cache| cache.newer).collect::<Vec<_>>(), [1, 1]);
    let hits = snapshot.bm25("zeppelin", 5).expect("found");
    assert_eq!(snapshot.passages(&[hits[0].chunk]).expect("read")[0].source, "new");
    let hits = snapshot.dense(&embed("A zeppelin lands at dawn."), 1).expect("found");
    assert_eq!(snapshot.passages(&[hits[0].chunk]).expect("read")[0].source, "new");
}

#[test]
fn a_snapshot_is_shared_between_threads() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path()).with_settings(eager());
    let mut writer = writer(&place);
    let many: Vec<_> = (0..20).map(|i| invented(&format!("d{i}"), i, 20)).collect();
    add(&mut writer, &many);
    writer.refresh_caches(&mut |_, _| {}).expect("refreshed");
    let snapshot = snapshot(folder.path());
    let expected = (snapshot.dense(&embed("river bread"), 5), snapshot.bm25("river bread", 5));
    let expected = (expected.0.expect("found"), expected.1.expect("found"));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert_eq!(snapshot.dense(&embed("river bread"), 5).expect("found"), expected.0);
                    assert_eq!(snapshot.bm25("river bread", 5).expect("found"), expected.1);
                }
            });
        }
    });
}
