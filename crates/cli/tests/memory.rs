//! A knowledge base as its owner's memory: who may see what, what is kept for how long, what was, and why something is not
//! found.

mod common;

use std::fs;
use std::path::Path;

use common::{Workplace, at, each_text, list_at, number_at, text_at};

/// Public notes, Ann's own, and those of the crew.
fn with_owners() -> Option<Workplace> {
    let place = Workplace::with_models()?;
    place.write("public/ferry.txt", "The ferry to the island leaves at nine in the morning.\n");
    place.write("ann/diary.txt", "The ferry to the island made me seasick; I hid the silver whistle.\n");
    place.write("crew/rota.txt", "The ferry to the island is steered by Olaf on Mondays.\n");
    for arguments in [
        vec!["ingest", "public", "--kb", "k.kb", "--by", "harbour"],
        vec!["ingest", "ann", "--kb", "k.kb", "--owner", "ann", "--by", "ann"],
        vec!["ingest", "crew", "--kb", "k.kb", "--owner", "olaf", "--access", "crew"],
    ] {
        let run = place.run(&arguments);
        assert_eq!(run.code, 0, "{run:?}");
    }
    Some(place)
}

fn sources(place: &Workplace, viewer: &[&str]) -> Vec<String> {
    let search = ["search", "the ferry to the island", "--kb", "k.kb"];
    let found = place.json(&[&search[..], viewer].concat(), 0);
    let mut names: Vec<String> =
        each_text(list_at(&found, "/results"), "source").into_iter().map(str::to_owned).collect();
    names.sort();
    names
}

#[test]
fn m37_search_ask_lists_and_exports_show_what_the_viewer_may_see() {
    let Some(place) = with_owners() else { return };
    assert_eq!(sources(&place, &[]), ["ann/diary.txt", "crew/rota.txt", "public/ferry.txt"]);
    assert_eq!(sources(&place, &["--as", "ann"]), ["ann/diary.txt", "public/ferry.txt"]);
    assert_eq!(sources(&place, &["--as", "eve", "--label", "crew"]), ["crew/rota.txt", "public/ferry.txt"]);
    assert_eq!(sources(&place, &["--as", "eve"]), ["public/ferry.txt"]);
    let question = "Where is the silver whistle of the ferry?";
    let asked = ["ask", question, "--kb", "k.kb", "--as", "eve", "--no-generator", "--json"];
    let answer = place.run(&asked);
    assert!(!answer.stdout.contains("silver whistle; ") && !answer.stdout.contains("seasick"), "{answer:?}");
    assert!(place.run(&["kb", "show", "ann/diary.txt", "--kb", "k.kb", "--as", "eve"]).stdout.is_empty());
    let why = place.json(&["kb", "why-not", "ann/diary.txt", "ferry", "--kb", "k.kb", "--as", "eve"], 1);
    let never = place.json(&["kb", "why-not", "no/such.txt", "ferry", "--kb", "k.kb", "--as", "eve"], 1);
    assert_eq!(at(&why, "/stages"), at(&never, "/stages"), "what may not be seen is as if it were not there");
    let export = place.run(&["kb", "export", "out", "--kb", "k.kb", "--as", "eve"]);
    assert_eq!(export.code, 0, "{export:?}");
    for_each_file(&place.path().join("out"), &mut |path, text| {
        assert!(!text.contains("seasick") && !text.contains("Olaf"), "{}", path.display());
        assert!(!text.contains("diary"), "{}", path.display());
    });
    let audit = place.json(&["kb", "audit", "--kb", "k.kb"], 0);
    assert_eq!(each_text(audit.as_array().expect("a list"), "actor")[1..], ["ann", "harbour"]);
}

fn for_each_file(folder: &Path, see: &mut dyn FnMut(&Path, &str)) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            for_each_file(&path, see);
        } else {
            see(&path, &String::from_utf8_lossy(&fs::read(&path).expect("read")));
        }
    }
}

#[test]
fn m36_conditions_and_recency_choose_and_order() {
    let Some(place) = Workplace::with_models() else { return };
    let lines: Vec<String> = [(2010, "2010-03-01", "old"), (2020, "2020-03-01", "mid"), (2026, "2026-11-01", "new")]
        .into_iter()
        .map(|(year, date, id)| {
            format!("{{\"_id\": \"{id}\", \"text\": \"The toll of the bridge.\", \"title\": \"Tolls {id}\", \"year\": {year}, \"date\": \"{date}\"}}")
        })
        .collect();
    place.write("tolls.jsonl", lines.join("\n"));
    assert_eq!(place.run(&["ingest", "tolls.jsonl", "--kb", "k.kb"]).code, 0);
    let found = |more: &[&str], code| {
        let search = ["search", "the toll of the bridge", "--kb", "k.kb", "--no-rerank"];
        let found = place.json(&[&search[..], more].concat(), code);
        each_text(list_at(&found, "/results"), "source").into_iter().map(str::to_owned).collect::<Vec<String>>()
    };
    assert_eq!(found(&["--where", "year >= 2020 and year < 2026"], 0), ["tolls.jsonl#mid"]);
    assert_eq!(found(&["--where", "dated > 2025-01-01"], 0), ["tolls.jsonl#new"]);
    assert!(found(&["--where", "year > 3000"], 1).is_empty());
    let by_age = found(&["--half-life", "365"], 0);
    assert_eq!(by_age.first().map(String::as_str), Some("tolls.jsonl#new"));
    place.run(&["search", "toll", "--kb", "k.kb", "--where", "year >"]).is_refused(&["--where", "character 7"]);
    let why = place.json(&["kb", "why-not", "tolls.jsonl#old", "toll", "--kb", "k.kb", "--where", "year > 2015"], 1);
    assert_eq!(text_at(&why, "/lost_at"), "filter");
}

#[test]
fn m38_history_diff_rollback_and_what_is_gone_for_good() {
    let Some(place) = Workplace::with_models() else { return };
    place.write("d/a.txt", "The granite quarry is open on Fridays.\n");
    place.write("d/b.txt", "The marble quarry is closed.\n");
    assert_eq!(place.run(&["ingest", "d", "--kb", "k.kb"]).code, 0);
    let corrected = place.write("right.txt", "The granite quarry is open on Sundays.\n");
    let corrected = corrected.to_str().expect("Unicode");
    assert_eq!(place.run(&["kb", "correct", "d/a.txt", corrected, "--kb", "k.kb"]).code, 0);
    let diff = place.json(&["kb", "diff", "1", "--kb", "k.kb"], 0);
    assert_eq!(text_at(&diff, "/0/kind"), "replaced");
    assert!(place.run(&["kb", "show", "d/a.txt", "--kb", "k.kb"]).stdout.contains("Sundays"));
    let back = place.json(&["kb", "rollback", "1", "--kb", "k.kb"], 0);
    assert_eq!((number_at(&back, "/replaced"), number_at(&back, "/generation")), (1, 3));
    assert!(place.run(&["kb", "show", "d/a.txt", "--kb", "k.kb"]).stdout.contains("Fridays"));
    // Deleted is deleted, in every file.
    let deleted = place.json(&["kb", "delete", "d/a.txt", "--kb", "k.kb"], 0);
    assert_eq!(number_at(&deleted, "/deleted/documents"), 1);
    place.run(&["kb", "rollback", "3", "--kb", "k.kb"]).is_refused(&["d/a.txt", "--without-erased"]);
    for_each_file(&place.path().join("k.kb"), &mut |path, text| {
        assert!(!text.to_lowercase().contains("granite"), "{}", path.display());
    });
    let why = place.json(&["kb", "why-not", "d/a.txt", "granite quarry", "--kb", "k.kb"], 1);
    assert!(text_at(&why, "/stages/0/finding").contains("erase"), "{why:#}");
    let compact = place.run(&["kb", "compact", "--kb", "k.kb"]);
    assert_eq!(compact.code, 0, "{compact:?}");
    place.run(&["kb", "rollback", "1", "--kb", "k.kb"]).is_refused(&["history", "begins"]);
    assert_eq!(place.run(&["kb", "verify", "--kb", "k.kb"]).code, 0);
}

#[test]
fn m37_threads_that_read_a_deleted_document_go_with_it() {
    let Some(place) = Workplace::with_models() else { return };
    place.write("d/a.txt", "The lighthouse keeper is called Brunhilde.\n");
    place.write("d/b.txt", "The harbour has four cranes.\n");
    assert_eq!(place.run(&["ingest", "d", "--kb", "k.kb"]).code, 0);
    let ask = ["ask", "Who is the lighthouse keeper?", "--kb", "k.kb", "--thread", "one", "--no-generator"];
    assert!(place.run(&ask).code < 2);
    let deleted = place.json(&["kb", "delete", "d/a.txt", "--kb", "k.kb"], 0);
    assert_eq!(each_text_of(list_at(&deleted, "/threads")), ["one"]);
    for_each_file(&place.path().join("k.kb"), &mut |path, text| {
        assert!(!text.to_lowercase().contains("brunhilde"), "{}", path.display());
    });
}

fn each_text_of(list: &[serde_json::Value]) -> Vec<&str> {
    list.iter().filter_map(|value| value.as_str()).collect()
}

#[test]
fn m37_secrets_are_told_of_redacted_or_refused() {
    let Some(place) = Workplace::with_models() else { return };
    // Put together here, so that no reader of this file takes it for a real one.
    let token = format!("{}_{}", "ghp", "abcdefghijklmnopqrstuvwxyz0123456789");
    place.write("d/notes.txt", format!("The deploy token is {token} for now.\n"));
    let report =
        |policy: &str, code| place.json(&["ingest", "d", "--kb", &format!("{policy}.kb"), "--secrets", policy], code);
    let flagged = report("flag", 0);
    assert!(text_at(&flagged, "/warnings/0/reason").contains("an access token"));
    assert!(list_at(&report("allow", 0), "/warnings").is_empty());
    report("redact", 0);
    let shown = place.run(&["kb", "show", "d/notes.txt", "--kb", "redact.kb"]).stdout;
    assert!(shown.contains("The deploy token is ****") && !shown.contains("ghp_"), "{shown}");
    let refused = report("refuse", 1);
    assert!(text_at(&refused, "/failed/0/reason").contains("--secrets"), "{refused:#}");
    place.run(&["ingest", "d", "--kb", "k.kb", "--secrets", "maybe"]).is_refused(&["maybe", "redact"]);
}

#[test]
fn m37_terms_and_labels_are_set_and_kept() {
    let Some(place) = Workplace::with_models() else { return };
    place.write("d/a.txt", "The orchard has pears.\n");
    place.write("d/b.txt", "The orchard has plums.\n");
    assert_eq!(place.run(&["ingest", "d", "--kb", "k.kb"]).code, 0);
    let set =
        ["kb", "set", "d/a.txt", "--kb", "k.kb", "--owner", "ann", "--expires", "2020-01-01", "--meta", "kind=fruit"];
    assert_eq!(place.run(&set).code, 0);
    let sources = place.json(&["kb", "sources", "--kb", "k.kb"], 0);
    assert_eq!(each_text(sources.as_array().expect("a list"), "source"), ["d/b.txt"], "what has expired is not shown");
    let expired = place.json(&["kb", "expire", "--kb", "k.kb"], 0);
    assert_eq!(number_at(&expired, "/expired/sources"), 1);
    place.run(&["kb", "set", "d/b.txt", "--kb", "k.kb", "--expires", "soon"]).is_refused(&["--expires", "soon"]);
    place.run(&["kb", "set", "nobody", "--kb", "k.kb", "--owner", "x"]).is_refused(&["nobody", "nothing was changed"]);
}

#[test]
fn m48_why_not_names_the_stage_and_the_remedy() {
    let Some(place) = Workplace::with_rivers() else { return };
    let all = place.json(&["kb", "list", "--kb", "rivers.kb"], 0);
    let names = each_text(all.as_array().expect("a list"), "source");
    let query = "Which river flows through Rome?";
    let best = place.json(&["search", query, "--kb", "rivers.kb"], 0);
    let order: Vec<String> = each_text(list_at(&best, "/results"), "source").into_iter().map(str::to_owned).collect();
    let first = place.json(&["kb", "why-not", &order[0], query, "--kb", "rivers.kb"], 0);
    assert_eq!(number_at(&first, "/rank"), 1);
    let last = names.iter().find(|name| !order[..1].contains(&(**name).to_owned())).expect("another");
    let lost = place.json(&["kb", "why-not", last, query, "--kb", "rivers.kb", "-k", "1"], 1);
    assert!(["rerank", "fusion", "grade"].contains(&text_at(&lost, "/lost_at")), "{lost:#}");
    assert!(text_at(&lost, "/remedy").contains("-k"), "{lost:#}");
    let never = place.json(&["kb", "why-not", "elsewhere.txt", query, "--kb", "rivers.kb"], 1);
    assert_eq!(text_at(&never, "/stages/0/finding"), "it was never taken in");
}

#[test]
fn m37_what_is_followed_where_documents_contradict_each_other_is_a_rule() {
    let Some(place) = Workplace::with_models() else { return };
    place.write("old/bridge.txt", "The Wenlow bridge is 77 metres long.\n");
    place.write("new/bridge.txt", "The Wenlow bridge is 418 metres long. It was widened by the county.\n");
    for arguments in [
        &["ingest", "old", "--kb", "k.kb", "--owner", "ann", "--access", "public", "--dated", "2001-05-06"][..],
        &["ingest", "new", "--kb", "k.kb"],
        &["kb", "set", "new/bridge.txt", "--kb", "k.kb", "--dated", "2020-01-02"],
    ] {
        let run = place.run(arguments);
        assert_eq!(run.code, 0, "{run:?}");
    }
    let ask = |more: &[&str]| {
        let ask = ["ask", "How long is the Wenlow bridge?", "--kb", "k.kb", "--no-generator"];
        place.json(&[&ask[..], more].concat(), 0)
    };
    let both = ask(&[]);
    assert_eq!(text_at(&both, "/conflict/rule"), "both");
    assert_eq!(at(&both, "/conflict/decided"), false);
    for said in ["77 metres", "418 metres", "2001-05-06", "2020-01-02", "Another document says otherwise"] {
        assert!(text_at(&both, "/answer").contains(said), "{said}: {both:#}");
    }
    for (rule, as_whom, followed, other, said) in [
        ("newest", "ann", "418", "77", "of 2001-05-06, says otherwise (the newest is followed"),
        ("owner", "ann", "77", "418", "what is ann's is followed"),
    ] {
        let answer = ask(&["--conflicts", rule, "--as", as_whom]);
        assert_eq!((text_at(&answer, "/conflict/rule"), at(&answer, "/conflict/decided")), (rule, &true.into()));
        let (first, rest) = text_at(&answer, "/answer").split_once('\n').expect("two lines");
        assert!(first.contains(followed) && !first.contains(other), "{answer:#}");
        assert!(rest.contains(other) && rest.contains(said), "{answer:#}");
        assert!(text_at(&answer, "/conflict/followed/citation/quote").contains(followed), "{answer:#}");
    }
    // The setting says the same, and a name that is none is refused.
    place.write("anchorite.toml", "[loop]\nconflicts = \"newest\"\n");
    assert_eq!(text_at(&ask(&[]), "/conflict/rule"), "newest");
    let none = ["ask", "How long?", "--kb", "k.kb", "--conflicts", "oldest"];
    place.run(&none).is_refused(&["oldest", "both, newest and owner"]);
}
