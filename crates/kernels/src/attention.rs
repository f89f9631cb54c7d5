//! Scaled dot-product attention (Vaswani et al. 2017) of one text, all heads, without a mask.

use crate::buffer::Buffer;
use crate::float_linear::{float_tile, tile_rows, with_rows};
use crate::functions::power_of_two;
use crate::isa::{Isa, constant, kernel};
use crate::lanes::{FLOAT_VECTORS, Lanes};

/// Heads of an attention layer.
#[derive(Clone, Copy, Debug)]
pub struct Heads {
    /// How many.
    pub count: usize,
    /// Numbers of each.
    pub size: usize,
}

impl Heads {
    fn hidden(self) -> usize {
        self.count * self.size
    }
}

/// Attention of the first `queries` tokens of a text over all its tokens.
///
/// `projections` is `[length, 3 × hidden]`: query, key and value of each token; `out` is `[queries, hidden]`. A token's
/// result depends on its own text alone, to the bit.
///
/// # Panics
/// If the lengths don't fit, or the text is empty.
pub fn attention(
    isa: Isa,
    heads: Heads,
    projections: &[f32],
    queries: usize,
    out: &mut [f32],
    scratch: &mut Buffer<f32>,
) {
    let hidden = heads.hidden();
    let length = projections.len() / (3 * hidden).max(1);
    assert!(
        length > 0 && projections.len() == length * 3 * hidden && queries <= length && out.len() == queries * hidden,
        "attention of {queries} tokens over {length}"
    );
    let width = FLOAT_VECTORS * constant!(isa, WIDTH);
    let keys = length.next_multiple_of(width);
    let values = heads.size.next_multiple_of(width);
    scratch.resize(keys * heads.size + length * values + constant!(isa, FLOAT_ROWS) * keys);
    // SAFETY: lengths are checked above, and the scratch has room for keys, values and scores.
    unsafe { attend(isa, heads, projections, queries, out, scratch) };
}

#[inline(always)]
unsafe fn all_heads<L: Lanes>(heads: Heads, projections: &[f32], queries: usize, out: &mut [f32], scratch: &mut [f32]) {
    let (hidden, size) = (heads.hidden(), heads.size);
    let stride = 3 * hidden;
    let length = projections.len() / stride;
    let width = FLOAT_VECTORS * L::WIDTH;
    let padded = length.next_multiple_of(width);
    let (keys, rest) = scratch.split_at_mut(padded * size);
    let (values, scores) = rest.split_at_mut(length * size.next_multiple_of(width));
    for head in 0..heads.count {
        let from = head * size;
        lay_out_keys(&projections[hidden + from..], stride, length, size, width, keys);
        lay_out_values(&projections[2 * hidden + from..], stride, length, size, width, values);
        let mut row = 0;
        while row < queries {
            let taken = tile_rows(queries - row, L::FLOAT_ROWS);
            // SAFETY: `taken` rows from `row` are in `projections` and `out`; keys, values and scores have whole panels.
            unsafe {
                let query = projections.as_ptr().add(row * stride + from);
                let to = out.as_mut_ptr().add(row * hidden + from);
                with_rows!(
                    L,
                    taken,
                    L::FLOAT_ROWS,
                    rows(query, stride, keys, values, length, size, scores.as_mut_ptr(), to, hidden)
                );
            }
            row += taken;
        }
    }
}
kernel!(
    fn attend(heads: Heads, projections: &[f32], queries: usize, out: &mut [f32], scratch: &mut [f32]) = all_heads
);

/// Panels of `width` keys: for each number of a head, the keys side by side; zero past the last.
#[inline(always)]
fn lay_out_keys(from: &[f32], stride: usize, length: usize, size: usize, width: usize, keys: &mut [f32]) {
    for (panel, keys) in keys.chunks_exact_mut(width * size).enumerate() {
        for column in 0..width {
            let token = panel * width + column;
            if token < length {
                let key = &from[token * stride..][..size];
                for (number, &x) in key.iter().enumerate() {
                    keys[number * width + column] = x;
                }
            } else {
                for number in 0..size {
                    keys[number * width + column] = 0.0;
                }
            }
        }
    }
}

/// Panels of `width` numbers of a head: for each token, the numbers side by side; zero past the last.
#[inline(always)]
fn lay_out_values(from: &[f32], stride: usize, length: usize, size: usize, width: usize, values: &mut [f32]) {
    for (panel, values) in values.chunks_exact_mut(width * length).enumerate() {
        let first = panel * width;
        let count = width.min(size - first);
        for (token, values) in values.chunks_exact_mut(width).enumerate() {
            values[..count].copy_from_slice(&from[token * stride + first..][..count]);
            values[count..].fill(0.0);
        }
    }
}

/// Attention of `R` queries of one head.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn rows<L: Lanes, const R: usize>(
    query: *const f32,
    stride: usize,
    keys: &[f32],
    values: &[f32],
    length: usize,
    size: usize,
    scores: *mut f32,
    to: *mut f32,
    hidden: usize,
) {
    let width = FLOAT_VECTORS * L::WIDTH;
    let padded = length.next_multiple_of(width);
    let scale = 1.0 / (size as f32).sqrt();
    // SAFETY: the caller's contract: panels are whole, and scores have room for `R` rows of whole panels.
    unsafe {
        for panel in 0..padded / width {
            let mut sums = [[L::splat(0.0); FLOAT_VECTORS]; R];
            let keys = keys.as_ptr().add(panel * width * size);
            float_tile::<L, R, FLOAT_VECTORS>(query, stride, keys, size, &mut sums);
            for r in 0..R {
                for c in 0..FLOAT_VECTORS {
                    L::store(scores.add(r * padded + panel * width + c * L::WIDTH), sums[r][c]);
                }
            }
        }
        let mut inverses = [0.0f32; R];
        for r in 0..R {
            inverses[r] = 1.0 / exponentials::<L>(scores.add(r * padded), length, scale);
        }
        for panel in 0..size.div_ceil(width) {
            let mut sums = [[L::splat(0.0); FLOAT_VECTORS]; R];
            let values = values.as_ptr().add(panel * width * length);
            float_tile::<L, R, FLOAT_VECTORS>(scores, padded, values, length, &mut sums);
            for c in 0..FLOAT_VECTORS {
                let start = panel * width + c * L::WIDTH;
                if start >= size {
                    break;
                }
                for r in 0..R {
                    let y = L::mul(sums[r][c], L::splat(inverses[r]));
                    let to = to.add(r * hidden + start);
                    if size - start >= L::WIDTH {
                        L::store(to, y);
                    } else {
                        L::store_part(to, size - start, y);
                    }
                }
            }
        }
    }
}

/// Puts `e^(scale × (score − greatest))` in place of each of `length` scores, and returns their sum. Scores have room for
/// whole registers; what stands past the last comes from keys of zero and is not used.
#[inline(always)]
unsafe fn exponentials<L: Lanes>(scores: *mut f32, length: usize, scale: f32) -> f32 {
    let whole = length - length % L::WIDTH;
    // SAFETY: the caller's contract.
    unsafe {
        let mut greatest = f32::NEG_INFINITY;
        if whole > 0 {
            let mut most = L::load(scores);
            let mut at = L::WIDTH;
            while at < whole {
                most = L::max(most, L::load(scores.add(at)));
                at += L::WIDTH;
            }
            greatest = L::largest(most);
        }
        for at in whole..length {
            let score = *scores.add(at);
            greatest = if score > greatest { score } else { greatest };
        }
        // e^(scale × (score − greatest)) as a power of two.
        let factor = scale * std::f32::consts::LOG2_E;
        let (factor, offset) = (L::splat(factor), L::splat(-greatest * factor));
        let mut total = L::splat(0.0);
        let mut at = 0;
        while at < length {
            let y = power_of_two::<L>(L::mul_add(L::load(scores.add(at)), factor, offset));
            L::store(scores.add(at), y);
            if at < whole {
                total = L::add(total, y);
            }
            at += L::WIDTH;
        }
        let mut sum = L::sum(total);
        for at in whole..length {
            sum += *scores.add(at);
        }
        sum
    }
}
