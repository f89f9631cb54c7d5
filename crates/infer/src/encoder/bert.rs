//! BERT (Devlin et al. 2019) on candle's tensors, for CUDA and Metal, without padding: texts are packed end to end, and only
//! attention looks at where one ends.
//!
//! Shapes: `T` tokens of all texts together, hidden state `[T, hidden]`; attention runs over runs of texts of equal
//! length as `[texts, heads, length, head_dim]`.

use anchorite_models::{Activation, EncoderSpec, Pooling};
use candle_core::{Device, IndexOp, Result, Tensor};
use candle_nn::ops::{layer_norm, softmax_last_dim};

use super::batch::Packed;
use super::weights::Weights;
use crate::error::LoadError;

struct Linear {
    /// `[columns, rows]`: transposed once, so that a product reads it in order.
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.matmul(&self.weight)?.broadcast_add(&self.bias)
    }
}

fn activate(x: &Tensor, activation: Activation) -> Result<Tensor> {
    match activation {
        Activation::Gelu => x.gelu_erf(),
        Activation::GeluTanh => x.gelu(),
        Activation::Relu => x.relu(),
    }
}

struct LayerNorm {
    weight: Tensor,
    bias: Tensor,
    epsilon: f32,
}

impl LayerNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        layer_norm(x, &self.weight, &self.bias, self.epsilon)
    }
}

struct Layer {
    /// Query, key and value in one product.
    projections: Linear,
    attention_output: Linear,
    attention_norm: LayerNorm,
    up: Linear,
    down: Linear,
    norm: LayerNorm,
}

/// The encoder with its weights.
pub(crate) struct Bert {
    words: Tensor,
    positions: Tensor,
    types: Tensor,
    embedding_norm: LayerNorm,
    layers: Vec<Layer>,
    heads: usize,
    activation: Activation,
    device: Device,
}

impl Bert {
    pub(crate) fn load(weights: &Weights, spec: &EncoderSpec) -> std::result::Result<Self, LoadError> {
        let hidden = spec.hidden_size;
        let layers = (0..spec.layers)
            .map(|index| {
                let name = |part: &str| format!("encoder.layer.{index}.{part}");
                let [q, k, v] = ["query", "key", "value"].map(|part| name(&format!("attention.self.{part}")));
                let projections = weights.stacked(&[&q, &k, &v], hidden, hidden)?;
                Ok(Layer {
                    projections,
                    attention_output: weights.linear(&name("attention.output.dense"), hidden, hidden)?,
                    attention_norm: weights.norm(&name("attention.output.LayerNorm"), spec)?,
                    up: weights.linear(&name("intermediate.dense"), spec.intermediate_size, hidden)?,
                    down: weights.linear(&name("output.dense"), hidden, spec.intermediate_size)?,
                    norm: weights.norm(&name("output.LayerNorm"), spec)?,
                })
            })
            .collect::<std::result::Result<Vec<_>, LoadError>>()?;
        Ok(Self {
            words: weights.tensor("embeddings.word_embeddings.weight", &[spec.vocab_size, hidden])?,
            positions: weights
                .tensor("embeddings.position_embeddings.weight", &[spec.max_position_embeddings, hidden])?,
            types: weights.tensor("embeddings.token_type_embeddings.weight", &[spec.type_vocab_size, hidden])?,
            embedding_norm: weights.norm("embeddings.LayerNorm", spec)?,
            layers,
            heads: spec.attention_heads,
            activation: spec.activation,
            device: weights.device().clone(),
        })
    }

    pub(crate) fn vocabulary(&self) -> usize {
        self.words.dims().first().copied().unwrap_or(0)
    }

    /// Hidden states `[T, hidden]` after the last layer.
    pub(crate) fn forward(&self, packed: &Packed) -> Result<Tensor> {
        let index = |ids: &[u32]| Tensor::new(ids, &self.device);
        let x = self.words.index_select(&index(&packed.ids)?, 0)?;
        let x = (x + self.positions.index_select(&index(&packed.positions)?, 0)?)?;
        let x = (x + self.types.index_select(&index(&packed.types)?, 0)?)?;
        let mut x = self.embedding_norm.forward(&x)?;
        let runs = runs(&packed.lengths);
        for layer in &self.layers {
            x = self.layer(layer, &x, &runs)?;
        }
        Ok(x)
    }

    fn layer(&self, layer: &Layer, x: &Tensor, runs: &[Run]) -> Result<Tensor> {
        let projections = layer.projections.forward(x)?;
        let mixed = runs.iter().map(|run| self.attend(&projections, run)).collect::<Result<Vec<_>>>()?;
        let mixed = if let [one] = mixed.as_slice() { one.clone() } else { Tensor::cat(&mixed, 0)? };
        let x = layer.attention_norm.forward(&(layer.attention_output.forward(&mixed)? + x)?)?;
        let up = activate(&layer.up.forward(&x)?, self.activation)?;
        layer.norm.forward(&(layer.down.forward(&up)? + x)?)
    }

    fn attend(&self, projections: &Tensor, run: &Run) -> Result<Tensor> {
        let hidden = projections.dim(1)? / 3;
        let dim = hidden / self.heads;
        let rows = projections.narrow(0, run.start, run.texts * run.length)?;
        let part = |index: usize| {
            rows.narrow(1, index * hidden, hidden)?
                .reshape((run.texts, run.length, self.heads, dim))?
                .transpose(1, 2)?
                .contiguous()
        };
        let query = (part(0)? * (1.0 / (dim as f64).sqrt()))?;
        let scores = query.matmul(&part(1)?.t()?)?;
        let mixed = softmax_last_dim(&scores)?.matmul(&part(2)?)?;
        mixed.transpose(1, 2)?.reshape((run.texts * run.length, hidden))
    }
}

/// Texts of equal length that lie next to each other.
struct Run {
    start: usize,
    texts: usize,
    length: usize,
}

fn runs(lengths: &[usize]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut start = 0;
    for &length in lengths {
        match runs.last_mut() {
            Some(run) if run.length == length => run.texts += 1,
            _ => runs.push(Run { start, texts: 1, length }),
        }
        start += length;
    }
    runs
}

impl Weights {
    fn linear(&self, name: &str, rows: usize, columns: usize) -> std::result::Result<Linear, LoadError> {
        self.stacked(&[name], rows, columns)
    }

    /// Several products of the same input as one.
    fn stacked(&self, names: &[&str], rows: usize, columns: usize) -> std::result::Result<Linear, LoadError> {
        let part = |suffix: &str, shape: &[usize]| {
            names
                .iter()
                .map(|name| self.tensor(&format!("{name}.{suffix}"), shape))
                .collect::<std::result::Result<Vec<_>, _>>()
        };
        let (weights, biases) = (part("weight", &[rows, columns])?, part("bias", &[rows])?);
        let join = || -> Result<Linear> {
            let weight = Tensor::cat(&weights, 0)?.t()?.contiguous()?;
            Ok(Linear { weight, bias: Tensor::cat(&biases, 0)? })
        };
        join().map_err(|error| LoadError::Tensor { name: names.join(", "), problem: error.to_string() })
    }

    fn norm(&self, name: &str, spec: &EncoderSpec) -> std::result::Result<LayerNorm, LoadError> {
        Ok(LayerNorm {
            weight: self.tensor(&format!("{name}.weight"), &[spec.hidden_size])?,
            bias: self.tensor(&format!("{name}.bias"), &[spec.hidden_size])?,
            epsilon: spec.layer_norm_eps as f32,
        })
    }

    /// The two layers of a sequence classifier over the first token.
    pub(crate) fn classifier(&self, spec: &EncoderSpec, labels: usize) -> std::result::Result<Classifier, LoadError> {
        let hidden = spec.hidden_size;
        Ok(Classifier {
            pooler: self.linear("pooler.dense", hidden, hidden)?,
            output: {
                let weight = self.exact("classifier.weight", &[labels, hidden])?;
                let weight = weight.t().and_then(|t| t.contiguous()).map_err(|error| LoadError::Tensor {
                    name: "classifier.weight".to_owned(),
                    problem: error.to_string(),
                })?;
                Linear { weight, bias: self.exact("classifier.bias", &[labels])? }
            },
        })
    }
}

/// BERT's classification head: a tanh layer over the first token, then one output per label.
pub(crate) struct Classifier {
    pooler: Linear,
    output: Linear,
}

impl Classifier {
    /// Logits `[texts, labels]` of `hidden` `[T, hidden]`.
    pub(crate) fn forward(&self, hidden: &Tensor, lengths: &[usize]) -> Result<Tensor> {
        let starts = lengths.iter().scan(0, |next, length| {
            let start = *next;
            *next += length;
            Some(start as u32)
        });
        let firsts: Vec<u32> = starts.collect();
        let first = hidden.index_select(&Tensor::new(firsts, hidden.device())?, 0)?;
        self.output.forward(&self.pooler.forward(&first)?.tanh()?)
    }
}

/// Hidden states of each text, one after the other: `[length, hidden]` each.
pub(crate) fn texts<'a>(hidden: &'a Tensor, lengths: &'a [usize]) -> impl Iterator<Item = Result<Tensor>> + 'a {
    let mut start = 0;
    lengths.iter().map(move |&length| {
        let rows = hidden.i(start..start + length);
        start += length;
        rows
    })
}

/// One vector `[hidden]` from the hidden states `[length, hidden]` of a text.
pub(crate) fn pool(rows: &Tensor, pooling: Pooling) -> Result<Tensor> {
    match pooling {
        Pooling::Cls => rows.get(0),
        Pooling::Mean => rows.mean(0),
        Pooling::Max => rows.max(0),
    }
}
