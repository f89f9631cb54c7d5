//! BERT on the processor, on this project's own kernels.
//!
//! Shapes: `T` tokens of all texts together, hidden state `[T, hidden]`. Between two attentions every row goes its own way,
//! so a block of rows is taken through everything there is while it is in the cache: projection, residual,
//! normalisation, the two layers of the feed-forward network. One call runs on one thread; calls run beside each other.

use std::sync::{Mutex, PoisonError};

use anchorite_kernels::{Buffer, ByteLinear, ByteRows, Finish, FloatLinear, Heads, Isa, attention, layer_norm};
use anchorite_models::{Activation, EncoderSpec};

use super::Precision;
use super::batch::Packed;
use super::weights::Weights;
use crate::error::LoadError;

/// Rows taken through the layers together: few enough that the widest of their states stays in the second cache, and
/// enough that weights are read from memory seldom.
const BLOCK_ROWS: usize = 48;

/// A linear layer in the precision chosen.
pub(super) enum Linear {
    Bytes(ByteLinear),
    Floats(FloatLinear),
}

impl Linear {
    pub(super) fn new(isa: Isa, precision: Precision, weight: &[f32], bias: &[f32], inputs: usize) -> Self {
        match precision {
            Precision::Int8 => Self::Bytes(ByteLinear::new(isa, weight, bias, inputs)),
            Precision::F32 => Self::Floats(FloatLinear::new(isa, weight, bias, inputs)),
        }
    }

    /// Applies the layer to `x`, rows of its inputs, into `out`, rows of its outputs.
    pub(super) fn forward(&self, isa: Isa, x: &[f32], bytes: &mut ByteRows, finish: Finish, out: &mut [f32]) {
        match self {
            Self::Bytes(layer) => {
                bytes.quantize(isa, x, layer.inputs());
                layer.forward(bytes, finish, out);
            }
            Self::Floats(layer) => layer.forward(x, finish, out),
        }
    }
}

struct Norm {
    weight: Vec<f32>,
    bias: Vec<f32>,
    epsilon: f32,
}

impl Norm {
    fn load(weights: &Weights, name: &str, spec: &EncoderSpec) -> Result<Self, LoadError> {
        let part = |suffix: &str| weights.numbers(&format!("{name}.{suffix}"), &[spec.hidden_size]);
        Ok(Self { weight: part("weight")?, bias: part("bias")?, epsilon: spec.layer_norm_eps as f32 })
    }

    fn apply(&self, isa: Isa, x: &mut [f32]) {
        layer_norm(isa, x, &self.weight, &self.bias, self.epsilon);
    }
}

struct Layer {
    /// Query, key and value in one product.
    projections: Linear,
    attention_output: Linear,
    attention_norm: Norm,
    up: Linear,
    down: Linear,
    norm: Norm,
}

/// The encoder with its weights.
pub(crate) struct NativeBert {
    isa: Isa,
    hidden: usize,
    intermediate: usize,
    heads: Heads,
    activation: Finish,
    words: Vec<f32>,
    positions: Vec<f32>,
    types: Vec<f32>,
    embedding_norm: Norm,
    layers: Vec<Layer>,
    /// Memory of calls that are over, for calls to come.
    idle: Mutex<Vec<Scratch>>,
}

#[derive(Default)]
struct Scratch {
    /// `[T, hidden]`.
    x: Buffer<f32>,
    /// `[T, 3 × hidden]`.
    projections: Buffer<f32>,
    /// `[T, hidden]`.
    mixed: Buffer<f32>,
    /// `[BLOCK_ROWS, intermediate]`.
    up: Buffer<f32>,
    bytes: ByteRows,
    attention: Buffer<f32>,
}

/// Which rows of the last hidden state are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// All: `[T, hidden]`.
    All,
    /// The first token of each text: `[texts, hidden]`. The last layer is computed for these alone.
    First,
}

impl NativeBert {
    pub(crate) fn load(weights: &Weights, spec: &EncoderSpec, precision: Precision) -> Result<Self, LoadError> {
        let isa = Isa::detect();
        let (hidden, intermediate) = (spec.hidden_size, spec.intermediate_size);
        let linear = |names: &[String], outputs: usize, inputs: usize| -> Result<Linear, LoadError> {
            let (mut weight, mut bias) = (Vec::new(), Vec::new());
            for name in names {
                weight.extend(weights.numbers(&format!("{name}.weight"), &[outputs, inputs])?);
                bias.extend(weights.numbers(&format!("{name}.bias"), &[outputs])?);
            }
            Ok(Linear::new(isa, precision, &weight, &bias, inputs))
        };
        let layers = (0..spec.layers)
            .map(|index| {
                let name = |part: &str| format!("encoder.layer.{index}.{part}");
                let three = ["query", "key", "value"].map(|part| name(&format!("attention.self.{part}")));
                Ok(Layer {
                    projections: linear(&three, hidden, hidden)?,
                    attention_output: linear(&[name("attention.output.dense")], hidden, hidden)?,
                    attention_norm: Norm::load(weights, &name("attention.output.LayerNorm"), spec)?,
                    up: linear(&[name("intermediate.dense")], intermediate, hidden)?,
                    down: linear(&[name("output.dense")], hidden, intermediate)?,
                    norm: Norm::load(weights, &name("output.LayerNorm"), spec)?,
                })
            })
            .collect::<Result<Vec<_>, LoadError>>()?;
        let table = |name: &str, rows: usize| weights.numbers(&format!("embeddings.{name}.weight"), &[rows, hidden]);
        Ok(Self {
            isa,
            hidden,
            intermediate,
            heads: Heads { count: spec.attention_heads, size: hidden / spec.attention_heads },
            activation: match spec.activation {
                Activation::Gelu => Finish::Gelu,
                Activation::GeluTanh => Finish::GeluTanh,
                Activation::Relu => Finish::Relu,
            },
            words: table("word_embeddings", spec.vocab_size)?,
            positions: table("position_embeddings", spec.max_position_embeddings)?,
            types: table("token_type_embeddings", spec.type_vocab_size)?,
            embedding_norm: Norm::load(weights, "embeddings.LayerNorm", spec)?,
            layers,
            idle: Mutex::new(Vec::new()),
        })
    }

    pub(crate) fn vocabulary(&self) -> usize {
        self.words.len() / self.hidden
    }

    /// Hands the hidden states after the last layer to `then`.
    ///
    /// # Errors
    /// If a text is empty, or a token, type or position has no row in its table.
    pub(crate) fn forward<T>(&self, packed: &Packed, rows: Rows, then: impl FnOnce(&[f32]) -> T) -> Result<T, String> {
        self.check(packed)?;
        // Scratch of a call that panicked is lost with it, and never half used.
        let mut scratch = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        self.embed(packed, &mut scratch);
        for (index, layer) in self.layers.iter().enumerate() {
            let last = index + 1 == self.layers.len();
            self.layer(layer, packed, if last { rows } else { Rows::All }, &mut scratch);
        }
        let result = then(&scratch.x);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        Ok(result)
    }

    fn check(&self, packed: &Packed) -> Result<(), String> {
        let tables = [
            (&packed.ids, &self.words, "token"),
            (&packed.positions, &self.positions, "position"),
            (&packed.types, &self.types, "token type"),
        ];
        for (indices, table, what) in tables {
            let (most, rows) = (indices.iter().copied().max().unwrap_or(0), table.len() / self.hidden);
            if most as usize >= rows {
                return Err(format!("{what} {most} has no row among the model's {rows}"));
            }
        }
        if packed.lengths.contains(&0) { Err("a text has no token".to_owned()) } else { Ok(()) }
    }

    /// The sum of the three embeddings of each token, normalised.
    fn embed(&self, packed: &Packed, scratch: &mut Scratch) {
        let row = |table, index: u32| -> &[f32] {
            let table: &[f32] = table;
            &table[index as usize * self.hidden..][..self.hidden]
        };
        scratch.x.resize(packed.ids.len() * self.hidden);
        let tokens = packed.ids.iter().zip(&packed.positions).zip(&packed.types);
        for (x, ((&id, &position), &kind)) in scratch.x.chunks_exact_mut(self.hidden).zip(tokens) {
            let parts = row(&self.words, id).iter().zip(row(&self.positions, position)).zip(row(&self.types, kind));
            for (x, ((word, position), kind)) in x.iter_mut().zip(parts) {
                *x = word + position + kind;
            }
        }
        self.embedding_norm.apply(self.isa, &mut scratch.x);
    }

    fn layer(&self, layer: &Layer, packed: &Packed, rows: Rows, scratch: &mut Scratch) {
        let (isa, hidden) = (self.isa, self.hidden);
        let Scratch { x, projections, mixed, up, bytes, attention: work } = scratch;
        projections.resize(packed.ids.len() * 3 * hidden);
        for (x, out) in x.chunks(BLOCK_ROWS * hidden).zip(projections.chunks_mut(BLOCK_ROWS * 3 * hidden)) {
            layer.projections.forward(isa, x, bytes, Finish::Store, out);
        }
        let wanted = |length: usize| if rows == Rows::First { 1 } else { length };
        let total = packed.lengths.iter().map(|&length| wanted(length)).sum::<usize>();
        mixed.resize(total * hidden);
        let (mut from, mut to) = (0, 0);
        for &length in &packed.lengths {
            let queries = wanted(length);
            let text = &projections[from * 3 * hidden..][..length * 3 * hidden];
            attention(isa, self.heads, text, queries, &mut mixed[to * hidden..][..queries * hidden], work);
            if rows == Rows::First {
                x.copy_within(from * hidden..(from + 1) * hidden, to * hidden);
            }
            from += length;
            to += queries;
        }
        x.resize(total * hidden);
        for (mixed, x) in mixed.chunks(BLOCK_ROWS * hidden).zip(x.chunks_mut(BLOCK_ROWS * hidden)) {
            layer.attention_output.forward(isa, mixed, bytes, Finish::Add, x);
            layer.attention_norm.apply(isa, x);
            up.resize(x.len() / hidden * self.intermediate);
            layer.up.forward(isa, x, bytes, self.activation, up);
            layer.down.forward(isa, up, bytes, Finish::Add, x);
            layer.norm.apply(isa, x);
        }
    }
}
