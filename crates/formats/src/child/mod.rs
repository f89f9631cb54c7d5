//! A process of its own for parsers of formats that are made to harm now and then.
//!
//! The parent ([`Workers`]) starts a program, which an embedder names, and gives it one file after the other. The program
//! calls [`serve`]: it limits itself before it reads anything (memory, processor time, no files, no network, no new
//! processes), takes each file apart and writes back what it holds. If it dies, overflows its stack, hangs or writes too
//! much, one file is lost and reported, and the next one gets a new process. A process is replaced after some files, so that
//! what one file may have done to it does not last.
//!
//! Architecture invariant: nothing that the child writes is trusted further than text is.

mod limits;
mod protocol;
mod serve;
mod workers;

pub use protocol::Request;
pub(crate) use serve::panicked;
pub use serve::{Extractor, serve, serve_with};
pub use workers::Program;
pub(crate) use workers::{Next, Running, Workers};
