//! Rows of activations as signed bytes, a scale for every 32 of them.

use crate::buffer::Buffer;
use crate::isa::{Isa, kernel};
use crate::lanes::Lanes;
use crate::team::{Pointer, Team};

/// Numbers that share a scale.
pub(crate) const BLOCK: usize = 32;

/// Rows for one thread at a time.
const ROWS: usize = 8;

/// Rows of numbers as bytes: `x ≈ scale × byte`, −127 ≤ byte ≤ 127, with a scale for every 32 numbers. Finer than a scale
/// per row, because a few components of a decoder's hidden state are far greater than all others (Dettmers et al. 2022).
#[derive(Debug, Default)]
pub struct BlockRows {
    pub(crate) bytes: Buffer<i8>,
    /// `[rows, blocks]`.
    pub(crate) scales: Buffer<f32>,
    /// `scale × Σ byte` of each block: `[rows, blocks]`.
    pub(crate) sums: Buffer<f32>,
    /// The same of each half of a block: `[rows, 2 × blocks]`.
    pub(crate) halves: Buffer<f32>,
    rows: usize,
    columns: usize,
}

impl BlockRows {
    /// Takes `x`, rows of `columns` numbers, in place of what was there.
    ///
    /// # Panics
    /// If `x` is not whole rows, or `columns` is no multiple of 32.
    pub fn quantize(&mut self, isa: Isa, team: &Team, x: &[f32], columns: usize) {
        assert!(columns > 0 && columns.is_multiple_of(BLOCK), "rows of blocks of {BLOCK}, not of {columns}");
        assert!(x.len().is_multiple_of(columns), "whole rows of {columns} numbers");
        let (rows, blocks) = (x.len() / columns, columns / BLOCK);
        (self.rows, self.columns) = (rows, columns);
        self.bytes.resize(rows * columns);
        self.scales.resize(rows * blocks);
        self.sums.resize(rows * blocks);
        self.halves.resize(rows * blocks * 2);
        let bytes = Pointer(self.bytes.as_mut_ptr());
        let [scales, sums, halves] =
            [&mut self.scales, &mut self.sums, &mut self.halves].map(|buffer| Pointer(buffer.as_mut_ptr()));
        team.each(rows.div_ceil(ROWS), |piece| {
            let from = piece * ROWS;
            let count = ROWS.min(rows - from);
            let x = &x[from * columns..][..count * columns];
            // SAFETY: the buffers have room for all rows, and pieces are of different rows.
            unsafe {
                let at = from * blocks;
                let bytes = bytes.at(from * columns).cast();
                quantize_blocks(isa, x, bytes, scales.at(at), sums.at(at), halves.at(2 * at));
            }
        });
    }

    /// Rows held.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Numbers in a row.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }
}

#[inline(always)]
unsafe fn blocks<L: Lanes>(x: &[f32], bytes: *mut u8, scales: *mut f32, sums: *mut f32, halves: *mut f32) {
    for (block, x) in x.chunks_exact(BLOCK).enumerate() {
        // SAFETY: `x` holds `BLOCK` numbers, a multiple of `2 × WIDTH`, and the caller's pointers have room for every block.
        unsafe {
            let mut greatest = L::splat(0.0);
            for at in (0..BLOCK).step_by(L::WIDTH) {
                let x = L::load(x.as_ptr().add(at));
                greatest = L::max(greatest, L::max(x, L::sub(L::splat(0.0), x)));
            }
            let mut greatest = L::largest(greatest);
            // Registers compare past what is no number; a sum does not.
            let mut total = L::splat(0.0);
            for at in (0..BLOCK).step_by(L::WIDTH) {
                total = L::add(total, L::load(x.as_ptr().add(at)));
            }
            if !L::sum(total).is_finite() {
                greatest = f32::NAN;
            }
            let inverse = if greatest > 0.0 { 127.0 / greatest } else { 0.0 };
            let scale = greatest / 127.0;
            let factor = L::splat(inverse);
            for half in 0..2 {
                let mut total = L::splat(0.0);
                for at in (half * BLOCK / 2..(half + 1) * BLOCK / 2).step_by(L::WIDTH) {
                    let whole = L::round(L::mul(L::load(x.as_ptr().add(at)), factor));
                    L::store_bytes(bytes.add(block * BLOCK + at), whole);
                    total = L::add(total, L::to_float(whole));
                }
                *halves.add(2 * block + half) = L::sum(total) * scale;
            }
            *scales.add(block) = scale;
            *sums.add(block) = *halves.add(2 * block) + *halves.add(2 * block + 1);
        }
    }
}
kernel!(fn quantize_blocks(x: &[f32], bytes: *mut u8, scales: *mut f32, sums: *mut f32, halves: *mut f32) = blocks);
