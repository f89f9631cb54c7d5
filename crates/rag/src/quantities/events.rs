//! How old somebody was at an event, and the time between two events: what a question of that form names, and the note.

use std::ops::Range;

use super::event_dates::{Event, EventKind, Who, dated, phrases_in};
use super::model::{Bound, Date, Number, Quantity, Value, format_number};
use super::notes::{Note, NoteKind, plain};
use super::relevance::Question;
use super::source::Source;
use super::tiers::Outcome;
use super::units::Unit;
use super::words::{Name, is_stop_word, words_of};

/// Whether the question speaks of events of several kinds, or of one that only a first performance dates.
pub(super) fn asks_for_events(question: &Question<'_>) -> bool {
    let phrases = phrases_in(&question.text.to_lowercase());
    let first = phrases.first().map(|phrase| phrase.kind);
    phrases.iter().any(|phrase| phrase.kind == EventKind::FirstPerformance || Some(phrase.kind) != first)
}

/// The note for a question that asks for an age or for the time between two events; none where anything is unclear.
pub(super) fn event_note(question: &Question<'_>, sources: &[Source<'_>]) -> Option<Note> {
    let lowered = question.text.to_lowercase();
    // The spans of the names are those of the text as written.
    if lowered.len() != question.text.len() {
        return None;
    }
    let asked = age_asked(question, &lowered).or_else(|| span_asked(question, &lowered))?;
    let first = dated(asked.first.0, &asked.first.1, sources)?;
    let second = dated(asked.second.0, &asked.second.1, sources)?;
    let value = match asked.unit {
        "days" => (second.date.day_number()? - first.date.day_number()?) as f64,
        _ => f64::from(full_years(&first.date, &second.date)?),
    };
    // Asked for the years between two events, some count full years and some the difference of the numbers.
    let calendar_years = f64::from(second.date.year? - first.date.year?);
    let unclear = asked.unit == "years" && !asked.is_age && value != calendar_years;
    (value > 0.0 && !unclear).then(|| note_of(&asked, &first, &second, value))
}

struct Asked {
    first: (EventKind, Who),
    second: (EventKind, Who),
    unit: &'static str,
    is_age: bool,
}

/// "How old was the composer of The Magic Flute when it was first performed?"
fn age_asked(question: &Question<'_>, lowered: &str) -> Option<Asked> {
    const WHEN: &str = " when ";
    let start = lowered.strip_prefix("how old was ").map(|rest| lowered.len() - rest.len())?;
    let when = start + lowered[start..].find(WHEN)?;
    let names = names_within(question, &(start..when));
    let [name] = names.as_slice() else { return None };
    let who = match lowered[start..name.span.start].trim() {
        "the composer of" | "the composer of the" => Who::ComposerOf((*name).clone()),
        "" => Who::Named((*name).clone()),
        _ => return None,
    };
    let second = event_of(question, lowered, when + WHEN.len()..lowered.len(), Some(&who))?;
    let first = (EventKind::Birth, who);
    (second.0 != EventKind::Birth).then_some(Asked { first, second, unit: "years", is_age: true })
}

/// "How many days after the first performance of Carmen did its composer die?"
fn span_asked(question: &Question<'_>, lowered: &str) -> Option<Asked> {
    let openings = [
        ("how many days after ", "days", true),
        ("how many days before ", "days", false),
        ("how many years after ", "years", true),
        ("how many years before ", "years", false),
    ];
    let (opening, unit, after) = openings.into_iter().find(|row| lowered.starts_with(row.0))?;
    let from = opening.len();
    // The helping verb of the main clause is the last one: "after Bizet was born was Carmen first performed".
    let verbs = [" did ", " was "];
    let (verb, length) = verbs.iter().filter_map(|verb| Some((lowered[from..].rfind(verb)?, verb.len()))).max()?;
    let near = event_of(question, lowered, from..from + verb, None)?;
    let far = event_of(question, lowered, from + verb + length..lowered.len(), Some(&near.1))?;
    let (first, second) = if after { (near, far) } else { (far, near) };
    Some(Asked { first, second, unit, is_age: false })
}

/// The names of the question within a stretch of it.
fn names_within<'q>(question: &'q Question<'_>, part: &Range<usize>) -> Vec<&'q Name> {
    question.names.iter().filter(|name| part.start <= name.span.start && name.span.end <= part.end).collect()
}

/// The one event of a stretch of the question; `before` is the subject of the other event, for pronouns.
fn event_of(
    question: &Question<'_>,
    lowered: &str,
    part: Range<usize>,
    before: Option<&Who>,
) -> Option<(EventKind, Who)> {
    let clause = &lowered[part.clone()];
    let phrases = phrases_in(clause);
    let [phrase] = phrases.as_slice() else { return None };
    let words: Vec<String> = words_of(clause, 0..clause.len()).into_iter().map(|word| word.lower).collect();
    let names = names_within(question, &part);
    // "first performed in its final version": anything more may make it another event.
    let is_more = words_of(clause, 0..clause.len()).into_iter().any(|word| {
        let (start, end) = (part.start + word.span.start, part.start + word.span.end);
        let in_name = names.iter().any(|name| name.span.start <= start && end <= name.span.end);
        let in_phrase = phrase.span.start <= word.span.start && word.span.end <= phrase.span.end;
        !(in_name || in_phrase || word.lower == "composer" || is_stop_word(&word.lower))
    });
    if is_more {
        return None;
    }
    let who = match names.as_slice() {
        [] => referred(phrase.kind, before?, &words)?,
        [name] => {
            let head = lowered[part.start..name.span.start].trim();
            let of_composer = head.ends_with("composer of") || head.ends_with("composer of the");
            // "its composer" or another role with a name is more than is understood here.
            if !of_composer && words.iter().any(|word| word == "composer") {
                return None;
            }
            if of_composer { Who::ComposerOf((*name).clone()) } else { Who::Named((*name).clone()) }
        }
        _ => return None,
    };
    let is_work = matches!(who, Who::Named(_));
    (phrase.kind != EventKind::FirstPerformance || is_work).then_some((phrase.kind, who))
}

/// "it", "he", "its composer": the subject of the other event, or its work, or its composer.
fn referred(kind: EventKind, before: &Who, words: &[String]) -> Option<Who> {
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    let person = has("he") || has("she");
    match (kind, before) {
        (EventKind::FirstPerformance, Who::ComposerOf(work)) if has("it") => Some(Who::Named(work.clone())),
        (EventKind::FirstPerformance, _) => None,
        (_, Who::ComposerOf(_)) if person || has("composer") => Some(before.clone()),
        (_, Who::Named(work)) if has("composer") && has("its") => Some(Who::ComposerOf(work.clone())),
        (_, Who::Named(_)) if person => Some(before.clone()),
        _ => None,
    }
}

/// Full years from one date to a later one.
fn full_years(from: &Date, to: &Date) -> Option<i32> {
    let not_yet = (to.month?, to.day?) < (from.month?, from.day?);
    Some(to.year? - from.year? - i32::from(not_yet))
}

fn note_of(asked: &Asked, first: &Event, second: &Event, value: f64) -> Note {
    let number = Number { value, text: format_number(value, 0), step: 1.0 };
    let noun = if value == 1.0 { asked.unit.trim_end_matches('s') } else { asked.unit };
    let full = if asked.unit == "years" { "full " } else { "" };
    let told = |event: &Event| format!("{} ({} {})", event.quantity, plain(&event.subject), event.kind.words());
    let mut text = format!("Computed: from {} to {} is {} {full}{noun}", told(first), told(second), number.text);
    if asked.is_age {
        text.push_str(&format!(", so {} was {} years old", plain(&first.subject), number.text));
    }
    text.push('.');
    let mut sources: Vec<(usize, Range<usize>)> = first.places.iter().chain(&second.places).cloned().collect();
    sources.sort_by_key(|(index, span)| (*index, span.start, span.end));
    sources.dedup();
    let outcome = Quantity {
        text: format!("{} {noun}", number.text),
        value: Value::Number(number),
        unit: Unit::named(asked.unit).unwrap_or_else(|| Unit::count(Some(asked.unit.to_owned()))),
        span: 0..0,
        approximate: false,
        bound: Bound::Exact,
        per: None,
        compound: false,
    };
    Note {
        text,
        kind: NoteKind::Elapsed,
        sources,
        outcome: Some(Outcome::Quantity(outcome)),
        inputs: vec![first.quantity.clone(), second.quantity.clone()],
    }
}
