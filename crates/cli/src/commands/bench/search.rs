//! `anchorite bench search`

use anchorite::{Engine, SearchRow, SearchWorkload, bench_search};
use anyhow::{Result, bail};

use super::{TextLine, read};
use crate::Found;
use crate::arguments::BenchSearch;
use crate::output::Output;

pub(super) fn run(engine: &Engine, arguments: &BenchSearch, output: &Output) -> Result<Found> {
    if let Some(asked) = &arguments.asked {
        let lines: Vec<TextLine> = read(asked, arguments.queries)?;
        let queries: Vec<String> = lines.into_iter().map(|line| line.text).collect();
        if queries.is_empty() {
            bail!("{} has no lines; nothing can be asked", asked.display());
        }
        let rows = engine.bench_queries(&arguments.folder, &queries)?;
        if output.json {
            output.document(&rows)?;
        } else {
            table(&rows, output)?;
        }
        return Ok(Found::Yes);
    }
    let workload = SearchWorkload {
        vectors: arguments.vectors,
        dim: arguments.dim,
        queries: arguments.queries,
        folder: arguments.folder.clone(),
        save: arguments.save.clone(),
    };
    let report = bench_search(&workload, &mut |stage| output.remark(stage))?;
    if output.json {
        output.document(&report)?;
        return Ok(Found::Yes);
    }
    output.line(format_args!("{} vectors of {} components", report.vectors, report.dim))?;
    if let Some(built) = &report.built {
        output.line(format_args!(
            "{:.0}/s acknowledged by the database, {:.0}/s into the graph, {:.0}/s into the index of words",
            built.ingest_per_second, built.graph_per_second, built.words_per_second
        ))?;
    }
    output.line(format_args!(
        "opened and first found by meaning in {:.0} ms, by words in {:.0} ms; {:.0} bytes of graph and {:.0} of database a vector",
        report.open_ms, report.open_words_ms, report.graph_bytes_per_vector, report.database_bytes_per_vector
    ))?;
    table(&report.rows, output)?;
    Ok(Found::Yes)
}

fn table(rows: &[SearchRow], output: &Output) -> Result<()> {
    output.line(format_args!("{:<24} {:>8} {:>8} {:>8}", "search", "p50 ms", "p99 ms", "recall"))?;
    for row in rows {
        let recall = row.recall.map_or_else(|| "-".to_owned(), |recall| format!("{recall:.3}"));
        output.line(format_args!("{:<24} {:>8.2} {:>8.2} {recall:>8}", row.search, row.p50_ms, row.p99_ms))?;
    }
    Ok(())
}
