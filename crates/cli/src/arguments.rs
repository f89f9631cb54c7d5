//! The command line. The names are a contract.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anchorite::store::{self, Expiry, Viewer};
use anchorite::{ConflictRule, ViewOptions};
use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::commands::eval::arguments::Eval;
use crate::commands::kb::arguments::Kb;

/// Answers questions from your own documents, on your own machine, with no network, and checks its own answers.
#[derive(Debug, Parser)]
#[command(name = "anchorite", version, about, propagate_version = true, max_term_width = 110)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Folder with one folder per model
    #[arg(long, global = true, env = "ANCHORITE_MODELS", value_name = "DIR", help_heading = "Models")]
    pub(crate) models: Option<PathBuf>,
    /// Known set of models: tiny, small or base
    #[arg(long, global = true, env = "ANCHORITE_PROFILE", value_name = "NAME", help_heading = "Models")]
    pub(crate) profile: Option<String>,
    /// Another bi-encoder, by name or folder
    #[arg(long, global = true, env = "ANCHORITE_EMBEDDER", value_name = "NAME|DIR", help_heading = "Models")]
    pub(crate) embedder: Option<String>,
    /// Another cross-encoder, by name or folder
    #[arg(long, global = true, env = "ANCHORITE_RERANKER", value_name = "NAME|DIR", help_heading = "Models")]
    pub(crate) reranker: Option<String>,
    /// Another generator, by name, folder or GGUF file
    #[arg(long, global = true, env = "ANCHORITE_GENERATOR", value_name = "NAME|FILE", help_heading = "Models")]
    pub(crate) generator: Option<String>,
    /// Where models compute: cpu, cuda, cuda:N or metal
    #[arg(long, global = true, env = "ANCHORITE_DEVICE", value_name = "DEVICE", help_heading = "Models")]
    pub(crate) device: Option<String>,
    /// What bi-encoder and cross-encoder multiply with on the processor: int8 or f32 [default: int8]
    #[arg(long, global = true, env = "ANCHORITE_PRECISION", value_name = "PRECISION", help_heading = "Models")]
    pub(crate) precision: Option<String>,
    /// Threads to compute on [default: all processors]
    #[arg(long, global = true, env = "ANCHORITE_THREADS", value_name = "N", help_heading = "Models")]
    pub(crate) threads: Option<usize>,
    /// Settings file [default: anchorite.toml in the current folder, if there is one]
    #[arg(long, global = true, env = "ANCHORITE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Lock the process first: no sockets, and files only where the command needs them
    #[arg(long, global = true, env = "ANCHORITE_SEALED", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) sealed: bool,
    /// One JSON document on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// No progress on standard error
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Read documents into a knowledge base: files of most kinds, folders, archives, or - for standard input
    Ingest(Ingest),
    /// Find passages
    Search(Search),
    /// Answer a question, checked and cited
    Ask(Ask),
    /// Turn texts into vectors: lines of JSON with "text" in, lines of JSON out
    Embed(Embed),
    /// Score passages against a query: lines of JSON with "text" in, lines of JSON out, best first
    Rerank(Rerank),
    /// Let the generator write
    Generate(Generate),
    /// Talk with the generator, line by line
    Chat(Chat),
    /// Look into a knowledge base and change it
    Kb(Kb),
    /// The models: what is there, where, and whether it is whole
    Models(Models),
    /// Draw the graph of a strategy
    Graph(Graph),
    /// Measure the models on this machine
    Bench(Bench),
    /// Measure the engine on test collections
    Eval(Eval),
    /// Examine this installation
    Doctor(Doctor),
    /// Take files apart for another process of this program
    #[command(name = EXTRACT_CHILD, hide = true)]
    ExtractChild,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Lock the process, try what is forbidden, search inside the lock, and show the evidence
    #[arg(long)]
    pub(crate) prove_offline: bool,
    /// With --prove-offline: search this knowledge base instead of a small one made for it
    #[arg(long, requires = "prove_offline", value_name = "DIR")]
    pub(crate) kb: Option<PathBuf>,
    /// With --kb: what to search for
    #[arg(long, requires = "kb", value_name = "QUERY")]
    pub(crate) query: Option<String>,
}

/// What this program is called with to take files apart for itself.
pub(crate) const EXTRACT_CHILD: &str = "extract-child";

/// Folder of the knowledge base.
#[derive(Debug, Args)]
pub(crate) struct KnowledgeBase {
    /// Folder of the knowledge base
    #[arg(long, env = "ANCHORITE_KB", value_name = "DIR")]
    pub(crate) kb: PathBuf,
}

/// Who looks, and at which documents.
#[derive(Debug, Default, Args)]
pub(crate) struct View {
    /// See only what this person may see: what is public and what is theirs
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) viewer: Option<String>,
    /// … and what has this access label; may be given several times
    #[arg(long = "label", value_name = "LABEL")]
    pub(crate) labels: Vec<String>,
    /// See only documents that fulfil a condition: 'year >= 2020 and (lang = "en" or not tags = draft)'
    #[arg(long = "where", value_name = "CONDITION")]
    pub(crate) condition: Option<String>,
}

/// Whose documents are, who may see them, and how long they are kept.
#[derive(Debug, Default, Args)]
pub(crate) struct Custody {
    /// Whose the documents are; others don't see them unless --access says so
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// Who may see them: public, private, or a label that viewers hold
    #[arg(long, value_name = "LABEL")]
    pub(crate) access: Option<String>,
    /// When they go: a day (2027-01-31), a number of days from now (90d), or never
    #[arg(long, value_name = "WHEN")]
    pub(crate) expires: Option<String>,
    /// The day they are of [default: what the document says, or today]
    #[arg(long, value_name = "DAY")]
    pub(crate) dated: Option<String>,
}

/// Who makes a change.
#[derive(Debug, Default, Args)]
pub(crate) struct Actor {
    /// Who makes the change, for the history and the audit trail [default: the user's name]
    #[arg(long, value_name = "NAME", env = "ANCHORITE_ACTOR")]
    pub(crate) by: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Ingest {
    /// Files and folders; - for standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) place: KnowledgeBase,
    #[command(flatten)]
    pub(crate) custody: Custody,
    /// What to do with documents that hold keys, tokens, passwords or card numbers: allow, flag, redact or refuse
    #[arg(long, default_value = "flag", value_name = "POLICY")]
    pub(crate) secrets: String,
    #[command(flatten)]
    pub(crate) actor: Actor,
    /// Opens encrypted files
    #[arg(long, env = "ANCHORITE_PASSWORD", hide_env_values = true, value_name = "PASSWORD")]
    pub(crate) password: Option<String>,
    /// Go on after that: take in what is added, changed or moved, and forget what is deleted, until Ctrl-C
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum ModeArgument {
    /// Both, fused by score
    #[default]
    Hybrid,
    /// Vectors alone
    Dense,
    /// Words alone
    Bm25,
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// What to look for
    pub(crate) query: String,
    #[command(flatten)]
    pub(crate) place: KnowledgeBase,
    /// Passages to show
    #[arg(short, default_value_t = 10, value_name = "N", value_parser = positive)]
    pub(crate) k: usize,
    /// Which indexes to ask
    #[arg(long, value_enum, default_value_t)]
    pub(crate) mode: ModeArgument,
    /// Leave the order as fusion gives it
    #[arg(long)]
    pub(crate) no_rerank: bool,
    /// Don't look at documents that the best passages name by their titles
    #[arg(long)]
    pub(crate) no_links: bool,
    /// Ask more than was asked: rules, paraphrase, step-back, decompose, hyde
    #[arg(long, value_delimiter = ',', value_name = "WAY,…")]
    pub(crate) expand: Vec<String>,
    #[command(flatten)]
    pub(crate) view: View,
    /// Prefer recent documents: after so many days one has lost half of what its age can cost it
    #[arg(long, value_name = "DAYS")]
    pub(crate) half_life: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct Ask {
    /// The question
    #[arg(required_unless_present = "resume", default_value = "", hide_default_value = true)]
    pub(crate) question: String,
    #[command(flatten)]
    pub(crate) place: KnowledgeBase,
    /// Which graph answers: multi-agent, self-rag, simple, multi-hop, reflect or react
    #[arg(long, default_value = "multi-agent", value_name = "NAME")]
    pub(crate) strategy: String,
    /// Keep checkpoints under this name
    #[arg(long, value_name = "ID")]
    pub(crate) thread: Option<String>,
    /// Go on with the unfinished question of the thread
    #[arg(long, requires = "thread")]
    pub(crate) resume: bool,
    /// Most rounds of retrieval
    #[arg(long, default_value_t = 4, value_name = "N")]
    pub(crate) max_rounds: u64,
    /// Most seconds
    #[arg(long, default_value_t = 600, value_name = "S")]
    pub(crate) timeout: u64,
    /// Leave parts of the loop out: rerank, links, grades, notes, hypothesis, held, support, usefulness, distrust
    #[arg(long, value_delimiter = ',', value_name = "PART,…")]
    pub(crate) without: Vec<String>,
    /// Show the path of nodes taken and the time each took
    #[arg(long)]
    pub(crate) trace: bool,
    /// Which of two documents that contradict each other is followed: both (neither before the other), newest, owner (what is
    /// the asker's) [default: both]
    #[arg(long, value_name = "RULE")]
    pub(crate) conflicts: Option<ConflictRule>,
    /// Answer in sentences of the documents, without the generator
    #[arg(long)]
    pub(crate) no_generator: bool,
    #[command(flatten)]
    pub(crate) view: View,
    /// Prefer recent documents: after so many days one has lost half of what its age can cost it
    #[arg(long, value_name = "DAYS")]
    pub(crate) half_life: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct Embed {
    /// Lines of JSON with "text", or plain lines; - for standard input
    #[arg(default_value = "-", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Embed as queries rather than as documents
    #[arg(long)]
    pub(crate) query: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Rerank {
    /// The query
    #[arg(long)]
    pub(crate) query: String,
    /// Lines of JSON with "text", or plain lines; - for standard input
    #[arg(default_value = "-", value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) what: BenchWhat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchWhat {
    /// The bi-encoder: texts of synthetic lengths, or lines of JSON with "text"
    Embed(BenchWorkload),
    /// The cross-encoder: pairs of synthetic lengths, or lines of JSON with "query" and "passage"
    Rerank(BenchWorkload),
    /// The generator: a text that is read, and prompts that are replied to
    Generate(BenchGenerate),
    /// The knowledge base at scale: invented vectors and words, taken in, indexed and searched
    Search(BenchSearch),
}

#[derive(Debug, Args)]
pub(crate) struct BenchSearch {
    /// A folder for a knowledge base of invented vectors, which is left there (one that an earlier run left is only searched);
    /// with --asked, any that exists
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Search the knowledge base that is there for these queries, lines of JSON with "text", plain or .gz, instead of
    /// inventing one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["vectors", "dim", "save"])]
    pub(crate) asked: Option<PathBuf>,
    /// Vectors
    #[arg(long, default_value_t = 100_000, value_name = "N", value_parser = positive)]
    pub(crate) vectors: usize,
    /// Components of a vector
    #[arg(long, default_value_t = 384, value_name = "N", value_parser = positive)]
    pub(crate) dim: usize,
    /// Queries of each kind
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = positive)]
    pub(crate) queries: usize,
    /// Save vectors and queries in this folder, as f32, for measuring another program with them
    #[arg(long, value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct BenchGenerate {
    /// A plain text to read; common words without it
    #[arg(long, value_name = "FILE")]
    pub(crate) text: Option<PathBuf>,
    /// Tokens of it to read at once
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = positive)]
    pub(crate) read: usize,
    /// Tokens to read one by one behind them, as in writing
    #[arg(long, default_value_t = 48, value_name = "N", value_parser = positive)]
    pub(crate) write: usize,
    /// Prompts to reply to, with drafts and without: lines of JSON with "prompt", plain or .gz
    #[arg(long, value_name = "FILE")]
    pub(crate) prompts: Option<PathBuf>,
    /// Most tokens of a reply
    #[arg(long, default_value_t = 96, value_name = "N", value_parser = positive)]
    pub(crate) reply: usize,
    /// Compute the perplexity of so many tokens of the text too
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) perplexity: usize,
    /// Runs, of which the median is reported
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = positive)]
    pub(crate) repeats: usize,
}

#[derive(Debug, Args)]
pub(crate) struct BenchWorkload {
    /// Real text: lines of JSON, plain or .gz
    #[arg(long, value_name = "FILE")]
    pub(crate) data: Option<PathBuf>,
    /// Lines of it to take
    #[arg(long, default_value_t = 2000, value_name = "N", value_parser = positive)]
    pub(crate) limit: usize,
    /// Tokens of the synthetic texts
    #[arg(long, value_delimiter = ',', default_value = "16,32,128,256", value_name = "N,…", value_parser = positive)]
    pub(crate) lengths: Vec<usize>,
    /// Runs, of which the median is reported
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = positive)]
    pub(crate) repeats: usize,
}

#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// What the user says
    pub(crate) prompt: String,
    /// Instructions before it
    #[arg(long, default_value = "You are a helpful assistant.")]
    pub(crate) system: String,
    /// Most tokens to write
    #[arg(long, default_value_t = 256, value_name = "N")]
    pub(crate) max_tokens: usize,
    /// 0 takes the most probable token each time
    #[arg(long, default_value_t = 0.0, value_name = "T")]
    pub(crate) temperature: f32,
    /// Smallest set of tokens that reaches this probability
    #[arg(long, default_value_t = 1.0, value_name = "P")]
    pub(crate) top_p: f32,
    /// Most probable tokens kept; 0 keeps all
    #[arg(long, default_value_t = 0, value_name = "K")]
    pub(crate) top_k: usize,
    /// Least probability kept, as a share of the most probable token's
    #[arg(long, default_value_t = 0.0, value_name = "P")]
    pub(crate) min_p: f32,
    /// Divides the logits of tokens seen before; 1 changes nothing
    #[arg(long, default_value_t = 1.0, value_name = "X")]
    pub(crate) repetition_penalty: f32,
    /// Seed of the draws
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// End where this text comes; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub(crate) stop: Vec<String>,
    /// Write JSON that fits the JSON Schema in this file
    #[arg(long, value_name = "FILE", group = "constraint")]
    pub(crate) schema: Option<PathBuf>,
    /// Write what this regular expression matches
    #[arg(long, value_name = "PATTERN", group = "constraint")]
    pub(crate) regex: Option<String>,
    /// Write what the grammar in this file allows, in llguidance's variant of Lark
    #[arg(long, value_name = "FILE", group = "constraint")]
    pub(crate) grammar: Option<PathBuf>,
    /// Don't guess at what comes from what was read
    #[arg(long)]
    pub(crate) no_draft: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Chat {
    /// Instructions before the conversation
    #[arg(long, default_value = "You are a helpful assistant.")]
    pub(crate) system: String,
    /// Most tokens of a reply
    #[arg(long, default_value_t = 256, value_name = "N", value_parser = positive)]
    pub(crate) max_tokens: usize,
    /// Most tokens of conversation and reply; what the model reads, if that is less
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) context: Option<usize>,
    /// 0 takes the most probable token each time
    #[arg(long, default_value_t = 0.0, value_name = "T")]
    pub(crate) temperature: f32,
    /// Seed of the draws
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct Models {
    #[command(subcommand)]
    pub(crate) action: ModelsAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsAction {
    /// Models found, and the places looked at
    List,
    /// Read every byte of the models in use and compare hashes
    Verify,
    /// Folders of the models that would be used
    Path,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Mermaid
    #[default]
    Mermaid,
    /// Graphviz DOT
    Dot,
}

#[derive(Debug, Args)]
pub(crate) struct Graph {
    /// multi-agent, self-rag, simple, multi-hop, reflect or react
    pub(crate) strategy: String,
    /// Language of the drawing
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: GraphFormat,
}

impl View {
    /// What to look at, and `half_life` in days.
    pub(crate) fn options(&self, half_life: Option<f64>) -> Result<ViewOptions> {
        if half_life.is_some_and(|days| days.is_nan() || days <= 0.0) {
            bail!("--half-life: give a number of days above 0");
        }
        let viewer = if self.viewer.is_none() && self.labels.is_empty() {
            Viewer::Holder
        } else {
            Viewer::Person { name: self.viewer.clone().unwrap_or_default(), labels: self.labels.clone() }
        };
        let filter = self.condition.as_deref().map(str::parse).transpose().context("--where")?;
        Ok(ViewOptions { viewer, filter, half_life })
    }
}

impl Custody {
    pub(crate) fn resolve(&self) -> Result<store::Custody> {
        let expiry = self.expires.as_deref().map(expiry).transpose().context("--expires")?;
        let dated = self.dated.as_deref().map(day).transpose().context("--dated")?;
        Ok(store::Custody { owner: self.owner.clone(), access: self.access.clone(), dated, expiry })
    }
}

impl Actor {
    /// The name given, or that of the user.
    pub(crate) fn name(&self) -> String {
        let user = || ["USER", "USERNAME", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
        self.by.clone().or_else(user).unwrap_or_default()
    }
}

fn day(text: &str) -> Result<i64> {
    anchorite::core::days::milliseconds(text).with_context(|| format!("{text:?} is no day (2027-01-31)"))
}

/// A day, a number of days from now, or never.
fn expiry(text: &str) -> Result<Expiry> {
    const DAY: i64 = 86_400_000;
    if text == "never" {
        return Ok(Expiry::Never);
    }
    if let Some(days) = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok()) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        return Ok(Expiry::At(i64::try_from(now).unwrap_or(i64::MAX).saturating_add(i64::from(days) * DAY)));
    }
    match anchorite::core::days::milliseconds(text) {
        Some(moment) => Ok(Expiry::At(moment)),
        None => bail!("{text:?} is no day (2027-01-31), no number of days (90d), and not \"never\""),
    }
}

pub(crate) fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("give a number from 1 on".to_owned()),
    }
}
