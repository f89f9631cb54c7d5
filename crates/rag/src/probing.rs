//! What a generator's states are where passages hold an answer, and where they don't: examples to fit a probe to.

use anchorite_core::{Budget, InferenceError, Passage};
use anchorite_graph::{CompileError, END, Graph, RunError, RunOptions, START};
use thiserror::Error;

use crate::Parts;
use crate::nodes;
use crate::prompts;
use crate::state::RagState;

/// A question, as the generator meets it in the first round of the loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Met {
    /// Sources of the passages that were found useful.
    pub sources: Vec<String>,
    /// The state of the generator's last token after each of the layers.
    pub states: Vec<Vec<f32>>,
}

/// Why a question could not be met.
#[derive(Debug, Error)]
pub enum MeetError {
    /// The graph is wired wrongly.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// Searching or grading failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The generator failed.
    #[error(transparent)]
    Inference(#[from] InferenceError),
}

/// Searches for `question`, keeps what is useful, and has the generator read it; nothing is written. `None` where the loop
/// would not ask the probe: nothing is useful, code computes the answer, or the generator has no such states.
///
/// # Errors
/// If a part fails or the budget is used up.
pub fn meet(parts: &Parts<'_>, question: &str, layers: &[usize], budget: &Budget) -> Result<Option<Met>, MeetError> {
    let Some(generator) = parts.generator else { return Ok(None) };
    let graph = Graph::builder("meet")
        .node("retrieve", move |state, context| nodes::retrieve(parts, state, context))
        .node("grade_documents", move |state, context| nodes::grade_documents(parts, state, context))
        .edge(START, "retrieve")
        .edge("retrieve", "grade_documents")
        .edge("grade_documents", END)
        .compile()?;
    let state = graph.run(RagState::new(question), RunOptions::new(budget))?.state;
    let useful: Vec<&Passage> = state.evidence();
    let (passages, computed) = nodes::readable(parts, question, &useful);
    if passages.is_empty() || !computed.is_empty() {
        return Ok(None);
    }
    let prompt = prompts::answer(question, &passages, &[], &[], &[], true);
    let states = generator.states(&prompt, layers, budget)?;
    let sources = passages.iter().map(|passage| passage.source.clone()).collect();
    Ok(states.map(|states| Met { sources, states }))
}
