//! How many portions reach a limit: "how many cans add up to the daily amount", from "80 mg a can" and "up to 400 mg".

use std::collections::HashSet;
use std::ops::Range;

use super::arithmetic::same;
use super::model::{Bound, Number, Quantity, Value, format_number};
use super::notes::{Note, NoteKind};
use super::relevance::Question;
use super::source::Source;
use super::tiers::Outcome;
use super::units::{Dimension, Unit};
use super::words::{Word, content_stems, is_stop_word, stem, words_of};

/// Portions that things come in: plural and singular.
const PORTIONS: &[(&str, &str)] = &[
    ("cans", "can"),
    ("cups", "cup"),
    ("glasses", "glass"),
    ("bottles", "bottle"),
    ("mugs", "mug"),
    ("pots", "pot"),
    ("shots", "shot"),
    ("bars", "bar"),
    ("tablets", "tablet"),
    ("pills", "pill"),
    ("capsules", "capsule"),
    ("servings", "serving"),
    ("portions", "portion"),
    ("pieces", "piece"),
    ("slices", "slice"),
    ("bags", "bag"),
    ("sachets", "sachet"),
    ("packets", "packet"),
    ("eggs", "egg"),
];

/// Verbs that part the portion from the limit it is to reach.
const VERBS: &[&str] =
    &["add", "reach", "reaches", "make", "equal", "correspond", "contain", "amount", "fill", "exhaust"];
/// Nouns for a limit.
const LIMITS: &[&str] = &["amount", "level", "limit", "dose", "maximum", "allowance", "intake", "quota", "ceiling"];
/// Words for what a limit allows.
const ALLOWED: &[&str] = &["safe", "recommended", "allowed", "permitted", "tolerable"];
const DAILY: &[&str] = &["day", "daily"];
/// Words that turn round what follows them.
const NEGATIONS: &[&str] = &["not", "no", "non", "never", "except", "without", "neither", "nor", "unless"];

/// Words that narrow down the people before them.
const RELATIVES: &[&str] = &["who", "that", "with", "under", "over", "aged", "whose", "in"];

/// What a question of this form names.
struct Asked {
    plural: &'static str,
    singular: &'static str,
    /// What the portion holds, in stems.
    item: HashSet<String>,
    /// Stems of everything behind the verb.
    rest: HashSet<String>,
    /// Stems of whom the limit is for.
    group: HashSet<String>,
    daily: bool,
}

/// The note for a question that asks how many portions reach a limit; none unless one amount for each portion and one
/// limit of the same dimension are all there is.
pub(super) fn quotient_note(question: &Question<'_>, sources: &[Source<'_>]) -> Option<Note> {
    let asked = asked_by(question)?;
    let portion = only(sources, |source, quantity| holds_portion(source, quantity, &asked))?;
    let limit = only(sources, |source, quantity| is_limit(source, quantity, &asked, &portion.0))?;
    let (each, most) = (portion.0.base_value()?, limit.0.base_value()?);
    let value = most / each;
    if each <= 0.0 || !value.is_finite() || value < 1.0 {
        return None;
    }
    Some(note_of(&asked, portion, limit, value))
}

fn asked_by(question: &Question<'_>) -> Option<Asked> {
    let words = words_of(question.text, 0..question.text.len());
    let opening =
        words.first().is_some_and(|word| word.lower == "how") && words.get(1).is_some_and(|word| word.lower == "many");
    let verb = words.iter().position(|word| VERBS.contains(&word.lower.as_str()))?;
    if !opening || verb < 3 {
        return None;
    }
    let item = &words[2..verb];
    let (plural, singular) = item.iter().find_map(|word| PORTIONS.iter().find(|row| row.0 == word.lower)).copied()?;
    let span = item[0].span.start..item[item.len() - 1].span.end;
    let tail = &words[verb + 1..];
    let has = |known: &[&str]| tail.iter().any(|word| known.contains(&word.lower.as_str()));
    if !has(LIMITS) {
        return None;
    }
    let end = question.text.len();
    let group_start = tail.iter().rev().find(|word| word.lower == "for").map_or(end, |word| word.span.end);
    let stems_of = |part: Range<usize>| content_stems(question.text, part);
    let mut item_stems = stems_of(span);
    item_stems.remove(&stem(plural));
    item_stems.remove(plural);
    let group = stems_of(group_start..end);
    // A limit differs from one kind of people to the next; without them it is not clear which is meant.
    if group.is_empty() {
        return None;
    }
    Some(Asked {
        plural,
        singular,
        item: item_stems,
        rest: stems_of(tail.first()?.span.start..end),
        group,
        daily: has(DAILY),
    })
}

type Place = (usize, Range<usize>);

/// The one value for which `fits` holds, with its places; none where there are several.
fn only(sources: &[Source<'_>], fits: impl Fn(&Source<'_>, &Quantity) -> bool) -> Option<(Quantity, Vec<Place>)> {
    let mut found: Option<(Quantity, Vec<Place>)> = None;
    for (index, source) in sources.iter().enumerate() {
        for quantity in source.scan.quantities.iter().filter(|quantity| fits(source, quantity)) {
            let place = (index, quantity.span.clone());
            match &mut found {
                None => found = Some((quantity.clone(), vec![place])),
                Some((known, places)) if same(&exact(known), &exact(quantity)) => places.push(place),
                Some(_) => return None,
            }
        }
    }
    found
}

fn exact(quantity: &Quantity) -> Quantity {
    Quantity { bound: Bound::Exact, per: None, ..quantity.clone() }
}

fn is_measured(quantity: &Quantity) -> bool {
    !matches!(quantity.dimension(), Dimension::Date | Dimension::Percent | Dimension::Temperature | Dimension::Count)
}

/// "A standard can of energy drink contains about 80 mg of caffeine": one portion of what is asked about, and the
/// substance the limit is for.
fn holds_portion(source: &Source<'_>, quantity: &Quantity, asked: &Asked) -> bool {
    if quantity.bound != Bound::Exact || quantity.per.is_some() || !is_measured(quantity) {
        return false;
    }
    let Some(scope) = source.scope_of(quantity) else { return false };
    let words = words_of(source.text, scope.own.clone());
    let one = words.iter().enumerate().any(|(index, word)| {
        let near = &words[index.saturating_sub(2)..index];
        word.lower == asked.singular
            && near.iter().any(|word| matches!(word.lower.as_str(), "a" | "an" | "one" | "each" | "every" | "per"))
    });
    let stems = content_stems(source.text, scope.own);
    one && asked.item.is_subset(&stems) && substance_of(source, quantity, asked).is_some()
}

/// The stem of what the quantity is an amount of, where the question speaks of it: "80 mg of caffeine".
fn substance_of(source: &Source<'_>, quantity: &Quantity, asked: &Asked) -> Option<String> {
    let rest = &source.text[quantity.span.end..];
    let rest = rest.strip_prefix(" of ").or_else(|| rest.strip_prefix(' '))?;
    let word = rest.split(|letter: char| !letter.is_alphanumeric()).next().filter(|word| !word.is_empty())?;
    let stem = stem(&word.to_lowercase());
    (asked.rest.contains(&stem) && !asked.group.contains(&stem)).then_some(stem)
}

/// "For pregnant women … up to 200 mg of caffeine a day": for the same people, day and substance.
fn is_limit(source: &Source<'_>, quantity: &Quantity, asked: &Asked, portion: &Quantity) -> bool {
    let per_day = quantity.per.as_deref().is_none_or(|per| DAILY.contains(&per));
    if quantity.bound != Bound::AtMost || !per_day || quantity.dimension() != portion.dimension() {
        return false;
    }
    let in_rule =
        source.rules.iter().any(|rule| rule.span.start <= quantity.span.start && quantity.span.end <= rule.span.end);
    let Some(scope) = source.scope_of(quantity).filter(|_| !in_rule) else { return false };
    let words = words_of(source.text, scope.own.clone());
    let daily = words.iter().any(|word| DAILY.contains(&word.lower.as_str()));
    let stems = content_stems(source.text, scope.own);
    let for_group = words.iter().enumerate().any(|(at, _)| is_for_group(&words, at, asked));
    let same_substance = substance_of(source, quantity, asked).is_some();
    // "the lethal dose": what the question says of the limit must be said of this one.
    let is_said = |wanted: &String| {
        let is_limit = LIMITS.iter().chain(DAILY).chain(ALLOWED).any(|word| stem(word) == *wanted);
        is_limit || stems.contains(wanted)
    };
    (daily || !asked.daily) && asked.rest.iter().all(is_said) && same_substance && for_group
}

/// Whether the word names the people asked about: not "pregnant women" where women were asked about, nor "adults who
/// smoke", nor "who are not pregnant".
fn is_for_group(words: &[Word], at: usize, asked: &Asked) -> bool {
    let in_group = |word: &Word| asked.group.contains(&stem(&word.lower));
    let negates = |word: &Word| NEGATIONS.contains(&word.lower.as_str());
    let before = &words[..at];
    let mut first = at;
    while first > 0 && in_group(&words[first - 1]) {
        first -= 1;
    }
    // All words for the group stand together.
    let whole = in_group(&words[at]) && at + 1 - first >= asked.group.len();
    let narrowed =
        words[..first].last().is_some_and(|word| words[first].follows_directly && !is_stop_word(&word.lower));
    let denied = before[first.saturating_sub(2)..].iter().any(negates);
    let next = &words[at + 1..];
    let relative = next.first().is_some_and(|word| RELATIVES.contains(&word.lower.as_str()));
    let excepted = next.iter().take(3).any(negates);
    whole && !narrowed && !denied && (!relative || excepted)
}

fn note_of(asked: &Asked, portion: (Quantity, Vec<Place>), limit: (Quantity, Vec<Place>), value: f64) -> Note {
    let whole = (value - value.round()).abs() < 1e-6;
    let rounded = if whole { value.round() } else { (value * 10.0).round() / 10.0 };
    let number = Number {
        value: rounded,
        text: format_number(rounded, usize::from(!whole)),
        step: if whole { 1.0 } else { 0.1 },
    };
    let noun = if rounded == 1.0 { asked.singular } else { asked.plural };
    let (each, most) = (exact(&portion.0), exact(&limit.0));
    let about = |quantity: &Quantity| if quantity.approximate { "about " } else { "" };
    let sign = if whole && !each.approximate && !most.approximate { "=" } else { "≈" };
    let text = format!(
        "Computed: {}{most} / {}{each} per {} {sign} {} {noun}.",
        about(&most),
        about(&each),
        asked.singular,
        number.text
    );
    let mut sources: Vec<Place> = portion.1.into_iter().chain(limit.1).collect();
    sources.sort_by_key(|(index, span)| (*index, span.start, span.end));
    let outcome = Quantity {
        text: format!("{} {noun}", number.text),
        value: Value::Number(number),
        unit: Unit::count(Some(noun.to_owned())),
        span: 0..0,
        approximate: sign == "≈",
        bound: Bound::Exact,
        per: None,
        compound: false,
    };
    Note {
        text,
        kind: NoteKind::Quotient,
        sources,
        outcome: Some(Outcome::Quantity(outcome)),
        inputs: vec![most, each],
    }
}
