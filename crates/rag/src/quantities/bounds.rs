//! The words around a number that limit it ("up to", "or more") or soften it ("about").

use super::model::Bound;

/// What stands before a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Prefix {
    pub(super) bound: Option<Bound>,
    pub(super) approximate: bool,
    pub(super) opening: Option<Opening>,
    /// Byte where the phrase starts; the number's own start where there is none.
    pub(super) start: usize,
}

/// A word that opens a range of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// "between … and …": leaves open whether the ends belong to it.
    Between,
    /// "from … to …".
    From,
}

#[derive(Clone, Copy)]
enum Meaning {
    Limit(Bound),
    About,
    Open(Opening),
    /// Joins a limit to its number: "a maximum *of* 5 kg", "over *the* 3,500 km".
    Filler,
}

use Bound::{AtLeast, AtMost, LessThan, MoreThan};
use Meaning::{About, Filler, Limit, Open};

const BEFORE: &[(&str, Meaning)] = &[
    ("no more than", Limit(AtMost)),
    ("not more than", Limit(AtMost)),
    ("nor more than", Limit(AtMost)),
    ("no longer than", Limit(AtMost)),
    ("not longer than", Limit(AtMost)),
    ("no later than", Limit(AtMost)),
    ("no higher than", Limit(AtMost)),
    ("not over", Limit(AtMost)),
    ("not above", Limit(AtMost)),
    ("not exceed", Limit(AtMost)),
    ("not exceeding", Limit(AtMost)),
    ("without exceeding", Limit(AtMost)),
    ("up to and including", Limit(AtMost)),
    ("up to", Limit(AtMost)),
    ("upto", Limit(AtMost)),
    ("at most", Limit(AtMost)),
    ("at the most", Limit(AtMost)),
    ("a maximum of", Limit(AtMost)),
    ("maximum of", Limit(AtMost)),
    ("max", Limit(AtMost)),
    ("max.", Limit(AtMost)),
    ("limited to", Limit(AtMost)),
    ("capped at", Limit(AtMost)),
    ("within", Limit(AtMost)),
    ("as much as", Limit(AtMost)),
    ("bis zu", Limit(AtMost)),
    ("höchstens", Limit(AtMost)),
    ("maximal", Limit(AtMost)),
    ("nicht mehr als", Limit(AtMost)),
    ("≤", Limit(AtMost)),
    ("<=", Limit(AtMost)),
    ("less than", Limit(LessThan)),
    ("fewer than", Limit(LessThan)),
    ("lower than", Limit(LessThan)),
    ("shorter than", Limit(LessThan)),
    ("smaller than", Limit(LessThan)),
    ("lighter than", Limit(LessThan)),
    ("younger than", Limit(LessThan)),
    ("under", Limit(LessThan)),
    ("below", Limit(LessThan)),
    ("weniger als", Limit(LessThan)),
    ("unter", Limit(LessThan)),
    ("<", Limit(LessThan)),
    ("not less than", Limit(AtLeast)),
    ("no less than", Limit(AtLeast)),
    ("no fewer than", Limit(AtLeast)),
    ("not fewer than", Limit(AtLeast)),
    ("not under", Limit(AtLeast)),
    ("not below", Limit(AtLeast)),
    ("at least", Limit(AtLeast)),
    ("a minimum of", Limit(AtLeast)),
    ("minimum of", Limit(AtLeast)),
    ("min.", Limit(AtLeast)),
    ("starting at", Limit(AtLeast)),
    ("mindestens", Limit(AtLeast)),
    ("ab", Limit(AtLeast)),
    ("≥", Limit(AtLeast)),
    (">=", Limit(AtLeast)),
    ("more than", Limit(MoreThan)),
    ("greater than", Limit(MoreThan)),
    ("longer than", Limit(MoreThan)),
    ("higher than", Limit(MoreThan)),
    ("larger than", Limit(MoreThan)),
    ("heavier than", Limit(MoreThan)),
    ("faster than", Limit(MoreThan)),
    ("older than", Limit(MoreThan)),
    ("later than", Limit(MoreThan)),
    ("over", Limit(MoreThan)),
    ("above", Limit(MoreThan)),
    ("beyond", Limit(MoreThan)),
    ("exceeding", Limit(MoreThan)),
    ("exceeds", Limit(MoreThan)),
    ("exceed", Limit(MoreThan)),
    ("exceeded", Limit(MoreThan)),
    ("in excess of", Limit(MoreThan)),
    ("upwards of", Limit(AtLeast)),
    ("mehr als", Limit(MoreThan)),
    ("über", Limit(MoreThan)),
    (">", Limit(MoreThan)),
    ("about", About),
    ("around", About),
    ("approximately", About),
    ("approx", About),
    ("approx.", About),
    ("roughly", About),
    ("nearly", About),
    ("almost", About),
    ("some", About),
    ("circa", About),
    ("ca", About),
    ("ca.", About),
    ("c.", About),
    ("etwa", About),
    ("ungefähr", About),
    ("rund", About),
    ("~", About),
    ("≈", About),
    ("∼", About),
    ("estimated", About),
    ("between", Open(Opening::Between)),
    ("zwischen", Open(Opening::Between)),
    ("from", Open(Opening::From)),
    ("von", Open(Opening::From)),
    ("the", Filler),
    ("a", Filler),
    ("an", Filler),
    ("of", Filler),
];

/// Limits on dates only.
const BEFORE_DATE: &[(&str, Bound)] = &[
    ("before", LessThan),
    ("after", MoreThan),
    ("since", AtLeast),
    ("until", AtMost),
    ("till", AtMost),
    ("prior to", LessThan),
    ("up to", AtMost),
];

const AFTER: &[(&str, Bound)] = &[
    ("or more", AtLeast),
    ("and more", AtLeast),
    ("or over", AtLeast),
    ("and over", AtLeast),
    ("or above", AtLeast),
    ("and above", AtLeast),
    ("or higher", AtLeast),
    ("and higher", AtLeast),
    ("or longer", AtLeast),
    ("and longer", AtLeast),
    ("or greater", AtLeast),
    ("and greater", AtLeast),
    ("or later", AtLeast),
    ("or older", AtLeast),
    ("and older", AtLeast),
    ("or heavier", AtLeast),
    ("or faster", AtLeast),
    ("and up", AtLeast),
    ("and upwards", AtLeast),
    ("or up", AtLeast),
    ("upwards", AtLeast),
    ("onwards", AtLeast),
    ("minimum", AtLeast),
    ("oder mehr", AtLeast),
    ("und mehr", AtLeast),
    ("+", AtLeast),
    ("or less", AtMost),
    ("and less", AtMost),
    ("or fewer", AtMost),
    ("or under", AtMost),
    ("and under", AtMost),
    ("or below", AtMost),
    ("and below", AtMost),
    ("or lower", AtMost),
    ("or shorter", AtMost),
    ("or younger", AtMost),
    ("maximum", AtMost),
    ("oder weniger", AtMost),
];

/// The bytes looked at before and after a number.
const WINDOW: usize = 48;

fn window_before(text: &str, end: usize) -> &str {
    let mut start = end.saturating_sub(WINDOW);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..end]
}

fn longest_before<'p, T: Copy>(window: &str, phrases: &'p [(&'p str, T)]) -> Option<(usize, T)> {
    let mut best: Option<(usize, T)> = None;
    for (phrase, meaning) in phrases {
        let Some(length) = ends_with_phrase(window, phrase) else { continue };
        if best.is_none_or(|(known, _)| length > known) {
            best = Some((length, *meaning));
        }
    }
    best
}

/// The bytes of `phrase` at the end of `window`, whole words only, case ignored.
fn ends_with_phrase(window: &str, phrase: &str) -> Option<usize> {
    let mut rest = window.char_indices().rev();
    let mut start = window.len();
    let mut previous_was_space = false;
    for expected in phrase.chars().rev() {
        let (at, found) = rest.next()?;
        let found = if found.is_whitespace() { ' ' } else { found };
        let lowered = found.to_lowercase().next().unwrap_or(found);
        if lowered != expected {
            return None;
        }
        previous_was_space = expected == ' ';
        start = at;
    }
    let is_word = phrase.starts_with(char::is_alphabetic) && !previous_was_space;
    let inside_word = rest.next().is_some_and(|(_, before)| is_word && (before.is_alphanumeric() || before == '-'));
    (!inside_word).then_some(window.len() - start)
}

/// What the words before the number at `start` say about it.
pub(super) fn prefix_of(text: &str, start: usize, is_date: bool) -> Prefix {
    let mut prefix = Prefix { bound: None, approximate: false, opening: None, start };
    let mut at = start;
    for _ in 0..4 {
        let full = window_before(text, at);
        let window = full.trim_end_matches([' ', '\u{a0}', '\n', '\u{202f}']);
        // An empty line parts the number from what stands before it.
        if full[window.len()..].matches('\n').count() > 1 {
            break;
        }
        let end = at - (full.len() - window.len());
        if is_date
            && prefix.bound.is_none()
            && let Some((length, bound)) = longest_before(window, BEFORE_DATE)
        {
            prefix.bound = Some(bound);
            at = end - length;
            prefix.start = at;
            continue;
        }
        let Some((length, meaning)) = longest_before(window, BEFORE) else { break };
        let phrase_start = end - length;
        match meaning {
            Limit(_) if prefix.bound.is_some() => break,
            Limit(bound) => {
                prefix.bound = Some(bound);
                prefix.start = phrase_start;
            }
            About => {
                prefix.approximate = true;
                prefix.start = phrase_start;
            }
            Open(opening) => {
                prefix.opening = Some(opening);
                prefix.start = phrase_start;
                break;
            }
            Filler => {}
        }
        at = phrase_start;
    }
    prefix
}

/// The limit that stands after the quantity that ends at `end`, and the byte after the limit.
pub(super) fn suffix_of(text: &str, end: usize) -> Option<(Bound, usize)> {
    let rest = &text[end..];
    let trimmed = rest.trim_start_matches([' ', '\u{a0}', '\n', ',']);
    let gap = rest.len() - trimmed.len();
    if gap > 3 {
        return None;
    }
    let mut best: Option<(Bound, usize)> = None;
    for (phrase, bound) in AFTER {
        let Some(length) = starts_with_phrase(trimmed, phrase) else { continue };
        // "5 km + 3 km" is a sum.
        if *phrase == "+" && (gap > 0 || trimmed[1..].trim_start().starts_with(|next: char| next.is_ascii_digit())) {
            continue;
        }
        let after = end + gap + length;
        if best.is_none_or(|(_, known)| after > known) {
            best = Some((*bound, after));
        }
    }
    // "3 days or more than a week" is no "or more", and "3 km and up to 5 km" is no "and up".
    best.filter(|(_, after)| {
        let next = text[*after..].trim_start();
        let continues = |word| starts_with_phrase(next, word).is_some();
        !continues("than") && !continues("to") && !next.starts_with(|first: char| first.is_ascii_digit())
    })
}

fn starts_with_phrase(text: &str, phrase: &str) -> Option<usize> {
    let mut length = 0;
    let mut characters = text.chars();
    for expected in phrase.chars() {
        let found = characters.next()?;
        let lowered = found.to_lowercase().next().unwrap_or(found);
        if lowered != expected && !(expected == ' ' && found.is_whitespace()) {
            return None;
        }
        length += found.len_utf8();
    }
    let is_word = phrase.ends_with(char::is_alphabetic);
    (!(is_word && characters.next().is_some_and(char::is_alphanumeric))).then_some(length)
}
