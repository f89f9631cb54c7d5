//! What a run may spend, counted in one place.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The most a run may spend. `None` means without a cap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetLimits {
    /// Rounds of retrieval.
    pub rounds: Option<u64>,
    /// Nodes executed.
    pub steps: Option<u64>,
    /// Tokens read and written by the generator.
    pub tokens: Option<u64>,
    /// Wall-clock time.
    pub time: Option<Duration>,
}

impl Default for BudgetLimits {
    fn default() -> Self {
        Self { rounds: Some(4), steps: Some(40), tokens: Some(60_000), time: Some(Duration::from_secs(600)) }
    }
}

/// What ran out.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetExceeded {
    /// The rounds of retrieval are used up.
    #[error("the rounds allowed for this question are used up")]
    Rounds,
    /// The steps are used up.
    #[error("the steps allowed for this question are used up")]
    Steps,
    /// The tokens are used up.
    #[error("the tokens allowed for this question are used up")]
    Tokens,
    /// The time is over.
    #[error("the time allowed for this question is over")]
    Time,
    /// Somebody asked to stop.
    #[error("the run was cancelled")]
    Cancelled,
}

/// What was spent so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Rounds of retrieval.
    pub rounds: u64,
    /// Nodes executed.
    pub steps: u64,
    /// Tokens read by the generator (computed, not taken from a cache).
    pub tokens_read: u64,
    /// Tokens written by the generator.
    pub tokens_written: u64,
    /// Calls of the generator.
    pub generator_calls: u64,
}

#[derive(Debug)]
struct Shared {
    limits: BudgetLimits,
    started: Instant,
    cancelled: AtomicBool,
    rounds: AtomicU64,
    steps: AtomicU64,
    tokens_read: AtomicU64,
    tokens_written: AtomicU64,
    generator_calls: AtomicU64,
}

/// A running account. Clones share it, so that every part of a run spends from the same purse.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Shared>);

impl Budget {
    /// Opens an account; the clock starts now.
    #[must_use]
    pub fn new(limits: BudgetLimits) -> Self {
        Self(Arc::new(Shared {
            limits,
            started: Instant::now(),
            cancelled: AtomicBool::new(false),
            rounds: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            tokens_read: AtomicU64::new(0),
            tokens_written: AtomicU64::new(0),
            generator_calls: AtomicU64::new(0),
        }))
    }

    /// An account without caps, for single operations.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(BudgetLimits { rounds: None, steps: None, tokens: None, time: None })
    }

    /// The caps.
    #[must_use]
    pub fn limits(&self) -> &BudgetLimits {
        &self.0.limits
    }

    /// Fails if time, tokens or patience are used up. Long computations call it between pieces.
    ///
    /// # Errors
    /// The first cap that is reached.
    pub fn check(&self) -> Result<(), BudgetExceeded> {
        if self.0.cancelled.load(Ordering::Relaxed) {
            return Err(BudgetExceeded::Cancelled);
        }
        if self.0.limits.time.is_some_and(|time| self.elapsed() >= time) {
            return Err(BudgetExceeded::Time);
        }
        let tokens = self.0.tokens_read.load(Ordering::Relaxed) + self.0.tokens_written.load(Ordering::Relaxed);
        if self.0.limits.tokens.is_some_and(|cap| tokens >= cap) {
            return Err(BudgetExceeded::Tokens);
        }
        Ok(())
    }

    /// Spends one node.
    ///
    /// # Errors
    /// If no step is left, or [`Budget::check`] fails.
    pub fn spend_step(&self) -> Result<(), BudgetExceeded> {
        self.check()?;
        Self::take(&self.0.steps, self.0.limits.steps, BudgetExceeded::Steps)
    }

    /// Spends one round of retrieval.
    ///
    /// # Errors
    /// If no round is left.
    pub fn spend_round(&self) -> Result<(), BudgetExceeded> {
        Self::take(&self.0.rounds, self.0.limits.rounds, BudgetExceeded::Rounds)
    }

    /// True if another round of retrieval may begin.
    #[must_use]
    pub fn has_round(&self) -> bool {
        self.check().is_ok() && self.0.limits.rounds.is_none_or(|cap| self.0.rounds.load(Ordering::Relaxed) < cap)
    }

    /// Notes a call of the generator.
    pub fn note_call(&self) {
        self.0.generator_calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes tokens that the generator read.
    pub fn note_read(&self, tokens: usize) {
        self.0.tokens_read.fetch_add(tokens as u64, Ordering::Relaxed);
    }

    /// Notes tokens that the generator wrote.
    pub fn note_written(&self, tokens: usize) {
        self.0.tokens_written.fetch_add(tokens as u64, Ordering::Relaxed);
    }

    /// Makes the next [`Budget::check`] fail, from any thread.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Time since the account was opened.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.started.elapsed()
    }

    /// What was spent so far.
    #[must_use]
    pub fn spent(&self) -> Spent {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Spent {
            rounds: load(&self.0.rounds),
            steps: load(&self.0.steps),
            tokens_read: load(&self.0.tokens_read),
            tokens_written: load(&self.0.tokens_written),
            generator_calls: load(&self.0.generator_calls),
        }
    }

    fn take(counter: &AtomicU64, cap: Option<u64>, error: BudgetExceeded) -> Result<(), BudgetExceeded> {
        let before = counter.fetch_add(1, Ordering::Relaxed);
        if cap.is_some_and(|cap| before >= cap) {
            counter.fetch_sub(1, Ordering::Relaxed);
            return Err(error);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m18_each_cap_is_reached_exactly() {
        let budget = Budget::new(BudgetLimits { rounds: Some(2), steps: Some(1), tokens: Some(10), time: None });
        assert!(budget.has_round());
        assert_eq!(budget.spend_round(), Ok(()));
        assert_eq!(budget.spend_round(), Ok(()));
        assert_eq!(budget.spend_round(), Err(BudgetExceeded::Rounds));
        assert!(!budget.has_round());
        assert_eq!(budget.spend_step(), Ok(()));
        assert_eq!(budget.spend_step(), Err(BudgetExceeded::Steps));
        budget.note_read(6);
        assert_eq!(budget.check(), Ok(()));
        budget.note_written(4);
        assert_eq!(budget.check(), Err(BudgetExceeded::Tokens));
        assert_eq!(budget.spent().rounds, 2);
    }

    #[test]
    fn m18_time_and_cancellation_stop_a_run() {
        let budget = Budget::new(BudgetLimits { time: Some(Duration::ZERO), ..BudgetLimits::default() });
        assert_eq!(budget.check(), Err(BudgetExceeded::Time));
        let budget = Budget::unlimited();
        let same_purse = budget.clone();
        same_purse.cancel();
        assert_eq!(budget.check(), Err(BudgetExceeded::Cancelled));
    }
}
