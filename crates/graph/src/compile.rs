//! Checks of a graph's wiring.
//!
//! Invariants of a compiled graph: every name that an edge, a label or a guard uses exists; every node has exactly one way
//! on (an edge or a branch), can be reached from the start and can reach the end; every cycle passes a guard.

use std::collections::HashMap;
use std::sync::Arc;

use thiserror::Error;

use crate::graph::{BranchSpec, CompiledNode, END, Exit, Graph, GraphBuilder, Guard, GuardSpec, START, Target};
use crate::{Node, State};

/// What is wrong with a graph's wiring.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CompileError {
    /// A name that stands for the start or the end, or no name.
    #[error("{name:?} can't be the name of a node; choose another")]
    ReservedName {
        /// The name.
        name: String,
    },
    /// Two nodes with one name.
    #[error("there are two nodes named {node:?}; rename one")]
    DuplicateNode {
        /// The name.
        node: String,
    },
    /// An edge, a branch or a guard uses a name that no node has.
    #[error("{used_by} names {node:?}, and there is no such node; add it or correct the name")]
    UnknownNode {
        /// The name.
        node: String,
        /// What uses it.
        used_by: String,
    },
    /// An edge into the start or out of the end.
    #[error("{used_by}: no edge goes into the start or out of the end; remove it")]
    WrongWay {
        /// The edge.
        used_by: String,
    },
    /// The start has no edge, several, or a branch.
    #[error("the start has {count} ways on; give it exactly one edge, and no branch")]
    StartEdges {
        /// How many.
        count: usize,
    },
    /// A node without a way on.
    #[error("after the node {node:?} nothing comes; add an edge or a branch, or an edge to END")]
    NoWayOn {
        /// The node.
        node: String,
    },
    /// A node with several edges, several branches, or both.
    #[error("the node {node:?} has several ways on that nothing chooses between; use one branch")]
    SeveralWaysOn {
        /// The node.
        node: String,
    },
    /// A label twice in one branch.
    #[error("the branch after {node:?} has the label {label:?} twice; rename one")]
    DuplicateLabel {
        /// The node.
        node: String,
        /// The label.
        label: String,
    },
    /// A node that no path from the start reaches.
    #[error("no path from the start reaches the node {node:?}; add an edge to it or remove it")]
    Unreachable {
        /// The node.
        node: String,
    },
    /// A node from which no path reaches the end.
    #[error("no path leads from the node {node:?} to the end; add one")]
    NoWayToEnd {
        /// The node.
        node: String,
    },
    /// A guard on an edge that does not exist.
    #[error("a guard names the edge from {from:?} to {to:?}, and there is none; add it or correct the guard")]
    UnknownEdge {
        /// Its source.
        from: String,
        /// Its target.
        to: String,
    },
    /// A cycle that nothing ends.
    #[error("nothing ends the cycle {}; declare a guard on one of its nodes or edges (budget or novelty)", .cycle.join(" -> "))]
    UnguardedCycle {
        /// The nodes, the first one again at the end.
        cycle: Vec<String>,
    },
}

pub(crate) fn compile<S: State>(builder: GraphBuilder<'_, S>) -> Result<Graph<'_, S>, CompileError> {
    let GraphBuilder { name, nodes, edges, branches, guards } = builder;
    let index = index_names(&nodes)?;
    let (entry, exits) = wire(&index, nodes.len(), &nodes, edges, branches)?;
    check_reach(&nodes, entry, &exits)?;

    let marks = GuardMarks::new(&index, &nodes, &exits, &guards)?;
    let names = |cycle: Vec<usize>| cycle.into_iter().map(|node| nodes[node].0.clone()).collect::<Vec<_>>();
    if let Some(cycle) = find_cycle(&exits, |from, to| marks.guards(from, to).next().is_none()) {
        return Err(CompileError::UnguardedCycle { cycle: names(cycle) });
    }
    let budgeted_cycle =
        find_cycle(&exits, |from, to| marks.guards(from, to).all(|guard| guard == Guard::Budget)).map(names);

    let nodes = nodes
        .into_iter()
        .zip(exits)
        .enumerate()
        .map(|(at, ((name, node), exit))| CompiledNode { name, node, exit, guarded: marks.on_node(at) })
        .collect();
    Ok(Graph { name, entry, nodes, budgeted_cycle })
}

type Nodes<'a, S> = [(String, Arc<dyn Node<S> + 'a>)];

fn index_names<S: State>(nodes: &Nodes<'_, S>) -> Result<HashMap<String, usize>, CompileError> {
    let mut index = HashMap::new();
    for (at, (name, _)) in nodes.iter().enumerate() {
        if name.is_empty() || name == START || name == END {
            return Err(CompileError::ReservedName { name: name.clone() });
        }
        if index.insert(name.clone(), at).is_some() {
            return Err(CompileError::DuplicateNode { node: name.clone() });
        }
    }
    Ok(index)
}

fn node_named(index: &HashMap<String, usize>, name: &str, used_by: &str) -> Result<usize, CompileError> {
    if name == START || name == END {
        return Err(CompileError::WrongWay { used_by: used_by.to_owned() });
    }
    index
        .get(name)
        .copied()
        .ok_or_else(|| CompileError::UnknownNode { node: name.to_owned(), used_by: used_by.to_owned() })
}

fn target_named(index: &HashMap<String, usize>, name: &str, used_by: &str) -> Result<Target, CompileError> {
    if name == END { Ok(Target::End) } else { node_named(index, name, used_by).map(Target::Node) }
}

/// Entry node, and the one way on from each node.
fn wire<'a, S: State>(
    index: &HashMap<String, usize>,
    count: usize,
    nodes: &Nodes<'a, S>,
    edges: Vec<(String, String)>,
    branches: Vec<BranchSpec<'a, S>>,
) -> Result<(usize, Vec<Exit<'a, S>>), CompileError> {
    let mut entries = Vec::new();
    let mut exits: Vec<Option<Exit<'a, S>>> = (0..count).map(|_| None).collect();
    let mut set = |from: usize, exit| {
        if exits[from].replace(exit).is_some() {
            return Err(CompileError::SeveralWaysOn { node: nodes[from].0.clone() });
        }
        Ok(())
    };
    for (from, to) in edges {
        let used_by = format!("the edge from {from:?} to {to:?}");
        if from == START {
            entries.push(node_named(index, &to, &used_by)?);
        } else {
            set(node_named(index, &from, &used_by)?, Exit::Edge(target_named(index, &to, &used_by)?))?;
        }
    }
    let mut start_branches = 0;
    for BranchSpec { from, decide, targets: named } in branches {
        if from == START {
            start_branches += named.len().max(1);
            continue;
        }
        let at = node_named(index, &from, &format!("the branch after {from:?}"))?;
        let mut targets: Vec<(&'static str, Target)> = Vec::with_capacity(named.len());
        for (label, target) in named {
            if targets.iter().any(|(other, _)| *other == label) {
                return Err(CompileError::DuplicateLabel { node: from, label: label.to_owned() });
            }
            targets.push((label, target_named(index, &target, &format!("the label {label:?} after {from:?}"))?));
        }
        if targets.is_empty() {
            return Err(CompileError::NoWayOn { node: from });
        }
        set(at, Exit::Branch { decide, targets })?;
    }
    let &[entry] = entries.as_slice() else {
        return Err(CompileError::StartEdges { count: entries.len() + start_branches });
    };
    if start_branches > 0 {
        return Err(CompileError::StartEdges { count: 1 + start_branches });
    }
    let exits = exits
        .into_iter()
        .zip(nodes)
        .map(|(exit, (name, _))| exit.ok_or_else(|| CompileError::NoWayOn { node: name.clone() }))
        .collect::<Result<Vec<_>, _>>()?;
    Ok((entry, exits))
}

fn check_reach<S: State>(nodes: &Nodes<'_, S>, entry: usize, exits: &[Exit<'_, S>]) -> Result<(), CompileError> {
    let mut reached = vec![false; exits.len()];
    let mut open = vec![entry];
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut reached[at], true) {
            open.extend(successors(&exits[at]));
        }
    }
    if let Some(at) = reached.iter().position(|reached| !reached) {
        return Err(CompileError::Unreachable { node: nodes[at].0.clone() });
    }

    let mut into: Vec<Vec<usize>> = vec![Vec::new(); exits.len()];
    let mut open = Vec::new();
    for (from, exit) in exits.iter().enumerate() {
        successors(exit).for_each(|to| into[to].push(from));
        if exit.targets().iter().any(|(_, target)| *target == Target::End) {
            open.push(from);
        }
    }
    let mut ends = vec![false; exits.len()];
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut ends[at], true) {
            open.extend(&into[at]);
        }
    }
    match ends.iter().position(|ends| !ends) {
        Some(at) => Err(CompileError::NoWayToEnd { node: nodes[at].0.clone() }),
        None => Ok(()),
    }
}

fn successors<S>(exit: &Exit<'_, S>) -> impl Iterator<Item = usize> {
    exit.targets().into_iter().filter_map(|(_, target)| match target {
        Target::Node(index) => Some(index),
        Target::End => None,
    })
}

/// Which nodes and edges are guarded, by index.
struct GuardMarks(Vec<(usize, Option<usize>, Guard)>);

impl GuardMarks {
    fn new<S: State>(
        index: &HashMap<String, usize>,
        nodes: &Nodes<'_, S>,
        exits: &[Exit<'_, S>],
        guards: &[GuardSpec],
    ) -> Result<Self, CompileError> {
        let mut marks = Vec::with_capacity(guards.len());
        for GuardSpec { from, to, guard } in guards {
            let at = node_named(index, from, "a guard")?;
            let to = to.as_ref().map(|to| node_named(index, to, "a guard")).transpose()?;
            if let Some(to) = to
                && !successors(&exits[at]).any(|successor| successor == to)
            {
                return Err(CompileError::UnknownEdge { from: from.clone(), to: nodes[to].0.clone() });
            }
            marks.push((at, to, *guard));
        }
        Ok(Self(marks))
    }

    fn on_node(&self, node: usize) -> bool {
        self.0.iter().any(|&(from, to, _)| from == node && to.is_none())
    }

    /// Guards that a walk over the edge passes: the edge's own, and those of the node it leaves. A cycle leaves each of
    /// its nodes, so looking at one end is enough.
    fn guards(&self, from: usize, to: usize) -> impl Iterator<Item = Guard> {
        self.0
            .iter()
            .filter(move |(at, edge, _)| *at == from && edge.is_none_or(|target| target == to))
            .map(|(_, _, guard)| *guard)
    }
}

/// A cycle over edges that `keep` keeps, its first node again at the end: a depth-first search without recursion, since a
/// graph may be long.
fn find_cycle<S>(exits: &[Exit<'_, S>], keep: impl Fn(usize, usize) -> bool) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        OnPath,
        Done,
    }
    let mut marks = vec![Mark::New; exits.len()];
    for root in 0..exits.len() {
        if marks[root] != Mark::New {
            continue;
        }
        marks[root] = Mark::OnPath;
        let mut path = vec![(root, successors(&exits[root]))];
        while let Some((at, ways)) = path.last_mut() {
            let at = *at;
            match ways.find(|&to| keep(at, to) && marks[to] != Mark::Done) {
                None => {
                    marks[at] = Mark::Done;
                    path.pop();
                }
                Some(to) if marks[to] == Mark::OnPath => {
                    let mut cycle: Vec<usize> =
                        path.iter().map(|(node, _)| *node).skip_while(|node| *node != to).collect();
                    cycle.push(to);
                    return Some(cycle);
                }
                Some(to) => {
                    marks[to] = Mark::OnPath;
                    path.push((to, successors(&exits[to])));
                }
            }
        }
    }
    None
}
