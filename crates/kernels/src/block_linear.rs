//! A linear layer on weights as GGUF files hold them: in blocks with scales of their own, of 4, 5, 6 or 8 bits.

use std::io;
use std::sync::{Mutex, PoisonError};

use crate::block_format::{BlockKind, Column};
use crate::block_rows::BlockRows;
use crate::block_tiles::block_product;
use crate::buffer::Buffer;
use crate::finish::Finish;
use crate::isa::{Isa, constant};
use crate::team::{Pointer, Team};

/// Bytes of activations that all panels pass by before the next rows come: they stay in the second cache.
const ROW_BYTES: usize = 384 << 10;

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
    pub(crate) kind: BlockKind,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    pub(crate) panels: Buffer<u8>,
    pub(crate) panel_bytes: usize,
    pub(crate) bias: Option<Buffer<f32>>,
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
