//! Writes a safetensors file. The bytes depend on the weights and their source alone, so that the file's hash can be known
//! beforehand: the library's own writer puts metadata in an order that changes from run to run.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::{ImportError, ModelError};

/// Writes `tensors` (name and shape, in this order) as 32-bit floats. The file is there whole or not at all.
pub(super) fn safetensors(
    path: &Path,
    tensors: &[(String, Vec<usize>)],
    source_sha256: &str,
    values: impl Fn(&str) -> Result<Vec<f32>, ImportError>,
) -> Result<(), ImportError> {
    let header = header(tensors, source_sha256);
    let temporary = path.with_extension("safetensors.tmp");
    let io = |error| ModelError::io("write", path)(error);
    let file = File::create(&temporary).map_err(io)?;
    let mut writer = BufWriter::with_capacity(1 << 20, file);
    writer.write_all(&(header.len() as u64).to_le_bytes()).map_err(io)?;
    writer.write_all(&header).map_err(io)?;
    for (name, _) in tensors {
        let values = values(name)?;
        if !values.iter().all(|value| value.is_finite()) {
            let reason = "a value is not a finite number".to_owned();
            return Err(ImportError::Quantisation { tensor: name.clone(), reason });
        }
        for value in values {
            writer.write_all(&value.to_le_bytes()).map_err(io)?;
        }
    }
    let file = writer.into_inner().map_err(|error| io(error.into_error()))?;
    file.sync_all().map_err(io)?;
    drop(file);
    std::fs::rename(&temporary, path).map_err(io)?;
    Ok(())
}

fn header(tensors: &[(String, Vec<usize>)], source_sha256: &str) -> Vec<u8> {
    let mut members = serde_json::Map::new();
    let metadata = serde_json::json!({
        "format": "pt", "imported_from": format!("ONNX with 8-bit weights, SHA-256 {source_sha256}"),
    });
    members.insert("__metadata__".to_owned(), metadata);
    let mut reached = 0;
    for (name, shape) in tensors {
        let end = reached + 4 * shape.iter().product::<usize>();
        let entry = serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [reached, end] });
        members.insert(name.clone(), entry);
        reached = end;
    }
    let mut header = serde_json::Value::Object(members).to_string().into_bytes();
    // The format wants the numbers to begin at a multiple of eight.
    header.resize(header.len().next_multiple_of(8), b' ');
    header
}
