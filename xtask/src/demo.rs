//! `demo`: from a fresh checkout to a cited answer.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anchorite_models::Profile;
use anyhow::{Context, Result, bail};

use crate::stages::cargo;
use crate::{install, report};

const QUESTION: &str = "How much can I receive if I am denied boarding, for flights from Delhi to Munich?";

pub(crate) fn demo(profile: Profile) -> Result<ExitCode> {
    let models = install::setup(&[profile], None)?;
    let checkout = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let checkout = checkout.parent().context("this program was built outside a checkout")?;
    let documents = Path::new("data").join("documents");
    if !checkout.join(&documents).is_dir() {
        bail!("{} is missing; run this in a whole checkout", checkout.join(&documents).display());
    }
    // This program lies where the build puts programs, whatever the settings say: …/debug/xtask.
    let program = std::env::current_exe().context("can't find this program's own file")?;
    let target =
        program.parent().and_then(|folder| folder.parent()).context("this program lies in no target folder")?;
    let anchorite = target.join("debug").join(format!("anchorite{}", std::env::consts::EXE_SUFFIX));
    let knowledge_base = target.join("demo.kb");

    let mut build = cargo();
    // The whole workspace is selected, so that features are as in `test` and nothing is built twice.
    build.args(["build", "--workspace", "--bin", "anchorite"]).current_dir(checkout);
    let mut ingest = Command::new(&anchorite);
    ingest.arg("ingest").arg(&documents).arg("--kb").arg(&knowledge_base);
    let mut ask = Command::new(&anchorite);
    ask.args(["ask", QUESTION, "--kb"]).arg(&knowledge_base).arg("--trace");
    for command in [&mut ingest, &mut ask] {
        command.current_dir(checkout).env("ANCHORITE_MODELS", &models).env("ANCHORITE_PROFILE", profile.as_str());
    }
    for command in [&mut build, &mut ingest, &mut ask] {
        report::line(&format!("\n$ {}", shown(command)));
        let status = command.status().with_context(|| format!("can't run {}", command.get_program().display()))?;
        if !status.success() {
            // The codes of the program: 1 declined, 2 error.
            let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2);
            return Ok(ExitCode::from(code));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The command as a person would type it.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let quoted = words.map(|word| {
        let word = word.to_string_lossy();
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./\\:=".contains(letter);
        if word.chars().all(plain) { word.into_owned() } else { format!("\"{word}\"") }
    });
    quoted.collect::<Vec<String>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_as_they_can_be_typed() {
        let mut command = Command::new("anchorite");
        command.args(["ask", "How much?", "--kb", "a/b.kb"]);
        assert_eq!(shown(&command), "anchorite ask \"How much?\" --kb a/b.kb");
    }
}
