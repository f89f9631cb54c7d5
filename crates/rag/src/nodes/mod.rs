//! The nodes of the graphs. Each reads the state, does one job with the parts, and returns what changes.

mod checking;
mod hops;
mod queries;
mod react;
mod retrieval;
mod writing;

use anchorite_core::Passage;
use anchorite_graph::NodeError;

use crate::Parts;
use crate::parts::fit;
use crate::quantities::{Note, notes};
use crate::settings::Piece;
use crate::state::RagUpdate;

pub(crate) use checking::grade_generation;
pub(crate) use hops::{finding, plan};
pub(crate) use queries::{hypothesis, lacking, transform_query};
pub(crate) use react::{act, finish, observe};
pub(crate) use retrieval::{grade_documents, keep_documents, retrieve};
pub(crate) use writing::{decide_retrieval, generate, reply};

type Update = Result<RagUpdate, NodeError>;

/// The passages that an answer is written from, as many as the generator can read, and what code computes from them.
#[must_use]
pub fn readable<'p>(parts: &Parts<'_>, question: &str, evidence: &[&'p Passage]) -> (Vec<&'p Passage>, Vec<Note>) {
    let passages = match parts.generator {
        Some(generator) => fit(evidence, context_room(parts), generator),
        None => evidence.to_vec(),
    };
    if !parts.settings.has(Piece::Notes) {
        return (passages, Vec::new());
    }
    let texts: Vec<String> = passages.iter().map(|passage| passage.full_text()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let computed = notes(question, &texts);
    (passages, computed)
}

/// Tokens left for passages once instructions, examples, question and reply have their place.
pub(crate) fn context_room(parts: &Parts<'_>) -> usize {
    parts.generator.map_or(0, |generator| generator.context_length().saturating_sub(parts.settings.answer_tokens + 900))
}
