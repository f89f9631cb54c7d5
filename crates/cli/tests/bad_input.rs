//! Bad input gets one line that says what is wrong and what to do, exit code 2, and leaves everything as it was.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use anchorite::core::{Chunk, Document, Embedding, ModelFingerprint};
use anchorite::store::KnowledgeBase;
use common::Workplace;

/// Runs the program, expects the refusal, and that no file was made or changed.
fn refuses(place: &Workplace, arguments: &[&str], says: &[&str]) {
    let before = place.content();
    place.run(arguments).is_refused(says);
    let after = place.content();
    assert!(before == after, "{arguments:?} left {:?}", after.keys().filter(|path| !before.contains_key(*path)));
}

/// The commands that read a knowledge base, so that each can be shown the same fault. None needs a generator.
fn reading(kb: &str) -> Vec<Vec<&str>> {
    vec![
        vec!["search", "Danube", "--kb", kb],
        vec!["ask", "How long is the Danube?", "--kb", kb, "--no-generator", "--profile", "tiny"],
        vec!["kb", "stats", "--kb", kb],
        vec!["kb", "list", "--kb", kb],
        vec!["kb", "show", "1", "--kb", kb],
        vec!["kb", "delete", "1", "--kb", kb],
        vec!["kb", "history", "--kb", kb],
    ]
}

#[test]
fn f24_an_empty_question_is_refused() {
    let place = Workplace::new();
    for question in ["", " ", "\n\t", "\u{a0}"] {
        refuses(&place, &["ask", question, "--kb", "new.kb", "--profile", "tiny"], &["question", "empty"]);
        refuses(&place, &["search", question, "--kb", "new.kb"], &["query", "empty"]);
    }
    refuses(&place, &["rerank", "--query", " "], &["query", "empty"]);
    refuses(&place, &["generate", " "], &["prompt", "empty"]);
}

#[test]
fn f24_an_empty_question_is_refused_by_a_knowledge_base_too() {
    let Some(place) = Workplace::with_rivers() else { return };
    refuses(&place, &["ask", "", "--kb", "rivers.kb", "--profile", "tiny"], &["question", "empty"]);
    refuses(&place, &["search", "  ", "--kb", "rivers.kb"], &["query", "empty"]);
}

#[test]
fn a_question_beyond_its_limit_is_refused() {
    let Some(place) = Workplace::with_rivers() else { return };
    let long = "river ".repeat(2_000);
    for command in ["search", "ask"] {
        refuses(&place, &[command, &long, "--kb", "rivers.kb", "--profile", "tiny"], &["question_chars", "8000"]);
    }
    refuses(&place, &["search", "river", "--kb", "rivers.kb", "-k", "10001"], &["results", "10000"]);
}

#[test]
fn a_missing_file_is_refused() {
    let place = Workplace::new();
    place.write("there.txt", "The Danube is 2,850 km long.");
    let missing = "missing.txt";
    refuses(&place, &["ingest", missing, "--kb", "new.kb"], &[missing, "no such file", "check"]);
    refuses(&place, &["ingest", "there.txt", missing, "--kb", "new.kb"], &[missing]);
    std::os::unix::fs::symlink("nowhere", place.path().join("link.txt")).expect("a link");
    refuses(&place, &["ingest", "link.txt", "--kb", "new.kb"], &["link.txt"]);
}

#[test]
fn an_unreadable_file_is_refused() {
    let Some(place) = Workplace::with_models() else { return };
    place.write("cut.jsonl.gz", b"\x1f\x8b\x08 and no more");
    refuses(&place, &["ingest", "cut.jsonl.gz", "--kb", "new.kb"], &["cut.jsonl.gz", "gzip"]);
    place.write("broken.jsonl", "{\"_id\": \"a\", \"text\": \n");
    refuses(&place, &["ingest", "broken.jsonl", "--kb", "new.kb"], &["broken.jsonl:1", "JSON"]);
    place.write("textless.jsonl", "{\"_id\": \"a\", \"text\": 5}\n");
    refuses(&place, &["ingest", "textless.jsonl", "--kb", "new.kb"], &["textless.jsonl:1", "text"]);

    let locked = place.write("locked.txt", "The Danube is 2,850 km long.");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).expect("permissions");
    if fs::read(&locked).is_ok() {
        eprintln!("skipped: this user may read every file");
    } else {
        refuses(&place, &["ingest", "locked.txt", "--kb", "new.kb"], &["locked.txt", "may be read"]);
    }
    refuses(&place, &["embed", "missing.jsonl"], &["missing.jsonl"]);
    refuses(&place, &["rerank", "--query", "river", "missing.jsonl"], &["missing.jsonl"]);
}

#[test]
fn f18_a_folder_without_models_is_refused() {
    let place = Workplace::new();
    place.write("documents/danube.txt", "The Danube is 2,850 km long.");
    fs::create_dir(place.path().join("empty")).expect("a folder");
    knowledge_base_of_another_embedder(&place, 384);
    let folders = [("empty", "holds no model"), ("documents", "holds no model"), ("nowhere", "does not exist")];
    for (folder, reason) in folders {
        for command in [
            &["ingest", "documents", "--kb", "new.kb"][..],
            &["search", "Danube", "--kb", "other.kb"],
            &["embed"],
            &["models", "path"],
            &["models", "verify"],
        ] {
            let arguments = [command, &["--models", folder]].concat();
            refuses(&place, &arguments, &[folder, reason, "--models", "cargo xtask setup"]);
        }
    }
    refuses(&place, &["rerank", "--query", "river", "--models", "empty"], &["reranker", "cargo xtask setup"]);
    refuses(&place, &["generate", "Hello", "--models", "empty"], &["generator", "cargo xtask setup"]);
}

#[test]
fn f18_asking_with_a_folder_without_models_is_one_line_too() {
    let place = Workplace::new();
    fs::create_dir(place.path().join("empty")).expect("a folder");
    knowledge_base_of_another_embedder(&place, 384);
    for more in [&[][..], &["--no-generator"]] {
        let arguments = [&["ask", "How long is the Danube?", "--kb", "other.kb", "--models", "empty"], more].concat();
        refuses(&place, &arguments, &["empty", "holds no model", "--models", "cargo xtask setup"]);
    }
}

#[test]
fn f18_a_model_asked_for_by_name_and_missing_is_refused() {
    let Some(place) = Workplace::with_rivers() else { return };
    let search = ["search", "Danube", "--kb", "rivers.kb"];
    refuses(&place, &[&search[..], &["--embedder", "nobody"]].concat(), &["embedder", "nobody", "there: "]);
    refuses(&place, &[&search[..], &["--reranker", "nobody"]].concat(), &["reranker", "nobody", "there: "]);
    let ask = ["ask", "How long is the Danube?", "--kb", "rivers.kb", "--generator", "nobody"];
    refuses(&place, &ask, &["generator", "nobody", "there: "]);
    refuses(&place, &["generate", "Hello", "--generator", "nobody"], &["generator", "nobody", "there: "]);
}

#[test]
fn a_plain_file_as_knowledge_base_is_refused() {
    let Some(place) = Workplace::with_models() else { return };
    place.write("file.kb", "precious");
    place.write("folder/notes.txt", "precious");
    let places = [("file.kb", "it is a file"), ("folder", "other things in it"), ("file.kb/below.kb", "is a file")];
    for (kb, reason) in places {
        for arguments in reading(kb) {
            refuses(&place, &arguments, &[kb, "not a knowledge base", reason, "anchorite ingest"]);
        }
        refuses(&place, &["ingest", "folder", "--kb", kb], &[kb, "not a knowledge base", reason]);
    }
    assert_eq!(fs::read(place.path().join("file.kb")).expect("still there"), b"precious");
}

#[test]
fn a_missing_knowledge_base_is_refused() {
    let place = Workplace::new();
    for arguments in reading("missing.kb") {
        refuses(&place, &arguments, &["no knowledge base", "missing.kb", "anchorite ingest"]);
    }
    fs::create_dir(place.path().join("empty.kb")).expect("a folder");
    for arguments in reading("empty.kb") {
        refuses(&place, &arguments, &["no knowledge base", "empty.kb", "anchorite ingest"]);
    }
}

/// A knowledge base with one document whose vector no real model made.
fn knowledge_base_of_another_embedder(place: &Workplace, dimensions: usize) {
    let other = ModelFingerprint { name: "another-embedder".to_owned(), sha256: "ab".repeat(32) };
    let text = "The Danube is 2,850 km long.".to_owned();
    let chunk = Chunk { ordinal: 0, start: 0, end: text.len(), text: text.clone() };
    let document = Document {
        source: "danube.txt".to_owned(),
        title: String::new(),
        text,
        metadata: Default::default(),
        outline: Vec::new(),
    };
    let vector = Embedding::new((1..=dimensions).map(|value| value as f32).collect()).expect("an embedding");
    let mut writer = KnowledgeBase::at(place.path().join("other.kb"))
        .create_or_open_writer(&other, dimensions)
        .expect("a knowledge base");
    let mut batch = writer.begin("test").expect("a batch");
    batch.add(&document, &[(chunk, vector)]).expect("added");
    batch.commit().expect("committed");
}

#[test]
fn f11_a_knowledge_base_made_with_another_embedder_is_refused() {
    let Some(place) = Workplace::with_models() else { return };
    // With as many dimensions as the real embedder's, and with others.
    for dimensions in [384, 8] {
        knowledge_base_of_another_embedder(&place, dimensions);
        place.write("elbe.txt", "The Elbe flows through Dresden.");
        let says = ["other.kb", "another-embedder", &format!("{dimensions} dimensions"), "ingest the documents again"];
        refuses(&place, &["ingest", "elbe.txt", "--kb", "other.kb"], &says);
        refuses(&place, &["search", "Danube", "--kb", "other.kb"], &says);
        refuses(&place, &["search", "Danube", "--kb", "other.kb", "--mode", "dense"], &says);
        let ask = ["ask", "How long is the Danube?", "--kb", "other.kb", "--no-generator", "--profile", "tiny"];
        refuses(&place, &ask, &says);
        fs::remove_dir_all(place.path().join("other.kb")).expect("removed");
    }
}

#[test]
fn f11_words_and_documents_of_such_a_knowledge_base_can_still_be_read() {
    let place = Workplace::new();
    knowledge_base_of_another_embedder(&place, 384);
    let found = place.json(&["search", "Danube", "--kb", "other.kb", "--mode", "bm25", "--no-rerank"], 0);
    assert_eq!(common::text_at(&found, "/results/0/source"), "danube.txt");
    let shown = place.json(&["kb", "show", "danube.txt", "--kb", "other.kb"], 0);
    assert_eq!(common::text_at(&shown, "/document/text"), "The Danube is 2,850 km long.");
}

#[test]
fn unknown_names_are_refused_with_those_that_are_known() {
    let place = Workplace::new();
    let ask = ["ask", "How long is the Danube?", "--kb", "new.kb", "--strategy", "guess"];
    refuses(&place, &ask, &["guess", "simple", "self-rag", "multi-agent"]);
    refuses(&place, &["graph", "guess"], &["guess", "simple", "self-rag", "multi-agent"]);
    for command in [&["doctor"][..], &["search", "Danube", "--kb", "new.kb"], &["kb", "stats", "--kb", "new.kb"]] {
        let device = [command, &["--device", "abacus"]].concat();
        refuses(&place, &device, &["abacus", "cpu", "cuda", "metal"]);
        let profile = [command, &["--profile", "huge"]].concat();
        refuses(&place, &profile, &["huge", "tiny", "small", "base"]);
    }
}

#[test]
fn an_unknown_mode_is_refused_with_those_that_are_known() {
    let place = Workplace::new();
    let search = ["search", "Danube", "--kb", "new.kb", "--mode", "guess"];
    refuses(&place, &search, &["guess", "hybrid", "dense", "bm25"]);
    refuses(&place, &["graph", "simple", "--format", "guess"], &["guess", "mermaid", "dot"]);
}

#[test]
fn a_device_that_the_program_was_built_without_is_refused() {
    if cfg!(any(feature = "cuda", feature = "metal")) {
        eprintln!("skipped: built with a device");
        return;
    }
    let Some(place) = Workplace::with_rivers() else { return };
    for (device, feature) in [("cuda", "cuda"), ("cuda:1", "cuda"), ("metal", "metal")] {
        let search = ["search", "Danube", "--kb", "rivers.kb", "--device", device];
        refuses(&place, &search, &[device, "built without", &format!("--features {feature}")]);
    }
}

#[test]
fn a_bad_settings_file_is_refused() {
    let place = Workplace::new();
    let faults: &[(&str, &[&str])] = &[
        ("profil = \"tiny\"\n", &["profil", "profile"]),
        ("[loop]\nrelevanc = 0.5\n", &["relevanc", "relevance"]),
        ("[limits]\nquestion_char = 5\n", &["question_char", "question_chars"]),
        ("threads = \"many\"\n", &["many"]),
        ("profile = = \"tiny\"\n", &[]),
    ];
    for (content, says) in faults {
        place.write("anchorite.toml", content);
        refuses(&place, &["search", "Danube", "--kb", "new.kb"], &[&["anchorite.toml"], *says].concat());
    }
    fs::rename(place.path().join("anchorite.toml"), place.path().join("mine.toml")).expect("renamed");
    refuses(&place, &["doctor", "--config", "mine.toml"], &["mine.toml"]);
    refuses(&place, &["doctor", "--config", "missing.toml"], &["missing.toml"]);
}

#[test]
fn an_unknown_name_in_a_settings_file_is_refused_with_the_name_of_the_file() {
    let place = Workplace::new();
    for (content, says) in [("profile = \"huge\"\n", "tiny, small, base"), ("device = \"abacus\"\n", "cpu, cuda")] {
        place.write("anchorite.toml", content);
        refuses(&place, &["search", "Danube", "--kb", "new.kb"], &["anchorite.toml", says]);
    }
}

#[test]
fn a_settings_file_can_change_a_limit() {
    let place = Workplace::new();
    place.write("anchorite.toml", "[limits]\nquestion_chars = 5\n");
    refuses(&place, &["search", "Danube", "--kb", "new.kb"], &["question_chars", "6", "5"]);
}

#[test]
fn a_missing_document_is_refused_and_none_is_deleted() {
    let Some(place) = Workplace::with_rivers() else { return };
    let delete = ["kb", "delete", "rivers/danube.txt", "nobody.txt", "--kb", "rivers.kb"];
    refuses(&place, &delete, &["nobody.txt", "nothing was deleted", "anchorite kb list"]);
    assert_eq!(place.run(&["kb", "show", "rivers/danube.txt", "--kb", "rivers.kb"]).code, 0);
}

#[test]
fn a_wrong_command_line_ends_with_code_2_and_prints_no_result() {
    let place = Workplace::new();
    for arguments in [
        &[][..],
        &["guess"],
        &["search"],
        &["search", "Danube"],
        &["search", "Danube", "--kb", "new.kb", "-k", "many"],
        &["search", "Danube", "--kb", "new.kb", "-k", "-1"],
        &["ingest", "--kb", "new.kb"],
        &["ingest", "", "--kb", "new.kb"],
        &["ask", "Danube", "--kb", "new.kb", "--max-rounds", "some"],
        &["kb"],
        &["doctor", "--threads", "some"],
        &["graph"],
    ] {
        let before = place.content();
        let run = place.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
        assert!(!run.stderr.is_empty() && !run.stderr.contains("panicked"), "{run:?}");
        assert!(before == place.content(), "{run:?}");
    }
    for arguments in [&["--help"][..], &["--version"], &["ask", "--help"]] {
        let run = place.run(arguments);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
        assert!(run.stdout.contains("anchorite"), "{run:?}");
    }
}
