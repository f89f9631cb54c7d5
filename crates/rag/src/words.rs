//! Content words: what two texts have in common beyond grammar.

use std::collections::BTreeSet;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_segmentation::UnicodeSegmentation;

use crate::quantities::is_stop_word;

/// Words that answers and questions use of themselves, beside those that carry no meaning anywhere.
const OF_THE_TALK: [&str; 7] = ["answer", "based", "here", "passage", "passages", "question", "therefore"];

/// Stems (Porter 2001, English) of the content words of `text`, lower case. Numbers and symbols of units are left to those
/// who compare quantities.
pub(crate) fn content_words(text: &str) -> BTreeSet<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    let is_symbol = |word: &str| {
        word.chars().any(char::is_numeric)
            || (word.is_ascii() && word.len() < 3 && word.chars().any(char::is_lowercase))
    };
    text.unicode_words()
        .filter(|word| !is_symbol(word))
        .map(str::to_lowercase)
        .filter(|word| !is_stop_word(word) && !OF_THE_TALK.contains(&word.as_str()))
        .map(|word| stemmer.stem(word.trim_end_matches("'s").trim_end_matches("’s")).into_owned())
        .collect()
}

/// A form in which two queries that ask the same in other order or with other small words are equal.
pub(crate) fn normal_form(query: &str) -> String {
    content_words(query).into_iter().collect::<Vec<_>>().join(" ")
}

/// True if a message may be no more than a greeting or thanks: it has no content word beyond those of courtesy.
pub(crate) fn may_be_small_talk(message: &str) -> bool {
    const COURTESY: [&str; 24] = [
        "afternoon",
        "bye",
        "cheer",
        "day",
        "even",
        "friend",
        "glad",
        "goodby",
        "good",
        "great",
        "hello",
        "hey",
        "hi",
        "meet",
        "morn",
        "nice",
        "night",
        "ok",
        "okay",
        "pleas",
        "thank",
        "today",
        "welcom",
        "well",
    ];
    content_words(message).iter().all(|word| COURTESY.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m16_small_words_and_order_make_no_new_query() {
        assert_eq!(
            normal_form("What is the distance between Delhi and Munich?"),
            normal_form("Distance from Munich to Delhi")
        );
        assert_ne!(normal_form("distance Delhi Munich"), normal_form("distance Delhi Rome"));
    }

    #[test]
    fn m10_only_courtesy_may_be_small_talk() {
        for message in ["Hello!", "Thank you very much", "Good morning, how are you today?", "Nice to meet you"] {
            assert!(may_be_small_talk(message), "{message}");
        }
        for message in ["How to cook a bagel?", "Who discovered Titan?", "600 EUR?"] {
            assert!(!may_be_small_talk(message), "{message}");
        }
    }
}
