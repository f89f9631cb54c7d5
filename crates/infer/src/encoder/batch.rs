//! Texts to tokens to packed batches: tokenised in parallel, sorted by length, cut into batches of bounded size.

use std::path::Path;

use anchorite_core::{InferenceError, Limits};
use anchorite_models::{Rows, check_tokenizer};
use rayon::prelude::*;
use tokenizers::{EncodeInput, Encoding, Tokenizer, TruncationParams, TruncationStrategy};

use crate::error::LoadError;
use crate::guarded::guarded;

/// The tokenizer of an encoder, which cuts texts at the model's length.
pub(crate) struct EncoderTokenizer {
    cutting: Tokenizer,
    counting: Tokenizer,
    model: String,
    max_tokens: usize,
    rows: Rows,
}

impl EncoderTokenizer {
    /// Reads a `tokenizer.json` for a model that reads `max_tokens` tokens and has `rows` of embeddings.
    pub(crate) fn read(path: &Path, model: &str, max_tokens: usize, rows: Rows) -> Result<Self, LoadError> {
        let fault = |problem: String| LoadError::Tokenizer { origin: path.display().to_string(), problem };
        check_tokenizer(path, rows, &Limits::default())?;
        // The library has panicked on hostile files; that becomes an error like any other (F16).
        let mut tokenizer = match guarded(|| Tokenizer::from_file(path)) {
            Some(Ok(tokenizer)) => tokenizer,
            Some(Err(error)) => return Err(fault(error.to_string())),
            None => return Err(fault("the file makes the tokenizer library fail; it is damaged".to_owned())),
        };
        let highest = tokenizer.get_vocab(true).into_values().max().unwrap_or(0) as usize;
        if highest >= rows.tokens {
            return Err(fault(format!("token {highest} has no row among the model's {} embeddings", rows.tokens)));
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
        let read = Self { cutting: tokenizer, counting, model: model.to_owned(), max_tokens, rows };
        // What stands around a text is the same for every text: if it is right for two words, it is right.
        let inputs: Vec<EncodeInput<'_>> = vec!["a".into(), ("a", "b").into()];
        inputs
            .into_iter()
            .try_for_each(|input| read.encode(vec![input]).map(drop))
            .map_err(|e| fault(e.to_string()))?;
        Ok(read)
    }

    /// True if the model has a row for every number of `encoding`, and a position for every token.
    fn fits(&self, encoding: &Encoding) -> bool {
        encoding.len() <= self.max_tokens
            && encoding.get_ids().iter().all(|id| (*id as usize) < self.rows.tokens)
            && encoding.get_type_ids().iter().all(|segment| (*segment as usize) < self.rows.segments)
    }

    /// Tokens of `text` without special tokens and without cutting.
    pub(crate) fn count(&self, text: &str) -> usize {
        // Where the tokenizer fails, bytes are an upper bound.
        match guarded(|| self.counting.encode_fast(text, false)) {
            Some(Ok(encoding)) => encoding.len(),
            _ => text.len(),
        }
    }

    /// Tokens of each input, in the order given.
    pub(crate) fn encode<'s, T: Into<EncodeInput<'s>> + Send>(
        &self,
        inputs: Vec<T>,
    ) -> Result<Vec<Encoding>, InferenceError> {
        let fault = |message: String| InferenceError::Backend { model: self.model.clone(), message };
        let encode = |input: T| match guarded(|| self.cutting.encode_fast(input, true)) {
            Some(Ok(encoding)) if self.fits(&encoding) => Ok(encoding),
            Some(Ok(_)) => Err(fault("its tokenizer gives tokens that the model has no place for".to_owned())),
            Some(Err(error)) => Err(fault(error.to_string())),
            None => Err(fault("the tokenizer failed on this text".to_owned())),
        };
        if inputs.len() == 1 {
            inputs.into_iter().map(encode).collect()
        } else {
            inputs.into_par_iter().map(encode).collect()
        }
    }
}

/// The tokens of several texts, end to end.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    pub(crate) ids: Vec<u32>,
    pub(crate) types: Vec<u32>,
    pub(crate) positions: Vec<u32>,
    /// Tokens of each text.
    pub(crate) lengths: Vec<usize>,
}

impl Packed {
    pub(crate) fn push(&mut self, ids: &[u32], types: &[u32]) {
        self.ids.extend_from_slice(ids);
        self.types.extend_from_slice(types);
        self.positions.extend(0..ids.len() as u32);
        self.lengths.push(ids.len());
    }
}

/// How texts are cut into batches, and whether batches run beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Batching {
    /// One batch after the other: each uses every thread, or the accelerator, itself.
    Sequential,
    /// Batches on all threads, each on one.
    Parallel,
}

impl Batching {
    /// Tokens in one batch at most, of `total`. More texts than fit make more batches; a text is never cut here.
    fn tokens(self, total: usize) -> usize {
        match self {
            Self::Sequential => 2048,
            // Enough batches for every thread to have some to the end, and none so small that reading the weights for it
            // costs more than computing with them.
            Self::Parallel => (total / (2 * rayon::current_num_threads())).clamp(64, 512),
        }
    }
}

/// Computes one value per encoding: batches of neighbours in length, the longest first, go through `compute`, and the
/// results come back in the order of `encodings`.
pub(crate) fn in_batches<T: Send>(
    encodings: &[Encoding],
    batching: Batching,
    compute: impl Fn(&Packed) -> Result<Vec<T>, InferenceError> + Sync,
) -> Result<Vec<T>, InferenceError> {
    let mut order: Vec<usize> = (0..encodings.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(encodings[index].len()));
    let most = batching.tokens(encodings.iter().map(Encoding::len).sum());
    let mut batches: Vec<&[usize]> = Vec::new();
    let mut rest = order.as_slice();
    while !rest.is_empty() {
        let mut tokens = 0;
        let taken = rest.iter().take_while(|&&index| {
            tokens += encodings[index].len();
            tokens <= most
        });
        let (batch, after) = rest.split_at(taken.count().max(1));
        batches.push(batch);
        rest = after;
    }
    let run = |batch: &&[usize]| {
        let mut packed = Packed::default();
        for &index in *batch {
            packed.push(encodings[index].get_ids(), encodings[index].get_type_ids());
        }
        compute(&packed)
    };
    // A single batch stays on the thread that asks: waking another costs more than a short query takes.
    let values: Vec<Vec<T>> = if batching == Batching::Parallel && batches.len() > 1 {
        batches.par_iter().with_max_len(1).map(run).collect::<Result<_, _>>()?
    } else {
        batches.iter().map(run).collect::<Result<_, _>>()?
    };
    let mut results: Vec<Option<T>> = encodings.iter().map(|_| None).collect();
    for (&index, value) in order.iter().zip(values.into_iter().flatten()) {
        results[index] = Some(value);
    }
    // Every encoding was in exactly one batch, and `compute` gives one value each.
    Ok(results.into_iter().flatten().collect())
}
