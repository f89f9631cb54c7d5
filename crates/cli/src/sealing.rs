//! `--sealed`: which files a command needs, and the lock that leaves it no others.

use std::fs;
use std::path::{Path, PathBuf};

use anchorite::{Engine, ModelRole};
use anchorite_seal::{Places, lock};
use anyhow::{Context, Result, anyhow};

use crate::arguments::{Arguments, BenchWhat, Command};
use crate::commands::eval::arguments::EvalAction;
use crate::commands::kb::arguments::KbAction;

/// Folder in the cache for files that live as long as the process: SQLite's, when it sorts more than memory should hold.
const TEMPORARY: &str = "temporary";

/// Where programs look for the folder of temporary files, and SQLite before all others.
const TEMPORARY_VARIABLES: [&str; 2] = ["TMPDIR", "SQLITE_TMPDIR"];

/// Locks this process for the rest of its life, with access to what `arguments` name and nothing else.
///
/// # Errors
/// If the system can't do it wholly, or a place that the command needs can't be opened: it is then not run at all.
pub(crate) fn seal(engine: &Engine, arguments: &Arguments) -> Result<()> {
    with_own_temporary_folder()?;
    let mut places = common_places(engine)?;
    command_places(&arguments.command, &mut places)?;
    let report = lock(&places)?.demand()?;
    for finding in &report.findings {
        tracing::info!(mechanism = %finding.mechanism, state = ?finding.state, finding.detail, "sealed");
    }
    Ok(())
}

/// What every command may open: the machine's description, the models to read, and the cache to write to.
pub(crate) fn common_places(engine: &Engine) -> Result<Places> {
    let mut places = Places::of_this_program();
    for root in engine.models().library().roots() {
        places.read(&root.path);
    }
    for folder in ModelRole::ALL.into_iter().filter_map(|role| engine.models().folder(role).ok()) {
        places.read(folder.path);
    }
    let cache = cache()?;
    make(&cache)?;
    places.write(cache);
    Ok(places)
}

/// The user's cache folder of this program, in an absolute form.
pub(crate) fn cache() -> Result<PathBuf> {
    anchorite::model_files::cache_folder().ok_or_else(|| {
        anyhow!("there is no home folder to keep a cache in, and sealing needs one; set HOME or XDG_CACHE_HOME")
    })
}

fn command_places(command: &Command, places: &mut Places) -> Result<()> {
    let read = |path: &Path, places: &mut Places| {
        if path.as_os_str() != "-" {
            places.read(path);
        }
    };
    match command {
        Command::Ingest(ingest) => {
            ingest.paths.iter().for_each(|path| read(path, places));
            // The lock opens folders that are there. Should the command fail, an empty one is left behind.
            make(&ingest.place.kb)?;
            places.write(&ingest.place.kb);
        }
        Command::Search(search) => places.write(&search.place.kb),
        Command::Ask(ask) => places.write(&ask.place.kb),
        Command::Embed(embed) => read(&embed.file, places),
        Command::Rerank(rerank) => read(&rerank.file, places),
        Command::Generate(generate) => {
            [&generate.schema, &generate.grammar].into_iter().flatten().for_each(|path| read(path, places));
        }
        Command::Kb(kb) => {
            places.write(&kb.action.place().kb);
            match &kb.action {
                KbAction::Correct { text, .. } => read(text, places),
                KbAction::Export { folder, .. } => {
                    make(folder)?;
                    places.write(folder);
                }
                _ => {}
            }
        }
        Command::Bench(bench) => match &bench.what {
            BenchWhat::Embed(workload) | BenchWhat::Rerank(workload) => {
                workload.data.iter().for_each(|path| read(path, places));
            }
            BenchWhat::Generate(workload) => {
                [&workload.text, &workload.prompts].into_iter().flatten().for_each(|path| read(path, places));
            }
            BenchWhat::Search(workload) => {
                workload.asked.iter().for_each(|path| read(path, places));
                for folder in std::iter::once(&workload.folder).chain(&workload.save) {
                    make(folder)?;
                    places.write(folder);
                }
            }
        },
        Command::Eval(eval) => eval_places(&eval.action, places)?,
        Command::Chat(_) | Command::Models(_) | Command::Graph(_) | Command::Doctor(_) | Command::ExtractChild => {}
    }
    Ok(())
}

fn eval_places(action: &EvalAction, places: &mut Places) -> Result<()> {
    let (data, cache, written) = match action {
        EvalAction::Retrieval(retrieval) => (&retrieval.data.data, &retrieval.data.cache, &retrieval.runs),
        EvalAction::Grounding(grounding) => (&grounding.data.data, &grounding.data.cache, &None),
        EvalAction::Qa(questions) | EvalAction::Loop(questions) => {
            (&questions.data.data, &questions.data.cache, &questions.results)
        }
        EvalAction::Relevance(relevance) => (&relevance.data.data, &relevance.data.cache, &None),
        EvalAction::Held(held) => {
            if let Some(file) = &held.from {
                places.read(file);
            }
            if let Some(file) = &held.fit {
                places.write(file);
            }
            (&held.data.data, &held.data.cache, &None)
        }
        EvalAction::Make(made) => {
            make(&made.out)?;
            places.write(&made.out);
            places.write(&made.place.kb);
            return Ok(());
        }
        EvalAction::Attacks(attacks) => (&attacks.data, &attacks.cache, &None),
    };
    places.read(data);
    for folder in [written, cache].into_iter().flatten() {
        make(folder)?;
        places.write(folder);
    }
    Ok(())
}

fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("can't make the folder {}", folder.display()))
}

/// Starts this program again with a folder for temporary files that the lock can leave open without leaving open the one
/// that all programs share. Replaces this process, so that there is never an unlocked one beside the locked one.
#[cfg(unix)]
pub(crate) fn with_own_temporary_folder() -> Result<()> {
    use std::os::unix::process::CommandExt;
    let folder = cache()?.join(TEMPORARY);
    make(&folder)?;
    if TEMPORARY_VARIABLES.iter().all(|name| std::env::var_os(name).is_some_and(|value| value == folder.as_os_str())) {
        return Ok(());
    }
    let program = std::env::current_exe().context("can't find this program's own file")?;
    let mut again = std::process::Command::new(program);
    again.args(std::env::args_os().skip(1)).envs(TEMPORARY_VARIABLES.map(|name| (name, &folder)));
    Err(again.exec()).context("can't start this program again with a folder of its own for temporary files")
}

#[cfg(not(unix))]
pub(crate) fn with_own_temporary_folder() -> Result<()> {
    Ok(())
}
