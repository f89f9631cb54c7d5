//! Whole encoders in both precisions. `anchorite bench embed` and `anchorite bench rerank` measure more, and real text.
#![allow(missing_docs, reason = "what criterion's macros make has no documentation")]

use anchorite::core::{Embedder, Role};
use anchorite::{Engine, EngineOptions, Precision};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const SENTENCE: &str = "A text that says one thing after another, so that there is something to read. ";

fn encoders(criterion: &mut Criterion) {
    for precision in [Precision::Int8, Precision::F32] {
        let engine = Engine::new(EngineOptions { precision, ..EngineOptions::default() });
        let Ok(embedder) = engine.models().embedder() else {
            eprintln!("no bi-encoder here: run `cargo xtask setup`");
            return;
        };
        let mut group = criterion.benchmark_group("texts embedded");
        group.sample_size(10);
        for (texts, sentences) in [(1, 1), (64, 1), (64, 7)] {
            let text = SENTENCE.repeat(sentences);
            let texts = vec![text.as_str(); texts];
            group.throughput(Throughput::Elements(texts.len() as u64));
            group.bench_function(
                BenchmarkId::new(precision.to_string(), format!("{} of {sentences} sentences", texts.len())),
                |b| {
                    b.iter(|| embedder.embed(Role::Document, &texts));
                },
            );
        }
        group.finish();
        let Ok(Some(reranker)) = engine.models().reranker() else {
            eprintln!("no cross-encoder here: run `cargo xtask setup`");
            return;
        };
        let mut group = criterion.benchmark_group("passages reranked");
        group.sample_size(10);
        let text = SENTENCE.repeat(5);
        let passages = vec![text.as_str(); 50];
        group.throughput(Throughput::Elements(passages.len() as u64));
        group.bench_function(BenchmarkId::new(precision.to_string(), "50 of 5 sentences"), |b| {
            b.iter(|| reranker.read("What does the text say?", &passages));
        });
        group.finish();
    }
}

criterion_group!(benches, encoders);
criterion_main!(benches);
