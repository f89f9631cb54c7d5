//! The tensors of a model's files, by name and shape.

use anchorite_core::Limits;
use anchorite_models::{ModelFolder, SafetensorsHeader, check_memory};
use candle_core::{Device, Tensor};

use crate::error::LoadError;

/// The tensors of a safetensors file, with or without a prefix before their names.
pub(crate) struct Weights {
    tensors: std::collections::HashMap<String, Tensor>,
    prefix: String,
    device: Device,
}

impl Weights {
    /// Checks and reads the files of `folder`. They are read, not mapped: a file cut short later can't harm (F19).
    pub(crate) fn read(folder: &ModelFolder, device: &Device) -> std::result::Result<Self, LoadError> {
        let mut tensors = std::collections::HashMap::new();
        // The file as it is, and its numbers once more, laid out (F23).
        check_memory(&folder.name, folder.weight_bytes()?.saturating_mul(2))?;
        for path in folder.weight_files()? {
            SafetensorsHeader::read(&path, &Limits::default())?;
            let bytes = std::fs::read(&path).map_err(|source| LoadError::Io { path: path.clone(), source })?;
            let read = candle_core::safetensors::load_buffer(&bytes, device)
                .map_err(|source| LoadError::Backend { model: path.display().to_string(), source })?;
            tensors.extend(read);
        }
        let first = "embeddings.word_embeddings.weight";
        let prefix = tensors.keys().find_map(|name| name.strip_suffix(first)).unwrap_or_default().to_owned();
        Ok(Self { tensors, prefix, device: device.clone() })
    }

    #[cfg(test)]
    pub(crate) fn of(tensors: std::collections::HashMap<String, Tensor>) -> Self {
        Self { tensors, prefix: String::new(), device: Device::Cpu }
    }

    #[cfg(test)]
    pub(crate) fn replace(&mut self, name: &str, tensor: Tensor) {
        self.tensors.insert(name.to_owned(), tensor);
    }

    /// A tensor of the encoder, as `f32`, of the shape expected.
    pub(crate) fn tensor(&self, name: &str, shape: &[usize]) -> std::result::Result<Tensor, LoadError> {
        self.exact(&format!("{}{name}", self.prefix), shape)
    }

    /// A tensor whose name has no prefix.
    pub(crate) fn exact(&self, name: &str, shape: &[usize]) -> std::result::Result<Tensor, LoadError> {
        let fault = |problem: String| LoadError::Tensor { name: name.to_owned(), problem };
        let tensor = self.tensors.get(name).ok_or_else(|| fault("missing from the file".to_owned()))?;
        if tensor.dims() != shape {
            return Err(fault(format!("shape {:?}, expected {shape:?}", tensor.dims())));
        }
        tensor.to_dtype(candle_core::DType::F32).map_err(|error| fault(error.to_string()))
    }

    /// The numbers of a tensor of the encoder, row by row.
    pub(crate) fn numbers(&self, name: &str, shape: &[usize]) -> std::result::Result<Vec<f32>, LoadError> {
        numbers(name, &self.tensor(name, shape)?)
    }

    /// The numbers of a tensor whose name has no prefix.
    pub(crate) fn exact_numbers(&self, name: &str, shape: &[usize]) -> std::result::Result<Vec<f32>, LoadError> {
        numbers(name, &self.exact(name, shape)?)
    }

    /// The device that the tensors are on.
    pub(crate) fn device(&self) -> &Device {
        &self.device
    }
}

/// Refuses what is no finite number: rounded to a byte it would vanish, and the vectors would be wrong without a word.
fn numbers(name: &str, tensor: &Tensor) -> std::result::Result<Vec<f32>, LoadError> {
    let fault = |problem: String| LoadError::Tensor { name: name.to_owned(), problem };
    let numbers: Vec<f32> =
        tensor.flatten_all().and_then(|flat| flat.to_vec1()).map_err(|error| fault(error.to_string()))?;
    match numbers.iter().position(|number| !number.is_finite()) {
        None => Ok(numbers),
        Some(place) => Err(fault(format!("number {place} is {}; the file is damaged", numbers[place]))),
    }
}
