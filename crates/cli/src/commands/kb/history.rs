//! What a knowledge base was, and the way back.

use std::path::Path;

use anchorite::core::days;
use anchorite::store::{ChangeKind, KnowledgeBase, Snapshot};
use anyhow::Result;

use crate::Found;
use crate::output::Output;

pub(super) fn list(snapshot: &Snapshot, limit: usize, output: &Output) -> Result<Found> {
    let generations = snapshot.history(limit)?;
    if output.json {
        output.document(&generations)?;
    } else {
        for generation in &generations {
            let by = if generation.actor.is_empty() { String::new() } else { format!(" by {}", generation.actor) };
            output.line(format_args!(
                "{:>6}  {}  +{} -{} documents, +{} -{} chunks  {}{by}",
                generation.id,
                days::moment(generation.committed_at),
                generation.documents_added,
                generation.documents_removed,
                generation.chunks_added,
                generation.chunks_removed,
                generation.note
            ))?;
        }
        let begins = snapshot.history_begins()?;
        if begins > 0 {
            output.remark(format_args!("generation {begins} is the oldest that can be gone back to"));
        }
    }
    Ok(if generations.is_empty() { Found::No } else { Found::Yes })
}

pub(super) fn diff(snapshot: &Snapshot, from: i64, to: Option<i64>, output: &Output) -> Result<Found> {
    let changes = snapshot.diff(from, to.unwrap_or(snapshot.generation().id))?;
    if output.json {
        output.document(&changes)?;
    } else {
        for change in &changes {
            let sign = match change.kind {
                ChangeKind::Added => "+",
                ChangeKind::Removed => "-",
                ChangeKind::Replaced => "*",
                ChangeKind::Described => "~",
            };
            output.line(format_args!("{sign} {}", change.source))?;
        }
        output.remark(format_args!("{} sources differ (+ added, - removed, * replaced, ~ described)", changes.len()));
    }
    Ok(if changes.is_empty() { Found::No } else { Found::Yes })
}

pub(super) fn roll_back(kb: &Path, to: i64, without_erased: bool, actor: &str, output: &Output) -> Result<Found> {
    let mut writer = KnowledgeBase::at(kb).open_writer()?.by(actor);
    let mut batch = writer.begin(&format!("rollback to {to}"))?;
    let done = batch.roll_back_to(to, without_erased)?;
    let generation = batch.commit()?.id;
    writer.refresh_caches(&mut |_, _| ())?;
    if output.json {
        output.document(&done)?;
    } else {
        output.line(format_args!(
            "as in generation {to}: {} sources came back, {} went, {} have their former text, {} their former metadata; generation {generation}",
            done.added, done.removed, done.replaced, done.described
        ))?;
        for source in &done.erased {
            output.remark(format_args!("deleted for good, and not brought back: {source}"));
        }
    }
    Ok(Found::Yes)
}

pub(super) fn compact(kb: &Path, keep_from: Option<i64>, actor: &str, output: &Output) -> Result<Found> {
    let mut writer = KnowledgeBase::at(kb).open_writer()?.by(actor);
    let bar = output.bar(0, "{spinner} building the search indexes [{bar:32}] {percent:>3} %");
    let done = writer.compact(keep_from, &mut |done, total| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    })?;
    bar.finish_and_clear();
    if output.json {
        output.document(&done)?;
    } else {
        output.line(format_args!(
            "{} former documents let go of; {} bytes became {}; history begins with generation {}",
            done.documents, done.bytes_before, done.bytes_after, done.history_begins
        ))?;
    }
    Ok(Found::Yes)
}

pub(super) fn audit(snapshot: &Snapshot, source: Option<&str>, limit: usize, output: &Output) -> Result<Found> {
    let entries = snapshot.audit(source, limit)?;
    if output.json {
        output.document(&entries)?;
    } else {
        for entry in &entries {
            let by = if entry.actor.is_empty() { String::new() } else { format!(" by {}", entry.actor) };
            let hash: String = entry.hash.as_str().chars().take(8).collect();
            output.line(format_args!(
                "{}  generation {:>4}  {:<8} {} (document {}, {hash}){by}",
                days::moment(entry.at),
                entry.generation,
                entry.action.as_str(),
                entry.source,
                entry.document
            ))?;
        }
    }
    Ok(if entries.is_empty() { Found::No } else { Found::Yes })
}
