//! The inner loops of [`BlockLinear`]: tiles of a few rows with a panel of weights, or with two panels unpacked once for
//! many rows.

use crate::block_format::BlockKind;
use crate::block_linear::BlockLinear;
use crate::block_rows::{BLOCK, BlockRows};
use crate::finish::Finish;
use crate::isa::kernel;
use crate::lanes::Lanes;
use crate::team::Pointer;

/// Bytes of weights that are asked for ahead of those multiplied: with few rows the processor waits for memory, and with
/// some more it would wait and multiply in turns.
const AHEAD: usize = 2048;

/// Panels that are unpacked together: an activation that is fetched meets the weights of both.
const PAIR: usize = 2;
/// Blocks of 32 inputs that are unpacked together; they stay in the first cache while rows pass by.
const STRETCH: usize = 8;
/// Rows that pass by weights unpacked once.
const PASSING: usize = 64;
/// Fewest rows for which unpacking weights to memory pays.
const FEWEST: usize = 8;
/// Widest register of any instruction set, in 32-bit lanes.
const WIDEST: usize = 16;

type Range = std::ops::Range<usize>;

#[inline(always)]
unsafe fn product<L: Lanes>(
    x: &BlockRows,
    rows: Range,
    layer: &BlockLinear,
    panels: Range,
    finish: Finish,
    out: Pointer<f32>,
) {
    // SAFETY: the caller's contract.
    unsafe {
        match layer.kind {
            BlockKind::Q4_0 => some::<L, 4, false, false>(x, rows, layer, panels, finish, out),
            BlockKind::Q4_1 => some::<L, 4, false, true>(x, rows, layer, panels, finish, out),
            BlockKind::Q5_0 => some::<L, 5, false, false>(x, rows, layer, panels, finish, out),
            BlockKind::Q5_1 => some::<L, 5, false, true>(x, rows, layer, panels, finish, out),
            BlockKind::Q8_0 => some::<L, 8, false, false>(x, rows, layer, panels, finish, out),
            BlockKind::Q4K => some::<L, 4, true, true>(x, rows, layer, panels, finish, out),
            BlockKind::Q5K => some::<L, 5, true, true>(x, rows, layer, panels, finish, out),
            BlockKind::Q6K => some::<L, 6, true, false>(x, rows, layer, panels, finish, out),
        }
    }
}
kernel!(
    fn block_product(
        x: &BlockRows,
        rows: Range,
        layer: &BlockLinear,
        panels: Range,
        finish: Finish,
        out: Pointer<f32>,
    ) = product
);

#[inline(always)]
unsafe fn some<L: Lanes, const BITS: usize, const SUPER: bool, const LEAST: bool>(
    x: &BlockRows,
    rows: Range,
    layer: &BlockLinear,
    panels: Range,
    finish: Finish,
    out: Pointer<f32>,
) {
    let mut panels = panels;
    // SAFETY: the caller's contract: the rows are in `x` and `out`, the panels in the layer.
    unsafe {
        if L::UNPACKS && rows.len() >= FEWEST {
            let mut unpacked = Unpacked::new();
            while panels.len() >= PAIR {
                for first in rows.clone().step_by(PASSING) {
                    let rows = first..rows.end.min(first + PASSING);
                    wide::<L, BITS, SUPER, LEAST>(x, rows, layer, panels.start, finish, out, &mut unpacked);
                }
                panels.start += PAIR;
            }
        }
        for panel in panels {
            let mut row = rows.start;
            while rows.end - row >= 8 && L::BLOCK_ROWS >= 8 {
                tile::<L, BITS, SUPER, LEAST, 8>(x, row, layer, panel, finish, out);
                row += 8;
            }
            while rows.end - row >= 4 {
                tile::<L, BITS, SUPER, LEAST, 4>(x, row, layer, panel, finish, out);
                row += 4;
            }
            if rows.end - row >= 2 {
                tile::<L, BITS, SUPER, LEAST, 2>(x, row, layer, panel, finish, out);
                row += 2;
            }
            if rows.end > row {
                tile::<L, BITS, SUPER, LEAST, 1>(x, row, layer, panel, finish, out);
            }
        }
    }
}

/// What is subtracted from every weight of so many bits, where the format has no least values.
#[inline(always)]
fn zero<L: Lanes>(bits: usize) -> f32 {
    match bits {
        4 => 8.0,
        5 => 16.0,
        6 => 32.0,
        _ if L::SIGNED_BYTES => 0.0,
        _ => 128.0,
    }
}

/// The scales of a unit of a panel, and where its weights start.
struct Unit<L: Lanes> {
    scale: L::Float,
    least: L::Float,
    /// Those of six or eight bits of each 32 inputs.
    small: *const u8,
    weights: *const u8,
}

impl<L: Lanes> Unit<L> {
    #[inline(always)]
    unsafe fn at<const SUPER: bool, const LEAST: bool>(at: *const u8) -> Self {
        let width = L::WIDTH;
        // SAFETY: the caller's pointer is that of a whole unit.
        unsafe {
            let small = at.add(if LEAST { 4 } else { 2 } * width);
            Self {
                scale: L::load_half(at.cast()),
                least: if LEAST { L::load_half(at.add(2 * width).cast()) } else { L::splat(0.0) },
                small,
                weights: small.add(if SUPER { 16 * width } else { 0 }),
            }
        }
    }

    /// What the 32 inputs `sub` are scaled with: the scale and what a sum of activations counts; with six bits the scale of
    /// each half, and then what the sum of each half counts.
    #[inline(always)]
    unsafe fn scales<const BITS: usize, const SUPER: bool, const LEAST: bool>(&self, sub: usize) -> [L::Float; 4] {
        let width = L::WIDTH;
        // SAFETY: `sub` is in the unit.
        unsafe {
            let (none, zero) = (L::splat(0.0), L::splat(-zero::<L>(BITS)));
            if BITS == 6 {
                let half =
                    |half: usize| L::mul(self.scale, L::load_signed(self.small.add((2 * sub + half) * width).cast()));
                let (first, second) = (half(0), half(1));
                return [first, second, L::mul(first, zero), L::mul(second, zero)];
            }
            let scale =
                if SUPER { L::mul(self.scale, L::load_unsigned(self.small.add(sub * width))) } else { self.scale };
            let least = match (LEAST, SUPER) {
                (true, true) => L::sub(none, L::mul(self.least, L::load_unsigned(self.small.add((8 + sub) * width)))),
                (true, false) => self.least,
                (false, _) => L::mul(scale, zero),
            };
            [scale, least, none, none]
        }
    }
}

/// The eight fours of 32 inputs of a panel, a byte for each weight.
#[inline(always)]
unsafe fn unpack<L: Lanes, const BITS: usize>(from: *const u8) -> [L::Int; 8] {
    let register = 4 * L::WIDTH;
    // SAFETY: the caller's pointer is valid for the bytes of 32 weights of every column.
    unsafe {
        let mut fours = [L::int_zero(); 8];
        if BITS == 8 {
            for four in 0..8 {
                fours[four] = L::load_int(from.add(four * register));
            }
            return fours;
        }
        let low = L::splat_byte(15);
        for four in 0..4 {
            let both = L::load_int(from.add(four * register));
            fours[four] = L::and(both, low);
            fours[four + 4] = L::and(L::shift_right(both, 4), low);
        }
        for four in 0..8 {
            // What is above the low half of a byte: moved to bit 4, over bits of other bytes, which the mask takes away.
            let (part, place, mask) = if BITS == 5 { (0, four, 16) } else { (four / 4, four % 4 * 2, 48) };
            if BITS > 4 {
                let above = L::load_int(from.add((4 + part) * register));
                let moved = if place < 4 { L::shift_left(above, 4 - place) } else { L::shift_right(above, place - 4) };
                fours[four] = L::or(fours[four], L::and(moved, L::splat_byte(mask)));
            }
        }
        fours
    }
}

/// The activations of one row and one block of 32: their scale, and the sums that least values count.
#[derive(Clone, Copy)]
struct Activations {
    scale: *const f32,
    sum: *const f32,
    halves: *const f32,
}

/// `total` and a block: its exact sums of products (with six bits, those of each half), scaled. Every tile adds blocks in
/// this one way, so that a row comes to the same in each.
#[inline(always)]
unsafe fn plus<L: Lanes, const BITS: usize, const LEAST: bool>(
    total: L::Float,
    products: [L::Int; 2],
    scales: [L::Float; 4],
    x: Activations,
) -> L::Float {
    // SAFETY: the caller's pointers are those of a block.
    unsafe {
        let scale = L::splat(*x.scale);
        if BITS == 6 {
            let two = L::mul(L::to_float(products[1]), scales[1]);
            let both = L::mul_add(L::to_float(products[0]), scales[0], two);
            let total = L::mul_add(both, scale, total);
            let total = L::mul_add(L::splat(*x.halves), scales[2], total);
            return L::mul_add(L::splat(*x.halves.add(1)), scales[3], total);
        }
        let total = L::mul_add(L::mul(L::to_float(products[0]), scale), scales[0], total);
        if LEAST || zero::<L>(BITS) != 0.0 { L::mul_add(L::splat(*x.sum), scales[1], total) } else { total }
    }
}

impl BlockRows {
    /// Of block `block`, counted through all rows.
    #[inline(always)]
    unsafe fn activations(&self, block: usize) -> Activations {
        // SAFETY: the caller's block is one of these rows.
        unsafe {
            Activations {
                scale: self.scales.as_ptr().add(block),
                sum: self.sums.as_ptr().add(block),
                halves: self.halves.as_ptr().add(2 * block),
            }
        }
    }
}

/// `R` rows from `row` with a panel.
#[inline(always)]
unsafe fn tile<L: Lanes, const BITS: usize, const SUPER: bool, const LEAST: bool, const R: usize>(
    x: &BlockRows,
    row: usize,
    layer: &BlockLinear,
    panel: usize,
    finish: Finish,
    out: Pointer<f32>,
) {
    let (width, inputs) = (L::WIDTH, layer.inputs);
    let blocks = inputs / BLOCK;
    let subs = if SUPER { 8 } else { 1 };
    // SAFETY: the caller's contract: `R` rows from `row` are in `x` and `out`, and the panel is whole.
    unsafe {
        let mut totals = [L::splat(0.0); R];
        let mut at = layer.panels.as_ptr().add(panel * layer.panel_bytes);
        let a = x.bytes.as_ptr().add(row * inputs);
        for unit in 0..blocks / subs {
            let scaled = Unit::<L>::at::<SUPER, LEAST>(at);
            at = scaled.weights;
            for sub in 0..subs {
                let block = unit * subs + sub;
                let fours = unpack::<L, BITS>(at);
                if R > 1 {
                    for line in 0..(BITS * 4 * width).div_ceil(64) {
                        L::prefetch(at.wrapping_add(AHEAD + line * 64));
                    }
                }
                at = at.add(BITS * 4 * width);
                let scales = scaled.scales::<BITS, SUPER, LEAST>(sub);
                let mut ones = [L::int_zero(); R];
                let mut twos = [L::int_zero(); R];
                let a = a.add(block * BLOCK);
                L::dots::<BITS, R>(&mut ones, &fours, 0, a, inputs);
                L::dots::<BITS, R>(if BITS == 6 { &mut twos } else { &mut ones }, &fours, 4, a.add(BLOCK / 2), inputs);
                for r in 0..R {
                    let x = x.activations((row + r) * blocks + block);
                    totals[r] = plus::<L, BITS, LEAST>(totals[r], [ones[r], twos[r]], scales, x);
                }
            }
        }
        for r in 0..R {
            write::<L>(layer, panel, row + r, totals[r], finish, out);
        }
    }
}

/// Gives what a row comes to with a panel its bias, and finishes it.
#[inline(always)]
unsafe fn write<L: Lanes>(
    layer: &BlockLinear,
    panel: usize,
    row: usize,
    total: L::Float,
    finish: Finish,
    out: Pointer<f32>,
) {
    let first = panel * L::WIDTH;
    // SAFETY: the caller's contract: the row is in `out`, the panel in the layer, whose bias is padded to whole panels.
    unsafe {
        let bias = layer.bias.as_ref().map_or(L::splat(0.0), |bias| L::load(bias.as_ptr().add(first)));
        let to = out.at(row * layer.outputs + first);
        finish.write::<L, true>(to, layer.outputs - first, L::add(total, bias));
    }
}

/// A stretch of two panels, a byte for each weight and a number for each scale, and what the rows passing by come to.
#[repr(C, align(64))]
struct Unpacked {
    /// `[block, four, panel]`, a register each.
    weights: [u8; STRETCH * 8 * PAIR * 4 * WIDEST],
    /// `[block, panel, scale]`, a register each.
    scales: [f32; STRETCH * PAIR * 4 * WIDEST],
    /// `[row, panel]`, a register each.
    totals: [f32; PASSING * PAIR * WIDEST],
}

impl Unpacked {
    fn new() -> Self {
        Self {
            weights: [0; STRETCH * 8 * PAIR * 4 * WIDEST],
            scales: [0.0; STRETCH * PAIR * 4 * WIDEST],
            totals: [0.0; PASSING * PAIR * WIDEST],
        }
    }
}

/// Up to [`PASSING`] rows with two panels from `panel`.
#[inline(always)]
unsafe fn wide<L: Lanes, const BITS: usize, const SUPER: bool, const LEAST: bool>(
    x: &BlockRows,
    rows: Range,
    layer: &BlockLinear,
    panel: usize,
    finish: Finish,
    out: Pointer<f32>,
    unpacked: &mut Unpacked,
) {
    let blocks = layer.inputs / BLOCK;
    // SAFETY: the caller's contract: the rows are in `x` and `out`, and both panels are whole. A register is no wider than
    // `WIDEST`, blocks from `first` on no more than `STRETCH`, rows no more than `PASSING`.
    unsafe {
        unpacked.totals.fill(0.0);
        for first in (0..blocks).step_by(STRETCH) {
            let stretch = first..blocks.min(first + STRETCH);
            for c in 0..PAIR {
                lay_out::<L, BITS, SUPER, LEAST>(layer, panel + c, stretch.clone(), c, unpacked);
            }
            let mut row = rows.start;
            while rows.end - row >= 4 {
                passing::<L, BITS, LEAST, 4>(x, row, row - rows.start, layer, stretch.clone(), unpacked);
                row += 4;
            }
            while row < rows.end {
                passing::<L, BITS, LEAST, 1>(x, row, row - rows.start, layer, stretch.clone(), unpacked);
                row += 1;
            }
        }
        for row in rows.clone() {
            for c in 0..PAIR {
                let at = ((row - rows.start) * PAIR + c) * L::WIDTH;
                write::<L>(layer, panel + c, row, L::load(unpacked.totals.as_ptr().add(at)), finish, out);
            }
        }
    }
}

/// Unpacks the blocks `stretch` of a panel, as the one in place `c`.
#[inline(always)]
unsafe fn lay_out<L: Lanes, const BITS: usize, const SUPER: bool, const LEAST: bool>(
    layer: &BlockLinear,
    panel: usize,
    stretch: Range,
    c: usize,
    unpacked: &mut Unpacked,
) {
    let (width, register) = (L::WIDTH, 4 * L::WIDTH);
    let subs = if SUPER { 8 } else { 1 };
    let (unit_bytes, quarter) = (layer.kind.unit() * width, layer.kind.quarter() * width);
    // SAFETY: the caller's contract: the panel is in the layer and holds the blocks, a whole number of units.
    unsafe {
        let from = layer.panels.as_ptr().add(panel * layer.panel_bytes);
        for block in stretch.clone() {
            let (unit, sub) = (block / subs, block % subs);
            let scaled = Unit::<L>::at::<SUPER, LEAST>(from.add(unit * unit_bytes));
            let at = scaled.weights.add(sub * quarter);
            for line in 0..quarter.div_ceil(64) {
                L::prefetch(at.wrapping_add(AHEAD + line * 64));
            }
            let place = block - stretch.start;
            for (four, weights) in unpack::<L, BITS>(at).into_iter().enumerate() {
                L::store_int(unpacked.weights.as_mut_ptr().add(((place * 8 + four) * PAIR + c) * register), weights);
            }
            for (index, scale) in scaled.scales::<BITS, SUPER, LEAST>(sub).into_iter().enumerate() {
                L::store(unpacked.scales.as_mut_ptr().add(((place * PAIR + c) * 4 + index) * width), scale);
            }
        }
    }
}

/// Adds to the totals of `R` rows, the first of which is number `place` of those passing by, what they come to with a stretch.
#[inline(always)]
unsafe fn passing<L: Lanes, const BITS: usize, const LEAST: bool, const R: usize>(
    x: &BlockRows,
    row: usize,
    place: usize,
    layer: &BlockLinear,
    stretch: Range,
    unpacked: &mut Unpacked,
) {
    let (width, inputs) = (L::WIDTH, layer.inputs);
    let blocks = inputs / BLOCK;
    // SAFETY: the caller's contract, and that of `wide`.
    unsafe {
        let a = x.bytes.as_ptr().add(row * inputs);
        let totals = unpacked.totals.as_mut_ptr().add(place * PAIR * width);
        for block in stretch.clone() {
            let at = block - stretch.start;
            let weights = unpacked.weights.as_ptr().add(at * 8 * PAIR * 4 * width);
            let a = a.add(block * BLOCK);
            let (ones, twos) = if BITS == 6 {
                let half = PAIR * 16 * width;
                let ones = L::wide_dots::<BITS, 4, R, PAIR>(weights, a, inputs);
                (ones, L::wide_dots::<BITS, 4, R, PAIR>(weights.add(half), a.add(BLOCK / 2), inputs))
            } else {
                (L::wide_dots::<BITS, 8, R, PAIR>(weights, a, inputs), [[L::int_zero(); PAIR]; R])
            };
            for c in 0..PAIR {
                let from = unpacked.scales.as_ptr().add((at * PAIR + c) * 4 * width);
                let mut scales = [L::splat(0.0); 4];
                for (index, scale) in scales.iter_mut().enumerate() {
                    *scale = L::load(from.add(index * width));
                }
                for r in 0..R {
                    let to = totals.add((r * PAIR + c) * width);
                    let x = x.activations((row + r) * blocks + block);
                    L::store(to, plus::<L, BITS, LEAST>(L::load(to), [ones[r][c], twos[r][c]], scales, x));
                }
            }
        }
    }
}
