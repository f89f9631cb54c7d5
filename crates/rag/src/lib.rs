//! Retrieval techniques as graph nodes: graders, quantities, prompts, and the graphs that ship.
//!
//! Architecture invariants: nothing here knows a model or a store, only the traits of `core`; the question in the state
//! never changes; every cycle carries a guard; text of documents reaches the generator as data within a prompt and decides
//! nothing by itself.

mod answer;
mod conflict;
mod distrust;
mod expand;
mod extract;
mod grade;
mod nodes;
mod parts;
mod presets;
mod probing;
mod prompts;
pub mod quantities;
mod question;
mod questions;
mod settings;
mod state;
mod words;

pub use answer::conclude;
pub use expand::{Expanded, Expansion, Found, UnknownExpansion, Variant, expand, merge};
pub use grade::{Grounding, Probe, RelevanceScale, Signals, ground, relevance, support, usefulness};
pub use nodes::readable;
pub use parts::Parts;
pub use presets::{Strategy, UnknownStrategy, build};
pub use probing::{MeetError, Met, meet};
pub use prompts::INSTRUCTIONS;
pub use questions::{MadeQuestion, question_from};
pub use settings::{OpinionScale, Piece, Settings, UnknownPiece};
pub use state::{Action, Draft, Finding, RagState, RagUpdate, Useful};
