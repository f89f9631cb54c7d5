//! What goes into a knowledge base (documents, chunks) and what comes out of a search (passages).

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// SHA-256 of a document's title and text, in hexadecimal. Two documents with equal content have equal hashes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentHash(String);

impl ContentHash {
    /// Hashes `title` and `text`, separated so that moving a letter from one to the other changes the hash.
    #[must_use]
    pub fn of(title: &str, text: &str) -> Self {
        let mut hasher = Sha256::new();
        hasher.update((title.len() as u64).to_le_bytes());
        hasher.update(title.as_bytes());
        hasher.update(text.as_bytes());
        Self(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The 64 hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Wraps digits read back from storage.
    #[must_use]
    pub fn from_hex(digits: String) -> Self {
        Self(digits)
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One document as read, before it is cut.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Where it came from and what it is replaced by: a path, or `path#_id` for a record of a JSONL file.
    pub source: String,
    /// Title; empty if it has none.
    pub title: String,
    /// The text, UTF-8. Offsets everywhere are byte offsets into this string.
    pub text: String,
    /// Further fields, as they were found.
    #[serde(default)]
    pub metadata: BTreeMap<String, serde_json::Value>,
    /// Pages and headings of the text, in the order of their offsets; empty where nothing is known of either.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outline: Vec<Landmark>,
}

/// Something that stands at a place of a document's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landmark {
    /// Byte offset in the text, on a character border.
    pub at: usize,
    /// What begins there.
    pub kind: LandmarkKind,
}

/// What a [`Landmark`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LandmarkKind {
    /// A page, slide or sheet with this number (from 1) begins.
    Page(u32),
    /// A heading stands here, down to `end`.
    Heading {
        /// 1 is the topmost.
        level: u8,
        /// One past the heading's last byte.
        end: usize,
    },
}

impl Document {
    /// The headings that the place `at` of the text stands under, outermost first, without their marks. A heading that stands
    /// at or behind the place is none of them.
    #[must_use]
    pub fn headings_over(&self, at: usize) -> Vec<&str> {
        let before = self.outline.partition_point(|mark| mark.at < at);
        let mut over = Vec::new();
        let mut lowest = u8::MAX;
        for mark in self.outline[..before].iter().rev() {
            let LandmarkKind::Heading { level, end } = mark.kind else { continue };
            if level >= lowest || end > at {
                continue;
            }
            lowest = level;
            let words =
                self.text.get(mark.at..end).unwrap_or_default().trim_matches(['#', '=', '-', ' ', '\n', '\r', '\t']);
            if !words.is_empty() {
                over.push(words);
            }
            if level <= 1 {
                break;
            }
        }
        over.reverse();
        over
    }

    /// Hash of title and text.
    #[must_use]
    pub fn content_hash(&self) -> ContentHash {
        ContentHash::of(&self.title, &self.text)
    }
}

/// A contiguous span of a document's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Position among the document's chunks, from 0.
    pub ordinal: u32,
    /// First byte in the document's text (a character border).
    pub start: usize,
    /// One past the last byte (a character border).
    pub end: usize,
    /// The text between `start` and `end`.
    pub text: String,
}

/// Ranks (from 1) and scores that each stage of a search gave a passage. `None`: the stage did not see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Rank by BM25.
    pub bm25_rank: Option<usize>,
    /// BM25 score (Robertson and Zaragoza 2009), unbounded.
    pub bm25: Option<f32>,
    /// Rank by cosine similarity of embeddings.
    pub dense_rank: Option<usize>,
    /// Cosine similarity, −1 … 1.
    pub dense: Option<f32>,
    /// Rank after fusion, before reranking.
    pub fused_rank: Option<usize>,
    /// Fused score, 0 … 1: the mean of both rankings, each brought to one scale.
    pub fused: Option<f32>,
    /// Rank by cross-encoder.
    pub rerank_rank: Option<usize>,
    /// Cross-encoder score: a logit.
    pub rerank: Option<f32>,
    /// What the order rests on where a cross-encoder read the passage: its score and the fused one together.
    pub blended: Option<f32>,
    /// What age leaves of the score, 0.5 … 1; only where a half-life was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recency: Option<f32>,
    /// The chunk among the best that names this passage's document by its title, if one does.
    pub linked_from: Option<i64>,
}

/// A chunk that a search found, with everything needed to cite it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Passage {
    /// Identifier of the chunk in its knowledge base. Never reused.
    pub chunk: i64,
    /// Identifier of its document. Never reused.
    pub document: i64,
    /// The document's source.
    pub source: String,
    /// The document's title; may be empty.
    pub title: String,
    /// Byte offset of the chunk in the document's text.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
    /// The chunk's text.
    pub text: String,
    /// The date its document is of, in milliseconds since 1970; 0 if unknown.
    #[serde(default)]
    pub dated: i64,
    /// Whose its document is; empty if nobody's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// How it was found.
    pub scores: Scores,
}

impl Passage {
    /// Title and text as one string, as rerankers and generators read it.
    #[must_use]
    pub fn full_text(&self) -> String {
        titled(&self.title, &self.text)
    }

    /// Bytes of [`Passage::full_text`] before the passage's own text begins.
    #[must_use]
    pub fn title_bytes(&self) -> usize {
        self.full_text().len() - self.text.len()
    }
}

/// A part of a document as every model reads it: behind the document's title, unless it begins with it.
#[must_use]
pub fn titled(title: &str, text: &str) -> String {
    if title.is_empty() || text.trim_start_matches(['#', ' ']).starts_with(title) {
        text.to_owned()
    } else {
        format!("{}. {text}", title.trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m33_a_place_stands_under_its_headings() {
        let text = "# A\n\none\n\n## B\n\ntwo\n\n### C\n\nthree\n\n## D\n\nfour".to_owned();
        let heading = |line: &str, level| {
            let at = text.find(line).expect("there");
            Landmark { at, kind: LandmarkKind::Heading { level, end: at + line.len() } }
        };
        let mut outline = vec![heading("# A", 1), heading("## B", 2), heading("### C", 3), heading("## D", 2)];
        outline.insert(1, Landmark { at: 5, kind: LandmarkKind::Page(1) });
        let (source, title, metadata) = (String::new(), String::new(), BTreeMap::new());
        let document = Document { source, title, text, metadata, outline };
        let over = |word: &str| document.headings_over(document.text.find(word).expect("there"));
        assert_eq!(over("one"), ["A"]);
        assert_eq!(over("three"), ["A", "B", "C"]);
        assert_eq!(over("four"), ["A", "D"]);
        assert_eq!(over("### C"), ["A", "B"]);
        assert_eq!(over("# A"), [""; 0]);
    }

    #[test]
    fn the_content_hash_separates_title_from_text() {
        assert_ne!(ContentHash::of("ab", "c"), ContentHash::of("a", "bc"));
        assert_eq!(ContentHash::of("a", "b"), ContentHash::of("a", "b"));
        assert_eq!(ContentHash::of("", "").as_str().len(), 64);
    }
}
