//! A knowledge base from the command line: taking documents in, looking at them, replacing and deleting them.

mod common;

use std::io::Write;
use std::process::Stdio;

use common::{RIVERS, Workplace, at, each_text, list_at, number_at, text_at};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

const DANUBE: &str = "The Danube rises in the Black Forest and flows into the Black Sea.\n";

fn compressed(content: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content.as_bytes()).expect("written");
    encoder.finish().expect("finished")
}

/// The number of each outcome in the report of an ingest.
fn outcomes(report: &Value) -> [u64; 5] {
    ["added", "replaced", "duplicates", "metadata_updated", "unchanged"]
        .map(|name| number_at(report, &format!("/{name}")))
}

/// Files of every format, in a folder, alone, and compressed.
fn documents_of_every_format(place: &Workplace) {
    place.write("docs/danube.txt", DANUBE);
    place.write("docs/rhine.md", "# The Rhine\n\nThe Rhine flows past Cologne.\n");
    place.write("docs/deep/er/elbe.txt", "The Elbe flows through Dresden.\n");
    place.write("docs/copies/danube.txt", DANUBE);
    place.write("docs/map.png", [0x89, b'P', b'N', b'G', 0, 1, 2]);
    place.write("docs/.hidden.txt", "Not to be read.\n");
    place.write("docs/blank.txt", " \n");
    place.write(
        "rivers.jsonl",
        "{\"_id\": \"tiber\", \"title\": \"The Tiber\", \"text\": \"The Tiber flows through Rome.\", \"km\": 405}\n\n\
         {\"text\": \"The Arno flows through Florence.\"}\n",
    );
    place.write("more.jsonl.gz", compressed("{\"_id\": 7, \"title\": \"\", \"text\": \"The Po flows past Turin.\"}\n"));
    place.write("notes.txt.gz", compressed("The Isar flows through Munich.\n"));
}

#[test]
fn m33_every_format_is_taken_in_and_a_second_run_adds_nothing() {
    let Some(place) = Workplace::with_models() else { return };
    documents_of_every_format(&place);
    let ingest = ["ingest", "docs", "rivers.jsonl", "more.jsonl.gz", "notes.txt.gz", "-", "--kb", "my.kb"];
    let input = "# The Loire\n\nThe Loire flows past Orléans.\n";

    let first = place.run_with_input(&[&ingest[..], &["--json"]].concat(), input);
    assert_eq!(first.code, 0, "{first:?}");
    let report = first.json();
    assert_eq!(outcomes(&report), [8, 0, 1, 0, 0], "{report:#}");
    assert_eq!((number_at(&report, "/chunks"), number_at(&report, "/generation")), (8, 1));
    assert_eq!(list_at(&report, "/failed"), [] as [Value; 0]);
    let skipped = list_at(&report, "/skipped");
    assert_eq!(each_text(skipped, "source"), ["docs/.hidden.txt", "docs/blank.txt", "docs/map.png"]);
    assert!(each_text(skipped, "reason").iter().all(|reason| !reason.is_empty()));

    let listed = place.json(&["kb", "list", "--kb", "my.kb"], 0);
    let documents = listed.as_array().expect("a list");
    let mut sources = each_text(documents, "source");
    sources.sort_unstable();
    let expected = [
        "-",
        "docs/copies/danube.txt",
        "docs/deep/er/elbe.txt",
        "docs/rhine.md",
        "more.jsonl.gz#7",
        "notes.txt.gz",
        "rivers.jsonl#3",
        "rivers.jsonl#tiber",
    ];
    assert_eq!(sources, expected);
    let title_of =
        |source: &str| documents.iter().find(|one| one["source"] == source).map(|one| text_at(one, "/title"));
    assert_eq!(title_of("docs/rhine.md"), Some("The Rhine"));
    assert_eq!(title_of("docs/deep/er/elbe.txt"), Some("elbe"));
    assert_eq!(title_of("-"), Some("The Loire"));

    let second = place.run_with_input(&ingest, input);
    assert_eq!(second.code, 0, "{second:?}");
    assert_eq!(second.stdout, "nothing new: 9 documents were there already\n");
    let third = place.run_with_input(&[&ingest[..], &["--json"]].concat(), input).json();
    assert_eq!(outcomes(&third), [0, 0, 0, 0, 9], "{third:#}");
    assert_eq!(number_at(&third, "/generation"), 1);
    let history = place.json(&["kb", "history", "--kb", "my.kb"], 0);
    assert_eq!(history.as_array().expect("a list").len(), 1, "{history:#}");
    assert_eq!(place.json(&["kb", "list", "--kb", "my.kb"], 0), listed);
}

#[test]
fn m33_the_report_for_people_counts_what_was_done() {
    let Some(place) = Workplace::with_models() else { return };
    place.write("docs/danube.txt", DANUBE);
    place.write("docs/copies/danube.txt", DANUBE);
    place.write("docs/map.png", [0x89, b'P', b'N', b'G', 0, 1, 2]);
    let ingest = place.run(&["ingest", "docs", "--kb", "my.kb"]);
    assert_eq!(ingest.code, 0, "{ingest:?}");
    assert!(
        ingest.stdout.starts_with("1 added, 0 replaced, 1 duplicates, 0 unchanged; 1 chunks; generation 1;"),
        "{ingest:?}"
    );
    assert!(ingest.stderr.contains("1 skipped:") && ingest.stderr.contains("docs/map.png: "), "{ingest:?}");
    let quiet = place.run(&["ingest", "docs", "--kb", "my.kb", "--quiet"]);
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""), "{quiet:?}");
}

#[test]
fn m33_a_fault_in_one_file_does_not_keep_the_others_out() {
    let Some(place) = Workplace::with_models() else { return };
    place.write("docs/danube.txt", DANUBE);
    place.write("docs/records.jsonl", "{\"_id\": \"a\", \"text\": \"The Po flows past Turin.\"}\n{\"_id\": \"b\"}\n");
    place.write("docs/cut.txt.gz", &compressed("The Isar flows through Munich.\n")[..20]);
    let report = place.json(&["ingest", "docs", "--kb", "my.kb"], 0);
    assert_eq!(number_at(&report, "/added"), 2, "{report:#}");
    let reasons = each_text(list_at(&report, "/failed"), "reason");
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons[0].contains("cut.txt.gz") && reasons[1].contains("records.jsonl:2"), "{reasons:?}");
}

#[test]
fn nothing_to_take_in_makes_no_knowledge_base() {
    let Some(place) = Workplace::with_models() else { return };
    place.write("docs/map.png", [0x89, b'P', b'N', b'G', 0, 1, 2]);
    let before = place.content();
    for arguments in [&["ingest", "docs", "--kb", "my.kb"][..], &["ingest", "-", "--kb", "my.kb"]] {
        let ingest = place.run(arguments);
        assert_eq!(ingest.code, 1, "{ingest:?}");
        assert!(before == place.content(), "{ingest:?}");
    }
}

#[test]
fn m34_a_changed_source_takes_the_place_of_what_it_held() {
    let Some(place) = Workplace::with_models() else { return };
    let lake = place.write("lakes/ammersee.txt", "The Ammersee is famous for its steamboats.\n");
    place.write("lakes/more.jsonl", "{\"_id\": \"a\", \"text\": \"The Walchensee is deep.\", \"metres\": 190}\n");
    place.json(&["ingest", "lakes", "--kb", "my.kb"], 0);
    std::fs::write(lake, "The Ammersee is famous for its monastery.\n").expect("written");
    place.write("lakes/more.jsonl", "{\"_id\": \"a\", \"text\": \"The Walchensee is deep.\", \"metres\": 192}\n");

    let report = place.json(&["ingest", "lakes", "--kb", "my.kb"], 0);
    assert_eq!(outcomes(&report), [0, 1, 0, 1, 0], "{report:#}");
    assert_eq!(number_at(&report, "/generation"), 2);
    let shown = place.json(&["kb", "show", "lakes/ammersee.txt", "--kb", "my.kb"], 0);
    assert_eq!(text_at(&shown, "/document/text"), "The Ammersee is famous for its monastery.\n");
    assert_eq!(number_at(&shown, "/document/generation"), 2);
    let record = place.json(&["kb", "show", "lakes/more.jsonl#a", "--kb", "my.kb"], 0);
    assert_eq!((number_at(&record, "/document/metadata/metres"), number_at(&record, "/document/generation")), (192, 1));

    let by_words = place.json(&["search", "steamboats", "--kb", "my.kb", "--mode", "bm25", "--no-rerank"], 1);
    assert_eq!(list_at(&by_words, "/results"), [] as [Value; 0]);
    let by_meaning = place.json(&["search", "steamboats", "--kb", "my.kb"], 0);
    assert!(list_at(&by_meaning, "/results").iter().all(|one| !text_at(one, "/text").contains("steamboats")));
    let stats = place.json(&["kb", "stats", "--kb", "my.kb"], 0);
    assert_eq!((number_at(&stats, "/documents"), number_at(&stats, "/chunks")), (2, 2), "{stats:#}");
}

#[test]
fn m34_a_deleted_document_is_never_found() {
    let Some(place) = Workplace::with_rivers() else { return };
    let elbe = place.json(&["kb", "show", "rivers/elbe.txt", "--kb", "rivers.kb"], 0);
    let number = number_at(&elbe, "/document/id").to_string();
    let deleted = place.json(&["kb", "delete", "rivers/danube.txt", &number, "--kb", "rivers.kb"], 0);
    assert_eq!(number_at(&deleted, "/generation"), 2);
    for what in ["sources", "documents", "chunks"] {
        assert_eq!(number_at(&deleted, &format!("/deleted/{what}")), 2, "{deleted:#}");
    }

    for gone in [RIVERS[0], RIVERS[1]] {
        let (name, text) = gone;
        for more in [&["--mode", "hybrid"][..], &["--mode", "dense", "--no-rerank"], &["--mode", "bm25", "--no-rerank"]]
        {
            let found = place.run(&[&["search", text, "--kb", "rivers.kb", "-k", "50", "--json"], more].concat());
            assert!(found.code == 0 || found.code == 1, "{found:?}");
            let sources = found.json();
            let sources = each_text(list_at(&sources, "/results"), "source");
            assert!(!sources.contains(&format!("rivers/{name}").as_str()), "{more:?}: {sources:?}");
        }
        let shown = place.run(&["kb", "show", &format!("rivers/{name}"), "--kb", "rivers.kb"]);
        assert_eq!((shown.code, shown.stdout.as_str()), (1, ""), "{shown:?}");
    }
    let asked =
        place.json(&["ask", "How long is the Danube?", "--kb", "rivers.kb", "--no-generator", "--profile", "tiny"], 1);
    assert!(!text_at(&asked, "/answer").contains("2,850"), "{asked:#}");

    // What is taken in again is a new document: numbers are not used twice.
    let again = place.json(&["ingest", "rivers", "--kb", "rivers.kb"], 0);
    assert_eq!(outcomes(&again), [2, 0, 0, 0, 2], "{again:#}");
    let shown = place.json(&["kb", "show", "rivers/elbe.txt", "--kb", "rivers.kb"], 0);
    assert!(number_at(&shown, "/document/id") > 4, "{shown:#}");
    assert_eq!(place.run(&["kb", "show", &number, "--kb", "rivers.kb"]).code, 1);
}

/// In the database, its log and the indexes: what somebody deleted is gone, not just unlisted.
#[test]
fn m34_a_deleted_text_is_in_no_file_of_the_knowledge_base() {
    let Some(place) = Workplace::with_models() else { return };
    let kept_aside = Workplace::new();
    let secret = kept_aside.write("diary.txt", "The xylophone of Passau was hidden under the bridge.\n");
    place.write("docs/elbe.txt", "The Elbe flows through Dresden.\n");
    let ingest = ["ingest", "docs", secret.to_str().expect("UTF-8"), "--kb", "my.kb"];
    assert_eq!(number_at(&place.json(&ingest, 0), "/added"), 2);
    let holding = |word: &str| -> Vec<std::path::PathBuf> {
        let holds = |content: &[u8]| content.windows(word.len()).any(|window| window == word.as_bytes());
        let content = place.content();
        content.into_iter().filter(|(path, bytes)| path.is_file() && holds(bytes)).map(|(path, _)| path).collect()
    };
    assert!(!holding("xylophone").is_empty());
    place.json(&["kb", "delete", secret.to_str().expect("UTF-8"), "--kb", "my.kb"], 0);
    assert_eq!(holding("xylophone"), Vec::<std::path::PathBuf>::new());
}

#[test]
fn m34_one_of_two_sources_can_go_and_the_document_stays() {
    let Some(place) = Workplace::with_models() else { return };
    place.write("docs/a/danube.txt", DANUBE);
    place.write("docs/b/danube.txt", DANUBE);
    place.json(&["ingest", "docs", "--kb", "my.kb"], 0);
    let shown = place.json(&["kb", "show", "docs/b/danube.txt", "--kb", "my.kb"], 0);
    assert_eq!(text_at(&shown, "/document/source"), "docs/a/danube.txt");
    assert_eq!(at(&shown, "/document/aliases"), &serde_json::json!(["docs/b/danube.txt"]));
    let deleted = place.json(&["kb", "delete", "docs/a/danube.txt", "--kb", "my.kb"], 0);
    assert_eq!((number_at(&deleted, "/deleted/sources"), number_at(&deleted, "/deleted/documents")), (1, 0));
    let found = place.json(&["search", "Danube", "--kb", "my.kb"], 0);
    assert_eq!(each_text(list_at(&found, "/results"), "source"), ["docs/b/danube.txt"]);
}

#[test]
fn m35_a_document_is_shown_with_its_origin_and_its_chunks() {
    let Some(place) = Workplace::with_rivers() else { return };
    let shown = place.json(&["kb", "show", "rivers/rhine.md", "--kb", "rivers.kb"], 0);
    let document = at(&shown, "/document");
    assert_eq!(text_at(document, "/title"), "The Rhine");
    assert_eq!(text_at(document, "/text"), RIVERS[2].1);
    assert_eq!(text_at(document, "/hash").len(), 64);
    assert_eq!(number_at(document, "/generation"), 1);
    assert!(number_at(document, "/added_at") > 1_600_000_000_000, "milliseconds since 1970: {document:#}");
    let chunks = list_at(&shown, "/chunks");
    assert!(!chunks.is_empty());
    for chunk in chunks {
        let span = number_at(chunk, "/start") as usize..number_at(chunk, "/end") as usize;
        assert_eq!(RIVERS[2].1.get(span), Some(text_at(chunk, "/text")), "{chunk:#}");
    }

    let for_people = place.run(&["kb", "show", "rivers/rhine.md", "--kb", "rivers.kb"]);
    assert_eq!(for_people.code, 0, "{for_people:?}");
    for piece in ["rivers/rhine.md", "The Rhine", text_at(document, "/hash"), "[0..", "Düsseldorf"] {
        assert!(for_people.stdout.contains(piece), "no {piece:?} in {for_people:?}");
    }
}

#[test]
fn the_state_of_a_knowledge_base_is_told_in_text_and_in_json() {
    let Some(place) = Workplace::with_rivers() else { return };
    let stats = place.json(&["kb", "stats", "--kb", "rivers.kb"], 0);
    let bytes: usize = RIVERS.iter().map(|(_, text)| text.len()).sum();
    for (field, value) in
        [("generation", 1), ("documents", 4), ("sources", 4), ("chunks", 4), ("text_bytes", bytes as u64)]
    {
        assert_eq!(number_at(&stats, &format!("/{field}")), value, "{stats:#}");
    }
    assert_eq!(text_at(&stats, "/embedder/name"), "all-MiniLM-L6-v2");
    assert_eq!(text_at(&stats, "/embedder/sha256").len(), 64);
    assert_eq!(number_at(&stats, "/dimensions"), 384);
    assert!(number_at(&stats, "/database_bytes") > 0);
    assert!(at(&stats, "/caches").is_array());
    let for_people = place.run(&["kb", "stats", "--kb", "rivers.kb"]).stdout;
    for piece in
        ["documents   4 (from 4 sources)", "chunks      4", "generation  1", "all-MiniLM-L6-v2, 384 dimensions"]
    {
        assert!(for_people.contains(piece), "no {piece:?} in {for_people}");
    }

    let page = place.json(&["kb", "list", "--kb", "rivers.kb", "--offset", "1", "--limit", "2"], 0);
    let page = page.as_array().expect("a list");
    assert_eq!(each_text(page, "source"), ["rivers/elbe.txt", "rivers/rhine.md"]);
    assert_eq!(number_at(&page[0], "/bytes"), RIVERS[1].1.len() as u64);
    let listed = place.run(&["kb", "list", "--kb", "rivers.kb"]).stdout;
    assert_eq!(listed.lines().count(), 4, "{listed}");
    assert!(listed.contains("rivers/tiber.md  The Tiber"), "{listed}");
    assert_eq!(place.run(&["kb", "list", "--kb", "rivers.kb", "--offset", "4"]).code, 1);

    let deleted = place.run(&["kb", "delete", "rivers/elbe.txt", "--kb", "rivers.kb"]);
    assert_eq!(deleted.stdout, "1 sources, 1 documents and 1 chunks deleted; generation 2\n", "{deleted:?}");
    let history = place.json(&["kb", "history", "--kb", "rivers.kb"], 0);
    let generations = history.as_array().expect("a list");
    let summary: Vec<_> = generations
        .iter()
        .map(|one| {
            let counts = (number_at(one, "/documents_added"), number_at(one, "/documents_removed"));
            (number_at(one, "/id"), counts, text_at(one, "/note"))
        })
        .collect();
    assert_eq!(summary, [(2, (0, 1), "delete"), (1, (4, 0), "ingest")], "the newest first");
    let for_people = place.run(&["kb", "history", "--kb", "rivers.kb", "--limit", "1"]).stdout;
    assert_eq!(for_people.lines().count(), 1, "{for_people}");
    assert!(for_people.contains("+0 -1 documents, +0 -1 chunks  delete"), "{for_people}");
}

/// The reading end is gone before the program starts, so that its first word finds nobody.
#[test]
fn f37_a_closed_pipe_ends_the_program_quietly() {
    let Some(place) = Workplace::with_rivers() else { return };
    for arguments in [
        &["kb", "list", "--kb", "rivers.kb"][..],
        &["kb", "list", "--kb", "rivers.kb", "--json"],
        &["kb", "show", "1", "--kb", "rivers.kb"],
        &["kb", "history", "--kb", "rivers.kb"],
        &["search", "Danube", "--kb", "rivers.kb"],
        &["graph", "multi-agent"],
        &["models", "list", "--json"],
        &["--help"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let child = place.command(arguments).stdout(writer).stderr(Stdio::piped()).spawn().expect("the program starts");
        let output = child.wait_with_output().expect("the program ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("panicked") && !stderr.contains("roken pipe"), "{arguments:?}: {stderr}");
    }
}
