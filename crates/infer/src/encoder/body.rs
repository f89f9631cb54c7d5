//! The layers of an encoder, where they compute: on the processor by this project's kernels, elsewhere by candle's tensors.

use anchorite_kernels::{Finish, FloatLinear, Isa};
use anchorite_models::{EncoderSpec, Pooling};

use super::Precision;
use super::batch::{Batching, Packed};
use super::bert::{self, Bert};
use super::native::{NativeBert, Rows};
use super::weights::Weights;
use crate::error::LoadError;

pub(crate) enum Body {
    Native(NativeBert),
    Tensors(Bert),
}

impl Body {
    /// The precision is for the processor; tensors on a device are `f32`.
    pub(crate) fn load(weights: &Weights, spec: &EncoderSpec, precision: Precision) -> Result<Self, LoadError> {
        Ok(if weights.device().is_cpu() {
            Self::Native(NativeBert::load(weights, spec, precision)?)
        } else {
            Self::Tensors(Bert::load(weights, spec)?)
        })
    }

    /// The classification head that goes with these layers: one label.
    pub(crate) fn head(&self, weights: &Weights, spec: &EncoderSpec) -> Result<Head, LoadError> {
        Ok(match self {
            Self::Native(_) => Head::Native(NativeHead::load(weights, spec)?),
            Self::Tensors(_) => Head::Tensors(weights.classifier(spec, 1)?),
        })
    }

    pub(crate) fn vocabulary(&self) -> usize {
        match self {
            Self::Native(bert) => bert.vocabulary(),
            Self::Tensors(bert) => bert.vocabulary(),
        }
    }

    pub(crate) fn batching(&self) -> Batching {
        match self {
            Self::Native(_) => Batching::Parallel,
            Self::Tensors(_) => Batching::Sequential,
        }
    }

    /// One vector `[hidden]` for each text.
    pub(crate) fn pooled(&self, packed: &Packed, pooling: Pooling) -> Result<Vec<Vec<f32>>, String> {
        match self {
            Self::Native(bert) => {
                let rows = if pooling == Pooling::Cls { Rows::First } else { Rows::All };
                bert.forward(packed, rows, |hidden| pool(hidden, packed, pooling))
            }
            Self::Tensors(bert) => {
                let hidden = bert.forward(packed).map_err(|error| error.to_string())?;
                let vectors = bert::texts(&hidden, &packed.lengths).map(|rows| bert::pool(&rows?, pooling)?.to_vec1());
                vectors.collect::<candle_core::Result<_>>().map_err(|error| error.to_string())
            }
        }
    }

    /// One score for each text.
    pub(crate) fn scores(&self, packed: &Packed, head: &Head) -> Result<Vec<f32>, String> {
        match (self, head) {
            (Self::Native(bert), Head::Native(head)) => bert.forward(packed, Rows::First, |firsts| head.scores(firsts)),
            (Self::Tensors(bert), Head::Tensors(head)) => {
                let logits = bert.forward(packed).and_then(|hidden| head.forward(&hidden, &packed.lengths));
                logits.and_then(|logits| logits.flatten_all()?.to_vec1()).map_err(|error| error.to_string())
            }
            _ => Err("the head and the layers compute in different places".to_owned()),
        }
    }
}

/// One vector for each text from the rows of `hidden` that were asked for.
fn pool(hidden: &[f32], packed: &Packed, pooling: Pooling) -> Vec<Vec<f32>> {
    let tokens = if pooling == Pooling::Cls { packed.lengths.len() } else { packed.ids.len() };
    let width = hidden.len() / tokens.max(1);
    let mut rest = hidden;
    let take = |&length: &usize| {
        let rows = if pooling == Pooling::Cls { 1 } else { length };
        let (text, after) = rest.split_at(rows * width);
        rest = after;
        let (first, others) = text.split_at(width);
        let mut vector = first.to_vec();
        for row in others.chunks_exact(width) {
            for (sum, x) in vector.iter_mut().zip(row) {
                *sum = if pooling == Pooling::Max { sum.max(*x) } else { *sum + x };
            }
        }
        if pooling == Pooling::Mean {
            vector.iter_mut().for_each(|x| *x /= rows as f32);
        }
        vector
    };
    packed.lengths.iter().map(take).collect()
}

/// BERT's classification head.
pub(crate) enum Head {
    Native(NativeHead),
    Tensors(bert::Classifier),
}

/// A hyperbolic tangent over a linear layer of the first token, then one output.
pub(crate) struct NativeHead {
    pooler: FloatLinear,
    output: FloatLinear,
}

impl NativeHead {
    fn load(weights: &Weights, spec: &EncoderSpec) -> Result<Self, LoadError> {
        let (isa, hidden) = (Isa::detect(), spec.hidden_size);
        let pooler = weights.numbers("pooler.dense.weight", &[hidden, hidden])?;
        let output = weights.exact_numbers("classifier.weight", &[1, hidden])?;
        Ok(Self {
            pooler: FloatLinear::new(isa, &pooler, &weights.numbers("pooler.dense.bias", &[hidden])?, hidden),
            output: FloatLinear::new(isa, &output, &weights.exact_numbers("classifier.bias", &[1])?, hidden),
        })
    }

    /// One score for each row of `firsts` `[texts, hidden]`.
    fn scores(&self, firsts: &[f32]) -> Vec<f32> {
        let mut pooled = vec![0.0; firsts.len()];
        self.pooler.forward(firsts, Finish::Store, &mut pooled);
        pooled.iter_mut().for_each(|x| *x = x.tanh());
        let mut scores = vec![0.0; firsts.len() / self.pooler.inputs()];
        self.output.forward(&pooled, Finish::Store, &mut scores);
        scores
    }
}
