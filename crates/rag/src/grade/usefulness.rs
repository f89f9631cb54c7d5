//! Decision 4: does an answer answer the question?

use anchorite_core::{Budget, InferenceError, Judged, Passage};

use super::claims::comes_to;
use super::{log_odds, sigmoid};
use crate::Parts;
use crate::prompts;
use crate::quantities::{Note, extract};

/// Probability that `answer` gives what `question` asks for, and fills in what its judges said. A refusal is no answer, and
/// neither is one without a number where a number is asked for; otherwise the cross-encoder's score and the generator's
/// yes/no logits are added up. `cited` are the sentences that the answer rests on.
///
/// # Errors
/// If a model fails or the budget is used up.
pub fn usefulness(
    parts: &Parts<'_>,
    question: &str,
    answer: &str,
    cited: &[&str],
    (passages, notes): (&[&Passage], &[Note]),
    judged: &mut Judged,
    budget: &Budget,
) -> Result<f32, InferenceError> {
    if prompts::is_refusal(answer) || (asks_for_quantity(question) && !has_quantity(answer)) {
        return Ok(0.0);
    }
    if let Some(scores) = parts.scores(question, &[answer])? {
        judged.answer_logit = Some(scores[0]);
    }
    if let Some(scores) = parts.scores(question, cited)? {
        judged.evidence_logit = scores.into_iter().reduce(f32::max);
    }
    judged.useful = parts.opinion(&prompts::useful(question, answer, passages, notes), budget)?;
    // A note was computed for this question; whoever says what it comes to answers it.
    let noted = if notes.iter().any(|note| comes_to(answer, note)) { NOTED } else { 0.0 };
    Ok(sigmoid(noted + weigh(judged)))
}

/// What the answer is worth that says what a note comes to.
const NOTED: f32 = 3.0;

/// Log-odds that an answer is what was asked for, by logistic regression on drafts to the development questions. With a probe of
/// whether the passages hold one, what the generator says of support adds nothing any more; these weights lie between those
/// of two fits, to right answers (.43, .74, .05) and to questions that can be answered (1.0, .44, .09). Without a generator
/// the cross-encoder is alone: its logit of the answer as a reply.
fn weigh(judged: &Judged) -> f32 {
    let evidence = judged.evidence_logit.unwrap_or_default().clamp(-10.0, 10.0);
    let odds = |probability: Option<f32>| probability.map(log_odds);
    match (odds(judged.held), odds(judged.supported), odds(judged.useful)) {
        (Some(held), _, useful) => 0.7 * held + 0.8 * useful.unwrap_or_default() + 0.05 * evidence - 0.3,
        (None, Some(supported), Some(useful)) => 0.6 * supported + 0.5 * useful + 0.08 * evidence - 1.1,
        _ => 0.3 * judged.answer_logit.unwrap_or_default().clamp(-6.0, 6.0),
    }
}

/// True for questions that only a quantity answers.
fn asks_for_quantity(question: &str) -> bool {
    let lower = question.to_lowercase();
    [
        "how much",
        "how many",
        "how far",
        "how long",
        "how high",
        "how tall",
        "how old",
        "how heavy",
        "how deep",
        "how fast",
        "how big",
        "how large",
        "in which year",
        "in what year",
        "what year",
    ]
    .iter()
    .any(|start| lower.contains(start))
}

/// A number, or a word that stands for one.
fn has_quantity(answer: &str) -> bool {
    const WORDS: [&str; 12] =
        ["half", "twice", "double", "triple", "none", "nothing", "zero", "free", "no", "all", "every", "once"];
    !extract(answer).is_empty()
        || answer.chars().any(char::is_numeric)
        || answer.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|word| WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m13_a_question_for_a_quantity_needs_one() {
        assert!(asks_for_quantity("How much can I receive?") && asks_for_quantity("In which year was it built?"));
        assert!(!asks_for_quantity("Who built it?"));
        assert!(
            has_quantity("It costs 600 EUR.") && has_quantity("You get half.") && has_quantity("It has five moons.")
        );
        assert!(!has_quantity("It depends on the distance."));
    }

    #[test]
    fn m13_m20_passages_that_do_not_hold_the_answer_outweigh_a_generator_that_says_yes() {
        let threshold = crate::Settings::default().usefulness;
        let judged = |held| Judged {
            held,
            supported: Some(0.6),
            useful: Some(0.6),
            evidence_logit: Some(2.0),
            ..Judged::default()
        };
        assert!(sigmoid(weigh(&judged(Some(0.1)))) < threshold);
        assert!(sigmoid(weigh(&judged(Some(0.8)))) > threshold);
        assert!(sigmoid(weigh(&judged(None))) > threshold);
    }
}
