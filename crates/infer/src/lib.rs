//! Inference in this process: bi-encoder, cross-encoder and generator, on the processor or on candle's tensors.
//!
//! Architecture invariant: this crate knows models and texts, and nothing of retrieval or questions. Every file is checked
//! by `anchorite-models` before a library reads it, and files are read rather than mapped, so that a file that changes
//! under a running program can't take it down.

mod device;
mod encoder;
mod error;
mod generator;
mod guarded;

pub use device::{DeviceChoice, default_threads, set_threads, threads};
pub use encoder::{BiEncoder, Cost, CrossEncoder, Precision, product_instructions, product_speed};
pub use error::LoadError;
pub use generator::{DecoderSpec, GeneratorTimes, LocalGenerator, Perplexity, try_chat_template};
