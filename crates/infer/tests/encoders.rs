//! The encoders against sentence-transformers and ONNX Runtime on the same weights, and against themselves.

mod common;

use anchorite_core::{Embedder, Embedding, Reranker, Role};
use anchorite_infer::{BiEncoder, CrossEncoder, DeviceChoice, Precision};
use anchorite_models::{ModelRole, Profile};
use common::{fixture, model, shared_texts};
use rayon::prelude::*;
use serde_json::Value;

const PRECISIONS: [Precision; 2] = [Precision::F32, Precision::Int8];

fn bi_encoder(precision: Precision) -> Option<BiEncoder> {
    Some(BiEncoder::open(&model(ModelRole::Embedder, Profile::Tiny)?, DeviceChoice::Cpu, precision).expect("opens"))
}

fn cross_encoder(precision: Precision) -> Option<CrossEncoder> {
    Some(CrossEncoder::open(&model(ModelRole::Reranker, Profile::Tiny)?, DeviceChoice::Cpu, precision).expect("opens"))
}

fn assert_same_vectors(encoder: &BiEncoder, texts: &[&str], expected: &[&Value]) {
    let vectors = encoder.embed(Role::Document, texts).expect("embeds");
    for (index, (vector, item)) in vectors.iter().zip(expected).enumerate() {
        let numbers: Vec<f32> = serde_json::from_value(item["vector"].clone()).expect("numbers");
        let cosine = vector.cosine(&Embedding::new(numbers).expect("a vector"));
        assert!(cosine >= 0.9999, "text {index}: cosine {cosine}");
    }
}

#[test]
fn m01_embeddings_equal_those_of_sentence_transformers() {
    let Some(encoder) = bi_encoder(Precision::F32) else { return };
    let own = fixture("own_embeddings.json");
    let items: Vec<&Value> = own["items"].as_array().expect("items").iter().collect();
    let texts: Vec<&str> = items.iter().map(|item| item["text"].as_str().expect("text")).collect();
    assert_same_vectors(&encoder, &texts, &items);

    let Some(corpus) = shared_texts("scifact/corpus.jsonl.gz") else { return };
    let shared = fixture("embeddings.json");
    let items: Vec<&Value> = shared["items"].as_array().expect("items").iter().collect();
    let texts: Vec<&str> = items.iter().map(|item| corpus[item["_id"].as_str().expect("id")].as_str()).collect();
    assert_same_vectors(&encoder, &texts, &items);
}

#[test]
fn bytes_give_nearly_the_vectors_of_single_precision() {
    let (Some(exact), Some(bytes)) = (bi_encoder(Precision::F32), bi_encoder(Precision::Int8)) else { return };
    let corpus = shared_texts("scifact/corpus.jsonl.gz").unwrap_or_default();
    let mut names: Vec<&String> = corpus.keys().collect();
    names.sort();
    let texts: Vec<&str> = names.into_iter().map(|name| corpus[name].as_str()).take(400).collect();
    let odd = ["The Danube flows into the Black Sea.", "x", "", "1 2 3 4 5 6 7", "Straße und Käse, 東京"];
    let cosines = |texts: &[&str]| {
        let pairs = exact.embed(Role::Document, texts).expect("embeds").into_iter();
        let mut cosines: Vec<f32> =
            pairs.zip(bytes.embed(Role::Document, texts).expect("embeds")).map(|(a, b)| a.cosine(&b)).collect();
        cosines.sort_by(f32::total_cmp);
        cosines
    };
    let least = cosines(&odd)[0];
    assert!(least >= 0.98, "short and odd texts: {least}");
    let Some(low) = cosines(&texts).get(texts.len() / 100).copied() else { return };
    eprintln!("{} texts: the 1st percentile of the cosine is {low}; of odd ones the least is {least}", texts.len());
    assert!(low >= 0.995, "1st percentile {low}");
}

#[test]
fn m46_the_same_text_gives_the_same_bits_alone_and_in_any_batch() {
    for precision in PRECISIONS {
        let Some(encoder) = bi_encoder(precision) else { return };
        let texts: Vec<String> =
            (0..40).map(|n| format!("Text number {n} {}", "says a little more ".repeat(n % 13))).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let together = encoder.embed(Role::Document, &texts).expect("embeds");
        let mut backwards: Vec<&str> = texts.clone();
        backwards.reverse();
        let mut reversed = encoder.embed(Role::Document, &backwards).expect("embeds");
        reversed.reverse();
        assert!(together == reversed, "{precision}: the order of a batch changed a vector");
        let streamed: Vec<Embedding> =
            encoder.embed_stream(Role::Document, &texts).collect::<Result<_, _>>().expect("embeds");
        assert!(together == streamed, "{precision}: streaming changed a vector");
        let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
        let single = one_thread.install(|| encoder.embed(Role::Document, &texts)).expect("embeds");
        assert!(together == single, "{precision}: the number of threads changed a vector");
        for (index, text) in texts.iter().enumerate() {
            let alone = encoder.embed(Role::Document, &[text]).expect("embeds");
            assert!(alone[0] == together[index], "{precision}: text {index} has other bits alone");
        }
    }
}

#[test]
fn m02_reranker_scores_agree_with_onnx_runtime() {
    for precision in PRECISIONS {
        let Some(reranker) = cross_encoder(precision) else { return };
        agrees_with_onnx_runtime(&reranker);
    }
}

fn agrees_with_onnx_runtime(reranker: &CrossEncoder) {
    let own = fixture("own_reranker.json");
    let mut pairs: Vec<(String, String, f64)> = Vec::new();
    for pair in own["pairs"].as_array().expect("pairs") {
        let text = |key: &str| pair[key].as_str().expect("text").to_owned();
        pairs.push((text("query"), text("passage"), pair["score"].as_f64().expect("score")));
    }
    if let (Some(corpus), Some(queries)) =
        (shared_texts("scifact/corpus.jsonl.gz"), shared_texts("scifact/queries.jsonl"))
    {
        for pair in fixture("reranker.json")["pairs"].as_array().expect("pairs") {
            let id = |key: &str| pair[key].as_str().expect("id").to_owned();
            let score = pair["score"].as_f64().expect("score");
            pairs.push((queries[&id("query")].clone(), corpus[&id("passage")].clone(), score));
        }
    }
    let ours: Vec<f64> = pairs
        .par_iter()
        .map(|(query, passage, _)| f64::from(reranker.score(query, &[passage]).expect("scores")[0]))
        .collect();
    let theirs: Vec<f64> = pairs.iter().map(|(_, _, score)| *score).collect();
    let difference = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).sum::<f64>() / ours.len() as f64;
    let agreement = spearman(&ours, &theirs);
    eprintln!("{} pairs: mean absolute difference {difference:.3}, Spearman {agreement:.4}", ours.len());
    assert!(difference <= 0.5, "mean absolute difference {difference}");
    // Scores next to each other may change places on a few pairs; none that are apart may, and ranks agree over many.
    let apart = |i: usize, j: usize| theirs[i] - theirs[j] > 1.0;
    let all = 0..ours.len();
    let swapped =
        all.clone().flat_map(|i| all.clone().map(move |j| (i, j))).find(|&(i, j)| apart(i, j) && ours[i] <= ours[j]);
    assert_eq!(swapped, None, "two pairs changed places");
    assert!(ours.len() < 60 || agreement >= 0.99, "Spearman {agreement}");
}

#[test]
fn m46_scores_do_not_depend_on_the_batch() {
    for precision in PRECISIONS {
        let Some(reranker) = cross_encoder(precision) else { return };
        scores_do_not_depend_on_the_batch(&reranker);
    }
}

fn scores_do_not_depend_on_the_batch(reranker: &CrossEncoder) {
    let passages = ["Berlin has 3.5 million inhabitants.", "Berlin is well known for its museums.", "It rains.", ""];
    let together = reranker.read("How many people live in Berlin?", &passages).expect("scores");
    for (passage, score) in passages.iter().zip(&together) {
        let alone = reranker.read("How many people live in Berlin?", &[passage]).expect("scores");
        assert_eq!(alone[0].to_bits(), score.to_bits(), "{passage:?}");
    }
    assert!(together[0] > 5.0 && together[1] < 0.0 && together[2] < -8.0, "{together:?}");
}

#[test]
fn m27_a_score_that_is_kept_is_the_score_read_anew() {
    let Some(reranker) = cross_encoder(Precision::Int8) else { return };
    let query = "How many people live in Berlin?";
    let passages = ["It rains.", "Berlin has 3.5 million inhabitants.", "It rains.", "Snow."];
    let read = reranker.read(query, &passages).expect("scores");
    assert_eq!(reranker.score(query, &passages[..2]).expect("scores"), read[..2]);
    // Some kept, some not, one twice.
    assert_eq!(reranker.score(query, &passages).expect("scores"), read);
    assert_eq!(reranker.score(query, &[]).expect("scores"), [0.0; 0]);
    assert_ne!(reranker.score("Does it rain?", &passages).expect("scores"), read, "another query, other scores");
}

/// Rank correlation (Spearman 1904), for lists without ties.
fn spearman(a: &[f64], b: &[f64]) -> f64 {
    let ranks = |values: &[f64]| {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&x, &y| values[x].total_cmp(&values[y]));
        let mut ranks = vec![0.0; values.len()];
        for (rank, index) in order.into_iter().enumerate() {
            ranks[index] = rank as f64;
        }
        ranks
    };
    let n = a.len() as f64;
    let squares: f64 = ranks(a).iter().zip(ranks(b)).map(|(x, y)| (x - y).powi(2)).sum();
    1.0 - 6.0 * squares / (n * (n * n - 1.0))
}
