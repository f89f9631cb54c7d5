//! What models and searches offer to the rest. Implementations: `infer` (models), the facade (retrieval), `testkit` (fakes).

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::{Budget, Embedding, InferenceError, Passage, RetrieveError};

/// Which side of a search a text stands on. Some bi-encoders put a different prefix before each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A question or search phrase.
    Query,
    /// A passage to be found.
    Document,
}

/// Identity of a model: its name for people, and a hash over every file that changes its output.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ModelFingerprint {
    /// Folder or file name of the model.
    pub name: String,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
}

/// Counts tokens as a model would, for cutting text to size.
pub trait TokenCounter: Send + Sync {
    /// Number of tokens of `text`, without special tokens.
    fn count(&self, text: &str) -> usize;
}

/// Turns texts into vectors. Must be a function of the text alone: the same text gives the same vector, alone or in any
/// batch, in any order.
pub trait Embedder: TokenCounter {
    /// Which model this is.
    fn fingerprint(&self) -> &ModelFingerprint;
    /// Components per vector.
    fn dim(&self) -> usize;
    /// Most tokens read of a text, special tokens included; the rest is cut off.
    fn max_tokens(&self) -> usize;
    /// One vector per text, in the order given.
    ///
    /// # Errors
    /// If the backend fails or gives an unusable vector.
    fn embed(&self, role: Role, texts: &[&str]) -> Result<Vec<Embedding>, InferenceError>;
}

/// Scores how well passages answer a query.
pub trait Reranker: Send + Sync {
    /// Which model this is.
    fn fingerprint(&self) -> &ModelFingerprint;
    /// One logit per passage, in the order given; larger is better.
    ///
    /// # Errors
    /// If the backend fails.
    fn score(&self, query: &str, passages: &[&str]) -> Result<Vec<f32>, InferenceError>;
}

/// Who says a message of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    /// Instructions.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// One message of a conversation. Its text is data: control tokens written in it are plain text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who says it.
    #[serde(rename = "role")]
    pub speaker: Speaker,
    /// What is said.
    pub content: String,
}

/// A conversation to continue, and the words with which the model's reply must begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// Beginning of the reply, written for the model ("Answer:"); empty for none.
    pub reply_prefix: String,
}

impl Prompt {
    /// An empty conversation.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message.
    #[must_use]
    pub fn with(mut self, speaker: Speaker, content: impl Into<String>) -> Self {
        self.messages.push(Message { speaker, content: content.into() });
        self
    }

    /// Adds instructions.
    #[must_use]
    pub fn system(self, content: impl Into<String>) -> Self {
        self.with(Speaker::System, content)
    }

    /// Adds a message of the person.
    #[must_use]
    pub fn user(self, content: impl Into<String>) -> Self {
        self.with(Speaker::User, content)
    }

    /// Adds a message of the model.
    #[must_use]
    pub fn assistant(self, content: impl Into<String>) -> Self {
        self.with(Speaker::Assistant, content)
    }

    /// Sets the beginning of the reply.
    #[must_use]
    pub fn reply(mut self, prefix: impl Into<String>) -> Self {
        self.reply_prefix = prefix.into();
        self
    }
}

/// How to write.
#[derive(Clone, Debug, PartialEq)]
pub struct GenerateOptions {
    /// Most tokens to write.
    pub max_tokens: usize,
    /// 0 takes the most probable token each time (greedy); above, tokens are drawn.
    pub temperature: f32,
    /// Keeps the smallest set of tokens whose probability reaches this (nucleus sampling, Holtzman et al. 2020); 1 keeps all.
    pub top_p: f32,
    /// Keeps the most probable `top_k` tokens; 0 keeps all.
    pub top_k: usize,
    /// Divides the logits of tokens seen before (CTRL, Keskar et al. 2019); 1 changes nothing.
    pub repetition_penalty: f32,
    /// Keeps tokens whose probability is at least this share of the most probable one's (min-p, Nguyen et al. 2024); 0 keeps
    /// all.
    pub min_p: f32,
    /// Seed of the draws.
    pub seed: u64,
    /// Guesses at what follows, looked up in the prompt, are checked several at a time: what is written is the same, sooner.
    pub draft: bool,
    /// Texts at which writing ends; they are not part of the result.
    pub stop: Vec<String>,
    /// What the text must be. Then it is whole within `max_tokens`, or there is an error; only a stop text or the reader can
    /// end it before.
    pub constraint: Option<Constraint>,
}

/// What a written text must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Constraint {
    /// JSON that fits this JSON Schema, written without spaces between its parts.
    JsonSchema(String),
    /// A text that this regular expression matches as a whole.
    Regex(String),
    /// A text of this context-free grammar, in llguidance's variant of Lark.
    Grammar(String),
}

impl Default for GenerateOptions {
    fn default() -> Self {
        Self {
            max_tokens: 256,
            temperature: 0.0,
            top_p: 1.0,
            top_k: 0,
            repetition_penalty: 1.0,
            min_p: 0.0,
            seed: 0,
            draft: true,
            stop: Vec::new(),
            constraint: None,
        }
    }
}

impl GenerateOptions {
    /// Greedy, at most `max_tokens`.
    #[must_use]
    pub fn greedy(max_tokens: usize) -> Self {
        Self { max_tokens, ..Self::default() }
    }

    /// Lets only texts be written that fit.
    #[must_use]
    pub fn constrained(mut self, constraint: Constraint) -> Self {
        self.constraint = Some(constraint);
        self
    }

    /// Adds a text at which writing ends.
    #[must_use]
    pub fn stop_at(mut self, text: &str) -> Self {
        self.stop.push(text.to_owned());
        self
    }
}

/// Why writing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model ended its turn.
    EndOfTurn,
    /// A stop text came.
    Stop,
    /// `max_tokens` was reached, or the context is full.
    Length,
    /// The reader asked to stop.
    Cancelled,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// The text, without the reply prefix and without stop texts.
    pub text: String,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Of these, tokens whose state was kept from an earlier prompt.
    pub cached_tokens: usize,
    /// Identifiers of the tokens written.
    pub tokens: Vec<u32>,
    /// Why it ended.
    pub finish: FinishReason,
    /// What guesses at the tokens came to.
    pub draft: DraftCounts,
}

/// Tokens that were guessed and checked several at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftCounts {
    /// Tokens guessed.
    pub guessed: usize,
    /// Guesses that were right: passes that were saved.
    pub right: usize,
}

impl DraftCounts {
    /// Counts a guess of so many tokens, of which the first `right` were right.
    pub fn note(&mut self, guessed: usize, right: usize) {
        self.guessed += guessed;
        self.right += right;
    }
}

/// Writes text, and judges among given texts.
pub trait Generator: TokenCounter {
    /// Which model this is.
    fn fingerprint(&self) -> &ModelFingerprint;
    /// Most tokens of prompt and reply together.
    fn context_length(&self) -> usize;
    /// Tokens of `prompt` once the model's chat template is applied.
    ///
    /// # Errors
    /// If the template fails.
    fn prompt_tokens(&self, prompt: &Prompt) -> Result<usize, InferenceError>;
    /// Continues `prompt`. Each piece of text goes to `sink` as soon as its characters are whole; breaking stops the writing.
    ///
    /// # Errors
    /// If the prompt is empty or too long, the logits are not numbers, or the budget ran out.
    fn generate(
        &self,
        prompt: &Prompt,
        options: &GenerateOptions,
        budget: &Budget,
        sink: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<Generation, InferenceError>;
    /// Probability of each of `options` as the reply to `prompt`, from the logits: no text is written. They sum to 1.
    /// Longer options are compared by mean log-probability per token.
    ///
    /// # Errors
    /// As [`Generator::generate`]; also if `options` is empty.
    fn choose(&self, prompt: &Prompt, options: &[&str], budget: &Budget) -> Result<Vec<f32>, InferenceError>;

    /// What the last token of `prompt` has come to after each of `layers`, counted from 0: the hidden state that the next
    /// layer reads, as many numbers as the model is wide. No text is written. `None` from a generator that has no such
    /// states, or fewer layers.
    ///
    /// # Errors
    /// As [`Generator::generate`].
    fn states(
        &self,
        prompt: &Prompt,
        layers: &[usize],
        budget: &Budget,
    ) -> Result<Option<Vec<Vec<f32>>>, InferenceError> {
        let _ = (prompt, layers, budget);
        Ok(None)
    }
}

/// Finds passages. The facade implements it over a knowledge base, an embedder and a reranker.
pub trait Retriever: Send + Sync {
    /// The best `k` passages for `query`, best first.
    ///
    /// # Errors
    /// If the query is empty or a part fails.
    fn retrieve(&self, query: &str, k: usize) -> Result<Vec<Passage>, RetrieveError>;

    /// The same where it is known how passages that answer might read: what lies near the mean of `hypothetical` and the
    /// query is found by meaning (HyDE). They are never results themselves. A retriever without vectors ignores them.
    ///
    /// # Errors
    /// As [`Retriever::retrieve`].
    fn retrieve_like(&self, query: &str, hypothetical: &[String], k: usize) -> Result<Vec<Passage>, RetrieveError> {
        let _ = hypothetical;
        self.retrieve(query, k)
    }
}
