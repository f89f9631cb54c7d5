//! What the models do alone, line by line: `embed` and `rerank`.

mod common;

use common::{Workplace, at, list_at, number_at, text_at};
use serde_json::{Value, json};

/// A plain line, records with a name and with a number, a blank line between, and further fields that are not looked at.
const LINES: &str = "The Danube flows into the Black Sea.\n\
    {\"_id\": \"tiber\", \"text\": \"The Tiber flows through Rome.\", \"km\": 405}\n\
    \n\
    {\"id\": 7, \"title\": \"Baking\", \"text\": \"Bagels are boiled before they are baked.\"}\n";

fn vector(record: &Value) -> Vec<f64> {
    list_at(record, "/embedding").iter().map(|component| component.as_f64().expect("a number")).collect()
}

#[test]
fn embed_reads_lines_and_records_and_keeps_their_names() {
    let Some(place) = Workplace::with_models() else { return };
    place.write("lines.jsonl", LINES);
    let embedded = place.run(&["embed", "lines.jsonl"]);
    assert_eq!((embedded.code, embedded.stderr.as_str()), (0, ""), "{embedded:?}");
    let records = embedded.records();
    let names: Vec<Option<&Value>> = records.iter().map(|record| record.get("_id")).collect();
    assert_eq!(names, [None, Some(&json!("tiber")), Some(&json!(7))]);
    for record in &records {
        let vector = vector(record);
        assert_eq!(vector.len(), 384);
        let length: f64 = vector.iter().map(|component| component * component).sum();
        assert!((length - 1.0).abs() < 1e-3, "{length}");
    }
    let piped = place.run_with_input(&["embed"], LINES);
    assert_eq!(piped.stdout, embedded.stdout, "a file and standard input are read alike");
    let named = place.run_with_input(&["embed", "-", "--json"], LINES);
    assert_eq!(named.stdout, embedded.stdout, "its lines are JSON in any case");
}

#[test]
fn m46_a_text_has_the_same_vector_alone_and_in_a_batch() {
    let Some(place) = Workplace::with_models() else { return };
    let long = "The Danube passes ten countries on its way to the sea, more than any other river. ".repeat(8);
    let batch = place.run_with_input(&["embed"], format!("{long}\n{LINES}")).records();
    for (index, line) in [long.as_str(), "The Danube flows into the Black Sea."].into_iter().enumerate() {
        let alone = place.run_with_input(&["embed"], line).records();
        assert_eq!(vector(&alone[0]), vector(&batch[index]), "line {index}");
    }
}

#[test]
fn a_bad_record_is_refused_with_its_file_and_line() {
    let Some(place) = Workplace::with_models() else { return };
    let faults = [
        ("{\"_id\": \"a\", \"text\": \n", "JSON"),
        ("{\"_id\": \"a\"}\n", "text"),
        ("{\"_id\": \"a\", \"text\": 5}\n", "text"),
    ];
    for (fault, says) in faults {
        place.write("lines.jsonl", format!("The Danube.\n\n{fault}"));
        for command in [&["embed", "lines.jsonl"][..], &["rerank", "--query", "river", "lines.jsonl"]] {
            place.run(command).is_refused(&["lines.jsonl", "line 3", says]);
        }
    }
    place.run_with_input(&["embed"], b"The Danube.\n\xff\xfe\n").is_refused(&["line 2", "UTF-8"]);
}

#[test]
fn a_bad_record_is_refused_with_no_other_line_number_than_the_files() {
    let Some(place) = Workplace::with_models() else { return };
    let run = place.run_with_input(&["embed"], "The Danube.\n{\"_id\": \"a\", \"text\": \n");
    run.is_refused(&["line 2", "JSON"]);
    assert_eq!(run.stderr.matches("line ").count(), 1, "{run:?}");
}

#[test]
fn nothing_to_embed_or_rerank_is_code_1() {
    let Some(place) = Workplace::with_models() else { return };
    for arguments in [&["embed"][..], &["rerank", "--query", "river"]] {
        for input in ["", "\n \n"] {
            let run = place.run_with_input(arguments, input);
            assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{run:?}");
        }
    }
}

#[test]
fn rerank_puts_the_best_first_and_keeps_names() {
    let Some(place) = Workplace::with_models() else { return };
    place.write("lines.jsonl", LINES);
    let arguments = ["rerank", "--query", "How are bagels made?", "lines.jsonl"];
    let ranked = place.run(&arguments);
    assert_eq!((ranked.code, ranked.stderr.as_str()), (0, ""), "{ranked:?}");
    let records = ranked.records();
    assert_eq!(records.iter().map(|record| number_at(record, "/rank")).collect::<Vec<_>>(), [1, 2, 3]);
    let scores: Vec<f64> = records.iter().map(|record| record["score"].as_f64().expect("a score")).collect();
    assert!(scores.is_sorted_by(|better, worse| better >= worse) && scores[0] > 0.0 && scores[2] < 0.0, "{scores:?}");
    let best = &records[0];
    assert_eq!((text_at(best, "/text"), &best["_id"]), ("Bagels are boiled before they are baked.", &json!(7)));
    let plain = records.iter().find(|record| record.get("_id").is_none()).expect("the plain line");
    assert_eq!(text_at(plain, "/text"), "The Danube flows into the Black Sea.");
    let piped = place.run_with_input(&["rerank", "--query", "How are bagels made?"], LINES);
    assert_eq!(piped.stdout, ranked.stdout, "a file and standard input are read alike");
}

#[test]
fn rerank_counts_every_line_of_the_file() {
    let Some(place) = Workplace::with_models() else { return };
    for record in place.run_with_input(&["rerank", "--query", "How are bagels made?"], LINES).records() {
        let line = LINES.lines().nth(number_at(&record, "/line") as usize - 1).expect("a line");
        assert!(line.contains(text_at(&record, "/text")), "{record} is on another line");
    }
}

/// A record that comes in and has no vector must not go unnoticed: what comes out is matched with what went in.
#[test]
fn a_record_with_a_blank_text_is_not_dropped_in_silence() {
    let Some(place) = Workplace::with_models() else { return };
    let input = "{\"_id\": \"a\", \"text\": \"The Danube.\"}\n{\"_id\": \"b\", \"text\": \" \"}\n";
    for arguments in [&["embed"][..], &["rerank", "--query", "river"]] {
        let run = place.run_with_input(arguments, input);
        if run.code == 0 {
            assert!(
                run.records().iter().any(|record| record["_id"] == "b") || run.stderr.contains("line 2"),
                "{run:?}"
            );
        } else {
            run.is_refused(&["line 2"]);
        }
    }
}

#[test]
fn precision_is_chosen_by_name_and_nothing_else_is_taken() {
    let Some(place) = Workplace::with_models() else { return };
    let default = place.run_with_input(&["embed"], LINES).records();
    let bytes = place.run_with_input(&["embed", "--precision", "int8"], LINES).records();
    let floats = place.run_with_input(&["embed", "--precision", "f32"], LINES).records();
    assert_eq!(vector(&default[0]), vector(&bytes[0]), "int8 is the default");
    let cosine: f64 = vector(&bytes[0]).iter().zip(vector(&floats[0])).map(|(a, b)| a * b).sum();
    assert!(cosine > 0.99 && vector(&bytes[0]) != vector(&floats[0]), "{cosine}");
    place.run(&["embed", "--precision", "int4", "lines.jsonl"]).is_refused(&["--precision", "int4", "int8 or f32"]);
}

#[test]
fn bench_measures_both_encoders_on_synthetic_and_on_real_text() {
    let Some(place) = Workplace::with_models() else { return };
    place.write("texts.jsonl", "{\"text\": \"The Danube flows into the Black Sea.\"}\n{\"text\": \"Rome.\"}\n");
    place.write("pairs.jsonl", "{\"query\": \"river\", \"passage\": \"The Danube.\"}\n");
    let embed = place.run(&["bench", "embed", "--data", "texts.jsonl", "--repeats", "1", "--json"]).json();
    assert_eq!(number_at(&embed, "/rows/0/texts"), 2);
    assert!(number_at(&embed, "/rows/0/tokens") > 10 && at(&embed, "/rows/0/p99_ms").as_f64() > Some(0.0), "{embed}");
    assert!(at(&embed, "/product_gigaops").as_f64() > Some(0.0), "{embed}");
    assert!(at(&embed, "/rows/0/share_of_product").as_f64() > Some(0.0), "{embed}");
    let rerank = place.run(&["bench", "rerank", "--data", "pairs.jsonl", "--repeats", "1", "--json"]).json();
    assert_eq!(number_at(&rerank, "/rows/0/texts"), 1);
    let synthetic =
        place.run(&["bench", "embed", "--lengths", "16,40", "--repeats", "1", "--precision", "f32", "--json"]);
    let synthetic = synthetic.json();
    assert_eq!(text_at(&synthetic, "/precision"), "f32");
    let each = number_at(&synthetic, "/rows/1/tokens") / number_at(&synthetic, "/rows/1/texts");
    assert!((39..=41).contains(&each), "texts of {each} tokens");
    place.write("empty.jsonl", "");
    place.run(&["bench", "embed", "--data", "empty.jsonl"]).is_refused(&["empty.jsonl", "no lines"]);
    place.run(&["bench", "embed", "--data", "none.jsonl"]).is_refused(&["none.jsonl"]);
    place.run(&["bench", "rerank", "--data", "texts.jsonl"]).is_refused(&["texts.jsonl, line 1", "query"]);
}
