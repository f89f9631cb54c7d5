//! Small documents, and an embedder made of word hashes, so that equal words give near vectors.

use std::collections::BTreeMap;
use std::path::Path;

use anchorite_core::{Chunk, Document, Embedding, ModelFingerprint};
use anchorite_store::{CacheSettings, Generation, KnowledgeBase, Known, Outcome, Snapshot, Writer};
use sha2::{Digest, Sha256};

pub(crate) const DIM: usize = 24;

pub(crate) fn model() -> ModelFingerprint {
    ModelFingerprint { name: "word-hashes".into(), sha256: "ab".repeat(32) }
}

/// Each word adds ±1 to three components.
pub(crate) fn embed(text: &str) -> Embedding {
    let mut components = vec![0.001; DIM];
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let digest = Sha256::digest(word.to_lowercase().as_bytes());
        for pair in digest.chunks(2).take(3) {
            components[usize::from(pair[0]) % DIM] += if pair[1] % 2 == 0 { 1.0 } else { -1.0 };
        }
    }
    Embedding::new(components).expect("finite and not zero")
}

pub(crate) fn document(source: &str, title: &str, text: &str) -> Document {
    Document {
        source: source.into(),
        title: title.into(),
        text: text.into(),
        metadata: BTreeMap::new(),
        outline: Vec::new(),
    }
}

/// One chunk a sentence.
pub(crate) fn cut(document: &Document) -> Vec<(Chunk, Embedding)> {
    let mut chunks = Vec::new();
    let mut start = 0;
    for sentence in document.text.split_inclusive(". ") {
        let end = start + sentence.len();
        let chunk = Chunk { ordinal: chunks.len() as u32, start, end, text: sentence.to_owned() };
        chunks.push((chunk, embed(sentence)));
        start = end;
    }
    chunks
}

pub(crate) fn writer(place: &KnowledgeBase) -> Writer {
    place.create_or_open_writer(&model(), DIM).expect("writer")
}

pub(crate) fn snapshot(folder: &Path) -> Snapshot {
    KnowledgeBase::at(folder).snapshot().expect("snapshot")
}

/// Adds documents the way an ingest does: chunks only for what needs them.
pub(crate) fn add(writer: &mut Writer, documents: &[Document]) -> (Vec<Outcome>, Generation) {
    let mut batch = writer.begin("test").expect("begun");
    let mut outcomes = Vec::new();
    for document in documents {
        let known: Known = batch.classify(document).expect("classified");
        let chunks = if known.needs_chunks() { cut(document) } else { Vec::new() };
        outcomes.push(batch.add(document, &chunks).expect("added"));
    }
    (outcomes, batch.commit().expect("committed"))
}

pub(crate) fn delete(writer: &mut Writer, source: &str) -> anchorite_store::Deletion {
    let mut batch = writer.begin("test").expect("begun");
    let deletion = batch.delete_source(source).expect("deleted");
    batch.commit().expect("committed");
    deletion
}

/// Caches from the first chunk on, never behind.
pub(crate) fn eager() -> CacheSettings {
    CacheSettings { exact_below: 1, newer_chunks: 0, newer_fraction: 0.0, ..CacheSettings::default() }
}

const WORDS: [&str; 24] = [
    "river", "castle", "bread", "engine", "winter", "garden", "copper", "letter", "bridge", "market", "violin",
    "harbour", "forest", "candle", "mirror", "planet", "thunder", "velvet", "window", "saddle", "lantern", "anchor",
    "meadow", "pepper",
];

/// A document of `sentences` sentences that depends on `seed` alone.
pub(crate) fn invented(source: &str, seed: u64, sentences: usize) -> Document {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut draw = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut text = String::new();
    for sentence in 0..sentences {
        if sentence > 0 {
            text.push_str(". ");
        }
        let words: Vec<&str> = (0..4 + draw(5)).map(|_| WORDS[draw(WORDS.len())]).collect();
        text.push_str(&words.join(" "));
    }
    document(source, &format!("Title {seed} {}", WORDS[draw(WORDS.len())]), &text)
}

pub(crate) fn word(at: usize) -> &'static str {
    WORDS[at % WORDS.len()]
}
