//! `anchorite search`

use anchorite::core::days;
use anchorite::{Engine, Expansion, Mode, ModelRole, Passage, SearchOptions};
use anyhow::Result;

use crate::Found;
use crate::arguments::{ModeArgument, Search};
use crate::output::Output;

impl From<ModeArgument> for Mode {
    fn from(mode: ModeArgument) -> Self {
        match mode {
            ModeArgument::Hybrid => Self::Hybrid,
            ModeArgument::Dense => Self::Dense,
            ModeArgument::Bm25 => Self::Bm25,
        }
    }
}

pub(crate) fn run(engine: &Engine, arguments: &Search, output: &Output) -> Result<Found> {
    let expand = arguments.expand.iter().map(|name| name.parse()).collect::<Result<Vec<Expansion>, _>>()?;
    let written = expand.iter().any(|way| way.needs_generator());
    let options = SearchOptions {
        k: arguments.k,
        mode: arguments.mode.into(),
        rerank: !arguments.no_rerank,
        links: !arguments.no_links,
        expand,
        view: arguments.view.options(arguments.half_life)?,
    };
    let found = engine.search(&arguments.place.kb, &arguments.query, &options)?;
    if options.rerank {
        for notice in engine.models().missing(&[ModelRole::Reranker]) {
            output.remark(notice);
        }
    }
    if written {
        for notice in engine.models().missing(&[ModelRole::Generator]) {
            output.remark(notice);
        }
    }
    if output.json {
        output.document(&found)?;
    } else {
        for variant in &found.variants {
            output.line(format_args!("    also asked ({}): {}", variant.by, variant.text))?;
        }
        for (index, passage) in found.results.iter().enumerate() {
            output.line(heading(index + 1, passage))?;
            output.line(format_args!("    {}", excerpt(&passage.text, 300)))?;
        }
        if found.results.is_empty() {
            output.remark("nothing found");
        }
    }
    Ok(if found.results.is_empty() { Found::No } else { Found::Yes })
}

fn heading(rank: usize, passage: &Passage) -> String {
    let scores = &passage.scores;
    let stage = |name: &str, rank: Option<usize>, score: Option<f32>| match (rank, score) {
        (Some(rank), Some(score)) => Some(format!("{name} #{rank} {score:.3}")),
        _ => None,
    };
    let stages: Vec<String> = [
        scores.linked_from.map(|_| "named by one of the best".to_owned()),
        stage("rerank", scores.rerank_rank, scores.rerank),
        stage("fused", scores.fused_rank, scores.fused),
        stage("dense", scores.dense_rank, scores.dense),
        stage("bm25", scores.bm25_rank, scores.bm25),
        scores.recency.map(|kept| format!("age leaves {kept:.2} ({})", days::day(passage.dated))),
    ]
    .into_iter()
    .flatten()
    .collect();
    let title = if passage.title.is_empty() { String::new() } else { format!(" \"{}\"", passage.title) };
    format!("{rank:>2}. {}{title} [{}..{}]  ({})", passage.source, passage.start, passage.end, stages.join(", "))
}

/// The beginning of a text on one line.
pub(crate) fn excerpt(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((at, _)) => format!("{} …", &line[..at]),
        None => line,
    }
}
