//! Power cuts and failing media at every call of every operation: what was acknowledged is there, the operation at work is
//! there whole or not at all, and the next writer goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use anchorite_core::Document;
use anchorite_store::{KnowledgeBase, Removal, Snapshot, StoreError, Writer};
use tempfile::TempDir;

use crate::disk::{CrashDisk, Fault, Kind, folder_in_memory};
use crate::support::{DIM, cut, eager, embed, invented, model, word};

/// Source to text.
type Model = BTreeMap<String, String>;

#[derive(Clone, Copy, Debug)]
enum Step {
    Add(u64, u64),
    Delete(u64),
    Remove(u64),
    RollBack(i64),
    Refresh,
    Compact,
    Reopen,
}

/// Every kind of operation, with caches of each age.
const STEPS: [Step; 13] = [
    Step::Add(0, 10),
    Step::Add(1, 11),
    Step::Refresh,
    Step::Add(0, 12),
    Step::Delete(1),
    Step::Add(2, 13),
    Step::Reopen,
    Step::Remove(2),
    Step::RollBack(2),
    Step::Compact,
    Step::Add(3, 14),
    Step::RollBack(8),
    Step::Reopen,
];

fn content(source: u64, seed: u64) -> Document {
    invented(&format!("s{source}"), seed, 4)
}

/// A knowledge base on a crash disk, and what it must hold.
struct Bench {
    folder: TempDir,
    disk: CrashDisk,
    /// By generation; the newest is what was acknowledged last.
    acknowledged: BTreeMap<i64, Model>,
    /// What the operation at work would make of it.
    in_work: Option<Model>,
}

impl Bench {
    fn new() -> Self {
        let acknowledged = BTreeMap::from([(0, Model::new())]);
        Self { folder: folder_in_memory(), disk: CrashDisk::new(), acknowledged, in_work: None }
    }

    fn place(&self) -> KnowledgeBase {
        KnowledgeBase::at(self.folder.path()).with_settings(eager()).with_storage(Arc::new(self.disk.clone()))
    }

    fn newest(&self) -> Model {
        self.acknowledged.values().next_back().cloned().unwrap_or_default()
    }

    fn acknowledge(&mut self, generation: i64) {
        let model = self.in_work.take().unwrap_or_else(|| self.newest());
        self.acknowledged.insert(generation, model);
    }

    fn open(&self) -> Result<Writer, StoreError> {
        self.place().create_or_open_writer(&model(), DIM)
    }

    fn take(&mut self, step: Step, writer: &mut Writer) -> Result<(), StoreError> {
        let mut wanted = self.newest();
        match step {
            Step::Add(source, seed) => {
                let document = content(source, seed);
                wanted.insert(document.source.clone(), document.text.clone());
                self.in_work = Some(wanted);
                let mut batch = writer.begin("add")?;
                batch.add(&document, &cut(&document))?;
                let generation = batch.commit()?.id;
                self.acknowledge(generation);
            }
            Step::Delete(source) | Step::Remove(source) => {
                let name = format!("s{source}");
                wanted.remove(&name);
                self.in_work = Some(wanted);
                let removal = if matches!(step, Step::Delete(_)) { Removal::Erase } else { Removal::Restorable };
                let mut batch = writer.begin("remove")?;
                batch.remove_source(&name, removal)?;
                let generation = batch.commit()?.id;
                self.acknowledge(generation);
            }
            Step::RollBack(generation) => {
                let mut batch = writer.begin("roll back")?;
                // What was erased stays away.
                let mut wanted = self.acknowledged[&generation].clone();
                let done = batch.roll_back_to(generation, true)?;
                done.erased.iter().for_each(|source| drop(wanted.remove(source)));
                self.in_work = Some(wanted);
                let generation = batch.commit()?.id;
                self.acknowledge(generation);
            }
            Step::Refresh => drop(writer.refresh_caches(&mut |_, _| ())?),
            Step::Compact => {
                self.in_work = Some(wanted);
                let generation = writer.compact(None, &mut |_, _| ())?.generation;
                self.acknowledge(generation);
            }
            Step::Reopen => {}
        }
        Ok(())
    }

    /// Takes steps from `from` on until one fails; returns how many were taken.
    fn run(&mut self, from: usize) -> Result<(), (usize, StoreError)> {
        let mut open = Some(self.open().map_err(|error| (from, error))?);
        for (at, &step) in STEPS.iter().enumerate().skip(from) {
            if matches!(step, Step::Reopen) {
                open = None;
            }
            let writer = match &mut open {
                Some(writer) => writer,
                None => open.insert(self.open().map_err(|error| (at, error))?),
            };
            self.take(step, writer).map_err(|error| (at, error))?;
        }
        Ok(())
    }

    /// What is there is what was acknowledged, or that and the whole of what was in work.
    fn check(&mut self, what: &str) {
        let snapshot = match self.place().snapshot() {
            Ok(snapshot) => snapshot,
            Err(StoreError::Missing { .. }) if self.acknowledged.len() == 1 => return,
            Err(error) => panic!("{what}: {error}"),
        };
        let found = held(&snapshot);
        let newest = self.newest();
        let is_new = found != newest;
        if is_new {
            assert_eq!(
                Some(&found),
                self.in_work.as_ref(),
                "{what}: neither what was acknowledged nor what was in work"
            );
        }
        let generation = snapshot.generation().id;
        let last = *self.acknowledged.keys().next_back().expect("one");
        assert!(generation == last || generation == last + 1, "{what}: generation {generation} after {last}");
        self.acknowledged.insert(generation, found);
        self.in_work = None;
        let findings = snapshot.verify().findings;
        assert!(findings.iter().all(|finding| finding.kind.can_be_repaired()), "{what}: {findings:?}");
        for at in 0..3 {
            let query = embed(&format!("{} {}", word(at), word(at + 7)));
            let (found, exact) = (snapshot.dense(&query, 5), snapshot.dense_exact(&query, 5));
            let scores = |hits: Vec<anchorite_store::Hit>| hits.iter().map(|hit| hit.score).collect::<Vec<f32>>();
            assert_eq!(scores(found.expect("found")), scores(exact.expect("found")), "{what}");
        }
    }
}

fn held(snapshot: &Snapshot) -> Model {
    let sources = snapshot.sources(0, 100).expect("listed").into_iter().map(|summary| summary.source);
    sources
        .map(|source| {
            let document = snapshot.document_by_source(&source).expect("read").expect("there");
            let chunks = snapshot.chunks_of(document.id).expect("read");
            assert_eq!(chunks.len(), 4, "whole");
            (source, document.text)
        })
        .collect()
}

/// Calls that a whole run takes.
fn calls() -> usize {
    let mut bench = Bench::new();
    bench.disk.fail(None);
    bench.run(0).unwrap_or_else(|(at, error)| panic!("step {at} without a fault: {error}"));
    let calls = bench.disk.calls();
    bench.check("without a fault");
    assert!(bench.place().snapshot().expect("opens").verify().findings.is_empty());
    calls
}

/// Tests that share the calls between them, so that they run beside each other.
const SHARES: usize = 4;

#[test]
fn f01_f03_power_cuts_first_share() {
    cut_the_power(0);
}

#[test]
fn f01_f03_power_cuts_second_share() {
    cut_the_power(1);
}

#[test]
fn f01_f03_power_cuts_third_share() {
    cut_the_power(2);
}

#[test]
fn f01_f03_power_cuts_fourth_share() {
    cut_the_power(3);
}

/// At every call of a share, and again while the next writer recovers.
fn cut_the_power(share: usize) {
    let calls = calls();
    assert!(calls > 100, "{calls} calls");
    for at in (share..calls).step_by(SHARES) {
        let mut bench = Bench::new();
        bench.disk.fail(Some(Fault::PowerCut(at)));
        let stopped = match bench.run(0) {
            Err((stopped, _)) => stopped,
            // The last calls are those of closing, whose failure nobody hears of.
            Ok(()) => STEPS.len(),
        };
        bench.disk.restart(bench.folder.path(), at as u64);
        // Once more while the next one is at work on what it finds.
        bench.disk.fail(Some(Fault::PowerCut(at % 23)));
        let place = bench.place();
        let recovered = place.create_or_open_writer(&model(), DIM);
        drop(recovered.and_then(|mut writer| writer.refresh_caches(&mut |_, _| ())));
        bench.disk.restart(bench.folder.path(), at as u64 + 1_000_000);
        bench.disk.fail(None);
        let what = format!("cut at call {at} in step {stopped}");
        bench.check(&what);
        // And the next writer goes on as if nothing had been.
        let mut writer = bench.open().unwrap_or_else(|error| panic!("{what}: {error}"));
        bench.take(Step::Add(9, 99), &mut writer).unwrap_or_else(|error| panic!("{what}: {error}"));
        writer.repair_caches(&mut |_, _| ()).unwrap_or_else(|error| panic!("{what}: {error}"));
        drop(writer);
        bench.check(&what);
        let findings = bench.place().snapshot().expect("opens").verify().findings;
        assert!(findings.is_empty(), "{what}: {findings:?}");
    }
}

#[test]
fn f04_f05_a_medium_that_fails_once_or_for_ever_loses_nothing() {
    let calls = calls();
    for at in 0..calls {
        // Every call fails once, the ways in turn.
        let (fault, kind) = match at % 3 {
            0 => (Fault::Once(at, Kind::Medium), Kind::Medium),
            1 => (Fault::Once(at, Kind::Full), Kind::Full),
            _ => (Fault::Forever(at, Kind::Full), Kind::Full),
        };
        let mut bench = Bench::new();
        bench.disk.fail(Some(fault));
        let what = format!("{fault:?}");
        if let Err((_, error)) = bench.run(0) {
            let told = match &error {
                StoreError::StorageFull { .. } => kind == Kind::Full,
                StoreError::Sqlite { .. } | StoreError::Io { .. } | StoreError::Index { .. } => true,
                _ => false,
            };
            assert!(told, "{what}: {error:?}");
        }
        bench.disk.fail(None);
        bench.check(&what);
        let mut writer = bench.open().unwrap_or_else(|error| panic!("{what}: {error}"));
        bench.take(Step::Add(9, 99), &mut writer).unwrap_or_else(|error| panic!("{what}: {error}"));
        drop(writer);
        bench.check(&what);
    }
}
