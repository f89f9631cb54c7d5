//! What an encoder has to compute, and how fast this machine multiplies: together they say what share of the machine is used.

use std::time::{Duration, Instant};

use anchorite_kernels::{ByteLinear, ByteRows, Finish, FloatLinear, Isa};
use anchorite_models::EncoderSpec;
use rayon::prelude::*;

use super::Precision;

/// What a text costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Tokens read, special ones included.
    pub tokens: usize,
    /// Multiplications and additions of the linear layers and of attention.
    pub operations: f64,
}

impl Cost {
    pub(crate) fn of(spec: &EncoderSpec, tokens: usize) -> Self {
        let (hidden, intermediate) = (spec.hidden_size as f64, spec.intermediate_size as f64);
        let length = tokens as f64;
        let linear = 2.0 * length * (4.0 * hidden * hidden + 2.0 * hidden * intermediate);
        let attention = 4.0 * length * length * hidden;
        Self { tokens, operations: spec.layers as f64 * (linear + attention) }
    }
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.tokens += other.tokens;
        self.operations += other.operations;
    }
}

/// Rows, inputs and outputs of the product that is measured: a block of an encoder of 384 numbers a token.
const SHAPE: (usize, usize, usize) = (48, 384, 1536);

/// The instruction set of this processor that kernels run on.
#[must_use]
pub fn product_instructions() -> &'static str {
    Isa::detect().name()
}

/// Operations a second that a plain product of an encoder's shape reaches on all threads of the pool together, for some 0.3
/// seconds; and the instruction set it ran on.
#[must_use]
pub fn product_speed(precision: Precision) -> (f64, &'static str) {
    let (rows, inputs, outputs) = SHAPE;
    let isa = Isa::detect();
    let number = |index: usize| ((index * 7919) % 1000) as f32 / 500.0 - 1.0;
    let weight: Vec<f32> = (0..inputs * outputs).map(number).collect();
    let x: Vec<f32> = (0..rows * inputs).map(number).collect();
    let bias = vec![0.0; outputs];
    let bytes = ByteLinear::new(isa, &weight, &bias, inputs);
    let floats = FloatLinear::new(isa, &weight, &bias, inputs);
    let one = |_: usize| {
        let mut out = vec![0.0; rows * outputs];
        let mut row_bytes = ByteRows::default();
        row_bytes.quantize(isa, &x, inputs);
        let started = Instant::now();
        let mut products = 0;
        while started.elapsed() < Duration::from_millis(300) {
            match precision {
                Precision::Int8 => bytes.forward(&row_bytes, Finish::Store, &mut out),
                Precision::F32 => floats.forward(&x, Finish::Store, &mut out),
            }
            products += 1;
        }
        f64::from(products) * 2.0 * (rows * inputs * outputs) as f64 / started.elapsed().as_secs_f64()
    };
    ((0..rayon::current_num_threads()).into_par_iter().with_max_len(1).map(one).sum(), isa.name())
}
