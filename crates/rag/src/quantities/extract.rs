//! From items to quantities and ranges: compounds are joined, units shared within a range, ends limited.

use std::ops::Range;

use super::bounds::Opening;
use super::items::{Item, ItemValue};
use super::model::{Bound, Date, Edge, Quantity, QuantityRange, Value};
use super::revisions::{is_change, is_restated};
use super::scanner::items_of;
use super::units::{Dimension, Unit};

/// Everything found in one text.
#[derive(Debug, Clone, Default)]
pub(super) struct Scan {
    /// All quantities in order; the ends of ranges are among them, with their bounds.
    pub(super) quantities: Vec<Quantity>,
    /// All ranges and one-sided limits in order.
    pub(super) ranges: Vec<QuantityRange>,
    /// Starts of quantities that another one has taken the place of.
    superseded: Vec<usize>,
    /// Starts of quantities that repeat another one in brackets.
    restated: Vec<usize>,
}

impl Scan {
    /// The quantities that start within a span.
    pub(super) fn quantities_in(&self, span: &Range<usize>) -> &[Quantity] {
        let from = self.quantities.partition_point(|quantity| quantity.span.start < span.start);
        let to = self.quantities.partition_point(|quantity| quantity.span.start < span.end);
        &self.quantities[from..to.max(from)]
    }

    /// Whether the text says that another value has taken the place of this one.
    pub(super) fn is_superseded(&self, quantity: &Quantity) -> bool {
        self.superseded.binary_search(&quantity.span.start).is_ok()
    }

    /// Whether it repeats the quantity before it in another unit and with coarser rounding.
    pub(super) fn is_restated(&self, quantity: &Quantity) -> bool {
        self.restated.binary_search(&quantity.span.start).is_ok()
    }

    /// Whether the text has a better quantity for the same thing.
    pub(super) fn is_secondary(&self, quantity: &Quantity) -> bool {
        self.is_superseded(quantity) || self.is_restated(quantity)
    }

    /// The ranges that start within a span.
    pub(super) fn ranges_in(&self, span: &Range<usize>) -> &[QuantityRange] {
        let from = self.ranges.partition_point(|range| range.span.start < span.start);
        let to = self.ranges.partition_point(|range| range.span.start < span.end);
        &self.ranges[from..to.max(from)]
    }
}

/// The quantities of a text in order, each with its span and the limit its wording sets.
///
/// Ends of ranges are reported as two limited quantities; [`ranges`] gives them joined.
#[must_use]
pub fn extract(text: &str) -> Vec<Quantity> {
    scan(text).quantities
}

/// The ranges of a text in order, two-sided ("between 1,500 and 3,500 km") and one-sided ("up to 1,500 km").
#[must_use]
pub fn ranges(text: &str) -> Vec<QuantityRange> {
    scan(text).ranges
}

/// Two items that form one range.
struct Pair {
    first: usize,
    low_inclusive: Option<bool>,
    high_inclusive: Option<bool>,
    /// The second item is the lower end.
    reversed: bool,
}

pub(super) fn scan(text: &str) -> Scan {
    let mut items = join_compounds(text, items_of(text));
    let mut pairs = Vec::new();
    let mut superseded = Vec::new();
    let mut index = 0;
    while index + 1 < items.len() {
        if let Some(pair) = pair_at(text, &mut items, index) {
            let first = &items[index];
            if first.prefix.opening == Some(Opening::From) && is_change(text, first) {
                superseded.push(first.span.start);
            } else {
                pairs.push(pair);
            }
            index += 2;
        } else {
            index += 1;
        }
    }
    let mut scan = Scan::default();
    let mut pairs = pairs.into_iter().peekable();
    let mut index = 0;
    while index < items.len() {
        if let Some(pair) = pairs.next_if(|pair| pair.first == index) {
            push_pair(text, &items, &pair, &mut scan);
            index += 2;
            continue;
        }
        let item = &items[index];
        index += 1;
        if item.provisional {
            continue;
        }
        let quantity = quantity_of(text, item, item.bound());
        if let Some(range) = one_sided(&quantity, item) {
            scan.ranges.push(range);
        }
        scan.quantities.push(quantity);
    }
    scan.superseded = superseded;
    let restated = scan.quantities.windows(2).filter(|pair| is_restated(text, &pair[0], &pair[1]));
    scan.restated = restated.map(|pair| pair[1].span.start).collect();
    scan
}

fn push_pair(text: &str, items: &[Item], pair: &Pair, scan: &mut Scan) {
    let (first, second) = (&items[pair.first], &items[pair.first + 1]);
    let low_bound = if pair.low_inclusive == Some(false) { Bound::MoreThan } else { Bound::AtLeast };
    let high_bound = if pair.high_inclusive == Some(false) { Bound::LessThan } else { Bound::AtMost };
    let (first_bound, second_bound) = if pair.reversed { (high_bound, low_bound) } else { (low_bound, high_bound) };
    let mut first_quantity = quantity_of(text, first, first_bound);
    let mut second_quantity = quantity_of(text, second, second_bound);
    let approximate = first_quantity.approximate || second_quantity.approximate;
    first_quantity.approximate = approximate;
    second_quantity.approximate = approximate;
    let (low, high) = if pair.reversed {
        (second_quantity.clone(), first_quantity.clone())
    } else {
        (first_quantity.clone(), second_quantity.clone())
    };
    scan.ranges.push(QuantityRange {
        low: Some(Edge { quantity: low, inclusive: pair.low_inclusive }),
        high: Some(Edge { quantity: high, inclusive: pair.high_inclusive }),
        span: first.prefix.start.min(first.span.start)..second.phrase_end(),
    });
    scan.quantities.push(first_quantity);
    scan.quantities.push(second_quantity);
}

fn one_sided(quantity: &Quantity, item: &Item) -> Option<QuantityRange> {
    let edge = |inclusive| Some(Edge { quantity: quantity.clone(), inclusive: Some(inclusive) });
    let (low, high) = match quantity.bound {
        Bound::Exact => return None,
        Bound::AtLeast => (edge(true), None),
        Bound::MoreThan => (edge(false), None),
        Bound::AtMost => (None, edge(true)),
        Bound::LessThan => (None, edge(false)),
    };
    Some(QuantityRange { low, high, span: item.prefix.start.min(item.span.start)..item.phrase_end() })
}

fn quantity_of(text: &str, item: &Item, bound: Bound) -> Quantity {
    let (value, unit) = match &item.value {
        ItemValue::Date(date) => (Value::Date(*date), Unit::date()),
        ItemValue::Number(number) if item.unit.is_none() && item.is_year => {
            (Value::Date(Date::of_year(number.value as i32)), Unit::date())
        }
        ItemValue::Number(number) => {
            (Value::Number(number.clone()), item.unit.clone().unwrap_or_else(|| Unit::count(item.noun.clone())))
        }
    };
    let number_text = text[item.span.clone()].to_owned();
    let text = match &item.noun {
        Some(noun) if item.unit.is_none() => format!("{number_text} {noun}"),
        _ => number_text,
    };
    Quantity {
        value,
        unit,
        span: item.span.clone(),
        approximate: item.prefix.approximate,
        bound,
        per: item.per.clone(),
        text,
        compound: item.compound,
    }
}

/// "5 hours 30 minutes", "6 ft 2 in", "8 minutes and 46 seconds".
fn join_compounds(text: &str, items: Vec<Item>) -> Vec<Item> {
    let mut joined: Vec<Item> = Vec::with_capacity(items.len());
    for item in items {
        if let Some(last) = joined.last_mut()
            && let Some(number) = compound_of(text, last, &item)
        {
            last.value = ItemValue::Number(number);
            last.span.end = item.span.end;
            last.suffix = item.suffix;
            last.per = item.per;
            last.compound = true;
            continue;
        }
        joined.push(item);
    }
    joined
}

fn compound_of(text: &str, first: &Item, second: &Item) -> Option<super::model::Number> {
    let (unit, part) = (first.unit.as_ref()?, second.unit.as_ref()?);
    let (number, smaller) = (first.number()?, second.number()?);
    let allowed = matches!(unit.dimension, Dimension::Time | Dimension::Length | Dimension::Mass);
    if !allowed || unit.dimension != part.dimension || unit.symbol == "business days" || part.symbol == "business days"
    {
        return None;
    }
    let between = text[first.span.end..second.span.start].trim();
    let with_and = matches!(between, "and" | "und" | ", and");
    let imperial = matches!(unit.symbol.as_ref(), "ft" | "lb");
    if !between.is_empty() && !(with_and && (unit.dimension == Dimension::Time || imperial)) {
        return None;
    }
    let fits = part.scale < unit.scale && smaller.value * part.scale < unit.scale * (1.0 + 1e-9);
    if !fits || number.value.fract() != 0.0 || second.prefix.bound.is_some() || number.value < 0.0 {
        return None;
    }
    Some(super::model::Number {
        value: number.value + smaller.value * part.scale / unit.scale,
        text: super::model::collapse(&text[first.span.start..second.span.end]),
        step: smaller.step * part.scale / unit.scale,
    })
}

const DASHES: &[&str] = &["-", "–", "—", "−", "‑", "to", "bis", "through", "until", "till"];

fn pair_at(text: &str, items: &mut [Item], index: usize) -> Option<Pair> {
    let (head, tail) = items.split_at_mut(index + 1);
    let (first, second) = (&mut head[index], &mut tail[0]);
    // Words farther apart than this belong to different statements.
    if second.span.start.saturating_sub(first.span.end) > 64 {
        return None;
    }
    plain_pair(text, first, second, index).or_else(|| limited_pair(text, first, second, index))
}

/// "between A and B", "from A to B", "A–B".
fn plain_pair(text: &str, first: &mut Item, second: &mut Item, index: usize) -> Option<Pair> {
    if second.prefix.bound.is_some() || first.suffix.is_some() || first.prefix.bound.is_some() {
        return None;
    }
    let between_start = first.noun_end(text);
    let head = second.prefix.start.min(second.span.start);
    let between = text.get(between_start..head)?;
    let trimmed = between.trim();
    let opened = first.prefix.opening;
    let is_dash = DASHES.contains(&trimmed);
    let is_and = matches!(trimmed, "and" | "und" | "&") && opened == Some(Opening::Between);
    if !is_dash && !is_and {
        return None;
    }
    let spaced = |space: Option<char>| space.is_some_and(char::is_whitespace);
    let word = trimmed.chars().count() > 1;
    if !word && is_dash && spaced(between.chars().next()) != spaced(between.chars().next_back()) {
        return None;
    }
    share_units(first, second, opened.is_some() || !word)?;
    let ascending = is_ascending(first, second)?;
    if !ascending {
        return None;
    }
    let inclusive = if opened == Some(Opening::Between) { None } else { Some(true) };
    Some(Pair { first: index, low_inclusive: inclusive, high_inclusive: inclusive, reversed: false })
}

/// "more than A and up to B", "less than B but at least A", "from A up to B".
fn limited_pair(text: &str, first: &mut Item, second: &mut Item, index: usize) -> Option<Pair> {
    let from = first.prefix.opening == Some(Opening::From);
    let between = text.get(first.phrase_end()..second.prefix.start)?.trim().trim_end_matches(" is");
    let joined = matches!(
        between,
        "" | "and" | "but" | "," | ", and" | ", but" | "to" | "and also" | "but also" | "und" | "aber" | "(" | ", aber"
    );
    if !joined {
        return None;
    }
    let lower = |bound| matches!(bound, Bound::AtLeast | Bound::MoreThan);
    let upper = |bound| matches!(bound, Bound::AtMost | Bound::LessThan);
    let (first_bound, second_bound) = (first.bound(), second.bound());
    // "1,500 km up to 3,500 km" has no limit on its first number, but only one reading.
    let open_low = first_bound == Bound::Exact && second_bound == Bound::AtMost && (from || between.is_empty());
    let reversed = upper(first_bound) && lower(second_bound);
    if !(reversed || (lower(first_bound) || open_low) && upper(second_bound)) {
        return None;
    }
    share_units(first, second, true)?;
    if is_ascending(first, second)? == reversed {
        return None;
    }
    let inclusive = |bound| Some(!matches!(bound, Bound::MoreThan | Bound::LessThan));
    let (low, high) = if reversed { (second_bound, first_bound) } else { (first_bound, second_bound) };
    Some(Pair { first: index, low_inclusive: inclusive(low), high_inclusive: inclusive(high), reversed })
}

impl Item {
    /// The byte after the number and the noun it counts.
    fn noun_end(&self, text: &str) -> usize {
        match &self.noun {
            Some(noun) if text[self.span.end..].get(1..).is_some_and(|rest| rest.starts_with(noun.as_str())) => {
                self.span.end + 1 + noun.len()
            }
            _ => self.span.end,
        }
    }
}

/// Gives a bare number the unit of its partner. None where the two do not belong together.
fn share_units(first: &mut Item, second: &mut Item, forward: bool) -> Option<()> {
    share_date(first, second);
    if first.number().is_none() || second.number().is_none() {
        return (first.is_date() && second.is_date()).then_some(());
    }
    match (&first.unit, &second.unit) {
        (Some(left), Some(right)) => {
            let same = left.dimension == right.dimension
                && (left.dimension != Dimension::Money || left.symbol == right.symbol);
            return same.then_some(());
        }
        (None, Some(unit)) => {
            if first.noun.is_some() {
                return None;
            }
            first.unit = Some(unit.clone());
            first.is_year = false;
            first.provisional = false;
            share_magnitude(first, second);
        }
        (Some(unit), None) => {
            let same_breath = first.currency_first || forward && second.is_bare() && first.prefix.opening.is_some();
            if !same_breath || !second.is_bare() {
                return None;
            }
            second.unit = Some(unit.clone());
            second.is_year = false;
            second.provisional = false;
            share_magnitude(first, second);
        }
        (None, None) => share_counts(first, second)?,
    }
    Some(())
}

/// "12–18 April 2015" starts on 12 April 2015, "29 to 19 BC" in 29 BC.
fn share_date(first: &mut Item, second: &Item) {
    let (Some(digits), ItemValue::Date(date)) = (first.plain_digits.filter(|_| first.is_bare()), &second.value) else {
        return;
    };
    let Some(value) = first.number().map(|number| number.value) else { return };
    if date.day.is_some_and(|day| value < f64::from(day)) && digits <= 2 && value >= 1.0 {
        first.value = ItemValue::Date(Date { day: Some(value as u8), ..*date });
    } else if date.month.is_none() && digits <= 4 && date.year.is_some_and(|year| year < 0 && value > f64::from(-year))
    {
        first.value = ItemValue::Date(Date::of_year(-(value as i32)));
    }
}

fn share_counts(first: &mut Item, second: &mut Item) -> Option<()> {
    if first.noun.is_some() && second.noun.is_some() && first.noun != second.noun {
        return None;
    }
    first.provisional = false;
    second.provisional = false;
    if first.is_year && second.plain_digits == Some(2) {
        complete_year(first, second);
    }
    // "990–1051": the later end is a year, so the earlier is one.
    if second.is_year && first.plain_digits == Some(3) {
        first.plain_digits = Some(4);
    }
    if first.is_year || second.is_year {
        let four_digits = first.plain_digits == Some(4) && second.plain_digits == Some(4);
        let plural = second.noun.as_deref().is_some_and(super::scan_numbers::looks_plural);
        first.is_year = four_digits && !plural;
        second.is_year = four_digits && !plural;
        if first.is_year {
            second.noun = None;
        }
    }
    if first.noun.is_none() && !first.is_year {
        first.noun.clone_from(&second.noun);
    }
    share_magnitude(first, second);
    Some(())
}

/// "1939–45" ends in 1945.
fn complete_year(first: &Item, second: &mut Item) {
    let (Some(start), ItemValue::Number(number)) = (first.number().map(|number| number.value), &mut second.value)
    else {
        return;
    };
    let full = (start / 100.0).floor() * 100.0 + number.value;
    if full > start {
        number.value = full;
        second.is_year = true;
        second.plain_digits = Some(4);
    }
}

/// "5–10 million" means five million to ten million.
fn share_magnitude(first: &mut Item, second: &Item) {
    let Some(upper) = second.number().map(|number| number.value / second.magnitude) else { return };
    let magnitude = second.magnitude;
    if let ItemValue::Number(number) = &mut first.value
        && first.magnitude == 1.0
        && magnitude > 1.0
        && number.value < upper
    {
        number.value *= magnitude;
        number.step *= magnitude;
        first.magnitude = magnitude;
    }
}

fn is_ascending(first: &Item, second: &Item) -> Option<bool> {
    let year_of = |item: &Item| match &item.value {
        ItemValue::Date(date) => {
            let part = |value: Option<u8>| value.map_or(0.0, f64::from);
            Some(date.year.map_or(0.0, f64::from) + part(date.month) / 13.0 + part(date.day) / 500.0)
        }
        ItemValue::Number(number) => Some(number.value),
    };
    if first.is_date() && second.is_date() {
        return Some(year_of(first)? <= year_of(second)?);
    }
    let base = |item: &Item| {
        let unit = item.unit.as_ref();
        item.number().map(|number| number.value * unit.map_or(1.0, |unit| unit.scale) + unit.map_or(0.0, |u| u.offset))
    };
    Some(base(first)? < base(second)?)
}
