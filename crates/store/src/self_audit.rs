//! The index of vectors audits itself: sampled searches are compared with looking at every vector, and where too few of the
//! nearest were found, searches keep more nodes in view.

use rusqlite::Connection;

use crate::ann::{AnnIndex, EXPANSION_SEARCH};
use crate::vectors;

/// Searches compared.
const SAMPLES: usize = 24;
/// The nearest that each should find.
const NEAREST: usize = 10;
/// What a search of the knowledge base asks for to get [`NEAREST`].
const ASKED: usize = NEAREST + NEAREST / 2 + 16;
/// Least share of them that is good enough.
const WANTED: f64 = 0.98;
const MOST_EXPANSION: usize = 1024;
/// What a sample has of a vector far from it: queries don't lie quite where texts do.
const STRANGE: f32 = 0.15;
/// Indexes of fewer entries are not audited: they are asked for little, and answer well.
const LEAST_ENTRIES: usize = 10_000;

/// How many nodes searches of `index` should keep in view, and the share of the nearest that they then find.
///
/// A sample lies between two vectors that are there, nearer to one of them, as a query does that resembles a text.
pub(crate) fn tune(index: &AnnIndex, connection: &Connection, dim: usize) -> rusqlite::Result<(usize, Option<f64>)> {
    let chunks: Vec<i64> = connection
        .prepare("SELECT chunk FROM vectors ORDER BY chunk")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    if chunks.len() < LEAST_ENTRIES {
        return Ok((EXPANSION_SEARCH, None));
    }
    let step = chunks.len() / SAMPLES;
    let mut samples = Vec::new();
    for at in 0..SAMPLES {
        let pair = [chunks[at * step], chunks[(at * step + chunks.len() / 2 + 1) % chunks.len()]];
        let near = vectors::of_chunk(connection, pair[0], dim)?;
        let far = vectors::of_chunk(connection, pair[1], dim)?;
        let (Some(near), Some(far)) = (near, far) else { continue };
        let mixed: Vec<f32> = near.iter().zip(&far).map(|(near, far)| (1.0 - STRANGE) * near + STRANGE * far).collect();
        let length = vectors::dot(&mixed, &mixed).sqrt().max(f32::MIN_POSITIVE);
        let query: Vec<f32> = mixed.into_iter().map(|x| x / length).collect();
        if let Ok(exact) = index.nearest_of(&query, NEAREST, &chunks) {
            samples.push((query, exact));
        }
    }
    let mut expansion = EXPANSION_SEARCH;
    loop {
        index.set_expansion(expansion);
        let recall = recall(index, &samples);
        if recall >= WANTED || expansion >= MOST_EXPANSION {
            tracing::debug!(expansion, recall, "the index of vectors was audited");
            return Ok((expansion, Some(recall)));
        }
        expansion *= 2;
    }
}

fn recall(index: &AnnIndex, samples: &[(Vec<f32>, Vec<i64>)]) -> f64 {
    let (mut wanted, mut found) = (0, 0);
    for (query, exact) in samples {
        let hits = index.search(query, ASKED, &|_| true).unwrap_or_default();
        wanted += exact.len();
        found += exact.iter().filter(|chunk| hits.contains(chunk)).count();
    }
    if wanted == 0 { 1.0 } else { found as f64 / wanted as f64 }
}
