//! The questions of the sample data with its documents: what is computed for each, and that nothing wrong is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anchorite_core::{Limits, titled};
use anchorite_formats::{Item, read};
use serde::Deserialize;

use super::*;

/// What the notes of each question come to, from the documents it needs; questions that are not here have no note.
const OUTCOMES: &[(&str, &str)] = &[
    ("flight-delhi", "600 EUR"),
    ("flight-rome", "250 EUR"),
    ("flight-cairo", "400 EUR"),
    ("flight-lisbon", "400 EUR"),
    ("flight-new-york", "600 EUR"),
    ("flight-tokyo-late", "600 EUR"),
    ("flight-istanbul-downgrade", "50%"),
    ("hurricane-michael", "Category 5"),
    ("hurricane-katrina", "Category 3"),
    ("hurricane-ike", "Category 2"),
    ("caffeine-cans", "5 cans"),
    ("caffeine-tea", "4 cups"),
    ("altitude-kilimanjaro", "extreme altitude"),
    ("altitude-fuji", "very high altitude"),
    ("altitude-difference", "2,119 m"),
    ("opera-flute-age", "35 years"),
    ("opera-carmen-days", "92 days"),
];

/// What is missing where the rule is there and the case is not: what it measures, and of what.
const MISSING: &[(&str, &str, &str)] = &[
    ("flight-delhi", "distance", "Delhi and Munich"),
    ("flight-rome", "distance", "Munich and Rome"),
    ("flight-cairo", "distance", "Munich and Cairo"),
    ("flight-lisbon", "distance", "Lisbon and Munich"),
    ("flight-new-york", "distance", "Munich and New York"),
    ("flight-tokyo-late", "distance", "Munich and Tokyo"),
    ("flight-istanbul-downgrade", "distance", "Munich and Istanbul"),
    ("hurricane-michael", "wind speed", "Hurricane Michael"),
    ("hurricane-katrina", "wind speed", "Hurricane Katrina, Louisiana"),
    ("hurricane-ike", "wind speed", "Hurricane Ike, Galveston Island"),
    ("altitude-kilimanjaro", "height", "Kilimanjaro"),
    ("altitude-fuji", "height", "Mount Fuji"),
    ("none-tbilisi", "distance", "Munich and Tbilisi"),
    ("none-hugo", "wind speed", "Hurricane Hugo, South Carolina"),
];

#[derive(Deserialize)]
struct Sample {
    #[serde(rename = "_id")]
    id: String,
    question: String,
    answers: Vec<String>,
    documents: Vec<String>,
}

impl Sample {
    fn outcome(&self) -> Option<&'static str> {
        OUTCOMES.iter().find(|row| row.0 == self.id).map(|row| row.1)
    }
}

/// A document as notes are computed from it, under its path below `documents/`.
struct Reading {
    path: String,
    text: String,
}

impl Reading {
    fn folder(&self) -> &str {
        self.path.split('/').next().unwrap_or("")
    }
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data")
}

fn samples() -> Vec<Sample> {
    let lines = std::fs::read_to_string(data().join("questions.jsonl")).expect("the sample questions are there");
    lines.lines().map(|line| serde_json::from_str(line).expect("each line is a question")).collect()
}

fn readings() -> Vec<Reading> {
    let folder = data().join("documents");
    let prefix = format!("{}/", folder.display());
    let read_all = read(std::slice::from_ref(&folder), &Limits::default());
    read_all
        .map(|item| match item {
            Item::Document { document, .. } => Reading {
                path: document.source.strip_prefix(&prefix).expect("it lies in the folder").to_owned(),
                text: titled(&document.title, &document.text),
            },
            other => panic!("{other:?}"),
        })
        .collect()
}

fn needed<'r>(sample: &Sample, readings: &'r [Reading]) -> Vec<&'r Reading> {
    sample
        .documents
        .iter()
        .map(|path| readings.iter().find(|reading| reading.path == *path).expect("the document is there"))
        .collect()
}

/// The notes must come to what is expected and to nothing else, and what is said to be missing must be missing.
fn check(sample: &Sample, chosen: &[&Reading], complete: bool) {
    let texts: Vec<&str> = chosen.iter().map(|reading| reading.text.as_str()).collect();
    let paths: Vec<&str> = chosen.iter().map(|reading| reading.path.as_str()).collect();
    let found = notes(&sample.question, &texts);
    let outcomes: Vec<String> =
        found.iter().map(|note| note.outcome.as_ref().expect("an outcome").to_string()).collect();
    let expected: Vec<String> = sample.outcome().filter(|_| complete).map(str::to_owned).into_iter().collect();
    assert_eq!(outcomes, expected, "{}: {} from {paths:?}: {found:#?}", sample.id, sample.question);
    for note in &found {
        assert!(note.sources.iter().all(|(index, span)| texts[*index].get(span.clone()).is_some()), "{note:#?}");
    }
    for missing in undetermined(&sample.question, &texts) {
        let about = missing.about.as_deref().unwrap_or("");
        let known = MISSING.contains(&(sample.id.as_str(), missing.what.as_str(), about));
        assert!(known && found.is_empty(), "{}: {} of {about:?} from {paths:?}", sample.id, missing.what);
    }
}

#[test]
fn m53_accepted_answers_pass_the_check_and_other_outcomes_do_not() {
    let readings = readings();
    for sample in samples() {
        let needed = needed(&sample, &readings);
        let texts: Vec<&str> = needed.iter().map(|reading| reading.text.as_str()).collect();
        let found = notes(&sample.question, &texts);
        for answer in &sample.answers {
            let claim = format!("The answer is {answer}.");
            assert_eq!(check_claim(&claim, &sample.question, &texts, &found), Vec::new(), "{}: {claim}", sample.id);
        }
        if sample.id.starts_with("flight-") {
            let wrong = if sample.id == "flight-rome" { "600 EUR" } else { "250 EUR" };
            let claim = format!("You can claim {wrong}.");
            assert_eq!(check_claim(&claim, &sample.question, &texts, &found).len(), 1, "{}: {claim}", sample.id);
        }
    }
}

/// A small generator of numbers, so that the choice of documents is the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        // Knuth's MMIX multiplier and increment; the high bits are the good ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % count.max(1) as u64) as usize
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for index in (1..items.len()).rev() {
            items.swap(index, self.below(index + 1));
        }
    }
}

#[test]
fn m53_each_sample_question_gives_its_note_or_none() {
    let readings = readings();
    let samples = samples();
    for sample in &samples {
        check(sample, &needed(sample, &readings), true);
    }
    let known: BTreeSet<&str> = samples.iter().map(|sample| sample.id.as_str()).collect();
    assert!(OUTCOMES.iter().all(|row| known.contains(row.0)) && MISSING.iter().all(|row| known.contains(row.0)));
}

#[test]
fn m53_other_documents_of_the_folders_change_no_note() {
    let readings = readings();
    for sample in samples() {
        let needed = needed(&sample, &readings);
        let folders: BTreeSet<&str> = needed.iter().map(|reading| reading.folder()).collect();
        let others: Vec<&Reading> = readings
            .iter()
            .filter(|reading| folders.is_empty() || folders.contains(reading.folder()))
            .filter(|reading| !sample.documents.contains(&reading.path))
            .collect();
        let mut random = Random(sample.id.len() as u64);
        for _ in 0..40 {
            let mut some = others.clone();
            random.shuffle(&mut some);
            some.truncate(4);
            let mut chosen: Vec<&Reading> = needed.iter().copied().chain(some).collect();
            random.shuffle(&mut chosen);
            check(&sample, &chosen, true);
        }
        let everything: Vec<&Reading> = needed.iter().copied().chain(others).collect();
        check(&sample, &everything, true);
    }
}

#[test]
fn m53_all_documents_together_change_no_note() {
    let readings = readings();
    for sample in samples() {
        let chosen: Vec<&Reading> = readings.iter().collect();
        check(&sample, &chosen, true);
    }
}

#[test]
fn m53_without_one_of_the_documents_there_is_no_note() {
    let readings = readings();
    for sample in samples() {
        for left_out in &sample.documents {
            let folders: BTreeSet<&str> = sample.documents.iter().filter_map(|path| path.split('/').next()).collect();
            let chosen: Vec<&Reading> = readings
                .iter()
                .filter(|reading| folders.contains(reading.folder()) && reading.path != *left_out)
                .collect();
            let is_helper = sample.id == "flight-tokyo-late" && left_out.ends_with("eu-long-delays.md");
            check(&sample, &chosen, is_helper);
        }
    }
}

#[test]
fn m53_a_rule_without_its_case_names_what_is_missing() {
    let readings = readings();
    let rules: Vec<&Reading> =
        ["eu-sums-by-distance.md", "eu-downgrading.md", "saffir-simpson-scale.md", "altitude-bands.md"]
            .iter()
            .map(|name| readings.iter().find(|reading| reading.path.ends_with(name)).expect("the rule is there"))
            .collect();
    for (id, what, about) in MISSING {
        let sample = samples().into_iter().find(|sample| sample.id == *id).expect("the question is there");
        let chosen: Vec<&Reading> = match rules.iter().find(|rule| sample.documents.contains(&rule.path)) {
            Some(rule) => vec![*rule],
            None => rules.clone(),
        };
        let texts: Vec<&str> = chosen.iter().map(|reading| reading.text.as_str()).collect();
        assert_eq!(notes(&sample.question, &texts), Vec::new(), "{id}");
        let missing: Vec<(String, Option<String>)> =
            undetermined(&sample.question, &texts).into_iter().map(|one| (one.what, one.about)).collect();
        assert_eq!(missing, [((*what).to_owned(), Some((*about).to_owned()))], "{id}");
    }
}

#[test]
fn m53_every_distance_of_the_samples_gives_the_sum_owed() {
    let readings = readings();
    let rule = &readings[readings.iter().position(|it| it.path.ends_with("eu-sums-by-distance.md")).expect("the rule")];
    let distances: Vec<&Reading> = readings.iter().filter(|reading| reading.folder() == "distances").collect();
    assert_eq!(distances.len(), 24);
    for reading in &distances {
        let (_, city) = reading.text.lines().next().and_then(|title| title.split_once(" to ")).expect("a title");
        let first =
            extract(&reading.text).into_iter().find(|it| it.dimension() == Dimension::Length).expect("a distance");
        let kilometres = first.base_value().expect("a number") / 1000.0;
        let expected = if kilometres <= 1500.0 {
            "250 EUR"
        } else if kilometres <= 3500.0 {
            "400 EUR"
        } else {
            "600 EUR"
        };
        let question = format!("How much can I receive if I am denied boarding on a flight from {city} to Munich?");
        for passages in [vec![rule, *reading], std::iter::once(rule).chain(distances.clone()).collect()] {
            let texts: Vec<&str> = passages.iter().map(|reading| reading.text.as_str()).collect();
            let found = notes(&question, &texts);
            assert_eq!(found.len(), 1, "{city}: {found:#?}");
            let outcome = found[0].outcome.as_ref().expect("an outcome").to_string();
            assert_eq!(outcome, expected, "{city}: {}", found[0].text);
        }
    }
}

#[test]
fn m53_every_storm_of_the_samples_gets_its_category_at_landfall() {
    let readings = readings();
    let storms: Vec<&Reading> = readings.iter().filter(|reading| reading.folder() == "hurricanes").collect();
    let texts: Vec<&str> = storms.iter().map(|reading| reading.text.as_str()).collect();
    for (name, category) in [
        ("Andrew", "Category 5"),
        ("Dorian", "Category 5"),
        ("Ian", "Category 4"),
        ("Ike", "Category 2"),
        ("Katrina", "Category 3"),
        ("Laura", "Category 4"),
        ("Michael", "Category 5"),
    ] {
        let question = format!("Which category did Hurricane {name} have at landfall?");
        let found = notes(&question, &texts);
        let outcomes: Vec<String> =
            found.iter().map(|note| note.outcome.as_ref().expect("an outcome").to_string()).collect();
        assert_eq!(outcomes, [category], "{name}: {found:#?}");
    }
    for question in [
        // The wind is told for the second landfall only, for no landfall at all, or for none that there was.
        "Which category was Hurricane Ian when it hit Cuba?",
        "Which category was Hurricane Ian when it made landfall in South Carolina?",
        "Which category was Katrina?",
        "Which category was Hurricane Katrina when it made landfall in Mexico?",
    ] {
        assert_eq!(notes(question, &texts), Vec::new(), "{question}");
    }
}
