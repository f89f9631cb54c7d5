//! The graph and its builder.

use std::fmt;
use std::sync::Arc;

use anchorite_core::Budget;

use crate::compile::{self, CompileError};
use crate::{Node, NodeContext, NodeError, State};

/// Where a run begins: the source of exactly one edge.
pub const START: &str = "__start__";
/// Where a run ends: the target of at least one edge.
pub const END: &str = "__end__";

/// What keeps a cycle from turning for ever. It is declared at a node or an edge of the cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// The node, or the branch behind it, spends from the run's budget or asks it before going round again. A run through
    /// such a cycle needs a budget with a cap on steps or on time.
    Budget,
    /// The cycle is left unless the last round brought something that was not there before.
    Novelty,
}

/// Chooses the label of the way on.
pub(crate) type Decide<'a, S> = Box<dyn Fn(&S, &Budget) -> &'static str + Send + Sync + 'a>;

/// A node's name, or the end, once the wiring is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Node(usize),
    End,
}

/// The way on from a node.
pub(crate) enum Exit<'a, S> {
    Edge(Target),
    Branch { decide: Decide<'a, S>, targets: Vec<(&'static str, Target)> },
}

impl<S> Exit<'_, S> {
    /// Every way on, with its label if it is one of several.
    pub(crate) fn targets(&self) -> Vec<(Option<&'static str>, Target)> {
        match self {
            Self::Edge(target) => vec![(None, *target)],
            Self::Branch { targets, .. } => targets.iter().map(|&(label, target)| (Some(label), target)).collect(),
        }
    }
}

pub(crate) struct CompiledNode<'a, S: State> {
    pub(crate) name: String,
    pub(crate) node: Arc<dyn Node<S> + 'a>,
    pub(crate) exit: Exit<'a, S>,
    pub(crate) guarded: bool,
}

/// A checked graph, ready to run. It may be shared between threads and run many times.
pub struct Graph<'a, S: State> {
    pub(crate) name: String,
    pub(crate) entry: usize,
    pub(crate) nodes: Vec<CompiledNode<'a, S>>,
    /// A cycle that only the budget ends, if there is one.
    pub(crate) budgeted_cycle: Option<Vec<String>>,
}

impl<'a, S: State> Graph<'a, S> {
    /// Begins a graph.
    pub fn builder(name: &str) -> GraphBuilder<'a, S> {
        GraphBuilder {
            name: name.to_owned(),
            nodes: Vec::new(),
            edges: Vec::new(),
            branches: Vec::new(),
            guards: Vec::new(),
        }
    }

    /// The graph's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of the nodes, in the order in which they were added.
    pub fn node_names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.name.as_str())
    }

    pub(crate) fn name_of(&self, target: Target) -> &str {
        match target {
            Target::Node(index) => &self.nodes[index].name,
            Target::End => END,
        }
    }

    pub(crate) fn target_named(&self, name: &str) -> Option<Target> {
        if name == END {
            return Some(Target::End);
        }
        self.nodes.iter().position(|node| node.name == name).map(Target::Node)
    }
}

impl<S: State> fmt::Debug for Graph<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("name", &self.name)
            .field("nodes", &self.node_names().collect::<Vec<_>>())
            .finish()
    }
}

pub(crate) struct BranchSpec<'a, S> {
    pub(crate) from: String,
    pub(crate) decide: Decide<'a, S>,
    pub(crate) targets: Vec<(&'static str, String)>,
}

pub(crate) struct GuardSpec {
    pub(crate) from: String,
    /// `None`: the node itself.
    pub(crate) to: Option<String>,
    pub(crate) guard: Guard,
}

/// Collects nodes and edges. Nothing is checked before [`GraphBuilder::compile`].
#[must_use]
pub struct GraphBuilder<'a, S: State> {
    pub(crate) name: String,
    pub(crate) nodes: Vec<(String, Arc<dyn Node<S> + 'a>)>,
    pub(crate) edges: Vec<(String, String)>,
    pub(crate) branches: Vec<BranchSpec<'a, S>>,
    pub(crate) guards: Vec<GuardSpec>,
}

impl<'a, S: State> GraphBuilder<'a, S> {
    /// Adds a node given as a closure.
    pub fn node<F>(self, name: &str, node: F) -> Self
    where
        F: Fn(&S, &NodeContext<'_>) -> Result<S::Update, NodeError> + Send + Sync + 'a,
    {
        self.shared_node(name, Arc::new(node))
    }

    /// Adds a node that may be used elsewhere too.
    pub fn shared_node(mut self, name: &str, node: Arc<dyn Node<S> + 'a>) -> Self {
        self.nodes.push((name.to_owned(), node));
        self
    }

    /// After `from` always comes `to`.
    pub fn edge(mut self, from: &str, to: &str) -> Self {
        self.edges.push((from.to_owned(), to.to_owned()));
        self
    }

    /// After `from`, `decide` names one of the labels of `targets`, from the state with `from`'s update in it.
    pub fn branch<F>(mut self, from: &str, decide: F, targets: &[(&'static str, &str)]) -> Self
    where
        F: Fn(&S, &Budget) -> &'static str + Send + Sync + 'a,
    {
        let targets = targets.iter().map(|&(label, target)| (label, target.to_owned())).collect();
        self.branches.push(BranchSpec { from: from.to_owned(), decide: Box::new(decide), targets });
        self
    }

    /// Declares what ends the cycles through `node`.
    pub fn guard(mut self, node: &str, guard: Guard) -> Self {
        self.guards.push(GuardSpec { from: node.to_owned(), to: None, guard });
        self
    }

    /// Declares what ends the cycles through the edge from `from` to `to`.
    pub fn guard_edge(mut self, from: &str, to: &str, guard: Guard) -> Self {
        self.guards.push(GuardSpec { from: from.to_owned(), to: Some(to.to_owned()), guard });
        self
    }

    /// Checks the wiring.
    ///
    /// # Errors
    /// The first fault found; see [`CompileError`].
    pub fn compile(self) -> Result<Graph<'a, S>, CompileError> {
        compile::compile(self)
    }
}
