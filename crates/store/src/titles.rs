//! Documents that name each other: a title that stands in another document's text is a link to it.

use std::collections::HashMap;
use std::ops::Range;

use rusqlite::Connection;

use crate::error::{At, StoreError};
use crate::search::loaded;
use crate::snapshot::Snapshot;

/// Words of the longest title that is looked for.
const MOST_WORDS: usize = 8;

/// Shorter titles are words rather than names.
const LEAST_LETTERS: usize = 4;

/// A title that more documents than this have is the name of a collection, and leads nowhere.
const MOST_HOLDERS: usize = 2;

/// Knowledge bases of more documents are searched without links: their titles would fill the memory.
const MOST_DOCUMENTS: usize = 2_000_000;

/// The titles of a knowledge base, in lower case and without what stands in brackets at their end, with who has them.
pub(crate) struct Titles {
    holders: HashMap<String, Vec<i64>>,
}

/// A document that a text names by its title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The document.
    pub document: i64,
    /// Its first chunk.
    pub chunk: i64,
    /// Where in the text it is named.
    pub span: Range<usize>,
}

/// A title as other documents would write it: "Skagen (town)" is named "Skagen".
fn name_of(title: &str) -> Option<String> {
    let title = title.trim();
    let name = match title.strip_suffix(')').and_then(|rest| rest.rfind('(')) {
        Some(open) if open > 0 => title[..open].trim_end(),
        _ => title,
    };
    let written_as_name = name.starts_with(|c: char| c.is_uppercase() || c.is_numeric());
    let letters = name.chars().filter(|c| c.is_alphabetic()).count();
    (written_as_name && letters >= LEAST_LETTERS).then(|| name.to_lowercase())
}

/// Where the words of `text` stand.
fn words(text: &str) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    for (at, character) in text.char_indices() {
        let end = at + character.len_utf8();
        let inside = character.is_alphanumeric() || matches!(character, '\'' | '’' | '.' | '-' | '&');
        match words.last_mut() {
            Some(last) if inside && last.end == at => last.end = end,
            _ if inside => words.push(at..end),
            _ => {}
        }
    }
    words
}

impl Titles {
    fn load(connection: &Connection, folder: &std::path::Path) -> Result<Self, StoreError> {
        let mut holders: HashMap<String, Vec<i64>> = HashMap::new();
        let count: usize = connection.query_row("SELECT count(*) FROM documents", [], |row| row.get(0)).at(folder)?;
        if count <= MOST_DOCUMENTS {
            let mut statement = connection.prepare_cached("SELECT id, title FROM documents").at(folder)?;
            let mut rows = statement.query([]).at(folder)?;
            while let Some(row) = rows.next().at(folder)? {
                let title: String = row.get(1).at(folder)?;
                if let Some(name) = name_of(&title) {
                    holders.entry(name).or_default().push(row.get(0).at(folder)?);
                }
            }
        }
        holders.retain(|_, documents| documents.len() <= MOST_HOLDERS);
        holders.shrink_to_fit();
        Ok(Self { holders })
    }

    /// The documents named in `text`, in the order in which they are, the longest title at each place.
    fn named(&self, text: &str) -> Vec<(i64, Range<usize>)> {
        let words = words(text);
        let mut named: Vec<(i64, Range<usize>)> = Vec::new();
        let mut at = 0;
        while at < words.len() {
            let start = words[at].start;
            let is_name = text[start..].starts_with(|c: char| c.is_uppercase() || c.is_numeric());
            let most = if is_name { MOST_WORDS.min(words.len() - at) } else { 0 };
            let found = (1..=most).rev().find_map(|count| {
                let written = text[start..words[at + count - 1].end].trim_end_matches(['.', '\'', '’']);
                let (end, bare) = (start + written.len(), written.trim_end_matches("'s").trim_end_matches("’s"));
                self.holders.get(&bare.to_lowercase()).map(|documents| (count, documents, start..end))
            });
            match found {
                Some((count, documents, span)) => {
                    named.extend(documents.iter().map(|&document| (document, span.clone())));
                    at += count;
                }
                None => at += 1,
            }
        }
        named
    }
}

impl Snapshot {
    /// The documents that `text` names by their titles, each once, in the order in which they are named.
    ///
    /// # Errors
    /// If the database fails.
    pub fn links(&self, text: &str) -> Result<Vec<Link>, StoreError> {
        let (folder, selection) = (self.folder(), self.selection()?);
        let titles = loaded(&self.shared.titles, || Titles::load(&self.connection(), folder))?;
        let mut links: Vec<Link> = Vec::new();
        let connection = self.connection();
        let mut first_chunk = connection.prepare_cached("SELECT min(id) FROM chunks WHERE document = ?1").at(folder)?;
        for (document, span) in titles.named(text) {
            if links.iter().all(|link| link.document != document) {
                let chunk: Option<i64> = first_chunk.query_row([document], |row| row.get(0)).at(folder)?;
                let chunk = chunk.filter(|&chunk| selection.contains(chunk));
                links.extend(chunk.map(|chunk| Link { document, chunk, span }));
            }
        }
        Ok(links)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(all: &[&str]) -> Titles {
        let mut holders: HashMap<String, Vec<i64>> = HashMap::new();
        for (title, document) in all.iter().zip(1..) {
            if let Some(name) = name_of(title) {
                holders.entry(name).or_default().push(document);
            }
        }
        Titles { holders }
    }

    #[test]
    fn m28_a_title_in_a_text_is_a_link() {
        let titles = titles(&["Skagen (town)", "Skagen Lighthouse", "Ana Ruiz", "the", "Rye", "Lübeck"]);
        let text = "Ana Ruiz's house lies near Skagen lighthouse, not in Skagen. From Lübeck, rye is sent.";
        let named = titles.named(text);
        let seen: Vec<(i64, &str)> = named.iter().map(|(document, span)| (*document, &text[span.clone()])).collect();
        assert_eq!(seen, [(3, "Ana Ruiz's"), (2, "Skagen lighthouse"), (1, "Skagen"), (6, "Lübeck")]);
        assert!(titles.named("the ferry leaves; rye grows; skagen is no name in small letters").is_empty());
    }

    #[test]
    fn words_end_on_characters() {
        let text = "Æ’s “Zürich–Oslo” 日本 e.g.";
        for range in words(text) {
            assert!(text.get(range).is_some());
        }
    }
}
