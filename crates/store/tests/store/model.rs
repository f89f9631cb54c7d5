//! Random histories against a simple model: a map from source to content.

use std::collections::BTreeMap;

use anchorite_core::Document;
use anchorite_store::{KnowledgeBase, Mode, Snapshot, Writer};
use proptest::prelude::*;
use tempfile::tempdir;

use crate::support::{add, cut, delete, eager, embed, invented, snapshot, word, writer};

const SENTENCES: usize = 25;

#[derive(Clone, Debug)]
enum Step {
    Add(Vec<(u8, u64)>),
    Delete(u8),
    Abandon(u8, u64),
    Refresh,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let pair = || (0u8..8, 0u64..10);
    prop_oneof![
        5 => prop::collection::vec(pair(), 1..4).prop_map(Step::Add),
        3 => (0u8..8).prop_map(Step::Delete),
        1 => pair().prop_map(|(source, content)| Step::Abandon(source, content)),
        3 => Just(Step::Refresh),
        1 => Just(Step::Reopen),
    ]
}

fn content(source: u8, content: u64) -> Document {
    invented(&format!("s{source}"), content, SENTENCES)
}

/// Chunks that must be there: one for each sentence of each different content.
fn expected(model: &BTreeMap<u8, u64>) -> Vec<String> {
    let mut contents: Vec<u64> = model.values().copied().collect();
    contents.sort_unstable();
    contents.dedup();
    contents.into_iter().flat_map(|seed| cut(&content(0, seed))).map(|(chunk, _)| chunk.text).collect()
}

fn check(snapshot: &Snapshot, model: &BTreeMap<u8, u64>, at: usize) -> Result<(), TestCaseError> {
    let stats = snapshot.stats().expect("stats");
    let mut live = expected(model);
    prop_assert_eq!((stats.sources, stats.chunks), (model.len() as u64, live.len() as u64));

    let query = embed(&format!("{} {}", word(at), word(at * 3 + 5)));
    let score = |text: &str| query.cosine(&embed(text));
    // Everything: exactly the live chunks.
    let all = snapshot.search("", Some(&query), Mode::Dense, 10_000, 0).expect("found");
    let mut texts: Vec<String> = all.iter().map(|passage| passage.text.clone()).collect();
    prop_assert!(all.is_sorted_by(|a, b| a.scores.dense >= b.scores.dense));
    texts.sort();
    live.sort();
    prop_assert_eq!(&texts, &live);
    // The best few: through the index where there is one. Scores are exact and nothing removed is among them.
    let few = snapshot.search("", Some(&query), Mode::Dense, 3, 0).expect("found");
    prop_assert_eq!(few.len(), live.len().min(3));
    let best = live.iter().map(|text| score(text)).fold(f32::MIN, f32::max);
    for passage in &few {
        prop_assert!(live.binary_search(&passage.text).is_ok());
        prop_assert!((passage.scores.dense.expect("score") - score(&passage.text)).abs() < 1e-5);
    }
    if let Some(first) = few.first() {
        prop_assert!(best - first.scores.dense.expect("score") < 1e-2, "the best is far from the best");
    }
    // Words: exactly the chunks that have them in text or title.
    let wanted = word(at);
    let found = snapshot.search(wanted, None, Mode::Bm25, 10_000, 0).expect("found");
    let mut titles_and_texts = Vec::new();
    let mut seen: Vec<u64> = model.values().copied().collect();
    seen.sort_unstable();
    seen.dedup();
    for seed in seen {
        let document = content(0, seed);
        let has = |text: &str| text.split(|c: char| !c.is_alphanumeric()).any(|word| word == wanted);
        for (chunk, _) in cut(&document) {
            if has(&chunk.text) || has(&document.title) {
                titles_and_texts.push((document.title.clone(), chunk.text));
            }
        }
    }
    let mut found: Vec<(String, String)> = found.into_iter().map(|passage| (passage.title, passage.text)).collect();
    found.sort();
    titles_and_texts.sort();
    prop_assert_eq!(found, titles_and_texts);
    // Each source has its content.
    for (source, seed) in model {
        let stored = snapshot.document_by_source(&format!("s{source}")).expect("read").expect("there");
        prop_assert_eq!(&stored.text, &content(0, *seed).text);
    }
    Ok(())
}

fn take(step: &Step, place: &KnowledgeBase, writer: &mut Option<Writer>, model: &mut BTreeMap<u8, u64>) {
    let open = writer.as_mut().expect("open between steps");
    match step {
        Step::Add(pairs) => {
            let documents: Vec<Document> = pairs.iter().map(|&(source, seed)| content(source, seed)).collect();
            add(open, &documents);
            model.extend(pairs.iter().copied());
        }
        Step::Delete(source) => {
            delete(open, &format!("s{source}"));
            model.remove(source);
        }
        Step::Abandon(source, seed) => {
            let document = content(*source, *seed);
            let mut batch = open.begin("abandoned").expect("begun");
            batch.add(&document, &cut(&document)).expect("added");
            batch.delete_source("s1").expect("deleted");
        }
        Step::Refresh => {
            open.refresh_caches(&mut |_, _| {}).expect("refreshed");
        }
        Step::Reopen => {
            *writer = None;
            *writer = Some(self::writer(place));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_history_gives_what_the_model_gives(steps in prop::collection::vec(step(), 1..14)) {
        let folder = tempdir().expect("folder");
        let place = KnowledgeBase::at(folder.path()).with_settings(eager());
        let mut open = Some(writer(&place));
        let mut model = BTreeMap::new();
        for (at, step) in steps.iter().enumerate() {
            take(step, &place, &mut open, &mut model);
            check(&snapshot(folder.path()), &model, at)?;
        }
    }
}
