//! Settings from the command line, the environment and `anchorite.toml`, in this order of weight.

use std::path::Path;

use anchorite::formats::child::Program;
use anchorite::{EngineOptions, Limits, Settings};
use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;

use crate::arguments::{EXTRACT_CHILD, Global};

const FILE: &str = "anchorite.toml";

/// The settings file. Every field may be left out; unknown ones are refused, so that a slip of the pen is seen.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    models: Option<std::path::PathBuf>,
    profile: Option<String>,
    embedder: Option<String>,
    reranker: Option<String>,
    generator: Option<String>,
    device: Option<String>,
    precision: Option<String>,
    threads: Option<usize>,
    sealed: bool,
    limits: Limits,
    #[serde(rename = "loop")]
    settings: Settings,
}

/// What was asked for, wherever it stood.
pub(crate) struct Resolved {
    /// What the engine is set up with.
    pub(crate) options: EngineOptions,
    /// On how many threads it computes.
    pub(crate) threads: Option<usize>,
    /// Whether the process is locked before it does anything.
    pub(crate) sealed: bool,
}

pub(crate) fn resolve(global: &Global) -> Result<Resolved> {
    let path = global.config.as_deref().unwrap_or(Path::new(FILE));
    let file = read(path, global.config.is_some())?;
    // Where a name came from, for the error that refuses it.
    let origin = |given: &Option<String>, option: &str| match given {
        Some(_) => option.to_owned(),
        None => path.display().to_string(),
    };
    let text = |given: &Option<String>, stored: Option<String>| given.clone().or(stored);
    let profile = match text(&global.profile, file.profile) {
        Some(name) => name.parse().map_err(|error| anyhow!("{}: {error}", origin(&global.profile, "--profile")))?,
        None => anchorite::Profile::default(),
    };
    let device = match text(&global.device, file.device) {
        Some(name) => name.parse().with_context(|| origin(&global.device, "--device"))?,
        None => anchorite::DeviceChoice::default(),
    };
    let precision = match text(&global.precision, file.precision) {
        Some(name) => name.parse().with_context(|| origin(&global.precision, "--precision"))?,
        None => anchorite::Precision::default(),
    };
    let options = EngineOptions {
        models: global.models.clone().or(file.models),
        profile,
        embedder: text(&global.embedder, file.embedder),
        reranker: text(&global.reranker, file.reranker),
        generator: text(&global.generator, file.generator),
        device,
        precision,
        limits: file.limits,
        settings: file.settings,
        extractor: own_extractor(),
    };
    Ok(Resolved { options, threads: global.threads.or(file.threads), sealed: global.sealed || file.sealed })
}

/// This program again, as the one that takes files apart; `None` if it can't be found any more.
fn own_extractor() -> Option<Program> {
    let path = std::env::current_exe().ok().filter(|path| path.is_file())?;
    Some(Program { path, arguments: vec![EXTRACT_CHILD.to_owned()] })
}

fn read(path: &Path, given: bool) -> Result<File> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !given => return Ok(File::default()),
        Err(error) => bail!("settings file {}: {error}; check the path given with --config", path.display()),
    };
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        anyhow!("{}, line {line}: {}", path.display(), error.message().replace('\n', " "))
    })
}
