//! What a run tells while it goes on.

use std::time::Duration;

use anchorite_core::BudgetExceeded;
use serde::Serialize;

use crate::{State, ThreadId};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It reached the end.
    Finished,
    /// A cap was reached; the state is what was known then.
    Stopped(BudgetExceeded),
}

impl Outcome {
    /// The cap that was reached, if one was.
    #[must_use]
    pub fn stopped_by(self) -> Option<BudgetExceeded> {
        match self {
            Self::Finished => None,
            Self::Stopped(exceeded) => Some(exceeded),
        }
    }
}

/// Something that happened in a run, told when it happens. As JSON it has no `state`, which may be large.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case", bound = "")]
pub enum Event<'e, S: State> {
    /// The run begins, or goes on after a checkpoint.
    RunStarted {
        /// Name of the graph.
        graph: &'e str,
        /// The thread that keeps its checkpoints.
        thread: Option<&'e ThreadId>,
        /// Steps done before, if it goes on.
        resumed_after: Option<u64>,
        /// The node that comes first.
        next: &'e str,
    },
    /// A node begins.
    NodeStarted {
        /// Which step, from 1.
        step: u64,
        /// The node.
        node: &'e str,
    },
    /// A node reports a piece of its work.
    Progress {
        /// Which step.
        step: u64,
        /// The node.
        node: &'e str,
        /// The piece: a token, a count.
        text: &'e str,
    },
    /// A node gave its update, which is in the state now.
    NodeFinished {
        /// Which step.
        step: u64,
        /// The node.
        node: &'e str,
        /// What it changed.
        update: &'e S::Update,
        /// The state with the update.
        #[serde(skip)]
        state: &'e S,
        /// The label of the way on, if there were several.
        decision: Option<&'e str>,
        /// The node that comes next, or [`END`](crate::END).
        next: &'e str,
        /// Its line for people.
        note: &'e str,
        /// How long it took.
        elapsed: Duration,
    },
    /// A node failed, or ran into a cap.
    NodeFailed {
        /// Which step.
        step: u64,
        /// The node.
        node: &'e str,
        /// Its error, in words.
        error: String,
    },
    /// The run is over. After an error this event does not come.
    RunFinished {
        /// How it ended.
        outcome: Outcome,
        /// Steps of the whole run, those before a checkpoint included.
        steps: u64,
    },
}
