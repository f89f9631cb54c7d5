//! Rules with thresholds: a series of ranges of one dimension, each with its outcome.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::arithmetic::same;
use super::extract::{Scan, scan};
use super::marks::{Condition, Mark, MarkKind, OutcomeKind, Segment, marks_of, segments_of};
use super::model::{Quantity, QuantityRange};
use super::special_cases::special_and_general;
use super::tier_ranges::{
    any_overlap, below_last, beyond_last, fill_open_sides, leaves_gap, remainder_of, same_range, settle_shared_ends,
    stand_apart,
};
use super::units::{Dimension, Unit};
use super::words::{content_stems, names_of};

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
pub(super) struct Pair {
    condition: Condition,
    condition_span: Range<usize>,
    outcome: Outcome,
    outcome_span: Range<usize>,
    /// Bytes of the special case in the text, where the pair is one.
    pub(super) exception: Option<Range<usize>>,
    has_cue: bool,
    /// Where the words begin that belong to this pair and no earlier one.
    from: usize,
    /// Stems of these words, condition and outcome left out.
    stems: HashSet<String>,
    /// The names among them, in lower case.
    names: HashSet<String>,
}

impl Pair {
    pub(super) fn span(&self) -> Range<usize> {
        self.condition_span.start.min(self.outcome_span.start)..self.condition_span.end.max(self.outcome_span.end)
    }
}

/// Pairs that stand together.
#[derive(Debug, Default)]
struct Series {
    pairs: Vec<Pair>,
    /// A condition with an outcome among them could not be paired: a tier may be missing.
    broken: bool,
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
            // An amount or a name written out ("Category 3") speaks before the text of a line, cell or clause.
            if matches!(kind, OutcomeKind::Line | OutcomeKind::Spoken) && !found.is_empty() {
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
    let mut series = Series::default();
    let mut rules = Vec::new();
    for (segment, marks) in marked {
        let relevant: Vec<&Mark> = marks
            .iter()
            .filter(|mark| match &mark.kind {
                MarkKind::Outcome(found, _) => found == kind,
                _ => true,
            })
            .collect();
        let pairs = pairs_of(text, segment, &relevant);
        let has = |wanted: fn(&MarkKind) -> bool| relevant.iter().any(|mark| wanted(&mark.kind));
        series.broken |= pairs.is_empty()
            && !series.pairs.is_empty()
            && has(|kind| matches!(kind, MarkKind::Condition(_)))
            && has(|kind| matches!(kind, MarkKind::Outcome(..)));
        for pair in pairs {
            let last = series.pairs.last();
            if last.is_some_and(|last| pair.span().start.saturating_sub(last.span().end) > MAX_GAP) {
                rules.extend(finish(text, &std::mem::take(&mut series), dimension));
            }
            series.pairs.push(pair);
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

const CUES: &[&str] = &["if", "for", "when", "where", "whenever", "wenn", "für", "bei", "falls", "orders"];

pub(super) fn pair_of(text: &str, from: usize, condition: &Mark, outcome: &Mark) -> Pair {
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
    let (first, second) =
        if condition.span.start < outcome.span.start { (condition, outcome) } else { (outcome, condition) };
    let from = from.min(second.span.start);
    let between = first.span.end.max(from);
    let own = [from.min(first.span.start)..first.span.start, between..second.span.start.max(between)];
    let names = own.iter().flat_map(|part| names_of(text, part.clone())).flat_map(|name| name.words).collect();
    Pair {
        condition: condition_value,
        condition_span: condition.span.clone(),
        outcome: outcome_value,
        outcome_span: outcome.span.clone(),
        exception: None,
        has_cue,
        from,
        stems: own.iter().flat_map(|part| content_stems(text, part.clone())).collect(),
        names,
    }
}

/// Turns a series of pairs into a rule.
///
/// Where the series as it stands is none, but is one without a pair that speaks of something special ("for flights
/// within the European Union of more than 1,500 km"), that pair is an exception.
fn finish(text: &str, series: &Series, dimension: Dimension) -> Option<Rule> {
    let pairs = &series.pairs;
    if pairs.len() > MAX_TIERS {
        return None;
    }
    if let Some(ordered) = put_in_order(text, pairs, None, dimension) {
        // What a neighbour leaves open can be filled in only where no tier is missing and all speak of one thing.
        let unsure = ordered.filled && (series.broken || name_different_things(pairs));
        return (!unsure).then_some(ordered.rule);
    }
    let mut found = None;
    for special in (0..pairs.len()).filter(|special| is_special(pairs, *special)) {
        let Some(ordered) = put_in_order(text, pairs, Some(special), dimension) else { continue };
        if ordered.nested || series.broken || leaves_gap(&ordered.rule.tiers) {
            continue;
        }
        if found.is_some() {
            return None;
        }
        found = Some(ordered.rule);
    }
    found
}

/// Whether a pair speaks of something that no other pair speaks of.
fn is_special(pairs: &[Pair], special: usize) -> bool {
    pairs.len() > 2
        && pairs[special]
            .stems
            .iter()
            .any(|stem| !pairs.iter().enumerate().any(|(index, other)| index != special && other.stems.contains(stem)))
}

/// "20 EUR for up to 23 kg in Economy, 50 EUR for up to 32 kg in Business": no tiers of one another.
fn name_different_things(pairs: &[Pair]) -> bool {
    let Some((first, rest)) = pairs.split_first() else { return false };
    rest.iter().any(|pair| pair.exception.is_none() && !pair.names.is_subset(&first.names))
}

/// A series put in order.
struct Ordered {
    rule: Rule,
    /// An open end was taken from a neighbouring tier.
    nested: bool,
    /// That, or a tier was stated as what lies beyond or beside the others.
    filled: bool,
}

fn put_in_order(text: &str, pairs: &[Pair], special: Option<usize>, dimension: Dimension) -> Option<Ordered> {
    let mut tiers: Vec<Tier> = Vec::new();
    let mut exceptions: Vec<Tier> = Vec::new();
    let mut all_cues = true;
    let mut any_cue = false;
    let mut filled = false;
    let mut pending: Vec<&Pair> = Vec::new();
    for (index, pair) in pairs.iter().enumerate() {
        let range = match &pair.condition {
            Condition::Range(range) => range.as_ref().clone(),
            Condition::BeyondPrevious => beyond_last(&tiers, &pair.condition_span)?,
            Condition::BelowPrevious => below_last(&tiers, &pair.condition_span)?,
            Condition::Remainder => {
                pending.push(pair);
                continue;
            }
        };
        filled |= !matches!(pair.condition, Condition::Range(_));
        let mut tier = tier_of(text, pair, range);
        if special == Some(index) || pair.exception.is_some() {
            tier.span = pair.exception.clone().unwrap_or(pair.from..pair.span().end);
            exceptions.push(tier);
            continue;
        }
        all_cues &= pair.has_cue;
        any_cue |= pair.has_cue;
        match tiers.iter().find(|known| same_range(&known.range, &tier.range)) {
            None => tiers.push(tier),
            Some(known) if known.outcome.is_same(&tier.outcome) => {}
            Some(_) => return None,
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
        filled = true;
    }
    // Without words of condition, values that only happen to be limited would look like a rule.
    let everyday = matches!(dimension, Dimension::Money | Dimension::Time | Dimension::Percent | Dimension::Count);
    if nested && !all_cues || everyday && (!any_cue || stand_apart(&tiers)) {
        return None;
    }
    let rule = rule_of(tiers, exceptions, dimension)?;
    Some(Ordered { rule, nested, filled: filled || nested })
}

fn rule_of(tiers: Vec<Tier>, exceptions: Vec<Tier>, dimension: Dimension) -> Option<Rule> {
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

/// The byte after a clause that narrows the condition down: "more than 3,500 km *that begin or end outside the Union*".
fn restriction_end(text: &str, end: usize) -> usize {
    const LONGEST: usize = 100;
    let rest = &text[end..];
    let restricts = [" that ", " which "].iter().any(|word| rest.starts_with(word));
    let length = rest.find([',', ';', '.', ':', '(', '|', '\n', '"']).unwrap_or(rest.len());
    if restricts && length <= LONGEST { end + rest[..length].trim_end().len() } else { end }
}

fn tier_of(text: &str, pair: &Pair, range: QuantityRange) -> Tier {
    let condition_text = match &pair.condition {
        // The unit of "1,500 and 3,500 km" and the words of "later than that" stand elsewhere: the range is clearer.
        Condition::Range(_) if !text[range.span.clone()].contains(['<', '>']) => {
            super::model::collapse(&text[range.span.start..restriction_end(text, range.span.end)])
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
