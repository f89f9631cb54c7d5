//! What reading gives: documents, what was left out and why, and errors.

use std::fmt;

use anchorite_core::{Document, LimitExceeded};
use thiserror::Error;

use crate::decode::DecodeWarning;

/// One thing that was read, or was not.
#[derive(Debug)]
pub enum Item {
    /// A document.
    Document {
        /// The document. Its text is not blank.
        document: Document,
        /// What was lost when it was decoded.
        warning: Option<DecodeWarning>,
    },
    /// Something that holds no document.
    Skipped {
        /// Path, or path and record.
        source: String,
        /// Why.
        reason: SkipReason,
    },
    /// Something that should hold a document and could not be read. What comes after it is read all the same.
    Error(ReadError),
}

/// Why something holds no document.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SkipReason {
    /// It has no text but white space.
    Blank,
    /// A record has a title and no text.
    OnlyTitle,
    /// Its name begins with a dot.
    Hidden,
    /// Its name ends in something else than the known formats.
    UnknownFormat,
    /// So many of its bytes are no text that it is something else.
    NotText,
    /// A pipe, a device, a socket.
    NotAFile,
    /// A link back to a folder that holds it.
    LinkLoop,
    /// A link out of the folder that was named.
    LinkOutside,
    /// Its name is not Unicode, and could not be told apart from others.
    NameNotUnicode,
    /// It was written to while it was read.
    Changed,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blank => "blank",
            Self::OnlyTitle => "a title and no text",
            Self::Hidden => "hidden (the name begins with a dot)",
            Self::UnknownFormat => "not .txt, .md, .jsonl, or one of these with .gz",
            Self::NotText => "not text, or UTF-16 without a byte order mark",
            Self::NotAFile => "a pipe, device or socket (use - to read standard input)",
            Self::LinkLoop => "a link back to a folder that holds it",
            Self::LinkOutside => "a link out of the folder that was named",
            Self::NameNotUnicode => "the name is not Unicode",
            Self::Changed => "changed while it was read; read it again",
        })
    }
}

/// Why something could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The file system failed.
    #[error("{path}: {source}; check that it exists and may be read")]
    Io {
        /// File or folder.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A compressed file is damaged or cut short. What came before is read.
    #[error("{path}: not a whole gzip file ({source}); get it again")]
    Compressed {
        /// The file.
        path: String,
        /// What is wrong.
        source: std::io::Error,
    },
    /// A line of a JSONL file is no record.
    #[error("{path}:{line}: {message}; each line must be a JSON object with a string \"text\"")]
    Record {
        /// The file.
        path: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        message: String,
    },
    /// A JSONL file in UTF-16.
    #[error("{path}: JSONL must be UTF-8, and this is UTF-16; convert it (iconv -f UTF-16 -t UTF-8)")]
    Encoding {
        /// The file.
        path: String,
    },
    /// A JSONL file was written to while it was read. What came from it may be incomplete.
    #[error("{path}: changed while it was read, so records may be missing; read it again")]
    Changed {
        /// The file.
        path: String,
    },
    /// Something is too large.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}
impl ReadError {
    /// The file or folder to blame; for a limit, what crossed it.
    #[must_use]
    pub fn place(&self) -> &str {
        match self {
            Self::Io { path, .. }
            | Self::Compressed { path, .. }
            | Self::Record { path, .. }
            | Self::Encoding { path }
            | Self::Changed { path } => path,
            Self::Limit(limit) => &limit.what,
        }
    }
}
