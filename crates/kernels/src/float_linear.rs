//! A linear layer in `f32`: the weights are laid out once in panels that a tile of registers walks through.

use crate::buffer::Buffer;
use crate::finish::Finish;
use crate::isa::{Isa, constant, kernel};
use crate::lanes::{FLOAT_VECTORS, Lanes};
use crate::team::{Pointer, Team};

/// `y = x·Wᵀ + b` in single precision.
///
/// Each output is one sum in the order of the inputs, whatever row of whatever tile it is in: the same row gives the same
/// bits in any batch.
#[derive(Debug)]
pub struct FloatLinear {
    isa: Isa,
    inputs: usize,
    outputs: usize,
    /// Panels of `FLOAT_VECTORS × WIDTH` columns: for each input, the weights of the columns side by side.
    panels: Buffer<f32>,
    bias: Buffer<f32>,
}

/// Splits `rows` into tiles of at most `most`, as even as can be: the rows of the tile that starts `rows` before the end.
#[inline(always)]
pub(crate) fn tile_rows(rows: usize, most: usize) -> usize {
    rows.div_ceil(rows.div_ceil(most))
}

impl FloatLinear {
    /// Lays out `weight` `[outputs, inputs]` and `bias` `[outputs]`.
    ///
    /// # Panics
    /// If the lengths don't fit.
    #[must_use]
    pub fn new(isa: Isa, weight: &[f32], bias: &[f32], inputs: usize) -> Self {
        let outputs = bias.len();
        assert!(inputs > 0 && weight.len() == outputs * inputs, "weights are [{outputs}, {inputs}]");
        let width = FLOAT_VECTORS * constant!(isa, WIDTH);
        let count = outputs.div_ceil(width);
        let mut panels = Buffer::zeroed(count * inputs * width);
        for (output, row) in weight.chunks_exact(inputs).enumerate() {
            let panel = &mut panels[output / width * inputs * width..];
            for (input, &weight) in row.iter().enumerate() {
                panel[input * width + output % width] = weight;
            }
        }
        let mut padded = Buffer::zeroed(count * width);
        padded[..outputs].copy_from_slice(bias);
        Self { isa, inputs, outputs, panels, bias: padded }
    }

    /// Numbers in a row of the input.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Numbers in a row of the output.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.panels.bytes() + self.bias.bytes()
    }

    /// Applies the layer to `x` `[rows, inputs]`, into `out` `[rows, outputs]`.
    ///
    /// # Panics
    /// If the lengths don't fit.
    pub fn forward(&self, x: &[f32], finish: Finish, out: &mut [f32]) {
        let rows = x.len() / self.inputs;
        assert!(x.len() == rows * self.inputs && out.len() == rows * self.outputs, "rows of input and output");
        // SAFETY: lengths are checked above; panels and bias are padded to whole panels by `new`.
        unsafe { float_product(self.isa, x, self, 0..self.panel_count(), finish, Pointer(out.as_mut_ptr())) };
    }

    /// The same, on all threads of `team`.
    ///
    /// # Panics
    /// If the lengths don't fit.
    pub fn forward_on(&self, team: &Team, x: &[f32], finish: Finish, out: &mut [f32]) {
        let rows = x.len() / self.inputs;
        assert!(x.len() == rows * self.inputs && out.len() == rows * self.outputs, "rows of input and output");
        let panels = self.panel_count();
        let together = panels.div_ceil(team.size() * 8).max(1);
        let out = Pointer(out.as_mut_ptr());
        team.each(panels.div_ceil(together), |piece| {
            let first = piece * together;
            // SAFETY: as above; pieces write different columns.
            unsafe { float_product(self.isa, x, self, first..panels.min(first + together), finish, out) };
        });
    }

    /// The weights of one output.
    ///
    /// # Panics
    /// If there is no such output, or `weights` are not as many as inputs.
    pub fn row(&self, output: usize, weights: &mut [f32]) {
        assert!(output < self.outputs && weights.len() == self.inputs, "row {output} of {}", self.outputs);
        let width = FLOAT_VECTORS * constant!(self.isa, WIDTH);
        let panel = &self.panels[output / width * self.inputs * width..];
        for (weight, column) in weights.iter_mut().zip(panel.chunks_exact(width)) {
            *weight = column[output % width];
        }
    }

    fn panel_count(&self) -> usize {
        self.outputs.div_ceil(FLOAT_VECTORS * constant!(self.isa, WIDTH))
    }
}

/// The sums of one tile: `R` rows at `a`, `a + row`, … with one panel of `inputs` rows.
///
/// # Safety
/// Rows hold `inputs` numbers, and the panel `inputs × C × WIDTH`.
#[inline(always)]
pub(crate) unsafe fn float_tile<L: Lanes, const R: usize, const C: usize>(
    a: *const f32,
    row: usize,
    panel: *const f32,
    inputs: usize,
    sums: &mut [[L::Float; C]; R],
) {
    // SAFETY: the caller's contract.
    unsafe {
        let (mut panel, mut a) = (panel, a);
        for _ in 0..inputs {
            let mut weights = [L::splat(0.0); C];
            for c in 0..C {
                weights[c] = L::load(panel.add(c * L::WIDTH));
            }
            for r in 0..R {
                let x = L::splat(*a.add(r * row));
                for c in 0..C {
                    sums[r][c] = L::mul_add(x, weights[c], sums[r][c]);
                }
            }
            panel = panel.add(C * L::WIDTH);
            a = a.add(1);
        }
    }
}

/// Calls `$tile::<L, R>($arguments)` with `R` the constant that `$rows` is.
macro_rules! with_rows {
    ($lanes:ident, $rows:expr, $most:expr, $tile:ident($($argument:expr),* $(,)?)) => {
        match $rows {
            1 => $tile::<$lanes, 1>($($argument),*),
            2 if $most >= 2 => $tile::<$lanes, 2>($($argument),*),
            3 if $most >= 3 => $tile::<$lanes, 3>($($argument),*),
            4 if $most >= 4 => $tile::<$lanes, 4>($($argument),*),
            5 if $most >= 5 => $tile::<$lanes, 5>($($argument),*),
            6 if $most >= 6 => $tile::<$lanes, 6>($($argument),*),
            7 if $most >= 7 => $tile::<$lanes, 7>($($argument),*),
            8 if $most >= 8 => $tile::<$lanes, 8>($($argument),*),
            9 if $most >= 9 => $tile::<$lanes, 9>($($argument),*),
            10 if $most >= 10 => $tile::<$lanes, 10>($($argument),*),
            11 if $most >= 11 => $tile::<$lanes, 11>($($argument),*),
            12 if $most >= 12 => $tile::<$lanes, 12>($($argument),*),
            rows => unreachable!("a tile of {rows} rows, of {} at most", $most),
        }
    };
}
pub(crate) use with_rows;

#[inline(always)]
unsafe fn product<L: Lanes>(
    x: &[f32],
    layer: &FloatLinear,
    panels: std::ops::Range<usize>,
    finish: Finish,
    out: Pointer<f32>,
) {
    let (inputs, outputs) = (layer.inputs, layer.outputs);
    let rows = x.len() / inputs;
    let width = FLOAT_VECTORS * L::WIDTH;
    for panel in panels {
        let first = panel * width;
        let mut row = 0;
        while row < rows {
            let taken = tile_rows(rows - row, L::FLOAT_ROWS);
            // SAFETY: `taken` rows from `row` are in `x` and `out`; the panel is whole.
            unsafe {
                let a = x.as_ptr().add(row * inputs);
                let weights = layer.panels.as_ptr().add(first * inputs);
                let bias = layer.bias.as_ptr().add(first);
                let to = out.at(row * outputs + first);
                with_rows!(
                    L,
                    taken,
                    L::FLOAT_ROWS,
                    tile(a, inputs, weights, bias, finish, to, outputs, outputs - first)
                );
            }
            row += taken;
        }
    }
}
kernel!(
    fn float_product(
        x: &[f32],
        layer: &FloatLinear,
        panels: std::ops::Range<usize>,
        finish: Finish,
        out: Pointer<f32>,
    ) = product
);

#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn tile<L: Lanes, const R: usize>(
    a: *const f32,
    inputs: usize,
    panel: *const f32,
    bias: *const f32,
    finish: Finish,
    to: *mut f32,
    outputs: usize,
    left: usize,
) {
    // SAFETY: the caller's contract: `R` rows of input, one panel, `left` columns of output from `to`.
    unsafe {
        let mut sums = [[L::splat(0.0); FLOAT_VECTORS]; R];
        float_tile::<L, R, FLOAT_VECTORS>(a, inputs, panel, inputs, &mut sums);
        for c in 0..FLOAT_VECTORS {
            let start = c * L::WIDTH;
            if start >= left {
                break;
            }
            let bias = L::load(bias.add(start));
            for r in 0..R {
                finish.write::<L, true>(to.add(r * outputs + start), left - start, L::add(sums[r][c], bias));
            }
        }
    }
}
