//! The case that the loop exists for, on the sample documents and the real models of the profile `base`.

use std::path::{Path, PathBuf};

use anchorite::core::Verdict;
use anchorite::{AskOptions, Engine, EngineOptions, ModelRole, Status, Strategy};

const QUESTION: &str = "How much can I receive if I am denied boarding, for flights from Delhi to Munich?";

/// An engine and a knowledge base of the sample documents; `None` with a printed reason where models are missing.
fn set_up() -> Option<(Engine, tempfile::TempDir, PathBuf)> {
    let engine = Engine::new(EngineOptions::default());
    for role in ModelRole::ALL {
        if let Err(error) = engine.models().folder(role) {
            eprintln!("skipped: {error}");
            return None;
        }
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kb = folder.path().join("sample.kb");
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/documents");
    let report = engine.ingest(&kb, &[documents], &mut |_| ()).expect("ingests");
    assert!(report.added > 70 && report.failed.is_empty(), "{report:?}");
    Some((engine, folder, kb))
}

#[test]
fn m19_generator_the_sum_for_delhi_is_found_computed_cited_and_conditioned() {
    let Some((engine, _folder, kb)) = set_up() else { return };
    let answer = engine.ask(&kb, QUESTION, &AskOptions::default(), &mut |_| ()).expect("answers");
    assert_eq!(answer.status, Status::Answered, "{answer:#?}");
    assert!(answer.answer.contains("600 EUR"), "{}", answer.answer);
    let quoted = |words: &str| answer.citations.iter().any(|citation| citation.quote.contains(words));
    assert!(quoted("5,931 km"), "the distance is not cited: {:#?}", answer.citations);
    assert!(quoted("600 EUR"), "the tier is not cited: {:#?}", answer.citations);
    assert!(
        answer.answer.contains("Conditions:") && answer.answer.contains("confirmed reservation"),
        "{}",
        answer.answer
    );
    assert!(answer.claims.iter().all(|claim| claim.verdict == Verdict::Supported), "{:#?}", answer.claims);
    assert!(answer.steps.iter().any(|step| step.node == "transform_query"), "{:?}", answer.steps);
    assert!(answer.state.hypothesis.contains("distance"), "{}", answer.state.hypothesis);
    assert!(answer.state.notes.iter().any(|note| note.contains("5,931 km")), "{:?}", answer.state.notes);
}

#[test]
fn m18_generator_a_question_outside_the_documents_is_declined_in_both_graphs() {
    let Some((engine, _folder, kb)) = set_up() else { return };
    for strategy in [Strategy::MultiAgent, Strategy::SelfRag] {
        let options = AskOptions { strategy, ..AskOptions::default() };
        let answer = engine.ask(&kb, "How to cook a bagel?", &options, &mut |_| ()).expect("ends");
        assert_eq!(answer.status, Status::Declined, "{strategy}: {answer:#?}");
        assert!(answer.answer.contains("How to cook a bagel?"), "{}", answer.answer);
        assert!(answer.citations.is_empty() && answer.rounds <= 4);
    }
}
