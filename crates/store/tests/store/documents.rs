//! Adding, replacing, deleting, and what can be read back.

use anchorite_core::{Chunk, Document};
use anchorite_store::{Action, Deletion, KnowledgeBase, Known, Mode, Outcome, Removal, StoreError};
use serde_json::json;
use tempfile::tempdir;

use crate::support::{DIM, add, cut, delete, document, embed, model, snapshot, writer};

#[test]
fn m33_what_goes_in_comes_out() {
    let folder = tempdir().expect("folder");
    let mut writer = writer(&KnowledgeBase::at(folder.path()));
    let mut report = document("notes/übung.md", "Übung", "Ein Café in Köln öffnet früh. 日本語の文章。 The end 🌍.");
    report.metadata.insert("year".into(), json!(2024));
    let (outcomes, generation) = add(&mut writer, std::slice::from_ref(&report));
    assert_eq!(outcomes, [Outcome::Added]);
    assert_eq!((generation.id, generation.documents_added, generation.chunks_added), (1, 1, 2));

    let snapshot = snapshot(folder.path());
    let stored = snapshot.document_by_source("notes/übung.md").expect("read").expect("there");
    assert_eq!((&stored.title, &stored.text, &stored.metadata), (&report.title, &report.text, &report.metadata));
    assert_eq!(stored.hash, report.content_hash());
    assert_eq!((stored.generation, stored.aliases.len()), (1, 0));
    assert_eq!(snapshot.document(stored.id).expect("read").as_ref(), Some(&stored));
    let passages = snapshot.chunks_of(stored.id).expect("read");
    assert_eq!(passages.iter().map(|p| p.text.as_str()).collect::<String>(), report.text);
    for passage in &passages {
        assert_eq!(report.text[passage.start..passage.end], passage.text);
        assert_eq!((&*passage.source, &*passage.title, passage.document), ("notes/übung.md", "Übung", stored.id));
    }
    let summary = &snapshot.documents(0, 10).expect("list")[0];
    assert_eq!((summary.bytes, summary.chunks), (report.text.len() as u64, 2));
    let stats = snapshot.stats().expect("stats");
    assert_eq!((stats.documents, stats.sources, stats.chunks), (1, 1, 2));
    assert_eq!((stats.text_bytes, stats.dimensions, stats.embedder), (report.text.len() as u64, DIM, model()));
    assert!(snapshot.document_by_source("other").expect("read").is_none());
    assert!(snapshot.passages(&[999]).expect("read").is_empty());
}

#[test]
fn m33_the_same_again_adds_nothing_and_makes_no_generation() {
    let folder = tempdir().expect("folder");
    let mut writer = writer(&KnowledgeBase::at(folder.path()));
    let documents: Vec<Document> =
        (0..5).map(|i| document(&format!("d{i}"), "Title", &format!("Text number {i}."))).collect();
    let (_, first) = add(&mut writer, &documents);
    let (outcomes, second) = add(&mut writer, &documents);
    assert_eq!(outcomes, [Outcome::Unchanged; 5]);
    assert_eq!(first.id, second.id);
    assert_eq!(snapshot(folder.path()).history(10).expect("history").len(), 1);
}

#[test]
fn m33_equal_content_is_kept_once_and_found_once() {
    let folder = tempdir().expect("folder");
    let mut writer = writer(&KnowledgeBase::at(folder.path()));
    let texts = ["a", "b", "c"].map(|source| document(source, "Bread", "Bake the bread slowly."));
    let (outcomes, generation) = add(&mut writer, &texts);
    assert_eq!(outcomes, [Outcome::Added, Outcome::Duplicate, Outcome::Duplicate]);
    assert_eq!(generation.documents_added, 1);
    let snapshot = snapshot(folder.path());
    assert_eq!(snapshot.bm25("bread", 10).expect("found").len(), 1);
    assert_eq!(snapshot.dense(&embed("bread"), 10).expect("found").len(), 1);
    let stored = snapshot.document_by_source("c").expect("read").expect("there");
    assert_eq!((stored.source.as_str(), stored.aliases), ("a", vec!["b".to_owned(), "c".to_owned()]));
    // The title belongs to the content.
    let (outcomes, _) = add(&mut writer, &[document("d", "Other title", "Bake the bread slowly.")]);
    assert_eq!(outcomes, [Outcome::Added]);
}

#[test]
fn m34_a_source_with_new_content_replaces_its_old() {
    let folder = tempdir().expect("folder");
    let mut writer = writer(&KnowledgeBase::at(folder.path()));
    add(&mut writer, &[document("a", "", "The harbour opens at nine."), document("b", "", "Another text.")]);
    let changed = document("a", "", "The harbour opens at ten.");
    assert_eq!(writer.classify(&changed).expect("classified"), Known::Changed);
    let (outcomes, generation) = add(&mut writer, &[changed]);
    assert_eq!(outcomes, [Outcome::Replaced]);
    assert_eq!((generation.documents_added, generation.documents_removed), (1, 1));
    let snapshot = snapshot(folder.path());
    let texts: Vec<String> = (snapshot.search("harbour nine ten", None, Mode::Bm25, 10, 10).expect("found"))
        .into_iter()
        .map(|passage| passage.text)
        .collect();
    assert_eq!(texts, ["The harbour opens at ten."]);
    assert_eq!(snapshot.stats().expect("stats").documents, 2);
}

#[test]
fn m34_replacing_by_content_known_elsewhere_adds_no_second_copy() {
    let folder = tempdir().expect("folder");
    let mut writer = writer(&KnowledgeBase::at(folder.path()));
    add(&mut writer, &[document("a", "", "First."), document("b", "", "Second.")]);
    let changed = document("a", "", "Second.");
    assert_eq!(writer.classify(&changed).expect("classified"), Known::Duplicate);
    let (outcomes, _) = add(&mut writer, &[changed]);
    assert_eq!(outcomes, [Outcome::Replaced]);
    let snapshot = snapshot(folder.path());
    assert_eq!(snapshot.stats().expect("stats").documents, 1);
    assert!(snapshot.bm25("first", 5).expect("found").is_empty());
    assert_eq!(snapshot.document_by_source("a").expect("read").expect("there").source, "b");
}

#[test]
fn m34_a_document_lives_until_its_last_source_is_deleted() {
    let folder = tempdir().expect("folder");
    let mut writer = writer(&KnowledgeBase::at(folder.path()));
    add(&mut writer, &["a", "b"].map(|source| document(source, "", "A lantern. A candle.")));
    assert_eq!(delete(&mut writer, "a"), Deletion { sources: 1, documents: 0, chunks: 0 });
    assert_eq!(snapshot(folder.path()).document_by_source("b").expect("read").expect("there").source, "b");
    assert_eq!(snapshot(folder.path()).bm25("lantern", 5).expect("found").len(), 1);
    assert_eq!(delete(&mut writer, "b"), Deletion { sources: 1, documents: 1, chunks: 2 });
    assert_eq!(delete(&mut writer, "b"), Deletion::default());
    assert!(snapshot(folder.path()).bm25("lantern", 5).expect("found").is_empty());
    assert!(snapshot(folder.path()).dense(&embed("lantern"), 5).expect("found").is_empty());
}

#[test]
fn m34_deleting_a_document_forgets_all_its_sources() {
    let folder = tempdir().expect("folder");
    let mut writer = writer(&KnowledgeBase::at(folder.path()));
    add(&mut writer, &["a", "b"].map(|source| document(source, "", "A lantern.")));
    let id = snapshot(folder.path()).document_by_source("a").expect("read").expect("there").id;
    let mut batch = writer.begin("delete").expect("begun");
    assert_eq!(
        batch.delete_document(id, Removal::Erase).expect("deleted"),
        Deletion { sources: 2, documents: 1, chunks: 1 }
    );
    batch.commit().expect("committed");
    assert!(snapshot(folder.path()).document_by_source("b").expect("read").is_none());
}

#[test]
fn m34_metadata_of_each_source_is_kept_and_updated_without_new_vectors() {
    let folder = tempdir().expect("folder");
    let mut writer = writer(&KnowledgeBase::at(folder.path()));
    let with_year = |source: &str, year: i32| {
        let mut document = document(source, "", "A meadow.");
        document.metadata.insert("year".into(), json!(year));
        document
    };
    add(&mut writer, &[with_year("a", 1), with_year("b", 2)]);
    let (outcomes, _) = add(&mut writer, &[with_year("a", 1), with_year("b", 2)]);
    assert_eq!(outcomes, [Outcome::Unchanged, Outcome::Unchanged], "two sources of one content don't fight");
    let (outcomes, _) = add(&mut writer, &[with_year("a", 3)]);
    assert_eq!(outcomes, [Outcome::MetadataUpdated]);
    let year =
        || snapshot(folder.path()).document_by_source("a").expect("read").expect("there").metadata["year"].clone();
    assert_eq!(year(), json!(3));
    delete(&mut writer, "a");
    let stored = snapshot(folder.path()).document_by_source("b").expect("read").expect("there");
    assert_eq!(stored.metadata["year"], json!(2));
}

#[test]
fn f33_identifiers_are_never_used_again() {
    let folder = tempdir().expect("folder");
    let place = KnowledgeBase::at(folder.path());
    let mut seen = std::collections::HashSet::new();
    for round in 0..6 {
        let mut writer = writer(&place);
        // The same text again and again: what was deleted comes back as something new.
        add(&mut writer, &[document("a", "", "A mirror. A planet.")]);
        let snapshot = snapshot(folder.path());
        let id = snapshot.document_by_source("a").expect("read").expect("there").id;
        assert!(seen.insert(("document", id)), "round {round}");
        for passage in snapshot.chunks_of(id).expect("read") {
            assert!(seen.insert(("chunk", passage.chunk)), "round {round}");
        }
        delete(&mut writer, "a");
    }
}

#[test]
fn chunks_that_do_not_fit_are_refused_and_nothing_is_kept() {
    let folder = tempdir().expect("folder");
    let mut writer = writer(&KnowledgeBase::at(folder.path()));
    let text = document("a", "", "Grüße aus Köln");
    let chunk = |start, end, text: &str| [(Chunk { ordinal: 0, start, end, text: text.into() }, embed("x"))];
    let mut batch = writer.begin("test").expect("begun");
    for wrong in [chunk(0, 3, "Gr"), chunk(0, 99, "Grüße"), chunk(0, 2, "Xx"), chunk(4, 2, "")] {
        assert!(matches!(batch.add(&text, &wrong), Err(StoreError::InvalidChunk { .. })));
    }
    assert!(matches!(batch.add(&text, &[]), Err(StoreError::NoChunks { .. })));
    let short = anchorite_core::Embedding::new(vec![1.0; DIM - 1]).expect("finite");
    let wrong = [(chunk(0, 2, "Gr")[0].0.clone(), short.clone())];
    assert!(matches!(batch.add(&text, &wrong), Err(StoreError::DimensionMismatch { given, .. }) if given == DIM - 1));
    batch.commit().expect("nothing to commit");
    let snapshot = snapshot(folder.path());
    assert_eq!((snapshot.generation().id, snapshot.stats().expect("stats").documents), (0, 0));
    assert!(matches!(snapshot.dense(&short, 3), Err(StoreError::DimensionMismatch { .. })));
}

#[test]
fn a_document_without_text_is_remembered_and_never_found() {
    let folder = tempdir().expect("folder");
    let mut writer = writer(&KnowledgeBase::at(folder.path()));
    let empty = document("empty.txt", "", "  \n");
    assert_eq!(writer.begin("x").expect("begun").add(&empty, &[]).expect("added"), Outcome::Added);
    let mut batch = writer.begin("x").expect("begun");
    batch.add(&empty, &[]).expect("added");
    batch.commit().expect("committed");
    assert_eq!(writer.classify(&empty).expect("classified"), Known::Unchanged);
    let snapshot = snapshot(folder.path());
    assert!(snapshot.dense(&embed("x"), 5).expect("found").is_empty());
    assert!(snapshot.bm25("x", 5).expect("found").is_empty());
}

#[test]
fn m35_every_change_leaves_a_line_in_the_audit_trail() {
    let folder = tempdir().expect("folder");
    let mut writer = writer(&KnowledgeBase::at(folder.path()));
    add(&mut writer, &[document("a", "", "One."), document("b", "", "One.")]);
    add(&mut writer, &[document("a", "", "Two.")]);
    delete(&mut writer, "b");
    let trail = snapshot(folder.path()).audit(None, 100).expect("trail");
    let lines: Vec<(Action, &str, i64)> =
        trail.iter().rev().map(|entry| (entry.action, entry.source.as_str(), entry.generation)).collect();
    assert_eq!(
        lines,
        [
            (Action::Add, "a", 1),
            (Action::Alias, "b", 1),
            (Action::Unlink, "a", 2),
            (Action::Add, "a", 2),
            (Action::Unlink, "b", 3),
            (Action::Remove, "b", 3),
            (Action::Erase, "b", 3),
        ]
    );
    assert_eq!(trail.last().expect("first").hash, document("x", "", "One.").content_hash());
    assert_eq!(snapshot(folder.path()).audit(Some("b"), 1).expect("trail")[0].action, Action::Erase);
}

#[test]
fn m32_hybrid_shows_both_ranks_and_scores() {
    let folder = tempdir().expect("folder");
    let mut writer = writer(&KnowledgeBase::at(folder.path()));
    let texts = ["The violin is old.", "A window.", "Violin and saddle.", "Thunder over the market."];
    let documents: Vec<Document> =
        texts.iter().enumerate().map(|(i, text)| document(&format!("{i}"), "", text)).collect();
    add(&mut writer, &documents);
    let snapshot = snapshot(folder.path());
    let query = embed("violin saddle");
    let hybrid = snapshot.search("violin saddle", Some(&query), Mode::Hybrid, 3, 50).expect("found");
    assert_eq!(hybrid.len(), 3);
    assert_eq!(hybrid[0].text, "Violin and saddle.");
    let scores = hybrid[0].scores;
    assert_eq!((scores.bm25_rank, scores.dense_rank, scores.fused_rank), (Some(1), Some(1), Some(1)));
    assert_eq!(scores.fused, Some(1.0), "the best of both");
    assert_eq!(scores.dense, Some(snapshot.dense(&query, 1).expect("found")[0].score));
    assert_eq!(scores.bm25, Some(snapshot.bm25("violin saddle", 1).expect("found")[0].score));
    let dense = snapshot.search("violin", Some(&query), Mode::Dense, 2, 50).expect("found");
    assert!(dense.iter().all(|p| p.scores.bm25.is_none() && p.scores.fused.is_none() && p.scores.dense.is_some()));
    assert!(matches!(
        snapshot.search("violin", None, Mode::Hybrid, 2, 50),
        Err(StoreError::MissingEmbedding { mode: "hybrid" })
    ));
    let wordless = snapshot.search("  ?!", Some(&query), Mode::Hybrid, 4, 50).expect("found");
    assert_eq!(wordless.len(), 4, "without words the meaning alone decides");
    assert!(snapshot.search("violin", Some(&query), Mode::Hybrid, 0, 0).expect("found").is_empty());
}

#[test]
fn a_passage_of_a_long_document_is_read_alone() {
    let folder = tempdir().expect("folder");
    let mut writer = writer(&KnowledgeBase::at(folder.path()));
    let long = document("long", "", &(0..20_000).map(|i| format!("Sentence {i} é. ")).collect::<String>());
    let chunks = cut(&long);
    let mut batch = writer.begin("long").expect("begun");
    batch.add(&long, &[chunks[0].clone(), chunks[19_999].clone()]).expect("added");
    batch.commit().expect("committed");
    let passages = snapshot(folder.path()).chunks_of(1).expect("read");
    assert_eq!(passages[1].text, "Sentence 19999 é. ");
}
