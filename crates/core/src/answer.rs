//! What comes out of a question. The field names are the contract of `ask --json`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{BudgetExceeded, Conflict, Spent};

/// How a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Answered; every claim is supported and the question is answered.
    Answered,
    /// The best answer found, not wholly supported or not complete.
    Partial,
    /// Nothing in the documents answers the question.
    Declined,
}

/// Is a claim supported by the passages it cites?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Wholly.
    Supported,
    /// In part.
    PartiallySupported,
    /// Not at all, or contradicted.
    NotSupported,
}

/// The exact words of a document that a claim rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Citation {
    /// The document's source.
    pub source: String,
    /// Title of the document; may be empty.
    pub title: String,
    /// Identifier of the chunk.
    pub chunk: i64,
    /// First byte of the quote in the document's text.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
    /// The words themselves.
    pub quote: String,
}

/// One statement of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The statement.
    pub text: String,
    /// Whether the passages support it.
    pub verdict: Verdict,
    /// Probability that they do, 0 … 1.
    pub confidence: f32,
    /// Where.
    pub citations: Vec<Citation>,
}

/// One node that ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// Name of the node.
    pub node: String,
    /// The decision taken after it, if there was one to take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// What it did, in a line for people.
    pub note: String,
    /// Seconds it took.
    pub seconds: f64,
}

/// What the judges of an answer said, before it became probabilities. `None`: the judge was not there or not asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Probability that the passages hold the answer, read from the generator's state.
    #[serde(default)]
    pub held: Option<f32>,
    /// The generator's probability that the passages say all that the answer says.
    pub supported: Option<f32>,
    /// The generator's probability that the answer gives what is asked for.
    pub useful: Option<f32>,
    /// The cross-encoder's logit of the answer as a reply to the question.
    pub answer_logit: Option<f32>,
    /// The cross-encoder's logit of the sentence cited for it that speaks to the question most.
    pub evidence_logit: Option<f32>,
    /// Least share of a claim's words and quantities that the cited sentences have, 0 … 1.
    pub coverage: f32,
}

/// What the loop knew at the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AnswerState {
    /// What the documents suggest, and what is still unknown.
    pub hypothesis: String,
    /// New queries, one list a round.
    pub new_queries: Vec<Vec<String>>,
    /// Sources of the useful documents.
    pub useful_documents: Vec<String>,
    /// What code computed from the passages.
    pub notes: Vec<String>,
    /// What the judges said of the answer that was given or came nearest.
    #[serde(default)]
    pub judged: Judged,
}

/// The result of `ask`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The question, unchanged.
    pub question: String,
    /// How it ended.
    pub status: Status,
    /// The answer, or what could not be found.
    pub answer: String,
    /// Its statements.
    pub claims: Vec<Claim>,
    /// All citations, each once.
    pub citations: Vec<Citation>,
    /// A document that says otherwise, and what is followed; `None` if none was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<Conflict>,
    /// Probability that the answer is right, 0 … 1; 0 if declined.
    pub confidence: f32,
    /// What is missing; empty if answered.
    pub missing: Vec<String>,
    /// Rounds of retrieval.
    pub rounds: u64,
    /// The cap that ended the run, if one did.
    pub stopped_by: Option<BudgetExceeded>,
    /// The nodes that ran, in order.
    pub steps: Vec<StepRecord>,
    /// What the loop knew at the end.
    pub state: AnswerState,
    /// What it cost.
    pub spent: Spent,
    /// Seconds in total.
    pub seconds: f64,
}

impl Answer {
    /// Sets the total time.
    #[must_use]
    pub fn took(mut self, time: Duration) -> Self {
        self.seconds = time.as_secs_f64();
        self
    }
}
