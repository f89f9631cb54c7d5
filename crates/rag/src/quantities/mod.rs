//! Numbers, units, ranges, dates and money, found, compared and added by code.
//!
//! A small language model cannot be trusted to see that 5,931 km is more than 3,500 km. Here code reads the
//! quantities of a text ([`extract()`], [`ranges()`]), compares and adds them ([`compare`], [`contains`], [`add`]),
//! recognises rules with thresholds ([`tiers()`]), writes down what follows for a question as notes with sources
//! ([`notes()`]), says what is missing ([`undetermined`]) and checks the numbers of a claim ([`check_claim`]).
//!
//! Invariant: a note is right or absent. Whatever is ambiguous gives no note.

mod arithmetic;
mod asked;
mod bounds;
mod check;
mod comparatives;
mod comparisons;
mod dates;
mod event_dates;
mod events;
mod extract;
mod items;
mod marks;
mod model;
mod notes;
mod number_words;
mod numbers;
mod quotient;
mod relevance;
mod revisions;
mod scan_numbers;
mod scanner;
mod source;
mod special_cases;
mod spoken_labels;
mod subject;
mod tier_check;
mod tier_ranges;
mod tiers;
mod units;
mod words;

pub use arithmetic::{add, comparable, compare, contains, convert, same, subtract};
pub use check::{Discrepancy, DiscrepancyKind, check_claim};
pub use extract::{extract, ranges};
pub use model::{Bound, Date, Edge, Number, Quantity, QuantityRange, Value};
pub use notes::{Note, NoteKind, Undetermined, notes, undetermined};
pub use tiers::{Outcome, Rule, Tier, tiers};
pub use units::{Dimension, Unit};
pub(crate) use words::{is_stop_word, names};

#[cfg(test)]
mod check_tests;
#[cfg(test)]
mod extract_tests;
#[cfg(test)]
mod note_tests;
#[cfg(test)]
mod sample_tests;
#[cfg(test)]
mod tier_tests;
#[cfg(test)]
mod wording_tests;
