//! The graph's file for whoever sends it damaged bytes: the fuzz target and the test that runs it on every build.

use crate::ann::{GraphBuilder, expected};
use crate::ann_graph::Graph;

/// Components of the vectors of [`graph_file`].
const DIM: usize = 8;

/// Vectors that lie on a spiral about the origin.
fn vector(number: usize) -> Vec<f32> {
    let angle = number as f32 * 0.7;
    let vector: Vec<f32> = (1..=DIM).map(|component| (angle * component as f32).sin()).collect();
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    vector.into_iter().map(|x| x / length).collect()
}

/// The file of a graph with `entries` nodes, as the knowledge base writes it.
///
/// # Errors
/// What the library says.
pub fn graph_file(entries: usize) -> Result<Vec<u8>, String> {
    let builder = GraphBuilder::new(DIM)?;
    grow(&builder, 0, entries)?;
    builder.to_bytes()
}

fn grow(builder: &GraphBuilder, before: usize, entries: usize) -> Result<(), String> {
    let chunks: Vec<i64> = (before as i64 + 1..=entries as i64).collect();
    let components: Vec<f32> = (before..entries).flat_map(vector).collect();
    builder.reserve(chunks.len(), 1)?;
    builder.add_all(&chunks, &components, 1)
}

/// Searches `bytes` as a mapped file that nobody checked; then checks them, and if they pass, searches them again and adds
/// to them.
///
/// # Errors
/// Why they are refused.
///
/// # Panics
/// If what passed finds anything that it can't hold.
pub fn try_graph_file(bytes: &[u8], entries: usize) -> Result<(), String> {
    let (expected, query) = (expected(DIM, entries, entries as i64), vector(entries));
    Graph::unchecked(bytes.to_vec(), &expected)
        .map(|graph| (graph.search(&query, 20, &|_| true), graph.find_strays()))
        .ok();
    let graph = Graph::from_bytes(bytes.to_vec(), &expected)?;
    let found = graph.search(&query, 20, &|chunk| chunk != 3);
    assert!(found.iter().all(|chunk| (1..=entries as i64).contains(chunk) && *chunk != 3), "{found:?}");
    let builder = GraphBuilder::from_bytes(bytes, &expected)?;
    grow(&builder, entries, entries + 10)
}
