//! Comparing, containing, adding and subtracting quantities of one dimension.

use std::cmp::Ordering;

use super::model::{Bound, Date, Edge, Number, Quantity, QuantityRange, Value, format_number};
use super::units::{Dimension, Unit};

/// Relative distance below which two floating-point values are the same number.
const EPSILON: f64 = 1e-9;
/// Two rounded values never count as the same when they differ by more than this share of the larger.
const MAX_RELATIVE_ROUNDING: f64 = 0.05;

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() <= EPSILON * left.abs().max(right.abs()).max(1e-12)
}

/// Whether two quantities can be compared at all: one dimension, one currency, one "per".
#[must_use]
pub fn comparable(left: &Quantity, right: &Quantity) -> bool {
    left.dimension() == right.dimension()
        && (left.dimension() != Dimension::Money || left.unit.symbol == right.unit.symbol)
        && left.per == right.per
}

/// How far apart two values may lie and still be one value, written with different rounding; in base units.
fn tolerance(left: &Quantity, right: &Quantity) -> f64 {
    let (Some(first), Some(second)) = (left.number(), right.number()) else { return 0.0 };
    let same_unit = left.unit.is_same(&right.unit);
    let money = left.dimension() == Dimension::Money;
    let mut total = 0.0;
    if !same_unit {
        total += 0.5 * first.step * left.unit.scale + 0.5 * second.step * right.unit.scale;
    } else if !close(first.step, second.step) {
        // Cents are no rounding of whole euros, but "3.5 million" is one.
        let coarse = first.step.max(second.step);
        if !money || coarse >= 1000.0 {
            total += 0.5 * coarse * left.unit.scale;
        }
    }
    for (quantity, number) in [(left, first), (right, second)] {
        if quantity.approximate {
            total = total.max(0.5 * number.significant_step() * quantity.unit.scale);
        }
    }
    let scale = (first.value * left.unit.scale).abs().max((second.value * right.unit.scale).abs());
    total.min(MAX_RELATIVE_ROUNDING * scale)
}

/// Whether both quantities state the same value, allowing for the rounding of the less precise one.
///
/// 3,685 miles and 5,931 km are the same; 250 EUR and 250.40 EUR are not.
#[must_use]
pub fn same(left: &Quantity, right: &Quantity) -> bool {
    if !comparable(left, right) {
        return false;
    }
    match (&left.value, &right.value) {
        (Value::Date(first), Value::Date(second)) => first == second,
        (Value::Number(_), Value::Number(_)) => match (left.base_value(), right.base_value()) {
            (Some(first), Some(second)) => {
                close(first, second) || (first - second).abs() <= tolerance(left, right) * (1.0 + EPSILON)
            }
            _ => false,
        },
        _ => false,
    }
}

/// The order of two quantities of one dimension; none where they cannot be compared or their precision leaves it open.
#[must_use]
pub fn compare(left: &Quantity, right: &Quantity) -> Option<Ordering> {
    if !comparable(left, right) {
        return None;
    }
    match (&left.value, &right.value) {
        (Value::Date(first), Value::Date(second)) => compare_dates(first, second),
        (Value::Number(_), Value::Number(_)) => {
            if same(left, right) {
                return Some(Ordering::Equal);
            }
            left.base_value()?.partial_cmp(&right.base_value()?)
        }
        _ => None,
    }
}

fn compare_dates(left: &Date, right: &Date) -> Option<Ordering> {
    let by_year = left.year?.cmp(&right.year?);
    if by_year != Ordering::Equal {
        return Some(by_year);
    }
    match (left.month, right.month) {
        (None, None) => Some(Ordering::Equal),
        (Some(first), Some(second)) if first != second => Some(first.cmp(&second)),
        (Some(_), Some(_)) => match (left.day, right.day) {
            (None, None) => Some(Ordering::Equal),
            (Some(first), Some(second)) => Some(first.cmp(&second)),
            _ => None,
        },
        _ => None,
    }
}

enum Side {
    Inside,
    Outside,
    Open,
}

fn beyond_edge(edge: &Edge, quantity: &Quantity, wanted: Ordering) -> Option<Side> {
    if !comparable(&edge.quantity, quantity) {
        return None;
    }
    if let (Value::Date(limit), Value::Date(date)) = (&edge.quantity.value, &quantity.value) {
        return Some(match compare_dates(date, limit) {
            Some(Ordering::Equal) => at_edge(edge),
            Some(order) if order == wanted => Side::Inside,
            Some(_) => Side::Outside,
            None => Side::Open,
        });
    }
    let (limit, value) = (edge.quantity.base_value()?, quantity.base_value()?);
    if close(limit, value) {
        return Some(if quantity.approximate { Side::Open } else { at_edge(edge) });
    }
    let rounding = if quantity.approximate || !edge.quantity.unit.is_same(&quantity.unit) {
        tolerance(&edge.quantity, quantity)
    } else {
        0.0
    };
    if (limit - value).abs() <= rounding {
        return Some(Side::Open);
    }
    Some(if value.partial_cmp(&limit) == Some(wanted) { Side::Inside } else { Side::Outside })
}

fn at_edge(edge: &Edge) -> Side {
    match edge.inclusive {
        Some(true) => Side::Inside,
        Some(false) => Side::Outside,
        None => Side::Open,
    }
}

/// Whether the range holds the quantity.
///
/// None where they cannot be compared, where the quantity is itself only a limit, or where the answer depends on
/// rounding or on a wording that does not say whether the end belongs to the range.
#[must_use]
pub fn contains(range: &QuantityRange, quantity: &Quantity) -> Option<bool> {
    if quantity.bound != Bound::Exact || (range.low.is_none() && range.high.is_none()) {
        return None;
    }
    let mut open = false;
    for (edge, wanted) in [(&range.low, Ordering::Greater), (&range.high, Ordering::Less)] {
        let Some(edge) = edge else { continue };
        match beyond_edge(edge, quantity, wanted)? {
            Side::Inside => {}
            Side::Outside => return Some(false),
            Side::Open => open = true,
        }
    }
    if open { None } else { Some(true) }
}

fn decimals_of(step: f64) -> usize {
    let mut decimals = 0;
    let mut scaled = step;
    while decimals < 9 && scaled < 1.0 - 1e-9 {
        scaled *= 10.0;
        decimals += 1;
    }
    decimals
}

fn combined(left: &Quantity, right: &Quantity, sign: f64) -> Option<Quantity> {
    if !comparable(left, right) || left.dimension() == Dimension::Temperature && sign > 0.0 {
        return None;
    }
    let (first, second) = (left.number()?, right.number()?);
    let factor = right.unit.scale / left.unit.scale;
    // The offsets of two temperatures cancel in a difference only when both are first brought to one unit.
    let converted = (right.base_value()? - left.unit.offset) / left.unit.scale;
    let value = first.value + sign * converted;
    if !value.is_finite() {
        return None;
    }
    let same_unit = left.unit.is_same(&right.unit);
    let step = if same_unit { first.step.min(second.step) } else { first.step.max(second.step * factor) };
    let magnitude_step = 10f64.powi(step.log10().floor() as i32);
    let rounded =
        if same_unit || magnitude_step <= 0.0 { value } else { (value / magnitude_step).round() * magnitude_step };
    let text = format_number(rounded, decimals_of(magnitude_step));
    let approximate = left.approximate || right.approximate || !same_unit;
    Some(computed(Number { value: rounded, text, step }, left.unit.clone(), approximate, left.per.clone()))
}

fn computed(number: Number, unit: Unit, approximate: bool, per: Option<String>) -> Quantity {
    let separator = if unit.symbol.is_empty() { "" } else { " " };
    let text = format!("{}{separator}{}", number.text, unit.symbol);
    Quantity {
        value: Value::Number(number),
        unit,
        span: 0..0,
        approximate,
        bound: Bound::Exact,
        per,
        text,
        compound: false,
    }
}

/// The sum in the unit of the first; none for dates, temperatures, other dimensions or other currencies.
#[must_use]
pub fn add(left: &Quantity, right: &Quantity) -> Option<Quantity> {
    combined(left, right, 1.0)
}

/// The difference in the unit of the first; of two years a number of years, of two full dates a number of days.
#[must_use]
pub fn subtract(left: &Quantity, right: &Quantity) -> Option<Quantity> {
    let (Value::Date(first), Value::Date(second)) = (&left.value, &right.value) else {
        return combined(left, right, -1.0);
    };
    let (value, unit) = match (first.day_number(), second.day_number()) {
        (Some(later), Some(earlier)) => ((later - earlier) as f64, Unit::named("days")?),
        _ => (year_difference(first, second)?, Unit::named("years")?),
    };
    let number = Number { value, text: format_number(value, 0), step: 1.0 };
    Some(computed(number, unit, left.approximate || right.approximate, None))
}

/// Years between two dates of year precision; there is no year zero.
fn year_difference(left: &Date, right: &Date) -> Option<f64> {
    if left.month.is_some() || right.month.is_some() {
        return None;
    }
    let continuous = |year: i32| f64::from(if year < 0 { year + 1 } else { year });
    Some(continuous(left.year?) - continuous(right.year?))
}

/// The quantity in another unit of its dimension, rounded no finer than it was written; none across dimensions.
#[must_use]
pub fn convert(quantity: &Quantity, unit: &Unit) -> Option<Quantity> {
    if quantity.dimension() != unit.dimension
        || matches!(unit.dimension, Dimension::Date | Dimension::Count)
        || unit.dimension == Dimension::Money && quantity.unit.symbol != unit.symbol
    {
        return None;
    }
    let number = quantity.number()?;
    let value = (quantity.base_value()? - unit.offset) / unit.scale;
    let step = number.step * quantity.unit.scale / unit.scale;
    if !value.is_finite() || !step.is_finite() || step <= 0.0 {
        return None;
    }
    let place = 10f64.powi(step.log10().floor() as i32).max(1e-9);
    let rounded = (value / place).round() * place;
    let number = Number { value: rounded, text: format_number(rounded, decimals_of(place)), step: place };
    Some(computed(number, unit.clone(), true, quantity.per.clone()))
}
