//! Search from the command line: what each stage thought of a passage, modes, and finding nothing.

mod common;

use common::{RIVERS, Run, Workplace, at, each_text, list_at, number_at, text_at};
use serde_json::Value;

const QUERY: &str = "Which river flows through Rome?";

/// The ranks that a stage gave, in the order of the results; `None` where it did not see the passage.
fn ranks(results: &[Value], stage: &str) -> Vec<Option<u64>> {
    results.iter().map(|result| at(result, &format!("/scores/{stage}_rank")).as_u64()).collect()
}

fn scores(results: &[Value], stage: &str) -> Vec<Option<f64>> {
    results.iter().map(|result| at(result, &format!("/scores/{stage}")).as_f64()).collect()
}

/// Ranks are 1 … n, each once, and a better rank never has a lower score.
fn ranks_follow_scores(results: &[Value], stage: &str) {
    let mut pairs: Vec<(u64, f64)> = ranks(results, stage)
        .into_iter()
        .zip(scores(results, stage))
        .filter_map(|(rank, score)| Some((rank?, score?)))
        .collect();
    assert!(!pairs.is_empty(), "{stage}");
    pairs.sort_by_key(|(rank, _)| *rank);
    let given: Vec<u64> = pairs.iter().map(|(rank, _)| *rank).collect();
    assert_eq!(given, (1..=pairs.len() as u64).collect::<Vec<_>>(), "{stage}");
    assert!(pairs.is_sorted_by(|better, worse| better.1 >= worse.1), "{stage}: {pairs:?}");
}

fn all_none<T>(values: &[Option<T>]) -> bool {
    values.iter().all(Option::is_none)
}

#[test]
fn m26_m32_each_stage_reports_its_rank_and_its_score() {
    let Some(place) = Workplace::with_rivers() else { return };
    let found = place.json(&["search", QUERY, "--kb", "rivers.kb"], 0);
    assert_eq!((text_at(&found, "/query"), number_at(&found, "/generation")), (QUERY, 1));
    let results = list_at(&found, "/results");
    assert_eq!(results.len(), RIVERS.len());
    assert_eq!(text_at(&results[0], "/source"), "rivers/tiber.md");
    assert_eq!(text_at(&results[0], "/title"), "The Tiber");
    for stage in ["bm25", "dense", "fused", "rerank"] {
        ranks_follow_scores(results, stage);
    }
    let in_order: Vec<Option<u64>> = (1..=results.len() as u64).map(Some).collect();
    let blended: Vec<f64> = scores(results, "blended").into_iter().flatten().collect();
    assert!(
        blended.len() == results.len() && blended.is_sorted_by(|a, b| a >= b),
        "fusion and cross-encoder: {blended:?}"
    );
    assert!(scores(results, "dense").iter().flatten().all(|cosine| cosine.abs() <= 1.0 + 1e-6));
    for result in results {
        let name = text_at(result, "/source").strip_prefix("rivers/").expect("a source");
        let (_, text) = RIVERS.iter().find(|(other, _)| *other == name).expect("a document");
        let span = number_at(result, "/start") as usize..number_at(result, "/end") as usize;
        assert_eq!(text.get(span), Some(text_at(result, "/text")), "{result:#}");
        assert!(number_at(result, "/chunk") > 0 && number_at(result, "/document") > 0);
    }

    let fused = place.json(&["search", QUERY, "--kb", "rivers.kb", "--no-rerank"], 0);
    let fused = list_at(&fused, "/results");
    assert_eq!(ranks(fused, "fused"), in_order);
    assert!(all_none(&ranks(fused, "rerank")) && all_none(&scores(fused, "rerank")));

    let few = place.json(&["search", QUERY, "--kb", "rivers.kb", "-k", "2"], 0);
    assert_eq!(list_at(&few, "/results"), &results[..2], "fewer results are the first of more");

    let for_people = place.run(&["search", QUERY, "--kb", "rivers.kb", "-k", "1"]).stdout;
    for piece in [" 1. rivers/tiber.md \"The Tiber\" [0..", "rerank #1", "fused #", "dense #", "bm25 #", "through Rome"]
    {
        assert!(for_people.contains(piece), "no {piece:?} in {for_people}");
    }
}

#[test]
fn m32_each_mode_asks_its_own_index() {
    let Some(place) = Workplace::with_rivers() else { return };
    let search = |mode| place.json(&["search", "Rome", "--kb", "rivers.kb", "--mode", mode, "--no-rerank"], 0);
    let by_words = search("bm25");
    let by_words = list_at(&by_words, "/results");
    assert_eq!(each_text(by_words, "source"), ["rivers/tiber.md"], "the one document with the word");
    ranks_follow_scores(by_words, "bm25");
    assert!(all_none(&ranks(by_words, "dense")));
    let by_meaning = search("dense");
    let by_meaning = list_at(&by_meaning, "/results");
    assert_eq!(by_meaning.len(), RIVERS.len(), "every document is more or less near");
    assert_eq!(text_at(&by_meaning[0], "/source"), "rivers/tiber.md");
    ranks_follow_scores(by_meaning, "dense");
    assert!(all_none(&ranks(by_meaning, "bm25")));
}

#[test]
fn m22_m25_further_queries_are_told_with_what_each_found() {
    let Some(place) = Workplace::with_rivers() else { return };
    let asked = ["search", "When was Rome flooded by the Tiber?", "--kb", "rivers.kb", "--expand", "rules"];
    let found = place.json(&asked, 0);
    let (variants, results) = (list_at(&found, "/variants"), list_at(&found, "/results"));
    assert!(!variants.is_empty() && variants.iter().all(|variant| text_at(variant, "/by") == "rules"), "{found:#}");
    assert_eq!(list_at(&found, "/found_by").len(), results.len());
    let mut chunks: Vec<u64> = results.iter().map(|result| number_at(result, "/chunk")).collect();
    chunks.sort_unstable();
    chunks.dedup();
    assert_eq!(chunks.len(), results.len(), "each passage once");
    assert!(place.run(&asked).stdout.contains("also asked (rules): "));
    place.run(&["search", QUERY, "--kb", "rivers.kb", "--expand", "guess"]).is_refused(&["guess", "hyde"]);
}

#[test]
fn m28_what_the_best_passage_names_by_its_title_is_looked_at() {
    let Some(place) = Workplace::with_rivers() else { return };
    place.write("quay/quay.md", "# The Old Quay\n\nThe Old Quay of the harbour was built by Mirela Stone in 1880.\n");
    place.write("quay/stone.md", "# Mirela Stone\n\nShe came into the world at Harwich, and sang in a choir.\n");
    assert_eq!(place.run(&["ingest", "quay", "--kb", "rivers.kb"]).code, 0);
    let question = "Where was the builder of the Old Quay born?";
    let found = place.json(&["search", question, "--kb", "rivers.kb"], 0);
    let results = list_at(&found, "/results");
    assert_eq!(text_at(&results[0], "/source"), "quay/quay.md");
    let named = results.iter().find(|result| text_at(result, "/source") == "quay/stone.md").expect("found");
    assert_eq!(number_at(named, "/scores/linked_from"), number_at(&results[0], "/chunk"), "{named:#}");
    let plain = place.json(&["search", question, "--kb", "rivers.kb", "--no-links"], 0);
    assert!(all_none(&scores(list_at(&plain, "/results"), "linked_from")));
}

#[test]
fn nothing_found_is_code_1_and_an_empty_list() {
    let Some(place) = Workplace::with_rivers() else { return };
    let search = ["search", "zzyzx", "--kb", "rivers.kb", "--mode", "bm25"];
    let found = place.json(&search, 1);
    assert_eq!(list_at(&found, "/results"), [] as [Value; 0]);
    let for_people = place.run(&search);
    assert_eq!((for_people.code, for_people.stdout.as_str()), (1, ""), "{for_people:?}");
    assert_eq!(for_people.stderr, "nothing found\n");

    let delete = ["kb", "delete", "1", "2", "3", "4", "--kb", "rivers.kb"];
    assert_eq!(place.run(&delete).code, 0);
    let found = place.json(&["search", QUERY, "--kb", "rivers.kb"], 1);
    assert_eq!(list_at(&found, "/results"), [] as [Value; 0]);
    assert_eq!(place.json(&["kb", "list", "--kb", "rivers.kb"], 1), serde_json::json!([]));
}

#[test]
fn a_settings_file_names_what_the_command_line_leaves_open() {
    let Some(place) = Workplace::with_rivers() else { return };
    place.write("anchorite.toml", "embedder = \"nobody\"\n");
    place.run(&["search", QUERY, "--kb", "rivers.kb"]).is_refused(&["nobody"]);
    // The command line has the last word.
    let found = place.run(&["search", QUERY, "--kb", "rivers.kb", "--embedder", "all-MiniLM-L6-v2"]);
    assert_eq!(found.code, 0, "{found:?}");
}

/// Runs the program with the bi-encoder alone: in a folder of its own, with no other place to look at.
fn with_the_embedder_alone(place: &Workplace, arguments: &[&str]) -> Run {
    let folder = place.path().join("models-here");
    if !folder.exists() {
        let used = place.json(&["models", "path", "--profile", "tiny"], 0);
        let embedder =
            used.as_array().expect("a list").iter().find(|one| one["role"] == "embedder").expect("an embedder");
        std::fs::create_dir(&folder).expect("a folder");
        std::os::unix::fs::symlink(text_at(embedder, "/path"), folder.join(text_at(embedder, "/name")))
            .expect("a link");
    }
    let mut command = place.command(arguments);
    command.args(["--models", "models-here"]).env("XDG_DATA_HOME", place.path()).env("HOME", place.path());
    command.env("HF_HUB_CACHE", place.path().join("no-cache")).env_remove("HF_HOME");
    Run::of(arguments, &command.output().expect("the program starts"))
}

#[test]
fn m43_without_a_reranker_the_order_is_that_of_fusion() {
    let Some(place) = Workplace::with_rivers() else { return };
    let found = with_the_embedder_alone(&place, &["search", QUERY, "--kb", "rivers.kb", "--json"]);
    assert_eq!(found.code, 0, "{found:?}");
    let document = found.json();
    let results = list_at(&document, "/results");
    assert!(all_none(&ranks(results, "rerank")));
    assert_eq!(ranks(results, "fused"), (1..=results.len() as u64).map(Some).collect::<Vec<_>>());
    let plain = with_the_embedder_alone(&place, &["search", QUERY, "--kb", "rivers.kb", "--no-rerank"]);
    assert_eq!((plain.code, plain.stderr.as_str()), (0, ""), "what nobody asked for is not missed: {plain:?}");
}

#[test]
fn m43_without_a_reranker_search_says_so() {
    let Some(place) = Workplace::with_rivers() else { return };
    let found = with_the_embedder_alone(&place, &["search", QUERY, "--kb", "rivers.kb"]);
    assert_eq!(found.code, 0, "{found:?}");
    assert!(found.stderr.contains("no reranker"), "{found:?}");
}

#[test]
fn m43_without_reranker_and_writing_model_ask_answers_and_says_so() {
    let Some(place) = Workplace::with_rivers() else { return };
    let answer = with_the_embedder_alone(&place, &["ask", "How long is the Danube?", "--kb", "rivers.kb", "--json"]);
    assert!(answer.code == 0 || answer.code == 1, "{answer:?}");
    assert!(answer.stderr.contains("no reranker") && answer.stderr.contains("no generator"), "{answer:?}");
    let document = answer.json();
    assert_eq!(list_at(&document, "/notices").len(), 2, "{document:#}");
    assert_eq!(each_text(list_at(&document, "/models"), "role"), ["embedder"]);
}
