//! What a decoder does between its products, number by number.

use crate::functions::{gelu_tanh, silu};
use crate::isa::{Isa, kernel};
use crate::lanes::Lanes;

/// Root-mean-square normalisation (Zhang and Sennrich 2019) of each row of `x` in place: mean square one, times `weight`.
///
/// # Panics
/// If `x` is not whole rows of `weight.len()` numbers.
pub fn rms_norm(isa: Isa, x: &mut [f32], weight: &[f32], epsilon: f32) {
    let columns = weight.len();
    assert!(columns > 0 && x.len().is_multiple_of(columns), "whole rows of {columns} numbers");
    for row in x.chunks_exact_mut(columns) {
        // SAFETY: both slices have one length.
        unsafe { normalize_row(isa, row, weight, epsilon) };
    }
}

#[inline(always)]
unsafe fn normalize_one<L: Lanes>(x: &mut [f32], weight: &[f32], epsilon: f32) {
    let length = x.len();
    let whole = length - length % L::WIDTH;
    let at = x.as_mut_ptr();
    // SAFETY: lanes are read and written below `length` only, in slices of that length.
    unsafe {
        let mut total = L::splat(0.0);
        for index in (0..whole).step_by(L::WIDTH) {
            let x = L::load(at.add(index));
            total = L::mul_add(x, x, total);
        }
        let mut squares = L::sum(total);
        for index in whole..length {
            squares += *at.add(index) * *at.add(index);
        }
        let inverse = 1.0 / (squares / length as f32 + epsilon).sqrt();
        let factor = L::splat(inverse);
        for index in (0..whole).step_by(L::WIDTH) {
            let y = L::mul(L::mul(L::load(at.add(index)), factor), L::load(weight.as_ptr().add(index)));
            L::store(at.add(index), y);
        }
        for index in whole..length {
            *at.add(index) *= inverse * weight[index];
        }
    }
}
kernel!(fn normalize_row(x: &mut [f32], weight: &[f32], epsilon: f32) = normalize_one);

/// The function of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// `x / (1 + e^−x)` (Elfwing et al. 2018).
    Silu,
    /// GELU by its approximation with the hyperbolic tangent.
    GeluTanh,
}

impl Gate {
    /// Puts `f(gate) × up` in place of `gate` (Shazeer 2020).
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn apply(self, isa: Isa, gate: &mut [f32], up: &[f32]) {
        assert_eq!(gate.len(), up.len(), "one gate for each number");
        // SAFETY: both slices have one length.
        unsafe { gate_all(isa, self, gate, up) };
    }
}

#[inline(always)]
unsafe fn gates<L: Lanes>(function: Gate, gate: &mut [f32], up: &[f32]) {
    let length = gate.len();
    let mut index = 0;
    while index < length {
        let count = (length - index).min(L::WIDTH);
        // SAFETY: `count` numbers from `index` are in both slices.
        unsafe {
            let (to, up) = (gate.as_mut_ptr().add(index), up.as_ptr().add(index));
            let whole = count == L::WIDTH;
            let x = if whole { L::load(to) } else { L::load_part(to, count) };
            let up = if whole { L::load(up) } else { L::load_part(up, count) };
            let y = match function {
                Gate::Silu => silu::<L>(x),
                Gate::GeluTanh => gelu_tanh::<L>(x),
            };
            let y = L::mul(y, up);
            if whole { L::store(to, y) } else { L::store_part(to, count, y) }
        }
        index += count;
    }
}
kernel!(fn gate_all(function: Gate, gate: &mut [f32], up: &[f32]) = gates);
