//! Conditions that share one outcome: which of them is the tier, and which only a special case of it.

use std::collections::HashSet;
use std::ops::Range;

use super::marks::{Condition, Mark, MarkKind, Segment};
use super::tiers::{Pair, pair_of};
use super::words::content_stems;

/// Pairs several conditions with the one outcome of their segment; nothing where it is unclear which one is general.
///
/// General is the last one where it is for all *other* cases, or else the one whose words all the others repeat and add
/// to: "400 for flights of A to B, and for flights *within the Union* of more than A".
pub(super) fn special_and_general(text: &str, segment: &Segment, conditions: &[&Mark], outcome: &Mark) -> Vec<Pair> {
    let clauses = clauses_of(text, segment, conditions, outcome);
    let last = conditions.len() - 1;
    let (general, named) = if is_for_all_others(text, conditions) {
        (Some(last), false)
    } else {
        (clauses.as_ref().and_then(|clauses| least_specific(text, conditions, clauses)), true)
    };
    let Some(general) = general else { return Vec::new() };
    conditions
        .iter()
        .enumerate()
        .map(|(index, condition)| {
            let before = index.checked_sub(1).map(|before| conditions[before].span.end);
            let mut pair = pair_of(text, before.unwrap_or(segment.span.start), condition, outcome);
            if index != general {
                let clause = clauses.as_ref().filter(|_| named).map(|clauses| clauses[index].clone());
                pair.exception = Some(clause.unwrap_or_else(|| pair.span()));
            }
            pair
        })
        .collect()
}

fn is_for_all_others(text: &str, conditions: &[&Mark]) -> bool {
    let [.., before, last] = conditions else { return false };
    let between = text.get(before.span.end..last.span.start).unwrap_or("").to_lowercase();
    between.split(|letter: char| !letter.is_alphabetic()).any(|word| matches!(word, "other" | "others" | "anderen"))
}

/// The clause of each condition, where the outcome stands before all of them and "and" parts them.
fn clauses_of(text: &str, segment: &Segment, conditions: &[&Mark], outcome: &Mark) -> Option<Vec<Range<usize>>> {
    let mut start = outcome.span.end;
    let mut clauses = Vec::with_capacity(conditions.len());
    for (index, condition) in conditions.iter().enumerate() {
        if condition.span.start < start {
            return None;
        }
        let limit = conditions.get(index + 1).map_or(segment.span.end, |next| next.span.start);
        let rest = text.get(condition.span.end..limit)?;
        let (end, next) = if index + 1 < conditions.len() {
            const JOINTS: &[&str] = &[", and ", " and ", " as well as ", " und "];
            let (at, length) = JOINTS.iter().filter_map(|joint| Some((rest.find(joint)?, joint.len()))).min()?;
            (condition.span.end + at, condition.span.end + at + length)
        } else {
            let length = rest.find([',', ';', '.', ':', '(', '|']).unwrap_or(rest.len());
            (condition.span.end + rest[..length].trim_end().len(), limit)
        };
        clauses.push(start..end);
        start = next;
    }
    Some(clauses)
}

/// The condition all of whose words the other conditions have too, besides words of their own.
fn least_specific(text: &str, conditions: &[&Mark], clauses: &[Range<usize>]) -> Option<usize> {
    let stated = conditions.iter().all(|mark| matches!(mark.kind, MarkKind::Condition(Condition::Range(_))));
    let words: Vec<HashSet<String>> = clauses
        .iter()
        .zip(conditions)
        .map(|(clause, condition)| {
            let around = [clause.start..condition.span.start, condition.span.end..clause.end.max(condition.span.end)];
            around.into_iter().flat_map(|part| content_stems(text, part)).collect()
        })
        .collect();
    let is_general = |index: &usize| {
        let own = &words[*index];
        let mut others = words.iter().enumerate().filter(|(other, _)| other != index);
        others.all(|(_, other)| own.is_subset(other) && own.len() < other.len())
    };
    (0..words.len()).find(is_general).filter(|_| stated)
}
