//! Weights as they are multiplied on the processor.

use anchorite_kernels::{BlockLinear, BlockRows, Finish, FloatLinear, Isa, Product, Team};

/// A linear layer: quantised as its file has it, or plain numbers.
pub(super) enum Matrix {
    Blocks(BlockLinear),
    Floats(FloatLinear),
}

impl Matrix {
    pub(super) fn outputs(&self) -> usize {
        match self {
            Self::Blocks(layer) => layer.outputs(),
            Self::Floats(layer) => layer.outputs(),
        }
    }

    /// The weights of one output.
    pub(super) fn row(&self, output: usize, weights: &mut [f32]) {
        match self {
            Self::Blocks(layer) => layer.row(output, weights),
            Self::Floats(layer) => layer.row(output, weights),
        }
    }
}

/// A layer, what happens to its outputs, and where they go.
pub(super) type Job<'a> = (&'a Matrix, Finish, &'a mut [f32]);

/// Applies several layers to the same rows `x`; `bytes` is memory to work in.
pub(super) fn multiply<const N: usize>(isa: Isa, team: &Team, x: &[f32], bytes: &mut BlockRows, jobs: [Job<'_>; N]) {
    let mut products = Vec::with_capacity(N);
    for (matrix, finish, out) in jobs {
        match matrix {
            Matrix::Blocks(layer) => products.push(Product { layer, finish, out }),
            Matrix::Floats(layer) => layer.forward_on(team, x, finish, out),
        }
    }
    if let Some(first) = products.first() {
        bytes.quantize(isa, team, x, first.layer.inputs());
        BlockLinear::forward(team, bytes, &mut products);
    }
}
