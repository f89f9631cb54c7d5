//! Open-ended conditions that a comparative states: "75 percent for longer flights", "5 EUR for anything heavier".

use super::marks::{Condition, Mark, MarkKind, Segment};
use super::units::Dimension;
use super::words::{Word, stem, words_of};

/// Comparatives, whether they point upwards, and the dimensions they speak of; of any where none is named.
const COMPARATIVES: &[(&str, bool, &[Dimension])] = &[
    ("longer", true, &[Dimension::Length, Dimension::Time]),
    ("shorter", false, &[Dimension::Length, Dimension::Time]),
    ("farther", true, &[Dimension::Length]),
    ("further", true, &[Dimension::Length]),
    ("taller", true, &[Dimension::Length]),
    ("deeper", true, &[Dimension::Length]),
    ("heavier", true, &[Dimension::Mass]),
    ("lighter", false, &[Dimension::Mass]),
    ("older", true, &[Dimension::Time]),
    ("younger", false, &[Dimension::Time]),
    ("later", true, &[Dimension::Time]),
    ("faster", true, &[Dimension::Speed]),
    ("stronger", true, &[Dimension::Speed]),
    ("slower", false, &[Dimension::Speed]),
    ("weaker", false, &[Dimension::Speed]),
    ("warmer", true, &[Dimension::Temperature]),
    ("hotter", true, &[Dimension::Temperature]),
    ("colder", false, &[Dimension::Temperature]),
    ("cooler", false, &[Dimension::Temperature]),
    ("higher", true, &[]),
    ("lower", false, &[]),
    ("larger", true, &[]),
    ("bigger", true, &[]),
    ("greater", true, &[]),
    ("smaller", false, &[]),
];

const CUES: &[&str] = &["for", "on", "over", "in", "with"];
const BETWEEN: &[&str] = &["all", "any", "the", "every", "even", "each"];
const WHATEVER: &[&str] = &["anything", "everything"];

/// The condition that a comparative of the segment states; `thing_from` is where words for what is compared may begin.
pub(super) fn comparative_mark(text: &str, segment: &Segment, dimension: Dimension, thing_from: usize) -> Option<Mark> {
    let words = words_of(text, segment.span.clone());
    let mut found = None;
    for (index, word) in words.iter().enumerate() {
        let row =
            COMPARATIVES.iter().find(|row| row.0 == word.lower && (row.2.is_empty() || row.2.contains(&dimension)));
        let Some((_, upwards, _)) = row else { continue };
        let Some(end) = thing_end(text, &words, index, thing_from) else { continue };
        if found.is_some() {
            return None;
        }
        let condition = if *upwards { Condition::BeyondPrevious } else { Condition::BelowPrevious };
        found = Some(Mark { kind: MarkKind::Condition(condition), span: word.span.start..end });
    }
    found
}

/// The byte after "longer flights", "longer ones" or "anything longer" where these stand for a condition.
fn thing_end(text: &str, words: &[Word], index: usize, thing_from: usize) -> Option<usize> {
    let comparative = &words[index];
    let before = words[..index].iter().rev().find(|word| !BETWEEN.contains(&word.lower.as_str()))?;
    let next = words.get(index + 1).filter(|next| next.follows_directly);
    let rest = text.get(comparative.span.end..)?.trim_start();
    if next.is_some_and(|next| next.lower == "than") {
        return None;
    }
    if WHATEVER.contains(&before.lower.as_str()) {
        let closes = rest.is_empty()
            || rest.starts_with([',', '.', ';', ')', '|'])
            || text[comparative.span.end..].starts_with('\n');
        return closes.then_some(comparative.span.end);
    }
    let next = next.filter(|_| CUES.contains(&before.lower.as_str()))?;
    let after = words.get(index + 2).filter(|after| after.follows_directly);
    if after.is_some_and(|after| after.lower == "than") {
        return None;
    }
    let named_before = words_of(text, thing_from..comparative.span.start);
    let thing = stem(&next.lower);
    let is_thing = next.lower == "ones" || named_before.iter().any(|word| stem(&word.lower) == thing);
    is_thing.then_some(next.span.end)
}
