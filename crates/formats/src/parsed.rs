//! What a parser is given, and what it gives back.

use std::collections::BTreeMap;

use anchorite_core::{LimitExceeded, Limits};
use serde_json::Value;

use crate::draft::Draft;
use crate::item::{ExtractError, Remark, SkipReason};
use crate::package::Allowance;

/// What a parser may know of the file that it reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    /// The file, as documents name it.
    pub(crate) source: &'a str,
    pub(crate) limits: &'a Limits,
    pub(crate) password: Option<&'a str>,
    pub(crate) allowance: &'a Allowance,
}

/// What a parser found.
#[derive(Debug)]
pub(crate) enum Parsed {
    Text { draft: Draft, title: Option<String>, metadata: BTreeMap<String, Value>, remarks: Vec<Remark> },
    Skipped(SkipReason),
}

impl Parsed {
    /// A text of which nothing more is known.
    pub(crate) fn text(draft: Draft, title: Option<String>) -> Self {
        Self::Text { draft, title, metadata: BTreeMap::new(), remarks: Vec::new() }
    }
}

impl Reading<'_> {
    /// An empty text that takes as much as a document may have.
    pub(crate) fn draft(&self) -> Draft {
        Draft::new(self.limits.document_bytes)
    }

    /// The file is no whole file of `format`.
    pub(crate) fn damaged(&self, format: &str, message: impl std::fmt::Display) -> ExtractError {
        ExtractError::Damaged { path: self.source.to_owned(), format: format.to_owned(), message: message.to_string() }
    }

    /// The file can't be read without a password, or not with the one that was given.
    pub(crate) fn encrypted(&self) -> ExtractError {
        let path = self.source.to_owned();
        match self.password {
            None => ExtractError::Encrypted { path },
            Some(_) => ExtractError::WrongPassword { path },
        }
    }

    /// `what` of the file is within the limit.
    pub(crate) fn check(
        &self,
        what: &str,
        limit: &'static str,
        actual: u64,
        allowed: u64,
    ) -> Result<(), LimitExceeded> {
        LimitExceeded::check(|| format!("{what} of {}", self.source), limit, actual, allowed)
    }
}
