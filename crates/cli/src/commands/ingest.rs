//! `anchorite ingest`

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anchorite::{Attention, Engine, IngestOptions, IngestProgress, IngestReport, WatchEvent};
use anyhow::Result;
use indicatif::ProgressBar;

use crate::Found;
use crate::arguments::Ingest;
use crate::output::Output;

/// Lines shown of each list; the rest is counted. `--json` has all.
const SHOWN: usize = 10;

pub(crate) fn run(engine: &Engine, arguments: &Ingest, output: &Output) -> Result<Found> {
    let bar = output.bar(0, "{spinner} {msg} [{bar:32}] {percent:>3} % {elapsed} (left {eta})");
    bar.set_message("opening the models");
    let options = IngestOptions {
        custody: arguments.custody.resolve()?,
        secrets: arguments.secrets.parse()?,
        actor: arguments.actor.name(),
        password: arguments.password.clone(),
    };
    if arguments.watch {
        return watch(engine, arguments, &options, &bar, output);
    }
    let report = engine
        .ingest(&arguments.place.kb, &arguments.paths, &options, &mut |progress| show_progress(&bar, progress))?;
    bar.finish_and_clear();
    if output.json {
        output.document(&report)?;
    } else {
        show(&report, output)?;
    }
    Ok(if report.generation == 0 { Found::No } else { Found::Yes })
}

/// Ingests, and goes on until Ctrl-C. With `--json` there is a report a line.
fn watch(
    engine: &Engine,
    arguments: &Ingest,
    options: &IngestOptions,
    bar: &ProgressBar,
    output: &Output,
) -> Result<Found> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        // The first time it ends in good order, the second time at once.
        if asked.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })?;
    let mut failure = None;
    engine.watch(&arguments.place.kb, &arguments.paths, options, &stop, &mut |event| {
        let written = match event {
            WatchEvent::Progress(progress) => {
                show_progress(bar, progress);
                Ok(())
            }
            WatchEvent::Ingested(report) => {
                bar.set_length(0);
                bar.set_message("");
                bar.suspend(
                    || if output.json { output.record(report).map_err(Into::into) } else { show(report, output) },
                )
            }
            WatchEvent::Watching { files } => {
                bar.finish_and_clear();
                output.remark(format_args!("watching {files} files; Ctrl-C ends it"));
                Ok(())
            }
        };
        if let Err(error) = written {
            stop.store(true, Ordering::Relaxed);
            failure = Some(error);
        }
    })?;
    failure.map_or(Ok(Found::Interrupted), Err)
}

fn show_progress(bar: &ProgressBar, progress: &IngestProgress) {
    match progress {
        IngestProgress::Reading { bytes, total, documents, chunks } => {
            bar.set_length(total.unwrap_or(*bytes));
            bar.set_position(*bytes);
            bar.set_message(format!("{documents} documents, {chunks} chunks"));
        }
        IngestProgress::Indexing { done, total } => {
            bar.set_length(*total);
            bar.set_position(*done);
            bar.set_message("indexing");
        }
    }
}

fn show(report: &IngestReport, output: &Output) -> Result<()> {
    if let Some(notice) = &report.notice {
        output.remark(notice);
    }
    list("could not be taken in", &report.failed, |item| item.reason.clone(), output);
    list("skipped", &report.skipped, |item| format!("{}: {}", item.source, item.reason), output);
    list("taken in with a remark", &report.warnings, |item| format!("{}: {}", item.source, item.reason), output);
    if report.expired > 0 {
        output.line(format_args!("{} sources had come to the end of their term, and were erased", report.expired))?;
    }
    if report.nothing_new() && report.unchanged == 0 {
        output.line("nothing was taken in: there was nothing to read")?;
    } else if report.nothing_new() {
        output.line(format_args!("nothing new: {} documents were there already", report.unchanged))?;
    } else {
        output.line(format_args!(
            "{} added, {} replaced, {} duplicates, {} unchanged{}; {} chunks; generation {}; {:.1} s",
            report.added,
            report.replaced,
            report.duplicates,
            report.unchanged + report.metadata_updated,
            if report.removed > 0 { format!(", {} removed", report.removed) } else { String::new() },
            report.chunks,
            report.generation,
            report.seconds
        ))?;
    }
    Ok(())
}

fn list(what: &str, items: &[Attention], line: impl Fn(&Attention) -> String, output: &Output) {
    if items.is_empty() {
        return;
    }
    output.remark(format_args!("{} {what}:", items.len()));
    for item in items.iter().take(SHOWN) {
        output.remark(format_args!("  {}", line(item)));
    }
    if items.len() > SHOWN {
        output.remark(format_args!("  and {} more (all of them with --json)", items.len() - SHOWN));
    }
}
