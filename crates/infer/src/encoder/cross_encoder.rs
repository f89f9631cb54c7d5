//! The cross-encoder (Nogueira and Cho 2019): a query and a passage read together give one score.

use anchorite_core::{InferenceError, ModelFingerprint, Reranker};
use anchorite_models::{EncoderSpec, ModelFolder, ModelRole, fingerprint};
use candle_core::Result;

use super::batch::{EncoderTokenizer, in_batches};
use super::bert::{Bert, Classifier, Packed, Weights};
use crate::device::DeviceChoice;
use crate::error::LoadError;

/// A cross-encoder that runs in this process.
pub struct CrossEncoder {
    fingerprint: ModelFingerprint,
    tokenizer: EncoderTokenizer,
    bert: Bert,
    classifier: Classifier,
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
    pub fn open(folder: &ModelFolder, device: DeviceChoice) -> std::result::Result<Self, LoadError> {
        let spec = EncoderSpec::read(&folder.path, ModelRole::Reranker)?;
        let weights = Weights::read(folder, &device.open()?)?;
        let bert = Bert::load(&weights, &spec)?;
        let classifier = weights.classifier(&spec, 1)?;
        let tokenizer = EncoderTokenizer::read(
            &folder.path.join("tokenizer.json"),
            &folder.name,
            spec.max_tokens,
            bert.vocabulary(),
        )?;
        Ok(Self { fingerprint: fingerprint(folder, &mut |_| ())?, tokenizer, bert, classifier })
    }

    fn score_batch(&self, packed: &Packed) -> std::result::Result<Vec<f32>, InferenceError> {
        let scores = (|| -> Result<Vec<f32>> {
            let hidden = self.bert.forward(packed)?;
            self.classifier.forward(&hidden, &packed.lengths)?.flatten_all()?.to_vec1()
        })()
        .map_err(|error| InferenceError::Backend {
            model: self.fingerprint.name.clone(),
            message: error.to_string(),
        })?;
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

    fn score(&self, query: &str, passages: &[&str]) -> std::result::Result<Vec<f32>, InferenceError> {
        let inputs: Vec<(String, String)> =
            passages.iter().map(|passage| (query.to_owned(), (*passage).to_owned())).collect();
        let encodings = self.tokenizer.encode(inputs)?;
        in_batches(&encodings, |packed| self.score_batch(packed))
    }
}
