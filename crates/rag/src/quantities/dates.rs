//! Calendar dates: ISO, day–month–year in words, month–day–year, German point dates, years of an era.

use super::model::Date;
use super::number_words::word_at;

const MONTHS: &[(&str, u8)] = &[
    ("January", 1),
    ("February", 2),
    ("March", 3),
    ("April", 4),
    ("May", 5),
    ("June", 6),
    ("July", 7),
    ("August", 8),
    ("September", 9),
    ("October", 10),
    ("November", 11),
    ("December", 12),
    ("Jan", 1),
    ("Feb", 2),
    ("Mar", 3),
    ("Apr", 4),
    ("Jun", 6),
    ("Jul", 7),
    ("Aug", 8),
    ("Sep", 9),
    ("Sept", 9),
    ("Oct", 10),
    ("Nov", 11),
    ("Dec", 12),
    ("Januar", 1),
    ("Februar", 2),
    ("März", 3),
    ("Mai", 5),
    ("Juni", 6),
    ("Juli", 7),
    ("Oktober", 10),
    ("Dezember", 12),
];

/// The month a capitalised word names.
pub(super) fn month_of(word: &str) -> Option<u8> {
    MONTHS.iter().find(|row| row.0 == word).map(|row| row.1)
}

fn digits(text: &str, at: usize) -> Option<(u32, usize, usize)> {
    let count = text.as_bytes().get(at..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=4).contains(&count) {
        return None;
    }
    Some((text[at..at + count].parse().ok()?, count, at + count))
}

fn valid_day(day: u32, month: u8) -> Option<u8> {
    let most = match month {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    (1..=most).contains(&day).then(|| u8::try_from(day).unwrap_or(most as u8))
}

/// The byte after an optional "," or "." and one space.
fn after_space(text: &str, at: usize) -> Option<usize> {
    // Tokenised text parts the comma too: "November 6 , 1869".
    let rest = &text[at..];
    let at = match rest.strip_prefix(' ').unwrap_or(rest).strip_prefix(',') {
        Some(tail) => text.len() - tail.len(),
        None if rest.starts_with('.') => at + 1,
        None => at,
    };
    let gap = text[at..].chars().next().filter(|gap| matches!(gap, ' ' | '\u{a0}' | '\n'))?;
    Some(at + gap.len_utf8())
}

/// A four-digit year at `at` that nothing continues.
fn year_at(text: &str, at: usize) -> Option<(i32, usize)> {
    let (year, count, end) = digits(text, at)?;
    let continued = ends_inside_number(text, end);
    (count == 4 && (1000..=2199).contains(&year) && !continued).then(|| (i32::try_from(year).unwrap_or(0), end))
}

fn ends_inside_number(text: &str, end: usize) -> bool {
    let mut rest = text[end..].chars();
    match rest.next() {
        Some(next) if next.is_alphanumeric() => true,
        Some(',' | '.' | ':' | '/') => rest.next().is_some_and(|next| next.is_ascii_digit()),
        _ => false,
    }
}

/// The date whose first digit is at `start`, and the byte after it.
pub(super) fn date_from_digits(text: &str, start: usize) -> Option<(Date, usize)> {
    let (first, count, end) = digits(text, start)?;
    if text.as_bytes().get(end).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    if count == 4 {
        return iso(text, first, end);
    }
    if let Some(found) = era_after(text, first, end) {
        return Some(found);
    }
    if count > 2 {
        return None;
    }
    point_date(text, first, end).or_else(|| day_and_month(text, first, end))
}

fn iso(text: &str, year: u32, end: usize) -> Option<(Date, usize)> {
    if let Some(found) = era_after(text, year, end) {
        return Some(found);
    }
    let separator = text[end..].chars().next().filter(|separator| matches!(separator, '-' | '/'))?;
    let (month, month_count, month_end) = digits(text, end + 1)?;
    if month_count != 2 || !text[month_end..].starts_with(separator) {
        return None;
    }
    let (day, day_count, day_end) = digits(text, month_end + 1)?;
    let month = u8::try_from(month).ok()?;
    let day = valid_day(day, month)?;
    if day_count != 2 || text.as_bytes().get(day_end).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    Some((Date { year: i32::try_from(year).ok(), month: Some(month), day: Some(day) }, day_end))
}

/// "44 BC", "79 AD".
fn era_after(text: &str, year: u32, end: usize) -> Option<(Date, usize)> {
    let at = end + text[end..].chars().next().filter(|gap| matches!(gap, ' ' | '\u{a0}'))?.len_utf8();
    let (word, mut after) = word_at(text, at)?;
    let year = i32::try_from(year).ok().filter(|year| *year > 0)?;
    let signed = match word {
        "BC" | "BCE" => -year,
        "AD" | "CE" => year,
        "v" if text[at..].starts_with("v. Chr.") => {
            after = at + "v. Chr.".len();
            -year
        }
        "n" if text[at..].starts_with("n. Chr.") => {
            after = at + "n. Chr.".len();
            year
        }
        _ => return None,
    };
    Some((Date::of_year(signed), after))
}

/// "3.3.1923".
fn point_date(text: &str, day: u32, end: usize) -> Option<(Date, usize)> {
    let (month, month_count, month_end) = digits(text, end.checked_add(1).filter(|_| text[end..].starts_with('.'))?)?;
    if month_count > 2 || !text[month_end..].starts_with('.') {
        return None;
    }
    let (year, year_end) = year_at(text, month_end + 1)?;
    let month = u8::try_from(month).ok()?;
    Some((Date { year: Some(year), month: Some(month), day: Some(valid_day(day, month)?) }, year_end))
}

/// "3 March 1923", "3rd of March", "3. März 1923".
fn day_and_month(text: &str, day: u32, end: usize) -> Option<(Date, usize)> {
    let mut at = ordinal_end(text, end);
    at = after_space(text, at)?;
    if text[at..].starts_with("of ") {
        at += 3;
    }
    let (word, mut month_end) = word_at(text, at)?;
    let month = month_of(word)?;
    let day = valid_day(day, month)?;
    if word.len() <= 4 && text[month_end..].starts_with(". ") {
        month_end += 1;
    }
    let year = after_space(text, month_end).and_then(|at| year_at(text, at));
    let end = year.map_or(month_end, |(_, year_end)| year_end);
    Some((Date { year: year.map(|found| found.0), month: Some(month), day: Some(day) }, end))
}

fn ordinal_end(text: &str, at: usize) -> usize {
    let is_ordinal = ["st", "nd", "rd", "th"].iter().any(|suffix| {
        text[at..].strip_prefix(suffix).is_some_and(|rest| !rest.chars().next().is_some_and(char::is_alphanumeric))
    });
    if is_ordinal { at + 2 } else { at }
}

/// The date that starts with the month (or era) word at `start`: "March 3, 1923", "March 1923", "AD 79".
pub(super) fn date_from_word(text: &str, start: usize) -> Option<(Date, usize)> {
    let (word, mut end) = word_at(text, start)?;
    if word == "AD" {
        let (year, _, year_end) = digits(text, after_space(text, end)?)?;
        return (year > 0 && !ends_inside_number(text, year_end))
            .then(|| (Date::of_year(i32::try_from(year).unwrap_or(0)), year_end));
    }
    let month = month_of(word)?;
    if word.len() <= 4 && text[end..].starts_with('.') {
        end += 1;
    }
    let at = after_space(text, end)?;
    if let Some((year, year_end)) = year_at(text, at) {
        return Some((Date { year: Some(year), month: Some(month), day: None }, year_end));
    }
    let (day, count, day_end) = digits(text, at)?;
    let day_end = ordinal_end(text, day_end);
    if count > 2 || text[day_end..].chars().next().is_some_and(|next| next.is_alphanumeric() || next == ':') {
        return None;
    }
    let day = valid_day(day, month)?;
    let year = after_space(text, day_end).and_then(|at| year_at(text, at));
    let end = year.map_or(day_end, |found| found.1);
    Some((Date { year: year.map(|found| found.0), month: Some(month), day: Some(day) }, end))
}
