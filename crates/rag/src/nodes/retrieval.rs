//! Searching, and keeping what is of use.

use std::collections::HashMap;

use anchorite_core::Passage;
use anchorite_graph::{NodeContext, NodeError};

use super::Update;
use crate::Parts;
use crate::distrust::silence;
use crate::expand::merge;
use crate::grade::relevance;
use crate::settings::Piece;
use crate::state::{RagState, RagUpdate, Useful};

/// Searches for every query of the round; what is known as useful already does not come again (M14, M25).
pub(crate) fn retrieve(parts: &Parts<'_>, state: &RagState, context: &NodeContext<'_>) -> Update {
    context.budget().spend_round()?;
    let known: Vec<i64> = state.useful_documents.iter().map(|useful| useful.passage.chunk).collect();
    let queries = state.queries();
    let mut silenced = 0;
    let mut lists = Vec::with_capacity(queries.len());
    for query in &queries {
        context.budget().check()?;
        let mut passages = parts.retriever.retrieve(query, parts.settings.passages)?;
        passages.retain(|passage| !known.contains(&passage.chunk));
        if parts.settings.has(Piece::Distrust) {
            silenced += passages.iter_mut().map(silence).sum::<usize>();
        }
        lists.push((*query, passages));
    }
    let found: Vec<Passage> = merge(lists).into_iter().map(|found| found.passage).collect();
    context.note(&format!("{} new passages for {}", found.len(), queries.join(" | ")));
    if silenced > 0 {
        context.note(&format!("{silenced} pieces that speak to the reader were silenced"));
    }
    Ok(RagUpdate { new_documents: Some(found), ..RagUpdate::default() })
}

/// Decision 2 (M11): each new passage is graded on its own, against the question and every new query.
pub(crate) fn grade_documents(parts: &Parts<'_>, state: &RagState, context: &NodeContext<'_>) -> Update {
    let mut useful = graded(parts, state)?;
    let grades = parts.settings.has(Piece::Grades);
    useful.retain(|found| !grades || found.probability >= parts.settings.relevance);
    useful.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    // Each query of the round keeps its best, so that one with many good passages does not crowd out the others.
    let share = (parts.settings.passages / state.queries().len().max(1)).max(2);
    let mut kept: HashMap<String, usize> = HashMap::new();
    useful.retain(|found| {
        let count = kept.entry(found.query.clone()).or_default();
        *count += 1;
        *count <= share
    });
    useful.truncate(parts.settings.useful_passages.saturating_sub(state.useful_documents.len()));
    context.note(&format!("{} of {} passages are useful", useful.len(), state.new_documents.len()));
    Ok(RagUpdate {
        newly_useful: Some(useful.len()),
        useful_documents: useful,
        rewrites: Some(0),
        ..RagUpdate::default()
    })
}

/// Keeps all that was found, as the plain pipeline does.
pub(crate) fn keep_documents(parts: &Parts<'_>, state: &RagState, context: &NodeContext<'_>) -> Update {
    let useful = graded(parts, state)?;
    context.note(&format!("{} passages", useful.len()));
    Ok(RagUpdate { newly_useful: Some(useful.len()), useful_documents: useful, ..RagUpdate::default() })
}

/// The new passages, each with its probability of relevance and the query it is most relevant to.
fn graded(parts: &Parts<'_>, state: &RagState) -> Result<Vec<Useful>, NodeError> {
    let queries = state.all_queries();
    let grades = relevance(parts, &state.new_documents, &queries)?;
    let useful = |(passage, (probability, query)): (&Passage, (f32, usize))| Useful {
        passage: passage.clone(),
        probability,
        query: queries[query].to_owned(),
    };
    Ok(state.new_documents.iter().zip(grades).map(useful).collect())
}
