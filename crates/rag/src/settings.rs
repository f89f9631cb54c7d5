//! The few numbers that can be turned, with the defaults measured on the sample questions, and what can be left out.

use std::path::PathBuf;
use std::str::FromStr;

use anchorite_core::ConflictRule;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::grade::{RelevanceScale, log_odds, sigmoid};

/// A part of the loop that can be left out, to see what it is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Piece {
    /// The cross-encoder's reading of what was found.
    Rerank,
    /// Looking at what the best passages name by title.
    Links,
    /// Grading of passages: all that is found is kept.
    Grades,
    /// Notes that code computes.
    Notes,
    /// The hypothesis of what is missing: new queries come from the question alone.
    Hypothesis,
    /// The reading of the generator's state, whether the passages hold the answer: the generator may refuse instead.
    Held,
    /// The check whether claims are borne out: they all count as such.
    Support,
    /// The check whether the question is answered: whatever is no refusal counts as such.
    Usefulness,
    /// The silencing of passages that speak to their reader, and the sentence that contradicts an answer: passages are
    /// believed as they stand.
    Distrust,
}

/// No such part.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "there is no part named {0:?}; there are rerank, links, grades, notes, hypothesis, held, support, usefulness and distrust"
)]
pub struct UnknownPiece(String);

impl Piece {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Rerank,
        Self::Links,
        Self::Grades,
        Self::Notes,
        Self::Hypothesis,
        Self::Held,
        Self::Support,
        Self::Usefulness,
        Self::Distrust,
    ];

    /// The name on the command line and in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rerank => "rerank",
            Self::Links => "links",
            Self::Grades => "grades",
            Self::Notes => "notes",
            Self::Hypothesis => "hypothesis",
            Self::Held => "held",
            Self::Support => "support",
            Self::Usefulness => "usefulness",
            Self::Distrust => "distrust",
        }
    }
}

impl FromStr for Piece {
    type Err = UnknownPiece;

    fn from_str(name: &str) -> Result<Self, UnknownPiece> {
        Self::ALL.into_iter().find(|piece| piece.name() == name).ok_or_else(|| UnknownPiece(name.to_owned()))
    }
}

/// What the generator's "yes" to a question of judgement is worth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpinionScale {
    /// Multiplies the log-odds; 0 leaves the opinion out.
    pub slope: f32,
    /// Is added to them.
    pub offset: f32,
}

impl Default for OpinionScale {
    fn default() -> Self {
        Self { slope: 1.0, offset: 0.0 }
    }
}

impl OpinionScale {
    /// The probability that `said` stands for; `None` if it is worth nothing.
    #[must_use]
    pub fn weigh(self, said: f32) -> Option<f32> {
        (self.slope > 0.0).then(|| sigmoid(self.slope * log_odds(said) + self.offset))
    }
}

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
    /// Least probability that the passages hold the answer, by the generator's state, for one to be written.
    pub held: f32,
    /// Least probability of support for a claim to count as supported; below half of it a claim is not supported at all.
    pub support: f32,
    /// Least probability that an answer answers the question.
    pub usefulness: f32,
    /// Passages that HyDE has written and takes the mean of.
    pub hypothetical: usize,
    /// Most steps that a question is taken apart into (multi-hop).
    pub hops: usize,
    /// Most lines of thought and observation of an agent (react).
    pub agent_steps: usize,
    /// Most new queries of a round.
    pub new_queries: usize,
    /// Times an unsupported answer is written again before new queries are asked (classic graph).
    pub rewrites: usize,
    /// Most tokens of an answer.
    pub answer_tokens: usize,
    /// Most tokens that the judge of support reads anew: the sentences nearest to the answer. Without a limit it reads what
    /// the answer was written from, which the generator remembers.
    pub judge_tokens: Option<usize>,
    /// What the cross-encoder's logit is worth (`anchorite eval relevance`); `None` takes what is known of the model.
    pub relevance_scale: Option<RelevanceScale>,
    /// What the generator's judgement is worth; `None` takes what is known of the model.
    pub opinion: Option<OpinionScale>,
    /// File of a probe for the generator in use (`anchorite eval held --fit`); `None` takes what is known of the model.
    pub probe: Option<PathBuf>,
    /// Which of two documents that contradict each other an answer follows.
    pub conflicts: ConflictRule,
    /// What is left out.
    pub without: Vec<Piece>,
}

impl Settings {
    /// True unless `piece` is left out.
    #[must_use]
    pub fn has(&self, piece: Piece) -> bool {
        !self.without.contains(&piece)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            passages: 5,
            useful_passages: 10,
            relevance: 0.1,
            held: 0.25,
            support: 0.5,
            usefulness: 0.3,
            hypothetical: 1,
            hops: 4,
            agent_steps: 12,
            new_queries: 4,
            rewrites: 1,
            answer_tokens: 200,
            judge_tokens: None,
            relevance_scale: None,
            opinion: None,
            probe: None,
            conflicts: ConflictRule::Both,
            without: Vec::new(),
        }
    }
}
