//! The `anchorite` program.
//!
//! Exit codes: 0 found or answered, 1 nothing found or declined, 2 error, 130 interrupted. Results go to standard output,
//! everything else to standard error.

mod arguments;
mod commands;
mod output;
mod sealing;
mod settings;

use std::process::ExitCode;
#[cfg(unix)]
use std::sync::Arc;

use anchorite::Engine;
use anyhow::Result;
use arguments::{Arguments, Command};
use clap::Parser;
use output::Output;

/// Whether something was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Exit code 0.
    Yes,
    /// Exit code 1.
    No,
    /// Ended by Ctrl-C, in good order: exit code 130.
    Interrupted,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            if error.use_stderr() {
                Output { json: false, quiet: false }.remark(format_args!("anchorite: {}", one_line(&error)));
                return ExitCode::from(2);
            }
            // Help and version; nobody is left to tell if the stream is gone.
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
    };
    if matches!(arguments.command, Command::ExtractChild) {
        // Before any thread is started: the limits hold for the thread that sets them.
        return match anchorite::formats::child::serve() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(2),
        };
    }
    outlive_limits_of_files();
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::try_from_env("ANCHORITE_LOG").unwrap_or_else(|_| "warn".into()))
        .with_writer(std::io::stderr)
        .init();
    match run(&arguments) {
        Ok(Found::Yes) => ExitCode::SUCCESS,
        Ok(Found::No) => ExitCode::from(1),
        Ok(Found::Interrupted) => ExitCode::from(130),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            Output { json: false, quiet: false }.remark(format_args!("anchorite: {error:#}"));
            ExitCode::from(2)
        }
    }
}

/// A file that may not grow any further is an error like any other, and not the end of the process.
fn outlive_limits_of_files() {
    #[cfg(unix)]
    if let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default()) {
        tracing::debug!(%error, "a file that may grow no further will end the process");
    }
}

/// An error of the command line, without the usage that `--help` shows.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let said = lines.filter(|line| !line.is_empty() && !line.starts_with("For more information"));
    let joined = said.map(|line| line.trim_start_matches("error: ")).collect::<Vec<_>>().join(" ");
    format!("{joined}; `anchorite help` shows what there is")
}

fn run(arguments: &Arguments) -> Result<Found> {
    let resolved = settings::resolve(&arguments.global)?;
    let output = Output { json: arguments.global.json, quiet: arguments.global.quiet };
    let engine = Engine::new(resolved.options);
    // The lock comes before anything starts a thread. The proof locks the process itself, to look at it from both sides.
    if let Command::Doctor(doctor) = &arguments.command
        && doctor.prove_offline
    {
        return commands::offline::run(&engine, doctor, resolved.threads, &output);
    }
    if resolved.sealed {
        sealing::seal(&engine, arguments)?;
    }
    anchorite::set_threads(resolved.threads);
    match &arguments.command {
        Command::Ingest(arguments) => commands::ingest::run(&engine, arguments, &output),
        Command::Search(arguments) => commands::search::run(&engine, arguments, &output),
        Command::Ask(arguments) => commands::ask::run(&engine, arguments, &output),
        Command::Embed(arguments) => commands::encode::embed(&engine, arguments, &output),
        Command::Rerank(arguments) => commands::encode::rerank(&engine, arguments, &output),
        Command::Generate(arguments) => commands::generate::run(&engine, arguments, &output),
        Command::Chat(arguments) => commands::chat::run(&engine, arguments, &output),
        Command::Kb(arguments) => commands::kb::run(&engine, &arguments.action, &output),
        Command::Models(arguments) => commands::models::run(&engine, &arguments.action, &output),
        Command::Graph(arguments) => commands::graph::run(arguments, &output),
        Command::Bench(arguments) => commands::bench::run(&engine, &arguments.what, &output),
        Command::Eval(arguments) => commands::eval::run(&engine, arguments, &output),
        Command::Doctor(_) => commands::doctor::run(&engine, &output),
        Command::ExtractChild => Ok(Found::Yes),
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
            || cause
                .downcast_ref::<serde_json::Error>()
                .is_some_and(|e| e.io_error_kind() == Some(std::io::ErrorKind::BrokenPipe))
    })
}
