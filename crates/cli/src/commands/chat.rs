//! `anchorite chat`

use std::io::BufRead;
use std::ops::ControlFlow;

use anchorite::Engine;
use anchorite::core::{Budget, GenerateOptions, Generator, Message, Prompt, Speaker};
use anyhow::{Result, bail};

use super::NO_GENERATOR;
use crate::Found;
use crate::arguments::Chat;
use crate::output::Output;

/// Reads what the user says line by line and replies, until the input ends or `/quit`.
pub(crate) fn run(engine: &Engine, arguments: &Chat, output: &Output) -> Result<Found> {
    let Some(generator) = engine.models().generator()? else { bail!(NO_GENERATOR) };
    output.remark("Say something; /new begins anew, /quit or the end of the input ends.");
    let options = GenerateOptions {
        temperature: arguments.temperature,
        seed: arguments.seed,
        ..GenerateOptions::greedy(arguments.max_tokens)
    };
    let room =
        arguments.context.unwrap_or(usize::MAX).min(generator.context_length()).saturating_sub(arguments.max_tokens);
    let mut said: Vec<Message> = Vec::new();
    let mut replied = false;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        match line.trim() {
            "" => continue,
            "/quit" => break,
            "/new" => {
                said.clear();
                continue;
            }
            words => said.push(Message { speaker: Speaker::User, content: words.to_owned() }),
        }
        let forgotten = trim(&arguments.system, &mut said, room, generator.as_ref())?;
        if forgotten > 0 {
            output.remark(format_args!("({forgotten} of the oldest messages no longer fit and are left out)"));
        }
        let mut failed = None;
        let reply =
            generator.generate(&prompt(&arguments.system, &said), &options, &Budget::unlimited(), &mut |piece| {
                match if output.json { Ok(()) } else { output.piece(piece) } {
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
            output.record(&reply)?;
        } else {
            output.line("")?;
        }
        replied = true;
        said.push(Message { speaker: Speaker::Assistant, content: reply.text });
    }
    Ok(if replied { Found::Yes } else { Found::No })
}

fn prompt(system: &str, said: &[Message]) -> Prompt {
    let begin = if system.is_empty() { Prompt::new() } else { Prompt::new().system(system) };
    said.iter().fold(begin, |prompt, message| prompt.with(message.speaker, message.content.clone()))
}

/// Takes out the oldest turns, the user's words with their reply, until what is left fits; returns how many messages went.
fn trim(system: &str, said: &mut Vec<Message>, room: usize, generator: &dyn Generator) -> Result<usize> {
    let mut forgotten = 0;
    // What the user has just said always stays; where even that does not fit, the generator says so.
    while said.len() > 1 && generator.prompt_tokens(&prompt(system, said))? > room {
        said.drain(..2);
        forgotten += 2;
    }
    Ok(forgotten)
}
