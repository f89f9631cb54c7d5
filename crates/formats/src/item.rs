//! What reading gives: documents, what was left out and why, and errors.

use std::fmt;

use anchorite_core::{Document, LimitExceeded};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::decode::DecodeWarning;

/// One thing that was read, or was not.
#[derive(Debug)]
pub enum Item {
    /// A document.
    Document {
        /// The document. Its text is not blank.
        document: Document,
        /// What should be known of how it was read.
        remarks: Vec<Remark>,
    },
    /// Something that holds no document.
    Skipped {
        /// Path, or path and what is in it.
        source: String,
        /// Why.
        reason: SkipReason,
    },
    /// Something that should hold a document and could not be read. What comes after it is read all the same.
    Error(ReadError),
}

/// Something to know of a document that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Remark {
    /// Characters were lost when it was decoded.
    Lost(DecodeWarning),
    /// Its fonts don't tell which characters they show, so its text is no language.
    Gibberish,
    /// Some of its pages are images.
    PagesWithoutText {
        /// So many.
        pages: usize,
        /// Of so many.
        of: usize,
    },
    /// It is damaged, and what could be read of it was.
    Incomplete {
        /// What is wrong.
        message: String,
    },
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(lost) => lost.fmt(f),
            Self::Gibberish => f.write_str(
                "its fonts don't say which characters they show, so the text is gibberish; run it through OCR \
                 (ocrmypdf --force-ocr) and read that",
            ),
            Self::PagesWithoutText { pages, of } => write!(
                f,
                "{pages} of {of} pages are images without text and were left out; run it through OCR (ocrmypdf) for them"
            ),
            Self::Incomplete { message } => write!(f, "damaged, so parts may be missing: {message}"),
        }
    }
}

/// Why something holds no document.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SkipReason {
    /// It has no text but white space.
    Blank,
    /// A record has a title and no text.
    OnlyTitle,
    /// Its name begins with a dot.
    Hidden,
    /// Its content is of none of the known formats.
    UnknownFormat,
    /// So many of its bytes are no text that it is something else.
    NotText,
    /// A scan: images of pages, and no text.
    NoTextLayer,
    /// A pipe, a device, a socket.
    NotAFile,
    /// A link back to a folder that holds it.
    LinkLoop,
    /// A link out of the folder that was named.
    LinkOutside,
    /// A link, a device or the like in an archive.
    NoFileInArchive,
    /// The name of an archive's entry leads out of the archive.
    PathOutside,
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
            Self::UnknownFormat => "of no format that holds text (see README for those that are read)",
            Self::NotText => "not text, by its bytes",
            Self::NoTextLayer => "no text layer, only images of pages; run it through OCR (ocrmypdf) and read that",
            Self::NotAFile => "a pipe, device or socket (use - to read standard input)",
            Self::LinkLoop => "a link back to a folder that holds it",
            Self::LinkOutside => "a link out of the folder that was named",
            Self::NoFileInArchive => "a link or device in an archive, which is not followed",
            Self::PathOutside => "a name that leads out of its archive, which is not followed",
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
    /// A JSONL file was written to while it was read. What came from it may be incomplete.
    #[error("{path}: changed while it was read, so records may be missing; read it again")]
    Changed {
        /// The file.
        path: String,
    },
    /// Something could not be taken apart.
    #[error(transparent)]
    Extract(#[from] ExtractError),
}

/// Why text could not be taken out of something.
#[derive(Clone, Debug, Error, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExtractError {
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
    /// It can't be opened without a password.
    #[error("{path}: encrypted; give its password with --password")]
    Encrypted {
        /// The file.
        path: String,
    },
    /// The password does not open it.
    #[error("{path}: encrypted, and the password does not open it; give another with --password")]
    WrongPassword {
        /// The file.
        path: String,
    },
    /// It begins as a file of a format and is none, or only part of one.
    #[error("{path}: not a whole {format} file ({message}); get it again")]
    Damaged {
        /// The file.
        path: String,
        /// What it begins as.
        format: String,
        /// What is wrong.
        message: String,
    },
    /// The process that read it died.
    #[error("{path}: the process that read it {how}; the file is damaged or made to harm, leave it out or convert it")]
    Died {
        /// The file.
        path: String,
        /// "was killed by signal 11".
        how: String,
    },
    /// Reading it took too long.
    #[error(
        "{path}: reading it took over {seconds} s and was given up; raise `extraction_seconds` under [limits] if it is \
         worth that"
    )]
    Overtime {
        /// The file.
        path: String,
        /// The limit.
        seconds: u64,
    },
    /// Something is too large.
    #[error(transparent)]
    Limit(
        #[from]
        #[serde(with = "written_limit")]
        LimitExceeded,
    ),
}

/// A crossed limit as processes tell each other of it.
mod written_limit {
    use anchorite_core::LimitExceeded;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Written {
        what: String,
        limit: String,
        actual: u64,
        allowed: u64,
    }

    /// The limits that reading can cross.
    const NAMES: &[&str] = &[
        "archive_bytes",
        "archive_depth",
        "archive_entries",
        "archive_ratio",
        "document_bytes",
        "file_bytes",
        "line_bytes",
        "packed_file_bytes",
    ];

    pub(super) fn serialize<S: Serializer>(limit: &LimitExceeded, serializer: S) -> Result<S::Ok, S::Error> {
        let LimitExceeded { what, limit, actual, allowed } = limit.clone();
        Written { what, limit: limit.to_owned(), actual, allowed }.serialize(serializer)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<LimitExceeded, D::Error> {
        let Written { what, limit, actual, allowed } = Written::deserialize(deserializer)?;
        let known = NAMES.iter().find(|name| **name == limit);
        let limit = known.ok_or_else(|| D::Error::custom(format_args!("no limit is called {limit}")))?;
        Ok(LimitExceeded { what, limit, actual, allowed })
    }
}

impl From<LimitExceeded> for ReadError {
    fn from(limit: LimitExceeded) -> Self {
        Self::Extract(limit.into())
    }
}

impl ReadError {
    /// The file or folder to blame; for a limit, what crossed it.
    #[must_use]
    pub fn place(&self) -> &str {
        match self {
            Self::Io { path, .. } | Self::Compressed { path, .. } | Self::Changed { path } => path,
            Self::Extract(error) => error.place(),
        }
    }
}

impl ExtractError {
    /// The file to blame; for a limit, what crossed it.
    #[must_use]
    pub fn place(&self) -> &str {
        match self {
            Self::Record { path, .. }
            | Self::Encoding { path }
            | Self::Encrypted { path }
            | Self::WrongPassword { path }
            | Self::Damaged { path, .. }
            | Self::Died { path, .. }
            | Self::Overtime { path, .. } => path,
            Self::Limit(limit) => &limit.what,
        }
    }
}
