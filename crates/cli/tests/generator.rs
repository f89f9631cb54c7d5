//! The generator alone, on the command line: constrained texts, conversations, and its bench. With the smallest model.

mod common;

use common::{Workplace, at, list_at, number_at, text_at};

const TINY: [&str; 2] = ["--profile", "tiny"];

fn with<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &TINY].concat()
}

#[test]
fn a_generator_writes_json_of_a_schema() {
    let Some(place) = Workplace::with_models() else { return };
    let schema = r#"{"type": "object", "required": ["city", "river"], "additionalProperties": false,
        "properties": {"city": {"enum": ["Paris", "Rome"]}, "river": {"type": "string", "maxLength": 12}}}"#;
    place.write("schema.json", schema);
    let prompt = "Which city lies on the Seine? Reply as JSON.";
    let written = place.run(&with(&["generate", prompt, "--schema", "schema.json", "--max-tokens", "40"]));
    assert_eq!(written.code, 0, "{written:?}");
    let value: serde_json::Value = serde_json::from_str(written.stdout.trim()).expect("JSON");
    assert!(["Paris", "Rome"].contains(&text_at(&value, "/city")), "{value}");
    assert!(text_at(&value, "/river").chars().count() <= 12, "{value}");
    let date = place.run(&with(&["generate", "When?", "--regex", "[0-9]{4}-[0-9]{2}", "--max-tokens", "12"]));
    assert_eq!(date.stdout.trim().len(), 7, "{date:?}");
}

#[test]
fn what_a_generator_can_not_follow_is_refused_in_a_line() {
    let Some(place) = Workplace::with_models() else { return };
    place.write("broken.json", "{\"type\":");
    for (arguments, says) in [
        (vec!["generate", "x", "--schema", "broken.json"], "the schema is no JSON"),
        (vec!["generate", "x", "--schema", "nowhere.json"], "nowhere.json"),
        (vec!["generate", "x", "--regex", "("], "can't be written"),
        (vec!["generate", "x", "--regex", "a{30}", "--grammar", "g.lark"], "cannot be used with"),
        (vec!["generate", "x", "--regex", "[0-9]{60}", "--max-tokens", "5"], "5 tokens or fewer"),
    ] {
        let refused = place.run(&with(&arguments));
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{refused:?}");
        assert!(refused.stderr.contains(says) && refused.stderr.trim().lines().count() == 1, "{refused:?}");
    }
}

#[test]
fn a_generator_converses_and_forgets_the_oldest_words() {
    let Some(place) = Workplace::with_models() else { return };
    let said = "My name is Ada.\n\nWhat is my name?\n/new\nHello!\n/quit\nnever read\n";
    let chat = with(&["chat", "--max-tokens", "12", "--json"]);
    let talked = place.run_with_input(&chat, said);
    assert_eq!(talked.code, 0, "{talked:?}");
    let replies = talked.records();
    assert_eq!(replies.len(), 3);
    let tokens: Vec<f64> = replies.iter().map(|reply| number_at(reply, "/prompt_tokens") as f64).collect();
    assert!(tokens[1] > tokens[0] && tokens[2] < tokens[1], "{tokens:?}");
    assert!(number_at(&replies[1], "/cached_tokens") as f64 > tokens[0] - 2.0, "{replies:?}");
    let long = format!("{}\nAnd now?\nAnd then?\n", "The river is long. ".repeat(20));
    let short = with(&["chat", "--max-tokens", "8", "--context", "160"]);
    let talked = place.run_with_input(&short, &long);
    assert_eq!(talked.code, 0, "{talked:?}");
    assert!(talked.stderr.contains("2 of the oldest messages no longer fit"), "{}", talked.stderr);
    assert_eq!(place.run(&chat).code, 1, "nothing said, nothing replied");
}

#[test]
fn a_generator_is_measured() {
    let Some(place) = Workplace::with_models() else { return };
    place.write("text.txt", "The Danube passes ten countries on its way to the sea. ".repeat(120));
    place.write("prompts.jsonl", "{\"prompt\": \"Repeat: The Danube passes ten countries on its way to the sea.\"}\n");
    let arguments = ["bench", "generate", "--text", "text.txt", "--read", "200", "--write", "8", "--repeats", "1"];
    let more = ["--prompts", "prompts.jsonl", "--reply", "24", "--perplexity", "600"];
    let report = place.json(&with(&[&arguments[..], &more[..]].concat()), 0);
    assert_eq!(number_at(&report, "/read_tokens"), 200);
    for speed in ["/read_tokens_per_second", "/write_tokens_per_second", "/replies/tokens_per_second"] {
        assert!(at(&report, speed).as_f64().expect("a number") > 0.0, "{report}");
    }
    assert_eq!(number_at(&report, "/replies/different"), 0);
    let perplexity = at(&report, "/perplexity").as_f64().expect("a number");
    assert!(perplexity > 1.0 && perplexity < 20.0, "a text that repeats itself is foreseen: {perplexity}");
    assert!(place.run(&with(&["bench", "generate", "--text", "none.txt"])).stderr.contains("none.txt"));
}

#[test]
fn m38_a_knowledge_base_is_verified_and_mended() {
    let Some(place) = Workplace::with_rivers() else { return };
    let whole = place.json(&["kb", "verify", "--kb", "rivers.kb"], 0);
    assert!(list_at(&whole, "/findings").is_empty() && number_at(&whole, "/documents") > 0, "{whole}");
    let file = place.path().join("rivers.kb/anchorite.db");
    let mut bytes = std::fs::read(&file).expect("reads");
    let text = b"Danube";
    let at = bytes.windows(text.len()).rposition(|window| window == text).expect("the text");
    bytes[at] = b'X';
    std::fs::write(&file, bytes).expect("writes");
    let damaged = place.run(&["kb", "verify", "--kb", "rivers.kb", "--repair"]);
    assert_eq!(damaged.code, 1, "{damaged:?}");
    assert!(damaged.stdout.contains("ingest it again") || damaged.stdout.contains("audit"), "{damaged:?}");
}
