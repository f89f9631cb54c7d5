//! Answers without a generator (M43): sentences taken from the passages as they stand.

use std::collections::BTreeSet;

use anchorite_core::{Citation, Claim, InferenceError, Passage, Verdict};
use anchorite_text::sentences;

use crate::Parts;
use crate::grade::sigmoid;
use crate::quantities::Note;
use crate::words::content_words;

struct Candidate<'p> {
    passage: &'p Passage,
    start: usize,
    text: &'p str,
    score: f32,
}

/// Sentences of the passages, best first: by cross-encoder, or by content words in common with the question.
fn ranked<'p>(parts: &Parts<'_>, question: &str, passages: &[&'p Passage]) -> Result<Vec<Candidate<'p>>, InferenceError> {
    let mut candidates: Vec<Candidate<'p>> = passages
        .iter()
        .flat_map(|passage| {
            sentences(&passage.text).into_iter().filter_map(|range| {
                let text = passage.text[range.clone()].trim();
                let lead = passage.text[range.clone()].find(text).unwrap_or(0);
                let is_statement = text.split_whitespace().count() > 3 && !text.starts_with('#') && !text.starts_with("Source:");
                is_statement.then_some(Candidate { passage, start: passage.start + range.start + lead, text, score: 0.0 })
            })
        })
        .collect();
    let texts: Vec<&str> = candidates.iter().map(|candidate| candidate.text).collect();
    let scores = match parts.scores(question, &texts)? {
        Some(scores) => scores,
        None => {
            let asked = content_words(question);
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

/// Sentences that say under which conditions an answer holds, taken as they stand: a sum that is due only under
/// conditions is not answered without them. At most `most`, none that the answer's claims say or cite already.
///
/// # Errors
/// If the reranker fails.
pub(crate) fn conditions(
    parts: &Parts<'_>,
    question: &str,
    passages: &[&Passage],
    claims: &[Claim],
    most: usize,
) -> Result<Vec<Claim>, InferenceError> {
    const SIGNS: [&str; 11] =
        ["only if", "only when", "provided", "unless", "must", "condition", "except", "as long as", "applies to", "covered", "has to"];
    let said: BTreeSet<String> = claims.iter().flat_map(|claim| content_words(&claim.text)).collect();
    let mut chosen: Vec<Claim> = Vec::new();
    let mut words_chosen: Vec<BTreeSet<String>> = Vec::new();
    for candidate in ranked(parts, question, passages)? {
        if chosen.len() == most {
            break;
        }
        let lower = candidate.text.to_lowercase();
        let words = content_words(candidate.text);
        let end = candidate.start + candidate.text.len();
        let cited = claims
            .iter()
            .flat_map(|claim| &claim.citations)
            .any(|c| c.chunk == candidate.passage.chunk && c.start < end && candidate.start < c.end);
        let repeats = |known: &BTreeSet<String>| words.intersection(known).count() * 4 > words.len() * 3;
        if candidate.score < -2.0
            || cited
            || repeats(&said)
            || words_chosen.iter().any(repeats)
            || !SIGNS.iter().any(|sign| lower.contains(sign))
        {
            continue;
        }
        words_chosen.push(words);
        chosen.push(Claim {
            text: candidate.text.trim_start_matches(['-', '*', ' ']).to_owned(),
            verdict: Verdict::Supported,
            confidence: sigmoid(candidate.score + 2.0),
            citations: vec![Citation {
                source: candidate.passage.source.clone(),
                title: candidate.passage.title.clone(),
                chunk: candidate.passage.chunk,
                start: candidate.start,
                end,
                quote: candidate.text.to_owned(),
            }],
        });
    }
    Ok(chosen)
}
