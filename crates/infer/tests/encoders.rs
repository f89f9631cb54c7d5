//! The encoders against sentence-transformers and ONNX Runtime on the same weights, and against themselves.

mod common;

use anchorite_core::{Embedder, Embedding, Reranker, Role};
use anchorite_infer::{BiEncoder, CrossEncoder, DeviceChoice};
use anchorite_models::{ModelRole, Profile};
use common::{fixture, model, shared_texts};
use serde_json::Value;

fn bi_encoder() -> Option<BiEncoder> {
    Some(BiEncoder::open(&model(ModelRole::Embedder, Profile::Tiny)?, DeviceChoice::Cpu).expect("opens"))
}

fn cross_encoder() -> Option<CrossEncoder> {
    Some(CrossEncoder::open(&model(ModelRole::Reranker, Profile::Tiny)?, DeviceChoice::Cpu).expect("opens"))
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
    let Some(encoder) = bi_encoder() else { return };
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
fn m46_the_same_text_gives_the_same_bits_alone_and_in_any_batch() {
    let Some(encoder) = bi_encoder() else { return };
    let texts: Vec<String> =
        (0..40).map(|n| format!("Text number {n} {}", "says a little more ".repeat(n % 13))).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let together = encoder.embed(Role::Document, &texts).expect("embeds");
    let mut backwards: Vec<&str> = texts.clone();
    backwards.reverse();
    let mut reversed = encoder.embed(Role::Document, &backwards).expect("embeds");
    reversed.reverse();
    assert!(together == reversed, "the order of a batch changed a vector");
    for (index, text) in texts.iter().enumerate() {
        let alone = encoder.embed(Role::Document, &[text]).expect("embeds");
        assert!(alone[0] == together[index], "text {index} has other bits alone");
    }
}

#[test]
fn m02_reranker_scores_agree_with_onnx_runtime() {
    let Some(reranker) = cross_encoder() else { return };
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
        .iter()
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
    let Some(reranker) = cross_encoder() else { return };
    let passages = ["Berlin has 3.5 million inhabitants.", "Berlin is well known for its museums.", "It rains.", ""];
    let together = reranker.score("How many people live in Berlin?", &passages).expect("scores");
    for (passage, score) in passages.iter().zip(&together) {
        let alone = reranker.score("How many people live in Berlin?", &[passage]).expect("scores");
        assert_eq!(alone[0].to_bits(), score.to_bits(), "{passage:?}");
    }
    assert!(together[0] > 5.0 && together[1] < 0.0 && together[2] < -8.0, "{together:?}");
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
