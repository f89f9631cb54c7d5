//! An agent that chooses its steps (ReAct, Yao et al. 2023): search, look up, finish. What it writes is constrained to a
//! thought and one of these actions, so that there is nothing that does not parse (M31).

use std::ops::ControlFlow;

use anchorite_core::{Constraint, GenerateOptions};
use anchorite_graph::NodeContext;
use anchorite_text::sentences;

use super::{Update, readable};
use crate::Parts;
use crate::prompts;
use crate::state::{Action, Draft, RagState, RagUpdate};
use crate::words::{content_words, normal_form};

/// Most tokens of a thought with its action.
const STEP_TOKENS: usize = 140;

/// Sentences that a look-up shows.
const LOOKED_UP: usize = 3;

/// Thinks, and chooses the next action. When no round or step is left, the only action is to finish.
pub(crate) fn act(parts: &Parts<'_>, state: &RagState, context: &NodeContext<'_>) -> Update {
    let Some(generator) = parts.generator else {
        // Without a generator there is nobody to choose: search once, then answer in the documents' own words.
        let action = if state.new_documents.is_empty() && state.scratchpad.is_empty() {
            Action::Search(state.question.to_string())
        } else {
            Action::Finish(String::new())
        };
        return Ok(searching(action, state));
    };
    let evidence = state.evidence();
    let (passages, _) = readable(parts, &state.question, &evidence);
    let last = state.scratchpad.len() >= parts.settings.agent_steps || !context.budget().has_round();
    let actions = match (last, evidence.is_empty()) {
        (true, _) => "finish",
        (false, true) => "search",
        (false, false) => "search|lookup|finish",
    };
    let words = |most: usize| format!("[^\\n\\[\\]{{}}]{{1,{most}}}");
    let form = format!("Thought: {}\\nAction: ({actions})\\[{}\\]", words(160), words(120));
    let prompt = prompts::react(&state.question, &passages, &state.scratchpad);
    let options = GenerateOptions::greedy(STEP_TOKENS).constrained(Constraint::Regex(form));
    let written = generator.generate(&prompt, &options, context.budget(), &mut |piece| {
        context.progress(piece);
        ControlFlow::Continue(())
    })?;
    context.note(&written.text.replace('\n', " · "));
    let action = Action::read(&written.text);
    // A search that was made already would find the same: the agent is told so and chooses again.
    let asked: Vec<String> = state.all_queries().into_iter().map(normal_form).collect();
    let repeated =
        matches!(&action, Action::Search(query) if !state.scratchpad.is_empty() && asked.contains(&normal_form(query)));
    let mut update = searching(action, state);
    update.scratchpad = vec![written.text.trim().to_owned()];
    if repeated {
        update.action = Some(Action::Lookup(state.question.to_string()));
        update.new_queries = None;
    }
    Ok(update)
}

fn searching(action: Action, state: &RagState) -> RagUpdate {
    let new_queries = match &action {
        Action::Search(query) if normal_form(query) != normal_form(&state.question) => Some(vec![query.clone()]),
        _ => None,
    };
    RagUpdate { action: Some(action), new_queries, ..RagUpdate::default() }
}

/// Tells the agent what its action has shown.
pub(crate) fn observe(state: &RagState, context: &NodeContext<'_>) -> Update {
    let line = match &*state.action {
        Action::Search(_) => format!("Observation: {} new useful passages.", *state.newly_useful),
        Action::Lookup(words) => {
            let wanted = content_words(words);
            let evidence = state.evidence();
            let mut found: Vec<(usize, &str)> = evidence
                .iter()
                .flat_map(|passage| sentences(&passage.text).into_iter().map(|range| passage.text[range].trim()))
                .map(|sentence| (content_words(sentence).intersection(&wanted).count(), sentence))
                .filter(|(common, _)| *common > 0)
                .collect();
            found.sort_by_key(|(common, _)| std::cmp::Reverse(*common));
            found.truncate(LOOKED_UP);
            match found.is_empty() {
                true => "Observation: nothing found.".to_owned(),
                false => format!("Observation: {}", found.iter().map(|(_, s)| *s).collect::<Vec<_>>().join(" … ")),
            }
        }
        Action::Finish(_) => "Observation: the passages do not bear that answer out.".to_owned(),
    };
    context.note(&line);
    Ok(RagUpdate { scratchpad: vec![line], ..RagUpdate::default() })
}

/// Takes the agent's answer as the draft.
pub(crate) fn finish(parts: &Parts<'_>, state: &RagState, context: &NodeContext<'_>) -> Update {
    let Action::Finish(answer) = &*state.action else { return Ok(RagUpdate::default()) };
    if parts.generator.is_none() {
        return super::generate(parts, state, context);
    }
    let evidence = state.evidence();
    let (_, notes) = readable(parts, &state.question, &evidence);
    let text = answer.trim().to_owned();
    let draft = Draft { refusal: prompts::is_refusal(&text), text, notes, ..Draft::default() };
    Ok(RagUpdate { draft: Some(Some(draft)), ..RagUpdate::default() })
}
