//! A GGUF file's header, checked: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>, versions 2 and 3.
//!
//! The validator runs before any other library sees the file. Every count and length is held against [`Limits`] and against
//! what is left of the file, so that memory stays bounded whatever the file says, and every tensor is held against the
//! file's size. Architecture invariant: a header that this module returns describes tensors that lie in the file, aligned
//! and apart.

mod cursor;
mod types;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anchorite_core::Limits;

use crate::ModelError;
use cursor::{Cursor, Stop};
pub use types::GgmlType;
pub use value::GgufValue;

/// A tensor of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GgufTensor {
    /// Its name.
    pub name: String,
    /// Its dimensions, the one that varies fastest first.
    pub dims: Vec<u64>,
    /// How its numbers are stored.
    pub ggml_type: GgmlType,
    /// First byte, counted from [`GgufHeader::data_start`].
    pub offset: u64,
    /// Bytes it takes.
    pub bytes: u64,
}

/// A header that holds what it promises.
#[derive(Clone, Debug, PartialEq)]
pub struct GgufHeader {
    /// Version of the format: 2 or 3.
    pub version: u32,
    /// Everything the file says about itself.
    pub metadata: BTreeMap<String, GgufValue>,
    /// Its tensors, in the order of the file.
    pub tensors: Vec<GgufTensor>,
    /// Where the tensors begin in the file.
    pub data_start: u64,
}

/// Most dimensions of a tensor in ggml.
const DIMENSIONS: u32 = 4;
/// Longest key and longest tensor name; the format allows 65,535 and 64 bytes.
const NAME_BYTES: u64 = 65_535;
/// Alignment when the file does not say one.
const ALIGNMENT: u32 = 32;
/// Beyond any page size in use.
const LARGEST_ALIGNMENT: u32 = 1 << 20;

impl GgufHeader {
    /// Reads and checks the header of a file; the weights are not read.
    ///
    /// # Errors
    /// [`ModelError::Gguf`] with the byte where the file is wrong; [`ModelError::Limit`] if a count is beyond [`Limits`];
    /// [`ModelError::Io`] if it can't be read.
    pub fn read(path: &Path, limits: &Limits) -> Result<Self, ModelError> {
        let file = File::open(path).map_err(ModelError::io("read", path))?;
        let bytes = file.metadata().map_err(ModelError::io("read", path))?.len();
        Self::read_from(BufReader::with_capacity(1 << 16, file), bytes, limits).map_err(|stop| match stop {
            Stop::Damaged { offset, reason } => ModelError::Gguf { path: path.to_path_buf(), offset, reason },
            Stop::Limit(mut limit) => {
                limit.what = format!("{} of {}", limit.what, path.display());
                ModelError::Limit(limit)
            }
            Stop::Io(error) => ModelError::io("read", path)(error),
        })
    }

    fn read_from(reader: impl Read, file_bytes: u64, limits: &Limits) -> Result<Self, Stop> {
        let mut cursor = Cursor::new(reader, file_bytes, limits);
        let version = read_version(&mut cursor)?;
        // The smallest tensor description: a name's length, the number of dimensions, one dimension, a type, an offset.
        let tensors = cursor.count("number of tensors", 8 + 4 + 8 + 4 + 8)?;
        // The smallest entry: a key's length, a type, one byte.
        let entries = cursor.count("number of metadata entries", 8 + 4 + 1)?;
        let mut metadata = BTreeMap::new();
        for _ in 0..entries {
            let at = cursor.offset();
            let key = cursor.string("key", NAME_BYTES)?;
            let kind = cursor.u32()?;
            let value = cursor.value(kind, 0)?;
            if metadata.contains_key(&key) {
                return Stop::at(at, format!("the key `{key}` is there twice"));
            }
            metadata.insert(key, value);
        }
        let alignment = read_alignment(&metadata, cursor.offset())?;
        let tensors = read_tensors(&mut cursor, tensors, alignment)?;
        let data_start = cursor.offset().next_multiple_of(u64::from(alignment));
        check_tensors(&tensors, data_start, file_bytes, cursor.offset())?;
        let tensors = tensors.into_iter().map(|(_, tensor)| tensor).collect();
        Ok(Self { version, metadata, tensors, data_start })
    }

    /// A tensor by name.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&GgufTensor> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// A text.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.metadata.get(key)?.as_text()
    }

    /// A whole number that is not negative, whatever width it is stored with.
    #[must_use]
    pub fn unsigned(&self, key: &str) -> Option<u64> {
        self.metadata.get(key)?.as_unsigned()
    }

    /// A floating-point number.
    #[must_use]
    pub fn float(&self, key: &str) -> Option<f64> {
        self.metadata.get(key)?.as_float()
    }

    /// A truth value.
    #[must_use]
    pub fn boolean(&self, key: &str) -> Option<bool> {
        self.metadata.get(key)?.as_boolean()
    }

    /// An array.
    #[must_use]
    pub fn array(&self, key: &str) -> Option<&[GgufValue]> {
        self.metadata.get(key)?.as_array()
    }

    /// An array of texts; `None` if it is not there or one element is no text.
    #[must_use]
    pub fn texts(&self, key: &str) -> Option<Vec<&str>> {
        self.array(key)?.iter().map(GgufValue::as_text).collect()
    }
}

fn read_version(cursor: &mut Cursor<'_, impl Read>) -> Result<u32, Stop> {
    let magic = cursor.bytes::<4>()?;
    if &magic != b"GGUF" {
        return Stop::at(0, "it does not begin with `GGUF`");
    }
    let version = cursor.u32()?;
    match version {
        2 | 3 => Ok(version),
        1 => Stop::at(4, "it has version 1 of the format, which is no longer read; convert the model again"),
        swapped if matches!(swapped.swap_bytes(), 1..=3) => Stop::at(4, "it was made for big-endian machines"),
        other => Stop::at(4, format!("it has version {other} of the format; 2 and 3 are read")),
    }
}

fn read_alignment(metadata: &BTreeMap<String, GgufValue>, offset: u64) -> Result<u32, Stop> {
    let alignment = match metadata.get("general.alignment") {
        None => return Ok(ALIGNMENT),
        Some(GgufValue::U32(alignment)) => *alignment,
        Some(_) => return Stop::at(offset, "`general.alignment` is not a 32-bit whole number"),
    };
    if !alignment.is_power_of_two() || alignment > LARGEST_ALIGNMENT {
        return Stop::at(
            offset,
            format!("`general.alignment` is {alignment}, not a power of two up to {LARGEST_ALIGNMENT}"),
        );
    }
    Ok(alignment)
}

/// The tensors, each with the place of its description.
fn read_tensors(
    cursor: &mut Cursor<'_, impl Read>,
    count: u64,
    alignment: u32,
) -> Result<Vec<(u64, GgufTensor)>, Stop> {
    let mut tensors = Vec::new();
    let mut names = BTreeSet::new();
    for _ in 0..count {
        let at = cursor.offset();
        let name = cursor.string("tensor name", NAME_BYTES)?;
        if !names.insert(name.clone()) {
            return Stop::at(at, format!("the tensor `{name}` is there twice"));
        }
        let dimensions = cursor.u32()?;
        if !(1..=DIMENSIONS).contains(&dimensions) {
            return Stop::at(
                at,
                format!("the tensor `{name}` has {dimensions} dimensions; 1 to {DIMENSIONS} are possible"),
            );
        }
        let mut dims = Vec::new();
        for _ in 0..dimensions {
            dims.push(cursor.u64()?);
        }
        let id = cursor.u32()?;
        let Some(ggml_type) = GgmlType::from_id(id) else {
            return Stop::at(at, format!("the tensor `{name}` has the unknown type {id}"));
        };
        let offset = cursor.u64()?;
        let bytes =
            tensor_bytes(&dims, ggml_type).or_else(|reason| Stop::at(at, format!("the tensor `{name}` {reason}")))?;
        if !offset.is_multiple_of(u64::from(alignment)) {
            return Stop::at(
                at,
                format!("the tensor `{name}` begins at {offset}, which is no multiple of {alignment}"),
            );
        }
        tensors.push((at, GgufTensor { name, dims, ggml_type, offset, bytes }));
    }
    Ok(tensors)
}

fn tensor_bytes(dims: &[u64], ggml_type: GgmlType) -> Result<u64, String> {
    if dims.contains(&0) {
        return Err(format!("has an empty dimension in {dims:?}"));
    }
    let (block, block_bytes) = (ggml_type.block_elements(), ggml_type.block_bytes());
    if !dims[0].is_multiple_of(block) {
        return Err(format!("has rows of {} numbers, and {ggml_type:?} stores {block} together", dims[0]));
    }
    let numbers = dims.iter().try_fold(1u64, |product, size| product.checked_mul(*size));
    let bytes = numbers.and_then(|numbers| (numbers / block).checked_mul(block_bytes));
    bytes.ok_or_else(|| format!("of shape {dims:?} is larger than any file"))
}

fn check_tensors(tensors: &[(u64, GgufTensor)], data_start: u64, file_bytes: u64, offset: u64) -> Result<(), Stop> {
    if !tensors.is_empty() && data_start > file_bytes {
        return Stop::at(offset, format!("it ends before its tensors, which begin at {data_start}"));
    }
    let data_bytes = file_bytes.saturating_sub(data_start);
    let mut spans = Vec::with_capacity(tensors.len());
    for (at, tensor) in tensors {
        let end = tensor.offset.checked_add(tensor.bytes).filter(|end| *end <= data_bytes);
        let Some(end) = end else {
            let reason = format!(
                "the tensor `{}` has {} bytes at {}, and the file has {data_bytes} bytes of tensors: it was cut short",
                tensor.name, tensor.bytes, tensor.offset
            );
            return Stop::at(*at, reason);
        };
        spans.push((tensor.offset, end, *at, &tensor.name));
    }
    spans.sort();
    for pair in spans.windows(2) {
        let ((_, end, _, first), (begin, _, at, second)) = (pair[0], pair[1]);
        if begin < end {
            return Stop::at(at, format!("the tensors `{first}` and `{second}` overlap"));
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
