//! One module per command: what it prints, and whether something was found.

pub(crate) mod ask;
pub(crate) mod bench;
pub(crate) mod chat;
pub(crate) mod doctor;
pub(crate) mod encode;
pub(crate) mod eval;
pub(crate) mod generate;
pub(crate) mod graph;
pub(crate) mod ingest;
pub(crate) mod kb;
pub(crate) mod models;
pub(crate) mod offline;
pub(crate) mod search;

/// Where a command needs a generator and there is none.
const NO_GENERATOR: &str = "there is no generator, or it does not fit into memory; run `cargo xtask setup`, choose `--profile tiny`, or point `--models DIR` to a folder that has one";
