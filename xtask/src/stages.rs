//! `test`: everything that continuous integration runs, in the order in which it fails fastest.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anchorite_models::Profile;
use anyhow::{Context, Result};

use crate::{install, report};

/// The cargo that runs this program.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

pub(crate) fn test() -> Result<ExitCode> {
    let models = install::setup(&[Profile::Tiny, Profile::Base], None)?;
    let has_nextest = has("nextest");
    let tests: &[&str] = if has_nextest {
        &["nextest", "run", "--workspace"]
    } else {
        &["test", "--workspace", "--lib", "--bins", "--tests"]
    };
    let stages: [(&str, &[&str]); 4] = [
        ("format", &["fmt", "--all", "--check"]),
        ("lints", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
        ("tests", tests),
        ("examples in the documentation", &["test", "--workspace", "--doc"]),
    ];
    for (name, arguments) in stages {
        if !stage(name, cargo().args(arguments), &models)? {
            report::line(&format!("failed: {name} (cargo {})", arguments.join(" ")));
            return Ok(ExitCode::FAILURE);
        }
    }
    if !dependencies(&models)? {
        report::line("failed: dependencies (cargo deny)");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn has(subcommand: &str) -> bool {
    cargo().args([subcommand, "--version"]).output().is_ok_and(|output| output.status.success())
}

/// Licences, forbidden crates and sources, by `deny.toml`; known faults where their list is on this machine, since fetching
/// it needs a network. What is left out is said.
fn dependencies(models: &Path) -> Result<bool> {
    if !has("deny") {
        report::line("── dependencies: skipped, cargo-deny is not installed (`cargo install cargo-deny`)");
        return Ok(true);
    }
    // It looks at the crates of every platform; a build fetches those of its own.
    if !cargo().args(["fetch", "--locked", "--quiet"]).status().is_ok_and(|status| status.success()) {
        report::line("── dependencies: skipped, the crates of other platforms can't be fetched (`cargo fetch`)");
        return Ok(true);
    }
    let mut checks = vec!["deny", "--offline", "check", "licenses", "bans", "sources"];
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let lists = home.and_then(|home| std::fs::read_dir(home.join("advisory-dbs")).ok());
    if lists.is_some_and(|mut lists| lists.next().is_some()) {
        checks.push("advisories");
    } else {
        report::line("── dependencies: known faults are not looked for, their list is not here (`cargo deny fetch`)");
    }
    stage("dependencies", cargo().args(checks), models)
}

/// Runs one command and says how long it took; false if it failed.
fn stage(name: &str, command: &mut Command, models: &Path) -> Result<bool> {
    let begin = Instant::now();
    report::line(&format!("── {name}"));
    let status = command.env("ANCHORITE_MODELS", models).status().with_context(|| format!("can't run {name}"))?;
    let seconds = begin.elapsed().as_secs_f64();
    report::line(&format!("── {name}: {} after {seconds:.1} s", if status.success() { "passed" } else { "failed" }));
    Ok(status.success())
}
