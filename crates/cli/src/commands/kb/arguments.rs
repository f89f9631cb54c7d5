//! The command line of `anchorite kb`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::arguments::{Actor, Custody, KnowledgeBase, View};

#[derive(Debug, Args)]
pub(crate) struct Kb {
    #[command(subcommand)]
    pub(crate) action: KbAction,
}

/// Which part of a list.
#[derive(Debug, Args)]
pub(crate) struct Page {
    /// Skip this many
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) offset: u64,
    /// Show at most this many
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub(crate) limit: u64,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KbAction {
    /// Counts, sizes, generation, bi-encoder
    Stats {
        #[command(flatten)]
        place: KnowledgeBase,
        #[command(flatten)]
        view: View,
    },
    /// The documents
    List {
        #[command(flatten)]
        place: KnowledgeBase,
        #[command(flatten)]
        view: View,
        #[command(flatten)]
        page: Page,
    },
    /// The sources with their figures: size, chunks, owner, access, date, term, versions
    Sources {
        #[command(flatten)]
        place: KnowledgeBase,
        #[command(flatten)]
        view: View,
        #[command(flatten)]
        page: Page,
    },
    /// One document with its chunks, by source or number
    Show {
        /// Source or number of the document
        document: String,
        #[command(flatten)]
        place: KnowledgeBase,
        #[command(flatten)]
        view: View,
    },
    /// Delete documents for good, by source or number: no search, rollback or file has them afterwards
    Delete {
        /// Sources or numbers
        #[arg(required = true, value_name = "DOCUMENT")]
        documents: Vec<String>,
        #[command(flatten)]
        place: KnowledgeBase,
        /// Keep them in the history, so that a rollback brings them back
        #[arg(long)]
        restorable: bool,
        #[command(flatten)]
        actor: Actor,
    },
    /// Put another text in place of what a source holds
    Correct {
        /// The source
        source: String,
        /// The right text; - for standard input
        #[arg(value_name = "FILE")]
        text: PathBuf,
        #[command(flatten)]
        place: KnowledgeBase,
        #[command(flatten)]
        actor: Actor,
    },
    /// Change owner, access, term or metadata of sources
    Set {
        /// Sources
        #[arg(required = true, value_name = "SOURCE")]
        sources: Vec<String>,
        #[command(flatten)]
        place: KnowledgeBase,
        #[command(flatten)]
        custody: Custody,
        /// KEY=VALUE in the metadata, VALUE as JSON or as plain text; KEY= removes it
        #[arg(long = "meta", value_name = "KEY=VALUE")]
        metadata: Vec<String>,
        #[command(flatten)]
        actor: Actor,
    },
    /// Erase what has come to the end of its term
    Expire {
        #[command(flatten)]
        place: KnowledgeBase,
        #[command(flatten)]
        actor: Actor,
    },
    /// What was known after each node of the questions asked with --thread
    Thread {
        /// Name of the thread
        thread: String,
        #[command(flatten)]
        place: KnowledgeBase,
    },
    /// Compute every hash again and look at everything; exit code 1 if something is wrong
    Verify {
        #[command(flatten)]
        place: KnowledgeBase,
        /// Build search indexes that are damaged again
        #[arg(long)]
        repair: bool,
    },
    /// The generations, newest first
    History {
        #[command(flatten)]
        place: KnowledgeBase,
        /// Show at most this many
        #[arg(long, default_value_t = 20, value_name = "N")]
        limit: u64,
    },
    /// What is different between two generations
    Diff {
        /// The first
        from: i64,
        /// The second [default: the newest]
        to: Option<i64>,
        #[command(flatten)]
        place: KnowledgeBase,
        #[command(flatten)]
        view: View,
    },
    /// Make the sources those of an earlier generation again, as a new generation
    Rollback {
        /// The generation to go back to
        generation: i64,
        #[command(flatten)]
        place: KnowledgeBase,
        /// Go on without what was deleted for good since
        #[arg(long)]
        without_erased: bool,
        #[command(flatten)]
        actor: Actor,
    },
    /// Let go of the history, give space back, and take what was removed out of the search indexes
    Compact {
        #[command(flatten)]
        place: KnowledgeBase,
        /// Keep the history from this generation on
        #[arg(long, value_name = "GENERATION")]
        keep_from: Option<i64>,
        #[command(flatten)]
        actor: Actor,
    },
    /// What happened to which source, when, and by whom, newest first
    Audit {
        /// Only this source
        source: Option<String>,
        #[command(flatten)]
        place: KnowledgeBase,
        #[command(flatten)]
        view: View,
        /// Show at most this many
        #[arg(long, default_value_t = 50, value_name = "N")]
        limit: u64,
    },
    /// Write everything that can be seen into plain files in a new folder
    Export {
        /// The folder
        folder: PathBuf,
        #[command(flatten)]
        place: KnowledgeBase,
        #[command(flatten)]
        view: View,
    },
    /// Why a search does not find a document: the stage that loses it, and the least change that would keep it
    WhyNot {
        /// Source or number of the document
        document: String,
        /// The query or question
        query: String,
        #[command(flatten)]
        place: KnowledgeBase,
        #[command(flatten)]
        view: View,
        /// Passages that are wanted
        #[arg(short, default_value_t = 10, value_name = "N", value_parser = crate::arguments::positive)]
        k: usize,
    },
}
