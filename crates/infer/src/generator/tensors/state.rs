//! What a decoder remembers of the tokens it has read.

use candle_core::{Result, Tensor};

/// Positions by which a buffer of keys or values grows.
const GROWTH: usize = 512;

/// Keys, values and convolution columns of all layers, and the tokens they belong to.
pub(crate) struct State {
    tokens: Vec<u32>,
    layers: Vec<LayerState>,
}

/// The part of one layer.
pub(crate) enum LayerState {
    /// `[heads, capacity, dim]` each, of which the first `len` positions are filled.
    Attention { keys: Option<Tensor>, values: Option<Tensor>, len: usize, heads: usize, dim: usize },
    /// The last `length - 1` columns that the convolution saw: `[length - 1, hidden]`.
    Convolution { columns: Option<Tensor> },
}

impl State {
    pub(crate) fn new(layers: Vec<LayerState>) -> Self {
        Self { tokens: Vec::new(), layers }
    }

    pub(crate) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(crate) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    pub(crate) fn layer(&mut self, index: usize) -> &mut LayerState {
        &mut self.layers[index]
    }

    pub(crate) fn extend(&mut self, tokens: &[u32]) {
        self.tokens.extend_from_slice(tokens);
    }

    /// Forgets what follows the first `len` tokens. A convolution can't go back, so a state that has one forgets
    /// everything unless nothing is to be forgotten. Returns the tokens kept.
    pub(crate) fn truncate(&mut self, len: usize) -> usize {
        if len >= self.tokens.len() {
            return self.tokens.len();
        }
        let kept =
            if self.layers.iter().any(|layer| matches!(layer, LayerState::Convolution { .. })) { 0 } else { len };
        for layer in &mut self.layers {
            match layer {
                LayerState::Attention { len, .. } => *len = kept,
                LayerState::Convolution { columns } => *columns = None,
            }
        }
        self.tokens.truncate(kept);
        kept
    }
}

impl LayerState {
    pub(crate) fn attention(heads: usize, dim: usize) -> Self {
        Self::Attention { keys: None, values: None, len: 0, heads, dim }
    }

    pub(crate) fn convolution() -> Self {
        Self::Convolution { columns: None }
    }

    /// Adds keys and values `[heads, s, dim]` and returns views of all of them.
    pub(crate) fn append(&mut self, key: &Tensor, value: &Tensor) -> Result<(Tensor, Tensor)> {
        let Self::Attention { keys, values, len, heads, dim } = self else {
            candle_core::bail!("keys were given to a layer that convolves");
        };
        let total = *len + key.dim(1)?;
        for (buffer, new) in [(&mut *keys, key), (&mut *values, value)] {
            let grown = match buffer.take() {
                Some(old) if old.dim(1)? >= total => old,
                old => {
                    let capacity = total.next_multiple_of(GROWTH);
                    let fresh = Tensor::zeros((*heads, capacity, *dim), new.dtype(), new.device())?;
                    if let Some(old) = old.filter(|_| *len > 0) {
                        fresh.slice_set(&old.narrow(1, 0, *len)?.contiguous()?, 1, 0)?;
                    }
                    fresh
                }
            };
            grown.slice_set(&new.contiguous()?, 1, *len)?;
            *buffer = Some(grown);
        }
        *len = total;
        match (keys, values) {
            (Some(keys), Some(values)) => Ok((keys.narrow(1, 0, total)?, values.narrow(1, 0, total)?)),
            _ => candle_core::bail!("the buffers were filled above"),
        }
    }

    /// Puts the remembered columns before the new ones `[s, hidden]`, remembers the last `length - 1`, and returns all.
    pub(crate) fn convolve_over(&mut self, new: &Tensor, length: usize) -> Result<Tensor> {
        let Self::Convolution { columns } = self else {
            candle_core::bail!("columns were given to a layer that attends");
        };
        let before = length - 1;
        let remembered = match columns.take() {
            Some(columns) => columns,
            None => Tensor::zeros((before, new.dim(1)?), new.dtype(), new.device())?,
        };
        let all = Tensor::cat(&[&remembered, new], 0)?;
        *columns = Some(all.narrow(0, all.dim(0)? - before, before)?.contiguous()?);
        Ok(all)
    }
}
