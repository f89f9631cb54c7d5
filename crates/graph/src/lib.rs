//! A typed state graph: nodes, edges, reducers, checkpoints, events, drawing.
//!
//! Nodes read a [`State`] and return updates; each field's [`Reducer`] joins the update to what is there. Edges and
//! branches say what comes next. [`GraphBuilder::compile`] checks the wiring, [`Graph::run`] walks it within a budget.
//!
//! Architecture invariant: this crate knows nothing of retrieval or models; all it takes from `core` is the budget, the
//! record of a step, and the errors that may carry a cap that was reached.
//!
//! ```
//! use anchorite_core::{Budget, BudgetLimits};
//! use anchorite_graph::{Append, END, Graph, Guard, Outcome, RunOptions, START, state};
//!
//! state! {
//!     /// What the count knows.
//!     pub struct Count updated by
//!     /// What a node adds to it.
//!     CountUpdate {
//!         /// The numbers so far.
//!         numbers: Append<usize>,
//!     }
//! }
//!
//! let graph = Graph::builder("count")
//!     .node("add", |count: &Count, _context| Ok(CountUpdate { numbers: vec![count.numbers.len()] }))
//!     .edge(START, "add")
//!     .branch("add", |count, _budget| if count.numbers.len() < 3 { "more" } else { "enough" }, &[
//!         ("more", "add"),
//!         ("enough", END),
//!     ])
//!     .guard("add", Guard::Budget)
//!     .compile()?;
//! let run = graph.run(Count::default(), RunOptions::new(&Budget::new(BudgetLimits::default())))?;
//! assert_eq!(run.outcome, Outcome::Finished);
//! assert_eq!(*run.state.numbers, [0, 1, 2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod checkpoint;
mod compile;
mod draw;
mod event;
mod folder;
mod graph;
mod node;
mod run;
mod state;

pub use checkpoint::{Checkpoint, CheckpointError, Checkpointer, MemoryCheckpointer, ThreadId, ThreadIdError};
pub use compile::CompileError;
pub use event::{Event, Outcome};
pub use folder::FolderCheckpointer;
pub use graph::{END, Graph, GraphBuilder, Guard, START};
pub use node::{Node, NodeContext, NodeError};
pub use run::{Run, RunError, RunOptions, Snapshot};
pub use state::{Append, AppendBatch, Fixed, Overwrite, Reducer, State, Unchanged};
