//! Texts to tokens to packed batches: tokenised in parallel, sorted by length, cut into batches of bounded size.

use std::path::Path;

use anchorite_core::InferenceError;
use rayon::prelude::*;
use tokenizers::{EncodeInput, Encoding, Tokenizer, TruncationParams, TruncationStrategy};

use super::bert::Packed;
use crate::error::LoadError;

/// Tokens in one batch at most: bounds memory, and keeps the hidden state within the processor's cache.
const BATCH_TOKENS: usize = 2048;

/// The tokenizer of an encoder, which cuts texts at the model's length.
pub(crate) struct EncoderTokenizer {
    cutting: Tokenizer,
    counting: Tokenizer,
    model: String,
}

impl EncoderTokenizer {
    /// Reads a `tokenizer.json`.
    pub(crate) fn read(path: &Path, model: &str, max_tokens: usize, rows: usize) -> Result<Self, LoadError> {
        let fault = |problem: String| LoadError::Tokenizer { origin: path.display().to_string(), problem };
        // The library has panicked on hostile files; that becomes an error like any other (F16).
        let read = std::panic::catch_unwind(|| Tokenizer::from_file(path));
        let mut tokenizer = match read {
            Ok(Ok(tokenizer)) => tokenizer,
            Ok(Err(error)) => return Err(fault(error.to_string())),
            Err(_) => return Err(fault("the file makes the tokenizer library fail; it is damaged".to_owned())),
        };
        let highest = tokenizer.get_vocab(true).into_values().max().unwrap_or(0) as usize;
        if highest >= rows {
            return Err(fault(format!("token {highest} has no row among the model's {rows} embeddings")));
        }
        tokenizer.with_padding(None);
        let unlimited = |error: tokenizers::Error| fault(error.to_string());
        tokenizer.with_truncation(None).map_err(unlimited)?;
        let counting = tokenizer.clone();
        let truncation = TruncationParams {
            max_length: max_tokens,
            strategy: TruncationStrategy::LongestFirst,
            ..Default::default()
        };
        tokenizer.with_truncation(Some(truncation)).map_err(unlimited)?;
        Ok(Self { cutting: tokenizer, counting, model: model.to_owned() })
    }

    /// Tokens of `text` without special tokens and without cutting.
    pub(crate) fn count(&self, text: &str) -> usize {
        let counted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.counting.encode_fast(text, false)));
        // Where the tokenizer fails, bytes are an upper bound.
        match counted {
            Ok(Ok(encoding)) => encoding.len(),
            _ => text.len(),
        }
    }

    /// Tokens of each input, in the order given.
    pub(crate) fn encode<'s, T: Into<EncodeInput<'s>> + Send>(
        &self,
        inputs: Vec<T>,
    ) -> Result<Vec<Encoding>, InferenceError> {
        let fault = |message: String| InferenceError::Backend { model: self.model.clone(), message };
        inputs
            .into_par_iter()
            .map(|input| {
                let encode = || self.cutting.encode_fast(input, true);
                match std::panic::catch_unwind(std::panic::AssertUnwindSafe(encode)) {
                    Ok(Ok(encoding)) => Ok(encoding),
                    Ok(Err(error)) => Err(fault(error.to_string())),
                    Err(_) => Err(fault("the tokenizer failed on this text".to_owned())),
                }
            })
            .collect()
    }
}

/// Computes one value per encoding: batches of neighbours in length go through `compute`, and the results come back in
/// the order of `encodings`.
pub(crate) fn in_batches<T>(
    encodings: &[Encoding],
    mut compute: impl FnMut(&Packed) -> Result<Vec<T>, InferenceError>,
) -> Result<Vec<T>, InferenceError> {
    let mut order: Vec<usize> = (0..encodings.len()).collect();
    order.sort_by_key(|&index| encodings[index].len());
    let mut results: Vec<Option<T>> = encodings.iter().map(|_| None).collect();
    let mut rest = order.as_slice();
    while !rest.is_empty() {
        let mut packed = Packed::default();
        let mut taken = 0;
        for &index in rest {
            let encoding = &encodings[index];
            if taken > 0 && packed.ids.len() + encoding.len() > BATCH_TOKENS {
                break;
            }
            packed.push(encoding.get_ids(), encoding.get_type_ids());
            taken += 1;
        }
        for (&index, value) in rest.iter().zip(compute(&packed)?) {
            results[index] = Some(value);
        }
        rest = &rest[taken..];
    }
    // Every encoding was in exactly one batch, and `compute` gives one value each.
    Ok(results.into_iter().flatten().collect())
}
