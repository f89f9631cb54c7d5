//! Rows of activations: normalised, and made into bytes.

use crate::buffer::Buffer;
use crate::isa::{Isa, kernel};
use crate::lanes::Lanes;

/// Activations become 0 … 127. Seven bits rather than eight: what is not negative as a signed byte suits the products of
/// every processor as it is, and sums of eight such products can be kept within 16 bits (see [`crate::ByteLinear`]), which
/// is what makes processors without dot products fast.
pub(crate) const LEVELS: f32 = 127.0;

/// Rows of numbers as bytes, each row with a scale and a least value of its own: `x ≈ minimum + scale × byte`.
#[derive(Debug, Default)]
pub struct ByteRows {
    pub(crate) bytes: Buffer<u8>,
    pub(crate) scales: Vec<f32>,
    pub(crate) minima: Vec<f32>,
    columns: usize,
    /// Bytes from one row to the next: `columns` rounded up to a multiple of sixteen.
    pub(crate) stride: usize,
}

impl ByteRows {
    /// Takes `x`, rows of `columns` numbers, in place of what was there.
    ///
    /// # Panics
    /// If `x` is not whole rows.
    pub fn quantize(&mut self, isa: Isa, x: &[f32], columns: usize) {
        assert!(columns > 0 && x.len().is_multiple_of(columns), "whole rows of {columns} numbers");
        let rows = x.len() / columns;
        self.columns = columns;
        self.stride = columns.next_multiple_of(16);
        self.bytes.resize(rows * self.stride);
        self.scales.resize(rows, 0.0);
        self.minima.resize(rows, 0.0);
        for row in 0..rows {
            let x = &x[row * columns..(row + 1) * columns];
            let to = &mut self.bytes[row * self.stride..row * self.stride + columns];
            // SAFETY: both slices hold `columns` numbers.
            let (scale, minimum) = unsafe { quantize_row(isa, x, to) };
            self.scales[row] = scale;
            self.minima[row] = minimum;
        }
    }

    /// The bytes of a row.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[u8] {
        &self.bytes[row * self.stride..][..self.columns]
    }

    /// Rows held.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.scales.len()
    }

    /// Numbers in a row.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }
}

/// Scale and least value of the row; writes its bytes. Every operation is exact or rounds once, alike on every processor.
#[inline(always)]
unsafe fn quantize_one<L: Lanes>(x: &[f32], to: &mut [u8]) -> (f32, f32) {
    let length = x.len();
    let whole = length - length % L::WIDTH;
    // SAFETY: lanes are read and bytes written below `length` only.
    unsafe {
        let (mut minimum, mut maximum) = (f32::INFINITY, f32::NEG_INFINITY);
        if whole > 0 {
            let mut low = L::load(x.as_ptr());
            let mut high = low;
            let mut at = L::WIDTH;
            while at < whole {
                let x = L::load(x.as_ptr().add(at));
                low = L::min(low, x);
                high = L::max(high, x);
                at += L::WIDTH;
            }
            minimum = L::smallest(low);
            maximum = L::largest(high);
        }
        for &x in &x[whole..] {
            minimum = if x < minimum { x } else { minimum };
            maximum = if x > maximum { x } else { maximum };
        }
        let range = maximum - minimum;
        let inverse = if range > 0.0 { LEVELS / range } else { 0.0 };
        let (low, factor) = (L::splat(minimum), L::splat(inverse));
        let mut at = 0;
        while at < whole {
            let x = L::load(x.as_ptr().add(at));
            L::store_bytes(to.as_mut_ptr().add(at), L::round(L::mul(L::sub(x, low), factor)));
            at += L::WIDTH;
        }
        for at in whole..length {
            to[at] = ((x[at] - minimum) * inverse).round_ties_even() as u8;
        }
        (range / LEVELS, minimum)
    }
}
kernel!(fn quantize_row(x: &[f32], to: &mut [u8]) -> (f32, f32) = quantize_one);

/// Layer normalisation (Ba et al. 2016) of each row of `x` in place: mean zero and variance one, times `weight`, plus
/// `bias`.
///
/// # Panics
/// If `x` is not whole rows of `weight.len()` numbers, or `bias` has another length.
pub fn layer_norm(isa: Isa, x: &mut [f32], weight: &[f32], bias: &[f32], epsilon: f32) {
    let columns = weight.len();
    assert!(columns > 0 && x.len().is_multiple_of(columns) && bias.len() == columns, "whole rows of {columns} numbers");
    for row in x.chunks_exact_mut(columns) {
        // SAFETY: the three slices have one length.
        unsafe { normalize_row(isa, row, weight, bias, epsilon) };
    }
}

#[inline(always)]
unsafe fn normalize_one<L: Lanes>(x: &mut [f32], weight: &[f32], bias: &[f32], epsilon: f32) {
    let length = x.len();
    let whole = length - length % L::WIDTH;
    let at = x.as_mut_ptr();
    // SAFETY: lanes are read and written below `length` only, in slices of that length.
    unsafe {
        let mut total = L::splat(0.0);
        let mut index = 0;
        while index < whole {
            total = L::add(total, L::load(at.add(index)));
            index += L::WIDTH;
        }
        let mut sum = L::sum(total);
        for index in whole..length {
            sum += *at.add(index);
        }
        let mean = sum / length as f32;
        let (mut total, center) = (L::splat(0.0), L::splat(mean));
        index = 0;
        while index < whole {
            let off = L::sub(L::load(at.add(index)), center);
            total = L::mul_add(off, off, total);
            index += L::WIDTH;
        }
        let mut squares = L::sum(total);
        for index in whole..length {
            squares += (*at.add(index) - mean) * (*at.add(index) - mean);
        }
        let inverse = 1.0 / (squares / length as f32 + epsilon).sqrt();
        let factor = L::splat(inverse);
        index = 0;
        while index < whole {
            let off = L::mul(L::sub(L::load(at.add(index)), center), factor);
            let y = L::mul_add(off, L::load(weight.as_ptr().add(index)), L::load(bias.as_ptr().add(index)));
            L::store(at.add(index), y);
            index += L::WIDTH;
        }
        for index in whole..length {
            *at.add(index) = (*at.add(index) - mean) * inverse * weight[index] + bias[index];
        }
    }
}
kernel!(fn normalize_row(x: &mut [f32], weight: &[f32], bias: &[f32], epsilon: f32) = normalize_one);
