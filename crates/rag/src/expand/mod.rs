//! Asking more than was asked, so that what the documents say in other words is found too.
//!
//! Every way is a strategy of its own that can be switched on alone: by rules without a generator, or by what the generator
//! writes. Nothing written here is ever evidence; it only decides what is looked for.

mod merge;
mod rules;
mod written;

use std::fmt;
use std::str::FromStr;

use anchorite_core::{Budget, InferenceError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Parts;
use crate::words::normal_form;

pub use merge::{Found, merge};

/// A way to ask more than was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expansion {
    /// By code: the question as a statement, as bare words, and once for each thing it names.
    Rules,
    /// The question in other words (generator).
    Paraphrase,
    /// The broader question behind it (generator; Zheng et al. 2024, "Take a step back").
    StepBack,
    /// The questions it is made of (generator; Press et al. 2023, "Measuring and narrowing the compositionality gap").
    Decompose,
    /// A passage that might answer it, to be searched for by meaning (generator; Gao et al. 2023, "Precise zero-shot dense
    /// retrieval without relevance labels").
    Hyde,
}

/// No such way to expand.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("there is no way to expand a query named {0:?}; there are rules, paraphrase, step-back, decompose and hyde")]
pub struct UnknownExpansion(String);

impl Expansion {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Rules, Self::Paraphrase, Self::StepBack, Self::Decompose, Self::Hyde];

    /// The name on the command line and in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Paraphrase => "paraphrase",
            Self::StepBack => "step-back",
            Self::Decompose => "decompose",
            Self::Hyde => "hyde",
        }
    }

    /// False for what code does alone.
    #[must_use]
    pub fn needs_generator(self) -> bool {
        self != Self::Rules
    }
}

impl fmt::Display for Expansion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Expansion {
    type Err = UnknownExpansion;

    fn from_str(name: &str) -> Result<Self, UnknownExpansion> {
        Self::ALL.into_iter().find(|way| way.name() == name).ok_or_else(|| UnknownExpansion(name.to_owned()))
    }
}

/// A query made from another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// The query.
    pub text: String,
    /// What made it.
    pub by: Expansion,
}

/// What to look for beside the query itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expanded {
    /// Further queries, each new.
    pub queries: Vec<Variant>,
    /// Passages as an answer might stand in. They are embedded and never shown.
    pub hypothetical: Vec<String>,
}

/// Least cosine similarity to the query that a further query must have: below, it has drifted to something else.
const DRIFT: f32 = 0.35;

/// Expands `query` in each of the given ways; those that need a generator are left out where there is none. A query that
/// was asked in other order or with other small words is not asked again, and one that has drifted away is dropped.
///
/// # Errors
/// If a model fails or the budget is used up.
pub fn expand(parts: &Parts<'_>, query: &str, ways: &[Expansion], budget: &Budget) -> Result<Expanded, InferenceError> {
    let mut expanded = Expanded::default();
    let mut candidates: Vec<Variant> = Vec::new();
    for &by in ways {
        let texts = match (by, parts.generator) {
            (Expansion::Rules, _) => rules::variants(query),
            (_, None) => Vec::new(),
            (Expansion::Hyde, Some(generator)) => {
                expanded.hypothetical = written::passages(generator, query, parts.settings.hypothetical, budget)?;
                Vec::new()
            }
            (Expansion::Paraphrase, Some(generator)) => written::paraphrases(generator, query, budget)?,
            (Expansion::StepBack, Some(generator)) => written::broader(generator, query, budget)?,
            (Expansion::Decompose, Some(generator)) => written::sub_questions(generator, query, budget)?,
        };
        candidates.extend(texts.into_iter().map(|text| Variant { text, by }));
    }
    let texts: Vec<&str> = candidates.iter().map(|variant| variant.text.as_str()).collect();
    let near = parts.similarities(query, &texts)?;
    let mut asked = vec![normal_form(query)];
    for (index, variant) in candidates.into_iter().enumerate() {
        let form = normal_form(&variant.text);
        // Rules only take away or turn around; what was written may have become another question.
        let drifted = variant.by.needs_generator() && near.as_ref().is_some_and(|near| near[index] < DRIFT);
        let same = variant.by.needs_generator() && asked.contains(&form);
        if form.is_empty() || drifted || same || variant.text.trim() == query.trim() {
            continue;
        }
        asked.push(form);
        expanded.queries.push(variant);
    }
    Ok(expanded)
}
