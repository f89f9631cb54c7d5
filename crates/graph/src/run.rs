//! Running a graph.
//!
//! Invariants: each node costs one step of the budget, paid before it runs; a cap that is reached ends the run with the
//! state so far; after each node the state, the decision and the next node are kept before the next node begins.

use std::time::Instant;

use anchorite_core::{Budget, BudgetExceeded, StepRecord};
use thiserror::Error;

use crate::graph::{Exit, Target};
use crate::{
    Checkpoint, CheckpointError, Checkpointer, Event, Graph, NodeContext, NodeError, Outcome, START, State, ThreadId,
};

/// Is told what happens in a run.
type Listener<'r, S> = dyn FnMut(&Event<'_, S>) + 'r;

/// What a run goes with: its budget, and where its checkpoints and events go.
pub struct RunOptions<'r, S: State> {
    budget: Budget,
    keep: Option<(&'r dyn Checkpointer, ThreadId)>,
    on_event: Option<&'r mut Listener<'r, S>>,
}

impl<'r, S: State> RunOptions<'r, S> {
    /// Spends from `budget`; keeps and tells nothing.
    #[must_use]
    pub fn new(budget: &Budget) -> Self {
        Self { budget: budget.clone(), keep: None, on_event: None }
    }

    /// Keeps a checkpoint after each node, in `thread`.
    #[must_use]
    pub fn checkpoints(mut self, checkpointer: &'r dyn Checkpointer, thread: &ThreadId) -> Self {
        self.keep = Some((checkpointer, thread.clone()));
        self
    }

    /// Tells `on_event` what happens.
    #[must_use]
    pub fn on_event(mut self, on_event: &'r mut dyn FnMut(&Event<'_, S>)) -> Self {
        self.on_event = Some(on_event);
        self
    }

    fn tell(&mut self, event: &Event<'_, S>) {
        if let Some(on_event) = &mut self.on_event {
            on_event(event);
        }
    }
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Run<S> {
    /// What it knew at the end.
    pub state: S,
    /// How it ended.
    pub outcome: Outcome,
    /// The node that would have come next; [`END`](crate::END) if it finished.
    pub next: String,
    /// The nodes that ran, in order, those before a resumption included.
    pub path: Vec<StepRecord>,
}

impl<S> Run<S> {
    /// The path as text, one numbered line a step.
    #[must_use]
    pub fn trace(&self) -> String {
        crate::draw::trace(&self.path)
    }

    /// The path as a Mermaid flowchart.
    #[must_use]
    pub fn mermaid(&self) -> String {
        crate::draw::path_mermaid(&self.path, &self.next)
    }
}

/// A checkpoint with its state read back.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot<S> {
    /// The state.
    pub state: S,
    /// Everything else that was kept.
    pub checkpoint: Checkpoint,
}

/// Why a run failed. Reaching a cap is no failure.
#[derive(Debug, Error)]
pub enum RunError {
    /// A node failed. The state before it is the thread's latest checkpoint; `resume` tries the node again.
    #[error("step {step}, {node}: {source}")]
    Node {
        /// The node.
        node: String,
        /// Which step.
        step: u64,
        /// Its error.
        source: NodeError,
    },
    /// A branch chose a label that it does not declare.
    #[error("the branch after {node:?} chose {label:?}, which is none of its labels ({}); correct the graph", .declared.join(", "))]
    UndeclaredLabel {
        /// The node before the branch.
        node: String,
        /// What was chosen.
        label: String,
        /// The labels it declares.
        declared: Vec<String>,
    },
    /// A cycle that counts on the budget, and a budget that caps neither steps nor time.
    #[error("only the budget ends the cycle {}, and this budget caps neither steps nor time; set one", .cycle.join(" -> "))]
    Uncapped {
        /// The nodes, the first one again at the end.
        cycle: Vec<String>,
    },
    /// A checkpoint could not be kept or read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// There is nothing to go on from.
    #[error("nothing is kept under the thread {thread}; start a run with it first")]
    NothingToResume {
        /// The thread.
        thread: String,
    },
    /// The run's options name no thread to go on with.
    #[error("resuming needs a checkpointer and a thread; give both")]
    NoThread,
    /// The checkpoint is of another graph, or of an older shape of this one.
    #[error(
        "the thread {thread} was kept by the graph {graph:?} before its node {next:?}, which this graph does not have; use the same graph or another thread"
    )]
    OtherGraph {
        /// The thread.
        thread: String,
        /// The graph that kept it.
        graph: String,
        /// The node that was to come next.
        next: String,
    },
    /// The state can't be written as JSON.
    #[error("the state can't be kept: {source}; every field must have a form in JSON")]
    Write {
        /// What serde said.
        source: serde_json::Error,
    },
    /// The state can't be read back.
    #[error(
        "checkpoint {sequence} of the thread {thread} does not hold this graph's state: {source}; use another thread"
    )]
    Read {
        /// The thread.
        thread: String,
        /// Which checkpoint.
        sequence: u64,
        /// What serde said.
        source: serde_json::Error,
    },
}

/// Where a run stands between two nodes.
struct Position<S> {
    state: S,
    next: Target,
    step: u64,
    path: Vec<StepRecord>,
    /// Of the next checkpoint.
    sequence: u64,
    run: u64,
}

impl<S: State> Graph<'_, S> {
    /// Runs from the start. In a thread that has checkpoints already, the new ones count on.
    ///
    /// # Errors
    /// [`RunError`] if a node, a branch or the checkpointer fails; never because a cap was reached.
    pub fn run(&self, state: S, mut options: RunOptions<'_, S>) -> Result<Run<S>, RunError> {
        self.check_budget(&options.budget)?;
        let sequence = match &options.keep {
            Some((checkpointer, thread)) => checkpointer.latest(thread)?.map_or(0, |latest| latest.sequence + 1),
            None => 0,
        };
        let mut position =
            Position { state, next: Target::Node(self.entry), step: 0, path: Vec::new(), sequence, run: sequence };
        let beginning = StepRecord { node: START.to_owned(), decision: None, note: String::new(), seconds: 0.0 };
        self.keep(&mut position, &beginning, &options)?;
        self.drive(position, &mut options, None)
    }

    /// Goes on after the last node that finished in the thread of `options`, with the state as it was kept. The budget is
    /// the one given now. A run that had reached its end is given back as it was.
    ///
    /// # Errors
    /// As [`Graph::run`]; also if nothing is kept, or the checkpoint does not fit this graph.
    pub fn resume(&self, mut options: RunOptions<'_, S>) -> Result<Run<S>, RunError> {
        self.check_budget(&options.budget)?;
        let (checkpointer, thread) = options.keep.as_ref().ok_or(RunError::NoThread)?;
        let mut history = checkpointer.history(thread)?;
        let Some(last) = history.pop() else {
            return Err(RunError::NothingToResume { thread: thread.to_string() });
        };
        let next = self.target_named(&last.next).filter(|_| last.graph == self.name).ok_or_else(|| {
            RunError::OtherGraph { thread: thread.to_string(), graph: last.graph.clone(), next: last.next.clone() }
        })?;
        let Snapshot { state, checkpoint: last } = snapshot(thread, last)?;
        let (step, sequence, run) = (last.step, last.sequence + 1, last.run);
        history.push(last);
        let path = history
            .into_iter()
            .filter(|checkpoint| checkpoint.run == run && checkpoint.step > 0)
            .map(|checkpoint| checkpoint.record)
            .collect();
        self.drive(Position { state, next, step, path, sequence, run }, &mut options, Some(step))
    }

    /// The latest state of a thread.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn state(&self, checkpointer: &dyn Checkpointer, thread: &ThreadId) -> Result<Option<Snapshot<S>>, RunError> {
        checkpointer.latest(thread)?.map(|checkpoint| snapshot(thread, checkpoint)).transpose()
    }

    /// Every state of a thread, oldest first.
    ///
    /// # Errors
    /// If one can't be read.
    pub fn history(&self, checkpointer: &dyn Checkpointer, thread: &ThreadId) -> Result<Vec<Snapshot<S>>, RunError> {
        checkpointer.history(thread)?.into_iter().map(|checkpoint| snapshot(thread, checkpoint)).collect()
    }

    fn check_budget(&self, budget: &Budget) -> Result<(), RunError> {
        match &self.budgeted_cycle {
            Some(cycle) if budget.limits().steps.is_none() && budget.limits().time.is_none() => {
                Err(RunError::Uncapped { cycle: cycle.clone() })
            }
            _ => Ok(()),
        }
    }

    fn drive(
        &self,
        mut position: Position<S>,
        options: &mut RunOptions<'_, S>,
        resumed_after: Option<u64>,
    ) -> Result<Run<S>, RunError> {
        let thread = options.keep.as_ref().map(|(_, thread)| thread.clone());
        let next = self.name_of(position.next);
        options.tell(&Event::RunStarted { graph: &self.name, thread: thread.as_ref(), resumed_after, next });
        let mut outcome = Outcome::Finished;
        while let Target::Node(index) = position.next {
            if let Err(exceeded) = self.step(index, &mut position, options)? {
                outcome = Outcome::Stopped(exceeded);
                break;
            }
        }
        options.tell(&Event::RunFinished { outcome, steps: position.step });
        tracing::debug!(graph = self.name, steps = position.step, ?outcome, "run finished");
        let next = self.name_of(position.next).to_owned();
        Ok(Run { state: position.state, outcome, next, path: position.path })
    }

    /// Runs one node and moves on. The inner error is a cap that was reached; then nothing has changed.
    fn step(
        &self,
        index: usize,
        position: &mut Position<S>,
        options: &mut RunOptions<'_, S>,
    ) -> Result<Result<(), BudgetExceeded>, RunError> {
        let budget = options.budget.clone();
        if let Err(exceeded) = budget.spend_step() {
            return Ok(Err(exceeded));
        }
        let compiled = &self.nodes[index];
        let (node, step) = (compiled.name.as_str(), position.step + 1);
        options.tell(&Event::NodeStarted { step, node });

        let started = Instant::now();
        let mut progress = |text: &str| options.tell(&Event::Progress { step, node, text });
        let context = NodeContext::new(node, step, &budget, &mut progress);
        let result = compiled.node.run(&position.state, &context);
        let (elapsed, note) = (started.elapsed(), context.noted());
        drop(context);
        let update = match result {
            Ok(update) => update,
            Err(error) => {
                options.tell(&Event::NodeFailed { step, node, error: error.to_string() });
                return match error {
                    NodeError::Budget(exceeded) => Ok(Err(exceeded)),
                    source => Err(RunError::Node { node: node.to_owned(), step, source }),
                };
            }
        };

        let told = options.on_event.is_some().then(|| update.clone());
        position.state.apply(update);
        let (decision, next) = self.decide(index, &position.state, &budget)?;
        position.next = next;
        position.step = step;
        let record = StepRecord {
            node: node.to_owned(),
            decision: decision.map(str::to_owned),
            note,
            seconds: elapsed.as_secs_f64(),
        };
        self.keep(position, &record, options)?;
        tracing::debug!(graph = self.name, step, node, decision, ?elapsed, "node finished");
        if let Some(update) = &told {
            options.tell(&Event::NodeFinished {
                step,
                node,
                update,
                state: &position.state,
                decision,
                next: self.name_of(next),
                note: &record.note,
                elapsed,
            });
        }
        position.path.push(record);
        Ok(Ok(()))
    }

    fn decide(&self, index: usize, state: &S, budget: &Budget) -> Result<(Option<&'static str>, Target), RunError> {
        match &self.nodes[index].exit {
            Exit::Edge(target) => Ok((None, *target)),
            Exit::Branch { decide, targets } => {
                let label = decide(state, budget);
                match targets.iter().find(|(declared, _)| *declared == label) {
                    Some((_, target)) => Ok((Some(label), *target)),
                    None => Err(RunError::UndeclaredLabel {
                        node: self.nodes[index].name.clone(),
                        label: label.to_owned(),
                        declared: targets.iter().map(|(declared, _)| (*declared).to_owned()).collect(),
                    }),
                }
            }
        }
    }

    fn keep(
        &self,
        position: &mut Position<S>,
        record: &StepRecord,
        options: &RunOptions<'_, S>,
    ) -> Result<(), RunError> {
        let Some((checkpointer, thread)) = &options.keep else { return Ok(()) };
        let checkpoint = Checkpoint {
            sequence: position.sequence,
            run: position.run,
            graph: self.name.clone(),
            step: position.step,
            record: record.clone(),
            next: self.name_of(position.next).to_owned(),
            state_json: serde_json::to_string(&position.state).map_err(|source| RunError::Write { source })?,
            unix_millis: Checkpoint::now(),
        };
        checkpointer.put(thread, &checkpoint)?;
        position.sequence += 1;
        Ok(())
    }
}

fn snapshot<S: State>(thread: &ThreadId, checkpoint: Checkpoint) -> Result<Snapshot<S>, RunError> {
    match serde_json::from_str(&checkpoint.state_json) {
        Ok(state) => Ok(Snapshot { state, checkpoint }),
        Err(source) => Err(RunError::Read { thread: thread.to_string(), sequence: checkpoint.sequence, source }),
    }
}
