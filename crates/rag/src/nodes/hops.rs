//! Several hops: a question taken apart, each part looked for with what the parts before have found (M28).

use std::ops::ControlFlow;

use anchorite_core::{GenerateOptions, Passage};
use anchorite_graph::NodeContext;

use super::{Update, context_room};
use crate::Parts;
use crate::expand::{Expansion, expand};
use crate::parts::fit;
use crate::prompts;
use crate::state::{Finding, RagState, RagUpdate};
use crate::words::normal_form;

/// Findings longer than this are sentences; only names and figures are carried into the next query.
const CARRIED_WORDS: usize = 8;

/// Passages that a finding is read from: those of its own hop, which fit any context.
const READ: usize = 3;

/// Takes the question apart into steps, in the order in which they can be taken; the question itself is the last. What has
/// drifted away from it is no step (M23), and without a generator there is one step only.
pub(crate) fn plan(parts: &Parts<'_>, state: &RagState, context: &NodeContext<'_>) -> Update {
    let question: &str = &state.question;
    let parts_of = expand(parts, question, &[Expansion::Decompose], context.budget())?;
    let mut steps: Vec<String> = parts_of.queries.into_iter().map(|variant| variant.text).collect();
    steps.truncate(parts.settings.hops.saturating_sub(1));
    steps.retain(|step| normal_form(step) != normal_form(question));
    steps.push(question.to_owned());
    context.note(&steps.join(" | "));
    let first = (steps.len() > 1).then(|| vec![steps[0].clone()]);
    Ok(RagUpdate { plan: Some(steps), new_queries: first, ..RagUpdate::default() })
}

/// Reads off what the hop has found, and makes the next hop's query: the next step with the findings so far.
pub(crate) fn finding(parts: &Parts<'_>, state: &RagState, context: &NodeContext<'_>) -> Update {
    let hop = state.findings.len();
    let Some(step) = state.plan.get(hop) else { return Ok(RagUpdate::default()) };
    let mut finding = Finding { question: step.clone(), answer: String::new() };
    let last = hop + 1 >= state.plan.len();
    if let Some(generator) = parts.generator.filter(|_| !last) {
        let asked = state.queries();
        let mut own: Vec<&Passage> = state
            .useful_documents
            .iter()
            .filter(|useful| asked.contains(&useful.query.as_str()))
            .map(|useful| &useful.passage)
            .collect();
        own.truncate(READ);
        if !own.is_empty() {
            let passages = fit(&own, context_room(parts), generator);
            let options = GenerateOptions::greedy(24).stop_at("\n");
            let prompt = prompts::finding(step, &passages);
            let written =
                generator.generate(&prompt, &options, context.budget(), &mut |_| ControlFlow::Continue(()))?;
            let text = written.text.trim().trim_end_matches('.').to_owned();
            if !prompts::is_refusal(&text) && !text.eq_ignore_ascii_case(prompts::NOT_FOUND) {
                finding.answer = text;
            }
        }
    }
    context.note(&format!("{} {}", finding.question, if finding.answer.is_empty() { "–" } else { &finding.answer }));
    let mut findings: Vec<&Finding> = state.findings.iter().collect();
    findings.push(&finding);
    let query = state.plan.get(hop + 1).map(|next| carry(next, &findings));
    Ok(RagUpdate { new_queries: query.map(|query| vec![query]), findings: vec![finding], ..RagUpdate::default() })
}

/// A step with what was found before it, where it does not say so itself.
fn carry(step: &str, findings: &[&Finding]) -> String {
    let mut query = step.to_owned();
    for finding in findings {
        let answer = finding.answer.as_str();
        let short = !answer.is_empty() && answer.split_whitespace().count() <= CARRIED_WORDS;
        if short && !query.to_lowercase().contains(&answer.to_lowercase()) {
            query.push(' ');
            query.push_str(answer);
        }
    }
    query
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m28_a_step_carries_what_was_found() {
        let found = Finding { question: "Who wrote it?".into(), answer: "Ana Ruiz".into() };
        let nothing = Finding { question: "When?".into(), answer: String::new() };
        assert_eq!(carry("Where was she born?", &[&found, &nothing]), "Where was she born? Ana Ruiz");
        assert_eq!(carry("Where was Ana Ruiz born?", &[&found]), "Where was Ana Ruiz born?");
    }
}
