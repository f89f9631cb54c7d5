//! All judges of support together, as the loop asks them.

use anchorite_core::{Budget, Generator, InferenceError, Passage};
use anchorite_text::sentences;

use super::{Grounding, ground};
use crate::Parts;
use crate::prompts;
use crate::quantities::Note;
use crate::words::content_words;

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
            let nearest = parts.settings.judge_tokens.map(|most| nearest(generator, answer, passages, most));
            let read = nearest.as_ref().map(|nearest| nearest.iter().collect::<Vec<_>>());
            let prompt = prompts::supported(question, answer, read.as_deref().unwrap_or(passages), notes);
            parts.opinion(&prompt, budget)?
        }
        None => None,
    };
    Ok(ground(question, answer, passages, notes, opinion, parts.settings))
}

/// The sentences of `passages` that have most of the words of `answer`, as many as `most` tokens hold, in their order.
/// Passages that fit are left whole.
fn nearest(generator: &dyn Generator, answer: &str, passages: &[&Passage], most: usize) -> Vec<Passage> {
    let whole: usize = passages.iter().map(|passage| generator.count(&passage.full_text())).sum();
    if whole <= most {
        return passages.iter().map(|passage| (*passage).clone()).collect();
    }
    let words = content_words(answer);
    let mut all: Vec<(usize, std::ops::Range<usize>, usize)> = Vec::new();
    for (index, passage) in passages.iter().enumerate() {
        let title = content_words(&passage.title);
        for range in sentences(&passage.text) {
            let mut own = content_words(&passage.text[range.clone()]);
            own.extend(title.iter().cloned());
            all.push((index, range, own.intersection(&words).count()));
        }
    }
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(all[at].2));
    let (mut kept, mut left) = (Vec::new(), most);
    for at in order {
        let (index, range, _) = &all[at];
        let cost = generator.count(&passages[*index].text[range.clone()]);
        if cost > left && !kept.is_empty() {
            continue;
        }
        left = left.saturating_sub(cost);
        kept.push(at);
    }
    kept.sort_unstable();
    let mut trimmed: Vec<(usize, Passage)> = Vec::new();
    for at in kept {
        let (index, range, _) = &all[at];
        let text = passages[*index].text[range.clone()].trim();
        match trimmed.last_mut() {
            Some((last, passage)) if last == index => {
                passage.text.push(' ');
                passage.text.push_str(text);
            }
            _ => trimmed.push((*index, Passage { text: text.to_owned(), ..passages[*index].clone() })),
        }
    }
    trimmed.into_iter().map(|(_, passage)| passage).collect()
}

#[cfg(test)]
mod tests {
    use anchorite_core::Scores;
    use anchorite_testkit::ScriptedGenerator;

    use super::*;

    #[test]
    fn m20_of_a_long_text_the_judge_reads_the_sentences_nearest_to_the_claim() {
        let text = "The ferry leaves at nine. Gulls are loud in spring. The pier was painted green. The ferry takes two hours.";
        let passage = Passage {
            chunk: 1,
            document: 1,
            source: "a.md".to_owned(),
            title: String::new(),
            start: 0,
            end: text.len(),
            text: text.to_owned(),
            dated: 0,
            owner: String::new(),
            scores: Scores::default(),
        };
        let generator = ScriptedGenerator::new(&[]);
        let read = |most| nearest(&generator, "How long does the ferry take? Two hours.", &[&passage], most);
        assert_eq!(read(12)[0].text, "The ferry leaves at nine. The ferry takes two hours.");
        assert_eq!(read(100), std::slice::from_ref(&passage));
        assert_eq!(read(1)[0].text, "The ferry takes two hours.", "never nothing");
    }
}
