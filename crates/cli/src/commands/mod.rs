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
pub(crate) mod search;
