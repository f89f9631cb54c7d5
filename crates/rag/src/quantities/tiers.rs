//! Rules with thresholds: a series of ranges of one dimension, each with its outcome.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::arithmetic::same;
use super::extract::{Scan, scan};
use super::marks::{Condition, Mark, MarkKind, OutcomeKind, Segment, marks_of, segments_of};
use super::model::{Bound, Edge, Quantity, QuantityRange};
use super::units::{Dimension, Unit};

/// What a tier gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// An amount, share or other value.
    Quantity(Quantity),
    /// A name such as "Category 3".
    Label(String),
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Quantity(quantity) => quantity.fmt(formatter),
            Outcome::Label(label) => formatter.write_str(label),
        }
    }
}

impl Outcome {
    /// Whether both state the same.
    #[must_use]
    pub fn is_same(&self, other: &Outcome) -> bool {
        match (self, other) {
            (Outcome::Quantity(left), Outcome::Quantity(right)) => {
                same(left, right) || left.unit.is_same(&right.unit) && left.base_value() == right.base_value()
            }
            (Outcome::Label(left), Outcome::Label(right)) => left.to_lowercase() == right.to_lowercase(),
            _ => false,
        }
    }
}

/// One range of a rule with its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tier {
    /// The values it holds for; open ends that only one reading allows are filled from the neighbouring tiers.
    pub range: QuantityRange,
    /// What it gives.
    pub outcome: Outcome,
    /// Bytes of the outcome.
    pub outcome_span: Range<usize>,
    /// Bytes from the first to the last word of condition and outcome.
    pub span: Range<usize>,
    /// The condition in the words of the text; for "in all other cases" the range it comes to.
    pub condition_text: String,
}

/// A rule with thresholds found in one text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// What the condition measures.
    pub dimension: Dimension,
    /// The unit of its thresholds.
    pub unit: Unit,
    /// Two or more tiers that do not overlap.
    pub tiers: Vec<Tier>,
    /// Special cases the text sets apart ("all intra-Community flights of more than 1500 kilometres").
    pub exceptions: Vec<Tier>,
    /// Bytes from the first to the last tier.
    pub span: Range<usize>,
}

/// The rules with thresholds of a text, in order.
///
/// Two or more (range → outcome) pairs are needed, in either order, within sentences or list lines that stand
/// together. Series that overlap or could be paired in two ways give no rule.
#[must_use]
pub fn tiers(text: &str) -> Vec<Rule> {
    rules_in(text, &scan(text))
}

/// Pairs at most this many bytes apart belong to one series.
const MAX_GAP: usize = 600;
/// A longer series is a data table, not a rule.
const MAX_TIERS: usize = 100;

/// A condition paired with an outcome, before the series is put in order.
#[derive(Debug, Clone)]
struct Pair {
    condition: Condition,
    condition_span: Range<usize>,
    outcome: Outcome,
    outcome_span: Range<usize>,
    exception: bool,
    has_cue: bool,
}

impl Pair {
    fn span(&self) -> Range<usize> {
        self.condition_span.start.min(self.outcome_span.start)..self.condition_span.end.max(self.outcome_span.end)
    }
}

pub(super) fn rules_in(text: &str, scan: &Scan) -> Vec<Rule> {
    let dimensions: BTreeSet<Dimension> =
        scan.ranges.iter().filter_map(QuantityRange::dimension).filter(|it| *it != Dimension::Date).collect();
    if scan.ranges.is_empty() || dimensions.is_empty() {
        return Vec::new();
    }
    let segments = segments_of(text);
    let mut rules = Vec::new();
    for dimension in dimensions {
        let marked: Vec<(Segment, Vec<Mark>)> = marks_of(text, scan, &segments, dimension);
        let kinds: BTreeSet<OutcomeKind> = marked
            .iter()
            .flat_map(|(_, marks)| marks.iter())
            .filter_map(|mark| match &mark.kind {
                MarkKind::Outcome(kind, _) => Some(kind.clone()),
                _ => None,
            })
            .collect();
        let mut found: Vec<Rule> = Vec::new();
        for kind in kinds {
            // A name written out ("Category 3") speaks before the text of a line or cell.
            if kind == OutcomeKind::Line && !found.is_empty() {
                continue;
            }
            found.extend(rules_of_kind(text, &marked, dimension, &kind));
        }
        rules.extend(found);
    }
    rules.sort_by_key(|rule| (rule.span.start, rule.span.end));
    rules
}

fn rules_of_kind(text: &str, marked: &[(Segment, Vec<Mark>)], dimension: Dimension, kind: &OutcomeKind) -> Vec<Rule> {
    let mut series: Vec<Pair> = Vec::new();
    let mut rules = Vec::new();
    for (segment, marks) in marked {
        let relevant: Vec<&Mark> = marks
            .iter()
            .filter(|mark| match &mark.kind {
                MarkKind::Outcome(found, _) => found == kind,
                _ => true,
            })
            .collect();
        for pair in pairs_of(text, segment, &relevant) {
            let far = series.last().is_some_and(|last| pair.span().start.saturating_sub(last.span().end) > MAX_GAP);
            if far {
                rules.extend(finish(text, &std::mem::take(&mut series), dimension));
            }
            series.push(pair);
        }
    }
    rules.extend(finish(text, &series, dimension));
    rules
}

/// Pairs the marks of one sentence or line; nothing where they could be paired in two ways.
fn pairs_of(text: &str, segment: &Segment, marks: &[&Mark]) -> Vec<Pair> {
    let conditions: Vec<&Mark> =
        marks.iter().copied().filter(|mark| matches!(mark.kind, MarkKind::Condition(_))).collect();
    let outcomes: Vec<&Mark> =
        marks.iter().copied().filter(|mark| matches!(mark.kind, MarkKind::Outcome(..))).collect();
    let rest = marks.iter().copied().find(|mark| matches!(mark.kind, MarkKind::Remainder));
    match (conditions.len(), outcomes.len()) {
        (0, 1) => rest.map(|rest| pair_of(text, segment.span.start, rest, outcomes[0])).into_iter().collect(),
        (several, 1) if several > 1 => special_and_general(text, segment, &conditions, outcomes[0]),
        (equal, other) if equal == other && equal > 0 => alternating(text, segment, &conditions, &outcomes),
        (fewer, more) if fewer > 0 && more == fewer + 1 => {
            let last = outcomes[more - 1];
            let Some(rest) = rest.filter(|rest| rest.span.start > conditions[fewer - 1].span.end) else {
                return Vec::new();
            };
            let mut pairs = alternating(text, segment, &conditions, &outcomes[..fewer]);
            if pairs.len() == fewer && last.span.start > conditions[fewer - 1].span.end {
                let start = pairs[fewer - 1].span().end;
                pairs.push(pair_of(text, start, rest, last));
                return pairs;
            }
            Vec::new()
        }
        _ => Vec::new(),
    }
}

fn alternating(text: &str, segment: &Segment, conditions: &[&Mark], outcomes: &[&Mark]) -> Vec<Pair> {
    let condition_first = conditions[0].span.start < outcomes[0].span.start;
    let mut at = segment.span.start;
    let mut pairs = Vec::with_capacity(conditions.len());
    for (condition, outcome) in conditions.iter().zip(outcomes) {
        let (first, second) = if condition_first { (condition, outcome) } else { (outcome, condition) };
        if first.span.start < at || second.span.start < first.span.end {
            return Vec::new();
        }
        pairs.push(pair_of(text, at, condition, outcome));
        at = second.span.end;
    }
    pairs
}

/// "400 for all intra-Community flights of more than A, and for all *other* flights between A and B".
fn special_and_general(text: &str, segment: &Segment, conditions: &[&Mark], outcome: &Mark) -> Vec<Pair> {
    let last = conditions[conditions.len() - 1];
    let before_last = conditions[conditions.len() - 2].span.end;
    let between = text.get(before_last..last.span.start).unwrap_or("").to_lowercase();
    if !between.split(|letter: char| !letter.is_alphabetic()).any(|word| matches!(word, "other" | "others" | "anderen"))
    {
        return Vec::new();
    }
    conditions
        .iter()
        .enumerate()
        .map(|(index, condition)| {
            let mut pair = pair_of(text, segment.span.start, condition, outcome);
            pair.exception = index + 1 < conditions.len();
            pair
        })
        .collect()
}

const CUES: &[&str] = &["if", "for", "when", "where", "whenever", "wenn", "für", "bei", "falls", "orders"];

fn pair_of(text: &str, from: usize, condition: &Mark, outcome: &Mark) -> Pair {
    let (kind, outcome_value) = match &outcome.kind {
        MarkKind::Outcome(kind, value) => (kind.clone(), value.as_ref().clone()),
        _ => (OutcomeKind::Line, Outcome::Label(String::new())),
    };
    let condition_value = match &condition.kind {
        MarkKind::Condition(condition) => condition.clone(),
        _ => Condition::Remainder,
    };
    let end = condition.span.end.max(outcome.span.end);
    let portion = text.get(from.min(end)..end).unwrap_or("").to_lowercase();
    let named = matches!(kind, OutcomeKind::Named(_) | OutcomeKind::Line);
    let has_cue = named || portion.split(|letter: char| !letter.is_alphabetic()).any(|word| CUES.contains(&word));
    Pair {
        condition: condition_value,
        condition_span: condition.span.clone(),
        outcome: outcome_value,
        outcome_span: outcome.span.clone(),
        exception: false,
        has_cue,
    }
}

/// Turns a series of pairs into rules; starts anew where a range takes up what an earlier one already covers.
fn finish(text: &str, pairs: &[Pair], dimension: Dimension) -> Option<Rule> {
    if pairs.len() > MAX_TIERS {
        return None;
    }
    let mut tiers: Vec<Tier> = Vec::new();
    let mut exceptions: Vec<Tier> = Vec::new();
    let mut all_cues = true;
    let mut any_cue = false;
    let mut pending: Vec<&Pair> = Vec::new();
    for pair in pairs {
        let range = match &pair.condition {
            Condition::Range(range) => range.as_ref().clone(),
            Condition::BeyondPrevious => beyond_last(&tiers, &pair.condition_span)?,
            Condition::Remainder => {
                pending.push(pair);
                continue;
            }
        };
        let tier = tier_of(text, pair, range);
        if pair.exception {
            exceptions.push(tier);
            continue;
        }
        all_cues &= pair.has_cue;
        any_cue |= pair.has_cue;
        let repeated = tiers.iter().any(|known| same_range(&known.range, &tier.range));
        if !repeated {
            tiers.push(tier);
        } else if !tiers
            .iter()
            .any(|known| same_range(&known.range, &tier.range) && known.outcome.is_same(&tier.outcome))
        {
            return None;
        }
    }
    let nested = fill_open_sides(&mut tiers);
    settle_shared_ends(&mut tiers);
    if let [pair] = pending.as_slice()
        && let Some(range) = remainder_of(&tiers, &pair.condition_span)
    {
        let mut tier = tier_of(text, pair, range);
        tier.condition_text = tier.range.to_string();
        tiers.push(tier);
    }
    // Without words of condition, values that only happen to be limited would look like a rule.
    let everyday = matches!(dimension, Dimension::Money | Dimension::Time | Dimension::Percent | Dimension::Count);
    if nested && !all_cues || everyday && (!any_cue || stand_apart(&tiers)) {
        return None;
    }
    let distinct = tiers.iter().skip(1).any(|tier| !tier.outcome.is_same(&tiers[0].outcome));
    if tiers.len() < 2 || !distinct || any_overlap(&tiers) {
        return None;
    }
    let unit = tiers[0].range.unit()?.clone();
    let comparable = tiers.iter().all(|tier| {
        tier.range.unit().is_some_and(|other| {
            other.dimension == dimension && (dimension != Dimension::Money || other.symbol == unit.symbol)
        })
    });
    if !comparable {
        return None;
    }
    let start = tiers.iter().map(|tier| tier.span.start).min()?;
    let end = tiers.iter().map(|tier| tier.span.end).max()?;
    Some(Rule { dimension, unit, tiers, exceptions, span: start..end })
}

fn tier_of(text: &str, pair: &Pair, range: QuantityRange) -> Tier {
    let condition_text = match &pair.condition {
        // The unit of "1,500 and 3,500 km" and the words of "later than that" stand elsewhere: the range is clearer.
        Condition::Range(_) if !text[range.span.clone()].contains(['<', '>']) => {
            super::model::collapse(&text[range.span.clone()])
        }
        _ => range.to_string(),
    };
    Tier {
        range,
        outcome: pair.outcome.clone(),
        outcome_span: pair.outcome_span.clone(),
        span: pair.span(),
        condition_text,
    }
}

fn edge_value(edge: Option<&Edge>, open: f64) -> f64 {
    edge.and_then(|edge| edge.quantity.base_value()).unwrap_or(open)
}

fn bounds_of(range: &QuantityRange) -> (f64, f64) {
    (edge_value(range.low.as_ref(), f64::NEG_INFINITY), edge_value(range.high.as_ref(), f64::INFINITY))
}

fn near(left: f64, right: f64) -> bool {
    left == right || left.is_finite() && right.is_finite() && (left - right).abs() <= 1e-9 * left.abs().max(right.abs())
}

fn same_range(left: &QuantityRange, right: &QuantityRange) -> bool {
    let ((left_low, left_high), (right_low, right_high)) = (bounds_of(left), bounds_of(right));
    near(left_low, right_low) && near(left_high, right_high)
}

fn complement(edge: &Edge, bound: Bound) -> Edge {
    let mut quantity = edge.quantity.clone();
    quantity.bound = bound;
    Edge { quantity, inclusive: edge.inclusive.map(|inclusive| !inclusive) }
}

/// "later than that": what lies above the range before.
fn beyond_last(tiers: &[Tier], span: &Range<usize>) -> Option<QuantityRange> {
    let high = tiers.last()?.range.high.as_ref()?;
    let mut low = complement(high, Bound::MoreThan);
    low.inclusive = Some(false);
    Some(QuantityRange { low: Some(low), high: None, span: span.clone() })
}

/// Fills ends that nested limits leave open: "up to 1,500: 250; up to 3,500: 400" means 1,500 to 3,500 for the second.
/// Whether anything was filled.
fn fill_open_sides(tiers: &mut [Tier]) -> bool {
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
fn settle_shared_ends(tiers: &mut [Tier]) {
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
fn remainder_of(tiers: &[Tier], span: &Range<usize>) -> Option<QuantityRange> {
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
fn stand_apart(tiers: &[Tier]) -> bool {
    let [first, second] = tiers else { return false };
    let (first, second) = (bounds_of(&first.range), bounds_of(&second.range));
    let closed = [first, second].iter().any(|(low, high)| low.is_finite() && high.is_finite());
    !closed && !near(first.1, second.0) && !near(second.1, first.0)
}

fn any_overlap(tiers: &[Tier]) -> bool {
    tiers.iter().enumerate().any(|(index, tier)| {
        let (low, high) = bounds_of(&tier.range);
        tiers[index + 1..].iter().any(|other| {
            let (other_low, other_high) = bounds_of(&other.range);
            low < other_high && other_low < high && !near(low, other_high) && !near(other_low, high)
        })
    })
}
