//! Checking the numbers of a claim: do they stand in the evidence, and does the claim pick a tier it may not pick.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::arithmetic::{contains, same, subtract};
use super::extract::{Scan, scan};
use super::model::{Bound, Quantity, Value};
use super::notes::{Note, plain, same_rule};
use super::relevance::{Question, relevant_rules};
use super::source::Source;
use super::tier_check::TierChecker;
use super::tiers::{Outcome, Rule};
use super::units::Dimension;

/// What is wrong with a number of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DiscrepancyKind {
    /// The value stands nowhere in the evidence, the question or the notes.
    NumberNotInEvidence,
    /// The claim states another outcome than the one computed, or pairs a condition with the wrong outcome.
    ContradictsComputed,
    /// The claim picks a tier that nothing in the evidence establishes.
    UnestablishedTier,
    /// The number stands in the evidence with another unit or currency.
    UnitMismatch,
}

/// A number of a claim that the evidence does not bear out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Discrepancy {
    /// What is wrong.
    pub kind: DiscrepancyKind,
    /// Bytes of the number or label in the claim.
    pub span: Range<usize>,
    /// One sentence for the reader and for the prompt that asks to mend the claim.
    pub message: String,
}

/// Every number, date and tier of a claim that evidence, question and notes do not bear out, in claim order.
///
/// Values count as equal after conversion and rounding of the less precise one. A claim that recites a rule with its
/// condition is fine; one that states a tier's outcome as the answer needs a note that establishes the tier.
#[must_use]
pub fn check_claim(claim: &str, question: &str, evidence: &[&str], notes: &[Note]) -> Vec<Discrepancy> {
    let sources: Vec<Source<'_>> = evidence.iter().map(|text| Source::read(text)).collect();
    let question = Question::read(question, &sources);
    let found = scan(claim);
    let known = Known::gather(&question, &sources, notes);
    let mut result: Vec<Discrepancy> =
        found.quantities.iter().filter_map(|quantity| known.judge(claim, quantity, &found)).collect();
    let checker = TierChecker { claim, found: &found, question: &question, sources: &sources, notes };
    for (passage, rule, _) in relevant_rules_once(&question, &sources) {
        result.extend(checker.judge(&sources[passage], rule));
    }
    result.sort_by_key(|one| (one.span.start, one.span.end, one.message.clone()));
    result.dedup();
    // A wrong tier says all there is to say about its number.
    let tiers: Vec<Range<usize>> = result
        .iter()
        .filter(|one| matches!(one.kind, DiscrepancyKind::ContradictsComputed | DiscrepancyKind::UnestablishedTier))
        .map(|one| one.span.clone())
        .collect();
    result.retain(|one| {
        let numeric = matches!(one.kind, DiscrepancyKind::NumberNotInEvidence | DiscrepancyKind::UnitMismatch);
        !(numeric && tiers.contains(&one.span))
    });
    result
}

fn relevant_rules_once<'s>(question: &Question<'_>, sources: &'s [Source<'_>]) -> Vec<(usize, &'s Rule, f64)> {
    let mut kept: Vec<(usize, &Rule, f64)> = Vec::new();
    for entry in relevant_rules(question, sources) {
        if !kept.iter().any(|known| same_rule(known.1, entry.1)) {
            kept.push(entry);
        }
    }
    kept
}

/// Everything a claim may draw its numbers from.
struct Known {
    quantities: Vec<Quantity>,
    /// Runs of digits with separators taken out, for numbers that stand in names and identifiers.
    digits: std::collections::HashSet<String>,
}

/// Counts up to this many may have been counted by the writer.
const COUNTABLE: f64 = 12.0;

impl Known {
    fn gather(question: &Question<'_>, sources: &[Source<'_>], notes: &[Note]) -> Known {
        let mut known = Known { quantities: question.scan.quantities.clone(), digits: digit_runs(question.text) };
        for source in sources {
            known.quantities.extend(source.scan.quantities.iter().cloned());
            known.digits.extend(digit_runs(source.text));
        }
        for note in notes {
            known.quantities.extend(note.inputs.iter().cloned());
            if let Some(Outcome::Quantity(quantity)) = &note.outcome {
                known.quantities.push(quantity.clone());
            }
            known.quantities.extend(scan(&note.text).quantities);
            known.digits.extend(digit_runs(&note.text));
        }
        known
    }

    fn judge(&self, claim: &str, quantity: &Quantity, found: &Scan) -> Option<Discrepancy> {
        let stated = self.quantities.iter().any(|known| states_same(quantity, known) || is_bare_same(quantity, known));
        if stated || self.bears_out_limit(quantity, found) || self.is_derived(quantity, found) || self.is_age(quantity)
        {
            return None;
        }
        let written = &claim[quantity.span.clone()];
        let value = match &quantity.value {
            Value::Number(number) => Some(number.value),
            Value::Date(date) => date.year.filter(|_| date.month.is_none()).map(f64::from),
        };
        if matches!(quantity.dimension(), Dimension::Count | Dimension::Date) {
            let bare = value.is_some_and(|value| self.has_number(value)) || self.has_digits(written);
            if bare && (quantity.dimension() == Dimension::Count || value.is_some()) || self.may_be_counted(quantity) {
                return None;
            }
        } else if let Some(other) = value.and_then(|value| self.with_other_unit(quantity, value)) {
            return Some(Discrepancy {
                kind: DiscrepancyKind::UnitMismatch,
                span: quantity.span.clone(),
                message: format!(
                    "\"{}\" is not in the evidence, which says \"{}\".",
                    plain(written),
                    plain(&other.text)
                ),
            });
        }
        Some(Discrepancy {
            kind: DiscrepancyKind::NumberNotInEvidence,
            span: quantity.span.clone(),
            message: format!("\"{}\" is in neither the evidence nor the question.", plain(written)),
        })
    }

    /// "more than 5,000 km" is borne out by 5,931 km.
    fn bears_out_limit(&self, quantity: &Quantity, found: &Scan) -> bool {
        if quantity.bound == Bound::Exact || quantity.dimension() == Dimension::Count {
            return false;
        }
        let Some(range) = found
            .ranges
            .iter()
            .find(|range| range.span.start <= quantity.span.start && quantity.span.end <= range.span.end)
        else {
            return false;
        };
        self.quantities.iter().any(|known| contains(range, known) == Some(true))
    }

    /// Years that pass between two of the few years the evidence names.
    fn is_age(&self, quantity: &Quantity) -> bool {
        if quantity.unit.symbol != "years" {
            return false;
        }
        let Some(value) = quantity.number().map(|number| number.value) else { return false };
        let years: std::collections::BTreeSet<i32> = self
            .quantities
            .iter()
            .filter_map(|known| match &known.value {
                Value::Date(date) => date.year,
                Value::Number(_) => None,
            })
            .collect();
        // Among many years some two lie any number of years apart.
        let year_pairs = years.iter().flat_map(|later| years.iter().map(move |earlier| f64::from(later - earlier)));
        years.len() <= 6
            && year_pairs.into_iter().any(|passed| passed > 0.0 && (passed == value || passed == value + 1.0))
    }

    fn has_number(&self, value: f64) -> bool {
        self.quantities.iter().any(|known| match &known.value {
            Value::Number(number) => number.value == value,
            Value::Date(date) => date.year.map(f64::from) == Some(value),
        })
    }

    fn has_digits(&self, written: &str) -> bool {
        let runs = digit_runs(written);
        !runs.is_empty() && runs.iter().all(|run| self.digits.contains(run))
    }

    /// Small counts may come from counting, unless the evidence counts the same thing differently.
    fn may_be_counted(&self, quantity: &Quantity) -> bool {
        let small = quantity.number().is_some_and(|number| number.value <= COUNTABLE && number.value.fract() == 0.0);
        let noun = &quantity.unit.symbol;
        let contradicted = !noun.is_empty()
            && self.quantities.iter().any(|known| {
                known.dimension() == Dimension::Count
                    && super::words::stem(&known.unit.symbol) == super::words::stem(noun)
            });
        quantity.dimension() == Dimension::Count && small && !contradicted
    }

    /// The same number with another unit; bare counts and years do not speak against a unit.
    fn with_other_unit(&self, quantity: &Quantity, value: f64) -> Option<&Quantity> {
        self.quantities.iter().find(|known| {
            known.number().is_some_and(|number| number.value == value)
                && known.dimension() != Dimension::Count
                && !known.unit.is_same(&quantity.unit)
        })
    }

    /// Sums and differences of two other quantities of the claim that the evidence holds.
    fn is_derived(&self, quantity: &Quantity, found: &Scan) -> bool {
        let terms: Vec<&Quantity> = found
            .quantities
            .iter()
            .filter(|other| {
                other.span != quantity.span && self.quantities.iter().any(|known| states_same(other, known))
            })
            .take(12)
            .collect();
        terms.iter().enumerate().any(|(index, left)| {
            terms[index + 1..].iter().any(|right| {
                [subtract(left, right), subtract(right, left), super::arithmetic::add(left, right)]
                    .into_iter()
                    .flatten()
                    .any(|result| {
                        result.base_value() != Some(0.0) && same(&without_per(quantity), &without_per(&result))
                    })
            })
        })
    }
}

pub(super) fn without_per(quantity: &Quantity) -> Quantity {
    Quantity { per: None, bound: Bound::Exact, ..quantity.clone() }
}

/// Whether the claim's quantity is stated by a known one; a date by any date at least as precise.
fn states_same(claimed: &Quantity, known: &Quantity) -> bool {
    match (&claimed.value, &known.value) {
        (Value::Date(date), Value::Date(stated)) => date.is_covered_by(stated),
        _ => same(&without_per(claimed), &without_per(known)),
    }
}

/// A table's bare number says nothing against the unit of the claim.
fn is_bare_same(claimed: &Quantity, known: &Quantity) -> bool {
    let bare = known.dimension() == Dimension::Count && known.unit.symbol.is_empty();
    bare && claimed.number().is_some() && claimed.number().map(|it| it.value) == known.number().map(|it| it.value)
}

fn digit_runs(text: &str) -> std::collections::HashSet<String> {
    let mut runs = std::collections::HashSet::new();
    let mut run = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let separates = matches!(character, ',' | '.' | '\u{a0}' | '\'')
            && !run.is_empty()
            && characters.peek().is_some_and(char::is_ascii_digit);
        if character.is_ascii_digit() {
            run.push(character);
        } else if !separates && !run.is_empty() {
            runs.insert(std::mem::take(&mut run));
        }
    }
    if !run.is_empty() {
        runs.insert(run);
    }
    runs
}
