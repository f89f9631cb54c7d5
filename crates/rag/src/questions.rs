//! Questions made from a passage, with answers that stand in it: a test set of one's own documents.

use anchorite_core::{Budget, GenerateOptions, InferenceError, Passage, generate_as};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Parts;
use crate::prompts;
use crate::words::content_words;

/// Most tokens of a question with its answer.
const TOKENS: usize = 96;
/// Most words of an answer: a longer one is hardly ever given in the same words.
const ANSWER_WORDS: usize = 8;
/// Least logit of the cross-encoder for the passage as an answer to its question.
const LEAST_LOGIT: f32 = 0.0;
/// Most share of the question's words that may be the answer's.
const GIVEN_AWAY: f32 = 0.34;

/// A question and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct MadeQuestion {
    /// The question.
    pub question: String,
    /// The answer, in words of the passage.
    pub answer: String,
}

/// Has the generator ask something that `passage` answers. `None` if what it wrote is of no use as a test: the answer does
/// not stand in the passage or is long, the question gives it away or is none, or the cross-encoder does not take the
/// passage for an answer to it.
///
/// # Errors
/// If a model fails or the budget is used up.
pub fn question_from(
    parts: &Parts<'_>,
    passage: &Passage,
    budget: &Budget,
) -> Result<Option<MadeQuestion>, InferenceError> {
    let Some(generator) = parts.generator else { return Ok(None) };
    let prompt = prompts::question_from(&passage.full_text());
    let made: MadeQuestion = match generate_as(generator, &prompt, GenerateOptions::greedy(TOKENS), budget) {
        Ok(made) => made,
        Err(InferenceError::Constraint { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let made = MadeQuestion { question: made.question.trim().to_owned(), answer: made.answer.trim().to_owned() };
    if !is_a_test(&made, passage) {
        return Ok(None);
    }
    let text = passage.full_text();
    let logit = parts.scores(&made.question, &[text.as_str()])?.and_then(|scores| scores.first().copied());
    Ok(logit.is_none_or(|logit| logit >= LEAST_LOGIT).then_some(made))
}

fn is_a_test(made: &MadeQuestion, passage: &Passage) -> bool {
    let (asked, said) = (content_words(&made.question), content_words(&made.answer));
    let given = said.iter().filter(|word| asked.contains(*word)).count();
    let text = passage.text.to_lowercase();
    made.question.ends_with('?')
        && asked.len() >= 2
        && !made.answer.is_empty()
        && made.answer.split_whitespace().count() <= ANSWER_WORDS
        && text.contains(&made.answer.to_lowercase())
        && given as f32 <= GIVEN_AWAY * said.len() as f32
        // "What does the passage say?" asks nothing of a search.
        && !["passage", "text above", "document say"].iter().any(|words| made.question.to_lowercase().contains(words))
}

#[cfg(test)]
mod tests {
    use anchorite_core::Scores;

    use super::*;

    #[test]
    fn m41_a_made_question_must_be_a_test() {
        let text = "The Wenlow bridge was opened in 1874. It is 418 metres long and has five arches.";
        let passage = Passage {
            chunk: 1,
            document: 1,
            source: "a.md".into(),
            title: String::new(),
            start: 0,
            end: text.len(),
            text: text.into(),
            dated: 0,
            owner: String::new(),
            scores: Scores::default(),
        };
        let good = |question: &str, answer: &str| {
            is_a_test(&MadeQuestion { question: question.into(), answer: answer.into() }, &passage)
        };
        assert!(good("How long is the Wenlow bridge?", "418 metres"));
        assert!(!good("How long is the Wenlow bridge?", "77 metres"), "it does not stand there");
        assert!(!good("How long is the Wenlow bridge", "418 metres"), "it is no question");
        assert!(!good("What does the passage say of the Wenlow bridge?", "five arches"));
        assert!(!good("Is the Wenlow bridge the Wenlow bridge?", "Wenlow bridge"), "it gives the answer away");
        assert!(!good("What of the Wenlow bridge?", "opened in 1874. It is 418 metres long and has"), "too long");
        assert!(!good("It?", "1874"));
    }
}
