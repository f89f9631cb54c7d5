//! Measuring from the command line: a small set of one's own, its table, its run files, and going on after a stop.

mod common;

use std::fs;

use common::{Workplace, at, each_text, list_at, number_at, text_at};
use serde_json::{Value, json};

/// Documents with what they are asked for, and the grade of each answer.
const CORPUS: &[(&str, &str, &str)] = &[
    ("river#1", "Danube", "The Danube rises in the Black Forest and flows into the Black Sea. It is 2,850 km long."),
    ("river#2", "Tiber", "The Tiber flows through Rome. It rises at Monte Fumaiolo."),
    ("river#3", "Elbe", "The Elbe rises in Bohemia and flows through Dresden and Hamburg."),
    ("copy", "Tiber", "The Tiber flows through Rome. It rises at Monte Fumaiolo."),
    ("empty", "", ""),
    ("source", "Rome", "Rome is where rivers and roads meet: the Tiber flows through Rome."),
];

fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

fn with_set() -> Option<Workplace> {
    let place = Workplace::with_models()?;
    let corpus: Vec<Value> =
        CORPUS.iter().map(|(id, title, text)| json!({ "_id": id, "title": title, "text": text })).collect();
    place.write("sets/rivers/corpus.jsonl", lines(&corpus));
    let queries = [
        json!({ "_id": "q1", "text": "Which river flows through Rome?", "answers": ["Tiber"], "source_doc": ["source"] }),
        json!({ "_id": "q2", "text": "How long is the Danube?", "answers": ["2,850 km"] }),
        json!({ "_id": "q3", "text": "Who painted the ceiling?", "answers": [], "answerable": false }),
    ];
    place.write("sets/rivers/queries.jsonl", lines(&queries));
    let judged = "query-id\tcorpus-id\tscore\nq1\triver#2\t2\nq1\tcopy\t1\nq2\triver#1\t1\n";
    place.write("sets/rivers/qrels.tsv", judged);
    Some(place)
}

/// Figures of a system of the only set.
fn system<'v>(report: &'v Value, name: &str) -> &'v Value {
    let systems = list_at(report, "/sets/0/systems");
    systems.iter().find(|system| system["system"] == name).unwrap_or_else(|| panic!("no {name} in {report:#}"))
}

fn value(document: &Value, pointer: &str) -> f64 {
    at(document, pointer).as_f64().unwrap_or_else(|| panic!("no number at {pointer} in {document:#}"))
}

#[test]
fn m41_retrieval_is_measured_and_written_as_trec_does() {
    let Some(place) = with_set() else { return };
    let run =
        ["eval", "retrieval", "--data", "sets", "--cache", "cache", "--systems", "bm25,dense,hybrid", "--runs", "runs"];
    let report = place.json(&run, 0);
    assert_eq!((text_at(&report, "/sets/0/name"), number_at(&report, "/sets/0/queries")), ("rivers", 2));
    assert_eq!(number_at(&report, "/sets/0/taken_in/documents"), CORPUS.len() as u64);
    assert_eq!(number_at(&report, "/sets/0/taken_in/left_out"), 1, "the empty one");
    // Two documents of the same text are one to the knowledge base; both are found, the older first.
    for name in ["bm25", "dense", "hybrid"] {
        let measured = system(&report, name);
        assert_eq!(value(measured, "/ndcg_10/mean"), 1.0, "{measured:#}");
        assert_eq!(value(measured, "/recall_10/mean"), 1.0);
        assert_eq!(value(measured, "/mrr_10/low"), 1.0);
    }
    assert_eq!(value(system(&report, "hybrid"), "/above_best_single/mean"), 0.0);

    let file = fs::read_to_string(place.path().join("runs/rivers.bm25.run")).expect("a run file");
    let rows: Vec<Vec<&str>> = file.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!((rows[0][..4].to_vec(), rows[0][5]), (vec!["q1", "Q0", "river#2", "1"], "anchorite-bm25"));
    assert_eq!(rows[1][2], "copy");
    let own = rows.iter().all(|row| (row[0], row[2]) != ("q1", "source"));
    assert!(own, "what a query was made from is no answer to it: {file}");
    let scores: Vec<f32> =
        rows.iter().filter(|row| row[0] == "q1").map(|row| row[4].parse().expect("a score")).collect();
    assert!(scores.is_sorted_by(|better, worse| better > worse), "{scores:?}");
}

#[test]
fn m41_a_second_run_takes_nothing_in_and_says_the_same() {
    let Some(place) = with_set() else { return };
    let run = ["eval", "retrieval", "--data", "sets/rivers", "--cache", "cache", "--systems", "bm25,rerank"];
    let first = place.json(&run, 0);
    let files = place.content();
    assert_eq!(place.json(&run, 0), first, "down to the seconds, which are those of the first run");
    assert_eq!(place.content(), files);
    // A changed corpus is another one.
    place.write("sets/rivers/corpus.jsonl", lines(&[json!({ "_id": "river#2", "text": "Bagels are boiled." })]));
    let changed = place.json(&run, 0);
    assert_eq!(number_at(&changed, "/sets/0/taken_in/documents"), 1);
    assert!(value(system(&changed, "bm25"), "/ndcg_10/mean") < 0.5, "{changed:#}");
}

#[test]
fn m41_only_the_first_queries_are_measured_where_that_is_asked() {
    let Some(place) = with_set() else { return };
    let run = ["eval", "retrieval", "--data", "sets", "--cache", "cache", "--systems", "bm25", "--limit-queries", "1"];
    assert_eq!(number_at(&place.json(&run, 0), "/sets/0/queries"), 1);
    let table = place.run(&run);
    assert_eq!(table.code, 0, "{table:?}");
    assert!(table.stdout.starts_with("set "), "{table:?}");
    assert!(table.stdout.contains("1.000…1.000"), "{table:?}");
}

#[test]
fn m41_answers_are_scored_and_kept() {
    let Some(place) = with_set() else { return };
    let run = ["eval", "qa", "--data", "sets", "--cache", "cache", "--no-generator", "--results", "kept"];
    let report = place.json(&run, 0);
    let row = at(&report, "/rows/0");
    assert_eq!((text_at(row, "/set"), text_at(row, "/strategy")), ("rivers", "multi-agent"));
    assert_eq!((number_at(row, "/questions"), number_at(row, "/answerable")), (3, 2));
    assert_eq!(value(row, "/right/mean"), 1.0, "{row:#}");
    assert_eq!(value(row, "/declined_rightly"), 1.0, "{row:#}");
    assert_eq!(value(row, "/declined_wrongly"), 0.0, "{row:#}");
    let kept = fs::read_to_string(place.path().join("kept/rivers.multi-agent.jsonl")).expect("the answers");
    assert_eq!(kept.lines().count(), 4, "what the run is, and three answers: {kept}");
    assert_eq!(place.json(&run, 0), report);
    let mut other = run.to_vec();
    other.extend(["--max-rounds", "1"]);
    place.run(&other).is_refused(&["rivers.multi-agent.jsonl", "other settings"]);
}

#[test]
fn m41_the_loop_stands_beside_single_shot() {
    let Some(place) = with_set() else { return };
    let report =
        place.json(&["eval", "loop", "--data", "sets", "--cache", "cache", "--no-generator", "--limit", "2"], 0);
    assert_eq!(each_text(list_at(&report, "/rows"), "strategy"), ["single-shot", "multi-agent"]);
    let ablated = [
        "eval",
        "loop",
        "--data",
        "sets",
        "--cache",
        "cache",
        "--no-generator",
        "--limit",
        "2",
        "--without",
        "links,grades",
    ];
    let report = place.json(&ablated, 0);
    let names = ["single-shot", "multi-agent", "multi-agent −links", "multi-agent −grades"];
    assert_eq!(each_text(list_at(&report, "/rows"), "strategy"), names);
    place.run(&["eval", "loop", "--data", "sets", "--without", "luck"]).is_refused(&["luck", "links"]);
}

#[test]
fn m20_claims_are_graded_as_the_loop_grades_them() {
    let Some(place) = Workplace::with_models() else { return };
    let pair = |id: &str, claim: &str, label: &str| json!({ "_id": id, "premise": "Mont Blanc is 4,806 metres high. It lies in the Alps.", "claim": claim, "label": label });
    let pairs = [
        pair("1", "Mont Blanc is 4,806 m high.", "supported"),
        pair("2", "Mont Blanc is 4,860 m high.", "contradicted"),
        pair("3", "Ferries stop in winter.", "neutral"),
        pair("4", "Mont Blanc lies in the Alps.", "entailed"),
    ];
    place.write("pairs/pairs.jsonl", lines(&pairs));
    let report = place.json(&["eval", "grounding", "--data", "pairs", "--cache", "cache", "--no-generator"], 0);
    assert_eq!(value(&report, "/sets/0/auroc"), 1.0, "{report:#}");
    assert_eq!(number_at(&report, "/sets/0/supported"), 2);
    let counted: u64 = list_at(&report, "/reliability/bins").iter().map(|bin| number_at(bin, "/count")).sum();
    assert_eq!(counted, 4);
}

#[test]
fn m20_what_a_logit_is_worth_is_fitted_to_judged_queries() {
    let Some(place) = with_set() else { return };
    let run = ["eval", "relevance", "--data", "sets", "--cache", "cache"];
    let report = place.json(&run, 0);
    let row = at(&report, "/rows/0");
    assert_eq!((text_at(row, "/set"), number_at(row, "/helpful")), ("rivers", 2), "{report:#}");
    assert!(number_at(row, "/passages") > 2, "{report:#}");
    assert!(value(row, "/auroc") > 0.7 && value(row, "/logit_auroc") > 0.7, "{report:#}");
    assert!(value(&report, "/fitted/logit") > 0.0, "{report:#}");
    // What is known of the model, to the digit; and what one's own settings say instead.
    assert!((value(&report, "/in_use/constant") + 3.4).abs() < 1e-6, "{report:#}");
    let own = "[loop]\nrelevance_scale = { logit = 1.0, fused = 0.0, linked = 0.0, constant = -1.5 }\n";
    place.write("anchorite.toml", own);
    assert!((value(&place.json(&run, 0), "/in_use/constant") + 1.5).abs() < 1e-6);
}

#[test]
fn what_can_not_be_measured_is_said_in_a_line() {
    let place = Workplace::new();
    place.write("none/readme.txt", "nothing");
    place.run(&["eval", "retrieval", "--data", "none", "--cache", "c"]).is_refused(&["none", "corpus.jsonl"]);
    place.run(&["eval", "grounding", "--data", "nowhere", "--cache", "c"]).is_refused(&["nowhere"]);
    place.run(&["eval", "qa", "--data", "none", "--cache", "c", "--strategy", "wild"]).is_refused(&["wild"]);
    place.write("set/corpus.jsonl", "{\"_id\": \"a\", \"text\": \"x\"}\n");
    place.write("set/queries.jsonl", "{\"text\": \"no identifier\"}\n");
    let refused = ["eval", "retrieval", "--data", "set", "--cache", "c"];
    place.run(&refused).is_refused(&["queries.jsonl, line 1", "_id"]);
    place.write("set/queries.jsonl", "{\"_id\": \"q\", \"text\": \"unjudged\"}\n");
    let unjudged = place.run(&refused);
    assert_eq!(unjudged.code, 2, "{unjudged:?}");
    assert!(unjudged.stderr.contains("no set has judgements"), "{unjudged:?}");
}

#[test]
fn m41_generator_a_test_set_of_ones_own_documents() {
    let Some(place) = Workplace::with_models() else { return };
    let documents = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/documents");
    let ingest = place.run(&["ingest", documents, "--kb", "own.kb"]);
    assert_eq!(ingest.code, 0, "{ingest:?}");
    let make = ["eval", "make", "--kb", "own.kb", "--out", "sets/own", "--questions", "8"];
    let made = place.run(&[&make[..], &["--json"]].concat());
    if made.stderr.contains("there is no generator") {
        return eprintln!("skipped: {}", made.stderr.trim());
    }
    assert_eq!(made.code, 0, "{made:?}");
    let report = made.json();
    let read = |name: &str| -> Vec<Value> {
        let text = fs::read_to_string(place.path().join("sets/own").join(name)).expect("written");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let (corpus, queries) = (read("corpus.jsonl"), read("queries.jsonl"));
    assert_eq!(number_at(&report, "/questions"), queries.len() as u64);
    assert_eq!(number_at(&report, "/documents"), corpus.len() as u64);
    assert!(queries.len() >= 4, "{report:#}");
    for query in &queries {
        let source = text_at(query, "/made_from/source");
        let document = corpus.iter().find(|document| document["_id"] == source);
        assert_eq!(document.is_some(), at(query, "/answerable") == true, "{query:#}");
        let answer = text_at(query, "/made_from/answer").to_lowercase();
        assert!(
            document.is_none_or(|document| text_at(document, "/text").to_lowercase().contains(&answer)),
            "{query:#}"
        );
    }
    let measured =
        place.json(&["eval", "retrieval", "--data", "sets/own", "--cache", "cache", "--systems", "hybrid"], 0);
    assert!(value(system(&measured, "hybrid"), "/recall_100/mean") > 0.8, "{measured:#}");
    place.run(&make).is_refused(&["sets/own", "not empty"]);
}

#[test]
fn m20_a_probe_is_fitted_and_used() {
    let Some(place) = with_set() else { return };
    let queries = [
        ("q1", "Which river flows through Rome?", true),
        ("q2", "How long is the Danube?", true),
        ("q3", "Where does the Elbe rise?", true),
        ("q4", "Where does the Danube rise?", true),
        ("q5", "Which river flows through Berlin?", false),
        ("q6", "How deep is the Danube?", false),
        ("q7", "Who built a bridge over the Elbe in Dresden?", false),
        ("q8", "How wide is the Tiber in Rome?", false),
    ];
    let queries: Vec<Value> =
        queries.iter().map(|(id, text, held)| json!({ "_id": id, "text": text, "answerable": held })).collect();
    place.write("sets/rivers/queries.jsonl", lines(&queries));
    fs::remove_file(place.path().join("sets/rivers/qrels.tsv")).expect("removed");
    let held = [
        "eval",
        "held",
        "--data",
        "sets",
        "--cache",
        "cache",
        "--profile",
        "tiny",
        "--layers",
        "12,20",
        "--fit",
        "p.json",
    ];
    let report = place.json(&held, 0);
    assert_eq!(list_at(&report, "/rows").len(), 4, "two layers, one set and all: {report:#}");
    assert_eq!((number_at(&report, "/rows/0/questions"), number_at(&report, "/rows/0/held")), (8, 4), "{report:#}");
    let probe: Value =
        serde_json::from_str(&fs::read_to_string(place.path().join("p.json")).expect("written")).expect("JSON");
    assert_eq!((list_at(&probe, "/weights").len(), text_at(&probe, "/model")), (576, "SmolLM2-135M-Instruct"));

    // What it learned goes on counting; what it says of questions is told beside.
    let mut further = held[..8].to_vec();
    further.extend(["--from", "p.json", "--fit", "further.json"]);
    let report = place.json(&further, 0);
    assert_eq!(at(&report, "/rows/0/layer"), &probe["layer"], "{report:#}");
    assert!(value(&report, "/rows/0/before") > 0.9, "it was fitted to them: {report:#}");
    assert!(place.path().join("further.json").is_file());

    assert_eq!(place.run(&["ingest", "sets/rivers/corpus.jsonl", "--kb", "k.kb"]).code, 0);
    place.write("anchorite.toml", "profile = \"tiny\"\n[loop]\nprobe = \"p.json\"\nanswer_tokens = 16\n");
    let ask = ["ask", "How deep is the Danube?", "--kb", "k.kb", "--max-rounds", "1", "--json"];
    let answer = place.run(&ask);
    assert!(answer.code == 0 || answer.code == 1, "{answer:?}");
    let told = answer.stdout.contains("that the passages hold the answer");
    assert!(told, "{answer:?}");
    place.write("p.json", probe.to_string().replace("SmolLM2-135M-Instruct", "Another"));
    place.run(&ask).is_refused(&["p.json", "fitted on Another", "eval held"]);
    let mut deep = probe;
    deep["layer"] = 40.into();
    place.write("p.json", deep.to_string());
    place.run(&ask).is_refused(&["p.json", "layer 40", "last is 29"]);
    deep["layer"] = 12.into();
    deep["weights"] = json!([1.0, 2.0]);
    place.write("p.json", deep.to_string());
    place.run(&ask).is_refused(&["p.json", "2 weights", "576 wide"]);
    place.run(&further).is_refused(&["p.json", "2 weights"]);
    place.write("p.json", "{");
    place.run(&ask).is_refused(&["p.json"]);
}
