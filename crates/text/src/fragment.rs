//! Cutting a sentence that is too long for a chunk: at white space, else at word borders, else between characters as
//! readers see them (UAX #29 grapheme clusters), else between code points.

use std::ops::Range;

use anchorite_core::TokenCounter;
use unicode_segmentation::UnicodeSegmentation;

use crate::chunk::BYTES_PER_TOKEN;

/// Cuts long sentences, learning on the way how many bytes a token has.
pub(crate) struct Fragmenter<'t> {
    text: &'t str,
    counter: &'t dyn TokenCounter,
    /// Most tokens of a fragment, whatever it takes.
    room: usize,
    /// Most tokens of a fragment of several words, small enough that fragments can be shared between chunks.
    wanted: usize,
    bytes_per_token: f64,
}

/// Fragments of a sentence per chunk, at least, when chunks share nothing: coarser ones would leave chunks half empty.
const FRAGMENTS_PER_CHUNK: usize = 4;

impl<'t> Fragmenter<'t> {
    pub(crate) fn new(text: &'t str, counter: &'t dyn TokenCounter, room: usize, overlap: usize) -> Self {
        let wanted = if overlap > 0 { overlap } else { room / FRAGMENTS_PER_CHUNK };
        Self { text, counter, room, wanted: wanted.clamp(1, room), bytes_per_token: 4.0 }
    }

    /// Where the first fragment of `range`, which begins with no white space, ends; and its tokens.
    pub(crate) fn cut(&mut self, range: Range<usize>) -> (usize, usize) {
        let (end, tokens) = self
            .cut_at_words(range.clone(), self.wanted)
            .or_else(|| self.cut_at_words(range.clone(), self.room))
            .unwrap_or_else(|| self.cut_at_characters(range.clone()));
        if tokens > 0 {
            self.bytes_per_token = (end - range.start) as f64 / tokens as f64;
        }
        (end, tokens)
    }

    fn most_bytes(&self) -> usize {
        self.room * BYTES_PER_TOKEN
    }

    fn guess(&self, tokens: usize) -> usize {
        ((tokens as f64 * self.bytes_per_token) as usize).clamp(1, self.most_bytes())
    }

    /// A length for `limit` tokens, from one that had too many.
    fn shorter(length: usize, limit: usize, tokens: usize) -> usize {
        // Five in a hundred less, so that the second try mostly does it.
        let length_by_ratio = (length as f64 * limit as f64 / tokens as f64 * 0.95) as usize;
        length_by_ratio.clamp(1, length.saturating_sub(1).max(1))
    }

    /// `None` if the first word alone has more tokens than `limit`.
    fn cut_at_words(&self, range: Range<usize>, limit: usize) -> Option<(usize, usize)> {
        let mut guess = self.guess(limit);
        loop {
            let end = self.word_border(range.clone(), guess)?;
            let tokens = self.counter.count(&self.text[range.start..end]);
            if tokens <= limit {
                return Some((end, tokens));
            }
            if end - range.start > guess || guess == 1 {
                return None;
            }
            guess = Self::shorter(end - range.start, limit, tokens);
        }
    }

    /// The last border within `guess` bytes, before white space if there is such; else the end of the first word, unless
    /// that is beyond all measure.
    fn word_border(&self, range: Range<usize>, guess: usize) -> Option<usize> {
        let window_end = self.window_end(&range, self.most_bytes());
        let mut before_space = None;
        let mut before_word = None;
        let mut after_space = true;
        for (at, word) in self.text[range.start..window_end].split_word_bound_indices() {
            let end = at + word.len();
            if range.start + end == window_end && window_end < range.end {
                break;
            }
            let is_space = word.starts_with(char::is_whitespace);
            if is_space && !after_space && at <= guess {
                before_space = Some(at);
            }
            if end > guess {
                if before_word.is_none() {
                    return Some(range.start + end);
                }
                break;
            }
            if range.start + end == range.end {
                return Some(range.end);
            }
            if !is_space {
                before_word = Some(end);
            }
            after_space = is_space;
        }
        before_space.or(before_word).map(|length| range.start + length)
    }

    fn cut_at_characters(&self, range: Range<usize>) -> (usize, usize) {
        let mut guess = self.guess(self.room);
        loop {
            let end = self.character_border(&range, guess);
            let text = &self.text[range.start..end];
            let tokens = self.counter.count(text);
            if tokens <= self.room || text.chars().nth(1).is_none() {
                return (end, tokens);
            }
            guess = Self::shorter(text.len(), self.room, tokens);
        }
    }

    /// The last border of a grapheme within `guess` bytes, else of a code point, else the end of the first one.
    fn character_border(&self, range: &Range<usize>, guess: usize) -> usize {
        let window_end = self.window_end(range, guess);
        if window_end == range.end {
            return window_end;
        }
        // The window may end inside a grapheme, which a longer one shows: its last border counts only if it is a border
        // in the longer window as well.
        let look_end = self.window_end(range, guess + 64);
        let border = self.text[range.start..look_end]
            .grapheme_indices(true)
            .map(|(at, _)| range.start + at)
            .take_while(|at| *at <= window_end)
            .last();
        border.filter(|at| *at > range.start).unwrap_or(window_end)
    }

    /// At most `bytes` from the start of `range`, one character at least.
    fn window_end(&self, range: &Range<usize>, bytes: usize) -> usize {
        let end = self.text.floor_char_boundary(range.start.saturating_add(bytes).min(range.end));
        if end > range.start {
            return end;
        }
        self.text[range.clone()].chars().next().map_or(range.end, |first| range.start + first.len_utf8())
    }
}
