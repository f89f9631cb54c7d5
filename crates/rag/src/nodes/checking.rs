//! Checking what was written.

use anchorite_core::{Judged, Verdict};
use anchorite_graph::NodeContext;

use super::{Update, readable};
use crate::Parts;
use crate::grade::{support, usefulness};
use crate::question::parts_of;
use crate::settings::Piece;
use crate::state::{RagState, RagUpdate};

/// Decisions 3 and 4 (M12, M13): is every claim supported, and does the answer answer the question?
pub(crate) fn grade_generation(parts: &Parts<'_>, state: &RagState, context: &NodeContext<'_>) -> Update {
    let Some(mut draft) = (*state.draft).clone() else { return Ok(RagUpdate::default()) };
    let evidence = state.evidence();
    let (passages, _) = readable(parts, &state.question, &evidence);
    if draft.refusal {
        draft.faults = vec!["the passages do not hold the answer".to_owned()];
        context.note("no answer was given");
        return Ok(RagUpdate { draft: Some(Some(draft)), ..RagUpdate::default() });
    }
    let grounding = support(parts, &state.question, &draft.text, &passages, &draft.notes, context.budget())?;
    draft.support = grounding.claims.iter().map(|claim| claim.confidence).fold(1.0, f32::min);
    draft.supported =
        !grounding.claims.is_empty() && grounding.claims.iter().all(|claim| claim.verdict == Verdict::Supported);
    draft.supported |= !parts.settings.has(Piece::Support);
    draft.claims = grounding.claims;
    draft.faults = grounding.faults;
    draft.judged.supported = grounding.signals.first().and_then(|signals| signals.opinion);
    draft.judged.coverage = grounding.signals.iter().map(|signals| signals.coverage).fold(1.0, f32::min);
    let cited: Vec<&str> =
        draft.claims.iter().flat_map(|claim| &claim.citations).map(|citation| citation.quote.as_str()).collect();
    draft.usefulness = usefulness(
        parts,
        &state.question,
        &draft.text,
        &cited,
        (&passages, &draft.notes),
        &mut draft.judged,
        context.budget(),
    )?;
    // A question for several things is answered when each of them is.
    let asked = parts_of(&state.question);
    for part in asked.iter().filter(|_| asked.len() > 1) {
        let mut judged = Judged { held: draft.judged.held, supported: draft.judged.supported, ..Judged::default() };
        let evidence = (passages.as_slice(), draft.notes.as_slice());
        let alone = usefulness(parts, part, &draft.text, &cited, evidence, &mut judged, context.budget())?;
        if alone < parts.settings.usefulness {
            draft.faults.push(format!("the answer does not say: {part}"));
            draft.unanswered.push(part.clone());
            draft.usefulness = draft.usefulness.min(alone);
        }
    }
    if !parts.settings.has(Piece::Usefulness) {
        (draft.usefulness, draft.unanswered) = (1.0, Vec::new());
    }
    draft.useful = draft.usefulness >= parts.settings.usefulness;
    if !draft.useful && draft.unanswered.is_empty() {
        draft.faults.push("the answer does not give what is asked for".to_owned());
    }
    context.note(&format!("support {:.2}, usefulness {:.2}", draft.support, draft.usefulness));
    let better = state.best.as_ref().is_none_or(|best| draft.merit() > best.merit());
    Ok(RagUpdate { best: better.then(|| Some(draft.clone())), draft: Some(Some(draft)), ..RagUpdate::default() })
}
