//! Checkpoints: kept per node, read back, resumed, listed; hostile names and damaged files (M08).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anchorite_core::{Budget, BudgetExceeded, BudgetLimits};
use anchorite_graph::{
    Append, AppendBatch, Checkpoint, CheckpointError, Checkpointer, END, Event, FolderCheckpointer, Graph, Guard,
    MemoryCheckpointer, NodeError, Outcome, Overwrite, RunError, RunOptions, START, ThreadId, state,
};
use proptest::prelude::*;

state! {
    /// A loop that collects.
    struct Loop updated by
    /// Its update.
    LoopUpdate {
        hypothesis: Overwrite<String>,
        found: Append<u64>,
        new_queries: AppendBatch<String>,
    }
}

fn budget(steps: u64) -> Budget {
    Budget::new(BudgetLimits { steps: Some(steps), ..BudgetLimits::default() })
}

fn thread(id: &str) -> ThreadId {
    ThreadId::new(id).expect("a good name")
}

/// Goes round `rounds` times. The run of a node that is number `fail_at` in all runs together fails.
fn loop_graph(rounds: usize, fail_at: u64, calls: &AtomicU64) -> Graph<'_, Loop> {
    let call = move || match calls.fetch_add(1, Ordering::Relaxed) + 1 == fail_at {
        true => Err(NodeError::failed("the power failed")),
        false => Ok(()),
    };
    Graph::builder("loop")
        .node("retrieve", move |state: &Loop, context| {
            call()?;
            context.note("one more");
            Ok(LoopUpdate { found: vec![state.found.len() as u64 * 3], ..LoopUpdate::default() })
        })
        .node("transform", move |state: &Loop, _| {
            call()?;
            Ok(LoopUpdate {
                hypothesis: Some(format!("after {}", state.found.len())),
                new_queries: Some(vec![format!("query {}", state.found.len()), "ü \"quoted\"".to_owned()]),
                ..LoopUpdate::default()
            })
        })
        .edge(START, "retrieve")
        .edge("retrieve", "transform")
        .branch(
            "transform",
            move |state, _| if state.found.len() < rounds { "again" } else { "done" },
            &[("again", "retrieve"), ("done", END)],
        )
        .guard("retrieve", Guard::Budget)
        .compile()
        .expect("sound")
}

/// Runs `check` with both kinds.
fn with_each(check: impl Fn(&dyn Checkpointer)) {
    check(&MemoryCheckpointer::new());
    let folder = tempfile::tempdir().expect("temporary folder");
    check(&FolderCheckpointer::new(folder.path().join("checkpoints")));
}

#[test]
fn m08_each_node_leaves_a_checkpoint_that_reads_back() {
    with_each(|checkpointer| {
        let calls = AtomicU64::new(0);
        let graph = loop_graph(2, 0, &calls);
        let id = thread("one");
        let options = RunOptions::new(&budget(20)).checkpoints(checkpointer, &id);
        let run = graph.run(Loop::default(), options).expect("runs");
        let history = graph.history(checkpointer, &id).expect("reads");
        let listed: Vec<_> = history
            .iter()
            .map(|snapshot| {
                let checkpoint = &snapshot.checkpoint;
                (
                    checkpoint.sequence,
                    checkpoint.step,
                    checkpoint.node(),
                    checkpoint.next.as_str(),
                    snapshot.state.found.len(),
                )
            })
            .collect();
        assert_eq!(
            listed,
            [
                (0, 0, START, "retrieve", 0),
                (1, 1, "retrieve", "transform", 1),
                (2, 2, "transform", "retrieve", 1),
                (3, 3, "retrieve", "transform", 2),
                (4, 4, "transform", END, 2),
            ]
        );
        assert_eq!(history[2].checkpoint.record.decision.as_deref(), Some("again"));
        assert_eq!(history[1].checkpoint.record.note, "one more");
        assert!(history[1].checkpoint.unix_millis > 1_600_000_000_000);
        let latest = graph.state(checkpointer, &id).expect("reads").expect("kept");
        assert_eq!(latest.state, run.state);
        assert_eq!(*latest.state.hypothesis, "after 2");
        assert_eq!(latest.state.new_queries.len(), 2);
        assert_eq!(graph.state(checkpointer, &thread("other")).expect("reads"), None);
    });
}

#[test]
fn m08_resuming_at_the_end_changes_nothing() {
    with_each(|checkpointer| {
        let calls = AtomicU64::new(0);
        let graph = loop_graph(2, 0, &calls);
        let id = thread("done");
        let options = || RunOptions::new(&budget(20)).checkpoints(checkpointer, &id);
        let run = graph.run(Loop::default(), options()).expect("runs");
        assert_eq!(graph.resume(options()).expect("resumes"), run);
        assert_eq!(calls.load(Ordering::Relaxed), 4);
    });
}

#[test]
fn m08_a_second_run_in_a_thread_counts_on_and_keeps_the_first() {
    with_each(|checkpointer| {
        let calls = AtomicU64::new(0);
        let graph = loop_graph(1, 0, &calls);
        let id = thread("chat");
        let options = || RunOptions::new(&budget(20)).checkpoints(checkpointer, &id);
        graph.run(Loop::default(), options()).expect("runs");
        let second = graph.run(Loop::default(), options()).expect("runs");
        let history = checkpointer.history(&id).expect("reads");
        let numbers: Vec<_> = history.iter().map(|it| (it.sequence, it.run, it.step)).collect();
        assert_eq!(numbers, [(0, 0, 0), (1, 0, 1), (2, 0, 2), (3, 3, 0), (4, 3, 1), (5, 3, 2)]);
        assert_eq!(graph.resume(options()).expect("resumes").path, second.path);
    });
}

#[test]
fn m08_threads_are_listed_and_forgotten() {
    with_each(|checkpointer| {
        let calls = AtomicU64::new(0);
        let graph = loop_graph(1, 0, &calls);
        assert_eq!(checkpointer.threads().expect("lists"), []);
        for id in ["b", "a", "A"] {
            let id = thread(id);
            graph.run(Loop::default(), RunOptions::new(&budget(9)).checkpoints(checkpointer, &id)).expect("runs");
        }
        assert_eq!(checkpointer.threads().expect("lists"), [thread("A"), thread("a"), thread("b")]);
        checkpointer.forget(&thread("a")).expect("forgets");
        checkpointer.forget(&thread("never there")).expect("forgets");
        assert_eq!(checkpointer.threads().expect("lists"), [thread("A"), thread("b")]);
        assert_eq!(checkpointer.history(&thread("a")).expect("reads"), []);
    });
}

#[test]
fn m08_a_run_that_was_stopped_by_its_budget_goes_on_with_a_new_one() {
    with_each(|checkpointer| {
        let calls = AtomicU64::new(0);
        let graph = loop_graph(3, 0, &calls);
        let id = thread("stopped");
        let options = |steps| RunOptions::new(&budget(steps)).checkpoints(checkpointer, &id);
        let stopped = graph.run(Loop::default(), options(3)).expect("no error");
        assert_eq!(stopped.outcome, Outcome::Stopped(BudgetExceeded::Steps));
        let mut started = None;
        let mut on_event = |event: &Event<'_, Loop>| {
            if let Event::RunStarted { resumed_after, next, .. } = event {
                started = Some((*resumed_after, (*next).to_owned()));
            }
        };
        let resumed = graph.resume(options(3).on_event(&mut on_event)).expect("resumes");
        assert_eq!(started, Some((Some(3), "transform".to_owned())));
        assert_eq!(resumed.outcome, Outcome::Finished);
        assert_eq!(resumed.path.len(), 6);
        assert_eq!(resumed.path[..3], stopped.path);
    });
}

#[test]
fn m08_what_can_not_be_resumed_says_why() {
    with_each(|checkpointer| {
        let calls = AtomicU64::new(0);
        let graph = loop_graph(1, 0, &calls);
        let id = thread("t");
        let options = || RunOptions::new(&budget(9)).checkpoints(checkpointer, &id);
        assert!(matches!(graph.resume(options()), Err(RunError::NothingToResume { thread }) if thread == "t"));
        assert!(matches!(graph.resume(RunOptions::new(&budget(9))), Err(RunError::NoThread)));

        graph.run(Loop::default(), options()).expect("runs");
        let other = Graph::builder("other")
            .node("retrieve", |_: &Loop, _| Ok(LoopUpdate::default()))
            .edge(START, "retrieve")
            .edge("retrieve", END)
            .compile()
            .expect("sound");
        assert!(matches!(other.resume(options()), Err(RunError::OtherGraph { graph, .. }) if graph == "loop"));

        let mut foreign = checkpointer.latest(&id).expect("reads").expect("kept");
        foreign.sequence += 1;
        foreign.state_json = "{\"found\": \"not a list\"}".to_owned();
        checkpointer.put(&id, &foreign).expect("keeps");
        let error = graph.state(checkpointer, &id).expect_err("not this state");
        assert!(matches!(error, RunError::Read { sequence, .. } if sequence == foreign.sequence), "{error}");
    });
}

#[test]
fn m08_two_runs_can_not_write_the_same_checkpoint() {
    with_each(|checkpointer| {
        let calls = AtomicU64::new(0);
        let id = thread("shared");
        let options = RunOptions::new(&budget(9)).checkpoints(checkpointer, &id);
        loop_graph(1, 0, &calls).run(Loop::default(), options).expect("runs");
        let latest = checkpointer.latest(&id).expect("reads").expect("kept");
        let again = Checkpoint { state_json: "{}".to_owned(), ..latest.clone() };
        let error = checkpointer.put(&id, &again).expect_err("taken");
        assert!(matches!(error, CheckpointError::Conflict { sequence, .. } if sequence == latest.sequence));
        assert_eq!(checkpointer.latest(&id).expect("reads"), Some(latest));
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A run that fails anywhere and is resumed knows in the end what an undisturbed one knows.
    #[test]
    fn m08_resuming_after_an_error_gives_the_same_state(rounds in 1_usize..5, fail in any::<prop::sample::Index>(), on_disk: bool) {
        let undisturbed = AtomicU64::new(0);
        let expected = loop_graph(rounds, 0, &undisturbed)
            .run(Loop::default(), RunOptions::new(&budget(40)))
            .expect("runs");

        let folder = tempfile::tempdir().expect("temporary folder");
        let checkpointer: Box<dyn Checkpointer> =
            if on_disk { Box::new(FolderCheckpointer::new(folder.path())) } else { Box::new(MemoryCheckpointer::new()) };
        let fail_at = fail.index(rounds * 2) as u64 + 1;
        let calls = AtomicU64::new(0);
        let graph = loop_graph(rounds, fail_at, &calls);
        let id = thread("resumed");
        let options = || RunOptions::new(&budget(40)).checkpoints(checkpointer.as_ref(), &id);
        let error = graph.run(Loop::default(), options()).expect_err("one node fails");
        let failed_at = match error { RunError::Node { step, .. } => step, other => panic!("not the node: {other}") };
        prop_assert_eq!(failed_at, fail_at);
        let kept = checkpointer.latest(&id).expect("reads").expect("the state before the error is kept");
        prop_assert_eq!(kept.step, fail_at - 1);

        let resumed = graph.resume(options()).expect("resumes");
        prop_assert_eq!(resumed.state, expected.state);
        prop_assert_eq!(resumed.outcome, expected.outcome);
        let nodes = |path: &[anchorite_core::StepRecord]| {
            path.iter().map(|step| (step.node.clone(), step.decision.clone())).collect::<Vec<_>>()
        };
        prop_assert_eq!(nodes(&resumed.path), nodes(&expected.path));
        prop_assert_eq!(calls.load(Ordering::Relaxed), rounds as u64 * 2 + 1);
    }
}

#[test]
fn m08_hostile_thread_names_stay_in_the_folder() {
    for bad in ["", "a\nb", "nul\0", "\u{7f}", &"x".repeat(ThreadId::LONGEST + 1)] {
        assert!(ThreadId::new(bad).is_err(), "{bad:?}");
    }
    let outer = tempfile::tempdir().expect("temporary folder");
    let checkpointer = FolderCheckpointer::new(outer.path().join("inner"));
    let calls = AtomicU64::new(0);
    let graph = loop_graph(1, 0, &calls);
    let mut names =
        ["..", ".", "../../etc/passwd", "/etc/passwd", "C:\\x", "a/b", "%2e%2e", "CON", "con", "ключ", "a b"]
            .map(thread)
            .to_vec();
    names.push(thread(&"/".repeat(ThreadId::LONGEST)));
    for id in &names {
        graph.run(Loop::default(), RunOptions::new(&budget(9)).checkpoints(&checkpointer, id)).expect("runs");
    }
    names.sort();
    assert_eq!(checkpointer.threads().expect("lists"), names);
    let outside: Vec<_> = fs::read_dir(outer.path()).expect("lists").map(|it| it.expect("entry").file_name()).collect();
    assert_eq!(outside, ["inner"]);
    assert_eq!(fs::read_dir(outer.path().join("inner")).expect("lists").count(), names.len());
}

/// A thread on disk, and the path of its latest checkpoint.
fn kept(folder: &Path) -> (FolderCheckpointer, ThreadId, PathBuf) {
    let checkpointer = FolderCheckpointer::new(folder);
    let calls = AtomicU64::new(0);
    let id = thread("t");
    let options = RunOptions::new(&budget(9)).checkpoints(&checkpointer, &id);
    loop_graph(1, 0, &calls).run(Loop::default(), options).expect("runs");
    (checkpointer, id, folder.join("thread-t").join(format!("{:020}.json", 2)))
}

#[test]
fn m08_a_damaged_checkpoint_is_named() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let (checkpointer, id, path) = kept(folder.path());
    let good = fs::read(&path).expect("reads");
    for at in (0..good.len()).step_by(7).chain([good.len() - 1]) {
        let mut flipped = good.clone();
        flipped[at] ^= 0x40;
        fs::write(&path, &flipped).expect("writes");
        let error = checkpointer.latest(&id).expect_err("a flipped bit");
        match &error {
            CheckpointError::Damaged { path: named, .. } | CheckpointError::Version { path: named, .. } => {
                assert_eq!(*named, path);
            }
            other => panic!("expected damage, got {other}"),
        }
        fs::write(&path, &good[..at]).expect("writes");
        let error = checkpointer.history(&id).expect_err("cut short");
        assert!(matches!(error, CheckpointError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("00000000000000000002.json"), "{error}");
    }
    fs::write(&path, &good).expect("writes");
    assert!(checkpointer.latest(&id).expect("reads").is_some());

    let newer = String::from_utf8(good).expect("text").replacen("checkpoint 1 ", "checkpoint 2 ", 1);
    fs::write(&path, newer).expect("writes");
    let error = checkpointer.latest(&id).expect_err("too new");
    assert!(matches!(error, CheckpointError::Version { found: 2, known: 1, .. }), "{error}");
}

#[test]
fn m08_a_checkpoint_in_the_wrong_place_is_noticed() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let (checkpointer, id, path) = kept(folder.path());
    fs::copy(&path, path.with_file_name(format!("{:020}.json", 9))).expect("copies");
    assert!(matches!(checkpointer.latest(&id), Err(CheckpointError::Damaged { .. })));
    let other = folder.path().join("thread-u");
    fs::create_dir(&other).expect("makes a folder");
    fs::copy(&path, other.join(format!("{:020}.json", 2))).expect("copies");
    assert!(matches!(checkpointer.latest(&thread("u")), Err(CheckpointError::Damaged { .. })));
}

#[test]
fn m08_an_unfinished_file_is_no_checkpoint() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let (checkpointer, id, path) = kept(folder.path());
    fs::write(path.with_file_name("unfinished"), b"anchorite-checkpoint 1 beef").expect("writes");
    fs::write(path.with_file_name("notes.json"), b"{}").expect("writes");
    fs::write(folder.path().join("stray"), b"").expect("writes");
    let latest = checkpointer.latest(&id).expect("reads").expect("kept");
    assert_eq!(latest.sequence, 2);
    let next = Checkpoint { sequence: 3, ..latest };
    checkpointer.put(&id, &next).expect("keeps");
    assert_eq!(checkpointer.latest(&id).expect("reads"), Some(next));
    assert!(!path.with_file_name("unfinished").exists());
    assert_eq!(checkpointer.threads().expect("lists"), [id]);
}

#[test]
fn m08_a_folder_that_can_not_be_made_is_named() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = folder.path().join("plain file");
    fs::write(&file, b"").expect("writes");
    let checkpointer = FolderCheckpointer::new(&file);
    let calls = AtomicU64::new(0);
    let id = thread("t");
    let options = RunOptions::new(&budget(9)).checkpoints(&checkpointer, &id);
    let error = loop_graph(1, 0, &calls).run(Loop::default(), options).expect_err("no folder");
    assert!(matches!(&error, RunError::Checkpoint(CheckpointError::Io { .. })), "{error}");
    assert!(error.to_string().contains("plain file"), "{error}");
}
