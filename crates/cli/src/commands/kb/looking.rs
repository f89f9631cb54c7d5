//! What is in a knowledge base, shown.

use std::path::Path;

use anchorite::core::days;
use anchorite::store::{KnowledgeBase, Snapshot};
use anchorite::{Engine, Error, ViewOptions, find_document};
use anyhow::Result;
use serde_json::json;

use super::arguments::Page;
use crate::Found;
use crate::commands::search::excerpt;
use crate::output::Output;

pub(super) fn stats(snapshot: &Snapshot, output: &Output) -> Result<Found> {
    let stats = snapshot.stats()?;
    if output.json {
        output.document(&stats)?;
    } else {
        output.line(format_args!("documents   {} (from {} sources)", stats.documents, stats.sources))?;
        output.line(format_args!("chunks      {}", stats.chunks))?;
        output.line(format_args!("text        {} bytes", stats.text_bytes))?;
        output.line(format_args!("database    {} bytes", stats.database_bytes))?;
        output.line(format_args!("generation  {}", stats.generation))?;
        if stats.former_documents > 0 {
            output
                .line(format_args!("history     {} former documents, kept for going back", stats.former_documents))?;
        }
        output.line(format_args!(
            "bi-encoder  {}, {} dimensions ({})",
            stats.embedder.name, stats.dimensions, stats.embedder.sha256
        ))?;
        for cache in &stats.caches {
            let audited =
                cache.recall.map(|recall| format!(", {:.1} % of the nearest found when audited", 100.0 * recall));
            output.line(format_args!(
                "index       {}: generation {}, {} chunks, {} removed, {} newer{}",
                cache.kind,
                cache.generation,
                cache.entries,
                cache.removed,
                cache.newer,
                audited.unwrap_or_default()
            ))?;
        }
    }
    Ok(Found::Yes)
}

pub(super) fn list(snapshot: &Snapshot, page: &Page, output: &Output) -> Result<Found> {
    let documents = snapshot.documents(page.offset as usize, page.limit as usize)?;
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

pub(super) fn sources(snapshot: &Snapshot, page: &Page, output: &Output) -> Result<Found> {
    let sources = snapshot.sources(page.offset as usize, page.limit as usize)?;
    if output.json {
        output.document(&sources)?;
    } else {
        for source in &sources {
            let term = source.expires_at.map(|moment| format!(" until {}", days::day(moment))).unwrap_or_default();
            let owner = if source.owner.is_empty() { String::new() } else { format!(" of {}", source.owner) };
            let access = if source.access.is_empty() { "" } else { source.access.as_str() };
            output.line(format_args!(
                "{:>8} bytes {:>4} chunks {:>2} version(s)  {}{term}{owner} {access}  {}",
                source.bytes,
                source.chunks,
                source.versions,
                days::day(source.dated),
                source.source
            ))?;
        }
    }
    Ok(if sources.is_empty() { Found::No } else { Found::Yes })
}

pub(super) fn show(snapshot: &Snapshot, name: &str, output: &Output) -> Result<Found> {
    let document = match find_document(snapshot, name) {
        Ok(document) => document,
        Err(error @ Error::NoSuchDocument { .. }) => {
            output.remark(error);
            return Ok(Found::No);
        }
        Err(error) => return Err(error.into()),
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
        output.line(format_args!("dated       {}", days::day(document.dated)))?;
        if !document.owner.is_empty() {
            output.line(format_args!("owner       {}", document.owner))?;
        }
        if !document.access.is_empty() {
            output.line(format_args!("access      {}", document.access))?;
        }
        if let Some(moment) = document.expires_at {
            output.line(format_args!("expires     {}", days::moment(moment)))?;
        }
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

pub(super) fn verify(place: &KnowledgeBase, repair: bool, output: &Output) -> Result<Found> {
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

pub(super) fn thread(engine: &Engine, thread: &str, kb: &Path, output: &Output) -> Result<Found> {
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

pub(super) fn export(snapshot: &Snapshot, folder: &Path, output: &Output) -> Result<Found> {
    let report = anchorite::export(snapshot, folder)?;
    if output.json {
        output.document(&report)?;
    } else {
        output.line(format_args!(
            "generation {}: {} documents and {} lines of the audit trail written to {}",
            report.generation,
            report.documents,
            report.audit,
            folder.display()
        ))?;
    }
    Ok(if report.documents > 0 { Found::Yes } else { Found::No })
}

pub(super) fn why_not(
    engine: &Engine,
    kb: &Path,
    document: &str,
    query: &str,
    view: ViewOptions,
    k: usize,
    output: &Output,
) -> Result<Found> {
    let report = engine.why_not(kb, document, query, view, k)?;
    if output.json {
        output.document(&report)?;
    } else {
        for stage in &report.stages {
            let mark = if stage.kept { "kept" } else { "LOST" };
            output.line(format_args!("{mark}  {:<10} {}", stage.name, stage.finding))?;
        }
        match (&report.lost_at, &report.remedy) {
            (Some(stage), Some(remedy)) => output.line(format_args!("\nlost at {stage}: {remedy}"))?,
            (Some(stage), None) => output.line(format_args!("\nlost at {stage}"))?,
            (None, _) => output.line(format_args!("\nit is found, at rank {}", report.rank.unwrap_or(0)))?,
        }
    }
    Ok(if report.lost_at.is_none() { Found::Yes } else { Found::No })
}
