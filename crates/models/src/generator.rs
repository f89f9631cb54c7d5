//! What a generator's GGUF file says about it, held against its tensors.

use std::path::Path;

use serde::Serialize;

use crate::{GgufHeader, GgufValue, ModelError};

/// Kinds of generator that can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GeneratorArchitecture {
    /// Llama, and what shares its shape (SmolLM2, Mistral).
    Llama,
    /// Qwen 2 and 2.5.
    Qwen2,
    /// Qwen 3.
    Qwen3,
    /// Gemma 3.
    Gemma3,
    /// LFM 2.
    Lfm2,
}

impl GeneratorArchitecture {
    /// Values of `general.architecture` that can be run.
    pub const KNOWN: [&str; 5] = ["llama", "qwen2", "qwen3", "gemma3", "lfm2"];

    fn from_name(name: &str) -> Option<Self> {
        match name {
            "llama" => Some(Self::Llama),
            "qwen2" => Some(Self::Qwen2),
            "qwen3" => Some(Self::Qwen3),
            "gemma3" => Some(Self::Gemma3),
            "lfm2" => Some(Self::Lfm2),
            _ => None,
        }
    }
}

/// A generator, as its file describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GeneratorSpec {
    /// Kind of generator.
    pub architecture: GeneratorArchitecture,
    /// Most tokens of prompt and reply together that it was made for.
    pub context_length: usize,
    /// Components of a token's vector.
    pub embedding_length: usize,
    /// Number of layers.
    pub layers: usize,
    /// Attention heads a layer.
    pub attention_heads: usize,
    /// Heads of keys and values a layer; the largest, where layers differ.
    pub key_value_heads: usize,
    /// Components of a head's keys.
    pub head_length: usize,
    /// Rows of the token embedding; every token id is below.
    pub vocabulary: usize,
}

const COPY_AGAIN: &str = "copy the file again from where it came, or choose another model";

impl GeneratorSpec {
    /// Reads the description out of a header.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] naming an architecture that can't be run, with the list of those that can;
    /// [`ModelError::Invalid`] naming a value that is missing or impossible, or a tensor that contradicts it.
    pub fn read(path: &Path, header: &GgufHeader) -> Result<Self, ModelError> {
        let name = header.text("general.architecture").unwrap_or("(none)");
        let architecture = GeneratorArchitecture::from_name(name)
            .ok_or_else(|| ModelError::unsupported(path, "architecture", name, &GeneratorArchitecture::KNOWN))?;
        let size = |field: &str| {
            let key = format!("{name}.{field}");
            let value = header.unsigned(&key);
            let reason =
                value.map_or_else(|| format!("does not say `{key}`"), |value| format!("says that `{key}` is {value}"));
            positive(value).ok_or_else(|| ModelError::invalid(path, reason, COPY_AGAIN))
        };
        let attention_heads = size("attention.head_count")?;
        let embedding_length = size("embedding_length")?;
        let head_length = match header.metadata.contains_key(&format!("{name}.attention.key_length")) {
            true => size("attention.key_length")?,
            false if embedding_length.is_multiple_of(attention_heads) => embedding_length / attention_heads,
            false => {
                let reason =
                    format!("has an `embedding_length` of {embedding_length} that {attention_heads} heads can't share");
                return Err(ModelError::invalid(path, reason, COPY_AGAIN));
            }
        };
        let spec = Self {
            architecture,
            context_length: size("context_length")?,
            embedding_length,
            layers: size("block_count")?,
            attention_heads,
            key_value_heads: key_value_heads(path, header, name, attention_heads)?,
            head_length,
            vocabulary: vocabulary(path, header, embedding_length)?,
        };
        if !spec.attention_heads.is_multiple_of(spec.key_value_heads) {
            let reason = format!("has {attention_heads} heads and {} heads of keys", spec.key_value_heads);
            return Err(ModelError::invalid(path, reason, COPY_AGAIN));
        }
        // Every layer has tensors of its own, and some memory is taken for each before they are looked at.
        if spec.layers > header.tensors.len() {
            let reason = format!("says that it has {} layers, and has {} tensors", spec.layers, header.tensors.len());
            return Err(ModelError::invalid(path, reason, COPY_AGAIN));
        }
        check_special_tokens(path, header, spec.vocabulary)?;
        Ok(spec)
    }

    /// Bytes that keys and values of `tokens` tokens take, at four bytes a number.
    #[must_use]
    pub fn cache_bytes(&self, tokens: usize) -> u64 {
        let sizes = [self.layers, self.key_value_heads, self.head_length, tokens];
        sizes.into_iter().fold(2 * 4, |bytes: u64, size| bytes.saturating_mul(size as u64))
    }
}

/// Sizes beyond 2³¹ belong to no model, and their products would overflow.
fn positive(value: Option<u64>) -> Option<usize> {
    value.filter(|value| (1..1 << 31).contains(value)).and_then(|value| usize::try_from(value).ok())
}

/// One number for all layers, or an array with one a layer; layers without attention have 0 there.
fn key_value_heads(path: &Path, header: &GgufHeader, name: &str, attention_heads: usize) -> Result<usize, ModelError> {
    let key = format!("{name}.attention.head_count_kv");
    let Some(value) = header.metadata.get(&key) else { return Ok(attention_heads) };
    let largest = match value {
        GgufValue::Array(values) => values
            .iter()
            .map(GgufValue::as_unsigned)
            .collect::<Option<Vec<u64>>>()
            .and_then(|heads| heads.into_iter().max()),
        value => value.as_unsigned(),
    };
    positive(largest).ok_or_else(|| ModelError::invalid(path, format!("has an impossible `{key}`"), COPY_AGAIN))
}

/// Rows of the token embedding, which must be there for every token of the tokenizer.
fn vocabulary(path: &Path, header: &GgufHeader, embedding_length: usize) -> Result<usize, ModelError> {
    let invalid = |reason: String| ModelError::invalid(path, reason, COPY_AGAIN);
    let tensor =
        header.tensor("token_embd.weight").ok_or_else(|| invalid("has no tensor `token_embd.weight`".to_owned()))?;
    let rows = match tensor.dims.as_slice() {
        [columns, rows] if *columns == embedding_length as u64 => positive(Some(*rows)),
        _ => None,
    };
    let shape = || format!("has a `token_embd.weight` of shape {:?} for vectors of {embedding_length}", tensor.dims);
    let rows = rows.ok_or_else(|| invalid(shape()))?;
    let tokens =
        header.array("tokenizer.ggml.tokens").ok_or_else(|| invalid("has no `tokenizer.ggml.tokens`".to_owned()))?;
    if tokens.is_empty() || tokens.len() > rows {
        return Err(invalid(format!("has {} tokens and {rows} rows of token vectors", tokens.len())));
    }
    if let Some(output) = header.tensor("output.weight").filter(|output| output.dims != tensor.dims) {
        return Err(invalid(format!(
            "has an `output.weight` of shape {:?}, unlike its {:?}",
            output.dims, tensor.dims
        )));
    }
    Ok(rows)
}

fn check_special_tokens(path: &Path, header: &GgufHeader, vocabulary: usize) -> Result<(), ModelError> {
    let ids =
        header.metadata.iter().filter(|(key, _)| key.starts_with("tokenizer.ggml.") && key.ends_with("_token_id"));
    for (key, value) in ids {
        // Some files mark a token that the model does not have with −1 or with all bits set.
        let absent = value.as_unsigned().is_none_or(|id| id == u64::from(u32::MAX));
        if !absent && value.as_unsigned().is_some_and(|id| id >= vocabulary as u64) {
            let reason = format!("has `{key}` beyond its {vocabulary} rows of token vectors");
            return Err(ModelError::invalid(path, reason, COPY_AGAIN));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use anchorite_core::Limits;

    use super::*;
    use crate::gguf::tests::{Maker, array};

    fn llama() -> Maker {
        Maker::new()
            .number("llama.context_length", 128)
            .number("llama.embedding_length", 32)
            .number("llama.block_count", 2)
            .texts("tokenizer.ggml.tokens", &["a", "b"])
            .number("tokenizer.ggml.eos_token_id", 2)
            .tensor("token_embd.weight", &[32, 3], 0, 0)
            .tensor("output_norm.weight", &[32], 0, 384)
            .data(512)
    }

    fn read(maker: &Maker) -> Result<GeneratorSpec, ModelError> {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("model.gguf");
        std::fs::write(&path, maker.bytes()).expect("write");
        GeneratorSpec::read(&path, &GgufHeader::read(&path, &Limits::default())?)
    }

    fn good() -> Maker {
        llama().text("general.architecture", "llama").number("llama.attention.head_count", 4)
    }

    #[test]
    fn m01_a_generator_is_described_by_its_file() {
        let spec = read(&good().number("llama.attention.head_count_kv", 2)).expect("reads");
        assert_eq!((spec.layers, spec.vocabulary, spec.key_value_heads, spec.head_length), (2, 3, 2, 8));
        assert_eq!(spec.cache_bytes(10), 2 * 4 * 2 * 2 * 8 * 10);
        let heads = array(5, 2, &[0, 0, 0, 0, 4, 0, 0, 0]);
        let mixed = read(&good().entry("llama.attention.head_count_kv", 9, &heads)).expect("reads");
        assert_eq!(mixed.key_value_heads, 4);
    }

    #[test]
    fn an_unknown_architecture_is_refused_by_name_with_the_known_ones() {
        let message = read(&llama().text("general.architecture", "mamba")).expect_err("refused").to_string();
        assert!(message.contains("`mamba`") && message.contains("llama, qwen2, qwen3, gemma3, lfm2"), "{message}");
    }

    #[test]
    fn f14_zero_heads_and_impossible_sizes_are_refused() {
        let base = || llama().text("general.architecture", "llama");
        let refused = |maker: Maker| read(&maker).expect_err("refused").to_string();
        assert!(refused(base()).contains("does not say `llama.attention.head_count`"));
        assert!(refused(base().number("llama.attention.head_count", 0)).contains("`llama.attention.head_count` is 0"));
        assert!(refused(base().number("llama.attention.head_count", 5)).contains("can't share"));
        assert!(refused(good().number("llama.attention.head_count_kv", 0)).contains("head_count_kv"));
        assert!(refused(good().number("llama.attention.head_count_kv", 3)).contains("heads of keys"));
        let many = Maker::new().number("llama.context_length", 128).number("llama.embedding_length", 32);
        let many = many.number("llama.block_count", 1 << 30).texts("tokenizer.ggml.tokens", &["a"]);
        let many = many.text("general.architecture", "llama").number("llama.attention.head_count", 4);
        let message = refused(many.tensor("token_embd.weight", &[32, 3], 0, 0).data(384));
        assert!(message.contains("1073741824 layers, and has 1 tensors"), "{message}");
    }

    #[test]
    fn f14_sizes_of_memory_do_not_wrap() {
        let spec = read(&good()).expect("reads");
        let huge = GeneratorSpec { layers: 1 << 30, key_value_heads: 1 << 30, head_length: 1 << 30, ..spec };
        assert_eq!(huge.cache_bytes(1 << 20), u64::MAX);
    }

    #[test]
    fn f17_token_ids_beyond_the_embedding_rows_are_refused() {
        let refused = |maker: Maker| read(&maker).expect_err("refused").to_string();
        assert!(refused(good().number("tokenizer.ggml.padding_token_id", 3)).contains("padding_token_id"));
        assert!(read(&good().number("tokenizer.ggml.padding_token_id", u32::MAX)).is_ok());
        let many = Maker::new()
            .text("general.architecture", "llama")
            .number("llama.context_length", 128)
            .number("llama.embedding_length", 32)
            .number("llama.block_count", 2)
            .number("llama.attention.head_count", 4)
            .texts("tokenizer.ggml.tokens", &["a", "b", "c", "d"])
            .tensor("token_embd.weight", &[32, 3], 0, 0)
            .data(384);
        assert!(refused(many).contains("4 tokens and 3 rows"));
    }
}
