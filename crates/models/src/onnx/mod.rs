//! Turns a BERT encoder in ONNX with dynamically quantised 8-bit weights into safetensors with 32-bit floats, the
//! `config.json` that says its sizes, and for a bi-encoder the files that say its pooling.
//!
//! The weights become (q − zero point) × scale, which is what the ONNX graph computes with; the graph quantises the
//! activations too, so scores differ a little. Sizes come from the tensors and from the graph; nothing is assumed.
//! Format: <https://github.com/onnx/onnx/blob/main/onnx/onnx.proto>, <https://onnx.ai/onnx/operators/>.

mod check;
mod facts;
mod graph;
mod proto;
mod tensor;
mod write;

use std::path::{Path, PathBuf};

use anchorite_core::{LimitExceeded, Limits};
use prost::Message;
use sha2::{Digest, Sha256};

use crate::config::is_head_tensor;
use crate::memory::check_memory;
use crate::verify::{hexadecimal, write_whole};
use crate::{EncoderSpec, Head, ImportError, ModelError, ModelRole, SentenceFacts};

/// What the file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportKind {
    /// A cross-encoder: the graph ends in a classifier.
    Reranker,
    /// A bi-encoder: the graph ends in token vectors, and what becomes of them must be said.
    Embedder(SentenceFacts),
}

/// What was written.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The model, as its new files describe it.
    pub spec: EncoderSpec,
    /// SHA-256 of the ONNX file.
    pub source_sha256: String,
    /// Files written, as paths in the folder.
    pub files: Vec<String>,
    /// Number of tensors.
    pub tensors: usize,
}

/// Beyond this, ONNX files keep their weights outside.
const LARGEST_FILE: u64 = 2 << 30;

/// Imports `onnx` into the existing folder `folder`. A `config.json` beside the ONNX file is not needed; if it
/// is there it must agree with the graph. The tokenizer's files are the caller's to copy.
///
/// # Errors
/// [`ImportError`] naming the tensor or fact that is missing, has the wrong shape, or is left over. Nothing that was written
/// by then is a whole model: `model.safetensors` comes last.
pub fn import_onnx(onnx: &Path, folder: &Path, kind: &ImportKind) -> Result<Imported, ImportError> {
    let bytes = read_file(onnx)?;
    let source_sha256 = hexadecimal(&Sha256::digest(&bytes));
    let failed = |reason: String| ImportError::Decode { path: onnx.to_path_buf(), reason };
    check_size(onnx, check::description_bytes(&bytes).map_err(failed)?)?;
    let decoded = proto::ModelProto::decode(bytes.as_slice());
    drop(bytes);
    let graph = decoded.map_err(|error| failed(error.to_string()))?.graph;
    let graph = graph.ok_or_else(|| failed("it has no graph".to_owned()))?;

    let index = graph::Index::new(&graph);
    let weights = graph::collect(&graph, &index)?;
    let spec = facts::read(&graph, &index, &weights, kind)?;
    facts::check_config_beside(onnx, &spec)?;
    let prefix = if weights.contains("bert.embeddings.word_embeddings.weight") { "bert." } else { "" };
    let mut tensors = Vec::new();
    for (name, shape) in spec.tensors() {
        let name = if is_head_tensor(&name) { name } else { format!("{prefix}{name}") };
        weights.check(&name, &shape)?;
        tensors.push((name, shape));
    }
    tensors.sort();
    weights.check_leftover(&tensors)?;

    let mut files = write_descriptions(folder, &spec, kind, &source_sha256)?;
    let spec = read_back(folder, &spec)?;
    write::safetensors(&folder.join("model.safetensors"), &tensors, &source_sha256, |name| weights.values(name))?;
    files.push("model.safetensors".to_owned());
    Ok(Imported { spec, source_sha256, files, tensors: tensors.len() })
}

fn check_size(path: &Path, description: u64) -> Result<(), ImportError> {
    let what = || format!("what {} says beside its numbers", path.display());
    let most = Limits::default().onnx_description_bytes;
    LimitExceeded::check(what, "onnx_description_bytes", description, most)
        .map_err(|limit| ModelError::from(limit).into())
}

fn read_file(path: &Path) -> Result<Vec<u8>, ImportError> {
    let bytes = std::fs::metadata(path).map_err(ModelError::io("read", path))?.len();
    if bytes > LARGEST_FILE {
        return Err(ImportError::Decode {
            path: path.to_path_buf(),
            reason: format!("it has {bytes} bytes, more than 2 GiB"),
        });
    }
    // The file, its tensors decoded, and one of them as floats at a time (F23).
    check_memory(&path.display().to_string(), bytes.saturating_mul(3))?;
    Ok(std::fs::read(path).map_err(ModelError::io("read", path))?)
}

/// Writes `config.json` and, for a bi-encoder, the files of sentence-transformers.
fn write_descriptions(
    folder: &Path,
    spec: &EncoderSpec,
    kind: &ImportKind,
    source_sha256: &str,
) -> Result<Vec<String>, ImportError> {
    let config = facts::config_json(spec, source_sha256);
    let mut contents: Vec<(String, serde_json::Value)> = vec![("config.json".to_owned(), config)];
    if let ImportKind::Embedder(facts) = kind {
        let files = facts.files(spec.hidden_size, spec.max_position_embeddings);
        contents.extend(files.into_iter().map(|(name, value)| (name.to_owned(), value)));
    }
    let mut written = Vec::new();
    for (name, value) in contents {
        let path: PathBuf = folder.join(&name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(ModelError::io("create", parent))?;
        }
        write_whole(&path, format!("{value:#}\n").as_bytes())?;
        written.push(name);
    }
    Ok(written)
}

/// Reads the new folder as any other model is read; its tokenizer may allow fewer tokens than there are positions.
fn read_back(folder: &Path, spec: &EncoderSpec) -> Result<EncoderSpec, ImportError> {
    let role = if matches!(spec.head, Head::None) { ModelRole::Embedder } else { ModelRole::Reranker };
    let found = EncoderSpec::read(folder, role)?;
    if (EncoderSpec { max_tokens: spec.max_tokens, ..found.clone() }) == *spec {
        return Ok(found);
    }
    let reason = "its files do not say what the ONNX graph does";
    Err(ModelError::invalid(folder, reason, "import into an empty folder").into())
}

#[cfg(test)]
mod tests;
