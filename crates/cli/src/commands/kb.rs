//! `anchorite kb`

use std::path::Path;

use anchorite::Engine;
use anchorite::store::{Deletion, KnowledgeBase, Snapshot, StoredDocument};
use anyhow::{Result, bail};
use serde_json::json;

use super::search::excerpt;
use crate::Found;
use crate::arguments::KbAction;
use crate::output::Output;

pub(crate) fn run(engine: &Engine, action: &KbAction, output: &Output) -> Result<Found> {
    match action {
        KbAction::Stats { place } => stats(&KnowledgeBase::at(&place.kb).snapshot()?, output),
        KbAction::List { place, offset, limit } => {
            list(&KnowledgeBase::at(&place.kb).snapshot()?, *offset as usize, *limit as usize, output)
        }
        KbAction::Show { document, place } => show(&KnowledgeBase::at(&place.kb).snapshot()?, document, output),
        KbAction::Delete { documents, place } => delete(&KnowledgeBase::at(&place.kb), documents, output),
        KbAction::Thread { thread, place } => show_thread(engine, thread, &place.kb, output),
        KbAction::Verify { place, repair } => verify(&KnowledgeBase::at(&place.kb), *repair, output),
        KbAction::History { place, limit } => {
            history(&KnowledgeBase::at(&place.kb).snapshot()?, *limit as usize, output)
        }
    }
}

fn stats(snapshot: &Snapshot, output: &Output) -> Result<Found> {
    let stats = snapshot.stats()?;
    if output.json {
        output.document(&stats)?;
    } else {
        output.line(format_args!("documents   {} (from {} sources)", stats.documents, stats.sources))?;
        output.line(format_args!("chunks      {}", stats.chunks))?;
        output.line(format_args!("text        {} bytes", stats.text_bytes))?;
        output.line(format_args!("database    {} bytes", stats.database_bytes))?;
        output.line(format_args!("generation  {}", stats.generation))?;
        output.line(format_args!(
            "bi-encoder  {}, {} dimensions ({})",
            stats.embedder.name, stats.dimensions, stats.embedder.sha256
        ))?;
        for cache in &stats.caches {
            output.line(format_args!(
                "index       {}: generation {}, {} chunks, {} removed, {} newer",
                cache.kind, cache.generation, cache.entries, cache.removed, cache.newer
            ))?;
        }
    }
    Ok(Found::Yes)
}

fn verify(place: &KnowledgeBase, repair: bool, output: &Output) -> Result<Found> {
    let mut seen = place.snapshot()?.verify();
    let repairable = seen.findings.iter().any(|finding| finding.kind.can_be_repaired());
    if repair && repairable {
        for finding in seen.findings.iter().filter(|finding| finding.kind.can_be_repaired()) {
            output.remark(format_args!("built again: {}", finding.what));
        }
        place.open_writer()?.repair_caches(&mut |_, _| ())?;
        seen = place.snapshot()?.verify();
    }
    if output.json {
        output.document(&seen)?;
    } else {
        for finding in &seen.findings {
            let remedy = if finding.kind.can_be_repaired() { " (`--repair` builds it again)" } else { "" };
            output.line(format_args!("{}{remedy}", finding.what))?;
        }
        if seen.more > 0 {
            output.line(format_args!("… and {} more", seen.more))?;
        }
        output.line(format_args!(
            "generation {}: {} documents, {} chunks and {} search indexes looked at, {} findings",
            seen.generation,
            seen.documents,
            seen.chunks,
            seen.caches,
            seen.findings.len() as u64 + seen.more
        ))?;
    }
    Ok(if seen.findings.is_empty() { Found::Yes } else { Found::No })
}

fn list(snapshot: &Snapshot, offset: usize, limit: usize, output: &Output) -> Result<Found> {
    let documents = snapshot.documents(offset, limit)?;
    if output.json {
        output.document(&documents)?;
    } else {
        for document in &documents {
            output.line(format_args!(
                "{:>6}  {:>8} bytes {:>4} chunks  {}  {}",
                document.id, document.bytes, document.chunks, document.source, document.title
            ))?;
        }
    }
    Ok(if documents.is_empty() { Found::No } else { Found::Yes })
}

/// A document by source, or by number.
fn find(snapshot: &Snapshot, name: &str) -> Result<Option<StoredDocument>> {
    if let Some(document) = snapshot.document_by_source(name)? {
        return Ok(Some(document));
    }
    match name.parse() {
        Ok(id) => Ok(snapshot.document(id)?),
        Err(_) => Ok(None),
    }
}

fn show(snapshot: &Snapshot, name: &str, output: &Output) -> Result<Found> {
    let Some(document) = find(snapshot, name)? else {
        output.remark(format_args!("there is no document {name:?}; `anchorite kb list` shows what is there"));
        return Ok(Found::No);
    };
    let chunks = snapshot.chunks_of(document.id)?;
    if output.json {
        output.document(&json!({ "document": document, "chunks": chunks }))?;
    } else {
        output.line(format_args!("{}  {}  {}", document.id, document.source, document.title))?;
        for alias in &document.aliases {
            output.line(format_args!("also        {alias}"))?;
        }
        output.line(format_args!("hash        {}", document.hash))?;
        output.line(format_args!("generation  {}", document.generation))?;
        for (key, value) in &document.metadata {
            output.line(format_args!("{key}  {}", excerpt(&value.to_string(), 200)))?;
        }
        for chunk in &chunks {
            output.line(format_args!(
                "chunk {} [{}..{}]: {}",
                chunk.chunk,
                chunk.start,
                chunk.end,
                excerpt(&chunk.text, 100)
            ))?;
        }
        output.line(format_args!("\n{}", document.text))?;
    }
    Ok(Found::Yes)
}

fn delete(place: &KnowledgeBase, names: &[String], output: &Output) -> Result<Found> {
    // Numbers are looked up first: a reader that is still open would keep the deleted words in the database's log.
    let numbers = {
        let snapshot = place.snapshot()?;
        let by_number = |name: &String| Ok(find(&snapshot, name)?.map(|document| document.id));
        names.iter().map(by_number).collect::<Result<Vec<_>>>()?
    };
    let mut writer = place.open_writer()?;
    let mut batch = writer.begin("delete")?;
    let mut total = Deletion::default();
    for (name, number) in names.iter().zip(numbers) {
        let by_source = batch.delete_source(name)?;
        let deletion = match number {
            _ if by_source.sources > 0 => by_source,
            Some(number) => batch.delete_document(number)?,
            None => {
                bail!("there is no document {name:?}, and nothing was deleted; `anchorite kb list` shows what is there")
            }
        };
        total.sources += deletion.sources;
        total.documents += deletion.documents;
        total.chunks += deletion.chunks;
    }
    let generation = batch.commit()?;
    writer.refresh_caches(&mut |_, _| ())?;
    if output.json {
        output.document(&json!({ "deleted": total, "generation": generation.id }))?;
    } else {
        output.line(format_args!(
            "{} sources, {} documents and {} chunks deleted; generation {}",
            total.sources, total.documents, total.chunks, generation.id
        ))?;
    }
    Ok(Found::Yes)
}

fn history(snapshot: &Snapshot, limit: usize, output: &Output) -> Result<Found> {
    let generations = snapshot.history(limit)?;
    if output.json {
        output.document(&generations)?;
    } else {
        for generation in &generations {
            output.line(format_args!(
                "{:>6}  +{} -{} documents, +{} -{} chunks  {}",
                generation.id,
                generation.documents_added,
                generation.documents_removed,
                generation.chunks_added,
                generation.chunks_removed,
                generation.note
            ))?;
        }
    }
    Ok(if generations.is_empty() { Found::No } else { Found::Yes })
}

fn show_thread(engine: &Engine, thread: &str, kb: &Path, output: &Output) -> Result<Found> {
    let checkpoints = engine.thread(kb, thread)?;
    if output.json {
        let states = checkpoints
            .iter()
            .map(|checkpoint| {
                let state: serde_json::Value = serde_json::from_str(&checkpoint.state_json)?;
                Ok(json!({ "step": checkpoint.step, "record": checkpoint.record, "next": checkpoint.next, "state": state }))
            })
            .collect::<Result<Vec<_>>>()?;
        output.document(&states)?;
    } else {
        for checkpoint in &checkpoints {
            let note = excerpt(&checkpoint.record.note, 120);
            output.line(format_args!(
                "{:>3}  {:<18} next: {:<18} {note}",
                checkpoint.step,
                checkpoint.node(),
                checkpoint.next
            ))?;
        }
    }
    Ok(if checkpoints.is_empty() { Found::No } else { Found::Yes })
}
