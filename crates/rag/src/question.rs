//! What a question asks for: its parts, and the language it is in.

use unicode_segmentation::UnicodeSegmentation;

use crate::quantities::{is_stop_word, names};

/// Words that begin a further part behind "and".
const ASKING: [&str; 20] = [
    "who", "whom", "whose", "what", "which", "when", "where", "why", "how", "wer", "wen", "was", "welche", "welcher",
    "welches", "wann", "wo", "warum", "wie", "wieviel",
];

const AND: [&str; 2] = ["and", "und"];

/// Shortest part, in words: "and how?" is no part of its own.
const LEAST_WORDS: usize = 3;

/// The parts of a question that asks for several things ("When was it built, and who built it?"), each with the names it
/// needs; the question alone if it asks for one (M30).
pub(crate) fn parts_of(question: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for asked in question.split_inclusive('?') {
        let mut from = 0;
        let words: Vec<(usize, &str)> = asked.unicode_word_indices().collect();
        for pair in words.windows(2) {
            let ((and_at, and), (next_at, next)) = (pair[0], pair[1]);
            let begins = AND.contains(&and.to_lowercase().as_str())
                && ASKING.contains(&next.to_lowercase().as_str())
                && words.iter().any(|(at, word)| *at < and_at && ASKING.contains(&word.to_lowercase().as_str()));
            // "What and who" ask for one thing; a part has words of its own on both sides.
            let long = |text: &str| text.unicode_words().count() >= LEAST_WORDS;
            if begins && long(&asked[from..and_at]) && long(&asked[next_at..]) {
                parts.push(asked[from..and_at].to_owned());
                from = next_at;
            }
        }
        parts.push(asked[from..].to_owned());
    }
    let mut parts: Vec<String> = parts
        .iter()
        .map(|part| part.trim().trim_end_matches([',', ';', ' ']).to_owned())
        .filter(|part| part.unicode_words().count() >= LEAST_WORDS)
        .collect();
    let asks = |part: &String| part.unicode_words().take(4).any(|word| ASKING.contains(&word.to_lowercase().as_str()));
    if parts.len() < 2 || !parts.iter().all(asks) {
        return vec![question.trim().to_owned()];
    }
    for part in &mut parts {
        *part = with_names(part, question);
        if !part.ends_with('?') {
            part.push('?');
        }
    }
    parts
}

/// A phrase with the names of the question, if it has no name of its own: without one it would find what is of the same
/// kind and about something else.
pub(crate) fn with_names(phrase: &str, question: &str) -> String {
    let named = names(question);
    if phrase.trim().is_empty() || named.is_empty() || !names(phrase).is_empty() {
        return phrase.to_owned();
    }
    format!("{} {}", phrase.trim_end_matches(['?', '.', ' ']), named.join(" "))
}

/// True if a text is English as far as its small words tell; one without small words counts as English.
pub(crate) fn is_english(text: &str) -> bool {
    let words: Vec<String> = text.unicode_words().map(str::to_lowercase).collect();
    let foreign = words.iter().filter(|word| word.chars().any(|c| c.is_alphabetic() && !c.is_ascii())).count();
    let asks_german = words.iter().any(|word| ASKING[9..].contains(&word.as_str()) && word != "was" && word != "wo");
    let small = words.iter().filter(|word| is_stop_word(word)).count();
    !asks_german && (small > 0 || 2 * foreign < words.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m30_a_question_for_several_things_has_parts() {
        assert_eq!(
            parts_of("When was the Elm Bridge built, and who paid for it?"),
            ["When was the Elm Bridge built?", "who paid for it Elm Bridge?"]
        );
        assert_eq!(parts_of("Who wrote it? Where did Ana Ruiz live?").len(), 2);
        assert_eq!(
            parts_of("Wann wurde die Brücke gebaut und wer hat sie bezahlt?"),
            ["Wann wurde die Brücke gebaut?", "wer hat sie bezahlt Brücke?"]
        );
        for one in ["Who wrote War and Peace?", "What and who?", "How much do I get if it rains and I stay?", "Skagen"]
        {
            assert_eq!(parts_of(one), [one]);
        }
    }

    #[test]
    fn a_search_phrase_gets_the_names_it_lacks() {
        let asked = "How far is it from Delhi to Munich?";
        assert_eq!(with_names("What is the distance?", asked), "What is the distance Delhi Munich");
        assert_eq!(with_names("the distance from Delhi", asked), "the distance from Delhi");
        assert_eq!(with_names("the distance", "How far is it?"), "the distance");
    }

    #[test]
    fn the_language_of_a_question_is_told() {
        assert!(is_english("Who discovered Titan?") && is_english("Super Bowl 2021 location"));
        assert!(!is_english("Wann wurde die Brücke gebaut?") && !is_english("谁发现了土卫六？"));
        assert!(!is_english("Когда был построен мост?"));
    }
}
