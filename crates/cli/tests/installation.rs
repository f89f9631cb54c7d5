//! What is there to work with: models, the state of the installation, and the graphs.

mod common;

use std::path::Path;

use common::{Workplace, at, each_text, list_at, number_at, text_at};

const ROLES: [&str; 3] = ["embedder", "reranker", "generator"];

/// The strategies, each with the nodes that it consists of.
const STRATEGIES: &[(&str, &[&str])] = &[
    ("simple", &["retrieve", "keep_documents", "generate", "grade_generation"]),
    (
        "self-rag",
        &[
            "decide_retrieval",
            "reply",
            "retrieve",
            "grade_documents",
            "generate",
            "grade_generation",
            "hypothesis",
            "transform_query",
        ],
    ),
    ("multi-agent", &["retrieve", "grade_documents", "generate", "grade_generation", "hypothesis", "transform_query"]),
];

#[test]
fn m09_each_strategy_is_drawn_with_all_its_nodes() {
    let place = Workplace::new();
    for (strategy, nodes) in STRATEGIES {
        let mermaid = place.run(&["graph", strategy]);
        assert_eq!((mermaid.code, mermaid.stderr.as_str()), (0, ""), "{mermaid:?}");
        assert!(mermaid.stdout.contains("flowchart TD") && mermaid.stdout.contains(strategy), "{mermaid:?}");
        let dot = place.run(&["graph", strategy, "--format", "dot"]);
        assert!(dot.stdout.starts_with("digraph "), "{dot:?}");
        for drawing in [&mermaid.stdout, &dot.stdout] {
            for node in [*nodes, &["START", "END"]].concat() {
                assert!(drawing.contains(node), "no {node} in {drawing}");
            }
        }
        let document = place.json(&["graph", strategy], 0);
        assert_eq!(text_at(&document, "/strategy"), *strategy);
        assert_eq!(text_at(&document, "/drawing").trim_end(), mermaid.stdout.trim_end());
    }
}

#[test]
fn m04_models_are_listed_with_their_folders_and_the_places_looked_at() {
    let Some(place) = Workplace::with_models() else { return };
    let listed = place.json(&["models", "list"], 0);
    let models = list_at(&listed, "/models");
    for role in ROLES {
        assert!(each_text(models, "role").contains(&role), "no {role} in {listed:#}");
    }
    assert!(each_text(models, "path").iter().all(|path| Path::new(path).exists()), "{listed:#}");
    assert!(!list_at(&listed, "/places").is_empty() && !text_at(&listed, "/places/0/path").is_empty());
    let for_people = place.run(&["models", "list"]);
    assert_eq!(for_people.stdout.lines().count(), models.len(), "{for_people:?}");
    assert!(for_people.stderr.contains("looked at "), "{for_people:?}");

    let used = place.json(&["models", "path", "--profile", "tiny"], 0);
    let used = used.as_array().expect("a list");
    assert_eq!(each_text(used, "role"), ROLES);
    assert_eq!(each_text(used, "name"), ["all-MiniLM-L6-v2", "ms-marco-MiniLM-L-12-v2", "SmolLM2-135M-Instruct"]);
    let for_people = place.run(&["models", "path", "--profile", "tiny"]).stdout;
    assert!(each_text(used, "path").iter().all(|path| for_people.contains(path)), "{for_people}");
}

#[test]
fn m04_a_folder_of_own_models_is_used_before_any_other() {
    let Some(place) = Workplace::with_models() else { return };
    let used = place.json(&["models", "path", "--profile", "tiny"], 0);
    std::fs::create_dir(place.path().join("mine")).expect("a folder");
    for model in used.as_array().expect("a list") {
        let link = place.path().join("mine").join(text_at(model, "/name"));
        std::os::unix::fs::symlink(text_at(model, "/path"), link).expect("a link");
    }
    let mine = place.json(&["models", "path", "--profile", "tiny", "--models", "mine"], 0);
    let mine = mine.as_array().expect("a list");
    assert!(each_text(mine, "path").iter().all(|path| path.starts_with("mine/")), "{mine:?}");
}

#[test]
fn models_are_verified_file_by_file() {
    let Some(place) = Workplace::with_models() else { return };
    let verified = place.json(&["models", "verify", "--profile", "tiny"], 0);
    let models = verified.as_array().expect("a list");
    assert_eq!(each_text(models, "role"), ROLES);
    for model in models {
        let files = list_at(model, "/files");
        assert!(!files.is_empty(), "{model:#}");
        for file in files {
            assert_eq!(text_at(file, "/sha256").len(), 64, "{file:#}");
            let path = Path::new(text_at(model, "/path")).join(text_at(file, "/name"));
            assert_eq!(std::fs::metadata(path).expect("a file").len(), number_at(file, "/bytes"));
        }
    }
    let for_people = place.run(&["models", "verify", "--profile", "tiny"]);
    assert_eq!(for_people.stdout.matches(" is whole (").count(), 3, "{for_people:?}");
}

#[test]
fn m01_doctor_opens_every_model_and_names_the_device() {
    let Some(place) = Workplace::with_models() else { return };
    let report = place.json(&["doctor", "--profile", "tiny"], 0);
    assert_eq!(at(&report, "/healthy"), true, "{report:#}");
    let checks = list_at(&report, "/checks");
    assert!(checks.iter().all(|check| check["good"] == true), "{report:#}");
    for role in ROLES {
        let check = checks.iter().find(|check| check["what"] == role).expect("a check for each role");
        assert!(text_at(check, "/finding").contains(" on cpu ("), "{check:#}");
    }
}

#[test]
fn doctor_finds_what_is_missing_and_says_what_to_do() {
    let place = Workplace::new();
    std::fs::create_dir(place.path().join("empty")).expect("a folder");
    let report = place.json(&["doctor", "--models", "empty"], 1);
    assert_eq!(at(&report, "/healthy"), false);
    for role in ROLES {
        let check = list_at(&report, "/checks").iter().find(|check| check["what"] == role).expect("a check");
        assert_eq!(check["good"], false, "{check:#}");
        assert!(text_at(check, "/finding").contains("cargo xtask setup"), "{check:#}");
    }
    let for_people = place.run(&["doctor", "--models", "empty"]);
    assert_eq!(for_people.stdout.matches("BAD ").count(), 3, "{for_people:?}");
}
