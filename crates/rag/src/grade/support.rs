//! All judges of support together, as the loop asks them.

use anchorite_core::{Budget, InferenceError, Passage};

use super::{Grounding, ground};
use crate::Parts;
use crate::prompts;
use crate::quantities::Note;

/// Grades every claim of `answer`: the generator, if there is one, is asked once for the whole answer, the rest is done by
/// [`ground`].
///
/// # Errors
/// If the generator fails or the budget is used up.
pub fn support(
    parts: &Parts<'_>,
    question: &str,
    answer: &str,
    passages: &[&Passage],
    notes: &[Note],
    budget: &Budget,
) -> Result<Grounding, InferenceError> {
    let opinion = match parts.generator {
        Some(generator) => {
            let prompt = prompts::supported(question, answer, passages, notes);
            Some(generator.choose(&prompt, &["Yes", "No"], budget)?[0])
        }
        None => None,
    };
    Ok(ground(question, answer, passages, notes, opinion, parts.settings))
}
