//! What parent and child say to each other: frames of a length (four bytes, little-endian) and JSON; the bytes of a file
//! follow their request as they are.

use std::io::{self, Read, Write};

use anchorite_core::{Document, Limits};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::item::{ExtractError, Item, ReadError, Remark, SkipReason};

/// The first thing that the parent says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) limits: Limits,
    pub(crate) password: Option<String>,
}

/// A file to take apart.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The file, as documents name it.
    pub source: String,
    /// The last part of its path.
    pub name: String,
    /// How many bytes follow.
    pub(crate) length: u64,
}

/// What the child says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// It has limited itself, but for this.
    Ready {
        unlimited: Vec<String>,
    },
    Document {
        document: Document,
        remarks: Vec<Remark>,
    },
    Skipped {
        source: String,
        reason: SkipReason,
    },
    Failed(ExtractError),
    /// That was all of one file.
    Done,
}

impl From<Item> for Answer {
    fn from(item: Item) -> Self {
        match item {
            Item::Document { document, remarks } => Self::Document { document, remarks },
            Item::Skipped { source, reason } => Self::Skipped { source, reason },
            Item::Error(ReadError::Extract(error)) => Self::Failed(error),
            // The child reads from memory; other errors don't come up.
            Item::Error(other) => Self::Failed(ExtractError::Damaged {
                path: other.place().to_owned(),
                format: "readable".to_owned(),
                message: other.to_string(),
            }),
        }
    }
}

/// Writes one frame.
pub(crate) fn send(output: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let json = serde_json::to_vec(message)?;
    let length = u32::try_from(json.len()).map_err(|_| io::Error::other("a message of over 4 GB"))?;
    output.write_all(&length.to_le_bytes())?;
    output.write_all(&json)
}

/// Reads one frame of `most` bytes at most; `None` at the end.
pub(crate) fn receive<T: DeserializeOwned>(input: &mut impl Read, most: usize) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match input.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > most {
        return Err(io::Error::other(format!("wrote a message of {length} bytes, over {most}")));
    }
    let mut json = Vec::new();
    input.take(length as u64).read_to_end(&mut json)?;
    if json.len() < length {
        return Ok(None);
    }
    serde_json::from_slice(&json).map(Some).map_err(|_| io::Error::other("wrote what is no message"))
}
