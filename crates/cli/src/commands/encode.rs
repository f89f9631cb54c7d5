//! `anchorite embed` and `anchorite rerank`: lines in, lines out.

use std::fs::File;
use std::io::{BufRead, BufReader, stdin};
use std::path::Path;

use anchorite::Engine;
use anchorite::core::{Embedder, Reranker, Role};
use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use crate::Found;
use crate::arguments::{Embed, Rerank};
use crate::output::Output;

/// Texts embedded together; enough for every thread to have full batches, few enough to stream.
const BATCH: usize = 1024;

/// A line of input: its text, and the record to give back.
struct Line {
    /// From 1, in the file.
    number: usize,
    text: String,
    id: Option<Value>,
}

fn lines(path: &Path) -> Result<Box<dyn Iterator<Item = Result<Line>>>> {
    let name = path.display().to_string();
    let reader: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(BufReader::new(stdin()))
    } else {
        Box::new(BufReader::new(File::open(path).with_context(|| format!("can't read {name}"))?))
    };
    let parsed = reader.lines().zip(1..).map(move |(line, number)| {
        let line = line.with_context(|| format!("{name}, line {number}"))?;
        parse(&line, number).map_err(|problem| anyhow!("{name}, line {number}: {problem}"))
    });
    Ok(Box::new(parsed.filter_map(Result::transpose)))
}

/// A plain line, or a record with its text; nothing for a blank line.
fn parse(line: &str, number: usize) -> Result<Option<Line>, String> {
    if line.trim().is_empty() {
        return Ok(None);
    }
    if !line.trim_start().starts_with('{') {
        return Ok(Some(Line { number, text: line.to_owned(), id: None }));
    }
    let record: Value =
        serde_json::from_str(line).map_err(|error| format!("not JSON, from column {} on", error.column()))?;
    let text = record.get("text").and_then(Value::as_str).ok_or("the record has no \"text\"")?.to_owned();
    if text.trim().is_empty() {
        return Err("the record's \"text\" is blank".to_owned());
    }
    let id = record.get("_id").or_else(|| record.get("id")).cloned();
    Ok(Some(Line { number, text, id }))
}

pub(crate) fn embed(engine: &Engine, arguments: &Embed, output: &Output) -> Result<Found> {
    let embedder = engine.models().embedder()?;
    let role = if arguments.query { Role::Query } else { Role::Document };
    let mut found = Found::No;
    let mut lines = lines(&arguments.file)?;
    loop {
        let batch = lines.by_ref().take(BATCH).collect::<Result<Vec<_>>>()?;
        if batch.is_empty() {
            break;
        }
        found = Found::Yes;
        let texts: Vec<&str> = batch.iter().map(|line| line.text.as_str()).collect();
        for (line, vector) in batch.iter().zip(embedder.embed(role, &texts)?) {
            let mut record = json!({ "embedding": vector.as_slice() });
            if let Some(id) = &line.id {
                record = json!({ "_id": id, "embedding": vector.as_slice() });
            }
            output.record(&record)?;
        }
    }
    Ok(found)
}

pub(crate) fn rerank(engine: &Engine, arguments: &Rerank, output: &Output) -> Result<Found> {
    if arguments.query.trim().is_empty() {
        bail!("the query is empty; write what you look for");
    }
    let Some(reranker) = engine.models().reranker()? else {
        bail!("there is no reranker; run `cargo xtask setup`, or point `--models DIR` to a folder that has one");
    };
    let batch = lines(&arguments.file)?.collect::<Result<Vec<_>>>()?;
    let texts: Vec<&str> = batch.iter().map(|line| line.text.as_str()).collect();
    let scores = reranker.score(&arguments.query, &texts)?;
    let mut order: Vec<usize> = (0..batch.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    for (rank, index) in order.into_iter().enumerate() {
        let line = &batch[index];
        let mut record = json!({ "rank": rank + 1, "score": scores[index], "line": line.number, "text": line.text });
        if let Some(id) = &line.id {
            record["_id"] = id.clone();
        }
        output.record(&record)?;
    }
    Ok(if batch.is_empty() { Found::No } else { Found::Yes })
}
