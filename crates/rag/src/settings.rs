//! The few numbers that can be turned, with the defaults measured on the sample questions.

use serde::{Deserialize, Serialize};

/// Settings of the loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Passages taken per query.
    pub passages: usize,
    /// Most useful passages kept for one question.
    pub useful_passages: usize,
    /// Least probability of relevance for a passage to be kept.
    pub relevance: f32,
    /// Least probability of support for a claim to count as supported; below half of it a claim is not supported at all.
    pub support: f32,
    /// Least probability that an answer answers the question.
    pub usefulness: f32,
    /// Most new queries of a round.
    pub new_queries: usize,
    /// Times an unsupported answer is written again before new queries are asked (classic graph).
    pub rewrites: usize,
    /// Most tokens of an answer.
    pub answer_tokens: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            passages: 5,
            useful_passages: 10,
            relevance: 0.12,
            support: 0.6,
            usefulness: 0.5,
            new_queries: 4,
            rewrites: 1,
            answer_tokens: 200,
        }
    }
}
