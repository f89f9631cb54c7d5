//! A linear layer in bytes: weights of a scale per output, activations of a scale and a least value per row.

use crate::buffer::Buffer;
use crate::finish::Finish;
use crate::float_linear::{tile_rows, with_rows};
use crate::isa::{Isa, constant, kernel};
use crate::lanes::Lanes;
use crate::rows::ByteRows;

/// The greatest weight.
const GREATEST: f32 = 127.0;
/// The greatest sum of like-signed weights that meet in one 16-bit lane: 127 × 258 = 32,766 fits.
const GREATEST_SUM: i32 = 258;

/// `y = x·Wᵀ + b` in 8-bit integers.
///
/// A weight is `scale[output] × w`, −127 ≤ w ≤ 127; an activation `minimum[row] + scale[row] × a`, 0 ≤ a ≤ 127. The sum of
/// the products of integers is exact, so that every processor, and every tile, gives the same.
///
/// **No 16-bit sum overflows.** Processors without 8-bit dot products multiply bytes into sums of two in 16 bits. Four such
/// sums are added before they are widened: of each sixteen inputs, those whose number is 0 or 1 more than a multiple of four
/// meet, and the others do. `new` chooses the scale of an output so that the positive ones of such eight weights come to at
/// most 258, and so do the negative ones; times 127 that is below 2¹⁵. It is one scale for every processor, so that all
/// compute with the same integers.
#[derive(Debug)]
pub struct ByteLinear {
    isa: Isa,
    inputs: usize,
    outputs: usize,
    /// Fours of inputs, a multiple of four of them.
    fours: usize,
    /// Panels of `BYTE_VECTORS × WIDTH` columns: for each four inputs, four bytes of each column side by side.
    panels: Buffer<i8>,
    scales: Buffer<f32>,
    /// `scale × Σ w` of each output: what the least value of a row is multiplied with.
    sums: Buffer<f32>,
    bias: Buffer<f32>,
}

impl ByteLinear {
    /// Makes bytes of `weight` `[outputs, inputs]`, with `bias` `[outputs]`.
    ///
    /// # Panics
    /// If the lengths don't fit.
    #[must_use]
    pub fn new(isa: Isa, weight: &[f32], bias: &[f32], inputs: usize) -> Self {
        let outputs = bias.len();
        assert!(inputs > 0 && weight.len() == outputs * inputs, "weights are [{outputs}, {inputs}]");
        let width = constant!(isa, BYTE_VECTORS) * constant!(isa, WIDTH);
        let count = outputs.div_ceil(width);
        let fours = inputs.div_ceil(16) * 4;
        let mut panels = Buffer::zeroed(count * fours * 4 * width);
        let [mut scales, mut sums, mut padded] = [(); 3].map(|()| Buffer::zeroed(count * width));
        padded[..outputs].copy_from_slice(bias);
        let mut bytes = vec![0i8; fours * 4];
        for (output, row) in weight.chunks_exact(inputs).enumerate() {
            let scale = quantize(row, &mut bytes);
            scales[output] = scale;
            sums[output] = scale * bytes.iter().map(|&w| i32::from(w)).sum::<i32>() as f32;
            let panel = &mut panels[output / width * fours * 4 * width..];
            for (four, bytes) in bytes.chunks_exact(4).enumerate() {
                let at = (four * width + output % width) * 4;
                panel[at..at + 4].copy_from_slice(bytes);
            }
        }
        Self { isa, inputs, outputs, fours, panels, scales, sums, bias: padded }
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
        self.panels.bytes() + self.scales.bytes() + self.sums.bytes() + self.bias.bytes()
    }

    /// Applies the layer to `x` `[rows, inputs]`, into `out` `[rows, outputs]`.
    ///
    /// # Panics
    /// If the lengths don't fit.
    pub fn forward(&self, x: &ByteRows, finish: Finish, out: &mut [f32]) {
        assert!(x.columns() == self.inputs && out.len() == x.rows() * self.outputs, "rows of input and output");
        // SAFETY: lengths are checked above; panels and what belongs to columns are padded to whole panels by `new`, and
        // rows of bytes to sixteens by `ByteRows`.
        unsafe { byte_product(self.isa, x, self, finish, out) };
    }
}

/// Writes the bytes of one output's weights and returns their scale: the smallest with which no weight and no sum of those
/// that meet is too great.
fn quantize(row: &[f32], bytes: &mut [i8]) -> f32 {
    let greatest = row.iter().fold(0.0f32, |most, w| most.max(w.abs()));
    if greatest == 0.0 || !greatest.is_finite() {
        bytes.fill(0);
        return if greatest == 0.0 { 0.0 } else { f32::NAN };
    }
    let mut scale = greatest / GREATEST;
    loop {
        for (byte, w) in bytes.iter_mut().zip(row) {
            *byte = (w / scale).round_ties_even() as i8;
        }
        let most = bytes.chunks_exact(16).map(greatest_sum).max().unwrap_or(0);
        if most <= GREATEST_SUM {
            return scale;
        }
        scale *= (most as f32 / GREATEST_SUM as f32).max(1.001);
    }
}

/// The greatest sum of like-signed weights among those of `sixteen` that meet.
fn greatest_sum(sixteen: &[i8]) -> i32 {
    let mut sums = [0i32; 4];
    for (place, &weight) in sixteen.iter().enumerate() {
        let weight = i32::from(weight);
        let half = place % 4 / 2 * 2;
        sums[half] += weight.max(0);
        sums[half + 1] += (-weight).max(0);
    }
    sums.into_iter().max().unwrap_or(0)
}

#[inline(always)]
unsafe fn product<L: Lanes>(x: &ByteRows, layer: &ByteLinear, finish: Finish, out: &mut [f32]) {
    let outputs = layer.outputs;
    let rows = x.rows();
    let width = L::BYTE_VECTORS * L::WIDTH;
    for panel in 0..outputs.div_ceil(width) {
        let first = panel * width;
        let mut row = 0;
        while row < rows {
            let taken = tile_rows(rows - row, L::BYTE_ROWS);
            // SAFETY: `taken` rows from `row` are in `x` and `out`; the panel is whole.
            unsafe {
                let to = out.as_mut_ptr().add(row * outputs + first);
                if L::BYTE_VECTORS == 4 {
                    with_rows!(L, taken, L::BYTE_ROWS, four_wide(x, row, layer, first, finish, to));
                } else {
                    with_rows!(L, taken, L::BYTE_ROWS, two_wide(x, row, layer, first, finish, to));
                }
            }
            row += taken;
        }
    }
}
kernel!(fn byte_product(x: &ByteRows, layer: &ByteLinear, finish: Finish, out: &mut [f32]) = product);

#[inline(always)]
unsafe fn two_wide<L: Lanes, const R: usize>(
    x: &ByteRows,
    row: usize,
    layer: &ByteLinear,
    first: usize,
    finish: Finish,
    to: *mut f32,
) {
    // SAFETY: the caller's contract.
    unsafe { tile::<L, R, 2>(x, row, layer, first, finish, to) }
}

#[inline(always)]
unsafe fn four_wide<L: Lanes, const R: usize>(
    x: &ByteRows,
    row: usize,
    layer: &ByteLinear,
    first: usize,
    finish: Finish,
    to: *mut f32,
) {
    // SAFETY: the caller's contract.
    unsafe { tile::<L, R, 4>(x, row, layer, first, finish, to) }
}

/// `R` rows from `row` with the panel whose first column is `first`, to `to`.
#[inline(always)]
unsafe fn tile<L: Lanes, const R: usize, const C: usize>(
    x: &ByteRows,
    row: usize,
    layer: &ByteLinear,
    first: usize,
    finish: Finish,
    to: *mut f32,
) {
    // SAFETY: the caller's contract: `R` rows from `row` are in `x` and at `to`, and the panel is whole.
    unsafe {
        let mut sums = [[L::int_zero(); C]; R];
        let a = x.bytes.as_ptr().add(row * x.stride);
        L::byte_tile::<R, C>(a, x.stride, layer.panels.as_ptr().add(first * layer.fours * 4), layer.fours, &mut sums);
        let left = layer.outputs - first;
        for c in 0..C {
            let start = c * L::WIDTH;
            if start >= left {
                break;
            }
            let scale = L::load(layer.scales.as_ptr().add(first + start));
            let sum = L::load(layer.sums.as_ptr().add(first + start));
            let bias = L::load(layer.bias.as_ptr().add(first + start));
            for r in 0..R {
                let least = L::mul_add(L::splat(x.minima[row + r]), sum, bias);
                let factor = L::mul(scale, L::splat(x.scales[row + r]));
                let y = L::mul_add(L::to_float(sums[r][c]), factor, least);
                finish.write::<L, false>(to.add(r * layer.outputs + start), left - start, y);
            }
        }
    }
}
