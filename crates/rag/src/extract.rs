//! Answers without a generator (M43): sentences taken from the passages as they stand.

use anchorite_core::{Citation, Claim, InferenceError, Passage, Verdict, titled};
use anchorite_text::sentences;

use crate::Parts;
use crate::grade::sigmoid;
use crate::prompts;
use crate::quantities::Note;
use crate::words::content_words;

struct Candidate<'p> {
    passage: &'p Passage,
    start: usize,
    text: &'p str,
    score: f32,
}

/// Sentences of the passages, best first: by cross-encoder, or by content words in common with `query`.
fn ranked<'p>(parts: &Parts<'_>, query: &str, passages: &[&'p Passage]) -> Result<Vec<Candidate<'p>>, InferenceError> {
    let mut candidates: Vec<Candidate<'p>> = passages
        .iter()
        .flat_map(|passage| {
            sentences(&passage.text).into_iter().filter_map(|range| {
                let sentence = &passage.text[range.clone()];
                let text = sentence.trim();
                let is_statement =
                    text.split_whitespace().count() > 3 && !text.starts_with('#') && !text.starts_with("Source:");
                let start = passage.start + range.start + (sentence.len() - sentence.trim_start().len());
                is_statement.then_some(Candidate { passage, start, text, score: 0.0 })
            })
        })
        .collect();
    // A sentence alone does not say what it is about; its document's title does.
    let texts: Vec<String> = candidates.iter().map(|found| titled(&found.passage.title, found.text)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let scores = match parts.scores(query, &texts)? {
        Some(scores) => scores,
        None => {
            let asked = content_words(query);
            let common = |text: &str| content_words(text).intersection(&asked).count() as f32;
            texts.iter().map(|text| 2.0 * common(text) - 1.0 - asked.len() as f32).collect()
        }
    };
    for (candidate, score) in candidates.iter_mut().zip(scores) {
        candidate.score = score;
    }
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
    Ok(candidates)
}

/// An answer without a generator: what code computed, then the best sentence. Empty if no sentence speaks to the question.
pub(crate) fn extractive_answer(
    parts: &Parts<'_>,
    question: &str,
    passages: &[&Passage],
    notes: &[Note],
) -> Result<String, InferenceError> {
    let mut pieces: Vec<String> = notes.iter().map(|note| note.text.clone()).collect();
    if let Some(best) = ranked(parts, question, passages)?.first().filter(|best| best.score > 0.0) {
        pieces.push(best.text.to_owned());
    }
    Ok(pieces.join(" "))
}

/// Sentences that say when the rule stated by `rule` holds and for whom, as they stand: what is due only under conditions
/// is not answered without them. In the order of the documents; none that `claims` cite already.
///
/// # Errors
/// If the reranker fails.
pub(crate) fn conditions(
    parts: &Parts<'_>,
    question: &str,
    rule: &Passage,
    passages: &[&Passage],
    claims: &[Claim],
) -> Result<Vec<Claim>, InferenceError> {
    let others: Vec<&Passage> = passages.iter().filter(|passage| passage.document != rule.document).copied().collect();
    let queries = [(prompts::conditions_query(question), 3), (prompts::coverage_query(&rule.title), 3)];
    let mut chosen: Vec<Candidate<'_>> = Vec::new();
    for (query, most) in queries {
        let cited = |found: &Candidate<'_>| {
            let end = found.start + found.text.len();
            let mut citations = claims.iter().flat_map(|claim| &claim.citations);
            citations.any(|c| c.chunk == found.passage.chunk && c.start < end && found.start < c.end)
        };
        let found: Vec<Candidate<'_>> = ranked(parts, &query, &others)?
            .into_iter()
            .filter(|found| found.score > LEAST_CONDITION && !cited(found))
            .filter(|found| chosen.iter().all(|known| known.text != found.text))
            .take(most)
            .collect();
        chosen.extend(found);
    }
    let place = |found: &Candidate<'_>| others.iter().position(|passage| passage.chunk == found.passage.chunk);
    chosen.sort_by_key(|found| (place(found), found.start));
    Ok(chosen.iter().map(as_claim).collect())
}

/// Least logit of a sentence that is given as a condition.
const LEAST_CONDITION: f32 = -3.0;

fn as_claim(found: &Candidate<'_>) -> Claim {
    Claim {
        text: found.text.trim_start_matches(['-', '*', ' ']).to_owned(),
        verdict: Verdict::Supported,
        confidence: sigmoid(found.score - LEAST_CONDITION),
        citations: vec![Citation {
            source: found.passage.source.clone(),
            title: found.passage.title.clone(),
            chunk: found.passage.chunk,
            start: found.start,
            end: found.start + found.text.len(),
            quote: found.text.to_owned(),
        }],
    }
}
