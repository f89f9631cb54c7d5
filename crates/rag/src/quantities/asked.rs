//! What a question asks for, and whether a rule could give it.

use std::collections::BTreeSet;
use std::ops::Range;

use super::relevance::Question;
use super::source::{Source, speaks_of};
use super::tiers::{Outcome, Rule};
use super::units::{Dimension, unit_at};
use super::words::{content_stems, stem, words_of};

/// Words after "how" and the dimensions of what they ask for.
const DEGREES: &[(&str, &[Dimension])] = &[
    ("far", &[Dimension::Length]),
    ("tall", &[Dimension::Length]),
    ("high", &[Dimension::Length]),
    ("deep", &[Dimension::Length]),
    ("wide", &[Dimension::Length]),
    ("long", &[Dimension::Length, Dimension::Time]),
    ("old", &[Dimension::Time]),
    ("soon", &[Dimension::Time]),
    ("late", &[Dimension::Time]),
    ("early", &[Dimension::Time]),
    ("heavy", &[Dimension::Mass]),
    ("fast", &[Dimension::Speed]),
    ("strong", &[Dimension::Speed]),
    ("hot", &[Dimension::Temperature]),
    ("cold", &[Dimension::Temperature]),
    ("warm", &[Dimension::Temperature]),
];

/// Nouns that ask for a share or for a sum.
const SHARES: &[&str] = &["share", "percentage", "percent", "part", "portion", "fraction", "proportion", "discount"];
const SUMS: &[&str] =
    &["sum", "amount", "money", "compensation", "payment", "fee", "price", "fine", "cost", "euros", "dollars"];

/// Words that ask under which name something falls.
const CLASSES: &[&str] = &[
    "category",
    "class",
    "kind",
    "type",
    "band",
    "level",
    "grade",
    "group",
    "zone",
    "stage",
    "tier",
    "scale",
    "rating",
    "rank",
    "count",
    "counts",
    "counted",
    "considered",
    "classified",
    "classed",
    "rated",
    "called",
    "mean",
    "means",
];

/// The dimensions that an answer must have; nothing where the question leaves it open.
fn required_dimensions(question: &Question<'_>) -> Option<Vec<Dimension>> {
    let spans: Vec<Range<usize>> =
        words_of(question.text, 0..question.text.len()).into_iter().map(|word| word.span).collect();
    let words = question.words();
    if words.first().is_some_and(|first| matches!(first.as_str(), "who" | "whose" | "whom" | "where")) {
        return Some(Vec::new());
    }
    for (index, pair) in words.windows(2).enumerate() {
        match (pair[0].as_str(), pair[1].as_str()) {
            ("how", "many") => {
                let unit = spans.get(index + 2).and_then(|noun| unit_at(question.text, noun.start));
                return Some(vec![unit.map_or(Dimension::Count, |(unit, _)| unit.dimension)]);
            }
            // A sum is high as well as a tower.
            ("how", "high") if words.iter().skip(index + 2).take(3).any(|word| SUMS.contains(&word.as_str())) => {
                return Some(vec![Dimension::Money]);
            }
            ("how", degree) => {
                return DEGREES.iter().find(|row| row.0 == degree).map(|row| row.1.to_vec());
            }
            ("which" | "what", "city" | "town" | "country" | "village" | "year" | "month" | "day" | "person") => {
                return Some(Vec::new());
            }
            _ => {}
        }
    }
    None
}

/// The dimension that an answer most likely has: "what share", "how much money".
fn likely_dimension(question: &Question<'_>) -> Option<Dimension> {
    let words = question.words();
    let asks = words.iter().enumerate().find_map(|(index, word)| match word.as_str() {
        "what" | "which" => Some(index + 1),
        "how" if words.get(index + 1).is_some_and(|next| matches!(next.as_str(), "much" | "large" | "big")) => {
            Some(index + 2)
        }
        _ => None,
    })?;
    let near = &words[asks..words.len().min(asks + 3)];
    let has = |nouns: &[&str]| near.iter().any(|word| nouns.contains(&word.as_str()));
    if has(SHARES) {
        return Some(Dimension::Percent);
    }
    (has(SUMS) || words[asks - 1] == "much").then_some(Dimension::Money)
}

/// Things that have rules of their own: where the question speaks of one and the passage does not, the rule is another's.
const OWN_SUBJECTS: &[&[&str]] = &[
    &["baggage", "luggage", "suitcase", "suitcases", "bag", "bags"],
    &["meal", "meals", "food", "drinks", "hotel", "overnight"],
    &["pet", "pets", "dog", "cat"],
    &["tax", "taxes", "duty", "customs"],
];

fn is_of_another_subject(question: &Question<'_>, source: &Source<'_>) -> bool {
    let words = question.words();
    let speaks = |subject: &&[&str], of: &dyn Fn(&str) -> bool| subject.iter().any(|word| of(word));
    let elsewhere = OWN_SUBJECTS.iter().any(|subject| {
        speaks(subject, &|word| words.iter().any(|known| known == word))
            && !speaks(subject, &|word| source.stems.contains(&stem(word)))
    });
    // "the Beaufort scale": a scale by name is that one only.
    let other_scale = question.names.iter().any(|name| {
        let next = question.text[name.span.end..].split_whitespace().next().unwrap_or("");
        matches!(next.trim_end_matches(['?', ',', '.']), "scale" | "index" | "classification" | "system")
            && !speaks_of(source, name)
    });
    elsewhere || other_scale
}

/// Whether the question may ask for what the rule gives.
fn may_ask_for(question: &Question<'_>, source: &Source<'_>, rule: &Rule) -> bool {
    if is_of_another_subject(question, source) {
        return false;
    }
    let required = required_dimensions(question);
    let fits = rule.tiers.iter().any(|tier| match &tier.outcome {
        Outcome::Quantity(outcome) => required.as_ref().is_none_or(|some| some.contains(&outcome.dimension())),
        Outcome::Label(label) => required.is_none() && asks_for_name(question, rule, label),
    });
    // A single word in common, such as "flight", makes no common subject.
    let (shared, all) = (question.stems.intersection(&source.stems).count(), question.stems.len());
    // A share is an answer to "how much" only where the subject leaves no doubt.
    let unlikely = likely_dimension(question).is_some_and(|likely| !gives(rule, likely));
    fits && if unlikely { 2 * shared >= all } else { shared >= 2 || 4 * shared >= all }
}

fn gives(rule: &Rule, dimension: Dimension) -> bool {
    rule.tiers.iter().any(|tier| match &tier.outcome {
        Outcome::Quantity(outcome) => outcome.dimension() == dimension,
        Outcome::Label(_) => false,
    })
}

fn asks_for_name(question: &Question<'_>, rule: &Rule, label: &str) -> bool {
    let words = question.words();
    let stems = content_stems(label, 0..label.len());
    words.iter().any(|word| CLASSES.contains(&word.as_str()) || stems.contains(&stem(word)))
        || question.scan.quantities.iter().any(|quantity| quantity.dimension() == rule.dimension)
}

/// The rules that may give what the question asks for; of these the ones that most likely do, where there are such.
pub(super) fn answering<'s>(
    question: &Question<'_>,
    sources: &[Source<'_>],
    rules: Vec<(usize, &'s Rule, f64)>,
) -> Vec<(usize, &'s Rule, f64)> {
    let mut rules = rules;
    rules.retain(|(passage, rule, _)| may_ask_for(question, &sources[*passage], rule));
    let likely = likely_dimension(question);
    if rules.iter().any(|(_, rule, _)| likely.is_some_and(|likely| gives(rule, likely))) {
        rules.retain(|(_, rule, _)| likely.is_some_and(|likely| gives(rule, likely)));
    }
    // A passage that shares less with the question, and nothing that another one does not share, has the wrong rule.
    let shared =
        |passage: usize| -> BTreeSet<&String> { question.stems.intersection(&sources[passage].stems).collect() };
    let all: Vec<(Dimension, BTreeSet<&String>)> =
        rules.iter().map(|(passage, rule, _)| (rule.dimension, shared(*passage))).collect();
    let mut own = all.iter();
    rules.retain(|_| {
        let Some((dimension, own)) = own.next() else { return true };
        !all.iter().any(|(other, words)| other == dimension && own.len() < words.len() && own.is_subset(words))
    });
    rules
}

/// Words that say when in the life of a storm its wind is meant, and words of the evidence that say the same.
const MOMENTS: &[(&[&str], &[&str])] = &[
    (
        &["landfall", "ashore", "landed"],
        &["landfall", "ashore", "struck", "hit", "crossed", "coast", "shore", "landed"],
    ),
    (&["peak", "strongest", "maximum", "highest"], &["peak", "peaked", "strongest", "maximum", "highest"]),
];

/// Whether a speed is that of the moment the question asks about.
pub(super) fn is_of_moment(question: &Question<'_>, text: &str, parts: &[Range<usize>]) -> bool {
    let asked = question.words();
    MOMENTS.iter().all(|(ask, say)| {
        let is_asked = asked.iter().any(|word| ask.contains(&word.as_str()));
        let said = || {
            let mut words = parts.iter().flat_map(|part| words_of(text, part.clone()));
            words.any(|word| say.contains(&word.lower.as_str()))
        };
        !is_asked || said()
    })
}
