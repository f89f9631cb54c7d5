//! Running: order, events, budgets, errors, drawing (M07, M09, M18, F35, F21).

use std::ops::ControlFlow;
use std::time::Duration;

use anchorite_core::{Budget, BudgetExceeded, BudgetLimits};
use anchorite_graph::{
    Append, AppendBatch, END, Event, Fixed, Graph, Guard, NodeError, Outcome, Overwrite, RunError, RunOptions, START,
    state,
};
use proptest::prelude::*;

state! {
    /// A small search loop.
    struct Search updated by
    /// Its update.
    SearchUpdate {
        question: Fixed<String>,
        hypothesis: Overwrite<String>,
        useful: Append<u32>,
        queries: AppendBatch<String>,
    }
}

fn nothing() -> Result<SearchUpdate, NodeError> {
    Ok(SearchUpdate::default())
}

/// Retrieves until two documents are useful.
fn search_graph(batch: &[u32]) -> Graph<'_, Search> {
    Graph::builder("search")
        .node("retrieve", |state: &Search, context| {
            context.budget().spend_round()?;
            context.note("found 1");
            let next = batch.get(state.useful.len()).copied();
            Ok(SearchUpdate { useful: next.into_iter().collect(), ..SearchUpdate::default() })
        })
        .node("transform", |state: &Search, _| {
            let query = format!("{} {}", *state.question, state.queries.len());
            Ok(SearchUpdate { queries: Some(vec![query]), ..SearchUpdate::default() })
        })
        .node("answer", |state: &Search, context| {
            for piece in ["all", " done"] {
                context.progress(piece);
            }
            Ok(SearchUpdate { hypothesis: Some(format!("{:?}", *state.useful)), ..SearchUpdate::default() })
        })
        .edge(START, "retrieve")
        .branch(
            "retrieve",
            |state, _| if state.useful.len() < 2 { "too few" } else { "enough" },
            &[("too few", "transform"), ("enough", "answer")],
        )
        .edge("transform", "retrieve")
        .edge("answer", END)
        .guard("retrieve", Guard::Budget)
        .compile()
        .expect("sound")
}

fn asking(question: &str) -> Search {
    Search { question: question.to_owned().into(), ..Search::default() }
}

fn steps(cap: u64) -> Budget {
    Budget::new(BudgetLimits { steps: Some(cap), ..BudgetLimits::default() })
}

#[test]
fn m07_a_run_follows_edges_and_branches_to_the_end() {
    let batch = [7, 9];
    let budget = steps(10);
    let run = search_graph(&batch).run(asking("how far"), RunOptions::new(&budget)).expect("runs");
    assert_eq!(run.outcome, Outcome::Finished);
    assert_eq!(run.next, END);
    assert_eq!(*run.state.useful, [7, 9]);
    assert_eq!(*run.state.queries, [["how far 0"]]);
    assert_eq!(*run.state.hypothesis, "[7, 9]");
    assert_eq!(*run.state.question, "how far");
    let path: Vec<(&str, Option<&str>, &str)> =
        run.path.iter().map(|step| (step.node.as_str(), step.decision.as_deref(), step.note.as_str())).collect();
    assert_eq!(
        path,
        [
            ("retrieve", Some("too few"), "found 1"),
            ("transform", None, ""),
            ("retrieve", Some("enough"), "found 1"),
            ("answer", None, ""),
        ]
    );
    assert_eq!((budget.spent().steps, budget.spent().rounds), (4, 2));
}

#[test]
fn m09_events_come_in_order_as_things_happen() {
    let batch = [7, 9];
    let mut lines = Vec::new();
    let mut on_event = |event: &Event<'_, Search>| {
        lines.push(match event {
            Event::RunStarted { graph, next, thread, resumed_after } => {
                format!("{graph} starts at {next} {thread:?} {resumed_after:?}")
            }
            Event::NodeStarted { step, node } => format!("{step} {node} starts"),
            Event::Progress { step, node, text } => format!("{step} {node} says {text:?}"),
            Event::NodeFinished { step, node, update, state, decision, next, note, .. } => format!(
                "{step} {node} +{} ={} {decision:?} to {next} {note:?}",
                update.useful.len(),
                state.useful.len()
            ),
            Event::NodeFailed { step, node, error } => format!("{step} {node} failed: {error}"),
            Event::RunFinished { outcome, steps } => format!("{outcome:?} after {steps}"),
        });
    };
    let options = RunOptions::new(&steps(10)).on_event(&mut on_event);
    search_graph(&batch).run(asking("q"), options).expect("runs");
    assert_eq!(
        lines,
        [
            "search starts at retrieve None None",
            "1 retrieve starts",
            "1 retrieve +1 =1 Some(\"too few\") to transform \"found 1\"",
            "2 transform starts",
            "2 transform +0 =1 None to retrieve \"\"",
            "3 retrieve starts",
            "3 retrieve +1 =2 Some(\"enough\") to answer \"found 1\"",
            "4 answer starts",
            "4 answer says \"all\"",
            "4 answer says \" done\"",
            "4 answer +0 =2 None to __end__ \"\"",
            "Finished after 4",
        ]
    );
}

#[test]
fn m09_events_are_json_for_streams() {
    let batch = [7, 9];
    let mut events = Vec::new();
    let mut on_event = |event: &Event<'_, Search>| events.push(serde_json::to_value(event).expect("plain data"));
    let options = RunOptions::new(&steps(10)).on_event(&mut on_event);
    search_graph(&batch).run(asking("q"), options).expect("runs");
    assert_eq!(events[1]["event"], "node_started");
    assert_eq!(events[2]["update"]["useful"], serde_json::json!([7]));
    assert_eq!(events[2]["decision"], "too few");
    assert!(events[2].get("state").is_none());
    assert_eq!(events.last().expect("some")["outcome"], "finished");
}

#[test]
fn m18_a_cap_ends_the_run_with_the_state_so_far() {
    let batch = [7, 9];
    let run = search_graph(&batch).run(asking("q"), RunOptions::new(&steps(2))).expect("no error");
    assert_eq!(run.outcome, Outcome::Stopped(BudgetExceeded::Steps));
    assert_eq!(run.outcome.stopped_by(), Some(BudgetExceeded::Steps));
    assert_eq!(*run.state.useful, [7]);
    assert_eq!((run.path.len(), run.next.as_str()), (2, "retrieve"));

    // A node that meets the cap itself leaves no trace in the state.
    let budget = Budget::new(BudgetLimits { rounds: Some(1), ..BudgetLimits::default() });
    let run = search_graph(&batch).run(asking("q"), RunOptions::new(&budget)).expect("no error");
    assert_eq!(run.outcome, Outcome::Stopped(BudgetExceeded::Rounds));
    assert_eq!((run.path.len(), run.next.as_str()), (2, "retrieve"));

    let budget = Budget::new(BudgetLimits { time: Some(Duration::ZERO), ..BudgetLimits::default() });
    let run = search_graph(&batch).run(asking("q"), RunOptions::new(&budget)).expect("no error");
    assert_eq!((run.outcome, run.path.len()), (Outcome::Stopped(BudgetExceeded::Time), 0));
}

#[test]
fn m18_a_run_can_be_cancelled_from_its_events() {
    let batch = [7, 9];
    let budget = steps(10);
    let mut on_event = |event: &Event<'_, Search>| {
        if matches!(event, Event::NodeFinished { step: 2, .. }) {
            budget.cancel();
        }
    };
    let options = RunOptions::new(&budget).on_event(&mut on_event);
    let run = search_graph(&batch).run(asking("q"), options).expect("no error");
    assert_eq!((run.outcome, run.path.len()), (Outcome::Stopped(BudgetExceeded::Cancelled), 2));
}

#[test]
fn f21_a_node_that_never_ends_by_itself_is_ended_by_the_tokens() {
    let endless = |budget: &Budget, sink: &mut dyn FnMut(&str) -> ControlFlow<()>| -> Result<(), NodeError> {
        loop {
            budget.check()?;
            budget.note_written(1);
            if sink("la ").is_break() {
                return Ok(());
            }
        }
    };
    let graph = Graph::builder("endless")
        .node("generate", |_: &Search, context| {
            endless(context.budget(), &mut |piece| {
                context.progress(piece);
                ControlFlow::Continue(())
            })?;
            nothing()
        })
        .edge(START, "generate")
        .edge("generate", END)
        .compile()
        .expect("sound");
    let mut pieces = 0;
    let mut on_event = |event: &Event<'_, Search>| pieces += u32::from(matches!(event, Event::Progress { .. }));
    let budget = Budget::new(BudgetLimits { tokens: Some(25), ..BudgetLimits::default() });
    let run = graph.run(asking("q"), RunOptions::new(&budget).on_event(&mut on_event)).expect("no error");
    assert_eq!(run.outcome, Outcome::Stopped(BudgetExceeded::Tokens));
    assert_eq!(pieces, 25);
}

#[test]
fn m07_errors_name_the_node() {
    let graph = Graph::builder("faulty")
        .node("read", |_: &Search, _| Err(NodeError::failed("the disk is gone")))
        .edge(START, "read")
        .edge("read", END)
        .compile()
        .expect("sound");
    let mut failed = None;
    let mut on_event = |event: &Event<'_, Search>| {
        if let Event::NodeFailed { node, error, .. } = event {
            failed = Some(format!("{node}: {error}"));
        }
    };
    let error = graph.run(asking("q"), RunOptions::new(&steps(5)).on_event(&mut on_event)).expect_err("fails");
    assert_eq!(error.to_string(), "step 1, read: the disk is gone");
    assert!(matches!(&error, RunError::Node { node, step: 1, source: NodeError::Failed(_) } if node == "read"));
    assert_eq!(failed.as_deref(), Some("read: the disk is gone"));

    let graph = Graph::builder("mislabelled")
        .node("grade", |_: &Search, _| nothing())
        .edge(START, "grade")
        .branch("grade", |_, _| "maybe", &[("yes", END), ("no", END)])
        .compile()
        .expect("sound");
    match graph.run(asking("q"), RunOptions::new(&steps(5))).expect_err("fails") {
        RunError::UndeclaredLabel { node, label, declared } => {
            assert_eq!((node.as_str(), label.as_str()), ("grade", "maybe"));
            assert_eq!(declared, ["yes", "no"]);
        }
        other => panic!("expected an undeclared label, got {other}"),
    }
}

#[test]
fn m07_a_graph_is_shared_between_threads() {
    let batch = [7, 9];
    let graph = search_graph(&batch);
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4)
            .map(|thread| {
                let graph = &graph;
                scope.spawn(move || graph.run(asking(&format!("q{thread}")), RunOptions::new(&steps(10))))
            })
            .collect();
        for (thread, run) in runs.into_iter().enumerate() {
            let run = run.join().expect("no panic").expect("runs");
            assert_eq!(*run.state.queries, [[format!("q{thread} 0")]]);
        }
    });
}

#[test]
fn m09_graphs_and_paths_are_drawn() {
    let batch = [7, 9];
    let graph = search_graph(&batch);
    let expected = "---
title: \"search\"
---
flowchart TD
    start([START])
    n0{{\"retrieve\"}}
    n1[\"transform\"]
    n2[\"answer\"]
    finish([END])
    start --> n0
    n0 -->|\"too few\"| n1
    n0 -->|\"enough\"| n2
    n1 --> n0
    n2 --> finish
";
    assert_eq!(graph.mermaid(), expected);
    let expected = "digraph \"search\" {
    start [label=\"START\", shape=oval];
    n0 [label=\"retrieve\", shape=hexagon];
    n1 [label=\"transform\", shape=box];
    n2 [label=\"answer\", shape=box];
    finish [label=\"END\", shape=oval];
    start -> n0;
    n0 -> n1 [label=\"too few\"];
    n0 -> n2 [label=\"enough\"];
    n1 -> n0;
    n2 -> finish;
}
";
    assert_eq!(graph.dot(), expected);

    let mut run = graph.run(asking("q"), RunOptions::new(&steps(2))).expect("runs");
    run.path.iter_mut().for_each(|step| step.seconds = 0.25);
    assert_eq!(run.trace(), "  1. retrieve -> too few: found 1 (0.25 s)\n  2. transform (0.25 s)\n");
    let expected = "flowchart TD
    start([START])
    start --> s1[\"1. retrieve\"]
    s1 -->|\"too few\"| s2[\"2. transform\"]
    s2 --> stopped([\"stopped before retrieve\"])
";
    assert_eq!(run.mermaid(), expected);
}

#[test]
fn m09_names_can_not_break_a_drawing() {
    let hostile = "a\"]; click n0 <b>\\\n#";
    let graph = Graph::builder("x\"\ny")
        .node(hostile, |_: &Search, _| nothing())
        .edge(START, hostile)
        .branch(hostile, |_, _| "|\"|", &[("|\"|", END)])
        .compile()
        .expect("sound");
    let mermaid = graph.mermaid();
    assert!(mermaid.starts_with("---\ntitle: \"x\\\"\\ny\"\n---\n"), "{mermaid}");
    assert!(mermaid.contains("    n0[\"a#34;]#59; click n0 #60;b#62;#92; #35;\"]\n"), "{mermaid}");
    assert!(mermaid.contains("    n0 -->|\"#124;#34;#124;\"| finish\n"), "{mermaid}");
    let dot = graph.dot();
    assert!(dot.starts_with("digraph \"x\\\" y\" {\n"), "{dot}");
    assert!(dot.contains("    n0 [label=\"a\\\"]; click n0 <b>\\\\ #\", shape=box];\n"), "{dot}");
}

const NODES: [&str; 6] = ["n0", "n1", "n2", "n3", "n4", "n5"];

proptest! {
    /// Branches that never choose the end, on random graphs: each step chooses among all declared ways but that one.
    #[test]
    fn f35_a_graph_that_never_converges_ends_within_its_budget(
        count in 1_usize..=6,
        cap in 0_u64..60,
        ways in prop::collection::vec(prop::collection::vec(0_usize..6, 1..4), 6),
        choices in prop::collection::vec(any::<u32>(), 1..20),
    ) {
        let mut builder = Graph::builder("endless");
        for name in &NODES[..count] {
            builder = builder.node(name, |state: &Search, _| {
                Ok(SearchUpdate { useful: vec![state.useful.len() as u32], ..SearchUpdate::default() })
            });
        }
        builder = builder.edge(START, NODES[0]);
        for (at, ways) in ways.iter().take(count).enumerate() {
            let mut targets: Vec<usize> = ways.iter().map(|to| to % count).collect();
            targets.push((at + 1) % count);
            targets.sort_unstable();
            targets.dedup();
            let mut labels: Vec<(&'static str, &str)> = targets.iter().map(|to| (NODES[*to], NODES[*to])).collect();
            labels.push(("end", END));
            let choices = &choices;
            let decide = move |state: &Search, _: &Budget| {
                let choice = choices[state.useful.len() % choices.len()] as usize;
                NODES[targets[choice % targets.len()]]
            };
            builder = builder.branch(NODES[at], decide, &labels).guard(NODES[at], Guard::Budget);
        }
        let graph = builder.compile().expect("guarded and connected");
        let budget = steps(cap);
        let run = graph.run(asking("q"), RunOptions::new(&budget)).expect("a cap is no error");
        prop_assert_eq!(run.outcome, Outcome::Stopped(BudgetExceeded::Steps));
        prop_assert_eq!(run.path.len() as u64, cap);
        prop_assert_eq!(run.state.useful.len() as u64, cap);
        prop_assert_eq!(budget.spent().steps, cap);
        prop_assert!(run.path.iter().all(|step| step.decision.is_some()));
        for pair in run.path.windows(2) {
            prop_assert_eq!(pair[0].decision.as_deref(), Some(pair[1].node.as_str()));
        }
    }
}
