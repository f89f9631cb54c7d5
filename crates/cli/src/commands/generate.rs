//! `anchorite generate`

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use anchorite::Engine;
use anchorite::core::{Budget, Constraint, GenerateOptions, Generation, Generator, Prompt};
use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::NO_GENERATOR;
use crate::Found;
use crate::arguments::Generate;
use crate::output::Output;

#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    generation: &'a Generation,
    model: &'a str,
    seconds: f64,
}

pub(crate) fn run(engine: &Engine, arguments: &Generate, output: &Output) -> Result<Found> {
    if arguments.prompt.trim().is_empty() {
        bail!("the prompt is empty; write what the generator is to reply to");
    }
    let Some(generator) = engine.models().generator()? else { bail!(NO_GENERATOR) };
    let prompt = Prompt::new().system(&arguments.system).user(&arguments.prompt);
    let options = GenerateOptions {
        max_tokens: arguments.max_tokens,
        temperature: arguments.temperature,
        top_p: arguments.top_p,
        top_k: arguments.top_k,
        min_p: arguments.min_p,
        repetition_penalty: arguments.repetition_penalty,
        seed: arguments.seed,
        stop: arguments.stop.clone(),
        draft: !arguments.no_draft,
        constraint: constraint(arguments)?,
    };
    let started = Instant::now();
    let mut failed = None;
    let generation = generator.generate(&prompt, &options, &Budget::unlimited(), &mut |piece| {
        if output.json {
            return ControlFlow::Continue(());
        }
        match output.piece(piece) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    if output.json {
        let seconds = started.elapsed().as_secs_f64();
        output.document(&Report { generation: &generation, model: &generator.fingerprint().name, seconds })?;
    } else {
        output.line("")?;
    }
    Ok(if generation.text.is_empty() { Found::No } else { Found::Yes })
}

fn constraint(arguments: &Generate) -> Result<Option<Constraint>> {
    let read = |path: &Path| {
        std::fs::read_to_string(path)
            .with_context(|| format!("can't read {}, which says what to write", path.display()))
    };
    Ok(match (&arguments.schema, &arguments.regex, &arguments.grammar) {
        (Some(path), ..) => Some(Constraint::JsonSchema(read(path)?)),
        (_, Some(pattern), _) => Some(Constraint::Regex(pattern.clone())),
        (.., Some(path)) => Some(Constraint::Grammar(read(path)?)),
        _ => None,
    })
}
