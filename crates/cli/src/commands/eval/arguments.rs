//! `anchorite eval`: what can be measured, and with what.

use std::path::PathBuf;
use std::str::FromStr;

use anchorite::Expansion;
use clap::{Args, Subcommand, ValueEnum};

use crate::arguments::{KnowledgeBase, positive};

/// A value that a field of a record must have.
#[derive(Clone, Debug)]
pub(crate) struct Only {
    pub(crate) field: String,
    pub(crate) value: String,
}

impl FromStr for Only {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (field, value) = text.split_once('=').ok_or("write FIELD=VALUE")?;
        Ok(Self { field: field.to_owned(), value: value.to_owned() })
    }
}

#[derive(Debug, Args)]
pub(crate) struct Eval {
    #[command(subcommand)]
    pub(crate) action: EvalAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EvalAction {
    /// How well documents are found: nDCG, recall and MRR of each way to search
    Retrieval(Retrieval),
    /// How well claims are graded: do probabilities order right, and do they mean what they say
    Grounding(Grounding),
    /// How well questions are answered, and how often an answer is rightly declined
    Qa(Questions),
    /// The same for the loop beside single-shot RAG, as one table
    Loop(Questions),
    /// How well the cross-encoder's logit tells whether a passage helps, and what it is worth
    Relevance(Relevance),
    /// Whether the generator's states tell if passages hold an answer, and a probe that reads them
    Held(Held),
    /// A test set of your own documents: questions made from them, some without an answer
    Make(Make),
    /// How often instructions and lies written into documents get into an answer
    Attacks(Attacks),
}

/// The test collections.
#[derive(Debug, Args)]
pub(crate) struct Data {
    /// One set (corpus.jsonl[.gz], queries.jsonl, qrels.tsv; or pairs.jsonl), or a folder of sets
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Only these sets of the folder, in this order
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) sets: Vec<String>,
    /// Keeps knowledge bases and results for the next run [default: a folder of your cache]
    #[arg(long, env = "ANCHORITE_EVAL_CACHE", value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
}

/// A way to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum System {
    /// Words alone
    Bm25,
    /// Vectors alone
    Dense,
    /// Both, fused
    Hybrid,
    /// Both, fused, and the best read again by the cross-encoder
    Rerank,
    /// The same, and what the best passages name by title: what `search` does
    Links,
    /// The same, and more asked by code
    Rules,
    /// The same, and asked in other words too
    Paraphrase,
    /// The same, and the broader question asked too
    StepBack,
    /// The same, and each part of the question asked too
    Decompose,
    /// The same, and a passage that might answer searched for too
    Hyde,
}

impl System {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bm25 => "bm25",
            Self::Dense => "dense",
            Self::Hybrid => "hybrid",
            Self::Rerank => "rerank",
            Self::Links => "links",
            Self::Rules => "rules",
            Self::Paraphrase => "paraphrase",
            Self::StepBack => "step-back",
            Self::Decompose => "decompose",
            Self::Hyde => "hyde",
        }
    }

    /// What is searched for beside the query.
    pub(crate) fn expansion(self) -> Option<Expansion> {
        Some(match self {
            Self::Bm25 | Self::Dense | Self::Hybrid | Self::Rerank | Self::Links => return None,
            Self::Rules => Expansion::Rules,
            Self::Paraphrase => Expansion::Paraphrase,
            Self::StepBack => Expansion::StepBack,
            Self::Decompose => Expansion::Decompose,
            Self::Hyde => Expansion::Hyde,
        })
    }
}

#[derive(Debug, Args)]
pub(crate) struct Retrieval {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Ways to search
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME,…", default_values = ["bm25", "dense", "hybrid", "rerank", "links"])]
    pub(crate) systems: Vec<System>,
    /// Only the first N queries of each set, in the order of their identifiers
    #[arg(long, value_name = "N")]
    pub(crate) limit_queries: Option<usize>,
    /// Writes a TREC run file for each set and way into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) runs: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Grounding {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Only N pairs of each set, a sample that stays the same
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Without the generator's opinion
    #[arg(long)]
    pub(crate) no_generator: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Relevance {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Only N queries of each set, a sample that stays the same
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// How much large weights cost
    #[arg(long, default_value_t = 0.3, value_name = "X")]
    pub(crate) ridge: f64,
}

#[derive(Debug, Args)]
pub(crate) struct Held {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Leave out the first N questions of each set's sample, to measure on later or because a probe knows them; several
    /// numbers are for one set each
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    pub(crate) skip: Vec<usize>,
    /// Only N questions of each set, a sample that stays the same; several numbers are for one set each
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    pub(crate) limit: Vec<usize>,
    /// Only queries whose record has this value, of the sets that have the field
    #[arg(long = "where", value_name = "FIELD=VALUE")]
    pub(crate) only: Option<Only>,
    /// Layers whose states are read, counted from 0 [default: four behind the middle]
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    pub(crate) layers: Vec<usize>,
    /// How much large weights cost
    #[arg(long, default_value_t = 0.3, value_name = "X")]
    pub(crate) ridge: f64,
    /// Start from this probe, in whose layer alone is read then: what was learned from other questions goes on counting
    #[arg(long, value_name = "FILE", conflicts_with = "layers")]
    pub(crate) from: Option<PathBuf>,
    /// Writes a probe, fitted to all questions in the best layer, to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) fit: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Make {
    #[command(flatten)]
    pub(crate) place: KnowledgeBase,
    /// A new folder for the set
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Questions to make
    #[arg(long, default_value_t = 60, value_name = "N", value_parser = positive)]
    pub(crate) questions: usize,
}

#[derive(Debug, Args)]
pub(crate) struct Attacks {
    /// The attacks: lines of JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) data: PathBuf,
    /// Graphs that answer
    #[arg(long, value_delimiter = ',', default_value = "multi-agent", value_name = "NAME,…")]
    pub(crate) strategy: Vec<String>,
    /// Leave these parts of the loop out, as in `ask`; without `distrust`, passages are believed as they stand
    #[arg(long, value_delimiter = ',', value_name = "PART,…")]
    pub(crate) without: Vec<String>,
    /// Only N attacks, a sample that stays the same
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Most rounds of retrieval
    #[arg(long, default_value_t = 4, value_name = "N")]
    pub(crate) max_rounds: u64,
    /// Most seconds a question
    #[arg(long, default_value_t = 600, value_name = "S")]
    pub(crate) timeout: u64,
    /// Keeps knowledge bases and results for the next run [default: a folder of your cache]
    #[arg(long, env = "ANCHORITE_EVAL_CACHE", value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Questions {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Graphs that answer [default: multi-agent for qa; single-shot and multi-agent for loop]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) strategy: Vec<String>,
    /// Also each graph without each of these parts: rerank, links, grades, notes, hypothesis, held, support, usefulness, distrust
    #[arg(long, value_delimiter = ',', value_name = "PART,…")]
    pub(crate) without: Vec<String>,
    /// Only N questions of each set, a sample that stays the same
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Only queries whose record has this value
    #[arg(long = "where", value_name = "FIELD=VALUE")]
    pub(crate) only: Option<Only>,
    /// Most rounds of retrieval
    #[arg(long, default_value_t = 4, value_name = "N")]
    pub(crate) max_rounds: u64,
    /// Most seconds a question
    #[arg(long, default_value_t = 600, value_name = "S")]
    pub(crate) timeout: u64,
    /// Answer in sentences of the documents, without the generator
    #[arg(long)]
    pub(crate) no_generator: bool,
    /// Keeps the answers in this folder, a file of JSON lines for each set and graph; a run that was stopped goes on
    /// from there [default: in the cache]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
}
