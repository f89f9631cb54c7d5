//! Plain questions over encyclopaedia articles with the models of the profile `base`. The articles lie beside the checkout
//! of those who develop Anchorite; where they are missing, the test says so and does nothing.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use anchorite::{AskOptions, Engine, EngineOptions, IngestOptions, ModelRole, SearchOptions, Status};

/// Question, words of which one must be in the answer, title of the article that has it.
const QUESTIONS: [(&str, &[&str], &str); 10] = [
    ("How high is Mount Everest?", &["8,848", "8848"], "Mount Everest"),
    ("Who designed the Statue of Liberty?", &["Bartholdi"], "Statue of Liberty"),
    ("On which date was Magna Carta sealed?", &["15 June 1215", "June 15, 1215"], "Magna Carta"),
    ("How long is the Suez Canal?", &["193.3", "120.1"], "Suez Canal"),
    ("What is the deepest lake in the world?", &["Baikal"], "Lake Baikal"),
    ("Which museum exhibits the painting Guernica?", &["Reina Sof"], "Guernica (Picasso)"),
    ("Who was the commander of Apollo 11?", &["Armstrong"], "Apollo 11"),
    ("What is the atomic number of helium?", &["2", "two"], "Helium"),
    ("Which city is the capital of Brazil?", &["Bras"], "Brazil"),
    ("In which year was Newton's Principia first published?", &["1687"], "Isaac Newton"),
];

#[test]
fn m06_generator_plain_questions_are_found_and_answered() {
    let articles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/wiki_vital/corpus.jsonl.gz");
    let Ok(file) = std::fs::File::open(&articles) else {
        eprintln!("skipped: {} is not there", articles.display());
        return;
    };
    let engine = Engine::new(EngineOptions::default());
    for role in ModelRole::ALL {
        if let Err(error) = engine.models().folder(role) {
            eprintln!("skipped: {error}");
            return;
        }
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    // One article in fifteen, and those that hold the answers: enough to get lost in, and quick to take in.
    let part = folder.path().join("articles.jsonl");
    let mut out = std::fs::File::create(&part).expect("writes");
    for (index, line) in BufReader::new(flate2::read::GzDecoder::new(file)).lines().enumerate() {
        let line = line.expect("reads");
        let wanted = |title: &str| line.contains(&format!("\"title\": \"{title}\""));
        if index % 15 == 0 || QUESTIONS.iter().any(|(_, _, title)| wanted(title)) {
            writeln!(out, "{line}").expect("writes");
        }
    }
    let kb = folder.path().join("articles.kb");
    let report = engine.ingest(&kb, &[part], &IngestOptions::default(), &mut |_| ()).expect("ingests");
    assert!(report.added > 600 && report.failed.is_empty(), "{report:?}");

    let mut wrong = Vec::new();
    for (question, words, title) in QUESTIONS {
        let found =
            engine.search(&kb, question, &SearchOptions { k: 3, ..SearchOptions::default() }).expect("searches");
        assert!(found.results.iter().any(|passage| passage.title == title), "{question}: {:?}", found.results);
        let answer = engine.ask(&kb, question, &AskOptions::default(), &mut |_| ()).expect("answers");
        let says = words.iter().any(|word| answer.answer.contains(word));
        if !says || answer.status == Status::Declined {
            wrong.push(format!("{question} -> {:?}: {}", answer.status, answer.answer));
        } else {
            assert!(answer.citations.iter().any(|citation| citation.title == title), "{question}: {answer:#?}");
        }
    }
    // A model of 1.5 billion parameters may fail on one; on more, something is broken.
    assert!(wrong.len() <= 1, "{wrong:#?}");
}
