//! `anchorite bench generate`

use anchorite::{BenchOptions, Engine, GeneratorReport, GeneratorWorkload};
use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{read, words};
use crate::Found;
use crate::arguments::BenchGenerate;
use crate::commands::NO_GENERATOR;
use crate::output::Output;

#[derive(Deserialize)]
struct PromptLine {
    prompt: String,
}

pub(super) fn run(engine: &Engine, arguments: &BenchGenerate, output: &Output) -> Result<Found> {
    let text = match &arguments.text {
        Some(path) => std::fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))?,
        None => words(arguments.read.max(arguments.perplexity) + 1, 3),
    };
    let prompts = match &arguments.prompts {
        Some(path) => read(path, usize::MAX)?.into_iter().map(|line: PromptLine| line.prompt).collect(),
        None => Vec::new(),
    };
    let workload = GeneratorWorkload {
        text,
        read: arguments.read,
        write: arguments.write,
        prompts,
        reply: arguments.reply,
        perplexity: arguments.perplexity,
    };
    let report = engine.bench_generate(&workload, BenchOptions { repeats: arguments.repeats })?;
    let Some(report) = report else { bail!(NO_GENERATOR) };
    if output.json {
        output.document(&report)?;
    } else {
        show(&report, output)?;
    }
    Ok(Found::Yes)
}

fn show(report: &GeneratorReport, output: &Output) -> Result<()> {
    output.line(format_args!(
        "{} · {} · {} · {} threads · open in {:.1} s",
        report.model, report.device, report.instructions, report.threads, report.open_seconds
    ))?;
    output.line(format_args!(
        "reads {} tokens at {:.1} tokens/s, then writes {:.1} tokens/s",
        report.read_tokens, report.read_tokens_per_second, report.write_tokens_per_second
    ))?;
    if let Some(replies) = &report.replies {
        output.line(format_args!(
            "{} replies of {} tokens: {:.1} tokens/s with drafts, {:.1} without; of {} tokens guessed {} were right; {} replies differ",
            replies.prompts,
            replies.tokens,
            replies.tokens_per_second,
            replies.plain_tokens_per_second,
            replies.draft.guessed,
            replies.draft.right,
            replies.different
        ))?;
    }
    if let Some(perplexity) = report.perplexity {
        output.line(format_args!("perplexity {perplexity:.4}"))?;
    }
    if let Some(bytes) = report.peak_memory_bytes {
        output.line(format_args!("peak memory {:.0} MB", bytes as f64 / 1e6))?;
    }
    Ok(())
}
