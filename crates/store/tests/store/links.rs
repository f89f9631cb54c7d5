//! Documents that name each other by title.

use anchorite_store::KnowledgeBase;
use tempfile::tempdir;

use crate::support::{add, delete, document, snapshot, writer};

#[test]
fn m28_links_lead_to_what_a_text_names_and_never_to_what_is_gone() {
    let folder = tempdir().expect("folder");
    let mut writer = writer(&KnowledgeBase::at(folder.path()));
    let documents = [
        document("quay", "The Old Quay", "The Old Quay was built by Mirela Stone for the town of Harwich."),
        document("stone", "Mirela Stone (builder)", "She sang in a choir."),
        document("harwich", "Harwich", "A town by the sea. It has two piers."),
        // A title that many documents share is the name of a collection.
        document("log-1", "Ship's log", "One."),
        document("log-2", "Ship's log", "Two."),
        document("log-3", "Ship's log", "Three."),
    ];
    add(&mut writer, &documents);
    let text = "The Old Quay was built by Mirela Stone for the town of Harwich; see the Ship's log.";
    let before = snapshot(folder.path());
    let linked = |snapshot: &anchorite_store::Snapshot| -> Vec<String> {
        let links = snapshot.links(text).expect("links");
        let chunks: Vec<i64> = links.iter().map(|link| link.chunk).collect();
        let passages = snapshot.passages(&chunks).expect("passages");
        assert!(links.iter().zip(&passages).all(|(link, passage)| link.document == passage.document));
        assert!(passages.iter().all(|passage| passage.start == 0), "a link leads to the beginning");
        passages.into_iter().map(|passage| passage.source).collect()
    };
    assert_eq!(linked(&before), ["quay", "stone", "harwich"]);
    let quoted: Vec<&str> = before.links(text).expect("links").into_iter().map(|link| &text[link.span]).collect();
    assert_eq!(quoted, ["The Old Quay", "Mirela Stone", "Harwich"]);
    delete(&mut writer, "stone");
    assert_eq!(linked(&before), ["quay", "stone", "harwich"], "a reader keeps the generation that it opened");
    assert_eq!(linked(&snapshot(folder.path())), ["quay", "harwich"]);
}
