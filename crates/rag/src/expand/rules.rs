//! Queries by code alone: what a question names and asks, without the words that only make it a question.

use crate::quantities::{is_stop_word, names};

/// Words that ask.
const ASKING: [&str; 10] = ["who", "whom", "whose", "what", "which", "when", "where", "why", "how", "whether"];
/// Verbs that change places with their subject in a question.
const TURNED: [&str; 9] = ["is", "was", "are", "were", "has", "had", "can", "does", "did"];

/// Most things named that get a query of their own.
const MOST_NAMES: usize = 3;

/// Other forms of `question`: as a statement, as bare words, and once for each thing it names where there are several.
pub(super) fn variants(question: &str) -> Vec<String> {
    let mut variants: Vec<String> = Vec::new();
    variants.extend(statement(question));
    let bare = bare_words(question, &[]);
    if bare.split(' ').count() > 1 {
        variants.push(bare);
    }
    let named = names(question);
    if named.len() > 1 {
        for name in named.iter().take(MOST_NAMES) {
            // What is asked, of this one alone.
            let others: Vec<&String> = named.iter().filter(|other| *other != name).collect();
            let rest = bare_words(question, &others);
            variants.push(rest);
        }
    }
    variants.dedup();
    variants
}

/// "When was the museum founded?" as a document says it: "the museum was founded".
fn statement(question: &str) -> Option<String> {
    let text = question.trim().trim_end_matches(['?', '.', '!', ' ']);
    let mut words = text.split_whitespace();
    let first = words.next()?.to_lowercase();
    let mut rest: Vec<&str> = words.collect();
    if !ASKING.contains(&first.as_str()) {
        return None;
    }
    let at = rest.iter().take(2).position(|word| TURNED.contains(&word.to_lowercase().as_str()))?;
    let verb = rest.remove(at);
    let asked: Vec<&str> = rest.drain(..at).collect();
    if rest.len() < 2 {
        return None;
    }
    // Where the subject ends nobody knows without a grammar; behind a participle at the end it is certain.
    let statement = match rest.split_last() {
        Some((last, subject)) if is_participle(last) => [subject, &[verb, *last]].concat(),
        _ => [rest.as_slice(), &[verb]].concat(),
    };
    let helps = !matches!(verb.to_lowercase().as_str(), "does" | "did");
    let words: Vec<&str> = statement.into_iter().filter(|word| helps || *word != verb).chain(asked).collect();
    Some(words.join(" "))
}

fn is_participle(word: &str) -> bool {
    let lower = word.to_lowercase();
    ["ed", "en", "wn", "lt", "nt", "ght", "born", "made"].iter().any(|ending| lower.ends_with(ending))
        && lower.len() > 3
}

/// The words of `question` that carry meaning, in their order, without those of `left_out`.
fn bare_words(question: &str, left_out: &[&String]) -> String {
    let mut text = question.to_owned();
    for name in left_out {
        text = text.replacen(name.as_str(), " ", 1);
    }
    text.split(|c: char| !(c.is_alphanumeric() || "-'’.,&".contains(c)))
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|word| {
            let lower = word.to_lowercase();
            // The "s" of a possessive whose name was taken out is no word.
            !word.is_empty() && lower != "s" && !is_stop_word(&lower) && !ASKING.contains(&lower.as_str())
        })
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m22_rules_need_no_generator() {
        let variants = variants("When was the museum of Skagen founded?");
        assert_eq!(variants[0], "the museum of Skagen was founded");
        assert_eq!(variants[1], "museum Skagen founded");
    }

    #[test]
    fn m22_a_comparison_asks_for_each_thing_it_names() {
        let variants = variants("Which film has the older director, Forbidden Ground or Free Guy?");
        assert!(variants.contains(&"film older director Forbidden Ground".to_owned()), "{variants:?}");
        assert!(variants.contains(&"film older director Free Guy".to_owned()), "{variants:?}");
    }
}
