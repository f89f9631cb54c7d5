//! What the compiler of graphs refuses (M07, M52).

use anchorite_core::{Budget, BudgetLimits};
use anchorite_graph::{
    Append, CompileError, END, Graph, GraphBuilder, Guard, NodeContext, NodeError, RunError, RunOptions, START, state,
};
use proptest::prelude::*;

state! {
    /// Which nodes ran.
    struct Seen updated by
    /// One more.
    SeenUpdate {
        nodes: Append<String>,
    }
}

fn note_name(_: &Seen, context: &NodeContext<'_>) -> Result<SeenUpdate, NodeError> {
    Ok(SeenUpdate { nodes: vec![context.node().to_owned()] })
}

fn graph(nodes: &[&str], edges: &[(&str, &str)]) -> GraphBuilder<'static, Seen> {
    let builder = nodes.iter().fold(Graph::builder("test"), |builder, name| builder.node(name, note_name));
    edges.iter().fold(builder, |builder, (from, to)| builder.edge(from, to))
}

fn error(builder: GraphBuilder<'static, Seen>) -> CompileError {
    builder.compile().expect_err("the wiring is wrong")
}

#[test]
fn m07_names_are_checked() {
    for name in ["", START, END] {
        assert_eq!(error(graph(&[name], &[(START, "a")])), CompileError::ReservedName { name: name.to_owned() });
    }
    assert_eq!(error(graph(&["a", "b", "a"], &[])), CompileError::DuplicateNode { node: "a".to_owned() });
    let unknown = |builder, name: &str| match error(builder) {
        CompileError::UnknownNode { node, used_by } => {
            assert_eq!(node, name);
            used_by
        }
        other => panic!("expected an unknown node, got {other}"),
    };
    assert_eq!(unknown(graph(&["a"], &[(START, "x")]), "x"), format!("the edge from {START:?} to \"x\""));
    assert_eq!(unknown(graph(&["a"], &[(START, "a"), ("a", "y")]), "y"), "the edge from \"a\" to \"y\"");
    assert_eq!(unknown(graph(&["a"], &[(START, "a"), ("z", "a")]), "z"), "the edge from \"z\" to \"a\"");
    let builder = graph(&["a"], &[(START, "a")]).branch("a", |_, _| "on", &[("on", "nowhere"), ("off", END)]);
    assert_eq!(unknown(builder, "nowhere"), "the label \"on\" after \"a\"");
    let builder = graph(&["a"], &[(START, "a"), ("a", END)]).guard("b", Guard::Budget);
    assert_eq!(unknown(builder, "b"), "a guard");
}

#[test]
fn m07_every_node_has_one_way_on() {
    assert_eq!(error(graph(&["a", "b"], &[(START, "a"), ("a", "b")])), CompileError::NoWayOn { node: "b".to_owned() });
    let several = CompileError::SeveralWaysOn { node: "a".to_owned() };
    assert_eq!(error(graph(&["a", "b"], &[(START, "a"), ("a", "b"), ("a", END), ("b", END)])), several);
    let both = graph(&["a"], &[(START, "a"), ("a", END)]).branch("a", |_, _| "end", &[("end", END)]);
    assert_eq!(error(both), several);
    let none = graph(&["a"], &[(START, "a")]).branch("a", |_, _| "end", &[]);
    assert_eq!(error(none), CompileError::NoWayOn { node: "a".to_owned() });
    let twice = graph(&["a"], &[(START, "a")]).branch("a", |_, _| "end", &[("end", END), ("end", "a")]);
    assert_eq!(error(twice), CompileError::DuplicateLabel { node: "a".to_owned(), label: "end".to_owned() });
}

#[test]
fn m07_the_start_has_one_edge_and_the_end_none() {
    assert_eq!(error(graph(&["a"], &[("a", END)])), CompileError::StartEdges { count: 0 });
    let two = graph(&["a", "b"], &[(START, "a"), (START, "b"), ("a", END), ("b", END)]);
    assert_eq!(error(two), CompileError::StartEdges { count: 2 });
    let branch = graph(&["a"], &[(START, "a"), ("a", END)]).branch(START, |_, _| "a", &[("a", "a")]);
    assert_eq!(error(branch), CompileError::StartEdges { count: 2 });
    for edge in [("a", START), (END, "a"), (START, END)] {
        assert!(matches!(error(graph(&["a"], &[edge])), CompileError::WrongWay { .. }), "{edge:?}");
    }
}

#[test]
fn m07_every_node_is_on_a_way_from_start_to_end() {
    let unreachable = graph(&["a", "b"], &[(START, "a"), ("a", END), ("b", "a")]);
    assert_eq!(error(unreachable), CompileError::Unreachable { node: "b".to_owned() });
    let trapped = graph(&["a", "b"], &[(START, "a"), ("b", "b")])
        .branch("a", |_, _| "in", &[("in", "b"), ("out", END)])
        .guard("b", Guard::Budget);
    assert_eq!(error(trapped), CompileError::NoWayToEnd { node: "b".to_owned() });
}

/// `a -> b -> c -> a`, and an inner cycle `b -> b`; `c` may end.
fn two_cycles() -> GraphBuilder<'static, Seen> {
    graph(&["a", "b", "c"], &[(START, "a"), ("a", "b")])
        .branch("b", |_, _| "on", &[("again", "b"), ("on", "c")])
        .branch("c", |_, _| "end", &[("round", "a"), ("end", END)])
}

#[test]
fn m52_a_cycle_without_a_guard_is_refused_by_name() {
    let cycle = |names: &[&str]| CompileError::UnguardedCycle { cycle: names.iter().map(|&n| n.to_owned()).collect() };
    assert_eq!(error(two_cycles()), cycle(&["b", "b"]));
    assert_eq!(error(two_cycles().guard("c", Guard::Budget)), cycle(&["b", "b"]));
    assert_eq!(error(two_cycles().guard_edge("b", "b", Guard::Novelty)), cycle(&["a", "b", "c", "a"]));
    let message = error(two_cycles().guard_edge("b", "b", Guard::Novelty)).to_string();
    assert!(message.contains("a -> b -> c -> a"), "{message}");
}

#[test]
fn m52_one_guard_on_each_cycle_is_enough() {
    let compiled = |builder: GraphBuilder<'static, Seen>| builder.compile().map(|graph| graph.name().to_owned());
    assert_eq!(compiled(two_cycles().guard("b", Guard::Budget)), Ok("test".to_owned()));
    let edges = two_cycles().guard_edge("b", "b", Guard::Novelty).guard_edge("c", "a", Guard::Budget);
    assert_eq!(compiled(edges), Ok("test".to_owned()));
    let missing = two_cycles().guard("b", Guard::Budget).guard_edge("a", "c", Guard::Budget);
    assert_eq!(error(missing), CompileError::UnknownEdge { from: "a".to_owned(), to: "c".to_owned() });
}

#[test]
fn m52_a_budget_guard_needs_a_budget_that_ends() {
    let rounds_only = BudgetLimits { rounds: Some(3), steps: None, tokens: None, time: None };
    let graph = two_cycles().guard("b", Guard::Budget).compile().expect("guarded");
    let error = graph.run(Seen::default(), RunOptions::new(&Budget::new(rounds_only.clone()))).expect_err("no cap");
    assert!(matches!(error, RunError::Uncapped { cycle } if cycle == ["b", "b"]));
    let capped = Budget::new(BudgetLimits { steps: Some(9), ..rounds_only });
    assert!(graph.run(Seen::default(), RunOptions::new(&capped)).is_ok());
    let novel = two_cycles().guard("b", Guard::Novelty).compile().expect("guarded");
    assert!(novel.run(Seen::default(), RunOptions::new(&Budget::unlimited())).is_ok());
}

const NAMES: [&str; 7] = ["n0", "n1", "n2", "n3", "n4", "n5", "n6"];

proptest! {
    /// Against the plain definition: an unguarded cycle exists if a node reaches itself over unguarded edges.
    #[test]
    fn m52_exactly_the_graphs_with_an_unguarded_cycle_are_refused(
        count in 1_usize..=7,
        arcs in prop::collection::vec((0_usize..7, 0_usize..7), 0..12),
        guarded_nodes in prop::collection::vec(0_usize..7, 0..4),
        guarded_arcs in prop::collection::vec(0_usize..12, 0..4),
    ) {
        let mut arcs: Vec<(usize, usize)> = arcs.into_iter().map(|(from, to)| (from % count, to % count)).collect();
        // A chain keeps every node reachable.
        arcs.extend((1..count).map(|to| (to - 1, to)));
        arcs.sort_unstable();
        arcs.dedup();
        let guarded_nodes: Vec<usize> = guarded_nodes.into_iter().map(|node| node % count).collect();
        let guarded_arcs: Vec<(usize, usize)> = guarded_arcs.iter().filter_map(|at| arcs.get(*at).copied()).collect();

        let mut builder = graph(&NAMES[..count], &[(START, "n0")]);
        for (from, name) in NAMES.iter().enumerate().take(count) {
            let mut targets = vec![("end", END)];
            targets.extend(arcs.iter().filter(|arc| arc.0 == from).map(|arc| (NAMES[arc.1], NAMES[arc.1])));
            builder = builder.branch(name, |_, _| "end", &targets);
        }
        for node in &guarded_nodes {
            builder = builder.guard(NAMES[*node], Guard::Budget);
        }
        for (from, to) in &guarded_arcs {
            builder = builder.guard_edge(NAMES[*from], NAMES[*to], Guard::Novelty);
        }

        let open = |from: usize, to: usize| {
            arcs.contains(&(from, to)) && !guarded_arcs.contains(&(from, to))
                && !guarded_nodes.contains(&from) && !guarded_nodes.contains(&to)
        };
        let mut reach: Vec<Vec<bool>> = (0..count).map(|from| (0..count).map(|to| open(from, to)).collect()).collect();
        for via in 0..count {
            for from in 0..count {
                for to in 0..count {
                    reach[from][to] |= reach[from][via] && reach[via][to];
                }
            }
        }
        let cyclic = (0..count).any(|node| reach[node][node]);
        match builder.compile() {
            Ok(_) => prop_assert!(!cyclic),
            Err(CompileError::UnguardedCycle { cycle }) => {
                prop_assert!(cyclic);
                let cycle: Vec<usize> =
                    cycle.iter().map(|name| NAMES.iter().position(|known| known == name).expect("a node")).collect();
                prop_assert_eq!(cycle.first(), cycle.last());
                prop_assert!(cycle.len() > 1 && cycle.windows(2).all(|pair| open(pair[0], pair[1])));
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}
