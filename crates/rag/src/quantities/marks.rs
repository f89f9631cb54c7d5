//! The marks a rule with thresholds is read from: conditions, outcomes, and words for "the rest".

use std::ops::Range;

use super::arithmetic::convert;
use super::comparatives::comparative_mark;
use super::extract::Scan;
use super::model::{Bound, Edge, QuantityRange};
use super::spoken_labels::spoken_labels;
use super::tiers::Outcome;
use super::units::Dimension;
use super::words::{is_list_line, sentences, words_of};

/// A sentence, list line, table row or part between semicolons.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) span: Range<usize>,
    pub(super) is_line: bool,
    /// The first cell of the header row, for table rows.
    pub(super) header: Option<Range<usize>>,
}

#[derive(Debug, Clone)]
pub(super) enum Condition {
    Range(Box<QuantityRange>),
    /// "later than that", "for longer flights".
    BeyondPrevious,
    /// "for shorter flights".
    BelowPrevious,
    /// "in all other cases".
    Remainder,
}

/// Outcomes of one series are of one kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OutcomeKind {
    /// Quantities of one dimension and, for money and counts, of one unit.
    Measured(Dimension, String),
    /// "Category", "class" and the like with a number or letter.
    Named(String),
    /// The text of a list line or table cell.
    Line,
    /// What a sentence calls a range ("they speak of high altitude").
    Spoken,
}

#[derive(Debug, Clone)]
pub(super) enum MarkKind {
    Condition(Condition),
    Outcome(OutcomeKind, Box<Outcome>),
    Remainder,
}

#[derive(Debug, Clone)]
pub(super) struct Mark {
    pub(super) kind: MarkKind,
    pub(super) span: Range<usize>,
}

/// The segments of a text in order.
pub(super) fn segments_of(text: &str) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut header: Option<Range<usize>> = None;
    for sentence in sentences(text) {
        let piece = &text[sentence.clone()];
        let is_row = piece.starts_with('|');
        if !is_row {
            header = None;
        } else if header.is_none() {
            header = first_cell(text, &sentence);
        }
        let is_line = is_list_line(piece) || piece.chars().count() < 60 && !piece.contains(". ");
        let mut start = sentence.start;
        for (offset, _) in piece.match_indices(';') {
            let end = sentence.start + offset;
            segments.push(Segment { span: start..end, is_line, header: header.clone() });
            start = end + 1;
        }
        segments.push(Segment { span: start..sentence.end, is_line, header: header.clone() });
    }
    segments
}

fn first_cell(text: &str, row: &Range<usize>) -> Option<Range<usize>> {
    let inner = text[row.clone()].strip_prefix('|')?;
    let start = row.start + 1;
    let length = inner.find('|')?;
    Some(start..start + length)
}

const REMAINDER_PHRASES: &[&str] = &[
    "not falling under",
    "in all other cases",
    "in any other case",
    "all other",
    "any other",
    "otherwise",
    "in other cases",
    "the rest",
    "everything else",
    "alle anderen",
    "andernfalls",
    "sonst",
];

const BEYOND_PHRASES: &[&str] = &[
    "later than that",
    "longer than that",
    "more than that",
    "higher than that",
    "beyond that",
    "above that",
    "over that",
    "after that",
    "heavier than that",
    "darüber hinaus",
];

const NAMED_KINDS: &[&str] = &[
    "category",
    "class",
    "grade",
    "level",
    "tier",
    "band",
    "zone",
    "stage",
    "type",
    "group",
    "rating",
    "bracket",
    "kategorie",
    "stufe",
    "klasse",
    "gruppe",
];

/// The marks of each segment for conditions of one dimension, in order within a segment.
pub(super) fn marks_of(
    text: &str,
    scan: &Scan,
    segments: &[Segment],
    dimension: Dimension,
) -> Vec<(Segment, Vec<Mark>)> {
    let mut ranges = scan.ranges.iter().peekable();
    let mut quantities = scan.quantities.iter().peekable();
    let mut result = Vec::with_capacity(segments.len());
    // The first and the last condition so far.
    let mut seen: Option<(usize, usize)> = None;
    for segment in segments {
        let mut marks: Vec<Mark> = Vec::new();
        let mut last_range: Option<(&QuantityRange, usize)> = None;
        while let Some(range) = ranges.next_if(|range| range.span.start < segment.span.end) {
            let inside = range.span.start >= segment.span.start && range.span.end <= segment.span.end;
            if !inside || range.dimension() != Some(dimension) || !is_condition(text, segment, scan, range) {
                continue;
            }
            // "119–153 km/h (74–95 mph)" says one thing twice.
            if last_range.is_some_and(|(last, end)| is_restated(text, last, end, range)) {
                continue;
            }
            last_range = Some((range, range.span.end));
            seen = Some((seen.map_or(segment.span.start, |(first, _)| first), range.span.end));
            marks.push(Mark {
                kind: MarkKind::Condition(Condition::Range(Box::new(range.clone()))),
                span: range.span.clone(),
            });
        }
        while let Some(quantity) = quantities.next_if(|quantity| quantity.span.start < segment.span.end) {
            let inside = quantity.span.start >= segment.span.start && quantity.span.end <= segment.span.end;
            let key = match quantity.dimension() {
                Dimension::Date => continue,
                Dimension::Money | Dimension::Count => quantity.unit.symbol.to_string(),
                _ => String::new(),
            };
            let unnamed_count = quantity.dimension() == Dimension::Count && key.is_empty();
            if inside && quantity.bound == Bound::Exact && quantity.dimension() != dimension && !unnamed_count {
                marks.push(Mark {
                    kind: MarkKind::Outcome(
                        OutcomeKind::Measured(quantity.dimension(), key),
                        Box::new(Outcome::Quantity(quantity.clone())),
                    ),
                    span: quantity.span.clone(),
                });
            }
        }
        if let Some((first, last)) = seen.filter(|(_, last)| segment.span.start.saturating_sub(*last) <= NEAR) {
            let from = first.max(last.saturating_sub(NEAR));
            marks.extend(comparative_mark(text, segment, dimension, char_start(text, from)));
        }
        marks.extend(phrase_marks(text, segment));
        marks.extend(named_marks(text, segment));
        marks.extend(line_mark(text, segment, &marks));
        marks.extend(spoken_labels(text, segment, &marks));
        marks.sort_by_key(|mark| (mark.span.start, mark.span.end));
        result.push((segment.clone(), marks));
    }
    result
}

/// A comparative takes up conditions at most this many bytes before it.
const NEAR: usize = 600;

fn char_start(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

const MONEY_CUES: &[&str] = &[
    "if",
    "for",
    "when",
    "where",
    "with",
    "income",
    "incomes",
    "earn",
    "earning",
    "price",
    "order",
    "orders",
    "purchase",
    "purchases",
    "sales",
    "value",
    "worth",
    "cost",
    "costs",
    "amounts",
    "amount",
    "turnover",
    "revenue",
    "salary",
    "spend",
    "spending",
    "balance",
    "on",
    "of",
];

/// A limit on money ("at most 775 USD") is a condition only where the words before it say so.
fn is_condition(text: &str, segment: &Segment, scan: &Scan, range: &QuantityRange) -> bool {
    if range.dimension() != Some(Dimension::Money) {
        return true;
    }
    let before = scan.quantities.partition_point(|quantity| quantity.span.end <= range.span.start);
    let earlier = scan.quantities[..before]
        .last()
        .map_or(0, |quantity| quantity.span.end)
        .max(segment.span.start)
        .min(range.span.start);
    let before = &text[earlier..range.span.start];
    let clause = before.rsplit(',').next().unwrap_or("").to_lowercase();
    segment.is_line && before.trim_matches(['-', '*', '|', ' ', '•', ':']).is_empty()
        || clause.split(|letter: char| !letter.is_alphabetic()).any(|word| MONEY_CUES.contains(&word))
}

fn is_restated(text: &str, last: &QuantityRange, end: usize, range: &QuantityRange) -> bool {
    let between = text.get(end..range.span.start).unwrap_or("");
    if between.len() > 4 || !between.contains(['(', '/', ',', '[']) {
        return false;
    }
    let agrees = |left: &Option<Edge>, right: &Option<Edge>| match (left, right) {
        (Some(left), Some(right)) => convert(&right.quantity, &left.quantity.unit)
            .and_then(|converted| Some((converted.base_value()?, left.quantity.base_value()?)))
            .is_some_and(|(first, second)| (first - second).abs() <= 0.04 * first.abs().max(second.abs())),
        (None, None) => true,
        _ => false,
    };
    agrees(&last.low, &range.low) && agrees(&last.high, &range.high)
}

fn phrase_marks(text: &str, segment: &Segment) -> Vec<Mark> {
    let piece = text[segment.span.clone()].to_ascii_lowercase();
    let mut marks = Vec::new();
    for (phrases, is_rest) in [(REMAINDER_PHRASES, true), (BEYOND_PHRASES, false)] {
        let first = phrases.iter().filter_map(|phrase| piece.find(phrase).map(|at| (at, phrase.len()))).min();
        if let Some((at, length)) = first {
            let span = segment.span.start + at..segment.span.start + at + length;
            let kind = if is_rest { MarkKind::Remainder } else { MarkKind::Condition(Condition::BeyondPrevious) };
            marks.push(Mark { kind, span });
        }
    }
    marks
}

/// "Category 3", "class B".
fn named_marks(text: &str, segment: &Segment) -> Vec<Mark> {
    let words = words_of(text, segment.span.clone());
    let mut marks = Vec::new();
    for pair in words.windows(2) {
        let (kind, value) = (&pair[0], &pair[1]);
        let written = &text[value.span.clone()];
        let is_value = written.len() <= 3 && written.bytes().all(|byte| byte.is_ascii_digit())
            || written.len() == 1 && value.capitalised
            || written.len() <= 4
                && !written.is_empty()
                && written.bytes().all(|byte| matches!(byte, b'I' | b'V' | b'X'))
            || value.capitalised && matches!(value.lower.as_str(), "one" | "two" | "three" | "four" | "five");
        if NAMED_KINDS.contains(&kind.lower.as_str()) && is_value && value.follows_directly {
            let span = kind.span.start..value.span.end;
            marks.push(Mark {
                kind: MarkKind::Outcome(
                    OutcomeKind::Named(kind.lower.clone()),
                    Box::new(Outcome::Label(text[span.clone()].to_owned())),
                ),
                span,
            });
        }
    }
    marks
}

/// The label of a list line ("Severe: over 10 %", "over 10 %: severe") or of a table row.
fn line_mark(text: &str, segment: &Segment, marks: &[Mark]) -> Option<Mark> {
    if !segment.is_line {
        return None;
    }
    let mut conditions = marks.iter().filter(|mark| matches!(mark.kind, MarkKind::Condition(_)));
    let condition = conditions.next()?;
    if conditions.next().is_some() {
        return None;
    }
    let is_row = text[segment.span.clone()].starts_with('|');
    let before = &text[segment.span.start..condition.span.start];
    let separators: &[char] = if is_row { &['|'] } else { &[':', '–', '—', '|', '='] };
    let (start, label) = if let Some(at) = before.rfind(separators).filter(|at| has_letters(&before[..*at])) {
        (segment.span.start, if is_row { before[..at].trim_start_matches('|') } else { &before[..at] })
    } else {
        let after = &text[condition.span.end..segment.span.end];
        let at = after.find(separators)?;
        let separator = after[at..].chars().next().map_or(1, char::len_utf8);
        let tail = &after[at + separator..];
        (condition.span.end + at + separator, tail.split('|').next().unwrap_or(tail))
    };
    let label = label.split('|').next().unwrap_or(label);
    let within = text[start..segment.span.end].find(label).map_or(start, |found| start + found);
    let bare = label.trim_matches(|letter: char| !letter.is_alphanumeric() && letter != ')' && letter != '(');
    let count = bare.split_whitespace().count();
    if bare.is_empty() || count > 6 {
        return None;
    }
    let named = match &segment.header {
        Some(header) if bare.bytes().all(|byte| byte.is_ascii_digit()) => {
            let kind = text[header.clone()].trim().trim_matches('*').trim();
            if has_letters(kind) { format!("{kind} {bare}") } else { return None }
        }
        _ if has_letters(bare) => bare.to_owned(),
        _ => return None,
    };
    Some(Mark {
        kind: MarkKind::Outcome(OutcomeKind::Line, Box::new(Outcome::Label(named))),
        span: within..within + label.len(),
    })
}

fn has_letters(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}
