//! Vectors as they are kept in the database (`f32`, little-endian), and exact search over them.

use std::path::Path;

use anchorite_core::Embedding;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension};

use crate::error::{At, StoreError};
use crate::ranking::{Hit, TopK};
use crate::view::Selection;

/// Sums kept apart in [`dot`], so that the compiler may use vector registers.
const LANES: usize = 16;

/// Inner product. Every dense score comes from here, so that exact search, rescored candidates and small indexes agree to
/// the last bit.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0f32; LANES];
    let (a_lanes, b_lanes) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = a_lanes.remainder().iter().zip(b_lanes.remainder()).map(|(x, y)| x * y).sum();
    for (a, b) in a_lanes.zip(b_lanes) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f32>() + rest
}

/// As it is written.
pub(crate) fn encode(embedding: &Embedding) -> Vec<u8> {
    embedding.as_slice().iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Appends the vector in `column` of a row to `into`.
fn decode(value: ValueRef<'_>, dim: usize, chunk: i64, folder: &Path, into: &mut Vec<f32>) -> Result<(), StoreError> {
    let damaged = |what: String| StoreError::Damaged { path: folder.to_owned(), what };
    let bytes = value.as_blob().map_err(|_| damaged(format!("chunk {chunk} has no vector")))?;
    if bytes.len() != dim * size_of::<f32>() {
        return Err(damaged(format!("the vector of chunk {chunk} has {} bytes", bytes.len())));
    }
    // The length is a multiple of four: the remainder is empty.
    let (numbers, _) = bytes.as_chunks::<4>();
    into.extend(numbers.iter().map(|&number| f32::from_le_bytes(number)));
    Ok(())
}

fn score(query: &[f32], chunk: i64, vector: &[f32], folder: &Path) -> Result<Hit, StoreError> {
    let score = dot(query, vector);
    if score.is_finite() {
        return Ok(Hit { chunk, score });
    }
    Err(StoreError::Damaged { path: folder.to_owned(), what: format!("the vector of chunk {chunk} is not numbers") })
}

/// Calls `visit` with every chunk after `after` and its vector, in order of identifiers.
pub(crate) fn for_each(
    connection: &Connection,
    folder: &Path,
    dim: usize,
    after: i64,
    mut visit: impl FnMut(i64, &[f32]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT chunk, vector FROM vectors WHERE chunk > ?1 ORDER BY chunk").at(folder)?;
    let mut rows = statement.query([after]).at(folder)?;
    let mut vector = Vec::with_capacity(dim);
    while let Some(row) = rows.next().at(folder)? {
        let chunk: i64 = row.get(0).at(folder)?;
        vector.clear();
        decode(row.get_ref(1).at(folder)?, dim, chunk, folder, &mut vector)?;
        visit(chunk, &vector)?;
    }
    Ok(())
}

/// Exact search for each query over every chunk of `selection` after `after`, read from the database once. The queries are
/// of one length, which is the vectors'.
pub(crate) fn scan(
    connection: &Connection,
    folder: &Path,
    after: i64,
    selection: &Selection,
    queries: &mut [(&[f32], &mut TopK)],
) -> Result<(), StoreError> {
    let dim = queries.first().map_or(0, |(query, _)| query.len());
    for_each(connection, folder, dim, after, |chunk, vector| {
        if selection.contains(chunk) {
            for (query, top) in &mut *queries {
                top.push(score(query, chunk, vector, folder)?);
            }
        }
        Ok(())
    })
}

/// Exact scores of the given chunks; those that are no longer there are left out.
pub(crate) fn rescore(
    connection: &Connection,
    folder: &Path,
    query: &[f32],
    chunks: impl IntoIterator<Item = i64>,
    top: &mut TopK,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached("SELECT vector FROM vectors WHERE chunk = ?1").at(folder)?;
    let mut vector = Vec::with_capacity(query.len());
    for chunk in chunks {
        vector.clear();
        let found = statement
            .query_row([chunk], |row| Ok(decode(row.get_ref(0)?, query.len(), chunk, folder, &mut vector)))
            .optional()
            .at(folder)?;
        if let Some(decoded) = found {
            decoded?;
            top.push(score(query, chunk, &vector, folder)?);
        }
    }
    Ok(())
}

/// Vectors held in memory for exact search.
#[derive(Debug)]
pub(crate) struct Matrix {
    chunks: Vec<i64>,
    components: Vec<f32>,
    dim: usize,
}

impl Matrix {
    /// Reads every vector after `after`.
    pub(crate) fn read(connection: &Connection, folder: &Path, dim: usize, after: i64) -> Result<Self, StoreError> {
        let mut matrix = Self { chunks: Vec::new(), components: Vec::new(), dim };
        for_each(connection, folder, dim, after, |chunk, vector| {
            matrix.chunks.push(chunk);
            matrix.components.extend_from_slice(vector);
            Ok(())
        })?;
        Ok(matrix)
    }

    /// Exact search over those of `selection`.
    pub(crate) fn scan(
        &self,
        folder: &Path,
        query: &[f32],
        selection: &Selection,
        top: &mut TopK,
    ) -> Result<(), StoreError> {
        for (&chunk, vector) in self.chunks.iter().zip(self.components.chunks_exact(self.dim)) {
            if selection.contains(chunk) {
                top.push(score(query, chunk, vector, folder)?);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn dot_is_the_inner_product(pairs in prop::collection::vec((-1.0f32..1.0, -1.0f32..1.0), 0..70)) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            let exact: f64 = a.iter().zip(&b).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum();
            prop_assert!((f64::from(dot(&a, &b)) - exact).abs() < 1e-4);
        }
    }
}
