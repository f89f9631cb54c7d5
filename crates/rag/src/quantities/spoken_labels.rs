//! Names that a sentence gives to ranges: "from A to B they speak of high altitude, above B of extreme altitude".

use std::collections::BTreeSet;
use std::ops::Range;

use super::marks::{Mark, MarkKind, OutcomeKind, Segment};
use super::tiers::Outcome;
use super::words::{Word, words_of};

/// Words that stand before the name.
const INTRODUCTIONS: &[&str] = &["of", "as", "called", "named", "termed", "is", "are", "counts", "means"];
/// Verbs of naming. Without one, "up to 10 km of paved road" would be read as a name.
const NAMING: &[&str] = &[
    "speak",
    "speaks",
    "call",
    "calls",
    "called",
    "known",
    "named",
    "termed",
    "classed",
    "classified",
    "rated",
    "considered",
    "regarded",
    "described",
    "count",
    "counts",
    "refer",
    "refers",
];
/// A longer name is a clause.
const MAX_WORDS: usize = 4;

/// The names of the conditions of a segment, where all follow their conditions in one form.
///
/// Each must stand behind the same introduction and end with the same noun, and no two may be alike; else none is taken.
pub(super) fn spoken_labels(text: &str, segment: &Segment, marks: &[Mark]) -> Vec<Mark> {
    let conditions: Vec<&Mark> = marks.iter().filter(|mark| matches!(mark.kind, MarkKind::Condition(_))).collect();
    if conditions.len() < 2 {
        return Vec::new();
    }
    let mut labels: Vec<(Label, Range<usize>)> = Vec::with_capacity(conditions.len());
    for (index, condition) in conditions.iter().enumerate() {
        let end = conditions.get(index + 1).map_or(segment.span.end, |next| next.span.start);
        let Some(found) = text.get(condition.span.end..end).and_then(|_| label_in(text, condition.span.end..end))
        else {
            return Vec::new();
        };
        labels.push(found);
    }
    let (first, _) = &labels[0];
    let one_form = first.is_naming
        && labels.iter().all(|(label, _)| label.introduction == first.introduction && label.noun == first.noun);
    let distinct: BTreeSet<String> = labels.iter().map(|(_, span)| text[span.clone()].to_lowercase()).collect();
    if !one_form || distinct.len() < labels.len() {
        return Vec::new();
    }
    labels
        .into_iter()
        .map(|(_, span)| Mark {
            kind: MarkKind::Outcome(OutcomeKind::Spoken, Box::new(Outcome::Label(text[span.clone()].to_owned()))),
            span,
        })
        .collect()
}

struct Label {
    introduction: String,
    noun: String,
    /// A verb of naming stands before it.
    is_naming: bool,
}

/// The name at the end of a stretch of text that holds nothing but it, its introduction and a few words before.
fn label_in(text: &str, stretch: Range<usize>) -> Option<(Label, Range<usize>)> {
    let mut words = words_of(text, stretch.clone());
    if words.last().is_some_and(|word| matches!(word.lower.as_str(), "and" | "or")) {
        words.pop();
    }
    let last = words.last()?;
    let inner = text.get(stretch.start..last.span.end)?;
    let is_plain = |word: &Word| word.lower.chars().all(char::is_alphabetic);
    if inner.contains([',', ';', ':', '(', '|', '\n']) || !words.iter().all(is_plain) {
        return None;
    }
    let at = words.iter().rposition(|word| INTRODUCTIONS.contains(&word.lower.as_str()))?;
    let label = &words[at + 1..];
    if !(2..=MAX_WORDS).contains(&label.len()) || at > 6 {
        return None;
    }
    let is_naming = words[..=at].iter().any(|word| NAMING.contains(&word.lower.as_str()));
    let found = Label { introduction: words[at].lower.clone(), noun: last.lower.clone(), is_naming };
    Some((found, label[0].span.start..last.span.end))
}
