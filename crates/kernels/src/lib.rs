//! Kernels of encoders and decoders on a processor: linear layers in 8-bit integers, in the quantised blocks of GGUF files and
//! in `f32`, attention within a text and over pages of remembered tokens, normalisation; and the threads that share them.
//!
//! Every kernel is written once over the registers of [`lanes`], compiled for each instruction set, and chosen at run time
//! by [`Isa`]. What a row gives depends on that row alone (for attention: on its text), to the bit, so that a text's vector
//! is the same in any batch. The integers of 8-bit products are exact, and the same on every processor.
//!
//! Architecture invariant: unsafe code of the engine stands here and nowhere else, and every function that this crate
//! offers is safe to call: it checks the lengths of what it is given.

mod attention;
mod block_format;
mod block_linear;
mod block_rows;
mod block_tiles;
mod buffer;
mod byte_dot;
mod byte_linear;
mod causal_attention;
mod elementwise;
mod finish;
mod float_linear;
mod functions;
mod isa;
mod lanes;
mod rows;
mod team;

pub use attention::{Heads, attention};
pub use block_format::BlockKind;
pub use block_linear::{BlockLinear, Product};
pub use block_rows::BlockRows;
pub use buffer::{Buffer, Number};
pub use byte_dot::{byte_dot, byte_dots, byte_metric};
pub use byte_linear::ByteLinear;
pub use causal_attention::{CausalHeads, PAGE};
pub use elementwise::{Gate, rms_norm};
pub use finish::Finish;
pub use float_linear::FloatLinear;
pub use isa::Isa;
pub use rows::{ByteRows, layer_norm};
pub use team::Team;
