//! Checking the tiers of a claim: what it may recite, what it may conclude.

use std::ops::Range;

use super::arithmetic::{contains, convert, same};
use super::check::{Discrepancy, DiscrepancyKind, without_per};
use super::extract::Scan;
use super::model::{Bound, Quantity, QuantityRange};
use super::notes::{Note, NoteKind, plain};
use super::relevance::Question;
use super::source::{Source, mentions};
use super::tiers::{Outcome, Rule, Tier};
use super::units::Dimension;
use super::words::{names_of, words_of};

pub(super) struct TierChecker<'c> {
    pub(super) claim: &'c str,
    pub(super) found: &'c Scan,
    pub(super) question: &'c Question<'c>,
    pub(super) sources: &'c [Source<'c>],
    pub(super) notes: &'c [Note],
}

/// Sizes that stand for a condition: "250 EUR for short distances".
const SIZE_WORDS: &[&str] = &[
    "short",
    "medium",
    "long",
    "small",
    "large",
    "shorter",
    "longer",
    "low",
    "middle",
    "high",
    "kurz",
    "mittel",
    "lang",
    "depending",
    "depends",
    "either",
];

impl TierChecker<'_> {
    /// Every outcome of the rule that the claim states and may not state.
    pub(super) fn judge(&self, source: &Source<'_>, rule: &Rule) -> Vec<Discrepancy> {
        let stated = self.stated_outcomes(rule);
        let kinds =
            stated.iter().map(|(_, tiers)| tiers[0].outcome.to_string()).collect::<std::collections::BTreeSet<_>>();
        stated.iter().filter_map(|(span, tiers)| self.judge_outcome(source, rule, span, tiers, kinds.len())).collect()
    }

    /// The outcomes of the rule that the claim states, each with the tiers that give it.
    fn stated_outcomes<'r>(&self, rule: &'r Rule) -> Vec<(Range<usize>, Vec<&'r Tier>)> {
        let mut stated: Vec<(Range<usize>, Vec<&Tier>)> = Vec::new();
        for quantity in &self.found.quantities {
            let tiers: Vec<&Tier> = rule
                .tiers
                .iter()
                .filter(|tier| match &tier.outcome {
                    Outcome::Quantity(outcome) => {
                        let bare = quantity.dimension() == Dimension::Count
                            && quantity.unit.symbol.is_empty()
                            && quantity.base_value() == outcome.base_value();
                        bare || same(&without_per(quantity), &without_per(outcome))
                    }
                    Outcome::Label(_) => false,
                })
                .collect();
            let limit = matches!(quantity.bound, Bound::AtMost | Bound::AtLeast) && is_extreme(rule, quantity);
            if !tiers.is_empty() && !limit {
                stated.push((quantity.span.clone(), tiers));
            }
        }
        let lowered = self.claim.to_lowercase();
        // Lower case may change lengths; spans are then unknown, and such labels are left alone.
        if lowered.len() == self.claim.len() {
            for tier in &rule.tiers {
                let Outcome::Label(label) = &tier.outcome else { continue };
                let wanted = label.to_lowercase();
                for (at, _) in lowered.match_indices(&wanted) {
                    let end = at + wanted.len();
                    let inside = |side: Option<char>| side.is_some_and(char::is_alphanumeric);
                    if !inside(lowered[..at].chars().next_back()) && !inside(lowered[end..].chars().next()) {
                        stated.push((at..end, vec![tier]));
                    }
                }
            }
            // "very high altitude" does not state "high altitude".
            let spans: Vec<Range<usize>> = stated.iter().map(|(span, _)| span.clone()).collect();
            stated.retain(|(span, _)| {
                !spans
                    .iter()
                    .any(|other| other.start <= span.start && span.end <= other.end && other.len() > span.len())
            });
        }
        stated
    }

    fn judge_outcome(
        &self,
        source: &Source<'_>,
        rule: &Rule,
        span: &Range<usize>,
        tiers: &[&Tier],
        distinct_outcomes: usize,
    ) -> Option<Discrepancy> {
        if self.is_denied(span) {
            return None;
        }
        let measured: Vec<&Quantity> = self
            .found
            .quantities
            .iter()
            .filter(|quantity| quantity.bound == Bound::Exact && quantity.dimension() == rule.dimension)
            .collect();
        // What the claim says about the value must fit the tier it draws from it.
        if let [value] = measured.as_slice()
            && distinct_outcomes == 1
            && tiers.iter().all(|tier| contains(&tier.range, value) == Some(false))
            && self.exceptions_allow(rule, span, value).is_none()
        {
            return Some(contradiction(span, &format!("{} is not {}", plain(&value.to_string()), tiers[0].range)));
        }
        let conditions: Vec<&QuantityRange> =
            self.found.ranges.iter().filter(|range| range.dimension() == Some(rule.dimension)).collect();
        if !conditions.is_empty() {
            return self.judge_recital(rule, span, tiers, &conditions, distinct_outcomes);
        }
        let outcomes: Vec<&Outcome> = self
            .notes
            .iter()
            .filter(|note| note.kind == NoteKind::Tier)
            .filter_map(|note| note.outcome.as_ref())
            .filter(|outcome| rule.tiers.iter().any(|tier| tier.outcome.is_same(outcome)))
            .collect();
        if outcomes.iter().any(|outcome| tiers.iter().any(|tier| tier.outcome.is_same(outcome))) {
            return None;
        }
        if let Some(range) = self.asked_range(rule) {
            let right = rule.tiers.iter().find(|tier| meets(range, &tier.range))?;
            let agrees = tiers.iter().any(|tier| tier.outcome.is_same(&right.outcome));
            return (!agrees).then(|| {
                contradiction(span, &format!("the evidence gives {} for {range}", plain(&right.outcome.to_string())))
            });
        }
        if distinct_outcomes > 1 || self.has_size_word(rule) || self.is_stated_elsewhere(rule, tiers[0]) {
            return None;
        }
        if let Some(outcome) = outcomes.first() {
            return Some(contradiction(span, &format!("the computed result is {}", plain(&outcome.to_string()))));
        }
        if measured.iter().any(|value| self.is_named_with(rule, tiers, value)) {
            return None;
        }
        let what = super::relevance::condition_word(source, rule);
        Some(Discrepancy {
            kind: DiscrepancyKind::UnestablishedTier,
            span: span.clone(),
            message: format!(
                "\"{}\" holds only for {}, and the evidence does not establish the {what}.",
                plain(&self.claim[span.clone()]),
                tiers[0].range,
            ),
        })
    }

    fn exceptions_allow(&self, rule: &Rule, span: &Range<usize>, value: &Quantity) -> Option<()> {
        let stated = self.found.quantities.iter().find(|quantity| quantity.span == *span)?;
        rule.exceptions
            .iter()
            .any(|tier| {
                let outcome = matches!(&tier.outcome, Outcome::Quantity(outcome) if same(outcome, stated));
                outcome && contains(&tier.range, value) != Some(false)
            })
            .then_some(())
    }

    /// A claim that gives a condition with its outcome must pair them as the rule does.
    fn judge_recital(
        &self,
        rule: &Rule,
        span: &Range<usize>,
        tiers: &[&Tier],
        conditions: &[&QuantityRange],
        distinct_outcomes: usize,
    ) -> Option<Discrepancy> {
        // With several outcomes the pairs are read as the rule itself was; unclear ones are left alone.
        let nearest = if distinct_outcomes > 1 {
            let own = super::tiers::tiers(self.claim);
            let pair = own.iter().flat_map(|rule| &rule.tiers).find(|tier| tier.outcome_span == *span)?.clone();
            conditions.iter().find(|range| range.span == pair.range.span).copied()?.clone()
        } else if let [condition] = conditions {
            (*condition).clone()
        } else {
            return None;
        };
        if tiers.iter().any(|tier| meets(&nearest, &tier.range)) {
            return None;
        }
        let exception = rule.exceptions.iter().any(|tier| {
            tiers.iter().any(|stated| stated.outcome.is_same(&tier.outcome)) && meets(&nearest, &tier.range)
        });
        let right = rule.tiers.iter().find(|tier| meets(&nearest, &tier.range))?;
        (!exception).then(|| {
            let words = plain(&self.claim[nearest.span.clone()]);
            contradiction(span, &format!("the evidence gives {} for \"{words}\"", plain(&right.outcome.to_string())))
        })
    }

    /// The condition the question itself sets: "for flights of more than 3,500 km".
    fn asked_range(&self, rule: &Rule) -> Option<&QuantityRange> {
        let mut asked = self.question.scan.ranges.iter().filter(|range| range.dimension() == Some(rule.dimension));
        asked.next().filter(|_| asked.next().is_none())
    }

    /// A size in words stands for a condition, in the claim or in the question it answers ("for short flights").
    /// A size that a tier is named by is an outcome and no condition.
    fn has_size_word(&self, rule: &Rule) -> bool {
        let labels: Vec<String> = rule
            .tiers
            .iter()
            .filter_map(|tier| match &tier.outcome {
                Outcome::Label(label) => Some(label.to_lowercase()),
                Outcome::Quantity(_) => None,
            })
            .collect();
        let is_name = |word: &str| labels.iter().any(|label| label.split_whitespace().any(|part| part == word));
        [self.claim, self.question.text].iter().any(|text| {
            let words = words_of(text, 0..text.len());
            words.iter().any(|word| SIZE_WORDS.contains(&word.lower.as_str()) && !is_name(&word.lower))
        })
    }

    /// "not 250 EUR": the words just before deny the outcome.
    fn is_denied(&self, span: &Range<usize>) -> bool {
        let clause = self.claim[..span.start].rsplit(['.', ',', ';', '!', '?']).next().unwrap_or("");
        let words = words_of(clause, 0..clause.len());
        let near = &words[words.len().saturating_sub(5)..];
        near.iter().any(|word| {
            matches!(word.lower.as_str(), "not" | "never" | "cannot" | "nor" | "no" | "t" | "instead" | "rather")
        })
    }

    /// The outcome also stands in a sentence of the evidence that sets no condition and lists no tiers.
    fn is_stated_elsewhere(&self, rule: &Rule, tier: &Tier) -> bool {
        let Outcome::Quantity(outcome) = &tier.outcome else { return false };
        self.sources.iter().any(|source| {
            source.sentences.iter().any(|sentence| {
                let conditional =
                    source.scan.ranges_in(sentence).iter().any(|range| range.dimension() == Some(rule.dimension));
                let amounts = source.scan.quantities_in(sentence);
                let mentioned = rule
                    .tiers
                    .iter()
                    .filter(|tier| match &tier.outcome {
                        Outcome::Quantity(known) => amounts.iter().any(|amount| same(amount, known)),
                        Outcome::Label(_) => false,
                    })
                    .count();
                let in_rule =
                    source.rules.iter().any(|other| other.span.start < sentence.end && sentence.start < other.span.end);
                !conditional && !in_rule && mentioned == 1 && amounts.iter().any(|amount| same(amount, outcome))
            })
        })
    }

    /// The claim names a value of the evidence together with what it belongs to, and draws the right tier from it.
    fn is_named_with(&self, _rule: &Rule, tiers: &[&Tier], value: &Quantity) -> bool {
        if !tiers.iter().any(|tier| contains(&tier.range, value) == Some(true)) {
            return false;
        }
        if self.question.scan.quantities.iter().any(|asked| same(asked, value)) {
            return true;
        }
        let claimed = names_of(self.claim, 0..self.claim.len());
        let words = words_of(self.claim, 0..self.claim.len()).into_iter().map(|word| word.lower).collect();
        self.sources.iter().any(|source| {
            source.scan.quantities.iter().filter(|known| same(known, value)).any(|known| {
                let Some(scope) = source.scope_of(known) else { return false };
                let names = names_of(source.text, scope.own);
                !names.is_empty() && !claimed.is_empty() && names.iter().all(|name| mentions(&claimed, &words, name))
            })
        })
    }
}

fn contradiction(span: &Range<usize>, why: &str) -> Discrepancy {
    Discrepancy {
        kind: DiscrepancyKind::ContradictsComputed,
        span: span.clone(),
        message: format!("The outcome does not follow: {why}."),
    }
}

/// "up to 600 EUR" of a rule whose largest outcome is 600 EUR says something true of the whole rule.
fn is_extreme(rule: &Rule, quantity: &Quantity) -> bool {
    let values: Vec<f64> = rule
        .tiers
        .iter()
        .filter_map(|tier| match &tier.outcome {
            Outcome::Quantity(outcome) => outcome.base_value(),
            Outcome::Label(_) => None,
        })
        .collect();
    let Some(value) = quantity.base_value() else { return false };
    match quantity.bound {
        Bound::AtMost => values.iter().all(|other| *other <= value),
        Bound::AtLeast => values.iter().all(|other| *other >= value),
        _ => false,
    }
}

/// Whether the claim's condition lies within the tier: every end it states is an end of the tier or inside it.
fn meets(stated: &QuantityRange, tier: &QuantityRange) -> bool {
    let value = |quantity: &Quantity, like: &Quantity| {
        if quantity.unit.is_same(&like.unit) {
            quantity.number().map(|number| number.value)
        } else {
            convert(quantity, &like.unit).and_then(|converted| converted.number().map(|number| number.value))
        }
    };
    let not_below = match (&stated.low, &tier.low) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(stated), Some(limit)) => {
            matches!((value(&stated.quantity, &limit.quantity), limit.quantity.number()),
                (Some(found), Some(known)) if found >= known.value * (1.0 - 2e-3))
        }
    };
    let not_above = match (&stated.high, &tier.high) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(stated), Some(limit)) => {
            matches!((value(&stated.quantity, &limit.quantity), limit.quantity.number()),
                (Some(found), Some(known)) if found <= known.value * (1.0 + 2e-3))
        }
    };
    not_below && not_above
}
