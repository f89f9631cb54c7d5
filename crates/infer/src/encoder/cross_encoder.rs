//! The cross-encoder (Nogueira and Cho 2019): a query and a passage read together give one score.

use std::collections::HashMap;

use anchorite_core::{InferenceError, ModelFingerprint, Reranker};
use anchorite_models::{EncoderSpec, ModelFolder, ModelRole, Rows, fingerprint};

use super::Precision;
use super::batch::{EncoderTokenizer, Packed, in_batches};
use super::body::{Body, Head};
use super::cost::Cost;
use super::score_cache::{PairKey, ScoreCache};
use super::weights::Weights;
use crate::device::DeviceChoice;
use crate::error::LoadError;

/// A cross-encoder that runs in this process.
pub struct CrossEncoder {
    fingerprint: ModelFingerprint,
    spec: EncoderSpec,
    tokenizer: EncoderTokenizer,
    body: Body,
    head: Head,
    cache: ScoreCache,
}

impl std::fmt::Debug for CrossEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CrossEncoder").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

impl CrossEncoder {
    /// Opens a folder with `model.safetensors`, `tokenizer.json` and `config.json` of a BERT sequence classifier with one
    /// label.
    ///
    /// # Errors
    /// [`LoadError`] naming the file and what is wrong with it.
    pub fn open(folder: &ModelFolder, device: DeviceChoice, precision: Precision) -> Result<Self, LoadError> {
        let spec = EncoderSpec::read(&folder.path, ModelRole::Reranker)?;
        let weights = Weights::read(folder, &device.open()?)?;
        let body = Body::load(&weights, &spec, precision)?;
        let head = body.head(&weights, &spec)?;
        let tokenizer = EncoderTokenizer::read(
            &folder.path.join("tokenizer.json"),
            &folder.name,
            spec.max_tokens,
            Rows { tokens: body.vocabulary(), segments: spec.type_vocab_size },
        )?;
        Ok(Self {
            fingerprint: fingerprint(folder, &mut |_| ())?,
            spec,
            tokenizer,
            body,
            head,
            cache: ScoreCache::new(),
        })
    }

    /// One score per passage, read anew: what [`Reranker::score`] gives, without the scores that it keeps.
    ///
    /// # Errors
    /// If the backend fails.
    pub fn read(&self, query: &str, passages: &[&str]) -> Result<Vec<f32>, InferenceError> {
        let inputs: Vec<(String, String)> =
            passages.iter().map(|passage| (query.to_owned(), (*passage).to_owned())).collect();
        let encodings = self.tokenizer.encode(inputs)?;
        in_batches(&encodings, self.body.batching(), |packed| self.score_batch(packed))
    }

    /// Tokens that the model reads of a query and a passage, and the operations that this takes.
    ///
    /// # Errors
    /// If the tokenizer fails.
    pub fn cost(&self, query: &str, passage: &str) -> Result<Cost, InferenceError> {
        let encodings = self.tokenizer.encode(vec![(query.to_owned(), passage.to_owned())])?;
        Ok(Cost::of(&self.spec, encodings.iter().map(tokenizers::Encoding::len).sum()))
    }

    fn score_batch(&self, packed: &Packed) -> Result<Vec<f32>, InferenceError> {
        let scores = self
            .body
            .scores(packed, &self.head)
            .map_err(|message| InferenceError::Backend { model: self.fingerprint.name.clone(), message })?;
        if scores.iter().any(|score| !score.is_finite()) {
            return Err(InferenceError::NotANumber { model: self.fingerprint.name.clone() });
        }
        Ok(scores)
    }
}

impl Reranker for CrossEncoder {
    fn fingerprint(&self) -> &ModelFingerprint {
        &self.fingerprint
    }

    fn score(&self, query: &str, passages: &[&str]) -> Result<Vec<f32>, InferenceError> {
        let keys: Vec<PairKey> = passages.iter().map(|passage| PairKey::new(query, passage)).collect();
        let mut scores = self.cache.known(&keys);
        // The same passage twice is read once.
        let mut wanted: Vec<usize> = (0..keys.len()).filter(|&index| scores[index].is_none()).collect();
        wanted.sort_unstable_by_key(|&index| keys[index]);
        wanted.dedup_by_key(|index| keys[*index]);
        let passages: Vec<&str> = wanted.iter().map(|&index| passages[index]).collect();
        let read = self.read(query, &passages)?;
        let read: HashMap<PairKey, f32> = wanted.iter().map(|&index| keys[index]).zip(read).collect();
        self.cache.keep(&read);
        for (score, key) in scores.iter_mut().zip(&keys) {
            *score = score.or_else(|| read.get(key).copied());
        }
        // Every score was known or has been read.
        Ok(scores.into_iter().flatten().collect())
    }
}
