//! How fast a generator reads and writes, and how well it predicts a text.

use std::time::{Duration, Instant};

use anchorite_core::{Budget, InferenceError};

use super::LocalGenerator;
use super::body::PASS_TOKENS;
use super::sampler::log_softmax;

/// Tokens whose logits are computed together.
const ROWS: usize = 128;

/// Times of one run.
#[derive(Clone, Copy, Debug)]
pub struct GeneratorTimes {
    /// Tokens read at once, and the time it took.
    pub read: (usize, Duration),
    /// Tokens read one after the other, as in writing, and the time it took.
    pub written: (usize, Duration),
}

/// How well a text was predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Perplexity {
    /// e to the mean negative log-likelihood of a token.
    pub perplexity: f64,
    /// Tokens that were predicted.
    pub tokens: usize,
}

impl LocalGenerator {
    /// Tokens of `text`, without a template.
    ///
    /// # Errors
    /// If the tokenizer fails.
    pub fn text_tokens(&self, text: &str) -> Result<Vec<u32>, InferenceError> {
        self.vocabulary.encode_plain(text).map_err(|message| self.fault(message))
    }

    /// Reads `tokens` from an empty state at once, and then their first `written` once more, one by one behind them.
    ///
    /// # Errors
    /// If the budget runs out, the tokens don't fit the context, or the backend fails.
    pub fn measure(&self, tokens: &[u32], written: usize, budget: &Budget) -> Result<GeneratorTimes, InferenceError> {
        if tokens.is_empty() {
            return Err(InferenceError::EmptyInput { what: "text to measure with" });
        }
        self.check_room(tokens, written)?;
        let mut memory = self.body.new_memory();
        let started = Instant::now();
        for piece in tokens.chunks(PASS_TOKENS) {
            self.pass(piece, &mut memory, 1, budget)?;
        }
        let read = (tokens.len(), started.elapsed());
        let started = Instant::now();
        let written = tokens.iter().take(written);
        let count = written.len();
        for token in written {
            self.pass(&[*token], &mut memory, 1, budget)?;
        }
        Ok(GeneratorTimes { read, written: (count, started.elapsed()) })
    }

    /// Perplexity of `tokens` in windows of `window`, each read from an empty state; the first token of each is given.
    ///
    /// # Errors
    /// If there is no whole window, a token is none of the model's, the budget runs out, or the backend fails.
    pub fn perplexity(&self, tokens: &[u32], window: usize, budget: &Budget) -> Result<Perplexity, InferenceError> {
        let (mut loss, mut count) = (0.0, 0);
        for tokens in tokens.chunks_exact(window.max(2)) {
            let mut memory = self.body.new_memory();
            for (number, piece) in tokens[..tokens.len() - 1].chunks(ROWS).enumerate() {
                let rows = self.pass(piece, &mut memory, piece.len(), budget)?;
                let following = &tokens[number * ROWS + 1..];
                for (row, &next) in rows.iter().zip(following) {
                    loss -= f64::from(log_softmax(row)[next as usize]);
                    count += 1;
                }
            }
        }
        if count == 0 {
            return Err(InferenceError::EmptyInput { what: "text to measure with (one window of tokens is needed)" });
        }
        Ok(Perplexity { perplexity: (loss / f64::from(count)).exp(), tokens: count as usize })
    }
}
