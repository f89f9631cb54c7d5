//! The bi-encoder (Reimers and Gurevych 2019): a text to a vector. Pooling, normalisation, prefixes and length are what
//! the model's own files say.

use anchorite_core::{Embedder, Embedding, InferenceError, ModelFingerprint, Role, TokenCounter};
use anchorite_models::{EncoderSpec, ModelFolder, ModelRole, Pooling, Rows, fingerprint};

use super::Precision;
use super::batch::{EncoderTokenizer, Packed, in_batches};
use super::body::Body;
use super::cost::Cost;
use super::weights::Weights;
use crate::device::DeviceChoice;
use crate::error::LoadError;

/// Texts, and bytes of text, that are tokenised before they are computed: bounds the memory that tokens take, however many
/// texts are given. A text has at most as many tokens as bytes.
const WINDOW_TEXTS: usize = 1024;
const WINDOW_BYTES: usize = 1 << 20;

/// A bi-encoder that runs in this process.
pub struct BiEncoder {
    fingerprint: ModelFingerprint,
    spec: EncoderSpec,
    pooling: Pooling,
    tokenizer: EncoderTokenizer,
    body: Body,
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
    pub fn open(folder: &ModelFolder, device: DeviceChoice, precision: Precision) -> Result<Self, LoadError> {
        let spec = EncoderSpec::read(&folder.path, ModelRole::Embedder)?;
        let pooling = spec.pooling.ok_or_else(|| LoadError::Metadata {
            key: "1_Pooling/config.json".to_owned(),
            problem: format!("{} does not say how its tokens become one vector", folder.name),
        })?;
        let weights = Weights::read(folder, &device.open()?)?;
        let body = Body::load(&weights, &spec, precision)?;
        let tokenizer = EncoderTokenizer::read(
            &folder.path.join("tokenizer.json"),
            &folder.name,
            spec.max_tokens,
            Rows { tokens: body.vocabulary(), segments: spec.type_vocab_size },
        )?;
        Ok(Self { fingerprint: fingerprint(folder, &mut |_| ())?, spec, pooling, tokenizer, body })
    }

    /// Vectors of any number of texts, of which only a window is held at a time. After an error the stream ends.
    pub fn embed_stream<'a, T: AsRef<str> + 'a>(
        &'a self,
        role: Role,
        texts: impl IntoIterator<Item = T> + 'a,
    ) -> impl Iterator<Item = Result<Embedding, InferenceError>> + 'a {
        let mut texts = texts.into_iter().fuse();
        let mut failed = false;
        std::iter::from_fn(move || {
            if failed {
                return None;
            }
            let (mut held, mut bytes) = (Vec::new(), 0);
            while held.len() < WINDOW_TEXTS && bytes < WINDOW_BYTES {
                let Some(text) = texts.next() else { break };
                bytes += text.as_ref().len();
                held.push(text);
            }
            let window: Vec<&str> = held.iter().map(AsRef::as_ref).collect();
            match self.embed(role, &window) {
                Ok(vectors) if vectors.is_empty() => None,
                Ok(vectors) => Some(vectors.into_iter().map(Ok).collect::<Vec<_>>()),
                Err(error) => {
                    failed = true;
                    Some(vec![Err(error)])
                }
            }
        })
        .flatten()
    }

    /// Tokens that the model reads of a text, and the operations that this takes.
    ///
    /// # Errors
    /// If the tokenizer fails.
    pub fn cost(&self, text: &str) -> Result<Cost, InferenceError> {
        let encodings = self.tokenizer.encode(vec![text.to_owned()])?;
        Ok(Cost::of(&self.spec, encodings.iter().map(tokenizers::Encoding::len).sum()))
    }

    fn embed_batch(&self, packed: &Packed) -> Result<Vec<Embedding>, InferenceError> {
        let vectors = self
            .body
            .pooled(packed, self.pooling)
            .map_err(|message| InferenceError::Backend { model: self.fingerprint.name.clone(), message })?;
        // Vectors have unit length in any case: similarity is cosine, whether the model normalises or not.
        Ok(vectors.into_iter().map(Embedding::new).collect::<Result<_, _>>()?)
    }

    fn embed_window(&self, prefix: &str, texts: &[&str]) -> Result<Vec<Embedding>, InferenceError> {
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
        in_batches(&encodings, self.body.batching(), |packed| self.embed_batch(packed))
    }
}

/// How many of `texts` are tokenised together: at least one, if there is one.
fn window(texts: &[&str]) -> usize {
    let mut bytes = 0;
    let fits = texts.iter().take(WINDOW_TEXTS).take_while(|text| {
        bytes += text.len();
        bytes <= WINDOW_BYTES
    });
    fits.count().max(1)
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

    fn embed(&self, role: Role, texts: &[&str]) -> Result<Vec<Embedding>, InferenceError> {
        let prefix = match role {
            Role::Query => &self.spec.query_prefix,
            Role::Document => &self.spec.document_prefix,
        };
        let mut vectors = Vec::with_capacity(texts.len());
        let mut rest = texts;
        while !rest.is_empty() {
            let (window, after) = rest.split_at(window(rest));
            vectors.extend(self.embed_window(prefix, window)?);
            rest = after;
        }
        Ok(vectors)
    }
}
