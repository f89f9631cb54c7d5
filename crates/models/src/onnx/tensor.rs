//! The values of an ONNX tensor.

use super::proto::TensorProto;
use crate::ImportError;

pub(super) const FLOAT: i32 = 1;
pub(super) const UINT8: i32 = 2;
pub(super) const INT8: i32 = 3;
pub(super) const INT64: i32 = 7;

impl TensorProto {
    pub(super) fn is_eight_bit(&self) -> bool {
        matches!(self.data_type, UINT8 | INT8)
    }

    /// The shape, which the number of values must match.
    pub(super) fn shape(&self, found: usize) -> Result<Vec<usize>, ImportError> {
        let wrong = || ImportError::Data { tensor: self.name.clone(), shape: self.dims.clone(), found };
        let shape: Vec<usize> =
            self.dims.iter().map(|size| usize::try_from(*size)).collect::<Result<_, _>>().map_err(|_| wrong())?;
        let numbers = shape.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
        if numbers == Some(found) { Ok(shape) } else { Err(wrong()) }
    }

    fn check_inside(&self) -> Result<(), ImportError> {
        if self.data_location == 0 { Ok(()) } else { Err(ImportError::ExternalData { tensor: self.name.clone() }) }
    }

    fn wrong_type<T>(&self) -> Result<T, ImportError> {
        Err(ImportError::DataType { tensor: self.name.clone(), data_type: self.data_type })
    }

    /// Values of a float tensor.
    pub(super) fn floats(&self) -> Result<Vec<f32>, ImportError> {
        self.check_inside()?;
        if self.data_type != FLOAT {
            return self.wrong_type();
        }
        if self.raw_data.is_empty() {
            return Ok(self.float_data.clone());
        }
        let (numbers, rest) = self.raw_data.as_chunks::<4>();
        self.whole(rest)?;
        Ok(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    /// Values of an 8-bit tensor, signed or not.
    pub(super) fn small_integers(&self) -> Result<Vec<i16>, ImportError> {
        self.check_inside()?;
        let widen = |byte: u8| match self.data_type {
            // The bits of the byte are those of a signed number.
            INT8 => i16::from(byte.cast_signed()),
            _ => i16::from(byte),
        };
        if !self.is_eight_bit() {
            return self.wrong_type();
        }
        if !self.raw_data.is_empty() {
            return Ok(self.raw_data.iter().map(|byte| widen(*byte)).collect());
        }
        let range = if self.data_type == INT8 { -128..=127 } else { 0..=255 };
        let values =
            self.int32_data.iter().map(|value| i16::try_from(*value).ok().filter(|value| range.contains(value)));
        values.collect::<Option<Vec<i16>>>().ok_or_else(|| ImportError::Quantisation {
            tensor: self.name.clone(),
            reason: "a value does not fit into eight bits".to_owned(),
        })
    }

    /// Values of a tensor of 64-bit integers, such as shapes are.
    pub(super) fn integers(&self) -> Result<Vec<i64>, ImportError> {
        self.check_inside()?;
        if self.data_type != INT64 {
            return self.wrong_type();
        }
        if self.raw_data.is_empty() {
            return Ok(self.int64_data.clone());
        }
        let (numbers, rest) = self.raw_data.as_chunks::<8>();
        self.whole(rest)?;
        Ok(numbers.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect())
    }

    fn whole(&self, rest: &[u8]) -> Result<(), ImportError> {
        if rest.is_empty() {
            return Ok(());
        }
        Err(ImportError::Data { tensor: self.name.clone(), shape: self.dims.clone(), found: self.raw_data.len() })
    }
}
