//! Tokens to text while they are written: whole characters only, and nothing of a stop text.

use super::vocabulary::Vocabulary;

/// Turns a growing list of tokens into pieces of text.
pub(crate) struct TextStream {
    tokens: Vec<u32>,
    /// Tokens before this one are wholly in the text; those up to `read` give context for decoding the next.
    prefix: usize,
    read: usize,
    text: String,
    emitted: usize,
    stop: Vec<String>,
    stopped: bool,
}

impl TextStream {
    pub(crate) fn new(stop: &[String]) -> Self {
        Self {
            tokens: Vec::new(),
            prefix: 0,
            read: 0,
            text: String::new(),
            emitted: 0,
            stop: stop.iter().filter(|text| !text.is_empty()).cloned().collect(),
            stopped: false,
        }
    }

    /// Adds a token; returns text that is certain to be part of the result, which may be empty.
    pub(crate) fn push(&mut self, token: u32, vocabulary: &Vocabulary) -> Result<&str, String> {
        self.tokens.push(token);
        let before = vocabulary.decode(&self.tokens[self.prefix..self.read])?;
        let after = vocabulary.decode(&self.tokens[self.prefix..])?;
        // A character whose bytes are not all there yet decodes to U+FFFD at the end; wait for the rest.
        if after.len() > before.len() && !after.ends_with('\u{FFFD}') {
            self.text.push_str(after.get(before.len()..).unwrap_or_default());
            self.prefix = self.read;
            self.read = self.tokens.len();
        }
        Ok(self.release())
    }

    /// True once a stop text came; the text ends before it.
    pub(crate) fn stopped(&self) -> bool {
        self.stopped
    }

    /// Ends the stream; returns what was held back, and the whole text.
    pub(crate) fn finish(mut self, vocabulary: &Vocabulary) -> Result<(String, String, Vec<u32>), String> {
        if !self.stopped {
            let before = vocabulary.decode(&self.tokens[self.prefix..self.read])?;
            let after = vocabulary.decode(&self.tokens[self.prefix..])?;
            self.text.push_str(after.get(before.len()..).unwrap_or_default());
            self.release();
        }
        let held = if self.stopped { String::new() } else { self.text[self.emitted..].to_owned() };
        Ok((held, self.text, self.tokens))
    }

    fn release(&mut self) -> &str {
        let from = self.emitted;
        if let Some(at) = self.stop.iter().filter_map(|stop| self.text[from..].find(stop.as_str())).min() {
            self.text.truncate(from + at);
            self.stopped = true;
            self.emitted = self.text.len();
        } else {
            // Keep back an ending that may turn into a stop text.
            let held = self.stop.iter().map(|stop| longest_overlap(&self.text[from..], stop)).max().unwrap_or(0);
            self.emitted = self.text.len() - held;
        }
        &self.text[from..self.emitted]
    }
}

/// Bytes of the longest ending of `text` that begins `stop`.
fn longest_overlap(text: &str, stop: &str) -> usize {
    stop.char_indices().map(|(at, _)| at).rev().find(|&at| at > 0 && text.ends_with(&stop[..at])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_that_may_become_a_stop_text_is_held_back() {
        assert_eq!(longest_overlap("answer\n", "\n\nQ"), 1);
        assert_eq!(longest_overlap("answer\n\n", "\n\nQ"), 2);
        assert_eq!(longest_overlap("answer", "\n\nQ"), 0);
        assert_eq!(longest_overlap("aé", "éz"), 2);
    }
}
