//! Text to overlapping chunks of whole sentences, by the embedder's own tokens.
//!
//! A chunk takes as many whole sentences as fit. The next one begins with the last whole sentences of the one before that
//! fit the overlap. A sentence that is too long alone is cut at word borders, and a word that is too long at character
//! borders. A heading goes with what follows it.
//!
//! Invariants: chunks hold every byte of the text that is not white space; `start` and `end` lie on character borders, and
//! the chunk's text is what lies between; starts and ends grow strictly; a chunk has at most `max_tokens` tokens unless it
//! is a single character. Every byte is counted a bounded number of times, and no more than [`BYTES_PER_TOKEN`] bytes per
//! token at once, so the time is linear in the text also when it is one endless line or one endless word.

use std::collections::VecDeque;
use std::ops::Range;

use anchorite_core::{Chunk, LimitExceeded, Limits, TokenCounter};
use thiserror::Error;

use crate::fragment::Fragmenter;
use crate::sentence::Sentences;

/// Most bytes of a chunk per token allowed. Text stays far below it (4 to 5 in English); what reaches it is a run of white
/// space, or a "word" that the model reads as one unknown token however long it is.
pub(crate) const BYTES_PER_TOKEN: usize = 32;

/// Cuts documents into chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunker {
    max_tokens: usize,
    overlap_tokens: usize,
    max_chunks: usize,
}

/// Why a document was not cut.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ChunkError {
    /// The sizes make no sense.
    #[error(
        "chunks of {max_tokens} tokens can't overlap by {overlap_tokens}; make the overlap smaller than the chunks"
    )]
    Sizes {
        /// Most tokens of a chunk.
        max_tokens: usize,
        /// Most tokens that two chunks share.
        overlap_tokens: usize,
    },
    /// The document has too many chunks.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}

impl Chunker {
    /// Chunks of at most `max_tokens` tokens (title included, see [`Chunker::chunk`]), of which neighbours share at most
    /// `overlap_tokens`.
    ///
    /// # Errors
    /// [`ChunkError::Sizes`] unless the overlap is smaller than the chunks.
    pub fn new(max_tokens: usize, overlap_tokens: usize) -> Result<Self, ChunkError> {
        if overlap_tokens >= max_tokens {
            return Err(ChunkError::Sizes { max_tokens, overlap_tokens });
        }
        Ok(Self { max_tokens, overlap_tokens, max_chunks: Limits::default().document_chunks })
    }

    /// Takes the most chunks of a document from `limits`.
    #[must_use]
    pub fn with_limits(mut self, limits: &Limits) -> Self {
        self.max_chunks = limits.document_chunks;
        self
    }

    /// Most tokens of a chunk.
    #[must_use]
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// Most tokens that two neighbours share.
    #[must_use]
    pub fn overlap_tokens(&self) -> usize {
        self.overlap_tokens
    }

    /// The chunks of `text`; none if it is blank. Models read a chunk behind its document's title, so the title's tokens
    /// come off each chunk's room, down to half of it.
    ///
    /// # Errors
    /// [`ChunkError::Limit`] if there are too many.
    pub fn chunk(&self, title: &str, text: &str, counter: &dyn TokenCounter) -> Result<Vec<Chunk>, ChunkError> {
        let title_tokens = if title.is_empty() { 0 } else { counter.count(&format!("{title}. ")) };
        let room = self.max_tokens.saturating_sub(title_tokens).max(self.max_tokens.div_ceil(2));
        let overlap = self.overlap_tokens.min(room - 1);
        let units = Units::new(text, counter, room, overlap);
        let mut packer = Packer { text, counter, room, overlap, excess: 1.0, units };
        let mut chunks = Vec::new();
        let mut shared = VecDeque::new();
        while let Some(packed) = packer.pack(shared) {
            let too_many = || format!("the number of chunks of the document {title:?}");
            LimitExceeded::check(too_many, "document_chunks", chunks.len() as u64 + 1, self.max_chunks as u64)?;
            let Range { start, end } = span(&packed);
            // The limit on chunks is far below 2³² as a rule; beyond, ordinals stay at the largest.
            let ordinal = u32::try_from(chunks.len()).unwrap_or(u32::MAX);
            chunks.push(Chunk { ordinal, start, end, text: text[start..end].to_owned() });
            shared = packer.shared(packed);
        }
        Ok(chunks)
    }
}

/// A sentence, or a fragment of a long one.
#[derive(Clone, Copy, Debug)]
struct Unit {
    start: usize,
    end: usize,
    tokens: usize,
    heading: bool,
}

/// From the first to the last of `units`, of which there is one at least.
fn span(units: &VecDeque<Unit>) -> Range<usize> {
    match (units.front(), units.back()) {
        (Some(first), Some(last)) => first.start..last.end,
        _ => 0..0,
    }
}

struct Packer<'t> {
    text: &'t str,
    counter: &'t dyn TokenCounter,
    room: usize,
    overlap: usize,
    /// How many times as many tokens the last chunk had as its units together: what lies between them counts too.
    excess: f64,
    units: Units<'t>,
}

impl Packer<'_> {
    /// Would units of so many tokens together be expected to fit?
    fn within(&self, tokens: usize, most: usize) -> bool {
        tokens as f64 * self.excess <= most as f64
    }

    fn count(&self, units: &VecDeque<Unit>) -> usize {
        self.counter.count(&self.text[span(units)])
    }

    /// The next chunk's units. It begins with units of the one before, as many of them as leave room for a new one.
    fn pack(&mut self, shared: VecDeque<Unit>) -> Option<VecDeque<Unit>> {
        let mut old = shared.len();
        let mut packed = shared;
        let mut tokens: usize = packed.iter().map(|unit| unit.tokens).sum();
        while let Some(unit) = self.units.take() {
            let bytes = unit.end - packed.front().map_or(unit.start, |first| first.start);
            if packed.is_empty()
                || (self.within(tokens + unit.tokens, self.room) && bytes <= self.room * BYTES_PER_TOKEN)
            {
                tokens += unit.tokens;
                packed.push_back(unit);
                continue;
            }
            self.units.put_back(unit);
            if packed.len() > old {
                break;
            }
            tokens -= packed.pop_front().map_or(0, |first| first.tokens);
            old -= 1;
        }
        if packed.len() == old {
            return None;
        }
        self.fit(&mut packed, old);
        Some(packed)
    }

    /// Tokens of parts don't add up to those of the whole in every model: takes units off until the whole fits. Then gives
    /// headings at the end to the next chunk.
    fn fit(&mut self, packed: &mut VecDeque<Unit>, mut old: usize) {
        while packed.len() > 1 {
            let count = self.count(packed);
            let sum: usize = packed.iter().map(|unit| unit.tokens).sum();
            self.excess = (count as f64 / sum.max(1) as f64).max(1.0);
            if count <= self.room {
                break;
            }
            let new = packed.len() - old;
            if new > 1 {
                let kept = (new * self.room / count).clamp(1, new - 1);
                for unit in packed.drain(old + kept..).rev() {
                    self.units.put_back(unit);
                }
            } else {
                packed.pop_front();
                old -= 1;
            }
        }
        while packed.len() > old + 1 && self.units.has_returned_or_more() {
            match packed.pop_back() {
                Some(unit) if unit.heading => self.units.put_back(unit),
                Some(unit) => {
                    packed.push_back(unit);
                    break;
                }
                None => break,
            }
        }
    }

    /// The last units that the next chunk takes over. Never all, so that each chunk begins behind the one before.
    fn shared(&self, mut packed: VecDeque<Unit>) -> VecDeque<Unit> {
        let mut tokens = 0;
        let mut kept = 0;
        for unit in packed.iter().skip(1).rev() {
            tokens += unit.tokens;
            if !self.within(tokens, self.overlap) {
                break;
            }
            kept += 1;
        }
        packed.drain(..packed.len() - kept);
        while !packed.is_empty() && self.count(&packed) > self.overlap {
            packed.pop_front();
        }
        packed
    }
}

/// The units of a text, one after the other, with some put back.
struct Units<'t> {
    text: &'t str,
    counter: &'t dyn TokenCounter,
    room: usize,
    sentences: Sentences<'t>,
    fragmenter: Fragmenter<'t>,
    /// What is left of a long sentence.
    long: Range<usize>,
    /// The one to come next is last.
    returned: Vec<Unit>,
}

impl<'t> Units<'t> {
    fn new(text: &'t str, counter: &'t dyn TokenCounter, room: usize, overlap: usize) -> Self {
        Self {
            text,
            counter,
            room,
            sentences: Sentences::new(text),
            fragmenter: Fragmenter::new(text, counter, room, overlap),
            long: 0..0,
            returned: Vec::new(),
        }
    }

    fn put_back(&mut self, unit: Unit) {
        self.returned.push(unit);
    }

    fn has_returned_or_more(&mut self) -> bool {
        match self.take() {
            Some(unit) => {
                self.put_back(unit);
                true
            }
            None => false,
        }
    }

    fn take(&mut self) -> Option<Unit> {
        if let Some(unit) = self.returned.pop() {
            return Some(unit);
        }
        if self.long.is_empty() {
            let sentence = self.sentences.next()?;
            let Range { start, end } = sentence.range;
            if end - start <= self.room * BYTES_PER_TOKEN {
                let tokens = self.counter.count(&self.text[start..end]);
                if tokens <= self.room {
                    return Some(Unit { start, end, tokens, heading: sentence.heading });
                }
            }
            self.long = start..end;
        }
        let start = self.long.start;
        let (end, tokens) = self.fragmenter.cut(self.long.clone());
        let rest = &self.text[end..self.long.end];
        self.long.start = self.long.end - rest.trim_start().len();
        Some(Unit { start, end, tokens, heading: false })
    }
}
