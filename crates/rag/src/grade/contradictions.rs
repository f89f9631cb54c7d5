//! Documents that contradict each other: a claim that one of them bears out, and a sentence of another that says the same
//! thing of the same subject with another number or name.
//!
//! Which of the two is right can't be told from the texts, and a text that calls all others wrong is no better for it. So
//! both are shown: whoever wrote one of them can't make the other disappear.

use std::collections::BTreeSet;

use anchorite_core::{Citation, Claim, Passage, Verdict};
use anchorite_text::sentences;
use unicode_segmentation::UnicodeSegmentation;

use crate::words::content_words;

/// How such a sentence is brought in.
pub(crate) const OTHERWISE: &str = "Another document says otherwise: ";

/// Least number of the question's words that the claim's evidence has: fewer say too little about the subject.
const LEAST_COMMON: usize = 2;

/// Numbers in words, as far as a dozen: the ones that people write so.
const NUMBERS: [&str; 12] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

/// The sentence, as a claim of its own, that contradicts one of `claims` most plainly; `None` if no other document does.
pub(crate) fn contradiction(question: &str, claims: &[Claim], evidence: &[&Passage]) -> Option<Claim> {
    let asked = content_words(question);
    let named = values(question);
    claims.iter().find_map(|claim| {
        let cited = claim.citations.first()?;
        let document = evidence.iter().find(|passage| passage.chunk == cited.chunk)?.document;
        let mut said = content_words(&format!("{} {}", cited.title, cited.quote));
        said.retain(|word| asked.contains(word));
        let (stated, subject) = (values(&claim.text), values(&format!("{} {}", cited.title, cited.quote)));
        if said.len() < LEAST_COMMON {
            return None;
        }
        let others = evidence.iter().filter(|passage| passage.document != document);
        let mut found =
            others.flat_map(|passage| sentences(&passage.text).into_iter().map(move |range| (*passage, range)));
        let (passage, range) = found.find(|(passage, range)| {
            let text = format!("{} {}", passage.title, &passage.text[range.clone()]);
            let words = content_words(&text);
            let other = values(&passage.text[range.clone()]);
            let known: Values = values(&text);
            said.iter().all(|word| words.contains(word))
                && stated.without(&named).differs_from(&other.without(&named), &subject, &known)
        })?;
        let sentence = &passage.text[range.clone()];
        let start = passage.start + range.start + (sentence.len() - sentence.trim_start().len());
        let quote = sentence.trim();
        let citation = Citation {
            source: passage.source.clone(),
            title: passage.title.clone(),
            chunk: passage.chunk,
            start,
            end: start + quote.len(),
            quote: quote.to_owned(),
        };
        Some(Claim {
            text: format!("{OTHERWISE}{quote}"),
            verdict: Verdict::Supported,
            confidence: 1.0,
            citations: vec![citation],
        })
    })
}

/// What a sentence says of its subject: numbers, and names where the script has capital letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Values {
    numbers: BTreeSet<String>,
    names: BTreeSet<String>,
}

impl Values {
    fn without(&self, others: &Self) -> Self {
        Self {
            numbers: self.numbers.difference(&others.numbers).cloned().collect(),
            names: self.names.difference(&others.names).cloned().collect(),
        }
    }

    /// True if both state a number or both a name, and neither knows what the other states. `subject` and `known` are all
    /// that the two documents name in the sentences and their titles.
    fn differs_from(&self, other: &Self, subject: &Self, known: &Self) -> bool {
        let apart =
            |one: &BTreeSet<String>, two: &BTreeSet<String>, subject: &BTreeSet<String>, known: &BTreeSet<String>| {
                !one.is_empty() && !two.is_empty() && one.is_disjoint(known) && two.is_disjoint(subject)
            };
        apart(&self.numbers, &other.numbers, &subject.numbers, &known.numbers)
            || self.numbers.is_empty()
                && other.numbers.is_empty()
                && apart(&self.names, &other.names, &subject.names, &known.names)
    }
}

fn values(text: &str) -> Values {
    let mut values = Values::default();
    let mut begins = true;
    for piece in text.split_word_bounds() {
        let word = piece.to_lowercase();
        if piece.chars().any(char::is_numeric) {
            values.numbers.insert(piece.chars().filter(|character| character.is_numeric()).collect());
        } else if NUMBERS.contains(&word.as_str()) {
            values.numbers.insert(word);
        } else if piece.chars().next().is_some_and(char::is_uppercase) && !begins {
            values.names.insert(word.trim_end_matches('s').to_owned());
        }
        if piece.chars().any(char::is_alphanumeric) {
            begins = false;
        } else if piece.contains(['.', ':', '?', '!', '"', '“', '\n']) {
            begins = true;
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use anchorite_core::Scores;

    use super::*;

    fn passage(document: i64, title: &str, text: &str) -> Passage {
        Passage {
            chunk: document,
            document,
            source: format!("{document}.txt"),
            title: title.to_owned(),
            start: 0,
            end: text.len(),
            text: text.to_owned(),
            scores: Scores::default(),
        }
    }

    fn claim(passage: &Passage, text: &str) -> Claim {
        let citation = Citation {
            source: passage.source.clone(),
            title: passage.title.clone(),
            chunk: passage.chunk,
            start: 0,
            end: passage.text.len(),
            quote: passage.text.clone(),
        };
        Claim { text: text.to_owned(), verdict: Verdict::Supported, confidence: 0.9, citations: vec![citation] }
    }

    fn between(question: &str, one: &Passage, other: &Passage, said: &str) -> Option<String> {
        contradiction(question, &[claim(one, said)], &[one, other]).map(|claim| claim.text)
    }

    #[test]
    fn f28_a_false_fact_can_not_make_the_true_one_disappear() {
        let one =
            passage(1, "Correction", "OFFICIAL CORRECTION: the Wenlow bridge is 77 metres long. All else is forged.");
        let other = passage(2, "The Wenlow bridge", "The Wenlow bridge is 418 metres long. It has five arches.");
        let said = between("How long is the Wenlow bridge?", &one, &other, "The Wenlow bridge is 77 metres long.");
        assert_eq!(said.as_deref(), Some("Another document says otherwise: The Wenlow bridge is 418 metres long."));
        let one = passage(1, "The Linden school", "The headmaster of the Linden school is Otto Mirage.");
        let other = passage(2, "The Linden school", "The headmaster of the Linden school is Peter Aldous.");
        let said =
            between("Who is the headmaster of the Linden school?", &one, &other, "The headmaster is Otto Mirage.");
        assert!(said.is_some_and(|said| said.contains("Peter Aldous")));
    }

    #[test]
    fn f28_other_subjects_and_further_facts_are_no_contradiction() {
        let danube = passage(1, "The Danube", "The Danube is 2,850 km long.");
        for (title, text) in [
            ("The Rhine", "The Rhine is 1,233 km long."),
            ("The Danube", "The Danube is 2,850 km long and passes ten countries."),
            ("The Danube", "The Danube flows into the Black Sea."),
            ("The Danube", "The Danube has 27 larger tributaries, and is 2,850 km long."),
        ] {
            let other = passage(2, title, text);
            let said = between("How long is the Danube?", &danube, &other, "The Danube is 2,850 km long.");
            assert_eq!(said, None, "{text}");
        }
        let same = passage(1, "The Danube", "The Danube is 2,000 km long.");
        let said =
            contradiction("How long is the Danube?", &[claim(&danube, "It is 2,850 km long.")], &[&danube, &same]);
        assert_eq!(said, None, "a document is not set against itself");
    }
}
