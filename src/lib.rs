//! Anchorite answers questions from your own documents, on your own machine, with no network, and checks its own answers.
//!
//! ```no_run
//! use anchorite::{AskOptions, Engine, EngineOptions, IngestOptions};
//!
//! let engine = Engine::new(EngineOptions::default());
//! engine.ingest("notes.kb".as_ref(), &["notes/".into()], &IngestOptions::default(), &mut |_| {})?;
//! let answer = engine.ask("notes.kb".as_ref(), "When does the lease end?", &AskOptions::default(), &mut |_| {})?;
//! println!("{}", answer.answer);
//! # Ok::<(), anchorite::Error>(())
//! ```
//!
//! This crate joins the parts: models (`anchorite-models`, `anchorite-infer`), the knowledge base (`anchorite-store`),
//! reading (`anchorite-formats`), cutting (`anchorite-text`) and the loop (`anchorite-rag` on `anchorite-graph`). Models are opened when they
//! are first needed and stay open.
//!
//! Architecture invariant: nothing here or below links a network client.

mod admission;
mod ask;
mod bench;
mod engine;
mod error;
mod grounding;
mod ingest;
mod management;
mod models;
mod probing;
mod ranking;
mod search;
mod watch;
mod why_not;

pub use anchorite_core as core;
pub use anchorite_core::{Answer, BudgetLimits, ConflictRule, Limits, Passage, Scores, Status};
pub use anchorite_formats as formats;
pub use anchorite_graph as graph;
pub use anchorite_infer::{DeviceChoice, Precision, default_threads, set_threads, threads};
pub use anchorite_models as model_files;
pub use anchorite_models::{ModelRole, Profile};
pub use anchorite_rag::{
    Expanded, Expansion, MadeQuestion, Met, Piece, Probe, RagState, RelevanceScale, Settings, Signals, Strategy,
    Variant,
};
pub use anchorite_store as store;
pub use anchorite_store::Mode;

pub use admission::SecretPolicy;
pub use ask::{AskOptions, Progress, strategy_graph};
pub use bench::{
    BenchOptions, BenchPair, BenchReport, BenchRow, BuildRates, GeneratorReport, GeneratorWorkload, Replies,
    SearchBenchReport, SearchRow, SearchWorkload, bench_search,
};
pub use engine::{Engine, EngineOptions};
pub use error::Error;
pub use grounding::ClaimSupport;
pub use ingest::{Attention, IngestOptions, IngestProgress, IngestReport};
pub use management::{DeletionReport, ExportReport, delete, export, find_document};
pub use models::{ModelInUse, Models};
pub use search::{KnowledgeRetriever, RERANKED, SearchOptions, SearchResults, ViewOptions};
pub use watch::WatchEvent;
pub use why_not::{Stage, WhyNot};
