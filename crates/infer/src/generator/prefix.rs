//! What was read before, kept for prompts that begin alike (prefix caching, as in Kwon et al. 2023 and Zheng et al. 2024).

use std::collections::HashSet;
use std::sync::Arc;

use super::native::Sequence;

/// Sequences read lately, bounded by the memory of their pages. What two have in common is held once.
pub(super) struct PrefixCache {
    /// The one used last comes last.
    kept: Vec<Sequence>,
    limit: usize,
}

impl PrefixCache {
    /// At most `limit` bytes of pages.
    pub(super) fn new(limit: usize) -> Self {
        Self { kept: Vec::new(), limit }
    }

    /// A fork of the sequence that shares the longest beginning with `tokens`, cut to what they share.
    pub(super) fn longest(&mut self, tokens: &[u32]) -> Sequence {
        let shared = |sequence: &Sequence| common(sequence.tokens(), tokens);
        let Some(best) = (0..self.kept.len()).max_by_key(|&index| shared(&self.kept[index])) else {
            return Sequence::default();
        };
        let found = self.kept.remove(best);
        let mut fork = found.clone();
        fork.truncate(shared(&found));
        self.kept.push(found);
        fork
    }

    /// Keeps `sequence`; those used longest ago go if it gets too much.
    pub(super) fn keep(&mut self, sequence: &Sequence) {
        let tokens = sequence.tokens();
        if let Some(index) = self.kept.iter().position(|kept| kept.tokens().starts_with(tokens)) {
            let longer = self.kept.remove(index);
            self.kept.push(longer);
            return;
        }
        self.kept.retain(|kept| !tokens.starts_with(kept.tokens()));
        self.kept.push(sequence.clone());
        while self.bytes() > self.limit && !self.kept.is_empty() {
            self.kept.remove(0);
        }
    }

    /// Bytes of the pages held, each counted once.
    pub(super) fn bytes(&self) -> usize {
        let mut seen = HashSet::new();
        let pages = self.kept.iter().flat_map(Sequence::pages);
        pages.filter(|page| seen.insert(Arc::as_ptr(page))).map(|page| page.bytes()).sum()
    }
}

/// How many tokens two lists begin with alike.
pub(super) fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
