//! A linear layer on weights as GGUF files hold them: in blocks with scales of their own, of 4, 5, 6 or 8 bits.

use std::io;
use std::sync::{Mutex, PoisonError};

use crate::block_format::{BlockKind, Column};
use crate::block_rows::{BLOCK, BlockRows};
use crate::buffer::Buffer;
use crate::finish::Finish;
use crate::isa::{Isa, constant, kernel};
use crate::lanes::Lanes;
use crate::team::{Pointer, Team};

/// Bytes of activations that all panels pass by before the next rows come: they stay in the second cache.
const ROW_BYTES: usize = 384 << 10;

/// Bytes of weights that are asked for ahead of those multiplied: with few rows the processor waits for memory, and with
/// some more it would wait and multiply in turns.
const AHEAD: usize = 2048;

/// Bytes of a file that a thread fetches before it lays them out.
const FETCHED: usize = 256 << 10;

/// `y = x·Wᵀ + b` with quantised weights.
///
/// The integers of a block of 32 inputs are multiplied exactly; its sum is scaled by the weights' and the activations' scale
/// and added to the sum of the blocks before. What a row gives depends on that row alone, to the bit: reading a prompt in
/// one piece, in several, or token by token gives the same.
#[derive(Debug)]
pub struct BlockLinear {
    isa: Isa,
    kind: BlockKind,
    inputs: usize,
    outputs: usize,
    panels: Buffer<u8>,
    panel_bytes: usize,
    bias: Option<Buffer<f32>>,
}

/// One of several products of the same input.
pub struct Product<'a> {
    /// The layer.
    pub layer: &'a BlockLinear,
    /// What happens to its outputs.
    pub finish: Finish,
    /// Where they go: `[rows, outputs]`.
    pub out: &'a mut [f32],
}

/// Bytes of a row as a file has it.
fn row_bytes(kind: BlockKind, inputs: usize) -> usize {
    assert!(inputs > 0 && inputs.is_multiple_of(kind.inputs()), "rows of blocks of {}, not of {inputs}", kind.inputs());
    inputs / kind.inputs() * kind.bytes()
}

impl BlockLinear {
    /// Lays out `blocks`, the rows of a tensor `[outputs, inputs]` as a GGUF file has them, and `bias` `[outputs]`.
    ///
    /// # Panics
    /// If the lengths don't fit.
    #[must_use]
    pub fn new(isa: Isa, team: &Team, kind: BlockKind, blocks: &[u8], inputs: usize, bias: Option<&[f32]>) -> Self {
        let row_bytes = row_bytes(kind, inputs);
        let outputs = blocks.len() / row_bytes;
        assert!(blocks.len() == outputs * row_bytes, "whole rows of {row_bytes} bytes");
        let layer = Self::read(isa, team, kind, (outputs, inputs), bias, |at, bytes| {
            bytes.copy_from_slice(&blocks[at..][..bytes.len()]);
            Ok(())
        });
        match layer {
            Ok(layer) => layer,
            Err(_) => unreachable!("memory can be read"),
        }
    }

    /// The same with rows that `read` fetches: bytes of the tensor from the place given. All threads of the team fetch and
    /// lay out at once, each a part that stays in its cache.
    ///
    /// # Errors
    /// The first that `read` gave.
    ///
    /// # Panics
    /// If the lengths don't fit.
    pub fn read(
        isa: Isa,
        team: &Team,
        kind: BlockKind,
        (outputs, inputs): (usize, usize),
        bias: Option<&[f32]>,
        read: impl Fn(usize, &mut [u8]) -> io::Result<()> + Sync,
    ) -> io::Result<Self> {
        let row_bytes = row_bytes(kind, inputs);
        assert!(outputs > 0, "at least one row");
        let width = constant!(isa, WIDTH);
        let panel_bytes = inputs / kind.inputs() * kind.unit() * width;
        let mut panels = Buffer::zeroed(outputs.div_ceil(width) * panel_bytes);
        let signed = constant!(isa, SIGNED_BYTES);
        let together = (FETCHED / (width * row_bytes)).max(1);
        let failure = Mutex::new(None);
        team.chunks(&mut panels, together * panel_bytes, |piece, panels| {
            let first = piece * together * width;
            let mut rows = vec![0; (outputs - first).min(together * width) * row_bytes];
            if let Err(error) = read(first * row_bytes, &mut rows) {
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                return;
            }
            for (panel, rows) in panels.chunks_exact_mut(panel_bytes).zip(rows.chunks(width * row_bytes)) {
                let mut column = Column { kind, width, column: 0, signed, panel };
                for (index, row) in rows.chunks_exact(row_bytes).enumerate() {
                    column.column = index;
                    for (unit, block) in row.chunks_exact(kind.bytes()).enumerate() {
                        column.write(unit, block);
                    }
                }
            }
        });
        if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let bias = bias.map(|bias| {
            assert_eq!(bias.len(), outputs, "a bias for every output");
            let mut padded = Buffer::zeroed(outputs.next_multiple_of(width));
            padded[..outputs].copy_from_slice(bias);
            padded
        });
        Ok(Self { isa, kind, inputs, outputs, panels, panel_bytes, bias })
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
        self.panels.bytes() + self.bias.as_ref().map_or(0, Buffer::bytes)
    }

    /// The weights of one output.
    ///
    /// # Panics
    /// If there is no such output, or `weights` are not as many as inputs.
    pub fn row(&self, output: usize, weights: &mut [f32]) {
        assert!(output < self.outputs && weights.len() == self.inputs, "row {output} of {}", self.outputs);
        let width = constant!(self.isa, WIDTH);
        let panel = &self.panels[output / width * self.panel_bytes..][..self.panel_bytes];
        let signed = constant!(self.isa, SIGNED_BYTES);
        let column = Column { kind: self.kind, width, column: output % width, signed, panel };
        for (unit, weights) in weights.chunks_exact_mut(self.kind.inputs()).enumerate() {
            column.read(unit, weights);
        }
    }

    /// Applies several layers to the same `x`.
    ///
    /// # Panics
    /// If the lengths don't fit.
    pub fn forward(team: &Team, x: &BlockRows, products: &mut [Product<'_>]) {
        let rows = x.rows();
        for Product { layer, out, .. } in &*products {
            assert!(x.columns() == layer.inputs && out.len() == rows * layer.outputs, "rows of input and output");
        }
        let jobs: Vec<_> = products
            .iter_mut()
            .map(|product| {
                let panels = product.layer.outputs.div_ceil(constant!(product.layer.isa, WIDTH));
                (product.layer, product.finish, Pointer(product.out.as_mut_ptr()), panels)
            })
            .collect();
        let panels = jobs.iter().map(|job| job.3).sum::<usize>();
        if rows == 0 || panels == 0 {
            return;
        }
        let rows_together = (ROW_BYTES / x.columns()).next_multiple_of(8).max(8);
        let row_pieces = rows.div_ceil(rows_together);
        // Small enough that threads end together, and large enough that taking a piece costs nothing.
        let panels_together = panels.div_ceil(team.size() * 8).max(2);
        let panel_pieces = panels.div_ceil(panels_together);
        team.each(row_pieces * panel_pieces, |piece| {
            let first_row = piece / panel_pieces * rows_together;
            let some_rows = first_row..rows.min(first_row + rows_together);
            let first = piece % panel_pieces * panels_together;
            let mut before = 0;
            for &(layer, finish, out, panels) in &jobs {
                let from = first.clamp(before, before + panels);
                let to = (first + panels_together).clamp(before, before + panels);
                // SAFETY: lengths are checked above, panels and bias are padded to whole panels by `new`, blocks of
                // activations are whole; pieces write different rows or different columns.
                unsafe {
                    block_product(layer.isa, x, some_rows.clone(), layer, from - before..to - before, finish, out);
                };
                before += panels;
            }
        });
    }
}

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
    for panel in panels {
        let mut row = rows.start;
        // SAFETY: the caller's contract: the rows are in `x` and `out`, the panels in the layer.
        unsafe {
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
    let width = L::WIDTH;
    let blocks = layer.inputs / BLOCK;
    let subs = if SUPER { 8 } else { 1 };
    let zero = match BITS {
        4 => 8.0,
        5 => 16.0,
        6 => 32.0,
        _ if L::SIGNED_BYTES => 0.0,
        _ => 128.0,
    };
    // SAFETY: the caller's contract: `R` rows from `row` are in `x` and `out`, and the panel is whole.
    unsafe {
        let mut totals = [L::splat(0.0); R];
        let mut at = layer.panels.as_ptr().add(panel * layer.panel_bytes);
        let a = x.bytes.as_ptr().add(row * layer.inputs);
        let scales = x.scales.as_ptr().add(row * blocks);
        let sums = x.sums.as_ptr().add(row * blocks);
        let halves = x.halves.as_ptr().add(row * blocks * 2);
        for unit in 0..blocks / subs {
            let d = L::load_half(at.cast());
            at = at.add(2 * width);
            let e = if LEAST { L::load_half(at.cast()) } else { L::splat(0.0) };
            at = at.add(if LEAST { 2 * width } else { 0 });
            let small = at;
            at = at.add(if SUPER { 16 * width } else { 0 });
            for sub in 0..subs {
                let block = unit * subs + sub;
                let fours = unpack::<L, BITS>(at);
                if R > 1 {
                    for line in 0..(BITS * 4 * width).div_ceil(64) {
                        L::prefetch(at.wrapping_add(AHEAD + line * 64));
                    }
                }
                at = at.add(BITS * 4 * width);
                if BITS == 6 {
                    let first = L::mul(d, L::load_signed(small.add(2 * sub * width).cast()));
                    let second = L::mul(d, L::load_signed(small.add((2 * sub + 1) * width).cast()));
                    let (least_first, least_second) = (L::mul(first, L::splat(-zero)), L::mul(second, L::splat(-zero)));
                    let mut ones = [L::int_zero(); R];
                    L::dots::<BITS, R>(&mut ones, &fours, 0, a.add(block * BLOCK), layer.inputs);
                    let mut twos = [L::int_zero(); R];
                    L::dots::<BITS, R>(&mut twos, &fours, 4, a.add(block * BLOCK + BLOCK / 2), layer.inputs);
                    for r in 0..R {
                        let two = L::mul(L::to_float(twos[r]), second);
                        let both = L::mul_add(L::to_float(ones[r]), first, two);
                        totals[r] = L::mul_add(both, L::splat(*scales.add(r * blocks + block)), totals[r]);
                        let at = (r * blocks + block) * 2;
                        totals[r] = L::mul_add(L::splat(*halves.add(at)), least_first, totals[r]);
                        totals[r] = L::mul_add(L::splat(*halves.add(at + 1)), least_second, totals[r]);
                    }
                } else {
                    let scale = if SUPER { L::mul(d, L::load_unsigned(small.add(sub * width))) } else { d };
                    let least = match (LEAST, SUPER) {
                        (true, true) => {
                            let least = L::mul(e, L::load_unsigned(small.add((8 + sub) * width)));
                            L::sub(L::splat(0.0), least)
                        }
                        (true, false) => e,
                        (false, _) => L::mul(scale, L::splat(-zero)),
                    };
                    let mut products = [L::int_zero(); R];
                    L::dots::<BITS, R>(&mut products, &fours, 0, a.add(block * BLOCK), layer.inputs);
                    L::dots::<BITS, R>(&mut products, &fours, 4, a.add(block * BLOCK + BLOCK / 2), layer.inputs);
                    for r in 0..R {
                        let sum = L::to_float(products[r]);
                        let scaled = L::mul(sum, L::splat(*scales.add(r * blocks + block)));
                        totals[r] = L::mul_add(scaled, scale, totals[r]);
                        if LEAST || zero != 0.0 {
                            totals[r] = L::mul_add(L::splat(*sums.add(r * blocks + block)), least, totals[r]);
                        }
                    }
                }
            }
        }
        let first = panel * width;
        let bias = layer.bias.as_ref().map_or(L::splat(0.0), |bias| L::load(bias.as_ptr().add(first)));
        for r in 0..R {
            let to = out.at((row + r) * layer.outputs + first);
            finish.write::<L, true>(to, layer.outputs - first, L::add(totals[r], bias));
        }
    }
}
