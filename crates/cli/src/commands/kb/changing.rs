//! Changes of a knowledge base by its owner.

use std::io::Read;
use std::path::Path;

use anchorite::store::{Custody, KnowledgeBase, Removal};
use anchorite::{Engine, Error, IngestOptions};
use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};

use crate::Found;
use crate::output::Output;

pub(super) fn delete(kb: &Path, names: &[String], restorable: bool, actor: &str, output: &Output) -> Result<Found> {
    let removal = if restorable { Removal::Restorable } else { Removal::Erase };
    let report = match anchorite::delete(kb, names, removal, actor) {
        Err(error @ Error::NoSuchDocument { .. }) => return Err(anyhow!("nothing was deleted: {error}")),
        other => other?,
    };
    if output.json {
        output.document(&report)?;
    } else {
        let deleted = &report.deleted;
        output.line(format_args!(
            "{} sources, {} documents and {} chunks deleted; generation {}",
            deleted.sources, deleted.documents, deleted.chunks, report.generation
        ))?;
        if !report.threads.is_empty() {
            output.line(format_args!("threads that had read them went too: {}", report.threads.join(", ")))?;
        }
        if removal == Removal::Erase && !report.reclaimed {
            output.remark("words of them may still be in the search indexes; `anchorite kb compact` builds these anew");
        }
    }
    Ok(Found::Yes)
}

pub(super) fn correct(
    engine: &Engine,
    kb: &Path,
    source: &str,
    file: &Path,
    actor: String,
    output: &Output,
) -> Result<Found> {
    let text = if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("standard input")?;
        text
    } else {
        std::fs::read_to_string(file).with_context(|| format!("{}: can't be read as text", file.display()))?
    };
    let report = engine.correct(kb, source, &text, &IngestOptions { actor, ..IngestOptions::default() })?;
    if output.json {
        output.document(&report)?;
    } else if report.nothing_new() {
        output.line("nothing was changed: the text is the same")?;
    } else {
        output.line(format_args!("{source} corrected: {} chunks; generation {}", report.chunks, report.generation))?;
    }
    Ok(Found::Yes)
}

pub(super) fn set(
    kb: &Path,
    sources: &[String],
    custody: &Custody,
    metadata: &[String],
    actor: &str,
    output: &Output,
) -> Result<Found> {
    let changes = metadata.iter().map(|pair| entry(pair)).collect::<Result<Vec<(String, Option<Value>)>>>()?;
    let place = KnowledgeBase::at(kb);
    let wanted = {
        let snapshot = place.snapshot()?;
        let with = |source: &String| -> Result<_> {
            let mut metadata = snapshot.source_metadata(source)?.ok_or_else(|| {
                anyhow!("there is no source {source:?}, and nothing was changed; `anchorite kb sources` shows them")
            })?;
            for (key, value) in &changes {
                match value {
                    Some(value) => drop(metadata.insert(key.clone(), value.clone())),
                    None => drop(metadata.remove(key)),
                }
            }
            Ok(metadata)
        };
        sources.iter().map(with).collect::<Result<Vec<_>>>()?
    };
    let mut writer = place.open_writer()?.by(actor);
    let mut batch = writer.begin("set")?;
    for (source, metadata) in sources.iter().zip(&wanted) {
        batch.describe_source(source, Some(metadata), custody)?;
    }
    let generation = batch.commit()?.id;
    if output.json {
        output.document(&json!({ "sources": sources.len(), "generation": generation }))?;
    } else {
        output.line(format_args!("{} sources; generation {generation}", sources.len()))?;
    }
    Ok(Found::Yes)
}

/// KEY=VALUE; no value removes the key.
fn entry(pair: &str) -> Result<(String, Option<Value>)> {
    let (key, value) = pair.split_once('=').ok_or_else(|| anyhow!("--meta {pair:?}: write KEY=VALUE"))?;
    let value = match value {
        "" => None,
        text => Some(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))),
    };
    Ok((key.to_owned(), value))
}

pub(super) fn expire(kb: &Path, actor: &str, output: &Output) -> Result<Found> {
    let mut writer = KnowledgeBase::at(kb).open_writer()?.by(actor);
    let mut batch = writer.begin("expire")?;
    let removed = batch.remove_expired()?;
    let generation = batch.commit()?.id;
    writer.refresh_caches(&mut |_, _| ())?;
    if output.json {
        output.document(&json!({ "expired": removed, "generation": generation }))?;
    } else {
        output.line(format_args!(
            "{} sources, {} documents and {} chunks erased; generation {generation}",
            removed.sources, removed.documents, removed.chunks
        ))?;
    }
    Ok(if removed.sources > 0 { Found::Yes } else { Found::No })
}
