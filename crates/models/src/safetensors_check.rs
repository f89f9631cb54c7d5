//! Checks a safetensors file before a library maps it: the header's size, its JSON, and that the tensors fill the rest of
//! the file exactly, without gaps and overlaps.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anchorite_core::{LimitExceeded, Limits};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::config::is_head_tensor;
use crate::{EncoderSpec, ModelError};

/// Type of a tensor's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(non_camel_case_types, missing_docs)]
pub enum Dtype {
    BOOL,
    F4,
    F6_E2M3,
    F6_E3M2,
    U8,
    I8,
    F8_E5M2,
    F8_E4M3,
    F8_E8M0,
    F8_E4M3FNUZ,
    F8_E5M2FNUZ,
    I16,
    U16,
    F16,
    BF16,
    I32,
    U32,
    F32,
    C64,
    F64,
    I64,
    U64,
}

impl Dtype {
    /// Bits a number takes.
    #[must_use]
    pub fn bits(self) -> u64 {
        match self {
            Self::F4 => 4,
            Self::F6_E2M3 | Self::F6_E3M2 => 6,
            Self::BOOL | Self::U8 | Self::I8 => 8,
            Self::F8_E5M2 | Self::F8_E4M3 | Self::F8_E8M0 | Self::F8_E4M3FNUZ | Self::F8_E5M2FNUZ => 8,
            Self::I16 | Self::U16 | Self::F16 | Self::BF16 => 16,
            Self::I32 | Self::U32 | Self::F32 => 32,
            Self::C64 | Self::F64 | Self::I64 | Self::U64 => 64,
        }
    }
}

/// A tensor of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorEntry {
    /// Type of its numbers.
    pub dtype: Dtype,
    /// Its shape; empty for a single number.
    pub shape: Vec<usize>,
    /// First byte in the file.
    pub begin: u64,
    /// One past its last byte.
    pub end: u64,
}

/// A header that holds what it promises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafetensorsHeader {
    /// The tensors by name.
    pub tensors: BTreeMap<String, TensorEntry>,
    /// Free text of whoever wrote the file.
    pub metadata: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEntry {
    dtype: Dtype,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

/// The header's members in the order of the file, so that a name that comes twice is seen.
#[derive(Default)]
struct RawHeader {
    metadata: Vec<BTreeMap<String, String>>,
    tensors: Vec<(String, RawEntry)>,
}

impl<'de> Deserialize<'de> for RawHeader {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = RawHeader;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawHeader, A::Error> {
                let mut header = RawHeader::default();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        header.metadata.push(map.next_value()?);
                    } else {
                        let entry = map.next_value()?;
                        header.tensors.push((name, entry));
                    }
                }
                Ok(header)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// A fault, without the path.
struct Fault(Option<String>, String);

fn fault<T>(tensor: Option<&str>, reason: impl Into<String>) -> Result<T, Fault> {
    Err(Fault(tensor.map(str::to_owned), reason.into()))
}

impl SafetensorsHeader {
    /// Reads and checks the header of a file; the weights are not read.
    ///
    /// # Errors
    /// [`ModelError::Safetensors`] naming the file and the tensor to blame; [`ModelError::Limit`] if the header is larger
    /// than [`Limits::safetensors_header_bytes`]; [`ModelError::Io`] if the file can't be read.
    pub fn read(path: &Path, limits: &Limits) -> Result<Self, ModelError> {
        let io = |error| ModelError::io("read", path)(error);
        let damaged = |Fault(tensor, reason)| ModelError::Safetensors { path: path.to_path_buf(), tensor, reason };
        let mut file = File::open(path).map_err(io)?;
        let file_bytes = file.metadata().map_err(io)?.len();
        if file_bytes < 8 {
            return Err(damaged(Fault(None, format!("it has {file_bytes} bytes, fewer than the length of a header"))));
        }
        let mut length = [0u8; 8];
        file.read_exact(&mut length).map_err(io)?;
        let header_bytes = u64::from_le_bytes(length);
        // Unless the cap is within the file too, "cut short" is the better message.
        if header_bytes > file_bytes - 8 {
            let reason = format!("its header should have {header_bytes} bytes, and the file has {file_bytes}");
            return Err(damaged(Fault(None, reason)));
        }
        let what = || format!("the header of {}", path.display());
        LimitExceeded::check(what, "safetensors_header_bytes", header_bytes, limits.safetensors_header_bytes)?;
        // Within the file and within the limit, so it fits into memory.
        let mut header = Vec::new();
        file.take(header_bytes).read_to_end(&mut header).map_err(io)?;
        Self::parse(&header, 8 + header_bytes, file_bytes).map_err(damaged)
    }

    fn parse(header: &[u8], data_start: u64, file_bytes: u64) -> Result<Self, Fault> {
        if header.first() != Some(&b'{') {
            return fault(None, "its header does not begin with `{`");
        }
        let raw: RawHeader = match serde_json::from_slice(header) {
            Ok(raw) => raw,
            Err(error) => return fault(None, format!("its header is not what it should be: {error}")),
        };
        if raw.metadata.len() > 1 {
            return fault(None, "`__metadata__` is there twice");
        }
        let data_bytes = file_bytes.saturating_sub(data_start);
        let mut tensors = BTreeMap::new();
        let mut spans = Vec::with_capacity(raw.tensors.len());
        for (name, entry) in raw.tensors {
            let [begin, end] = entry.data_offsets;
            let needed = bytes_needed(&entry).map_err(|reason| Fault(Some(name.clone()), reason))?;
            if begin > end || end > data_bytes {
                return fault(
                    Some(&name),
                    format!("it lies at {begin}…{end}, and the file has {data_bytes} bytes of data"),
                );
            }
            if end - begin != needed {
                let reason = format!("its shape {:?} needs {needed} bytes, and it has {}", entry.shape, end - begin);
                return fault(Some(&name), reason);
            }
            // Every dimension of a tensor that is not empty is at most its number of bytes, which lie in the file.
            let shape: Result<Vec<usize>, _> = entry.shape.iter().map(|size| usize::try_from(*size)).collect();
            let Ok(shape) = shape else { return fault(Some(&name), "a dimension is too large for this machine") };
            let placed = TensorEntry { dtype: entry.dtype, shape, begin: data_start + begin, end: data_start + end };
            if tensors.insert(name.clone(), placed).is_some() {
                return fault(Some(&name), "it is there twice");
            }
            spans.push((begin, end, name));
        }
        check_spans(spans, data_bytes)?;
        Ok(Self { tensors, metadata: raw.metadata.into_iter().next().unwrap_or_default() })
    }

    /// Checks that every tensor of `spec` is there with its shape, and gives what stands before the names of the
    /// transformer's tensors: `bert.` or nothing. Further tensors are none of our business.
    ///
    /// # Errors
    /// [`ModelError::Safetensors`] naming the tensor that is missing, or has another shape or no floating-point numbers.
    pub fn check_encoder(&self, path: &Path, spec: &EncoderSpec) -> Result<&'static str, ModelError> {
        let prefix = if self.tensors.contains_key("bert.embeddings.word_embeddings.weight") { "bert." } else { "" };
        for (name, shape) in spec.tensors() {
            let name = if is_head_tensor(&name) { name } else { format!("{prefix}{name}") };
            let damaged =
                |reason| ModelError::Safetensors { path: path.to_path_buf(), tensor: Some(name.clone()), reason };
            let Some(tensor) = self.tensors.get(&name) else {
                return Err(damaged("it is missing, and config.json asks for it".to_owned()));
            };
            if tensor.shape != shape {
                let reason = format!("its shape is {:?}, and by config.json it must be {shape:?}", tensor.shape);
                return Err(damaged(reason));
            }
            if !matches!(tensor.dtype, Dtype::F16 | Dtype::BF16 | Dtype::F32 | Dtype::F64) {
                return Err(damaged(format!(
                    "its numbers are {:?}, and they must be F16, BF16, F32 or F64",
                    tensor.dtype
                )));
            }
        }
        Ok(prefix)
    }
}

fn bytes_needed(entry: &RawEntry) -> Result<u64, String> {
    let overflow = || format!("its shape {:?} is larger than any file", entry.shape);
    let mut numbers = 1u64;
    for size in &entry.shape {
        numbers = numbers.checked_mul(*size).ok_or_else(overflow)?;
    }
    let bits = numbers.checked_mul(entry.dtype.bits()).ok_or_else(overflow)?;
    if !bits.is_multiple_of(8) {
        return Err(format!("its shape {:?} does not end at a whole byte", entry.shape));
    }
    Ok(bits / 8)
}

fn check_spans(mut spans: Vec<(u64, u64, String)>, data_bytes: u64) -> Result<(), Fault> {
    spans.sort();
    let mut reached = 0;
    for (begin, end, name) in &spans {
        if *begin < reached {
            return fault(
                Some(name),
                format!("it begins at {begin}, inside the tensor before it, which ends at {reached}"),
            );
        }
        if *begin > reached {
            return fault(Some(name), format!("there is a gap before it, from {reached} to {begin}"));
        }
        reached = *end;
    }
    if reached != data_bytes {
        return fault(None, format!("its tensors end at {reached}, and the file has {data_bytes} bytes of data"));
    }
    Ok(())
}

#[cfg(test)]
#[path = "safetensors_tests.rs"]
mod tests;
