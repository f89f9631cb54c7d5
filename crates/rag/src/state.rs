//! What the loop knows.

use anchorite_core::{Claim, Judged, Passage};
use anchorite_graph::{Append, AppendBatch, Fixed, Overwrite, state};
use serde::{Deserialize, Serialize};

use crate::quantities::Note;

/// A passage that was found useful.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Useful {
    /// The passage.
    pub passage: Passage,
    /// Probability of relevance, 0 … 1.
    pub probability: f32,
    /// The query it is most relevant to: the question or one of the new queries.
    pub query: String,
}

/// What a step of a question came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The step.
    pub question: String,
    /// What the passages say to it; empty if nothing.
    pub answer: String,
}

/// What an agent does next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Searches the documents.
    Search(String),
    /// Looks for words in the passages at hand.
    Lookup(String),
    /// Answers.
    Finish(String),
}

impl Default for Action {
    fn default() -> Self {
        Self::Finish(String::new())
    }
}

impl Action {
    /// Reads the last `Action: name[argument]` of a text; what is none finishes with nothing, which is no answer.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let action = text.rsplit_once("Action:").map_or("", |(_, action)| action.trim());
        let Some((name, rest)) = action.split_once('[') else { return Self::default() };
        let argument = rest.trim_end().trim_end_matches(']').trim().to_owned();
        match name.trim() {
            "search" => Self::Search(argument),
            "lookup" => Self::Lookup(argument),
            _ => Self::Finish(argument),
        }
    }
}

/// An answer that was written, with what the graders say of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    /// The answer.
    pub text: String,
    /// What code computed from the passages it was written from.
    pub notes: Vec<Note>,
    /// Its statements with verdicts and citations; empty before it was graded.
    pub claims: Vec<Claim>,
    /// What the judges said of it.
    pub judged: Judged,
    /// Probability that every claim is supported.
    pub support: f32,
    /// Probability that it answers the question.
    pub usefulness: f32,
    /// It says that the answer is not known.
    pub refusal: bool,
    /// Parts of the question that it leaves open, if there are several parts.
    #[serde(default)]
    pub unanswered: Vec<String>,
    /// What the graders found wrong, in lines for people.
    pub faults: Vec<String>,
    /// Every claim is supported.
    pub supported: bool,
    /// It answers the question.
    pub useful: bool,
    /// It says nothing of the documents, because the message asked for nothing from them.
    pub conversational: bool,
}

impl Draft {
    /// How good the draft is beside others of the same question.
    #[must_use]
    pub fn merit(&self) -> f32 {
        if self.refusal { 0.0 } else { self.support * self.usefulness }
    }
}

state! {
    /// State of a question, from retrieval to answer.
    pub struct RagState updated by
    /// What a node changes in [`RagState`].
    RagUpdate {
        /// The question. It never changes.
        question: Fixed<String>,
        /// Passages found in this round and not known as useful before.
        new_documents: Overwrite<Vec<Passage>>,
        /// Passages found useful in any round; each is graded once for good.
        useful_documents: Append<Useful>,
        /// Useful passages found in the last round.
        newly_useful: Overwrite<usize>,
        /// New queries, one list a round.
        new_queries: AppendBatch<String>,
        /// Nothing new was left to ask.
        exhausted: Overwrite<bool>,
        /// What the passages suggest, and what is still unknown.
        hypothesis: Overwrite<String>,
        /// The steps that the question was taken apart into.
        plan: Overwrite<Vec<String>>,
        /// What each step taken so far came to.
        findings: Append<Finding>,
        /// What the agent thought and saw, in lines.
        scratchpad: Append<String>,
        /// The action that the agent chose last.
        action: Overwrite<Action>,
        /// The latest answer.
        draft: Overwrite<Option<Draft>>,
        /// The best answer so far.
        best: Overwrite<Option<Draft>>,
        /// Times the latest answer was written again from the same passages.
        rewrites: Overwrite<usize>,
        /// Whether the question needs the documents at all; `None` before that is decided.
        needs_documents: Overwrite<Option<bool>>,
    }
}

impl RagState {
    /// A state that knows the question and nothing else.
    #[must_use]
    pub fn new(question: &str) -> Self {
        Self { question: question.to_owned().into(), ..Self::default() }
    }

    /// The queries of the round that comes next.
    #[must_use]
    pub fn queries(&self) -> Vec<&str> {
        match self.new_queries.last() {
            Some(batch) => batch.iter().map(String::as_str).collect(),
            None => vec![self.question.as_str()],
        }
    }

    /// The question and every new query so far.
    #[must_use]
    pub fn all_queries(&self) -> Vec<&str> {
        std::iter::once(self.question.as_str()).chain(self.new_queries.iter().flatten().map(String::as_str)).collect()
    }

    /// The passages an answer may rest on, in the order in which they were found.
    #[must_use]
    pub fn evidence(&self) -> Vec<&Passage> {
        self.useful_documents.iter().map(|useful| &useful.passage).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m31_an_action_is_read_and_anything_else_answers_nothing() {
        let text = "Thought: who wrote it?\nAction: search[author of The Silent Harbour]";
        assert_eq!(Action::read(text), Action::Search("author of The Silent Harbour".to_owned()));
        assert_eq!(Action::read("Action: lookup[Lima]"), Action::Lookup("Lima".to_owned()));
        assert_eq!(Action::read("Thought: done.\nAction: finish[600 EUR]"), Action::Finish("600 EUR".to_owned()));
        assert_eq!(Action::read("I would rather search."), Action::Finish(String::new()));
    }
}
