//! From the end of a run to the answer: answered, partial, or declined with what was looked for.

use anchorite_core::{Answer, AnswerState, Budget, Citation, InferenceError, Passage, Status, Verdict};
use anchorite_graph::Run;

use crate::conflict::settle;
use crate::extract::conditions;
use crate::grade::contradiction;
use crate::prompts::{UNKNOWN, is_refusal};
use crate::quantities::{Note, NoteKind, tiers};
use crate::state::{Draft, RagState};
use crate::{Parts, Piece, Settings};

/// Makes the answer of a run.
///
/// # Errors
/// If a model fails while the conditions are collected.
pub fn conclude(parts: &Parts<'_>, run: &Run<RagState>, budget: &Budget) -> Result<Answer, InferenceError> {
    let state = &run.state;
    let (status, draft) = match (state.draft.as_ref(), state.best.as_ref()) {
        (Some(draft), _) if draft.supported && draft.useful => (Status::Answered, Some(draft)),
        (_, Some(best)) if best.supported && best.useful => (Status::Answered, Some(best)),
        (_, Some(best)) if worth_showing(best, parts.settings) => (Status::Partial, Some(best)),
        _ => (Status::Declined, None),
    };
    let mut answer = Answer {
        question: state.question.to_string(),
        status,
        answer: String::new(),
        claims: Vec::new(),
        citations: Vec::new(),
        conflict: None,
        confidence: 0.0,
        missing: Vec::new(),
        rounds: budget.spent().rounds,
        stopped_by: run.outcome.stopped_by(),
        steps: run.path.clone(),
        state: summary(state),
        spent: budget.spent(),
        seconds: budget.elapsed().as_secs_f64(),
    };
    match draft {
        Some(draft) => show(parts, state, draft, &mut answer)?,
        None => decline(state, &mut answer),
    }
    Ok(answer)
}

/// A partial answer must hold at least one supported claim, and be what was asked for, or a part of it.
fn worth_showing(draft: &Draft, settings: &Settings) -> bool {
    let least = if draft.unanswered.is_empty() { settings.usefulness } else { settings.usefulness / 2.0 };
    !draft.refusal && draft.usefulness >= least && draft.claims.iter().any(|claim| claim.verdict == Verdict::Supported)
}

fn show(parts: &Parts<'_>, state: &RagState, draft: &Draft, answer: &mut Answer) -> Result<(), InferenceError> {
    answer.claims.clone_from(&draft.claims);
    answer.claims.retain(|claim| answer.status == Status::Answered || claim.verdict != Verdict::NotSupported);
    answer.answer = if answer.status == Status::Answered {
        draft.text.clone()
    } else {
        answer.claims.iter().map(|claim| claim.text.as_str()).collect::<Vec<_>>().join(" ")
    };
    answer.confidence = (draft.support * draft.usefulness).sqrt();
    let evidence = state.evidence();
    let note = draft.notes.iter().find(|note| note.kind == NoteKind::Tier);
    if let Some(rule) = note.and_then(|note| rule_of(note, &evidence)) {
        let found = conditions(parts, &state.question, rule, &evidence, &draft.claims)?;
        if !found.is_empty() {
            answer.answer.push_str("\nConditions:");
            for claim in &found {
                answer.answer.push_str("\n- ");
                answer.answer.push_str(&claim.text);
            }
            answer.claims.extend(found);
        }
    }
    // What code computed has weighed the documents against each other already.
    let weighed = !draft.notes.is_empty() || !parts.settings.has(Piece::Distrust);
    let otherwise = if weighed { None } else { contradiction(&state.question, &answer.claims, &evidence) };
    if let Some(found) = otherwise {
        settle(parts, found, answer);
    }
    answer.citations = distinct(answer.claims.iter().flat_map(|claim| &claim.citations));
    if answer.status == Status::Partial {
        answer.missing.clone_from(&draft.faults);
    }
    Ok(())
}

/// The passage that states the rule a note applied: of its sources, the one that holds what the rule gives.
fn rule_of<'p>(note: &Note, evidence: &[&'p Passage]) -> Option<&'p Passage> {
    let holds_rule = |passage: &&Passage| !tiers(&passage.full_text()).is_empty();
    note.sources.iter().filter_map(|(index, _)| evidence.get(*index).copied()).find(holds_rule)
}

fn decline(state: &RagState, answer: &mut Answer) {
    let looked: Vec<String> = state.all_queries().into_iter().map(|query| format!("\"{query}\"")).collect();
    answer.answer = format!("I could not find this in the documents. I looked for: {}.", looked.join(", "));
    if let Some(unknown) = state.hypothesis.strip_prefix(UNKNOWN).filter(|unknown| !is_refusal(unknown)) {
        answer.missing = unknown.split("; ").map(str::to_owned).collect();
        answer.answer.push_str(&format!(" Missing: {unknown}."));
    } else {
        answer.missing = vec![state.question.to_string()];
    }
    if state.useful_documents.is_empty() {
        answer.answer.push_str(" No passage is about it.");
    } else {
        let mut nearest: Vec<&str> = Vec::new();
        for useful in state.useful_documents.iter() {
            if !nearest.contains(&useful.passage.source.as_str()) && nearest.len() < 3 {
                nearest.push(&useful.passage.source);
            }
        }
        answer.answer.push_str(&format!(" Nearest: {}.", nearest.join(", ")));
    }
}

fn summary(state: &RagState) -> AnswerState {
    let mut sources: Vec<String> = Vec::new();
    for useful in state.useful_documents.iter() {
        if !sources.contains(&useful.passage.source) {
            sources.push(useful.passage.source.clone());
        }
    }
    AnswerState {
        hypothesis: state.hypothesis.to_string(),
        new_queries: state.new_queries.to_vec(),
        useful_documents: sources,
        notes: state.draft.iter().flat_map(|draft| &draft.notes).map(|note| note.text.clone()).collect(),
        judged: state.best.as_ref().or(state.draft.as_ref()).map(|draft| draft.judged).unwrap_or_default(),
    }
}

fn distinct<'c>(citations: impl Iterator<Item = &'c Citation>) -> Vec<Citation> {
    let mut seen: Vec<Citation> = Vec::new();
    for citation in citations {
        if !seen.contains(citation) {
            seen.push(citation.clone());
        }
    }
    seen
}
