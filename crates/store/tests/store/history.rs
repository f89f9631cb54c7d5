//! Going back: what is different between generations, and making a former one the newest.

use std::collections::BTreeMap;

use anchorite_core::Document;
use anchorite_store::{ChangeKind, KnowledgeBase, Removal, Snapshot, StoreError, Writer};
use proptest::prelude::*;
use tempfile::tempdir;

use crate::support::{add, cut, delete, document, eager, embed, invented, snapshot, writer};

fn roll_back(writer: &mut Writer, generation: i64, without: bool) -> Result<anchorite_store::Rollback, StoreError> {
    let mut batch = writer.begin("roll back").expect("begun");
    let rollback = batch.roll_back_to(generation, without)?;
    batch.commit().expect("committed");
    Ok(rollback)
}

fn kinds(snapshot: &Snapshot, from: i64, to: i64) -> Vec<(String, ChangeKind)> {
    snapshot.diff(from, to).expect("compared").into_iter().map(|change| (change.source, change.kind)).collect()
}

#[test]
fn m38_a_rollback_brings_back_texts_metadata_and_vectors_as_a_new_generation() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path()).with_settings(eager());
    let mut open = writer(&place);
    let mut first = document("plan", "Plan", "The castle is built of stone. It has two towers. ");
    first.metadata.insert("state".into(), "draft".into());
    add(&mut open, &[first.clone(), document("stays", "", "The river runs. ")]);
    let second = document("plan", "Plan", "The castle is built of wood. ");
    add(&mut open, &[second, document("new", "", "The harbour is deep. ")]);
    open.refresh_caches(&mut |_, _| ()).expect("caches");
    let before = snapshot(folder.path());
    assert_eq!(
        kinds(&before, 1, 2),
        [("new".to_owned(), ChangeKind::Added), ("plan".to_owned(), ChangeKind::Replaced)]
    );
    assert_eq!(kinds(&before, 2, 1)[0], ("new".to_owned(), ChangeKind::Removed));
    assert_eq!(before.bm25("stone", 5).expect("found").len(), 0, "what was is not found");

    let done = roll_back(&mut open, 1, false).expect("rolled back");
    assert_eq!((done.generation, done.added, done.removed, done.replaced), (3, 0, 1, 1));
    let after = snapshot(folder.path());
    assert!(kinds(&after, 1, 3).is_empty(), "{:?}", after.diff(1, 3));
    let plan = after.document_by_source("plan").expect("read").expect("there");
    assert_eq!((plan.text.as_str(), plan.metadata["state"].as_str()), (first.text.as_str(), Some("draft")));
    let found = after.search("", Some(&embed("castle built of stone")), anchorite_store::Mode::Dense, 1, 0);
    assert_eq!(found.expect("found")[0].text, cut(&first)[0].0.text);
    assert!(after.verify().findings.is_empty(), "{:?}", after.verify());
    // And forward again.
    roll_back(&mut open, 2, false).expect("rolled back");
    let forward = snapshot(folder.path());
    assert!(kinds(&forward, 2, 4).is_empty());
    assert_eq!(forward.bm25("harbour", 5).expect("found").len(), 1);
}

#[test]
fn m38_what_was_deleted_does_not_come_back() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path()).with_settings(eager());
    let mut open = writer(&place);
    add(&mut open, &[document("secret", "", "The swordfish opens the safe. "), document("other", "", "The bread. ")]);
    add(&mut open, &[document("secret", "", "The safe is moved. ")]);
    delete(&mut open, "secret");
    let refused = roll_back(&mut open, 1, false).expect_err("refused");
    assert!(matches!(&refused, StoreError::Erased { erased, .. } if *erased == ["secret"]), "{refused}");
    assert_eq!(snapshot(folder.path()).generation().id, 3, "nothing was changed");
    let done = roll_back(&mut open, 1, true).expect("rolled back");
    assert_eq!(done.erased, ["secret"]);
    assert!(snapshot(folder.path()).document_by_source("secret").expect("read").is_none());
    drop(open);
    let bytes = std::fs::read(folder.path().join("anchorite.db")).expect("read");
    assert!(!bytes.windows(9).any(|window| window == b"swordfish"), "an erased text is in the file");
}

#[test]
fn m38_what_was_removed_restorably_comes_back_until_compaction() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path()).with_settings(eager());
    let mut open = writer(&place);
    add(&mut open, &[document("kept", "", "The copper kettle. "), document("gone", "", "The velvet swordfish. ")]);
    open.refresh_caches(&mut |_, _| ()).expect("caches");
    let mut batch = open.begin("remove").expect("begun");
    batch.remove_source("gone", Removal::Restorable).expect("removed");
    batch.commit().expect("committed");
    assert_eq!(snapshot(folder.path()).stats().expect("stats").former_documents, 1);
    roll_back(&mut open, 1, false).expect("rolled back");
    assert_eq!(snapshot(folder.path()).bm25("swordfish", 5).expect("found").len(), 1);
    let mut batch = open.begin("remove").expect("begun");
    batch.remove_source("gone", Removal::Restorable).expect("removed");
    batch.commit().expect("committed");

    let compaction = open.compact(None, &mut |_, _| ()).expect("compacted");
    assert_eq!(compaction.documents, 1);
    let refused = roll_back(&mut open, 1, false).expect_err("refused");
    assert!(matches!(refused, StoreError::Compacted { begins, .. } if begins == compaction.history_begins));
    assert!(roll_back(&mut open, 999, false).is_err());
    drop(open);
    let seen = snapshot(folder.path());
    assert_eq!(seen.stats().expect("stats").former_documents, 0);
    assert!(seen.verify().findings.is_empty());
    for_each_file(folder.path(), &mut |path, bytes| {
        let holds = |word: &[u8]| bytes.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word));
        assert!(!holds(b"swordfish") && !holds(b"velvet"), "{} still holds it", path.display());
    });
}

fn for_each_file(folder: &std::path::Path, see: &mut dyn FnMut(&std::path::Path, &[u8])) {
    for entry in std::fs::read_dir(folder).expect("reads") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { for_each_file(&path, see) } else { see(&path, &std::fs::read(&path).expect("reads")) }
    }
}

#[test]
fn m38_a_removed_document_is_in_no_file_even_of_vectors_after_compaction() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path()).with_settings(eager());
    let mut open = writer(&place);
    let doomed = document("doomed", "", "Zanzibar holds the quartz lantern. ");
    let documents: Vec<Document> = (0..40).map(|seed| invented(&format!("s{seed}"), seed, 6)).collect();
    add(&mut open, &documents);
    add(&mut open, std::slice::from_ref(&doomed));
    open.refresh_caches(&mut |_, _| ()).expect("caches");
    delete(&mut open, "doomed");
    open.compact(None, &mut |_, _| ()).expect("compacted");
    drop(open);
    let vector: Vec<u8> = cut(&doomed)[0].1.as_slice().iter().flat_map(|x| x.to_le_bytes()).collect();
    for_each_file(folder.path(), &mut |path, bytes| {
        assert!(!bytes.windows(8).any(|window| window.eq_ignore_ascii_case(b"zanzibar")), "{}", path.display());
        assert!(!bytes.windows(vector.len()).any(|window| window == vector), "{}", path.display());
    });
    let ann = std::fs::read_dir(folder.path().join("ann")).expect("reads").count();
    assert_eq!(ann, 1, "the index was built again");
}

#[derive(Clone, Debug)]
enum Step {
    Add(u8, u8),
    Describe(u8, u8),
    Remove(u8),
    RollBack(u8),
    Refresh,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0u8..5, 0u8..6).prop_map(|(source, content)| Step::Add(source, content)),
        2 => (0u8..5, 0u8..3).prop_map(|(source, mark)| Step::Describe(source, mark)),
        2 => (0u8..5).prop_map(Step::Remove),
        2 => any::<u8>().prop_map(Step::RollBack),
        1 => Just(Step::Refresh),
    ]
}

type Model = BTreeMap<String, (String, Option<u8>)>;

fn content(source: u8, content: u8, mark: Option<u8>) -> Document {
    let mut document = invented(&format!("s{source}"), u64::from(content), 3);
    if let Some(mark) = mark {
        document.metadata.insert("mark".into(), mark.into());
    }
    document
}

fn state(snapshot: &Snapshot) -> Model {
    let sources = snapshot.sources(0, 100).expect("listed");
    let read = |source: String| {
        let stored = snapshot.document_by_source(&source).expect("read").expect("there");
        let mark =
            snapshot.source_metadata(&source).expect("read").expect("there").get("mark").and_then(|m| m.as_u64());
        (source, (stored.text, mark.map(|mark| mark as u8)))
    };
    sources.into_iter().map(|summary| read(summary.source)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Any generation of any history can be gone back to, and is then what it was.
    #[test]
    fn m38_every_generation_comes_back_as_it_was(steps in prop::collection::vec(step(), 1..25)) {
        let folder = tempdir().expect("folder");
        let place = KnowledgeBase::at(folder.path()).with_settings(eager());
        let mut open = writer(&place);
        let mut generations: BTreeMap<i64, Model> = BTreeMap::from([(0, Model::new())]);
        for step in steps {
            let mut batch = open.begin("step").expect("begun");
            match step {
                Step::Add(source, seed) => {
                    let document = content(source, seed, None);
                    batch.add(&document, &cut(&document)).expect("added");
                }
                Step::Describe(source, mark) => {
                    let metadata = content(source, 0, Some(mark)).metadata;
                    batch.describe_source(&format!("s{source}"), Some(&metadata), &Default::default()).expect("told");
                }
                Step::Remove(source) => {
                    batch.remove_source(&format!("s{source}"), Removal::Restorable).expect("removed");
                }
                Step::RollBack(which) => {
                    let at = usize::from(which) % generations.len();
                    let (&generation, wanted) = generations.iter().nth(at).expect("one");
                    batch.roll_back_to(generation, false).expect("rolled back");
                    batch.commit().expect("committed");
                    let now = snapshot(folder.path());
                    prop_assert_eq!(&state(&now), wanted);
                    prop_assert!(now.diff(generation, now.generation().id).expect("compared").is_empty());
                    generations.insert(now.generation().id, state(&now));
                    continue;
                }
                Step::Refresh => {
                    drop(batch);
                    open.refresh_caches(&mut |_, _| ()).expect("refreshed");
                    continue;
                }
            }
            batch.commit().expect("committed");
            let now = snapshot(folder.path());
            generations.insert(now.generation().id, state(&now));
        }
        let findings = snapshot(folder.path()).verify().findings;
        prop_assert!(findings.is_empty(), "{findings:?}");
    }
}
