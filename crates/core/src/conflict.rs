//! Documents that say different things of the same, and which of them an answer follows.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Citation;

/// Which of two documents that contradict each other is followed. Where a rule can't tell them apart, both are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConflictRule {
    /// Neither before the other: both are shown.
    #[default]
    Both,
    /// The one of the later day.
    Newest,
    /// The one that belongs to whoever asks; where the files' holder asks, the one that belongs to somebody.
    Owner,
}

impl ConflictRule {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Both, Self::Newest, Self::Owner];

    /// The name on the command line and in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Newest => "newest",
            Self::Owner => "owner",
        }
    }
}

impl fmt::Display for ConflictRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No such rule.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("there is no rule `{0}` for documents that contradict each other; there are both, newest and owner")]
pub struct UnknownRule(String);

impl FromStr for ConflictRule {
    type Err = UnknownRule;

    fn from_str(name: &str) -> Result<Self, UnknownRule> {
        Self::ALL.into_iter().find(|rule| rule.name() == name).ok_or_else(|| UnknownRule(name.to_owned()))
    }
}

/// One of two sentences that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictSide {
    /// The sentence.
    pub citation: Citation,
    /// The day its document is of, as `2024-05-01`; empty if unknown.
    pub dated: String,
    /// Whose the document is; empty if nobody's.
    pub owner: String,
}

/// Two documents that contradict each other in what was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// The rule in force.
    pub rule: ConflictRule,
    /// Whether the rule told them apart. If not, the answer is no more right than the other.
    pub decided: bool,
    /// What the answer follows.
    pub followed: ConflictSide,
    /// What it does not.
    pub other: ConflictSide,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_names() {
        for rule in ConflictRule::ALL {
            assert_eq!(rule.name().parse(), Ok(rule));
        }
        assert_eq!("oldest".parse::<ConflictRule>(), Err(UnknownRule("oldest".to_owned())));
    }
}
