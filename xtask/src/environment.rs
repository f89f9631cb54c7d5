//! What has to be on the machine: Python 3 with pip (to fetch models), a C++ compiler (to build).

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

/// The Python to call.
pub(crate) struct Python(&'static str);

impl Python {
    /// `python -m pip`.
    pub(crate) fn pip(&self) -> Command {
        let mut command = Command::new(self.0);
        command.args(["-m", "pip"]);
        command
    }
}

fn answers(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn find_python() -> Result<Python, String> {
    let is_three =
        |name: &&str| answers(Command::new(name).arg("--version")).is_some_and(|said| said.starts_with("Python 3"));
    let found = ["python3", "python"].into_iter().find(is_three);
    let python = Python(found.ok_or(
        "Python 3 is missing: install it (`apt install python3 python3-pip`, `brew install python`, or python.org)",
    )?);
    match answers(python.pip().arg("--version")) {
        Some(_) => Ok(python),
        None => Err(format!(
            "pip is missing: `{} -m pip` does not run; install it (`apt install python3-pip`, or `{0} -m ensurepip`)",
            python.0
        )),
    }
}

fn find_compiler() -> Result<(), String> {
    let chosen = std::env::var("CXX").ok().filter(|name| !name.trim().is_empty());
    if let Some(name) = chosen {
        // CXX may carry options behind the program, and a wrapper before it.
        let mut words = name.split_whitespace();
        let runs =
            words.next().is_some_and(|program| answers(Command::new(program).args(words).arg("--version")).is_some());
        return if runs {
            Ok(())
        } else {
            Err(format!("the C++ compiler is missing: CXX is `{name}`, which does not run"))
        };
    }
    if cfg!(windows) {
        // The build finds the compiler of Visual Studio by itself; it is not on the path.
        return Ok(());
    }
    let runs = |name: &&str| answers(Command::new(name).arg("--version")).is_some();
    match ["c++", "g++", "clang++"].into_iter().find(runs) {
        Some(_) => Ok(()),
        None => Err("a C++ compiler is missing: install one (`apt install g++`, `xcode-select --install`)".to_owned()),
    }
}

/// Fails with one line for each thing that is missing.
pub(crate) fn check(python: bool) -> Result<Option<Python>> {
    let mut missing = Vec::new();
    if let Err(reason) = find_compiler() {
        missing.push(reason);
    }
    let found = match python.then(find_python) {
        None => None,
        Some(Ok(found)) => Some(found),
        Some(Err(reason)) => {
            missing.push(reason);
            None
        }
    };
    if !missing.is_empty() {
        bail!(missing.join("\nerror: "));
    }
    Ok(found)
}
