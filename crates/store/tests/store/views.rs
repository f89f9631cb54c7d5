//! Who sees what: owners, labels, terms and conditions, inside every kind of search and in every list.

use std::collections::BTreeSet;

use anchorite_core::Document;
use anchorite_store::{Custody, Expiry, Filter, KnowledgeBase, Mode, PRIVATE, Snapshot, StoreError, Viewer};
use serde_json::json;
use tempfile::tempdir;

use crate::support::{cut, document, eager, embed, invented, snapshot, writer};

fn person(name: &str, labels: &[&str]) -> Viewer {
    Viewer::Person { name: name.into(), labels: labels.iter().map(|&label| label.into()).collect() }
}

fn owned(owner: &str, access: Option<&str>) -> Custody {
    Custody { owner: Some(owner.into()), access: access.map(str::to_owned), ..Custody::default() }
}

fn add_as(place: &KnowledgeBase, custody: Custody, documents: &[Document]) {
    let mut writer = writer(place);
    let mut batch = writer.begin("test").expect("begun");
    batch.keep_as(custody);
    for document in documents {
        let chunks = if batch.classify(document).expect("classified").needs_chunks() { cut(document) } else { vec![] };
        batch.add(document, &chunks).expect("added");
    }
    batch.commit().expect("committed");
    writer.refresh_caches(&mut |_, _| ()).expect("caches");
}

/// Everything that a view shows, by every way there is to it.
fn shown(snapshot: &Snapshot, words: &str) -> BTreeSet<String> {
    let query = embed(words);
    let mut names = BTreeSet::new();
    for mode in [Mode::Dense, Mode::Bm25, Mode::Hybrid] {
        let found = snapshot.search(words, Some(&query), mode, 1000, 1000).expect("found");
        names.extend(found.into_iter().map(|passage| passage.source));
    }
    for hit in snapshot.dense_exact(&query, 1000).expect("found") {
        names.extend(snapshot.passages(&[hit.chunk]).expect("read").into_iter().map(|passage| passage.source));
    }
    let listed: BTreeSet<String> =
        snapshot.documents(0, 1000).expect("listed").into_iter().map(|summary| summary.source).collect();
    for id in 1..60 {
        if let Some(document) = snapshot.document(id).expect("read") {
            names.insert(document.source);
            names.extend(document.aliases);
        }
        names.extend(snapshot.chunks_of(id).expect("read").into_iter().map(|passage| passage.source));
    }
    assert!(listed.is_subset(&names), "{listed:?} {names:?}");
    names.extend(snapshot.sources(0, 1000).expect("listed").into_iter().map(|summary| summary.source));
    names
}

#[test]
fn m37_a_document_is_seen_by_its_owner_and_by_those_with_its_label_alone() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path()).with_settings(eager());
    add_as(&place, Custody::default(), &[document("everyone", "", "The anchor is iron. ")]);
    add_as(&place, owned("ann", None), &[document("ann's", "", "The anchor is gold. ")]);
    add_as(&place, owned("ann", Some("crew")), &[document("crew's", "", "The anchor is brass. ")]);
    add_as(&place, owned("bob", Some(PRIVATE)), &[document("bob's", "", "The anchor is tin. ")]);
    let all = snapshot(folder.path());
    let seen = |viewer: Viewer| shown(&all.seen_by(viewer), "the anchor is gold").into_iter().collect::<Vec<_>>();
    assert_eq!(seen(Viewer::Holder), ["ann's", "bob's", "crew's", "everyone"]);
    assert_eq!(seen(person("ann", &[])), ["ann's", "crew's", "everyone"]);
    assert_eq!(seen(person("bob", &["crew"])), ["bob's", "crew's", "everyone"]);
    assert_eq!(seen(person("", &[PRIVATE])), ["everyone"], "nobody holds the label private");
    let stranger = all.seen_by(person("eve", &[]));
    assert!(stranger.document_by_source("ann's").expect("read").is_none());
    assert!(stranger.audit(None, 100).expect("read").iter().all(|line| line.source == "everyone"));
    assert!(stranger.diff(0, 4).expect("read").iter().all(|change| change.source == "everyone"));
    assert_eq!(stranger.stats().expect("stats").documents, 1);
}

#[test]
fn m37_the_same_text_of_two_owners_is_shown_to_each_under_their_own_name() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path()).with_settings(eager());
    let text = "The treasure lies under the old oak. ";
    add_as(&place, owned("ann", None), &[document("ann/map.txt", "", text)]);
    add_as(&place, owned("bob", None), &[document("bob/copy.txt", "", text)]);
    let all = snapshot(folder.path());
    assert_eq!(all.stats().expect("stats").documents, 1);
    for (name, source) in [("ann", "ann/map.txt"), ("bob", "bob/copy.txt")] {
        let view = all.seen_by(person(name, &[]));
        assert_eq!(shown(&view, "treasure"), BTreeSet::from([source.to_owned()]), "{name}");
    }
    assert!(shown(&all.seen_by(person("eve", &[])), "treasure").is_empty());
}

#[test]
fn m37_what_has_expired_is_not_found_and_is_erased_by_the_next_writer() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path()).with_settings(eager());
    let until = |moment| Custody { expiry: Some(Expiry::At(moment)), ..Custody::default() };
    add_as(&place, until(1_000), &[document("old", "", "The swordfish password. ")]);
    add_as(&place, until(i64::MAX), &[document("new", "", "The swordfish recipe. ")]);
    assert_eq!(shown(&snapshot(folder.path()), "swordfish"), BTreeSet::from(["new".to_owned()]));
    let mut writer = writer(&place);
    let mut batch = writer.begin("expire").expect("begun");
    assert_eq!(batch.remove_expired().expect("removed").sources, 1);
    batch.commit().expect("committed");
    let left = snapshot(folder.path());
    assert_eq!(left.stats().expect("stats").sources, 1);
    assert_eq!(left.stats().expect("stats").former_documents, 0);
    let actions: Vec<&str> =
        left.audit(Some("old"), 10).expect("read").iter().map(|line| line.action.as_str()).collect();
    assert_eq!(actions, ["erase", "remove", "expire", "add"]);
}

#[test]
fn m37_a_view_forgets_what_expires_while_it_is_open() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path());
    let soon = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_millis();
    let expiry = Some(Expiry::At(i64::try_from(soon).expect("fits") + 700));
    add_as(&place, Custody { expiry, ..Custody::default() }, &[document("brief", "", "The lantern. ")]);
    let open = snapshot(folder.path());
    assert_eq!(open.bm25("lantern", 5).expect("found").len(), 1);
    std::thread::sleep(std::time::Duration::from_millis(900));
    assert!(open.bm25("lantern", 5).expect("found").is_empty());
    assert!(open.dense(&embed("lantern"), 5).expect("found").is_empty());
}

#[test]
fn m36_conditions_on_metadata_and_on_what_is_known_of_a_source() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path()).with_settings(eager());
    let with = |source: &str, title: &str, metadata: serde_json::Value| {
        let mut document = document(source, title, &format!("The mirror {source} shines. "));
        document.metadata = serde_json::from_value(metadata).expect("an object");
        document
    };
    let documents = [
        with("a.md", "Apples", json!({ "year": 2019, "tags": ["fruit", "red"], "draft": false })),
        with("b.md", "Boats", json!({ "year": 2021, "tags": "sea", "by": { "name": "Ann" } })),
        with("c/d.md", "Castles", json!({ "year": "2021", "draft": true, "odd key": 1 })),
        with("e.md", "50% off", json!({})),
    ];
    let dated = anchorite_core::days::milliseconds("2020-05-05");
    add_as(&place, Custody { dated, ..Custody::default() }, &documents);
    let all = snapshot(folder.path());
    let seen = |condition: &str| {
        let filter: Filter = condition.parse().expect(condition);
        shown(&all.filtered(filter), "mirror").into_iter().collect::<Vec<_>>().join(" ")
    };
    for (condition, expected) in [
        ("year >= 2020", "b.md"),
        ("year = \"2021\"", "c/d.md"),
        ("year != 2019", "b.md"),
        ("tags = fruit", "a.md"),
        ("tags = sea", "b.md"),
        ("tags != fruit", "a.md b.md"),
        ("not tags = fruit", "b.md c/d.md e.md"),
        ("draft = true", "c/d.md"),
        ("draft = false", "a.md"),
        ("has draft", "a.md c/d.md"),
        ("not has year", "e.md"),
        ("by.name = Ann", "b.md"),
        ("by.name ~ a*", "b.md"),
        ("\"odd key\" = 1", "c/d.md"),
        ("source ~ c/*", "c/d.md"),
        ("source = e.md or title = Apples", "a.md e.md"),
        ("title ~ \"50%*\"", "e.md"),
        ("title ~ \"%\"", ""),
        ("dated < 2020-05-06 and dated >= 2020-05-05", "a.md b.md c/d.md e.md"),
        ("added < 2020-05-06", ""),
        ("owner = ann", ""),
        ("year = 2021 and tags = sea or source ~ a*", "a.md b.md"),
    ] {
        assert_eq!(seen(condition), expected, "{condition}");
    }
}

/// Conditions inside the search: as many results as there are, whatever share of all is admitted, and the right ones.
#[test]
fn m36_a_filter_never_costs_results() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path()).with_settings(eager());
    let documents: Vec<Document> = (0..3000)
        .map(|n| {
            let mut document = invented(&format!("n{n}"), n, 1);
            document.metadata.insert("n".into(), json!(n));
            document
        })
        .collect();
    add_as(&place, Custody::default(), &documents);
    let all = snapshot(folder.path());
    for (condition, share) in [("n >= 1500", 1500), ("n < 150", 150), ("n < 15", 15), ("n = 7", 1)] {
        let view = all.filtered(condition.parse().expect("reads"));
        let (mut hits, mut wanted) = (0, 0);
        for at in 0..20 {
            let query = embed(&format!("{} {} {}", crate::support::word(at), crate::support::word(at * 5 + 1), at));
            let found = view.dense(&query, 10).expect("found");
            let exact = view.dense_exact(&query, 10).expect("found");
            assert_eq!(found.len(), share.min(10), "{condition}");
            assert_eq!(view.dense_exact_all(&[&query, &query], 10).expect("found"), [exact.clone(), exact.clone()]);
            // Equal scores may stand for each other.
            let least = exact.last().map_or(0.0, |hit| hit.score);
            wanted += exact.len();
            hits += found.iter().filter(|hit| hit.score >= least).count();
            let words = view.bm25(crate::support::word(at), 3000).expect("found");
            let by_all = all.bm25(crate::support::word(at), 3000).expect("found");
            let admitted = |chunk: i64| view.passages(&[chunk]).expect("read").len();
            assert_eq!(words.len(), by_all.iter().map(|hit| admitted(hit.chunk)).sum::<usize>(), "{condition}");
        }
        assert!(hits * 100 >= wanted * 98, "{condition}: {hits} of {wanted}");
    }
}

#[test]
fn m37_owner_and_term_can_be_changed_and_are_told_in_the_audit_trail() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path());
    add_as(&place, Custody::default(), &[document("a", "", "The meadow. ")]);
    let mut open = writer(&place).by("ann");
    let mut batch = open.begin("describe").expect("begun");
    assert!(batch.describe_source("a", None, &owned("ann", Some("crew"))).expect("described"));
    assert!(!batch.describe_source("nobody", None, &Custody::default()).expect("looked up"));
    batch.commit().expect("committed");
    let now = snapshot(folder.path());
    let source = &now.sources(0, 1).expect("listed")[0];
    assert_eq!((source.owner.as_str(), source.access.as_str()), ("ann", "crew"));
    let newest = &now.audit(None, 1).expect("read")[0];
    assert_eq!((newest.action.as_str(), newest.actor.as_str()), ("metadata", "ann"));
    // Ingesting it again without a word of owners leaves it as it is.
    drop(open);
    add_as(&place, Custody::default(), &[document("a", "", "The meadow. ")]);
    assert_eq!(snapshot(folder.path()).sources(0, 1).expect("listed")[0].owner, "ann");
    assert!(matches!(KnowledgeBase::at(folder.path().join("no")).snapshot(), Err(StoreError::Missing { .. })));
}
