//! Writing: answers from passages, and replies to small talk.

use std::ops::ControlFlow;

use anchorite_core::{GenerateOptions, Judged};
use anchorite_graph::NodeContext;

use super::{Update, readable};
use crate::Parts;
use crate::extract::extractive_answer;
use crate::grade::comes_to;
use crate::prompts;
use crate::state::{Draft, RagState, RagUpdate};
use crate::words::may_be_small_talk;

/// Decision 1 (M10): does the message need the documents at all? Only small talk does not.
pub(crate) fn decide_retrieval(parts: &Parts<'_>, state: &RagState, context: &NodeContext<'_>) -> Update {
    let needed = match parts.generator {
        // Code rules out most of it; a wrong "no" would answer from nothing, a wrong "yes" only costs a search.
        Some(generator) if may_be_small_talk(&state.question) => {
            let prompt = prompts::needs_documents(&state.question);
            let choice = generator.choose(&prompt, &prompts::NEEDS, context.budget())?;
            context.note(&format!("probability {:.2} that facts are asked for", choice[0]));
            choice[0] > 0.3
        }
        _ => true,
    };
    Ok(RagUpdate { needs_documents: Some(Some(needed)), ..RagUpdate::default() })
}

/// Replies to small talk, from no document and stating no fact.
pub(crate) fn reply(parts: &Parts<'_>, state: &RagState, context: &NodeContext<'_>) -> Update {
    let Some(generator) = parts.generator else { return Ok(RagUpdate::default()) };
    let options = GenerateOptions::greedy(60);
    let written = generator.generate(&prompts::chat(&state.question), &options, context.budget(), &mut |piece| {
        context.progress(piece);
        ControlFlow::Continue(())
    })?;
    let draft = Draft {
        text: written.text.trim().to_owned(),
        support: 1.0,
        usefulness: 1.0,
        supported: true,
        useful: true,
        conversational: true,
        ..Draft::default()
    };
    context.note("small talk; no document was needed");
    Ok(RagUpdate { draft: Some(Some(draft)), ..RagUpdate::default() })
}

/// Writes an answer from the useful passages and from what code computes from them (M53).
pub(crate) fn generate(parts: &Parts<'_>, state: &RagState, context: &NodeContext<'_>) -> Update {
    let evidence = state.evidence();
    let (passages, computed) = readable(parts, &state.question, &evidence);
    if passages.len() < evidence.len() {
        context.note(&format!("{} passages left out for the generator's context", evidence.len() - passages.len()));
    }
    let again = state.draft.as_ref().filter(|draft| !draft.refusal && !draft.faults.is_empty());
    let repeated = again.is_some() && *state.newly_useful == 0;
    let faults = again.map(|draft| draft.faults.as_slice()).unwrap_or_default();
    let asked =
        |may_refuse| prompts::answer(&state.question, &passages, &computed, faults, &state.findings, may_refuse);
    // What code has computed decides the question; there is nothing to look for.
    let held = if computed.is_empty() { parts.held(&asked(true), context.budget())? } else { None };
    if let Some(held) = held {
        context.note(&format!("probability {held:.2} that the passages hold the answer"));
    }
    let judged = Judged { held, ..Judged::default() };
    let text = match parts.generator {
        Some(_) if held.is_some_and(|held| held < parts.settings.held) => String::new(),
        Some(generator) => {
            // Whether to answer is no longer the generator's choice where its state has told.
            let prompt = asked(held.is_none());
            let options = GenerateOptions::greedy(parts.settings.answer_tokens).stop_at("\nQuestion:").stop_at("\n\n");
            let written = generator.generate(&prompt, &options, context.budget(), &mut |piece| {
                context.progress(piece);
                ControlFlow::Continue(())
            })?;
            context.note(&format!(
                "{} tokens read, {} kept, {} written",
                written.prompt_tokens,
                written.cached_tokens,
                written.tokens.len()
            ));
            tidy(&written.text)
        }
        None => extractive_answer(parts, &state.question, &passages, &computed)?,
    };
    for note in &computed {
        context.note(&note.text);
    }
    // Notes decide the question; where the generator talks past them, what code computed is the answer.
    let text = match computed.first() {
        Some(first) if !computed.iter().any(|note| comes_to(&text, note)) => {
            context.note("the generator does not say what the note comes to; the note is the answer");
            first.text.trim_start_matches("Computed:").trim().to_owned()
        }
        _ => text,
    };
    let refusal = prompts::is_refusal(&text);
    let draft = Draft { text, notes: computed, refusal, judged, ..Draft::default() };
    Ok(RagUpdate {
        draft: Some(Some(draft)),
        // What was new is written down now; to write again without more is to write from the same.
        newly_useful: Some(0),
        rewrites: Some(if repeated { *state.rewrites + 1 } else { *state.rewrites }),
        ..RagUpdate::default()
    })
}

/// Takes out what small models add around an answer.
fn tidy(text: &str) -> String {
    let text = text.trim();
    let text = text.strip_prefix("Answer:").unwrap_or(text).trim();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
