//! The bi-encoder (Reimers and Gurevych 2019): a text to a vector. Pooling, normalisation, prefixes and length are what
//! the model's own files say.

use anchorite_core::{Embedder, Embedding, InferenceError, ModelFingerprint, Role, TokenCounter};
use anchorite_models::{EncoderSpec, ModelFolder, ModelRole, Pooling, fingerprint};
use candle_core::{Result, Tensor};

use super::batch::{EncoderTokenizer, in_batches};
use super::bert::{Bert, Packed, Weights, texts};
use crate::device::DeviceChoice;
use crate::error::LoadError;

/// A bi-encoder that runs in this process.
pub struct BiEncoder {
    fingerprint: ModelFingerprint,
    spec: EncoderSpec,
    pooling: Pooling,
    tokenizer: EncoderTokenizer,
    bert: Bert,
}

impl std::fmt::Debug for BiEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BiEncoder").field("fingerprint", &self.fingerprint).field("spec", &self.spec).finish()
    }
}

impl BiEncoder {
    /// Opens a folder with `model.safetensors`, `tokenizer.json`, `config.json` and the files of sentence-transformers.
    ///
    /// # Errors
    /// [`LoadError`] naming the file and what is wrong with it.
    pub fn open(folder: &ModelFolder, device: DeviceChoice) -> std::result::Result<Self, LoadError> {
        let spec = EncoderSpec::read(&folder.path, ModelRole::Embedder)?;
        let pooling = spec.pooling.ok_or_else(|| LoadError::Metadata {
            key: "1_Pooling/config.json".to_owned(),
            problem: format!("{} does not say how its tokens become one vector", folder.name),
        })?;
        let weights = Weights::read(folder, &device.open()?)?;
        let bert = Bert::load(&weights, &spec)?;
        let tokenizer = EncoderTokenizer::read(
            &folder.path.join("tokenizer.json"),
            &folder.name,
            spec.max_tokens,
            bert.vocabulary(),
        )?;
        Ok(Self { fingerprint: fingerprint(folder, &mut |_| ())?, spec, pooling, tokenizer, bert })
    }

    fn embed_batch(&self, packed: &Packed) -> std::result::Result<Vec<Embedding>, InferenceError> {
        let vectors = (|| -> Result<Vec<Vec<f32>>> {
            let hidden = self.bert.forward(packed)?;
            texts(&hidden, &packed.lengths).map(|rows| pool(&rows?, self.pooling)?.to_vec1()).collect()
        })()
        .map_err(|error| InferenceError::Backend {
            model: self.fingerprint.name.clone(),
            message: error.to_string(),
        })?;
        // Vectors have unit length in any case: similarity is cosine, whether the model normalises or not.
        Ok(vectors.into_iter().map(Embedding::new).collect::<std::result::Result<_, _>>()?)
    }
}

/// One vector `[hidden]` from the hidden states `[length, hidden]` of a text.
fn pool(rows: &Tensor, pooling: Pooling) -> Result<Tensor> {
    match pooling {
        Pooling::Cls => rows.get(0),
        Pooling::Mean => rows.mean(0),
        Pooling::Max => rows.max(0),
    }
}

impl TokenCounter for BiEncoder {
    fn count(&self, text: &str) -> usize {
        self.tokenizer.count(text)
    }
}

impl Embedder for BiEncoder {
    fn fingerprint(&self) -> &ModelFingerprint {
        &self.fingerprint
    }

    fn dim(&self) -> usize {
        self.spec.hidden_size
    }

    fn max_tokens(&self) -> usize {
        self.spec.max_tokens
    }

    fn embed(&self, role: Role, texts: &[&str]) -> std::result::Result<Vec<Embedding>, InferenceError> {
        let prefix = match role {
            Role::Query => &self.spec.query_prefix,
            Role::Document => &self.spec.document_prefix,
        };
        let inputs: Vec<String> = texts
            .iter()
            .map(|text| {
                if self.spec.lower_case {
                    format!("{prefix}{}", text.to_lowercase())
                } else {
                    format!("{prefix}{text}")
                }
            })
            .collect();
        let encodings = self.tokenizer.encode(inputs)?;
        in_batches(&encodings, |packed| self.embed_batch(packed))
    }
}
