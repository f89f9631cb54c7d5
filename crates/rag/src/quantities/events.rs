//! How old somebody was at an event, and the time between two events: births, deaths and first performances.
//!
//! A question names each event with its subject; the evidence must date the same event of the same subject, in a
//! sentence that says nothing else before its verb.

use std::ops::Range;

use super::model::{Bound, Date, Number, Quantity, Value, format_number};
use super::notes::{Note, NoteKind, plain};
use super::relevance::Question;
use super::source::Source;
use super::subject::{speaks_of_subject, title_name};
use super::tiers::Outcome;
use super::units::{Dimension, Unit};
use super::words::{Name, names_of, words_of};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Birth,
    Death,
    FirstPerformance,
}

/// Phrases of questions and evidence for each kind of event; "first performed" goes before what is in it.
const PHRASES: &[(&str, Kind)] = &[
    ("first performed", Kind::FirstPerformance),
    ("first performance", Kind::FirstPerformance),
    ("premiered", Kind::FirstPerformance),
    ("premiere", Kind::FirstPerformance),
    ("born", Kind::Birth),
    ("birth", Kind::Birth),
    ("died", Kind::Death),
    ("die", Kind::Death),
    ("death", Kind::Death),
];

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Kind::Birth => "born",
            Kind::Death => "died",
            Kind::FirstPerformance => "first performed",
        }
    }
}

/// Whom or what an event of the question belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Who {
    Named(Name),
    /// The composer of a work.
    ComposerOf(Name),
}

/// Whether the question speaks of an event that is dated here and not by comparing the dates of two names.
pub(super) fn asks_for_events(question: &Question<'_>) -> bool {
    let lowered = question.text.to_lowercase();
    phrases_in(&lowered).iter().any(|(_, kind)| *kind != Kind::Birth)
}

/// The note for a question that asks for an age or for the time between two events; none where anything is unclear.
pub(super) fn event_note(question: &Question<'_>, sources: &[Source<'_>]) -> Option<Note> {
    let lowered = question.text.to_lowercase();
    // Spans of names are those of the text as written.
    if lowered.len() != question.text.len() || style_has_no_names(question) {
        return None;
    }
    let asked = age_asked(question, &lowered).or_else(|| span_asked(question, &lowered))?;
    let first = dated(asked.first.0, &asked.first.1, sources)?;
    let second = dated(asked.second.0, &asked.second.1, sources)?;
    let value = match asked.unit {
        "days" => (second.day_number()? - first.day_number()?) as f64,
        _ => full_years(&first.date, &second.date)?,
    };
    if value <= 0.0 {
        return None;
    }
    // Asked for years between events, some count calendar years and some full ones.
    let differs = Some(value) != Some(f64::from(second.date.year? - first.date.year?));
    if asked.unit == "years" && !asked.is_age && differs {
        return None;
    }
    Some(note_of(&asked, &first, &second, value))
}

fn style_has_no_names(question: &Question<'_>) -> bool {
    question.names.is_empty()
}

struct Asked {
    first: (Kind, Who),
    second: (Kind, Who),
    unit: &'static str,
    is_age: bool,
}

/// "How old was the composer of The Magic Flute when it was first performed?"
fn age_asked(question: &Question<'_>, lowered: &str) -> Option<Asked> {
    let start = lowered.strip_prefix("how old was ").map(|rest| lowered.len() - rest.len())?;
    let when = start + lowered[start..].find(" when ")?;
    let subject = who_in(question, lowered, start..when)?;
    let (kind, who) = event_in(question, lowered, when + " when ".len()..lowered.len(), Some(&subject))?;
    (kind != Kind::Birth).then_some(Asked {
        first: (Kind::Birth, subject),
        second: (kind, who),
        unit: "years",
        is_age: true,
    })
}

/// "How many days after the first performance of Carmen did its composer die?"
fn span_asked(question: &Question<'_>, lowered: &str) -> Option<Asked> {
    let (unit, rest) = [("days", "how many days "), ("years", "how many years ")]
        .into_iter()
        .find_map(|(unit, opening)| Some((unit, lowered.strip_prefix(opening)?)))?;
    let start = lowered.len() - rest.len();
    let (after, length) = match rest {
        _ if rest.starts_with("after ") => (true, "after ".len()),
        _ if rest.starts_with("before ") => (false, "before ".len()),
        _ => return None,
    };
    let from = start + length;
    // The helping verb of the main clause is the last one: "after Bizet was born was Carmen first performed".
    let verb = [" did ", " was "].iter().filter_map(|verb| Some((lowered[from..].rfind(verb)?, verb.len()))).max()?;
    let near = event_in(question, lowered, from..from + verb.0, None)?;
    let far = event_in(question, lowered, from + verb.0 + verb.1..lowered.len(), Some(&near.1))?;
    let (first, second) = if after { (near, far) } else { (far, near) };
    Some(Asked { first, second, unit, is_age: false })
}

/// The names of the question within a stretch of it.
fn names_within<'q>(question: &'q Question<'_>, part: &Range<usize>) -> Vec<&'q Name> {
    question.names.iter().filter(|name| part.start <= name.span.start && name.span.end <= part.end).collect()
}

fn who_in(question: &Question<'_>, lowered: &str, part: Range<usize>) -> Option<Who> {
    let names = names_within(question, &part);
    let [name] = names.as_slice() else { return None };
    let before = lowered[part.start..name.span.start].trim().trim_end_matches(" the").trim();
    let name = (*name).clone();
    if before.ends_with("the composer of") {
        return Some(Who::ComposerOf(name));
    }
    matches!(before, "" | "the" | "did" | "of").then_some(Who::Named(name))
}

/// The one event of a stretch of the question; pronouns are those for the subject before.
fn event_in(question: &Question<'_>, lowered: &str, part: Range<usize>, before: Option<&Who>) -> Option<(Kind, Who)> {
    let clause = &lowered[part.clone()];
    let kinds = phrases_in(clause);
    let [(at, kind)] = kinds.as_slice() else { return None };
    let words: Vec<String> = words_of(clause, 0..clause.len()).into_iter().map(|word| word.lower).collect();
    let has = |word: &str| words.iter().any(|known| known == word);
    let names = names_within(question, &part);
    let who = match names.as_slice() {
        [] => referred(*kind, before?, &has)?,
        [name] => {
            let composer = has("composer");
            let head = lowered[part.start..name.span.start].trim();
            let of_composer = composer && (head.ends_with("composer of") || head.ends_with("composer of the"));
            if composer && !of_composer {
                return None;
            }
            if of_composer { Who::ComposerOf((*name).clone()) } else { Who::Named((*name).clone()) }
        }
        _ => return None,
    };
    // What is performed is a work, and who is born or dies is none.
    let fits = *kind != Kind::FirstPerformance || matches!(who, Who::Named(_));
    (fits && at + part.start <= lowered.len()).then_some((*kind, who))
}

/// "it", "he", "its composer": the subject of the other event, or its work, or its composer.
fn referred(kind: Kind, before: &Who, has: &dyn Fn(&str) -> bool) -> Option<Who> {
    match (kind, before) {
        (Kind::FirstPerformance, Who::ComposerOf(work)) if has("it") => Some(Who::Named(work.clone())),
        (Kind::FirstPerformance, _) => None,
        (_, Who::ComposerOf(_)) if has("he") || has("she") || has("they") || has("composer") => Some(before.clone()),
        (_, Who::Named(work)) if has("composer") && has("its") => Some(Who::ComposerOf(work.clone())),
        (_, Who::Named(_)) if (has("he") || has("she")) && !has("composer") => Some(before.clone()),
        _ => None,
    }
}

/// The event phrases of a text in small letters, each with its place; none twice.
fn phrases_in(lowered: &str) -> Vec<(usize, Kind)> {
    let mut found: Vec<(usize, usize, Kind)> = Vec::new();
    for (phrase, kind) in PHRASES {
        for (at, _) in lowered.match_indices(phrase) {
            let end = at + phrase.len();
            let inside = |side: Option<char>| side.is_some_and(char::is_alphanumeric);
            let whole = !inside(lowered[..at].chars().next_back()) && !inside(lowered[end..].chars().next());
            if whole && !found.iter().any(|(start, stop, _)| *start < end && at < *stop) {
                found.push((at, end, *kind));
            }
        }
    }
    found.sort_by_key(|row| row.0);
    found.into_iter().map(|(at, _, kind)| (at, kind)).collect()
}

/// An event found in the evidence.
struct Dated {
    date: Date,
    quantity: Quantity,
    subject: String,
    kind: Kind,
    places: Vec<(usize, Range<usize>)>,
}

impl Dated {
    fn day_number(&self) -> Option<i64> {
        self.date.day_number()
    }
}

/// The one date the evidence gives for an event; none where it gives several.
fn dated(kind: Kind, who: &Who, sources: &[Source<'_>]) -> Option<Dated> {
    let subject: Vec<String> = match who {
        Who::Named(name) => name.words.clone(),
        Who::ComposerOf(work) => composer_of(work, sources)?,
    };
    let mut found: Option<Dated> = None;
    for (index, source) in sources.iter().enumerate() {
        for (place, sentence) in source.sentences.iter().enumerate() {
            for (quantity, date, written) in events_in(source, place, sentence, kind, &subject) {
                match &mut found {
                    None => {
                        let places = vec![(index, quantity.span.clone())];
                        found = Some(Dated { date, quantity, subject: written, kind, places });
                    }
                    Some(known) if known.date == date => known.places.push((index, quantity.span.clone())),
                    Some(_) => return None,
                }
            }
        }
    }
    found
}

/// Particles within the name of a person.
const PARTICLES: &[&str] = &["van", "von", "der", "de", "da", "di", "del", "la", "le", "zu"];

/// The words of a person's name that the text ends (or begins) with.
fn person_at_end(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().rev().take_while(|word| is_name_word(word)).collect();
    trimmed(words.into_iter().rev().collect())
}

fn person_at_start(text: &str) -> Vec<String> {
    trimmed(text.split_whitespace().take_while(|word| is_name_word(word)).collect())
}

fn is_name_word(word: &str) -> bool {
    let clean = word.chars().all(|letter| letter.is_alphabetic() || matches!(letter, '-' | '.' | '’' | '\''));
    clean && (word.starts_with(char::is_uppercase) || PARTICLES.contains(&word))
}

fn trimmed(words: Vec<&str>) -> Vec<String> {
    let is_particle = |word: &&&str| PARTICLES.contains(*word);
    let leading = words.iter().take_while(is_particle).count();
    let kept = &words[leading..];
    let trailing = kept.iter().rev().take_while(is_particle).count();
    kept[..kept.len() - trailing].iter().map(|word| word.trim_end_matches('.').to_lowercase()).collect()
}

/// Whether both name one person or work: the shorter one within the longer, with the same last word.
fn is_same_name(left: &[String], right: &[String]) -> bool {
    let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    !short.is_empty() && short.last() == long.last() && short.iter().all(|word| long.contains(word))
}

/// The composer that sentences on the first performance of a work name; none where they differ.
fn composer_of(work: &Name, sources: &[Source<'_>]) -> Option<Vec<String>> {
    let mut found: Option<Vec<String>> = None;
    for source in sources {
        for sentence in &source.sentences {
            let piece = &source.text[sentence.clone()];
            let Some(head) = head_of(piece, Kind::FirstPerformance).map(|(head, _)| head) else { continue };
            let Some(person) = work_and_composer(head, &work.words).and_then(|composer| composer) else { continue };
            match &found {
                Some(known) if !is_same_name(known, &person) => return None,
                Some(_) => {}
                None => found = Some(person),
            }
        }
    }
    found
}

/// What stands before the event's verb, and the byte after the event's phrase.
fn head_of(piece: &str, kind: Kind) -> Option<(&str, usize)> {
    let lowered = piece.to_lowercase();
    if lowered.len() != piece.len() {
        return None;
    }
    let kinds = phrases_in(&lowered);
    let mut wanted = kinds.iter().filter(|(_, found)| *found == kind);
    let (at, _) = wanted.next().filter(|_| wanted.next().is_none())?;
    let length = PHRASES.iter().find(|(phrase, _)| lowered[*at..].starts_with(phrase)).map(|row| row.0.len())?;
    let head = piece[..*at].trim_end();
    let helping = [" was", " were", " had its", " received its", " saw its"];
    let head = helping.iter().find_map(|helping| head.strip_suffix(helping)).unwrap_or(head);
    Some((head, at + length))
}

/// Whether the head is the work alone, and the composer named with it: "Carmen by Georges Bizet", "Beethoven's Fidelio".
fn work_and_composer(head: &str, work: &[String]) -> Option<Option<Vec<String>>> {
    let (title, composer) = match head.split_once(" by ") {
        Some((title, composer)) => {
            let person = person_at_start(composer);
            let whole = person.len() == composer.split_whitespace().count();
            (title, Some(person).filter(|_| whole))
        }
        None => match head.split_once("'s ").or_else(|| head.split_once("’s ")) {
            Some((composer, title)) => {
                let person = person_at_end(composer);
                let whole = person.len() == composer.split_whitespace().count();
                (title, Some(person).filter(|_| whole))
            }
            None => (head, Some(Vec::new())),
        },
    };
    let words: Vec<String> = words_of(title, 0..title.len()).into_iter().map(|word| word.lower).collect();
    let without = |words: &[String]| words.iter().filter(|word| *word != "the").cloned().collect::<Vec<_>>();
    let composer = composer?;
    (without(&words) == without(work)).then(|| Some(composer).filter(|person| !person.is_empty()))
}

/// Words that make a first performance that of a version or in a country.
const NARROWED: &[&str] = &[
    "in europe",
    "in america",
    "in england",
    "in germany",
    "in france",
    "in italy",
    "in britain",
    "in the united",
    "abroad",
    "outside",
    "version",
    "revised",
    "in english",
    "in german",
    "in french",
    "in italian",
    "again",
];

/// The complete dates a sentence gives for an event of the subject.
fn events_in(
    source: &Source<'_>,
    place: usize,
    sentence: &Range<usize>,
    kind: Kind,
    subject: &[String],
) -> Vec<(Quantity, Date, String)> {
    let piece = &source.text[sentence.clone()];
    let Some((head, after)) = head_of(piece, kind) else { return Vec::new() };
    let written = match kind {
        Kind::FirstPerformance => work_and_composer(head, subject).map(|_| title_of(subject, head)),
        Kind::Birth | Kind::Death => person_meant(source, place, piece, head, subject),
    };
    let Some(written) = written else { return Vec::new() };
    let from = sentence.start + after;
    let dates: Vec<&Quantity> = source
        .scan
        .quantities_in(&(from..sentence.end))
        .iter()
        .filter(|quantity| quantity.dimension() == Dimension::Date)
        .collect();
    let Some(quantity) = dates.first() else { return Vec::new() };
    let between = source.text[from..quantity.span.start].to_lowercase();
    let other = !phrases_in(&between).is_empty() || between.contains([';', ':']);
    let narrowed = kind == Kind::FirstPerformance && NARROWED.iter().any(|words| between.contains(words));
    match &quantity.value {
        Value::Date(date) if !other && !narrowed && quantity.bound == Bound::Exact && date.day_number().is_some() => {
            vec![((*quantity).clone(), *date, written)]
        }
        _ => Vec::new(),
    }
}

/// The title as the text has it, without the composer.
fn title_of(work: &[String], head: &str) -> String {
    let title = head.split(" by ").next().unwrap_or(head);
    let title = title.rsplit_once("'s ").or_else(|| title.rsplit_once("’s ")).map_or(title, |split| split.1);
    if title.is_empty() { work.join(" ") } else { title.trim().to_owned() }
}

/// The subject of a birth or death: the name alone, "he" for the subject of the passage, or the subject of the birth that
/// the same sentence begins with ("was born in The Hague … and died there").
fn person_meant(source: &Source<'_>, place: usize, piece: &str, head: &str, subject: &[String]) -> Option<String> {
    let person = person_at_start(head);
    let whole = !person.is_empty() && person.len() == head.split_whitespace().count();
    if whole && is_same_name(&person, subject) {
        return Some(head.to_owned());
    }
    if matches!(head, "He" | "She") && speaks_of_subject(source.text, &source.sentences, place) {
        let (_, title) = title_name(source.text, &source.sentences)?;
        return is_same_name(&title.words, subject).then_some(title.text);
    }
    let birth = head.strip_suffix(" and").and_then(|before| head_of(before, Kind::Birth))?.0;
    let person = person_at_start(birth);
    let whole = !person.is_empty() && person.len() == birth.split_whitespace().count();
    (whole && piece.starts_with(birth) && is_same_name(&person, subject)).then(|| birth.to_owned())
}

/// Full years from one date to a later one.
fn full_years(from: &Date, to: &Date) -> Option<f64> {
    let years = to.year? - from.year?;
    let not_yet = (to.month?, to.day?) < (from.month?, from.day?);
    Some(f64::from(years - i32::from(not_yet)))
}

fn note_of(asked: &Asked, first: &Dated, second: &Dated, value: f64) -> Note {
    let number = Number { value, text: format_number(value, 0), step: 1.0 };
    let noun = if value == 1.0 { &asked.unit[..asked.unit.len() - 1] } else { asked.unit };
    let full = if asked.unit == "years" { "full " } else { "" };
    let event = |one: &Dated| format!("{} ({} {})", one.quantity, plain(&one.subject), one.kind.words());
    let mut text = format!("Computed: from {} to {} is {} {full}{noun}", event(first), event(second), number.text);
    if asked.is_age {
        text.push_str(&format!(", so {} was {} years old", plain(&first.subject), number.text));
    }
    text.push('.');
    let mut sources: Vec<(usize, Range<usize>)> = first.places.iter().chain(&second.places).cloned().collect();
    sources.sort_by_key(|(index, span)| (*index, span.start, span.end));
    sources.dedup();
    let unit = Unit::named(asked.unit).unwrap_or_else(|| Unit::count(Some(asked.unit.to_owned())));
    let outcome = Quantity {
        text: format!("{} {noun}", number.text),
        value: Value::Number(number),
        unit,
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
