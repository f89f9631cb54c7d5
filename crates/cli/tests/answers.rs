//! Answers from the command line, in sentences of the documents (no generator): their shape, their citations, and declining.

mod common;

use common::{Workplace, at, each_text, list_at, number_at, text_at};
use serde_json::Value;

const STRATEGIES: [&str; 3] = ["multi-agent", "self-rag", "simple"];

fn ask<'a>(question: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["ask", question, "--kb", "rivers.kb", "--no-generator", "--profile", "tiny"], more].concat()
}

fn is_probability(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| (0.0..=1.0).contains(&number))
}

fn nodes(answer: &Value) -> Vec<&str> {
    each_text(list_at(answer, "/steps"), "node")
}

/// The quote is the document's text from `start` to `end`, in bytes.
fn citation_is_exact(place: &Workplace, citation: &Value) {
    let source = text_at(citation, "/source");
    let shown = place.json(&["kb", "show", source, "--kb", "rivers.kb"], 0);
    let span = number_at(citation, "/start") as usize..number_at(citation, "/end") as usize;
    let quote = text_at(citation, "/quote");
    assert!(!quote.trim().is_empty());
    assert_eq!(text_at(&shown, "/document/text").get(span.clone()), Some(quote), "{citation:#}");
    let chunk = number_at(citation, "/chunk");
    let chunk = list_at(&shown, "/chunks").iter().find(|one| one["chunk"] == chunk).expect("a chunk of the document");
    let around = number_at(chunk, "/start") as usize..=number_at(chunk, "/end") as usize;
    assert!(around.contains(&span.start) && around.contains(&span.end), "{citation:#} is not in {chunk:#}");
}

#[test]
fn m39_m40_an_answer_has_the_documented_shape_and_exact_citations() {
    let Some(place) = Workplace::with_rivers() else { return };
    // The second document has letters of more than one byte before the quote.
    for (question, source, words) in [
        ("How long is the Danube?", "rivers/danube.txt", "2,850 km"),
        ("How long is the Rhine?", "rivers/rhine.md", "1,233 km"),
    ] {
        let answer = place.json(&ask(question, &[]), 0);
        assert_eq!(text_at(&answer, "/question"), question);
        assert_eq!(text_at(&answer, "/status"), "answered", "{answer:#}");
        assert!(text_at(&answer, "/answer").contains(words), "{answer:#}");
        assert!(is_probability(at(&answer, "/confidence")) && answer["confidence"] != 0.0, "{answer:#}");
        assert_eq!(list_at(&answer, "/missing"), [] as [Value; 0]);
        assert!(at(&answer, "/stopped_by").is_null());

        let claims = list_at(&answer, "/claims");
        assert!(!claims.is_empty(), "{answer:#}");
        let mut cited = Vec::new();
        for claim in claims {
            assert!(text_at(&answer, "/answer").contains(text_at(claim, "/text")), "{claim:#}");
            assert_eq!(text_at(claim, "/verdict"), "supported");
            assert!(is_probability(at(claim, "/confidence")), "{claim:#}");
            assert!(!list_at(claim, "/citations").is_empty(), "{claim:#}");
            cited.extend(list_at(claim, "/citations").iter().cloned());
        }
        let citations = list_at(&answer, "/citations");
        assert!(cited.iter().all(|one| citations.contains(one)), "every claim's citations are among all: {answer:#}");
        assert!(citations.iter().all(|one| cited.contains(one)), "every citation is some claim's: {answer:#}");
        assert!(each_text(citations, "source").contains(&source), "{citations:?}");
        for citation in citations {
            citation_is_exact(&place, citation);
        }
        parts_beside_the_answer(&answer);
    }
}

/// What `ask --json` tells of the way to the answer.
fn parts_beside_the_answer(answer: &Value) {
    assert_eq!(text_at(answer, "/strategy"), "multi-agent");
    assert!(number_at(answer, "/rounds") >= 1);
    assert_eq!(nodes(answer)[..2], ["retrieve", "grade_documents"], "{answer:#}");
    assert!(list_at(answer, "/steps").iter().all(|step| step["seconds"].is_number() && step["note"].is_string()));
    assert!(at(answer, "/state/hypothesis").is_string());
    assert!(list_at(answer, "/state/new_queries").iter().all(Value::is_array));
    assert!(at(answer, "/state/useful_documents").is_array() && at(answer, "/state/notes").is_array());
    for part in ["total", "loading"] {
        assert!(at(answer, &format!("/timings/{part}")).as_f64().is_some_and(|seconds| seconds > 0.0), "{answer:#}");
    }
    assert_eq!(list_at(answer, "/timings/nodes").len(), nodes(answer).len());
    let models = list_at(answer, "/models");
    assert_eq!(each_text(models, "role"), ["embedder", "reranker"], "no generator was used");
    assert!(models.iter().all(|model| model["device"] == "cpu" && text_at(model, "/sha256").len() == 64));
    assert_eq!(number_at(answer, "/spent/generator_calls"), 0);
    assert_eq!(list_at(answer, "/notices"), [] as [Value; 0]);
}

#[test]
fn m39_the_answer_for_people_shows_its_sources_and_on_request_its_path() {
    let Some(place) = Workplace::with_rivers() else { return };
    let plain = place.run(&ask("How long is the Danube?", &[]));
    assert_eq!((plain.code, plain.stderr.as_str()), (0, ""), "{plain:?}");
    for piece in ["2,850 km", "Sources:", "[1] rivers/danube.txt [", "Claims:", "  supported ", "answered, confidence "]
    {
        assert!(plain.stdout.contains(piece), "no {piece:?} in {plain:?}");
    }
    assert!(!plain.stdout.contains("Path:"), "{plain:?}");
    let traced = place.run(&ask("How long is the Danube?", &["--trace"]));
    let (_, path) = traced.stdout.split_once("Path:").unwrap_or_else(|| panic!("no path in {traced:?}"));
    for node in ["retrieve", "grade_documents -> generate", "generate", "grade_generation -> useful"] {
        assert!(path.contains(node), "no {node:?} in {path}");
    }
    assert!(traced.stderr.contains("] retrieve"), "nodes are shown as they happen: {traced:?}");
}

#[test]
fn m18_a_question_that_the_documents_do_not_answer_is_declined() {
    let Some(place) = Workplace::with_rivers() else { return };
    let question = "How to cook a bagel?";
    for strategy in STRATEGIES {
        let declined = place.json(&ask(question, &["--strategy", strategy]), 1);
        assert_eq!(text_at(&declined, "/status"), "declined", "{declined:#}");
        assert_eq!(text_at(&declined, "/strategy"), strategy);
        let text = text_at(&declined, "/answer");
        assert!(text.contains("could not find") && text.contains(&format!("\"{question}\"")), "{text}");
        assert_eq!(at(&declined, "/confidence").as_f64(), Some(0.0));
        assert!(list_at(&declined, "/claims").is_empty() && list_at(&declined, "/citations").is_empty());
        assert!(!list_at(&declined, "/missing").is_empty(), "it says what is missing: {declined:#}");
        assert!((1..=4).contains(&number_at(&declined, "/rounds")), "{declined:#}");
        let queries =
            list_at(&declined, "/state/new_queries").iter().flat_map(|batch| batch.as_array().expect("a list"));
        for query in queries {
            let query = query.as_str().expect("a string");
            assert!(text.contains(query), "it says what was looked for: {text}");
        }
    }
    let for_people = place.run(&ask(question, &[]));
    assert_eq!(for_people.code, 1, "{for_people:?}");
    assert!(
        for_people.stdout.contains("could not find") && for_people.stdout.contains("\ndeclined, "),
        "{for_people:?}"
    );
}

#[test]
fn m16_an_emptied_knowledge_base_declines_and_asks_no_query_twice() {
    let Some(place) = Workplace::with_rivers() else { return };
    assert_eq!(place.run(&["kb", "delete", "1", "2", "3", "4", "--kb", "rivers.kb"]).code, 0);
    let question = "How long is the Danube?";
    let declined = place.json(&ask(question, &[]), 1);
    assert_eq!(text_at(&declined, "/status"), "declined");
    let batches = list_at(&declined, "/state/new_queries").iter().flat_map(|batch| batch.as_array().expect("a list"));
    let mut queries: Vec<String> =
        batches.map(|query| query.as_str().expect("a string").trim().to_lowercase()).collect();
    queries.push(question.to_lowercase());
    let asked = queries.len();
    queries.sort();
    queries.dedup();
    assert_eq!(queries.len(), asked, "{declined:#}");
}

/// Once where nothing new can be asked, and once where the rules find something.
#[test]
fn m16_lists_of_new_queries_hold_queries() {
    let Some(place) = Workplace::with_rivers() else { return };
    assert_eq!(place.run(&["kb", "delete", "1", "2", "3", "4", "--kb", "rivers.kb"]).code, 0);
    for question in ["How to cook a bagel?", "How long is the Danube?"] {
        let declined = place.json(&ask(question, &[]), 1);
        for batch in list_at(&declined, "/state/new_queries") {
            let queries: Vec<&str> = batch.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
            assert!(!queries.is_empty(), "a round in which nothing was asked is none: {declined:#}");
            for query in queries {
                assert!(!query.is_empty() && query.trim() == query, "{query:?} begins or ends with a blank");
            }
        }
        let for_people = place.run(&ask(question, &["--trace"])).stdout;
        let blank = for_people.lines().find(|line| line.starts_with("New queries") && line.ends_with(": "));
        assert_eq!(blank, None, "{for_people}");
    }
}

#[test]
fn m18_the_cap_on_rounds_holds() {
    let Some(place) = Workplace::with_rivers() else { return };
    let declined = place.json(&ask("Which bridges cross the Danube in Ulm?", &["--max-rounds", "1"]), 1);
    assert_eq!(number_at(&declined, "/rounds"), 1, "{declined:#}");
    assert_eq!(nodes(&declined).iter().filter(|node| **node == "retrieve").count(), 1);
}
