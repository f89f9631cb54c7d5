//! `anchorite ingest`

use anchorite::{Attention, Engine, IngestOptions, IngestProgress, IngestReport};
use anyhow::Result;

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
    };
    let report = engine.ingest(&arguments.place.kb, &arguments.paths, &options, &mut |progress| match progress {
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
    })?;
    bar.finish_and_clear();
    if output.json {
        output.document(&report)?;
    } else {
        show(&report, output)?;
    }
    Ok(if report.generation == 0 { Found::No } else { Found::Yes })
}

fn show(report: &IngestReport, output: &Output) -> Result<()> {
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
            "{} added, {} replaced, {} duplicates, {} unchanged; {} chunks; generation {}; {:.1} s",
            report.added,
            report.replaced,
            report.duplicates,
            report.unchanged + report.metadata_updated,
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
