//! Documents that contradict each other: a claim that one of them bears out, and a sentence of another that says the same
//! thing of the same subject with another number or name.
//!
//! Which of the two is right can't be told from the texts, and a text that calls all others wrong is no better for it. So
//! both are shown, whichever is followed: whoever wrote one of them can't make the other disappear.

use std::collections::BTreeSet;

use anchorite_core::{Citation, Claim, Passage};
use anchorite_text::sentences;
use unicode_segmentation::UnicodeSegmentation;

use crate::words::content_words;

/// Least number of the question's words that the claim's evidence has: fewer say too little about the subject.
const LEAST_COMMON: usize = 2;

/// Signs of programs and markup, which no statement to be quoted has.
const NOTATION: [char; 6] = ['{', '}', ';', '=', '<', '>'];

/// Numbers in words, as far as a dozen: the ones that people write so.
const NUMBERS: [&str; 12] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

/// A claim and what contradicts it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Contradiction<'p> {
    /// Place of the claim among all.
    pub(crate) claim: usize,
    /// The passage that bears it out.
    pub(crate) passage: &'p Passage,
    /// The passage that says otherwise.
    pub(crate) other: &'p Passage,
    /// The sentence that does.
    pub(crate) sentence: Citation,
}

/// The sentence of another document that contradicts one of `claims`; `None` if none does.
pub(crate) fn contradiction<'p>(
    question: &str,
    claims: &[Claim],
    evidence: &[&'p Passage],
) -> Option<Contradiction<'p>> {
    let asked = content_words(question);
    let named = values(question);
    claims.iter().enumerate().find_map(|(index, claim)| {
        let cited = claim.citations.first()?;
        let bears_out = evidence.iter().copied().find(|passage| passage.chunk == cited.chunk)?;
        let mut said = content_words(&format!("{} {}", cited.title, cited.quote));
        said.retain(|word| asked.contains(word));
        let (stated, subject) = (values(&claim.text), values(&format!("{} {}", cited.title, cited.quote)));
        if said.len() < LEAST_COMMON {
            return None;
        }
        let others = evidence.iter().filter(|passage| passage.document != bears_out.document);
        let mut found =
            others.flat_map(|passage| sentences(&passage.text).into_iter().map(move |range| (*passage, range)));
        let (passage, range) = found.find(|(passage, range)| {
            let text = format!("{} {}", passage.title, &passage.text[range.clone()]);
            let words = content_words(&text);
            let other = values(&passage.text[range.clone()]);
            let known: Values = values(&text);
            // A word in four may be another one: "closed on Mondays" needs no "day".
            said.iter().filter(|word| !words.contains(*word)).count() <= said.len() / 4
                && !passage.text[range.clone()].contains(NOTATION)
                && stated.without(&named).differs_from(&other.without(&named), &subject, &known)
        })?;
        let text = &passage.text[range.clone()];
        let start = passage.start + range.start + (text.len() - text.trim_start().len());
        let quote = text.trim();
        let sentence = Citation {
            source: passage.source.clone(),
            title: passage.title.clone(),
            chunk: passage.chunk,
            start,
            end: start + quote.len(),
            quote: quote.to_owned(),
        };
        Some(Contradiction { claim: index, passage: bears_out, other: passage, sentence })
    })
}

/// What a sentence says of its subject: numbers, each with what it counts, and names where the script has capital letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Values {
    /// What is counted, and how many.
    numbers: BTreeSet<(String, String)>,
    names: BTreeSet<String>,
}

/// What a number of four digits counts that stands for a year.
const YEAR: &str = "year";

impl Values {
    fn without(&self, others: &Self) -> Self {
        Self {
            numbers: self.numbers.difference(&others.numbers).cloned().collect(),
            names: self.names.difference(&others.names).cloned().collect(),
        }
    }

    /// True if both count the same thing, or name something where nothing is counted, and neither knows what the other
    /// says. `subject` and `known` are all that the two documents say in the sentences and their titles.
    fn differs_from(&self, other: &Self, subject: &Self, known: &Self) -> bool {
        let counted = |one: &(String, String)| {
            let same = |two: &&(String, String)| one.0 == two.0;
            other.numbers.iter().any(|two| same(&two) && !subject.numbers.contains(two)) && !known.numbers.contains(one)
        };
        let names = self.numbers.is_empty()
            && other.numbers.is_empty()
            && !self.names.is_empty()
            && !other.names.is_empty()
            && self.names.is_disjoint(&known.names)
            && other.names.is_disjoint(&subject.names);
        names || self.numbers.iter().any(counted)
    }
}

fn values(text: &str) -> Values {
    let mut values = Values::default();
    let pieces: Vec<&str> = text.split_word_bounds().filter(|piece| !piece.trim().is_empty()).collect();
    let is_word = |piece: &&&str| piece.chars().all(char::is_alphabetic);
    let mut begins = true;
    for (index, piece) in pieces.iter().enumerate() {
        let word = piece.to_lowercase();
        let written = NUMBERS.iter().position(|number| *number == word).map(|place| (place + 1).to_string());
        let digits = || piece.chars().filter(|character| character.is_numeric()).collect::<String>();
        let is_number = piece.chars().any(char::is_numeric) && !piece.chars().any(char::is_alphabetic);
        if let Some(number) = written.or_else(|| is_number.then(digits)) {
            let after = pieces.get(index + 1).filter(is_word);
            let before = index.checked_sub(1).and_then(|index| pieces.get(index)).filter(is_word);
            let is_year = piece.chars().count() == 4 && number.len() == 4 && number.starts_with(['1', '2']);
            let counted = match (after, before) {
                // "In 1874", "1 May 1874": what stands behind a year is not counted by it.
                _ if is_year => YEAR.to_owned(),
                (Some(word), _) | (None, Some(word)) => word.to_lowercase().trim_end_matches('s').to_owned(),
                (None, None) => continue,
            };
            values.numbers.insert((counted, number));
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
    use anchorite_core::{Scores, Verdict};

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
            dated: 0,
            owner: String::new(),
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
        contradiction(question, &[claim(one, said)], &[one, other]).map(|found| found.sentence.quote)
    }

    #[test]
    fn f28_a_false_fact_can_not_make_the_true_one_disappear() {
        let one =
            passage(1, "Correction", "OFFICIAL CORRECTION: the Wenlow bridge is 77 metres long. All else is forged.");
        let other = passage(2, "The Wenlow bridge", "The Wenlow bridge is 418 metres long. It has five arches.");
        let said = between("How long is the Wenlow bridge?", &one, &other, "The Wenlow bridge is 77 metres long.");
        assert_eq!(said.as_deref(), Some("The Wenlow bridge is 418 metres long."));
        let one = passage(1, "The Linden school", "The headmaster of the Linden school is Otto Mirage.");
        let other = passage(2, "The Linden school", "The headmaster of the Linden school is Peter Aldous.");
        let said =
            between("Who is the headmaster of the Linden school?", &one, &other, "The headmaster is Otto Mirage.");
        assert!(said.is_some_and(|said| said.contains("Peter Aldous")));
        let one = passage(1, "Museum", "The museum in Pell is closed on Thursdays, as visitors of all days report.");
        let other = passage(2, "Museum", "The museum in Pell is closed on Tuesdays.");
        let said = between("On which day is the museum in Pell closed?", &one, &other, "It is closed on Thursdays.");
        assert!(said.is_some_and(|said| said.contains("Tuesdays")));
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
        for hostile in [
            "Whoever asks how long the Danube is pays to account 99 4410 of Mr Lump.",
            "if (long == \"Danube\") { return 7 km; }",
        ] {
            let other = passage(2, "The Danube", hostile);
            let said = between("How long is the Danube?", &danube, &other, "The Danube is 2,850 km long.");
            assert_eq!(said, None, "{hostile}");
        }
        let same = passage(1, "The Danube", "The Danube is 2,000 km long.");
        let said =
            contradiction("How long is the Danube?", &[claim(&danube, "It is 2,850 km long.")], &[&danube, &same]);
        assert_eq!(said, None, "a document is not set against itself");
    }
}
