//! Fakes for tests: they do the least that the traits promise, and can be told to misbehave.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use proptest::prelude::*;

use anchorite_core::{
    Budget, DraftCounts, FinishReason, GenerateOptions, Generation, Generator, InferenceError, ModelFingerprint,
    Passage, Prompt, Reranker, RetrieveError, Retriever, Scores, TokenCounter,
};

/// What a generator may write, whatever it was asked: words, sentences, fragments, line breaks, nothing.
pub fn replies() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[A-Za-z0-9 .?:\n]{0,60}", 0..30)
}

fn fingerprint(name: &str) -> ModelFingerprint {
    ModelFingerprint { name: name.to_owned(), sha256: "0".repeat(64) }
}

/// Beginnings of the words that carry content, crude and predictable.
fn words(text: &str) -> Vec<String> {
    const EMPTY: [&str; 8] = ["does", "from", "much", "that", "what", "when", "whic", "with"];
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() > 3)
        .map(|word| word.to_lowercase().chars().take(4).collect::<String>())
        .filter(|word| !EMPTY.contains(&word.as_str()))
        .collect()
}

/// A generator that replies from a script, in order, and then says "I don't know."; it chooses the first option.
#[derive(Debug)]
pub struct ScriptedGenerator {
    fingerprint: ModelFingerprint,
    replies: Mutex<VecDeque<String>>,
    choices: Mutex<VecDeque<Vec<f32>>>,
    context: usize,
}

impl ScriptedGenerator {
    /// Replies with `replies`.
    #[must_use]
    pub fn new(replies: &[&str]) -> Self {
        Self {
            fingerprint: fingerprint("scripted"),
            replies: Mutex::new(replies.iter().map(|reply| (*reply).to_owned()).collect()),
            choices: Mutex::new(VecDeque::new()),
            context: 4096,
        }
    }

    /// Reads at most `tokens` (words), reply included.
    #[must_use]
    pub fn reading(self, tokens: usize) -> Self {
        Self { context: tokens, ..self }
    }

    /// Gives `choices` as probabilities, in order, before it goes back to the first option.
    #[must_use]
    pub fn choosing(self, choices: &[&[f32]]) -> Self {
        *self.choices.lock().unwrap_or_else(PoisonError::into_inner) = choices.iter().map(|c| c.to_vec()).collect();
        self
    }
}

impl TokenCounter for ScriptedGenerator {
    fn count(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}

impl Generator for ScriptedGenerator {
    fn fingerprint(&self) -> &ModelFingerprint {
        &self.fingerprint
    }

    fn context_length(&self) -> usize {
        self.context
    }

    fn prompt_tokens(&self, prompt: &Prompt) -> Result<usize, InferenceError> {
        Ok(prompt.messages.iter().map(|message| self.count(&message.content)).sum())
    }

    fn generate(
        &self,
        prompt: &Prompt,
        _: &GenerateOptions,
        budget: &Budget,
        sink: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<Generation, InferenceError> {
        budget.check()?;
        budget.note_call();
        let prompt_tokens = self.prompt_tokens(prompt)?;
        budget.note_read(prompt_tokens);
        let reply = self.replies.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let text = reply.unwrap_or_else(|| "I don't know.".to_owned());
        let _ = sink(&text);
        budget.note_written(self.count(&text));
        Ok(Generation {
            text,
            prompt_tokens,
            cached_tokens: 0,
            tokens: Vec::new(),
            finish: FinishReason::EndOfTurn,
            draft: DraftCounts::default(),
        })
    }

    fn choose(&self, _: &Prompt, options: &[&str], budget: &Budget) -> Result<Vec<f32>, InferenceError> {
        budget.check()?;
        budget.note_call();
        if let Some(choice) = self.choices.lock().unwrap_or_else(PoisonError::into_inner).pop_front() {
            return Ok(choice);
        }
        Ok((0..options.len()).map(|index| if index == 0 { 0.9 } else { 0.1 / (options.len() - 1) as f32 }).collect())
    }
}

/// A reranker that scores by the share of the query's words in a passage: logits from −7 (none) to 9 (all).
#[derive(Debug)]
pub struct OverlapReranker(ModelFingerprint);

impl Default for OverlapReranker {
    fn default() -> Self {
        Self(fingerprint("overlap"))
    }
}

impl Reranker for OverlapReranker {
    fn fingerprint(&self) -> &ModelFingerprint {
        &self.0
    }

    fn score(&self, query: &str, passages: &[&str]) -> Result<Vec<f32>, InferenceError> {
        let asked = words(query);
        let common = |passage: &&str| {
            let words = words(passage);
            let share = asked.iter().filter(|word| words.contains(word)).count() as f32 / asked.len().max(1) as f32;
            16.0 * share - 7.0
        };
        Ok(passages.iter().map(common).collect())
    }
}

/// A retriever over a list of texts that counts words in common.
#[derive(Debug)]
pub struct ListRetriever(Vec<Passage>);

impl ListRetriever {
    /// One passage per pair of title and text.
    #[must_use]
    pub fn new(texts: &[(&str, &str)]) -> Self {
        let passage = |(index, (title, text)): (usize, &(&str, &str))| Passage {
            chunk: index as i64 + 1,
            document: index as i64 + 1,
            source: format!("{}.md", title.to_lowercase().replace(' ', "-")),
            title: (*title).to_owned(),
            start: 0,
            end: text.len(),
            text: (*text).to_owned(),
            dated: 0,
            owner: String::new(),
            scores: Scores::default(),
        };
        Self(texts.iter().enumerate().map(passage).collect())
    }
}

impl Retriever for ListRetriever {
    fn retrieve(&self, query: &str, k: usize) -> Result<Vec<Passage>, RetrieveError> {
        let texts: Vec<String> = self.0.iter().map(Passage::full_text).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let scores = OverlapReranker::default().score(query, &texts)?;
        let mut found: Vec<Passage> = self.0.clone();
        for (passage, score) in found.iter_mut().zip(scores) {
            passage.scores.rerank = Some(score);
        }
        found.sort_by(|a, b| b.scores.rerank.partial_cmp(&a.scores.rerank).unwrap_or(std::cmp::Ordering::Equal));
        found.truncate(k);
        Ok(found)
    }
}
