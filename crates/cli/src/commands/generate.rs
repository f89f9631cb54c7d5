//! `anchorite generate`

use std::ops::ControlFlow;
use std::time::Instant;

use anchorite::Engine;
use anchorite::core::{Budget, GenerateOptions, Generation, Generator, Prompt};
use anyhow::{Result, bail};
use serde::Serialize;

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
    let Some(generator) = engine.models().generator()? else {
        bail!(
            "there is no generator, or it does not fit into memory; run `cargo xtask setup`, choose `--profile tiny`, or point `--models DIR` to a folder that has one"
        );
    };
    let prompt = Prompt::new().system(&arguments.system).user(&arguments.prompt);
    let options = GenerateOptions {
        max_tokens: arguments.max_tokens,
        temperature: arguments.temperature,
        top_p: arguments.top_p,
        top_k: arguments.top_k,
        seed: arguments.seed,
        ..GenerateOptions::default()
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
