//! Nodes: what they are given, and how they fail.

use std::cell::RefCell;
use std::error::Error;

use anchorite_core::{Budget, BudgetExceeded, InferenceError, RetrieveError};
use thiserror::Error;

use crate::State;

/// One step of a graph. Closures of the same shape are nodes.
pub trait Node<S: State>: Send + Sync {
    /// Reads the state and returns what to change.
    ///
    /// # Errors
    /// [`NodeError::Budget`] ends the run as stopped, with the state so far; any other error ends it as failed.
    fn run(&self, state: &S, context: &NodeContext<'_>) -> Result<S::Update, NodeError>;
}

impl<S, F> Node<S> for F
where
    S: State,
    F: Fn(&S, &NodeContext<'_>) -> Result<S::Update, NodeError> + Send + Sync,
{
    fn run(&self, state: &S, context: &NodeContext<'_>) -> Result<S::Update, NodeError> {
        self(state, context)
    }
}

/// What a node is given besides the state. It stays on the thread that runs the graph; work on other threads takes a
/// clone of the budget.
pub struct NodeContext<'c> {
    node: &'c str,
    step: u64,
    budget: &'c Budget,
    note: RefCell<String>,
    progress: RefCell<&'c mut dyn FnMut(&str)>,
}

impl<'c> NodeContext<'c> {
    /// A context outside a run, for trying a node alone. `progress` gets what the node reports while it works.
    pub fn new(node: &'c str, step: u64, budget: &'c Budget, progress: &'c mut dyn FnMut(&str)) -> Self {
        Self { node, step, budget, note: RefCell::default(), progress: RefCell::new(progress) }
    }

    /// The name under which the node is in the graph.
    #[must_use]
    pub fn node(&self) -> &str {
        self.node
    }

    /// Which step of the run this is, from 1.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The run's account. The step itself is already paid.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        self.budget
    }

    /// Adds a line for people to the step's record. Several are joined by "; ".
    pub fn note(&self, line: &str) {
        let mut note = self.note.borrow_mut();
        if !note.is_empty() && !line.is_empty() {
            note.push_str("; ");
        }
        note.push_str(line);
    }

    /// Reports a piece of work at once: a token, a count.
    pub fn progress(&self, text: &str) {
        (self.progress.borrow_mut())(text);
    }

    /// The lines noted so far.
    #[must_use]
    pub fn noted(&self) -> String {
        self.note.borrow().clone()
    }
}

/// Why a node gave no update.
#[derive(Debug, Error)]
pub enum NodeError {
    /// A cap was reached: the run stops, and keeps its state.
    #[error(transparent)]
    Budget(BudgetExceeded),
    /// Anything else.
    #[error(transparent)]
    Failed(Box<dyn Error + Send + Sync>),
}

impl NodeError {
    /// Wraps any error; a cap that was reached should come through [`NodeError::from`] instead.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }
}

impl From<BudgetExceeded> for NodeError {
    fn from(error: BudgetExceeded) -> Self {
        Self::Budget(error)
    }
}

// `core`'s errors may carry a cap that was reached. These two conversions keep it a cap, so that `?` in a node does the
// right thing; the graph knows nothing else about models or retrieval.
impl From<InferenceError> for NodeError {
    fn from(error: InferenceError) -> Self {
        match error {
            InferenceError::Budget(exceeded) => Self::Budget(exceeded),
            other => Self::failed(other),
        }
    }
}

impl From<RetrieveError> for NodeError {
    fn from(error: RetrieveError) -> Self {
        match error {
            RetrieveError::Inference(inference) => inference.into(),
            other => Self::failed(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m18_a_cap_inside_another_error_stays_a_cap() {
        let error = NodeError::from(RetrieveError::from(InferenceError::from(BudgetExceeded::Time)));
        assert!(matches!(error, NodeError::Budget(BudgetExceeded::Time)));
        let error = NodeError::from(RetrieveError::EmptyQuery);
        assert!(matches!(error, NodeError::Failed(_)));
        assert_eq!(error.to_string(), RetrieveError::EmptyQuery.to_string());
    }

    #[test]
    fn m09_notes_are_joined_and_progress_is_passed_on() {
        let budget = Budget::unlimited();
        let mut pieces = Vec::new();
        let mut progress = |text: &str| pieces.push(text.to_owned());
        let context = NodeContext::new("write", 3, &budget, &mut progress);
        context.note("kept 2 of 4");
        context.note("");
        context.note("1 is new");
        context.progress("Yes");
        context.progress(".");
        assert_eq!((context.node(), context.step()), ("write", 3));
        assert_eq!(context.noted(), "kept 2 of 4; 1 is new");
        assert_eq!(pieces, ["Yes", "."]);
    }
}
