//! Entries of ZIP and TAR files, within limits.
//!
//! A few bytes can stand for very many. Nothing is unpacked beyond its limit: the size of an entry, how many times larger
//! than packed it is, the total of a file with all archives within archives, and the number of entries.

use std::cell::Cell;
use std::io::{Cursor, Read};

use anchorite_core::{LimitExceeded, Limits};
use zip::ZipArchive;
use zip::result::ZipError;

use crate::item::ExtractError;
use crate::parsed::Reading;

/// Entries below this size are not asked how they were packed: a blank page packs very well.
const SMALL: u64 = 1 << 20;

/// What is left of the limits for one file, with all that is in it.
#[derive(Debug)]
pub(crate) struct Allowance {
    bytes: Cell<u64>,
    entries: Cell<u64>,
}

impl Allowance {
    pub(crate) fn new() -> Self {
        Self { bytes: Cell::new(0), entries: Cell::new(0) }
    }

    /// One entry more.
    pub(crate) fn entry(&self, reading: &Reading<'_>) -> Result<(), LimitExceeded> {
        self.entries.set(self.entries.get() + 1);
        reading.check("the number of entries", "archive_entries", self.entries.get(), reading.limits.archive_entries)
    }

    /// Reads all of an entry that has `packed` bytes in its archive.
    pub(crate) fn unpack(&self, mut entry: impl Read, packed: u64, reading: &Reading<'_>) -> Result<Vec<u8>, Unpack> {
        let limits: &Limits = reading.limits;
        let mut bytes = Vec::new();
        let mut piece = vec![0; 64 << 10];
        loop {
            let count = match entry.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Unpack::Damaged(error.to_string())),
            };
            bytes.extend_from_slice(&piece[..count]);
            let length = bytes.len() as u64;
            reading.check("the size", "packed_file_bytes", length, limits.packed_file_bytes)?;
            if length > SMALL {
                reading.check("the packing ratio", "archive_ratio", length / packed.max(1), limits.archive_ratio)?;
            }
            self.bytes.set(self.bytes.get() + count as u64);
            reading.check("the unpacked total", "archive_bytes", self.bytes.get(), limits.archive_bytes)?;
        }
        Ok(bytes)
    }
}

/// Why an entry was not unpacked.
#[derive(Debug)]
pub(crate) enum Unpack {
    Limit(LimitExceeded),
    Damaged(String),
}

impl From<LimitExceeded> for Unpack {
    fn from(limit: LimitExceeded) -> Self {
        Self::Limit(limit)
    }
}

/// The parts of a document that is a ZIP file.
pub(crate) struct Package<'r> {
    archive: ZipArchive<Cursor<Vec<u8>>>,
    reading: Reading<'r>,
    format: &'static str,
}

impl<'r> Package<'r> {
    pub(crate) fn open(bytes: Vec<u8>, format: &'static str, reading: &Reading<'r>) -> Result<Self, ExtractError> {
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| reading.damaged(format, error))?;
        Ok(Self { archive, reading: *reading, format })
    }

    pub(crate) fn reading(&self) -> &Reading<'r> {
        &self.reading
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.archive.file_names().flatten().map(std::borrow::Cow::into_owned).collect()
    }

    /// The part called `name`; `None` if there is none.
    pub(crate) fn part(&mut self, name: &str) -> Result<Option<Vec<u8>>, ExtractError> {
        let name = name.trim_start_matches('/');
        let Some(index) = self.archive.index_for_name(name) else { return Ok(None) };
        let file = match self.archive.by_index(index) {
            Ok(file) => file,
            Err(ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED)) => return Err(self.reading.encrypted()),
            Err(error) => return Err(self.reading.damaged(self.format, error)),
        };
        let packed = file.compressed_size();
        match self.reading.allowance.unpack(file, packed, &self.reading) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Unpack::Limit(limit)) => Err(limit.into()),
            Err(Unpack::Damaged(message)) => Err(self.reading.damaged(self.format, message)),
        }
    }

    /// As [`Package::part`], decoded.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, ExtractError> {
        Ok(self.part(name)?.map(crate::xml::decoded))
    }

    /// A part that there must be.
    pub(crate) fn needed(&mut self, name: &str) -> Result<String, ExtractError> {
        let format = self.format;
        self.text(name)?.ok_or_else(|| self.reading.damaged(format, format_args!("{name} is missing")))
    }

    /// Where the relations of part `name` lead: target by id, targets as names of parts, with their types.
    pub(crate) fn relations(&mut self, name: &str) -> Result<Vec<Relation>, ExtractError> {
        let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
        let Some(text) = self.text(&format!("{folder}/_rels/{file}.rels"))? else { return Ok(Vec::new()) };
        let mut relations = Vec::new();
        // Relations that can't be read lead nowhere.
        let _ = crate::xml::walk(&text, &mut |event| {
            if let crate::xml::Event::Start(element) = event
                && element.name() == "Relationship"
                && element.attribute("TargetMode").as_deref() != Some("External")
            {
                let (Some(id), Some(target)) = (element.attribute("Id"), element.attribute("Target")) else {
                    return true;
                };
                let kind = element.attribute("Type").unwrap_or_default();
                let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
                relations.push(Relation { id, kind, target: resolved(folder, &target) });
            }
            true
        });
        Ok(relations)
    }
}

/// A relation between parts.
#[derive(Debug)]
pub(crate) struct Relation {
    pub(crate) id: String,
    /// The last part of its type: "slide", "notesSlide".
    pub(crate) kind: String,
    /// The name of the part that it leads to.
    pub(crate) target: String,
}

/// `target` as seen from `folder`, without `.` and `..`.
pub(crate) fn resolved(folder: &str, target: &str) -> String {
    let whole = if target.starts_with('/') { target.to_owned() } else { format!("{folder}/{target}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}
