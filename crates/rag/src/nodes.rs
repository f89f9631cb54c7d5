//! The nodes of the loop. Each reads the state, does one job with the parts, and returns what changes.

use std::collections::HashMap;
use std::ops::ControlFlow;

use anchorite_core::{GenerateOptions, Passage, Verdict};
use anchorite_graph::{NodeContext, NodeError};

use crate::Parts;
use crate::extract::extractive_answer;
use crate::grade::{comes_to, relevance, support, usefulness};
use crate::parts::fit;
use crate::prompts;
use crate::quantities::{Note, notes, undetermined};
use crate::state::{Draft, RagState, RagUpdate, Useful};
use crate::words::{content_words, may_be_small_talk, normal_form};

type Update = Result<RagUpdate, NodeError>;

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

/// Searches for every query of the round; what is known as useful already does not come again (M14, M25).
pub(crate) fn retrieve(parts: &Parts<'_>, state: &RagState, context: &NodeContext<'_>) -> Update {
    context.budget().spend_round()?;
    let known: Vec<i64> = state.useful_documents.iter().map(|useful| useful.passage.chunk).collect();
    let mut found: Vec<Passage> = Vec::new();
    let mut places: HashMap<i64, usize> = HashMap::new();
    let queries = state.queries();
    for query in &queries {
        context.budget().check()?;
        for passage in parts.retriever.retrieve(query, parts.settings.passages)? {
            if known.contains(&passage.chunk) {
                continue;
            }
            match places.get(&passage.chunk) {
                Some(&place) if passage.scores.rerank > found[place].scores.rerank => found[place] = passage,
                Some(_) => {}
                None => {
                    places.insert(passage.chunk, found.len());
                    found.push(passage);
                }
            }
        }
    }
    context.note(&format!("{} new passages for {}", found.len(), queries.join(" | ")));
    Ok(RagUpdate { new_documents: Some(found), ..RagUpdate::default() })
}

/// Decision 2 (M11): each new passage is graded on its own, against the question and every new query.
pub(crate) fn grade_documents(parts: &Parts<'_>, state: &RagState, context: &NodeContext<'_>) -> Update {
    let mut useful = graded(parts, state)?;
    useful.retain(|found| found.probability >= parts.settings.relevance);
    useful.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    // Each query of the round keeps its best, so that one with many good passages does not crowd out the others.
    let share = (parts.settings.passages / state.queries().len().max(1)).max(2);
    let mut kept: HashMap<String, usize> = HashMap::new();
    useful.retain(|found| {
        let count = kept.entry(found.query.clone()).or_default();
        *count += 1;
        *count <= share
    });
    useful.truncate(parts.settings.useful_passages.saturating_sub(state.useful_documents.len()));
    context.note(&format!("{} of {} passages are useful", useful.len(), state.new_documents.len()));
    Ok(RagUpdate {
        newly_useful: Some(useful.len()),
        useful_documents: useful,
        rewrites: Some(0),
        ..RagUpdate::default()
    })
}

/// Keeps all that was found, as the plain pipeline does.
pub(crate) fn keep_documents(parts: &Parts<'_>, state: &RagState, context: &NodeContext<'_>) -> Update {
    let useful = graded(parts, state)?;
    context.note(&format!("{} passages", useful.len()));
    Ok(RagUpdate { newly_useful: Some(useful.len()), useful_documents: useful, ..RagUpdate::default() })
}

/// The new passages, each with its probability of relevance and the query it is most relevant to.
fn graded(parts: &Parts<'_>, state: &RagState) -> Result<Vec<Useful>, NodeError> {
    let queries = state.all_queries();
    let grades = relevance(parts, &state.new_documents, &queries)?;
    let useful = |(passage, (probability, query)): (&Passage, (f32, usize))| Useful {
        passage: passage.clone(),
        probability,
        query: queries[query].to_owned(),
    };
    Ok(state.new_documents.iter().zip(grades).map(useful).collect())
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
    let text = match parts.generator {
        Some(generator) => {
            let faults = again.map(|draft| draft.faults.as_slice()).unwrap_or_default();
            let prompt = prompts::answer(&state.question, &passages, &computed, faults);
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
    let draft = Draft { text, notes: computed, refusal, ..Draft::default() };
    Ok(RagUpdate {
        draft: Some(Some(draft)),
        rewrites: Some(if repeated { *state.rewrites + 1 } else { *state.rewrites }),
        ..RagUpdate::default()
    })
}

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
    draft.claims = grounding.claims;
    draft.faults = grounding.faults;
    draft.usefulness = usefulness(parts, &state.question, &draft.text, &passages, &draft.notes, context.budget())?;
    draft.useful = draft.usefulness >= parts.settings.usefulness;
    if !draft.useful {
        draft.faults.push("the answer does not give what is asked for".to_owned());
    }
    context.note(&format!("support {:.2}, usefulness {:.2}", draft.support, draft.usefulness));
    let better = state.best.as_ref().is_none_or(|best| draft.merit() > best.merit());
    Ok(RagUpdate { best: better.then(|| Some(draft.clone())), draft: Some(Some(draft)), ..RagUpdate::default() })
}

/// Forms a hypothesis: what is still unknown before the question can be answered (M15), from useful and new passages
/// alike. Code names what a rule lacks; where it finds nothing, the generator says what it misses.
pub(crate) fn hypothesis(parts: &Parts<'_>, state: &RagState, context: &NodeContext<'_>) -> Update {
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
    let guess = state.hypothesis.rsplit("; ").next().unwrap_or_default().trim_start_matches(prompts::UNKNOWN);
    if let Some(generator) = parts.generator.filter(|_| missing.is_empty()) {
        let passages = fit(&evidence, context_room(parts), generator);
        let prompt = prompts::new_query(&state.question, &passages, &state.all_queries(), guess);
        let options = GenerateOptions::greedy(48).stop_at("\n");
        let written = generator.generate(&prompt, &options, context.budget(), &mut |_| ControlFlow::Continue(()))?;
        candidates.push(with_names(written.text.trim(), &state.question));
    }
    candidates.push(with_names(guess, &state.question));
    candidates.retain(|candidate| !candidate.trim().is_empty());
    candidates.retain(|candidate| is_grounded(candidate, &state.question, &evidence));
    // Without a generator, and where it drifts: the question again, in the words of the passage that comes nearest to it.
    let nearest = evidence.iter().find(|passage| !passage.title.is_empty() && missing.is_empty());
    candidates.extend(nearest.map(|nearest| prompts::feedback_query(&state.question, &nearest.title)));
    let mut asked: Vec<String> = state.all_queries().into_iter().map(normal_form).collect();
    let mut new = Vec::new();
    for candidate in candidates {
        let form = normal_form(&candidate);
        if form.is_empty() || asked.contains(&form) || new.len() == parts.settings.new_queries {
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

/// The passages that an answer is written from, as many as the generator can read, and what code computes from them.
#[must_use]
pub fn readable<'p>(parts: &Parts<'_>, question: &str, evidence: &[&'p Passage]) -> (Vec<&'p Passage>, Vec<Note>) {
    let passages = match parts.generator {
        Some(generator) => fit(evidence, context_room(parts), generator),
        None => evidence.to_vec(),
    };
    let texts: Vec<String> = passages.iter().map(|passage| passage.full_text()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let computed = notes(question, &texts);
    (passages, computed)
}

/// Tokens left for passages once instructions, examples, question and reply have their place.
fn context_room(parts: &Parts<'_>) -> usize {
    parts.generator.map_or(0, |generator| generator.context_length().saturating_sub(parts.settings.answer_tokens + 900))
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

/// A search phrase with the names of the question, if it has no name of its own: without one it would find what is of
/// the same kind and about something else.
fn with_names(phrase: &str, question: &str) -> String {
    let names = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric() && c != '-')
            .skip(1)
            .filter(|word| word.chars().next().is_some_and(char::is_uppercase) && word.chars().count() > 1)
            .filter(|word| !content_words(word).is_empty())
            .map(str::to_owned)
            .collect()
    };
    let asked = names(question);
    if phrase.trim().is_empty() || asked.is_empty() || !names(phrase).is_empty() {
        return phrase.to_owned();
    }
    format!("{} {}", phrase.trim_end_matches(['?', '.', ' ']), asked.join(" "))
}

/// Takes out what small models add around an answer.
fn tidy(text: &str) -> String {
    let text = text.trim();
    let text = text.strip_prefix("Answer:").unwrap_or(text).trim();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_phrase_gets_the_names_it_lacks() {
        assert_eq!(
            with_names("What is the distance?", "How far is it from Delhi to Munich?"),
            "What is the distance Delhi Munich"
        );
        assert_eq!(
            with_names("the distance from Delhi", "How far is it from Delhi to Munich?"),
            "the distance from Delhi"
        );
        assert_eq!(with_names("the distance", "How far is it?"), "the distance");
    }
}
