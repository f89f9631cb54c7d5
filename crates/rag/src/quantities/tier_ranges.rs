//! The ranges of a series of tiers: how they meet, what they leave open, what lies beyond them.

use std::ops::Range;

use super::model::{Bound, Edge, QuantityRange};
use super::tiers::Tier;

fn edge_value(edge: Option<&Edge>, open: f64) -> f64 {
    edge.and_then(|edge| edge.quantity.base_value()).unwrap_or(open)
}

pub(super) fn bounds_of(range: &QuantityRange) -> (f64, f64) {
    (edge_value(range.low.as_ref(), f64::NEG_INFINITY), edge_value(range.high.as_ref(), f64::INFINITY))
}

pub(super) fn near(left: f64, right: f64) -> bool {
    left == right || left.is_finite() && right.is_finite() && (left - right).abs() <= 1e-9 * left.abs().max(right.abs())
}

pub(super) fn same_range(left: &QuantityRange, right: &QuantityRange) -> bool {
    let ((left_low, left_high), (right_low, right_high)) = (bounds_of(left), bounds_of(right));
    near(left_low, right_low) && near(left_high, right_high)
}

pub(super) fn complement(edge: &Edge, bound: Bound) -> Edge {
    let mut quantity = edge.quantity.clone();
    quantity.bound = bound;
    Edge { quantity, inclusive: edge.inclusive.map(|inclusive| !inclusive) }
}

/// "later than that": what lies above the range before.
pub(super) fn beyond_last(tiers: &[Tier], span: &Range<usize>) -> Option<QuantityRange> {
    let high = tiers.last()?.range.high.as_ref()?;
    let mut low = complement(high, Bound::MoreThan);
    low.inclusive = Some(false);
    Some(QuantityRange { low: Some(low), high: None, span: span.clone() })
}

/// "for shorter ones": what lies below the range before.
pub(super) fn below_last(tiers: &[Tier], span: &Range<usize>) -> Option<QuantityRange> {
    let low = tiers.last()?.range.low.as_ref()?;
    let mut high = complement(low, Bound::LessThan);
    high.inclusive = high.inclusive.or(Some(false));
    Some(QuantityRange { low: None, high: Some(high), span: span.clone() })
}

/// Fills ends that nested limits leave open: "up to 1,500: 250; up to 3,500: 400" means 1,500 to 3,500 for the second.
/// Whether anything was filled.
pub(super) fn fill_open_sides(tiers: &mut [Tier]) -> bool {
    let mut filled = false;
    for index in 1..tiers.len() {
        let (head, tail) = tiers.split_at_mut(index);
        let (before, after) = (&mut head[index - 1].range, &mut tail[0].range);
        let upper_only = |range: &QuantityRange| range.low.is_none() && range.high.is_some();
        let lower_only = |range: &QuantityRange| range.low.is_some() && range.high.is_none();
        let (before_bounds, after_bounds) = (bounds_of(before), bounds_of(after));
        if upper_only(after) && before.high.is_some() && before_bounds.1 < after_bounds.1 {
            after.low = before.high.as_ref().map(|edge| complement(edge, Bound::MoreThan));
            filled = true;
        } else if lower_only(before) && lower_only(after) && before_bounds.0 < after_bounds.0 {
            before.high = after.low.as_ref().map(|edge| complement(edge, Bound::LessThan));
            filled = true;
        } else if lower_only(after) && before.low.is_some() && before_bounds.0 > after_bounds.0 {
            after.high = before.low.as_ref().map(|edge| complement(edge, Bound::LessThan));
            filled = true;
        } else if upper_only(before) && upper_only(after) && before_bounds.1 > after_bounds.1 {
            before.low = after.high.as_ref().map(|edge| complement(edge, Bound::MoreThan));
            filled = true;
        }
    }
    filled
}

/// Where two tiers meet, the one that says whether it holds the shared end decides for the other.
pub(super) fn settle_shared_ends(tiers: &mut [Tier]) {
    for upper in 0..tiers.len() {
        for lower in 0..tiers.len() {
            let (Some(high), Some(low)) = (&tiers[lower].range.high, &tiers[upper].range.low) else { continue };
            let (Some(high_value), Some(low_value)) = (high.quantity.base_value(), low.quantity.base_value()) else {
                continue;
            };
            if lower == upper || !near(high_value, low_value) {
                continue;
            }
            let (new_high, new_low) = match (high.inclusive, low.inclusive) {
                (Some(high), None) => (Some(high), Some(!high)),
                (None, Some(low)) => (Some(!low), Some(low)),
                (Some(true), Some(true)) => (None, None),
                known => known,
            };
            if let Some(edge) = &mut tiers[lower].range.high {
                edge.inclusive = new_high;
            }
            if let Some(edge) = &mut tiers[upper].range.low {
                edge.inclusive = new_low;
            }
        }
    }
}

/// What no tier covers, where that is one open side.
pub(super) fn remainder_of(tiers: &[Tier], span: &Range<usize>) -> Option<QuantityRange> {
    if any_overlap(tiers) {
        return None;
    }
    let open_low = tiers.iter().any(|tier| tier.range.low.is_none());
    let open_high = tiers.iter().any(|tier| tier.range.high.is_none());
    let mut ordered: Vec<&QuantityRange> = tiers.iter().map(|tier| &tier.range).collect();
    ordered.sort_by(|left, right| bounds_of(left).0.total_cmp(&bounds_of(right).0));
    if !ordered.windows(2).all(|pair| near(bounds_of(pair[0]).1, bounds_of(pair[1]).0)) {
        return None;
    }
    match (open_low, open_high) {
        (true, false) => {
            let mut low = complement(ordered.last()?.high.as_ref()?, Bound::MoreThan);
            // Nothing else claims the end, so "between … and …" keeps it and the rest starts beyond.
            low.inclusive = low.inclusive.or(Some(false));
            Some(QuantityRange { low: Some(low), high: None, span: span.clone() })
        }
        (false, true) => {
            let mut high = complement(ordered.first()?.low.as_ref()?, Bound::LessThan);
            high.inclusive = high.inclusive.or(Some(false));
            Some(QuantityRange { low: None, high: Some(high), span: span.clone() })
        }
        _ => None,
    }
}

/// Two open-ended ranges that do not meet: more likely two statements than one rule.
pub(super) fn stand_apart(tiers: &[Tier]) -> bool {
    let [first, second] = tiers else { return false };
    let (first, second) = (bounds_of(&first.range), bounds_of(&second.range));
    let closed = [first, second].iter().any(|(low, high)| low.is_finite() && high.is_finite());
    !closed && !near(first.1, second.0) && !near(second.1, first.0)
}

pub(super) fn any_overlap(tiers: &[Tier]) -> bool {
    tiers.iter().enumerate().any(|(index, tier)| {
        let (low, high) = bounds_of(&tier.range);
        tiers[index + 1..].iter().any(|other| {
            let (other_low, other_high) = bounds_of(&other.range);
            low < other_high && other_low < high && !near(low, other_high) && !near(other_low, high)
        })
    })
}

/// Whether two neighbouring tiers leave values between them; 95 and 96 in whole numbers do not.
pub(super) fn leaves_gap(tiers: &[Tier]) -> bool {
    let mut ordered: Vec<&QuantityRange> = tiers.iter().map(|tier| &tier.range).collect();
    ordered.sort_by(|left, right| bounds_of(left).0.total_cmp(&bounds_of(right).0));
    ordered.windows(2).any(|pair| {
        let (high, low) = (bounds_of(pair[0]).1, bounds_of(pair[1]).0);
        let step = |edge: &Option<Edge>| {
            let quantity = edge.as_ref().map(|edge| &edge.quantity);
            quantity.and_then(|it| Some(it.number()?.step * it.unit.scale)).unwrap_or(0.0)
        };
        let step = step(&pair[0].high).max(step(&pair[1].low));
        low > high && !near(low, high) && low - high > step * (1.0 + 1e-9)
    })
}
