//! Measuring: test collections read, rankings and answers scored, tables written.
//!
//! Architecture invariants: nothing here knows a model, a store or the loop, only values; every figure is a function of
//! its inputs and a fixed seed, so that the same run gives the same table.

mod answers;
mod attacks;
mod bootstrap;
mod calibration;
mod collection;
mod error;
mod ledger;
mod logistic;
mod metrics;
mod pairs;
mod run;
mod table;

pub use answers::{contains_answer, contains_parts, normalised, token_f1};
pub use attacks::{Attack, AttackDocument, read_attacks};
pub use bootstrap::{Interval, mean_with_interval};
pub use calibration::{Bin, Calibration, auroc, calibration};
pub use collection::{Collection, Query, Record, collections, sampled};
pub use error::EvalError;
pub use ledger::Ledger;
pub use logistic::{Logistic, cross_validated};
pub use metrics::{Grades, RetrievalScores, ndcg, recall, reciprocal_rank};
pub use pairs::{Pair, pair_sets, read_pairs};
pub use run::{Ranked, Run};
pub use table::Table;
