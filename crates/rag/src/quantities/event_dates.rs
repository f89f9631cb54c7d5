//! Dates of births, deaths and first performances that the evidence gives, each with its subject.
//!
//! Before the event's verb a sentence may hold the subject alone, and between the verb and the date nothing but a place:
//! whatever is told at greater length is not read.

use std::ops::Range;

use super::model::{Bound, Date, Quantity, Value};
use super::source::Source;
use super::subject::{speaks_of_subject, title_name};
use super::units::Dimension;
use super::words::{Name, words_of};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    Birth,
    Death,
    FirstPerformance,
}

/// Phrases of questions and evidence for each kind of event; a phrase goes before what is in it.
const PHRASES: &[(&str, EventKind)] = &[
    ("first performed", EventKind::FirstPerformance),
    ("first performance", EventKind::FirstPerformance),
    ("premiered", EventKind::FirstPerformance),
    ("premiere", EventKind::FirstPerformance),
    ("born", EventKind::Birth),
    ("birth", EventKind::Birth),
    ("died", EventKind::Death),
    ("die", EventKind::Death),
    ("death", EventKind::Death),
];

impl EventKind {
    /// The words for it behind its subject.
    pub(super) fn words(self) -> &'static str {
        match self {
            EventKind::Birth => "born",
            EventKind::Death => "died",
            EventKind::FirstPerformance => "first performed",
        }
    }
}

/// Whom or what an event belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Who {
    Named(Name),
    /// The composer of a work.
    ComposerOf(Name),
}

/// An event phrase in a text.
pub(super) struct Phrase {
    pub(super) kind: EventKind,
    pub(super) span: Range<usize>,
}

/// The event phrases of a text in small letters, in order.
pub(super) fn phrases_in(lowered: &str) -> Vec<Phrase> {
    let mut found: Vec<Phrase> = Vec::new();
    for (phrase, kind) in PHRASES {
        for (at, _) in lowered.match_indices(phrase) {
            let span = at..at + phrase.len();
            let inside = |side: Option<char>| side.is_some_and(char::is_alphanumeric);
            let whole = !inside(lowered[..at].chars().next_back()) && !inside(lowered[span.end..].chars().next());
            if whole && !found.iter().any(|known| known.span.start < span.end && at < known.span.end) {
                found.push(Phrase { kind: *kind, span });
            }
        }
    }
    found.sort_by_key(|phrase| phrase.span.start);
    found
}

/// An event found in the evidence.
pub(super) struct Event {
    pub(super) kind: EventKind,
    /// Its subject as the evidence writes it.
    pub(super) subject: String,
    pub(super) date: Date,
    pub(super) quantity: Quantity,
    /// Passages and bytes of the date.
    pub(super) places: Vec<(usize, Range<usize>)>,
}

/// The event with the one complete date that the evidence gives for it; none where it gives several.
pub(super) fn dated(kind: EventKind, who: &Who, sources: &[Source<'_>]) -> Option<Event> {
    let subject = match who {
        Who::Named(name) => name.words.clone(),
        Who::ComposerOf(work) => composer_of(work, sources)?,
    };
    let mut found: Option<Event> = None;
    for (index, source) in sources.iter().enumerate() {
        for place in 0..source.sentences.len() {
            let Some(event) = event_in(source, index, place, kind, &subject) else { continue };
            match &mut found {
                None => found = Some(event),
                Some(known) if known.date == event.date => known.places.extend(event.places),
                Some(_) => return None,
            }
        }
    }
    found
}

/// The composer that sentences on the first performance of a work name; none where they differ.
fn composer_of(work: &Name, sources: &[Source<'_>]) -> Option<Vec<String>> {
    let mut found: Option<Vec<String>> = None;
    for source in sources {
        for sentence in &source.sentences {
            let piece = &source.text[sentence.clone()];
            let head = split_at_event(piece, EventKind::FirstPerformance).and_then(|(head, _)| work_of(head));
            let Some(person) = head.filter(|head| head.is(&work.words)).and_then(|head| head.composer) else {
                continue;
            };
            match &found {
                Some(known) if !is_same_name(known, &person) => return None,
                Some(_) => {}
                None => found = Some(person),
            }
        }
    }
    found
}

/// What stands before the one event of its kind in a sentence, its helping verb cut off, and the byte after its phrase.
fn split_at_event(piece: &str, kind: EventKind) -> Option<(&str, usize)> {
    const HELPING: &[&str] = &[" was", " were", " had its", " received its", " saw its"];
    let lowered = piece.to_lowercase();
    if lowered.len() != piece.len() {
        return None;
    }
    let phrases = phrases_in(&lowered);
    let mut wanted = phrases.iter().filter(|phrase| phrase.kind == kind);
    let phrase = wanted.next()?;
    if wanted.next().is_some() {
        return None;
    }
    let head = piece[..phrase.span.start].trim_end();
    let head = HELPING.iter().find_map(|helping| head.strip_suffix(helping)).unwrap_or(head);
    Some((head, phrase.span.end))
}

/// A work with the composer named beside it.
struct Work<'t> {
    title: &'t str,
    composer: Option<Vec<String>>,
}

impl Work<'_> {
    fn is(&self, words: &[String]) -> bool {
        let own = words_of(self.title, 0..self.title.len()).into_iter().map(|word| word.lower);
        own.filter(|word| word != "the").eq(words.iter().filter(|word| *word != "the").cloned())
    }
}

/// "Carmen by Georges Bizet", "Beethoven's Fidelio", "Fidelio"; none where anything else stands with them.
fn work_of(head: &str) -> Option<Work<'_>> {
    if let Some((title, composer)) = head.split_once(" by ") {
        return Some(Work { title, composer: Some(person_of(composer)?) });
    }
    if let Some((composer, title)) = head.split_once("'s ").or_else(|| head.split_once("’s ")) {
        return Some(Work { title, composer: Some(person_of(composer)?) });
    }
    Some(Work { title: head, composer: None })
}

/// The words of a text that is the name of a person and nothing more.
fn person_of(text: &str) -> Option<Vec<String>> {
    const PARTICLES: &[&str] = &["van", "von", "der", "de", "da", "di", "del", "la", "le", "zu"];
    const PRONOUNS: &[&str] = &["he", "she", "it", "they", "his", "her", "its", "the", "a", "an"];
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_name = |word: &&str| {
        let clean = word.chars().all(|letter| letter.is_alphabetic() || matches!(letter, '-' | '.' | '’' | '\''));
        clean && word.starts_with(char::is_uppercase) && !PRONOUNS.contains(&word.to_lowercase().as_str())
    };
    let (first, last) = (words.first()?, words.last()?);
    let whole = is_name(first) && is_name(last) && words.iter().all(|word| is_name(word) || PARTICLES.contains(word));
    whole.then(|| words.iter().map(|word| word.trim_end_matches('.').to_lowercase()).collect())
}

/// Whether both name one person: the shorter within the longer, with the same last word.
fn is_same_name(left: &[String], right: &[String]) -> bool {
    let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    !short.is_empty() && short.last() == long.last() && short.iter().all(|word| long.contains(word))
}

/// Words between an event and its date that may begin something else, or narrow the event down to one of several.
const PARTING: &[&str] = &[
    " and ",
    " but ",
    " was ",
    " were ",
    " is ",
    " had ",
    " when ",
    " after ",
    " before ",
    " until ",
    " his ",
    " her ",
    " its ",
    " who ",
    " which ",
    " that ",
    " again ",
    " version",
    " revised",
    " abroad",
    " outside",
    ";",
    ":",
    "(",
    " in europe",
    " in america",
    " in england",
    " in germany",
    " in france",
    " in italy",
    " in britain",
    " in the united",
    " in english",
    " in german",
    " in french",
    " in italian",
];

/// The event of the subject that a sentence dates to the day.
fn event_in(source: &Source<'_>, passage: usize, place: usize, kind: EventKind, subject: &[String]) -> Option<Event> {
    let sentence = &source.sentences[place];
    let (head, after) = split_at_event(&source.text[sentence.clone()], kind)?;
    let written = match kind {
        EventKind::FirstPerformance => work_of(head).filter(|work| work.is(subject)).map(|work| work.title.to_owned()),
        EventKind::Birth | EventKind::Death => person_meant(source, place, head, subject),
    }?;
    let from = sentence.start + after;
    let dates = source.scan.quantities_in(&(from..sentence.end));
    let quantity = dates.iter().find(|quantity| quantity.dimension() == Dimension::Date)?;
    let between = source.text[from..quantity.span.start].to_lowercase();
    let plain = phrases_in(&between).is_empty() && !PARTING.iter().any(|words| between.contains(words));
    let on = between.trim().is_empty() || between.ends_with(" on ");
    let Value::Date(date) = quantity.value else { return None };
    if !plain || !on || quantity.bound != Bound::Exact || date.day_number().is_none() {
        return None;
    }
    let places = vec![(passage, quantity.span.clone())];
    Some(Event { kind, subject: written, date, quantity: quantity.clone(), places })
}

/// The subject of a birth or death: the name alone, "he" for the subject of the passage, or that of the birth the sentence
/// begins with ("was born in The Hague … and died there").
fn person_meant(source: &Source<'_>, place: usize, head: &str, subject: &[String]) -> Option<String> {
    let is_subject = |text: &str| person_of(text).is_some_and(|person| is_same_name(&person, subject));
    if is_subject(head) {
        return Some(head.to_owned());
    }
    if matches!(head, "He" | "She") && speaks_of_subject(source.text, &source.sentences, place) {
        let (_, title) = title_name(source.text, &source.sentences)?;
        return is_same_name(&title.words, subject).then_some(title.text);
    }
    let (born, _) = split_at_event(head.strip_suffix(" and")?, EventKind::Birth)?;
    is_subject(born).then(|| born.to_owned())
}
