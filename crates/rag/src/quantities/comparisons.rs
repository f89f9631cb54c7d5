//! Differences, comparisons, sums and spans of years that a question asks for in so many words.

use std::cmp::Ordering;
use std::ops::Range;

use super::arithmetic::{add, compare, convert, same, subtract};
use super::events::asks_for_events;
use super::model::{Bound, Quantity, Value};
use super::notes::{Note, NoteKind};
use super::relevance::Question;
use super::source::{Scope, Source, mentions};
use super::tiers::Outcome;
use super::units::Dimension;
use super::words::{Name, words_of};

/// An attribute a question compares by.
struct Attribute {
    dimension: Dimension,
    /// Words of the question that ask for it.
    asked: &'static [&'static str],
    /// Words of which the evidence must hold one; none where the unit says enough.
    said: &'static [&'static str],
}

const ATTRIBUTES: &[Attribute] = &[
    Attribute {
        dimension: Dimension::Length,
        asked: &["higher", "taller", "highest", "tallest", "height", "elevation", "lower", "lowest"],
        said: &["high", "tall", "height", "elevation", "altitude", "rises", "summit", "peak", "stands", "above"],
    },
    Attribute {
        dimension: Dimension::Length,
        asked: &["longer", "longest", "length", "shorter", "shortest"],
        said: &["long", "length", "runs", "stretches", "flows"],
    },
    Attribute {
        dimension: Dimension::Length,
        asked: &["deeper", "deepest", "depth", "shallower"],
        said: &["deep", "depth"],
    },
    Attribute { dimension: Dimension::Length, asked: &["wider", "width", "narrower"], said: &["wide", "width"] },
    Attribute {
        dimension: Dimension::Time,
        asked: &["longer", "longest", "duration", "shorter", "shortest"],
        said: &["long", "lasts", "lasted", "duration", "takes", "took", "runs", "running", "runtime"],
    },
    Attribute { dimension: Dimension::Mass, asked: &["heavier", "heaviest", "weight", "mass", "lighter"], said: &[] },
    Attribute { dimension: Dimension::Speed, asked: &["faster", "fastest", "speed", "slower"], said: &[] },
    Attribute {
        dimension: Dimension::Temperature,
        asked: &["hotter", "warmer", "temperature", "colder", "cooler"],
        said: &[],
    },
    Attribute {
        dimension: Dimension::Money,
        asked: &["expensive", "cost", "price", "costs", "cheaper", "cheapest"],
        said: &["cost", "costs", "price", "priced", "sells", "sold"],
    },
    Attribute { dimension: Dimension::Area, asked: &["larger", "bigger", "largest", "area", "smaller"], said: &[] },
    Attribute {
        dimension: Dimension::Count,
        asked: &["population", "populous", "inhabitants"],
        said: &["population", "inhabitants", "people", "residents"],
    },
    Attribute { dimension: Dimension::Date, asked: BIRTH_ASKED, said: &["born"] },
    Attribute {
        dimension: Dimension::Date,
        asked: &["died", "die", "dies", "death", "deaths"],
        said: &["died", "death"],
    },
    Attribute {
        dimension: Dimension::Date,
        asked: &["founded", "established", "formed", "built", "opened", "older", "newer"],
        said: &["founded", "established", "formed", "built", "opened", "completed"],
    },
    Attribute {
        dimension: Dimension::Date,
        asked: &["released", "published", "out"],
        said: &["released", "published", "release"],
    },
];

const BIRTH_ASKED: &[&str] = &["older", "oldest", "born", "younger", "youngest", "birth"];

/// Words that ask for the smaller or earlier of two (true) or the larger or later (false).
const DIRECTIONS: &[(&str, bool)] = &[
    ("older", true),
    ("oldest", true),
    ("earlier", true),
    ("earliest", true),
    ("first", true),
    ("lower", true),
    ("lowest", true),
    ("shorter", true),
    ("shortest", true),
    ("shallower", true),
    ("narrower", true),
    ("lighter", true),
    ("slower", true),
    ("colder", true),
    ("cooler", true),
    ("cheaper", true),
    ("cheapest", true),
    ("smaller", true),
    ("less", true),
    ("fewer", true),
    ("later", false),
    ("latest", false),
    ("younger", false),
    ("youngest", false),
    ("newer", false),
    ("recently", false),
    ("last", false),
    ("higher", false),
    ("highest", false),
    ("taller", false),
    ("tallest", false),
    ("longer", false),
    ("longest", false),
    ("deeper", false),
    ("deepest", false),
    ("wider", false),
    ("heavier", false),
    ("heaviest", false),
    ("faster", false),
    ("fastest", false),
    ("hotter", false),
    ("warmer", false),
    ("more", false),
    ("larger", false),
    ("largest", false),
    ("bigger", false),
    ("greater", false),
];

/// Whether the smaller or earlier is asked for; none where the words do not say or contradict each other.
fn wants_smaller(words: &[String]) -> Option<bool> {
    let mut said = DIRECTIONS.iter().filter(|(word, _)| words.iter().any(|known| known == word)).map(|row| row.1);
    let first = said.next()?;
    said.all(|other| other == first).then_some(first)
}

/// What the question wants done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Difference,
    Elapsed,
    Total,
    Comparison,
}

fn wanted_by(lowered: &str) -> Option<Wanted> {
    let has = |phrase: &str| lowered.contains(phrase);
    if ["how many years", "how many days", "how long after", "how long before", "how long between"]
        .iter()
        .any(|phrase| has(phrase))
    {
        let between =
            has("between") || has("after") || has("before") || has("older") || has("younger") || has("separate");
        return between.then_some(Wanted::Elapsed);
    }
    if has("difference")
        || has(" than ") && (has("how much") || has("how many more") || has("how many fewer") || has("by how"))
    {
        return Some(Wanted::Difference);
    }
    if ["total of", "in total", "combined", "altogether", "sum of", "add up"].iter().any(|phrase| has(phrase)) {
        return Some(Wanted::Total);
    }
    let first = lowered.split_whitespace().next().unwrap_or("");
    let asks = matches!(first, "which" | "who" | "what" | "is" | "was" | "did" | "were" | "are");
    (asks && (has(" or ") || has(" than "))).then_some(Wanted::Comparison)
}

/// A quantity found for one name of the question.
struct Found {
    name: Name,
    quantity: Quantity,
    places: Vec<(usize, Range<usize>)>,
}

/// The notes for a question that compares, subtracts or adds the quantities of its names; none where any is unclear.
pub(super) fn comparison_notes(question: &Question<'_>, sources: &[Source<'_>]) -> Vec<Note> {
    let lowered = question.text.to_lowercase();
    let Some(wanted) = wanted_by(&lowered) else { return Vec::new() };
    let names = &question.names;
    let enough = if wanted == Wanted::Total { (2..=6).contains(&names.len()) } else { names.len() == 2 };
    // Dates of a death or a first performance are told from other dates elsewhere.
    if wanted == Wanted::Elapsed && asks_for_events(question) {
        return Vec::new();
    }
    if !enough || question.scan.quantities.iter().any(|quantity| quantity.bound == Bound::Exact) {
        return Vec::new();
    }
    let words: Vec<String> =
        words_of(question.text, 0..question.text.len()).into_iter().map(|word| word.lower).collect();
    let is_asked = |attribute: &Attribute| attribute.asked.iter().any(|word| words.iter().any(|known| known == *word));
    let dates_asked = ATTRIBUTES.iter().any(|row| row.dimension == Dimension::Date && is_asked(row));
    let mut result = Vec::new();
    for attribute in ATTRIBUTES {
        let asked = is_asked(attribute);
        let elapsed = wanted == Wanted::Elapsed && attribute.dimension == Dimension::Date && !dates_asked;
        if wanted == Wanted::Elapsed && attribute.dimension != Dimension::Date || !asked && !elapsed {
            continue;
        }
        let said: &[&str] = if asked { attribute.said } else { &[] };
        let found: Option<Vec<Found>> =
            names.iter().map(|name| quantity_for(name, names, attribute.dimension, said, sources)).collect();
        let Some(found) = found else { continue };
        let note = match wanted {
            Wanted::Total => total_note(&found),
            Wanted::Comparison => comparison_note(&found[0], &found[1], wants_smaller(&words)),
            Wanted::Difference | Wanted::Elapsed => difference_note(&found[0], &found[1]),
        };
        result.extend(note);
    }
    result.dedup_by(|left, right| left.text == right.text);
    // Two attributes that both fit ("longer": of way or of time) leave open which was meant.
    if result.len() == 1 { result } else { Vec::new() }
}

/// The one value the passages give for a name; none where they give several.
fn quantity_for(
    name: &Name,
    names: &[Name],
    dimension: Dimension,
    said: &[&str],
    sources: &[Source<'_>],
) -> Option<Found> {
    let mut found: Option<Found> = None;
    for (index, source) in sources.iter().enumerate() {
        let births = if said == ["born"] { births_in(source) } else { Vec::new() };
        for quantity in source.scan.quantities.iter().chain(&births) {
            let wrong = quantity.dimension() != dimension || quantity.bound != Bound::Exact || quantity.per.is_some();
            if wrong || source.scan.is_secondary(quantity) || dimension == Dimension::Date && !has_year(quantity) {
                continue;
            }
            let Some(scope) = source.scope_of(quantity) else { continue };
            let is_birth = births.iter().any(|birth| birth.span == quantity.span);
            if !is_about(source, &scope, name, names, if is_birth { &[] } else { said }) {
                continue;
            }
            match &mut found {
                None => {
                    found = Some(Found {
                        name: name.clone(),
                        quantity: quantity.clone(),
                        places: vec![(index, quantity.span.clone())],
                    });
                }
                Some(known) if agrees(&known.quantity, quantity) => known.places.push((index, quantity.span.clone())),
                Some(_) => return None,
            }
        }
    }
    found
}

/// The first dates of "(2 November 1932 – 21 October 1987)" behind a name at the start of a sentence: births.
fn births_in(source: &Source<'_>) -> Vec<Quantity> {
    let mut births = Vec::new();
    for range in &source.scan.ranges {
        let (Some(low), Some(_)) = (&range.low, &range.high) else { continue };
        let Some(sentence) = source.sentence_at(range.span.start).map(|index| source.sentences[index].clone()) else {
            continue;
        };
        let head = &source.text[sentence.start..range.span.start];
        let words = words_of(source.text, sentence.start..range.span.start);
        let only_a_name =
            head.trim_end().ends_with('(') && words.len() <= 6 && words.iter().all(|word| word.capitalised);
        // Years alone may be those of a reign or a series; full dates behind a name are a life.
        let is_full = matches!(&low.quantity.value, Value::Date(date) if date.day.is_some() && date.year.is_some());
        if only_a_name && is_full {
            births.push(Quantity { bound: Bound::Exact, ..low.quantity.clone() });
        }
    }
    births
}

fn has_year(quantity: &Quantity) -> bool {
    matches!(&quantity.value, Value::Date(date) if date.year.is_some())
}

fn agrees(left: &Quantity, right: &Quantity) -> bool {
    match (&left.value, &right.value) {
        (Value::Date(first), Value::Date(second)) => first == second,
        _ => same(left, right),
    }
}

fn is_about(source: &Source<'_>, scope: &Scope, name: &Name, names: &[Name], said: &[&str]) -> bool {
    let words = scope.words(source.text);
    let found = scope.names(source.text);
    let others = names.iter().filter(|other| other.words != name.words);
    mentions(&found, &words, name)
        && others.clone().all(|other| !mentions(&found, &words, other))
        && (said.is_empty() || said.iter().any(|word| words.contains(*word)))
}

fn places_of(found: &[&Found]) -> Vec<(usize, Range<usize>)> {
    let mut places: Vec<(usize, Range<usize>)> = found.iter().flat_map(|one| one.places.clone()).collect();
    places.sort_by_key(|(index, span)| (*index, span.start, span.end));
    places.dedup();
    places
}

fn label(found: &Found) -> String {
    super::notes::plain(&found.name.text)
}

fn written(quantity: &Quantity, like: &Quantity) -> String {
    let about = if quantity.approximate { "about " } else { "" };
    if quantity.unit.is_same(&like.unit) {
        return format!("{about}{quantity}");
    }
    match convert(quantity, &like.unit) {
        Some(converted) => format!("{about}{quantity} ({converted})"),
        None => format!("{about}{quantity}"),
    }
}

fn difference_note(first: &Found, second: &Found) -> Option<Note> {
    let order = compare(&first.quantity, &second.quantity)?;
    let (larger, smaller) = if order == Ordering::Less { (second, first) } else { (first, second) };
    if order == Ordering::Equal {
        return None;
    }
    let difference = subtract(&larger.quantity, &smaller.quantity)?;
    let is_date = matches!(difference_kind(&larger.quantity), NoteKind::Elapsed);
    let sign = if difference.approximate { "≈" } else { "=" };
    let text = format!(
        "Computed: {} − {} {sign} {} ({} − {}).",
        written(&larger.quantity, &larger.quantity),
        written(&smaller.quantity, &larger.quantity),
        difference,
        label(larger),
        label(smaller),
    );
    Some(Note {
        text,
        kind: if is_date { NoteKind::Elapsed } else { NoteKind::Difference },
        sources: places_of(&[larger, smaller]),
        outcome: Some(Outcome::Quantity(difference)),
        inputs: vec![larger.quantity.clone(), smaller.quantity.clone()],
    })
}

fn difference_kind(quantity: &Quantity) -> NoteKind {
    if quantity.dimension() == Dimension::Date { NoteKind::Elapsed } else { NoteKind::Difference }
}

fn comparison_note(first: &Found, second: &Found, wants_smaller: Option<bool>) -> Option<Note> {
    let order = compare(&first.quantity, &second.quantity)?;
    let (larger, smaller) = match order {
        Ordering::Greater => (first, second),
        Ordering::Less => (second, first),
        Ordering::Equal => return None,
    };
    let text = if larger.quantity.dimension() == Dimension::Date {
        format!(
            "Computed: {} ({}) is earlier than {} ({}).",
            smaller.quantity,
            label(smaller),
            larger.quantity,
            label(larger)
        )
    } else {
        format!(
            "Computed: {} ({}) is more than {} ({}).",
            larger.quantity,
            label(larger),
            written(&smaller.quantity, &larger.quantity),
            label(smaller)
        )
    };
    let winner = wants_smaller.map(|wanted| if wanted { smaller } else { larger });
    Some(Note {
        text,
        kind: NoteKind::Comparison,
        sources: places_of(&[first, second]),
        outcome: winner.map(|winner| Outcome::Label(label(winner))),
        inputs: vec![first.quantity.clone(), second.quantity.clone()],
    })
}

fn total_note(found: &[Found]) -> Option<Note> {
    let mut total = found.first()?.quantity.clone();
    let nouns_differ = found
        .iter()
        .any(|one| one.quantity.dimension() == Dimension::Count && one.quantity.unit.symbol != total.unit.symbol);
    if nouns_differ || total.dimension() == Dimension::Percent || total.dimension() == Dimension::Speed {
        return None;
    }
    for one in &found[1..] {
        total = add(&total, &one.quantity)?;
    }
    let terms: Vec<String> = found.iter().map(|one| written(&one.quantity, &found[0].quantity)).collect();
    let labels: Vec<String> = found.iter().map(label).collect();
    let sign = if total.approximate { "≈" } else { "=" };
    Some(Note {
        text: format!("Computed: {} {sign} {total} ({}).", terms.join(" + "), labels.join(" + ")),
        kind: NoteKind::Total,
        sources: places_of(&found.iter().collect::<Vec<_>>()),
        outcome: Some(Outcome::Quantity(total)),
        inputs: found.iter().map(|one| one.quantity.clone()).collect(),
    })
}
