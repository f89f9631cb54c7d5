//! Graders: encoders and code first, the generator's yes/no logits where they see what encoders don't. Each gives a
//! probability.

mod claims;
mod contradictions;
mod held;
mod relevance;
mod support;
mod usefulness;

pub(crate) use claims::comes_to;
pub use claims::{Grounding, Signals, ground};
pub(crate) use contradictions::{Contradiction, contradiction};
pub use held::Probe;
pub use relevance::{RelevanceScale, relevance};
pub use support::support;
pub use usefulness::usefulness;

/// The logistic function: log-odds to a probability.
pub(crate) fn sigmoid(log_odds: f32) -> f32 {
    1.0 / (1.0 + (-log_odds).exp())
}

/// Log-odds of a probability, bounded so that no single grader decides alone.
pub(crate) fn log_odds(probability: f32) -> f32 {
    let p = probability.clamp(0.02, 0.98);
    (p / (1.0 - p)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m20_log_odds_and_sigmoid_are_inverse() {
        for p in [0.05, 0.3, 0.5, 0.9] {
            assert!((sigmoid(log_odds(p)) - p).abs() < 1e-6);
        }
        assert!(log_odds(0.0).is_finite() && log_odds(1.0).is_finite());
    }
}
