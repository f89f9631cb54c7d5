//! Reads a GGUF header piece by piece, and never past the file or a limit.

use std::io::{ErrorKind, Read};

use anchorite_core::{LimitExceeded, Limits};

use super::GgufValue;

/// Why reading stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// The file is wrong.
    Damaged { offset: u64, reason: String },
    /// The file is too much.
    Limit(LimitExceeded),
    /// The system failed.
    Io(std::io::Error),
}

impl Stop {
    pub(super) fn at<T>(offset: u64, reason: impl Into<String>) -> Result<T, Self> {
        Err(Self::Damaged { offset, reason: reason.into() })
    }
}

impl From<LimitExceeded> for Stop {
    fn from(limit: LimitExceeded) -> Self {
        Self::Limit(limit)
    }
}

/// Arrays in arrays in arrays: models have at most one level.
const DEPTH: u32 = 3;
/// Together, strings may take this many times the longest one, and arrays have this many times the elements of one.
const TOTAL: u64 = 2;

pub(super) struct Cursor<'a, R> {
    reader: R,
    offset: u64,
    file_bytes: u64,
    limits: &'a Limits,
    string_bytes: u64,
    array_elements: u64,
}

impl<'a, R: Read> Cursor<'a, R> {
    pub(super) fn new(reader: R, file_bytes: u64, limits: &'a Limits) -> Self {
        Self { reader, offset: 0, file_bytes, limits, string_bytes: 0, array_elements: 0 }
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    fn left(&self) -> u64 {
        self.file_bytes.saturating_sub(self.offset)
    }

    pub(super) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut bytes = [0; N];
        match self.reader.read_exact(&mut bytes) {
            Ok(()) => {
                self.offset += N as u64;
                Ok(bytes)
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                Stop::at(self.offset, "it ends in its header: it was cut short")
            }
            Err(error) => Err(Stop::Io(error)),
        }
    }

    pub(super) fn u32(&mut self) -> Result<u32, Stop> {
        self.bytes().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Stop> {
        self.bytes().map(u64::from_le_bytes)
    }

    /// A number of things that take at least `smallest` bytes each.
    pub(super) fn count(&mut self, what: &'static str, smallest: u64) -> Result<u64, Stop> {
        let at = self.offset;
        let count = self.u64()?;
        LimitExceeded::check(|| what.to_owned(), "gguf_entries", count, self.limits.gguf_entries)?;
        self.check_room(at, what, count, smallest)?;
        Ok(count)
    }

    fn check_room(&self, at: u64, what: &str, count: u64, smallest: u64) -> Result<(), Stop> {
        match count.checked_mul(smallest) {
            Some(bytes) if bytes <= self.left() => Ok(()),
            _ => Stop::at(at, format!("the {what} is {count}, and {} bytes are left: it was cut short", self.left())),
        }
    }

    pub(super) fn string(&mut self, what: &'static str, most: u64) -> Result<String, Stop> {
        let at = self.offset;
        let length = self.u64()?;
        let most = most.min(self.limits.gguf_string_bytes);
        LimitExceeded::check(|| format!("the {what} at byte {at}"), "gguf_string_bytes", length, most)?;
        self.check_room(at, "length of a text", length, 1)?;
        self.string_bytes += length;
        let total = self.limits.gguf_string_bytes.saturating_mul(TOTAL);
        LimitExceeded::check(|| "all text in the header".to_owned(), "gguf_string_bytes", self.string_bytes, total)?;
        let mut bytes = Vec::new();
        let read = self.reader.by_ref().take(length).read_to_end(&mut bytes).map_err(Stop::Io)?;
        self.offset += read as u64;
        if read as u64 != length {
            return Stop::at(self.offset, "it ends in its header: it was cut short");
        }
        String::from_utf8(bytes).or_else(|_| Stop::at(at, format!("a {what} is not UTF-8")))
    }

    pub(super) fn value(&mut self, kind: u32, depth: u32) -> Result<GgufValue, Stop> {
        let at = self.offset;
        Ok(match kind {
            0 => GgufValue::U8(u8::from_le_bytes(self.bytes()?)),
            1 => GgufValue::I8(i8::from_le_bytes(self.bytes()?)),
            2 => GgufValue::U16(u16::from_le_bytes(self.bytes()?)),
            3 => GgufValue::I16(i16::from_le_bytes(self.bytes()?)),
            4 => GgufValue::U32(self.u32()?),
            5 => GgufValue::I32(i32::from_le_bytes(self.bytes()?)),
            6 => GgufValue::F32(f32::from_le_bytes(self.bytes()?)),
            7 => match self.bytes::<1>()? {
                [0] => GgufValue::Bool(false),
                [1] => GgufValue::Bool(true),
                [other] => return Stop::at(at, format!("a truth value is {other}")),
            },
            8 => GgufValue::Text(self.string("text", u64::MAX)?),
            9 => self.array(depth + 1)?,
            10 => GgufValue::U64(self.u64()?),
            11 => GgufValue::I64(i64::from_le_bytes(self.bytes()?)),
            12 => GgufValue::F64(f64::from_le_bytes(self.bytes()?)),
            other => return Stop::at(at, format!("a value has the unknown type {other}")),
        })
    }

    fn array(&mut self, depth: u32) -> Result<GgufValue, Stop> {
        let at = self.offset;
        if depth > DEPTH {
            return Stop::at(at, format!("arrays lie in each other more than {DEPTH} deep"));
        }
        let kind = self.u32()?;
        let Some(smallest) = smallest_bytes(kind) else {
            return Stop::at(at, format!("an array's elements have the unknown type {kind}"));
        };
        let count = self.u64()?;
        let limit = self.limits.gguf_array_elements;
        LimitExceeded::check(|| format!("the array at byte {at}"), "gguf_array_elements", count, limit)?;
        self.check_room(at, "number of an array's elements", count, smallest)?;
        self.array_elements += count;
        let total = limit.saturating_mul(TOTAL);
        LimitExceeded::check(
            || "all arrays in the header".to_owned(),
            "gguf_array_elements",
            self.array_elements,
            total,
        )?;
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(self.value(kind, depth)?);
        }
        Ok(GgufValue::Array(values))
    }
}

/// Bytes that a value of a type takes at least.
fn smallest_bytes(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        8 | 10..=12 => Some(8),
        9 => Some(12),
        _ => None,
    }
}
