//! `test`: everything that continuous integration runs, in the order in which it fails fastest.

use std::path::Path;
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
    let has_nextest = cargo().args(["nextest", "--version"]).output().is_ok_and(|output| output.status.success());
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
    Ok(ExitCode::SUCCESS)
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
