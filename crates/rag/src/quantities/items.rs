//! The raw finds of one text, before ranges and compounds are joined.

use std::ops::Range;

use super::bounds::Prefix;
use super::model::{Bound, Date, Number};
use super::units::Unit;

/// A number or date with what stands directly around it.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) value: ItemValue,
    /// The unit written with it; none for a bare number.
    pub(super) unit: Option<Unit>,
    /// The word a bare number counts.
    pub(super) noun: Option<String>,
    /// Bytes of sign, currency, number and unit.
    pub(super) span: Range<usize>,
    /// The currency stands before the number.
    pub(super) currency_first: bool,
    /// Count of digits where it is written with digits only.
    pub(super) plain_digits: Option<usize>,
    /// The number reads as a year where nothing says otherwise.
    pub(super) is_year: bool,
    pub(super) magnitude: f64,
    pub(super) per: Option<String>,
    pub(super) prefix: Prefix,
    pub(super) suffix: Option<(Bound, usize)>,
    pub(super) compound: bool,
    /// A bare word such as "one": kept only as the end of a range ("one to two hours").
    pub(super) provisional: bool,
}

#[derive(Debug, Clone)]
pub(super) enum ItemValue {
    Number(Number),
    Date(Date),
}

impl Item {
    pub(super) fn number(&self) -> Option<&Number> {
        match &self.value {
            ItemValue::Number(number) => Some(number),
            ItemValue::Date(_) => None,
        }
    }

    pub(super) fn is_date(&self) -> bool {
        matches!(self.value, ItemValue::Date(_)) || self.is_year && self.unit.is_none()
    }

    /// The limit of the words before or after it.
    pub(super) fn bound(&self) -> Bound {
        self.prefix.bound.or(self.suffix.map(|suffix| suffix.0)).unwrap_or(Bound::Exact)
    }

    /// The byte after it and its limiting words.
    pub(super) fn phrase_end(&self) -> usize {
        self.suffix.map_or(self.span.end, |suffix| suffix.1)
    }

    /// A number without unit or noun.
    pub(super) fn is_bare(&self) -> bool {
        self.number().is_some() && self.unit.is_none() && self.noun.is_none()
    }
}
