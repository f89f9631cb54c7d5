//! Quantities that decide nothing by themselves: superseded ones ("raised from 155 to 160 mph") and rounded restatements
//! in brackets ("110 mph (175 km/h)").

use super::arithmetic::{convert, same};
use super::items::Item;
use super::model::Quantity;

/// Verbs after which "from A to B" is a change of one value, not a range.
const CHANGES: &[&str] = &[
    "raised",
    "lowered",
    "revised",
    "changed",
    "corrected",
    "adjusted",
    "amended",
    "upgraded",
    "downgraded",
    "increased",
    "decreased",
    "reduced",
    "cut",
];
/// A verb farther back belongs to something else.
const WINDOW: usize = 100;

/// Whether "from A to B" at the item says that A became B.
pub(super) fn is_change(text: &str, first: &Item) -> bool {
    let mut from = first.prefix.start.saturating_sub(WINDOW);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let before = &text[from..first.prefix.start];
    // Only the clause that "from" stands in.
    let clause = before.rsplit([',', ';', ':', '.', '!', '?', '(', ')', '\n']).next().unwrap_or("").to_lowercase();
    let has_number = clause.contains(|letter: char| letter.is_ascii_digit());
    !has_number && clause.split(|letter: char| !letter.is_alphabetic()).any(|word| CHANGES.contains(&word))
}

/// Two readings of one value lie no farther apart than this share of it.
const MAX_ROUNDING: f64 = 0.04;

/// Whether the second quantity repeats the first in brackets, with coarser rounding than its digits say.
pub(super) fn is_restated(text: &str, first: &Quantity, second: &Quantity) -> bool {
    let between = text.get(first.span.end..second.span.start).unwrap_or("");
    if between.trim() != "(" || first.unit.is_same(&second.unit) || same(first, second) {
        return false;
    }
    convert(second, &first.unit)
        .and_then(|converted| Some((converted.base_value()?, first.base_value()?)))
        .is_some_and(|(left, right)| (left - right).abs() <= MAX_ROUNDING * left.abs().max(right.abs()))
}
