//! Kernels of encoders on a processor: linear layers in 8-bit integers and in `f32`, attention, layer normalisation.
//!
//! Every kernel is written once over the registers of [`lanes`], compiled for each instruction set, and chosen at run time
//! by [`Isa`]. What a row gives depends on that row alone (for attention: on its text), to the bit, so that a text's vector
//! is the same in any batch. The integers of 8-bit products are exact, and the same on every processor.
//!
//! Architecture invariant: unsafe code of the engine stands here and nowhere else, and every function that this crate
//! offers is safe to call: it checks the lengths of what it is given.

mod attention;
mod buffer;
mod byte_linear;
mod finish;
mod float_linear;
mod functions;
mod isa;
mod lanes;
mod rows;

pub use attention::{Heads, attention};
pub use buffer::{Buffer, Number};
pub use byte_linear::ByteLinear;
pub use finish::Finish;
pub use float_linear::FloatLinear;
pub use isa::Isa;
pub use rows::{ByteRows, layer_norm};
