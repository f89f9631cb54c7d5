//! `anchorite ask`

use std::time::Duration;

use anchorite::core::{Citation, Verdict};
use anchorite::{Answer, AskOptions, BudgetLimits, Engine, ModelInUse, ModelRole, Piece, Progress, Status, Strategy};
use anyhow::Result;
use serde::Serialize;

use crate::Found;
use crate::arguments::Ask;
use crate::output::Output;

/// Seconds per part, for `--json`.
#[derive(Serialize)]
struct Timings {
    total: f64,
    loading: f64,
    nodes: Vec<(String, f64)>,
}

#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    answer: &'a Answer,
    strategy: &'a str,
    timings: Timings,
    models: Vec<ModelInUse>,
    notices: Vec<String>,
}

pub(crate) fn run(engine: &Engine, arguments: &Ask, output: &Output) -> Result<Found> {
    let strategy: Strategy = arguments.strategy.parse()?;
    let budget = BudgetLimits {
        rounds: Some(arguments.max_rounds.max(1)),
        time: Some(Duration::from_secs(arguments.timeout)),
        ..BudgetLimits::default()
    };
    let without = arguments.without.iter().map(|name| name.parse()).collect::<Result<Vec<Piece>, _>>()?;
    let options = AskOptions {
        without,
        conflicts: arguments.conflicts,
        strategy,
        budget,
        thread: arguments.thread.clone(),
        resume: arguments.resume,
        no_generator: arguments.no_generator,
        view: arguments.view.options(arguments.half_life)?,
    };
    let spinner = output.bar(0, "{spinner} {msg}");
    spinner.set_message("opening the models");
    let mut on_progress = |progress: &Progress| match progress {
        Progress::Started { node } => spinner.set_message(node.clone()),
        Progress::Text { .. } => {}
        Progress::Finished { node, decision, note, seconds } => {
            if arguments.trace && !output.json {
                let decision = decision.as_ref().map(|label| format!(" -> {label}")).unwrap_or_default();
                spinner.suspend(|| output.remark(format_args!("[{seconds:6.2} s] {node}{decision}  {note}")));
            }
        }
    };
    let answer = engine.ask(&arguments.place.kb, &arguments.question, &options, &mut on_progress)?;
    spinner.finish_and_clear();
    let roles = [ModelRole::Reranker, ModelRole::Generator];
    let notices = engine.models().missing(if arguments.no_generator { &roles[..1] } else { &roles });
    for notice in &notices {
        output.remark(notice);
    }
    if output.json {
        let timings = Timings {
            total: answer.seconds,
            loading: engine.models().loading_time().as_secs_f64(),
            nodes: answer.steps.iter().map(|step| (step.node.clone(), step.seconds)).collect(),
        };
        let models = engine.models().in_use();
        output.document(&Report { answer: &answer, strategy: strategy.name(), timings, models, notices })?;
    } else {
        show(&answer, arguments.trace, output)?;
    }
    Ok(if answer.status == Status::Declined { Found::No } else { Found::Yes })
}

fn show(answer: &Answer, trace: bool, output: &Output) -> Result<()> {
    output.line(&answer.answer)?;
    if answer.status == Status::Partial {
        output.line("\nThis answer is partial:")?;
        for missing in &answer.missing {
            output.line(format_args!("  - {missing}"))?;
        }
    }
    if !answer.citations.is_empty() {
        output.line("\nSources:")?;
        for (index, citation) in answer.citations.iter().enumerate() {
            output.line(format_args!("  [{}] {}", index + 1, cited(citation)))?;
        }
        output.line("\nClaims:")?;
        for claim in &answer.claims {
            let numbers: Vec<String> = claim
                .citations
                .iter()
                .filter_map(|citation| answer.citations.iter().position(|known| known == citation))
                .map(|index| format!("[{}]", index + 1))
                .collect();
            let verdict = match claim.verdict {
                Verdict::Supported => "supported",
                Verdict::PartiallySupported => "partly supported",
                Verdict::NotSupported => "not supported",
            };
            output.line(format_args!("  {verdict} {:.2} {} {}", claim.confidence, numbers.join(""), claim.text))?;
        }
    }
    let status = match answer.status {
        Status::Answered => "answered",
        Status::Partial => "partial",
        Status::Declined => "declined",
    };
    let spent = &answer.spent;
    output.line(format_args!(
        "\n{status}, confidence {:.2}, {} round(s), {} calls of the generator, {} tokens read, {} written, {:.1} s",
        answer.confidence,
        answer.rounds,
        spent.generator_calls,
        spent.tokens_read,
        spent.tokens_written,
        answer.seconds
    ))?;
    if let Some(cap) = answer.stopped_by {
        output.line(format_args!("stopped: {cap}"))?;
    }
    if trace {
        if !answer.state.hypothesis.is_empty() {
            output.line(format_args!("\nHypothesis: {}", answer.state.hypothesis))?;
        }
        for (index, queries) in answer.state.new_queries.iter().enumerate() {
            output.line(format_args!("New queries, round {}: {}", index + 2, queries.join(" | ")))?;
        }
        for note in &answer.state.notes {
            output.line(format_args!("Note: {note}"))?;
        }
        output.line("\nPath:")?;
        for step in &answer.steps {
            let decision = step.decision.as_ref().map(|label| format!(" -> {label}")).unwrap_or_default();
            output.line(format_args!("  {:7.2} s  {}{decision}", step.seconds, step.node))?;
        }
    }
    Ok(())
}

fn cited(citation: &Citation) -> String {
    format!("{} [{}..{}]: \"{}\"", citation.source, citation.start, citation.end, citation.quote)
}
