//! The values: numbers, dates, quantities, ranges, and how they are written.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::units::{Dimension, Unit};

/// A number as it was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Number {
    /// Its value.
    pub value: f64,
    /// Its text, magnitude word included ("5,931", "3.5 million", "three").
    pub text: String,
    /// The worth of its last written digit: 1 for "5,931", 0.1 for "3.5", 100,000 for "3.5 million".
    pub step: f64,
}

impl Number {
    /// The worth of the last digit that is not a trailing zero: 100 for "5,900".
    pub(super) fn significant_step(&self) -> f64 {
        let mut step = self.step;
        if self.value == 0.0 {
            return step;
        }
        for _ in 0..18 {
            let wider = step * 10.0;
            let ratio = self.value / wider;
            if (ratio - ratio.round()).abs() > 1e-9 || ratio.abs() < 1.0 {
                break;
            }
            step = wider;
        }
        step
    }
}

/// A calendar date; what was not written is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Date {
    /// The year; years before the common era are negative.
    pub year: Option<i32>,
    /// The month, 1 to 12.
    pub month: Option<u8>,
    /// The day of the month, 1 to 31.
    pub day: Option<u8>,
}

const MONTH_NAMES: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

impl Date {
    /// A date of year precision.
    #[must_use]
    pub fn of_year(year: i32) -> Date {
        Date { year: Some(year), month: None, day: None }
    }

    /// Days since 1970-01-01 in the proleptic Gregorian calendar, where the date is complete.
    pub(super) fn day_number(&self) -> Option<i64> {
        let (year, month, day) = (i64::from(self.year?), i64::from(self.month?), i64::from(self.day?));
        // Howard Hinnant, "chrono-compatible low-level date algorithms": days_from_civil.
        let shifted = if month <= 2 { year - 1 } else { year };
        let era = shifted.div_euclid(400);
        let year_of_era = shifted - era * 400;
        let month_index = (month + 9) % 12;
        let day_of_year = (153 * month_index + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        Some(era * 146_097 + day_of_era - 719_468)
    }

    /// Whether every part that `self` states is stated the same by `other`.
    pub(super) fn is_covered_by(&self, other: &Date) -> bool {
        fn part<T: PartialEq + Copy>(stated: Option<T>, known: Option<T>) -> bool {
            stated.is_none() || stated == known
        }
        part(self.year, other.year) && part(self.month, other.month) && part(self.day, other.day)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(day) = self.day {
            parts.push(day.to_string());
        }
        if let Some(name) = self.month.and_then(|month| MONTH_NAMES.get(usize::from(month).wrapping_sub(1))) {
            parts.push((*name).to_owned());
        }
        match self.year {
            Some(year) if year < 0 => parts.push(format!("{} BC", year.unsigned_abs())),
            Some(year) if year < 1000 && parts.is_empty() => parts.push(format!("AD {year}")),
            Some(year) => parts.push(year.to_string()),
            None => {}
        }
        formatter.write_str(&parts.join(" "))
    }
}

/// What a quantity holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// A number of its unit.
    Number(Number),
    /// A calendar date or year.
    Date(Date),
}

/// How the wording limits a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Bound {
    /// The value itself.
    Exact,
    /// "at least", "or more".
    AtLeast,
    /// "more than", "over", "exceeding".
    MoreThan,
    /// "up to", "at most", "not exceeding".
    AtMost,
    /// "less than", "under", "below".
    LessThan,
}

/// One value with its unit, where it was found and how it was limited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quantity {
    /// The number or date.
    pub value: Value,
    /// Its unit; counts carry their noun, dates an empty unit.
    pub unit: Unit,
    /// Bytes of number and unit in the text it came from.
    pub span: Range<usize>,
    /// Said with "about", "around", "nearly" or a sign for it.
    pub approximate: bool,
    /// Said with "up to", "more than" and the like.
    pub bound: Bound,
    /// What it is counted for, as in "50 EUR per night".
    pub per: Option<String>,
    /// The text of number and unit.
    pub text: String,
    /// Made of several numbers, as "5 hours 30 minutes".
    pub compound: bool,
}

impl Quantity {
    /// The number in the base unit of the dimension; none for dates.
    #[must_use]
    pub fn base_value(&self) -> Option<f64> {
        match &self.value {
            Value::Number(number) => Some(number.value * self.unit.scale + self.unit.offset),
            Value::Date(_) => None,
        }
    }

    /// The number, where it is one.
    #[must_use]
    pub fn number(&self) -> Option<&Number> {
        match &self.value {
            Value::Number(number) => Some(number),
            Value::Date(_) => None,
        }
    }

    /// The dimension of its unit.
    #[must_use]
    pub fn dimension(&self) -> Dimension {
        self.unit.dimension
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per = self.per.as_ref().map(|noun| format!(" per {noun}")).unwrap_or_default();
        match &self.value {
            Value::Date(date) => write!(formatter, "{date}"),
            Value::Number(_) if self.compound || self.dimension() == Dimension::Count => {
                write!(formatter, "{}", collapse(&self.text))
            }
            Value::Number(number) => {
                // "three h" would read oddly, so numbers in words become digits before a symbol.
                let digits = if number.text.starts_with(char::is_alphabetic) {
                    format_number(number.value, usize::from(number.step < 1.0))
                } else {
                    collapse(&number.text)
                };
                if self.dimension() == Dimension::Percent {
                    return write!(formatter, "{digits}{}{per}", self.unit.symbol);
                }
                let symbol = singular(&self.unit.symbol, number.value);
                write!(formatter, "{digits} {symbol}{per}")
            }
        }
    }
}

/// "1 day", not "1 days", for the symbols that are plural words.
fn singular(symbol: &str, value: f64) -> &str {
    let is_word = symbol.len() > 3 && symbol.ends_with('s') && symbol.is_ascii();
    if value == 1.0 && is_word { &symbol[..symbol.len() - 1] } else { symbol }
}

/// One end of a range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    /// The value at the end.
    pub quantity: Quantity,
    /// Whether the value itself lies in the range; none where the wording ("between") leaves it open.
    pub inclusive: Option<bool>,
}

/// A stretch of values of one dimension; a missing end is open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuantityRange {
    /// Lower end.
    pub low: Option<Edge>,
    /// Upper end.
    pub high: Option<Edge>,
    /// Bytes of the whole phrase, with words such as "between" and "up to".
    pub span: Range<usize>,
}

impl QuantityRange {
    /// The unit of its ends.
    #[must_use]
    pub fn unit(&self) -> Option<&Unit> {
        self.low.as_ref().or(self.high.as_ref()).map(|edge| &edge.quantity.unit)
    }

    /// The dimension of its ends.
    #[must_use]
    pub fn dimension(&self) -> Option<Dimension> {
        self.unit().map(|unit| unit.dimension)
    }
}

impl fmt::Display for QuantityRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.low, &self.high) {
            (Some(low), Some(high)) if low.inclusive == Some(false) || high.inclusive == Some(false) => {
                write!(formatter, "{} and {}", low_words(low), high_words(high))
            }
            (Some(low), Some(high)) => write!(formatter, "between {} and {}", low.quantity, high.quantity),
            (Some(low), None) => formatter.write_str(&low_words(low)),
            (None, Some(high)) => formatter.write_str(&high_words(high)),
            (None, None) => formatter.write_str("any value"),
        }
    }
}

fn low_words(edge: &Edge) -> String {
    let words = if edge.inclusive == Some(true) { "at least" } else { "more than" };
    format!("{words} {}", edge.quantity)
}

fn high_words(edge: &Edge) -> String {
    let words = if edge.inclusive == Some(false) { "less than" } else { "up to" };
    format!("{words} {}", edge.quantity)
}

/// The text with every run of white space as one space.
pub(super) fn collapse(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A number with thousands separators and a fixed count of decimals.
pub(super) fn format_number(value: f64, decimals: usize) -> String {
    let plain = format!("{:.*}", decimals, value.abs());
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain.as_str(), ""));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) && whole.len() > 3 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let is_zero = plain.chars().all(|character| matches!(character, '0' | '.'));
    let sign = if value < 0.0 && !is_zero { "−" } else { "" };
    if fraction.is_empty() { format!("{sign}{grouped}") } else { format!("{sign}{grouped}.{fraction}") }
}
