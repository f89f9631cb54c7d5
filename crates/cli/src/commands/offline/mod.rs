//! `anchorite doctor --prove-offline`: the process is locked, what is forbidden is tried, and a search runs all the same.

mod search;
mod show;

use std::path::{Path, PathBuf};

use anchorite::Engine;
use anchorite_seal::evidence::{
    Attempt, Descriptor, DescriptorKind, Interface, file_attempts, interfaces, kernel_status, libraries,
    network_attempts, network_crates_in, open_descriptors,
};
use anchorite_seal::{NETWORK_CRATES, Report, lock};
use anyhow::{Context, Result};
use serde::Serialize;

use crate::Found;
use crate::arguments::Doctor;
use crate::output::Output;
use crate::sealing;
use search::Searched;

/// What this program was built from: every crate of the workspace and its version, as Cargo resolved them.
const LOCK_FILE: &str = include_str!("../../../../../Cargo.lock");

/// Any user's programs may read it, so that only the lock can be what refuses.
const OUTSIDE: &str = "/etc/passwd";

/// All that was found, in the order in which it was.
#[derive(Serialize)]
struct Evidence {
    proved: bool,
    /// Why not, in a line each; empty if it was.
    lacking: Vec<String>,
    program: Program,
    before: Before,
    lock: Report,
    inside: Inside,
    linked: Linked,
}

/// What made the evidence, and where.
#[derive(Serialize)]
struct Program {
    version: &'static str,
    file: PathBuf,
    sha256: String,
    system: String,
    time: String,
}

/// What was seen before the lock, so that it shows what the lock changed.
#[derive(Serialize)]
struct Before {
    interfaces: Vec<Interface>,
    descriptors: Vec<Descriptor>,
    sockets: Vec<Attempt>,
}

/// What was tried and seen inside the lock.
#[derive(Serialize)]
struct Inside {
    network: Vec<Attempt>,
    files: Vec<Attempt>,
    search: Searched,
    /// After the search, with all of its threads: what the kernel records of each, and what is open.
    kernel: Vec<KernelRecord>,
    descriptors: Vec<Descriptor>,
}

#[derive(Serialize)]
struct KernelRecord {
    record: String,
    threads: usize,
}

/// What the program is made of.
#[derive(Serialize)]
struct Linked {
    /// Crates in the lock file of the build: those of the program, of its tests, and of other systems.
    crates: usize,
    /// Names of crates that make connections, which were looked for among them.
    looked_for: usize,
    network_crates: Vec<&'static str>,
    libraries: Vec<PathBuf>,
}

pub(crate) fn run(engine: &Engine, arguments: &Doctor, threads: Option<usize>, output: &Output) -> Result<Found> {
    sealing::with_own_temporary_folder()?;
    let program = program()?;
    let before = Before {
        interfaces: interfaces(),
        descriptors: open_descriptors().unwrap_or_default(),
        sockets: network_attempts().into_iter().filter(|attempt| attempt.what.starts_with("make")).collect(),
    };
    let mut places = sealing::common_places(engine)?;
    if let Some(kb) = &arguments.kb {
        places.write(kb);
    }
    let report = lock(&places)?;
    anchorite::set_threads(threads);
    let network = network_attempts();
    let files = file_attempts(Path::new(OUTSIDE), &shared_folder());
    let search = search::run(engine, arguments);
    let kernel = kernel_status().into_iter().map(|(record, threads)| KernelRecord { record, threads }).collect();
    let inside = Inside { network, files, search, kernel, descriptors: open_descriptors().unwrap_or_default() };
    let (crates, network_crates) = network_crates_in(LOCK_FILE);
    let linked = Linked { crates, looked_for: NETWORK_CRATES.len(), network_crates, libraries: libraries() };
    let lacking = lacking(&report, &inside, &linked);
    let evidence = Evidence { proved: lacking.is_empty(), lacking, program, before, lock: report, inside, linked };
    if output.json {
        output.document(&evidence)?;
    } else {
        show::all(&evidence, output)?;
    }
    Ok(if evidence.proved { Found::Yes } else { Found::No })
}

/// A folder that every program may write to. The variable that names it was changed for this process.
fn shared_folder() -> PathBuf {
    if cfg!(unix) { PathBuf::from("/tmp") } else { std::env::temp_dir() }
}

fn program() -> Result<Program> {
    let file = std::env::current_exe().context("can't find this program's own file")?;
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Ok(Program {
        version: env!("CARGO_PKG_VERSION"),
        sha256: anchorite::model_files::hash_file(&file, &mut |_| ())?,
        file,
        system: format!("{} {} {}", std::env::consts::OS, kernel.trim(), std::env::consts::ARCH).replace("  ", " "),
        time: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    })
}

/// What is missing for the claim that this process can reach nothing.
fn lacking(report: &Report, inside: &Inside, linked: &Linked) -> Vec<String> {
    let mut lacking = Vec::new();
    if let Err(error) = report.clone().demand() {
        lacking.push(error.to_string());
    }
    let tried = inside.network.iter().chain(&inside.files);
    lacking.extend(tried.filter(|one| !one.is_refused()).map(|one| format!("not refused: {}", one.what)));
    if inside.network.is_empty() {
        lacking.push("no socket was tried on this system".to_owned());
    }
    if let Some(problem) = &inside.search.problem {
        lacking.push(format!("no search ran inside the lock: {problem}"));
    }
    let sockets = inside.descriptors.iter().filter(|one| one.kind == DescriptorKind::NetworkSocket);
    lacking.extend(sockets.map(|one| format!("descriptor {} is {}", one.number, one.target)));
    lacking.extend(linked.network_crates.iter().map(|name| format!("the build knows the crate {name}")));
    lacking
}
