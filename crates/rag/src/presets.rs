//! The graphs that ship: the plain pipeline, the classic self-correcting graph, and the multi-agent one.

use std::fmt;
use std::str::FromStr;

use anchorite_core::Budget;
use anchorite_graph::{CompileError, END, Graph, GraphBuilder, Guard, START};
use thiserror::Error;

use crate::Parts;
use crate::nodes;
use crate::state::RagState;

/// Which graph answers a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Retrieve, generate, check; no second round.
    Simple,
    /// Self-RAG (Asai et al. 2023) as a graph: an unsupported answer is written again, a useless one asks new queries.
    SelfRag,
    /// An unsupported answer asks new queries too, from a hypothesis of what is missing.
    #[default]
    MultiAgent,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Simple, Self::SelfRag, Self::MultiAgent];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::SelfRag => "self-rag",
            Self::MultiAgent => "multi-agent",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A strategy by a name that no graph has.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("there is no strategy `{0}`; known: simple, self-rag, multi-agent")]
pub struct UnknownStrategy(String);

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, UnknownStrategy> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name).ok_or_else(|| UnknownStrategy(name.to_owned()))
    }
}

/// Names of the nodes.
mod node {
    pub(super) const DECIDE: &str = "decide_retrieval";
    pub(super) const REPLY: &str = "reply";
    pub(super) const RETRIEVE: &str = "retrieve";
    pub(super) const KEEP: &str = "keep_documents";
    pub(super) const GRADE: &str = "grade_documents";
    pub(super) const GENERATE: &str = "generate";
    pub(super) const CHECK: &str = "grade_generation";
    pub(super) const HYPOTHESIS: &str = "hypothesis";
    pub(super) const TRANSFORM: &str = "transform_query";
}

/// Builds the graph of `strategy` over `parts`.
///
/// # Errors
/// Never for the graphs as they stand; the type says that the wiring is checked like anybody's.
pub fn build<'a>(strategy: Strategy, parts: &'a Parts<'a>) -> Result<Graph<'a, RagState>, CompileError> {
    match strategy {
        Strategy::Simple => simple(parts),
        Strategy::SelfRag => self_rag(parts),
        Strategy::MultiAgent => multi_agent(parts),
    }
}

fn simple<'a>(parts: &'a Parts<'a>) -> Result<Graph<'a, RagState>, CompileError> {
    Graph::builder(Strategy::Simple.name())
        .node(node::RETRIEVE, move |state, context| nodes::retrieve(parts, state, context))
        .node(node::KEEP, move |state, context| nodes::keep_documents(parts, state, context))
        .node(node::GENERATE, move |state, context| nodes::generate(parts, state, context))
        .node(node::CHECK, move |state, context| nodes::grade_generation(parts, state, context))
        .edge(START, node::RETRIEVE)
        .edge(node::RETRIEVE, node::KEEP)
        .edge(node::KEEP, node::GENERATE)
        .edge(node::GENERATE, node::CHECK)
        .edge(node::CHECK, END)
        .compile()
}

fn multi_agent<'a>(parts: &'a Parts<'a>) -> Result<Graph<'a, RagState>, CompileError> {
    search_loop(Graph::builder(Strategy::MultiAgent.name()), parts)
        .edge(START, node::RETRIEVE)
        .branch(
            node::CHECK,
            |state, budget| match (verdict(state), budget.has_round()) {
                ("not supported", false) => "not supported, no round left",
                ("not useful", false) => "not useful, no round left",
                (verdict, _) => verdict,
            },
            &[
                ("useful", END),
                ("not supported", node::HYPOTHESIS),
                ("not useful", node::HYPOTHESIS),
                ("not supported, no round left", END),
                ("not useful, no round left", END),
            ],
        )
        .compile()
}

fn self_rag<'a>(parts: &'a Parts<'a>) -> Result<Graph<'a, RagState>, CompileError> {
    let rewrites = parts.settings.rewrites;
    search_loop(Graph::builder(Strategy::SelfRag.name()), parts)
        .node(node::DECIDE, move |state, context| nodes::decide_retrieval(parts, state, context))
        .node(node::REPLY, move |state, context| nodes::reply(parts, state, context))
        .edge(START, node::DECIDE)
        .branch(
            node::DECIDE,
            |state, _| if *state.needs_documents == Some(false) { "reply" } else { "retrieve" },
            &[("retrieve", node::RETRIEVE), ("reply", node::REPLY)],
        )
        .edge(node::REPLY, END)
        .branch(
            node::CHECK,
            move |state, budget| match verdict(state) {
                "useful" => "useful",
                "not supported" if *state.rewrites < rewrites => "not supported",
                _ if !budget.has_round() => "no round left",
                _ => "not useful",
            },
            &[
                ("useful", END),
                ("not supported", node::GENERATE),
                ("not useful", node::HYPOTHESIS),
                ("no round left", END),
            ],
        )
        .guard(node::GENERATE, Guard::Budget)
        .compile()
}

/// What the two loops share: search and grade, write and check, and ask anew. Where checking leads is theirs.
fn search_loop<'a>(graph: GraphBuilder<'a, RagState>, parts: &'a Parts<'a>) -> GraphBuilder<'a, RagState> {
    graph
        .node(node::RETRIEVE, move |state, context| nodes::retrieve(parts, state, context))
        .node(node::GRADE, move |state, context| nodes::grade_documents(parts, state, context))
        .node(node::GENERATE, move |state, context| nodes::generate(parts, state, context))
        .node(node::CHECK, move |state, context| nodes::grade_generation(parts, state, context))
        .node(node::HYPOTHESIS, move |state, context| nodes::hypothesis(parts, state, context))
        .node(node::TRANSFORM, move |state, context| nodes::transform_query(parts, state, context))
        .edge(node::RETRIEVE, node::GRADE)
        .branch(
            node::GRADE,
            decide_to_generate,
            &[("generate", node::GENERATE), ("transform_query", node::HYPOTHESIS), ("give up", END)],
        )
        .edge(node::GENERATE, node::CHECK)
        .edge(node::HYPOTHESIS, node::TRANSFORM)
        .branch(node::TRANSFORM, has_new_queries, &[("search", node::RETRIEVE), ("nothing new", END)])
        .guard(node::RETRIEVE, Guard::Budget)
        .guard(node::TRANSFORM, Guard::Novelty)
}

/// After grading documents: is there something to write from, and if not, may another round begin?
fn decide_to_generate(state: &RagState, budget: &Budget) -> &'static str {
    // A later round that found nothing of use would only be answered as the round before was; and while a rule lacks its
    // quantity, whatever is written can only guess.
    if *state.newly_useful > 0 && (nodes::lacking(state).is_empty() || !budget.has_round()) {
        "generate"
    } else if budget.has_round() {
        "transform_query"
    } else {
        "give up"
    }
}

fn has_new_queries(state: &RagState, _: &Budget) -> &'static str {
    if *state.exhausted { "nothing new" } else { "search" }
}

fn verdict(state: &RagState) -> &'static str {
    match state.draft.as_ref() {
        Some(draft) if draft.refusal => "not useful",
        Some(draft) if !draft.supported => "not supported",
        Some(draft) if !draft.useful => "not useful",
        Some(_) => "useful",
        None => "not useful",
    }
}
