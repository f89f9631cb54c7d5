//! What a passage is about: the name its title consists of, and the sentences that speak of it by a pronoun.

use std::ops::Range;

use super::words::{Name, Word, names_of, words_of};

const PRONOUNS: &[&str] = &["it", "its", "he", "his", "she", "her"];
/// A pronoun behind one of these may mean that person.
const RELATIVES: &[&str] = &[
    "father",
    "mother",
    "brother",
    "sister",
    "son",
    "daughter",
    "wife",
    "husband",
    "uncle",
    "aunt",
    "nephew",
    "niece",
    "cousin",
    "parents",
    "teacher",
    "pupil",
    "student",
    "friend",
    "colleague",
    "successor",
    "predecessor",
    "assistant",
    "rival",
];

/// A pronoun reaches back no more sentences than this.
const MAX_BACK: usize = 8;

/// The sentence that is nothing but a name, with a year in brackets perhaps, among the first two of a passage.
///
/// A plain text file stands behind its file name, which is why the second may be the title.
pub(super) fn title_name(text: &str, sentences: &[Range<usize>]) -> Option<(usize, Name)> {
    sentences.iter().take(2).enumerate().find_map(|(index, sentence)| {
        let names = names_of(text, sentence.clone());
        let [name] = names.as_slice() else { return None };
        let outside = words_of(text, sentence.clone()).into_iter().filter(|word| {
            let inside = name.span.start <= word.span.start && word.span.end <= name.span.end;
            !inside && word.lower != "the" && !word.lower.bytes().all(|byte| byte.is_ascii_digit())
        });
        (outside.count() == 0).then(|| (index, name.clone()))
    })
}

/// Whether a pronoun of the sentence means the subject of the title.
///
/// The sentence must open with the pronoun, or hold one and no name at all. Going back from it, every sentence must do
/// the same, until one has the subject's own name; nobody else may come between who could be meant.
pub(super) fn speaks_of_subject(text: &str, sentences: &[Range<usize>], index: usize) -> bool {
    let Some((title, subject)) = title_name(text, sentences) else { return false };
    if index <= title || !has_leading_pronoun(text, &sentences[index]) {
        return false;
    }
    for earlier in sentences[title + 1..index].iter().rev().take(MAX_BACK) {
        let words = words_of(text, earlier.clone());
        let own =
            subject.words.last().is_some_and(|last| words.iter().any(|word| word.capitalised && word.lower == *last));
        let relative = last_relative(text, &words);
        if own {
            let named = subject.words.last().and_then(|last| words.iter().rposition(|word| word.lower == *last));
            // "Bizet's wife left Paris. She died …": whoever is named last may be meant.
            return relative.is_none_or(|relative| named.is_some_and(|named| named > relative));
        }
        if relative.is_some() || !(has_leading_pronoun(text, earlier) || is_without_actors(text, earlier, &words)) {
            return false;
        }
    }
    false
}

/// The last word for somebody's relative: "his father", but not "the son of an innkeeper", who is the subject himself.
fn last_relative(text: &str, words: &[Word]) -> Option<usize> {
    let is_owner = |word: &Word| {
        matches!(word.lower.as_str(), "his" | "her" | "their" | "whose")
            || ["'s", "’s"].iter().any(|ending| text[word.span.end..].starts_with(ending))
    };
    (0..words.len()).rev().find(|index| {
        RELATIVES.contains(&words[*index].lower.as_str()) && words[index.saturating_sub(3)..*index].iter().any(is_owner)
    })
}

/// A pronoun stands before every name, or among no names at all.
fn has_leading_pronoun(text: &str, sentence: &Range<usize>) -> bool {
    let words = words_of(text, sentence.clone());
    let names = names_of(text, sentence.clone());
    let pronoun = words.iter().find(|word| PRONOUNS.contains(&word.lower.as_str()));
    pronoun.is_some_and(|pronoun| names.iter().all(|name| pronoun.span.start < name.span.start))
}

/// The subject appears as an object ("turned him down"), and every name is that of a place ("in Milan").
fn is_without_actors(text: &str, sentence: &Range<usize>, words: &[Word]) -> bool {
    let object = words.iter().any(|word| matches!(word.lower.as_str(), "him" | "her" | "it"));
    object
        && names_of(text, sentence.clone()).iter().all(|name| {
            let before = words.iter().rev().find(|word| word.span.end <= name.span.start);
            before.is_some_and(|word| matches!(word.lower.as_str(), "in" | "at" | "near"))
        })
}
