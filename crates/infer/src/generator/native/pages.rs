//! What a decoder on the processor remembers of the tokens that it has read: pages, which sequences share.

use std::sync::Arc;

use anchorite_kernels::PAGE;

/// What all layers remember of [`PAGE`] tokens.
#[derive(Clone)]
pub(crate) struct Page {
    /// Keys and values as 16-bit floats, one layer that attends after the other.
    pub(crate) attention: Vec<u16>,
    /// `[PAGE, hidden]` of each layer that convolves, one after the other: what its filter runs over.
    pub(crate) columns: Vec<f32>,
}

impl Page {
    /// Bytes of memory held.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.attention.as_slice()) + size_of_val(self.columns.as_slice())
    }
}

/// Tokens that were read, with what is remembered of them. A copy shares the pages; a page is copied when one of those that
/// share it writes into it, so that a fork costs one page at most.
#[derive(Clone, Default)]
pub(crate) struct Sequence {
    tokens: Vec<u32>,
    pages: Vec<Arc<Page>>,
}

impl Sequence {
    /// A sequence that was taken apart; `None` if the pages are not those of so many tokens.
    pub(crate) fn from_parts(tokens: Vec<u32>, pages: Vec<Arc<Page>>) -> Option<Self> {
        (pages.len() == tokens.len().div_ceil(PAGE)).then_some(Self { tokens, pages })
    }

    pub(crate) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(crate) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    pub(crate) fn pages(&self) -> &[Arc<Page>] {
        &self.pages
    }

    /// Forgets what follows the first `len` tokens.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len < self.tokens.len() {
            self.tokens.truncate(len);
            self.pages.truncate(len.div_ceil(PAGE));
        }
    }

    /// Makes room for `tokens` behind those that are there; pages of `attention` and `columns` numbers.
    pub(super) fn extend(&mut self, tokens: &[u32], attention: usize, columns: usize) {
        self.tokens.extend_from_slice(tokens);
        while self.pages.len() * PAGE < self.tokens.len() {
            self.pages.push(Arc::new(Page { attention: vec![0; attention], columns: vec![0.0; columns] }));
        }
    }

    /// The page of `position`, for this sequence alone.
    pub(super) fn own_page(&mut self, position: usize) -> &mut Page {
        Arc::make_mut(&mut self.pages[position / PAGE])
    }
}
