//! The graphs that ship: the plain pipeline, the classic self-correcting graph, and the multi-agent one.

use std::fmt;
use std::str::FromStr;

use anchorite_core::Budget;
use anchorite_graph::{CompileError, END, Graph, GraphBuilder, Guard, NodeContext, START};
use thiserror::Error;

use crate::Parts;
use crate::nodes;
use crate::state::{Action, RagState};

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
    /// The question is taken apart and answered step by step, each with what the steps before have found.
    MultiHop,
    /// Self-reflection (Shinn et al. 2023): what is not borne out is named back and written again, from the same passages.
    Reflect,
    /// An agent chooses between searching, looking up and finishing (ReAct, Yao et al. 2023).
    React,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Simple, Self::SelfRag, Self::MultiAgent, Self::MultiHop, Self::Reflect, Self::React];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::SelfRag => "self-rag",
            Self::MultiAgent => "multi-agent",
            Self::MultiHop => "multi-hop",
            Self::Reflect => "reflect",
            Self::React => "react",
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
#[error("there is no strategy `{0}`; known: simple, self-rag, multi-agent, multi-hop, reflect, react")]
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
    pub(super) const PLAN: &str = "plan";
    pub(super) const FINDING: &str = "finding";
    pub(super) const ACT: &str = "act";
    pub(super) const OBSERVE: &str = "observe";
    pub(super) const FINISH: &str = "finish";
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
        Strategy::MultiHop => multi_hop(parts),
        Strategy::Reflect => reflect(parts),
        Strategy::React => react(parts),
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

fn multi_hop<'a>(parts: &'a Parts<'a>) -> Result<Graph<'a, RagState>, CompileError> {
    Graph::builder(Strategy::MultiHop.name())
        .node(node::PLAN, move |state, context| nodes::plan(parts, state, context))
        .node(node::RETRIEVE, move |state, context| nodes::retrieve(parts, state, context))
        .node(node::GRADE, move |state, context| nodes::grade_documents(parts, state, context))
        .node(node::FINDING, move |state, context| nodes::finding(parts, state, context))
        .node(node::GENERATE, move |state, context| nodes::generate(parts, state, context))
        .node(node::CHECK, move |state, context| nodes::grade_generation(parts, state, context))
        .edge(START, node::PLAN)
        .edge(node::PLAN, node::RETRIEVE)
        .edge(node::RETRIEVE, node::GRADE)
        .edge(node::GRADE, node::FINDING)
        .branch(
            node::FINDING,
            |state, budget| match state.findings.len() < state.plan.len() {
                true if budget.has_round() => "next hop",
                _ if state.useful_documents.is_empty() => "nothing found",
                _ => "write",
            },
            &[("next hop", node::RETRIEVE), ("write", node::GENERATE), ("nothing found", END)],
        )
        .edge(node::GENERATE, node::CHECK)
        .edge(node::CHECK, END)
        .guard(node::RETRIEVE, Guard::Budget)
        .compile()
}

fn reflect<'a>(parts: &'a Parts<'a>) -> Result<Graph<'a, RagState>, CompileError> {
    let rewrites = parts.settings.rewrites;
    Graph::builder(Strategy::Reflect.name())
        .node(node::RETRIEVE, move |state, context| nodes::retrieve(parts, state, context))
        .node(node::GRADE, move |state, context| nodes::grade_documents(parts, state, context))
        .node(node::GENERATE, move |state, context| nodes::generate(parts, state, context))
        .node(node::CHECK, move |state, context| nodes::grade_generation(parts, state, context))
        .edge(START, node::RETRIEVE)
        .edge(node::RETRIEVE, node::GRADE)
        .branch(
            node::GRADE,
            |state, _| if *state.newly_useful > 0 { "generate" } else { "nothing found" },
            &[("generate", node::GENERATE), ("nothing found", END)],
        )
        .edge(node::GENERATE, node::CHECK)
        .branch(
            node::CHECK,
            move |state, _| match verdict(state) {
                "useful" => "useful",
                _ if *state.rewrites < rewrites && state.draft.as_ref().is_some_and(|draft| !draft.refusal) => "again",
                _ => "as it stands",
            },
            &[("useful", END), ("again", node::GENERATE), ("as it stands", END)],
        )
        .guard(node::GENERATE, Guard::Budget)
        .compile()
}

fn react<'a>(parts: &'a Parts<'a>) -> Result<Graph<'a, RagState>, CompileError> {
    let steps = parts.settings.agent_steps;
    Graph::builder(Strategy::React.name())
        .node(node::ACT, move |state, context| nodes::act(parts, state, context))
        .node(node::RETRIEVE, move |state, context| nodes::retrieve(parts, state, context))
        .node(node::GRADE, move |state, context| nodes::grade_documents(parts, state, context))
        .node(node::OBSERVE, |state: &RagState, context: &NodeContext<'_>| nodes::observe(state, context))
        .node(node::FINISH, move |state, context| nodes::finish(parts, state, context))
        .node(node::CHECK, move |state, context| nodes::grade_generation(parts, state, context))
        .edge(START, node::ACT)
        .branch(
            node::ACT,
            |state, _| match &*state.action {
                Action::Search(_) => "search",
                Action::Lookup(_) => "lookup",
                Action::Finish(_) => "finish",
            },
            &[("search", node::RETRIEVE), ("lookup", node::OBSERVE), ("finish", node::FINISH)],
        )
        .edge(node::RETRIEVE, node::GRADE)
        .edge(node::GRADE, node::OBSERVE)
        .edge(node::OBSERVE, node::ACT)
        .edge(node::FINISH, node::CHECK)
        .branch(
            node::CHECK,
            move |state, budget| match verdict(state) {
                "useful" => "useful",
                _ if budget.has_round() && state.scratchpad.len() < steps => "not yet",
                _ => "as it stands",
            },
            &[("useful", END), ("not yet", node::OBSERVE), ("as it stands", END)],
        )
        .guard(node::ACT, Guard::Budget)
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
