//! What is still unknown, and the queries that look for it.

use std::ops::ControlFlow;

use anchorite_core::{GenerateOptions, Passage};
use anchorite_graph::NodeContext;

use super::{Update, context_room};
use crate::Parts;
use crate::parts::fit;
use crate::prompts;
use crate::quantities::undetermined;
use crate::question::with_names;
use crate::settings::Piece;
use crate::state::{RagState, RagUpdate};
use crate::words::{content_words, normal_form};

/// Forms a hypothesis: what is still unknown before the question can be answered (M15), from useful and new passages
/// alike. Code names what a rule lacks; where it finds nothing, the generator says what it misses.
pub(crate) fn hypothesis(parts: &Parts<'_>, state: &RagState, context: &NodeContext<'_>) -> Update {
    if !parts.settings.has(Piece::Hypothesis) {
        return Ok(RagUpdate::default());
    }
    let evidence = suggestive(state);
    let mut unknown: Vec<String> = lacking(state).into_iter().map(|missing| missing.query).collect();
    unknown.dedup();
    if let Some(generator) = parts.generator.filter(|_| unknown.is_empty()) {
        let passages = fit(&evidence, context_room(parts), generator);
        let prompt = prompts::hypothesis(&state.question, &passages, &state.all_queries());
        let options = GenerateOptions::greedy(40).stop_at("\n");
        let written = generator.generate(&prompt, &options, context.budget(), &mut |_| ControlFlow::Continue(()))?;
        let line = written.text.trim().trim_end_matches('.').to_owned();
        if !line.is_empty() && is_grounded(&line, &state.question, &evidence) {
            unknown.push(line);
        }
    }
    let hypothesis =
        if unknown.is_empty() { String::new() } else { format!("{}{}", prompts::UNKNOWN, unknown.join("; ")) };
    context.note(&hypothesis);
    Ok(RagUpdate { hypothesis: Some(hypothesis), ..RagUpdate::default() })
}

/// Queries nearer to each other than this (cosine) ask the same in other words.
const SAME: f32 = 0.97;

/// Writes new queries from the question, the passages and the hypothesis (M16). The question itself never changes, and
/// nothing is asked twice.
pub(crate) fn transform_query(parts: &Parts<'_>, state: &RagState, context: &NodeContext<'_>) -> Update {
    let evidence = suggestive(state);
    // What code found missing comes first: it is right, where the generator guesses. A rule raises two more questions.
    let missing = lacking(state);
    let mut candidates: Vec<String> = missing.iter().map(|missing| missing.query.clone()).collect();
    if let Some(Lacking { rule_title, .. }) = missing.first() {
        candidates.push(prompts::conditions_query(&state.question));
        candidates.extend((!rule_title.is_empty()).then(|| prompts::coverage_query(rule_title)));
    }
    // Then the parts of the question that the last answer left open.
    candidates.extend(state.draft.iter().flat_map(|draft| draft.unanswered.iter().cloned()));
    let guess = state.hypothesis.rsplit("; ").next().unwrap_or_default().trim_start_matches(prompts::UNKNOWN);
    if let Some(generator) = parts.generator.filter(|_| missing.is_empty()) {
        let passages = fit(&evidence, context_room(parts), generator);
        let prompt = prompts::new_query(&state.question, &passages, &state.all_queries(), guess);
        let options = GenerateOptions::greedy(48).stop_at("\n");
        let written = generator.generate(&prompt, &options, context.budget(), &mut |_| ControlFlow::Continue(()))?;
        candidates.push(with_names(written.text.trim(), &state.question));
    }
    candidates.push(with_names(guess, &state.question));
    // A line of several is one of those that the prompt lists as searched.
    candidates.retain(|candidate| !candidate.trim().is_empty() && !candidate.contains(" | "));
    candidates.retain(|candidate| is_grounded(candidate, &state.question, &evidence));
    // Without a generator, and where it drifts: the question again, in the words of the passage that comes nearest to it.
    let nearest = evidence.iter().find(|passage| !passage.title.is_empty() && missing.is_empty());
    candidates.extend(nearest.map(|nearest| prompts::feedback_query(&state.question, &nearest.title)));
    let mut asked: Vec<String> = state.all_queries().into_iter().map(normal_form).collect();
    let mut new: Vec<String> = Vec::new();
    for candidate in candidates {
        let form = normal_form(&candidate);
        if form.is_empty() || asked.contains(&form) || new.len() == parts.settings.new_queries {
            continue;
        }
        let before: Vec<&str> = state.all_queries().into_iter().chain(new.iter().map(String::as_str)).collect();
        let near = parts.similarities(&candidate, &before)?;
        if near.is_some_and(|near| near.into_iter().any(|cosine| cosine > SAME)) {
            continue;
        }
        asked.push(form);
        new.push(candidate);
    }
    context.note(&if new.is_empty() { "nothing new to ask".to_owned() } else { new.join(" | ") });
    let exhausted = new.is_empty();
    Ok(RagUpdate { new_queries: (!exhausted).then_some(new), exhausted: Some(exhausted), ..RagUpdate::default() })
}

/// A quantity without which a rule can't be applied.
pub(crate) struct Lacking {
    /// A search phrase for it.
    query: String,
    /// Title of the passage that states the rule.
    rule_title: String,
}

/// What the rules among the useful passages lack, and nobody has looked for yet.
pub(crate) fn lacking(state: &RagState) -> Vec<Lacking> {
    let evidence = state.evidence();
    let texts: Vec<String> = evidence.iter().map(|passage| passage.full_text()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let asked: Vec<String> = state.all_queries().into_iter().map(normal_form).collect();
    undetermined(&state.question, &texts)
        .into_iter()
        .map(|missing| Lacking {
            query: match &missing.about {
                Some(about) => format!("the {} for {about}", missing.what),
                None => format!("the {}", missing.what),
            },
            rule_title: evidence[missing.passage].title.clone(),
        })
        .filter(|missing| !asked.contains(&normal_form(&missing.query)))
        .collect()
}

/// Passages that may suggest what to look for: the useful ones, and the best of the new ones, also when none was useful;
/// but none that has nothing to do with the question at all.
fn suggestive(state: &RagState) -> Vec<&Passage> {
    const UNRELATED: f32 = -9.0;
    let mut passages = state.evidence();
    let related = |passage: &&Passage| passage.scores.rerank.is_none_or(|logit| logit > UNRELATED);
    for passage in state.new_documents.iter().filter(related).take(3) {
        if passages.len() < 6 && passages.iter().all(|known| known.chunk != passage.chunk) {
            passages.push(passage);
        }
    }
    passages
}

/// True if most content words of a query stand in the question or in the passages. Small models copy words of the examples
/// they are shown, and a query made of those leads nowhere.
fn is_grounded(query: &str, question: &str, passages: &[&Passage]) -> bool {
    let mut known = content_words(question);
    known.extend(passages.iter().flat_map(|passage| content_words(&passage.full_text())));
    let words = content_words(query);
    2 * words.intersection(&known).count() > words.len()
}
