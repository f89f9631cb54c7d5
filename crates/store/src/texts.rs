//! Texts of chunks, cut from their documents.

use std::path::Path;

use anchorite_core::{Passage, Scores};
use rusqlite::{Connection, MAIN_DB, OptionalExtension};

use crate::error::{At, StoreError};

fn damaged(folder: &Path, chunk: i64) -> StoreError {
    StoreError::Damaged {
        path: folder.to_owned(),
        what: format!("chunk {chunk} does not fit the text of its document"),
    }
}

/// Calls `visit` with identifier, title and text of every chunk after `after`, in order of identifiers. A document's text
/// is read once for all its chunks, as they follow one another.
pub(crate) fn for_each(
    connection: &Connection,
    folder: &Path,
    after: i64,
    mut visit: impl FnMut(i64, &str, &str) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut chunks = connection
        .prepare_cached("SELECT id, document, start_byte, end_byte FROM chunks WHERE id > ?1 ORDER BY id")
        .at(folder)?;
    let mut texts = connection.prepare_cached("SELECT title, text FROM documents WHERE id = ?1").at(folder)?;
    let mut current: Option<(i64, String, String)> = None;
    let mut rows = chunks.query([after]).at(folder)?;
    while let Some(row) = rows.next().at(folder)? {
        let read = || -> rusqlite::Result<(i64, i64, usize, usize)> {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        };
        let (chunk, document, start, end) = read().at(folder)?;
        if current.as_ref().is_none_or(|(id, ..)| *id != document) {
            let (title, text) = texts.query_row([document], |row| Ok((row.get(0)?, row.get(1)?))).at(folder)?;
            current = Some((document, title, text));
        }
        let Some((_, title, text)) = &current else { continue };
        visit(chunk, title, text.get(start..end).ok_or_else(|| damaged(folder, chunk))?)?;
    }
    Ok(())
}

/// The passage of a chunk, without source and scores; `None` if there is no such chunk. Reads only the chunk's part of the
/// text.
pub(crate) fn passage(connection: &Connection, folder: &Path, chunk: i64) -> Result<Option<Passage>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT c.document, c.start_byte, c.end_byte, d.title
             FROM chunks c JOIN documents d ON d.id = c.document WHERE c.id = ?1",
        )
        .and_then(|mut statement| {
            statement
                .query_row([chunk], |row| {
                    Ok(Passage {
                        chunk,
                        document: row.get(0)?,
                        source: String::new(),
                        title: row.get(3)?,
                        start: row.get(1)?,
                        end: row.get(2)?,
                        text: String::new(),
                        dated: 0,
                        owner: String::new(),
                        scores: Scores::default(),
                    })
                })
                .optional()
        })
        .at(folder)?;
    let Some(mut passage) = found else { return Ok(None) };
    let blob = connection.blob_open(MAIN_DB, "documents", "text", passage.document, true).at(folder)?;
    if passage.start > passage.end || passage.end > blob.len() {
        return Err(damaged(folder, chunk));
    }
    let mut bytes = vec![0; passage.end - passage.start];
    blob.read_at_exact(&mut bytes, passage.start).at(folder)?;
    passage.text = String::from_utf8(bytes).map_err(|_| damaged(folder, chunk))?;
    Ok(Some(passage))
}
