//! The case that the loop exists for, on the sample documents and the real models of the profile `base`.

use std::path::{Path, PathBuf};

use anchorite::core::Verdict;
use anchorite::{AskOptions, Engine, EngineOptions, IngestOptions, ModelRole, Profile, Settings, Status, Strategy};

const QUESTION: &str = "How much can I receive if I am denied boarding, for flights from Delhi to Munich?";

/// The same asked by ten people.
const PARAPHRASES: [&str; 10] = [
    "What is due to me for denied boarding on a flight from Delhi to Munich?",
    "I was denied boarding in Delhi; my flight was to Munich. How much compensation can I get?",
    "Which sum is owed for denied boarding between Delhi and Munich?",
    "How many euros do I receive when I am refused a seat from Delhi to Munich against my will?",
    "Compensation for denied boarding, Delhi to Munich: how much?",
    "My airline denied me boarding from Delhi to Munich. What amount am I owed?",
    "How high is the compensation if boarding is denied on the way from Delhi to Munich?",
    "If an airline denies me boarding on a flight from Delhi to Munich, what does it have to pay me?",
    "What can a passenger claim who is denied boarding on the Delhi to Munich flight?",
    "They would not let me board in Delhi for Munich. How much money am I entitled to for denied boarding?",
];

/// An engine and a knowledge base of the sample documents; `None` with a printed reason where models are missing.
fn set_up() -> Option<(Engine, tempfile::TempDir, PathBuf)> {
    set_up_with(EngineOptions::default())
}

fn set_up_with(options: EngineOptions) -> Option<(Engine, tempfile::TempDir, PathBuf)> {
    let engine = Engine::new(options);
    for role in ModelRole::ALL {
        if let Err(error) = engine.models().folder(role) {
            eprintln!("skipped: {error}");
            return None;
        }
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kb = folder.path().join("sample.kb");
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/documents");
    let report = engine.ingest(&kb, &[documents], &IngestOptions::default(), &mut |_| ()).expect("ingests");
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
    assert!(answer.state.notes.iter().any(|note| note.contains("5,931 km")), "{:?}", answer.state.notes);
}

#[test]
fn m15_m16_generator_what_the_first_passages_lack_is_named_and_searched_for() {
    // So few passages a query that the distance is not among the first.
    let settings = Settings { passages: 1, ..Settings::default() };
    let Some((engine, _folder, kb)) = set_up_with(EngineOptions { settings, ..EngineOptions::default() }) else {
        return;
    };
    let answer = engine.ask(&kb, QUESTION, &AskOptions::default(), &mut |_| ()).expect("answers");
    assert!(answer.answer.contains("600 EUR"), "{answer:#?}");
    assert!(answer.steps.iter().any(|step| step.node == "transform_query"), "{:?}", answer.steps);
    assert!(answer.state.hypothesis.contains("distance"), "{}", answer.state.hypothesis);
}

#[test]
fn m19_generator_ten_people_ask_and_nine_at_least_are_told() {
    let mut untold = 0;
    for profile in [Profile::Base, Profile::Small] {
        let options = EngineOptions { profile, ..EngineOptions::default() };
        let Some((engine, _folder, kb)) = set_up_with(options) else { return };
        let mut wrong = Vec::new();
        for question in PARAPHRASES {
            let answer = engine.ask(&kb, question, &AskOptions::default(), &mut |_| ()).expect("answers");
            let quoted = |words: &str| answer.citations.iter().any(|citation| citation.quote.contains(words));
            let told = answer.answer.contains("600 EUR") || answer.answer.contains("600 euro");
            if !(told && answer.status == Status::Answered && quoted("5,931 km") && quoted("600 EUR")) {
                wrong.push(format!("{question} {:?} {}", answer.status, answer.answer));
            }
        }
        eprintln!("{profile:?}: {} of {} told; not: {wrong:#?}", PARAPHRASES.len() - wrong.len(), PARAPHRASES.len());
        // Other processors add up in another order, and a small model's word may turn on that: one more of the twenty.
        let spare = usize::from(profile == Profile::Small);
        assert!(wrong.len() <= 1 + spare, "{profile:?}: {wrong:#?}");
        untold += wrong.len();
    }
    assert!(untold <= 2, "{untold} of twenty");
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
