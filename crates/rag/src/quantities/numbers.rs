//! Numbers in digits: thousands separators, decimals, fractions, and the style of a text.

use super::model::Number;
use super::number_words::{magnitude_at, skip_gap};

/// Which of point and comma parts thousands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// 1,500.5
    English,
    /// 1.500,5
    Continental,
}

const GERMAN_WORDS: &[&str] = &[
    "und", "der", "die", "das", "ist", "für", "bis", "zwischen", "über", "von", "mit", "sind", "nicht", "ein", "eine",
    "bei", "auf", "zu", "den", "dem", "im", "wird", "oder", "wie", "beträgt",
];
const ENGLISH_WORDS: &[&str] = &[
    "and", "the", "is", "for", "of", "between", "over", "from", "with", "are", "not", "a", "an", "to", "in", "on",
    "or", "by", "at",
];

/// The style of a text by its function words; English where they do not speak clearly for the other.
pub(super) fn style_of(text: &str) -> Style {
    let mut german = 0usize;
    let mut english = 0usize;
    for word in text.split(|character: char| !character.is_alphabetic()).filter(|word| !word.is_empty()) {
        if word.len() > 8 {
            continue;
        }
        let lowered = word.to_lowercase();
        if GERMAN_WORDS.contains(&lowered.as_str()) {
            german += 1;
        } else if ENGLISH_WORDS.contains(&lowered.as_str()) {
            english += 1;
        }
    }
    if german >= 2 && german > english { Style::Continental } else { Style::English }
}

/// A number read from digits.
#[derive(Debug, Clone)]
pub(super) struct Parsed {
    pub(super) number: Number,
    /// Byte after the number and its magnitude word.
    pub(super) end: usize,
    /// Only digits: no separator, decimals or magnitude; as a year or an identifier would be written.
    pub(super) plain_digits: Option<usize>,
    /// Factor of the magnitude word.
    pub(super) magnitude: f64,
}

pub(super) enum DigitsResult {
    Number(Parsed),
    /// Something else written with digits; continue after this byte.
    Skip(usize),
}

struct Groups<'t> {
    text: &'t str,
    /// Separator before the group, start and end of its digits.
    groups: Vec<(Option<char>, usize, usize)>,
}

impl<'t> Groups<'t> {
    fn read(text: &'t str, start: usize) -> Groups<'t> {
        let bytes = text.as_bytes();
        let digits_end = |from: usize| {
            bytes[from..].iter().position(|byte| !byte.is_ascii_digit()).map_or(bytes.len(), |count| from + count)
        };
        let mut groups = vec![(None, start, digits_end(start))];
        while groups.len() < 12 {
            let (_, previous_start, previous_end) = groups[groups.len() - 1];
            let Some(separator) = text[previous_end..].chars().next() else { break };
            let next = previous_end + separator.len_utf8();
            if !bytes.get(next).is_some_and(u8::is_ascii_digit) {
                break;
            }
            let end = digits_end(next);
            let is_space = matches!(separator, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}');
            let previous_length = previous_end - previous_start;
            let thousands = end - next == 3 && (previous_length == 3 || groups.len() == 1 && previous_length < 3);
            match separator {
                ',' | '.' => {}
                '\'' | '’' if thousands => {}
                _ if is_space && thousands => {}
                _ => break,
            }
            groups.push((Some(separator), next, end));
        }
        Groups { text, groups }
    }

    fn end(&self) -> usize {
        self.groups[self.groups.len() - 1].2
    }

    fn length(&self, index: usize) -> usize {
        self.groups[index].2 - self.groups[index].1
    }

    fn all_thousands(&self, indices: std::ops::Range<usize>) -> bool {
        let first = self.length(0);
        let leading_zero = self.text.as_bytes()[self.groups[0].1] == b'0';
        (1..=3).contains(&first) && !leading_zero && indices.into_iter().all(|index| self.length(index) == 3)
    }

    /// Indian grouping: 12,34,567.
    fn indian(&self) -> bool {
        let last = self.groups.len() - 1;
        last >= 2
            && (1..=2).contains(&self.length(0))
            && self.length(last) == 3
            && (1..last).all(|index| self.length(index) == 2 && self.groups[index].0 == Some(','))
    }

    fn value(&self, decimals: bool) -> Option<(f64, f64)> {
        let last = self.groups.len() - 1;
        let mut plain = String::new();
        for (index, &(_, start, end)) in self.groups.iter().enumerate() {
            if decimals && index == last {
                plain.push('.');
            }
            plain.push_str(&self.text[start..end]);
        }
        if plain.len() > 18 {
            return None;
        }
        let step = if decimals { 10f64.powi(-i32::try_from(self.length(last)).ok()?) } else { 1.0 };
        Some((plain.parse().ok()?, step))
    }
}

/// How the groups of digits are to be read.
enum Reading {
    Whole,
    Decimal,
    FirstOnly,
    NotANumber,
}

fn reading(groups: &Groups<'_>, style: Style, money: bool, followed_by_unit: bool) -> Reading {
    let last = groups.groups.len() - 1;
    if last == 0 {
        return Reading::Whole;
    }
    let separators: Vec<char> = groups.groups.iter().filter_map(|group| group.0).collect();
    let last_separator = separators[separators.len() - 1];
    let earlier = &separators[..separators.len() - 1];
    let is_mark = |separator: char| matches!(separator, ',' | '.');
    if !is_mark(last_separator) {
        return if earlier.iter().all(|separator| *separator == last_separator) && groups.all_thousands(1..last + 1) {
            Reading::Whole
        } else {
            Reading::NotANumber
        };
    }
    if earlier.iter().any(|separator| *separator != last_separator) {
        let uniform = earlier.windows(2).all(|pair| pair[0] == pair[1]);
        return if uniform && groups.all_thousands(1..last) { Reading::Decimal } else { Reading::NotANumber };
    }
    if last > 1 {
        let thousands = groups.all_thousands(1..last + 1) || last_separator == ',' && groups.indian();
        return match (thousands, last_separator) {
            (true, _) => Reading::Whole,
            (false, ',') => Reading::FirstOnly,
            (false, _) => Reading::NotANumber,
        };
    }
    let thousands = groups.all_thousands(1..2);
    match (last_separator, style) {
        (',', Style::English) if thousands => Reading::Whole,
        ('.', Style::Continental) if thousands => Reading::Whole,
        // No currency is written with three decimals.
        (_, _) if thousands && money => Reading::Whole,
        ('.', _) | (',', Style::Continental) => Reading::Decimal,
        _ if followed_by_unit || money || groups.text.as_bytes()[groups.groups[0].1] == b'0' => Reading::Decimal,
        _ => Reading::FirstOnly,
    }
}

/// Reads the number whose first digit is at `start`.
///
/// `money_before` says that a currency sign stands before it; `unit_after` tells whether a unit, and whether a
/// currency, follows at a byte.
pub(super) fn digits_at(
    text: &str,
    start: usize,
    style: Style,
    money_before: bool,
    unit_after: &dyn Fn(usize) -> Option<bool>,
) -> DigitsResult {
    let mut groups = Groups::read(text, start);
    let unit = unit_after(groups.end());
    // "12 345" is one number only where something says so: a space parts words too.
    if groups.groups.iter().any(|group| group.0 == Some(' ')) && unit.is_none() && !money_before {
        let first = groups.groups.iter().position(|group| group.0 == Some(' ')).unwrap_or(1);
        groups.groups.truncate(first);
    }
    let unit = unit_after(groups.end()).or(unit.filter(|_| groups.groups.len() > 1));
    let money = money_before || unit == Some(true);
    let decimals = match reading(&groups, style, money, unit.is_some()) {
        Reading::NotANumber => return DigitsResult::Skip(groups.end()),
        Reading::FirstOnly => {
            groups.groups.truncate(1);
            false
        }
        Reading::Whole => false,
        Reading::Decimal => true,
    };
    let end = groups.end();
    let first_length = groups.length(0);
    let is_single = groups.groups.len() == 1;
    if first_length > 1 && text.as_bytes()[start] == b'0' {
        return DigitsResult::Skip(end);
    }
    let Some((value, step)) = groups.value(decimals) else { return DigitsResult::Skip(end) };
    let mut parsed = Parsed {
        number: Number { value, text: text[start..end].to_owned(), step },
        end,
        plain_digits: is_single.then_some(first_length),
        magnitude: 1.0,
    };
    extend_with_fraction(text, start, &mut parsed);
    extend_with_exponent(text, start, &mut parsed);
    extend_with_magnitude(text, start, money_before, &mut parsed);
    DigitsResult::Number(parsed)
}

/// The value of a single fraction sign such as ½.
pub(super) fn fraction_sign(character: char) -> Option<f64> {
    Some(match character {
        '½' => 0.5,
        '¼' => 0.25,
        '¾' => 0.75,
        '⅓' => 1.0 / 3.0,
        '⅔' => 2.0 / 3.0,
        '⅛' => 0.125,
        '⅜' => 0.375,
        '⅝' => 0.625,
        '⅞' => 0.875,
        '⅕' => 0.2,
        _ => return None,
    })
}

fn extend_with_fraction(text: &str, start: usize, parsed: &mut Parsed) {
    if parsed.plain_digits.is_none() {
        return;
    }
    let rest = &text[parsed.end..];
    let gap = usize::from(rest.starts_with(' '));
    if let Some(sign) = rest[gap..].chars().next()
        && let Some(fraction) = fraction_sign(sign)
    {
        parsed.end += gap + sign.len_utf8();
        parsed.number =
            Number { value: parsed.number.value + fraction, text: text[start..parsed.end].to_owned(), step: 0.125 };
        parsed.plain_digits = None;
        return;
    }
    // Of the written fractions only the small proper ones: 261/2004 and 24/7 are something else.
    let Some(denominator) = rest.strip_prefix('/').and_then(|after| after.chars().next()?.to_digit(10)) else {
        return;
    };
    let after = parsed.end + 2;
    let continues = text[after..].chars().next().is_some_and(|next| next.is_alphanumeric() || next == '/');
    if !continues && denominator >= 2 && parsed.number.value >= 1.0 && parsed.number.value < f64::from(denominator) {
        parsed.end = after;
        parsed.number = Number {
            value: parsed.number.value / f64::from(denominator),
            text: text[start..after].to_owned(),
            step: 0.1,
        };
        parsed.plain_digits = None;
    }
}

/// "1.5e6" and "1.5 × 10^6" or "1.5 × 10⁶".
fn extend_with_exponent(text: &str, start: usize, parsed: &mut Parsed) {
    let rest = &text[parsed.end..];
    let Some((exponent, length)) = short_exponent(rest).or_else(|| power_of_ten(rest)) else { return };
    if exponent.abs() > 30 {
        return;
    }
    let factor = 10f64.powi(exponent);
    parsed.end += length;
    parsed.number = Number {
        value: parsed.number.value * factor,
        text: text[start..parsed.end].to_owned(),
        step: parsed.number.step * factor,
    };
    parsed.plain_digits = None;
}

fn signed_digits(rest: &str) -> Option<(i32, usize)> {
    let sign = rest.strip_prefix(['-', '−', '+']).map_or(0, |after| rest.len() - after.len());
    let count = rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=3).contains(&count) {
        return None;
    }
    let value: i32 = rest[sign..sign + count].parse().ok()?;
    let negative = sign > 0 && !rest.starts_with('+');
    Some((if negative { -value } else { value }, sign + count))
}

fn short_exponent(rest: &str) -> Option<(i32, usize)> {
    let after = rest.strip_prefix(['e', 'E'])?;
    let (value, length) = signed_digits(after)?;
    let next = after[length..].chars().next();
    (!next.is_some_and(char::is_alphanumeric)).then_some((value, 1 + length))
}

fn power_of_ten(rest: &str) -> Option<(i32, usize)> {
    let trimmed = rest.trim_start_matches([' ', '\u{a0}']);
    let after = trimmed.strip_prefix(['×', 'x', '·'])?;
    let after = after.trim_start_matches([' ', '\u{a0}']).strip_prefix("10")?;
    if let Some(caret) = after.strip_prefix('^') {
        let (value, length) = signed_digits(caret)?;
        return Some((value, rest.len() - caret.len() + length));
    }
    let mut value = 0i32;
    let mut length = 0;
    let mut negative = false;
    for character in after.chars().take(4) {
        let digit = match character {
            '⁻' if length == 0 => {
                negative = true;
                length += character.len_utf8();
                continue;
            }
            '⁰' => 0,
            '¹' => 1,
            '²' => 2,
            '³' => 3,
            '⁴'..='⁹' => 4 + (character as i32 - '⁴' as i32),
            _ => break,
        };
        value = value * 10 + digit;
        length += character.len_utf8();
    }
    (length > 0).then(|| (if negative { -value } else { value }, rest.len() - after.len() + length))
}

fn extend_with_magnitude(text: &str, start: usize, money_before: bool, parsed: &mut Parsed) {
    for _ in 0..2 {
        let gap = skip_gap(text, parsed.end);
        let Some((factor, end)) = magnitude_at(text, gap, money_before) else { return };
        parsed.end = end;
        parsed.magnitude *= factor;
        parsed.number = Number {
            value: parsed.number.value * factor,
            text: text[start..end].to_owned(),
            step: parsed.number.step * factor,
        };
        parsed.plain_digits = None;
    }
}
