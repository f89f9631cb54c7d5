//! Queries and passages that the generator writes. What is parsed is constrained to a list, so that it always parses.

use std::ops::ControlFlow;

use anchorite_core::{Budget, GenerateOptions, Generator, InferenceError, generate_as};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::prompts;

/// Most tokens of a list of queries, and of a passage.
const LIST_TOKENS: usize = 160;
const PASSAGE_TOKENS: usize = 96;

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
struct Queries {
    #[schemars(length(min = 1, max = 3))]
    queries: Vec<String>,
}

fn list(
    generator: &dyn Generator,
    prompt: &anchorite_core::Prompt,
    budget: &Budget,
) -> Result<Vec<String>, InferenceError> {
    let written = match generate_as::<Queries>(generator, prompt, GenerateOptions::greedy(LIST_TOKENS), budget) {
        Ok(written) => written,
        // A generator that can't be held to a form has nothing to add to a search.
        Err(InferenceError::Constraint { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    Ok(written.queries.into_iter().map(|query| query.trim().to_owned()).filter(|query| !query.is_empty()).collect())
}

/// The question in other words.
pub(super) fn paraphrases(
    generator: &dyn Generator,
    question: &str,
    budget: &Budget,
) -> Result<Vec<String>, InferenceError> {
    list(generator, &prompts::paraphrase(question), budget)
}

/// The broader question behind it.
pub(super) fn broader(
    generator: &dyn Generator,
    question: &str,
    budget: &Budget,
) -> Result<Vec<String>, InferenceError> {
    let mut queries = list(generator, &prompts::step_back(question), budget)?;
    queries.truncate(1);
    Ok(queries)
}

/// The questions that it is made of, in the order in which they can be answered.
pub(crate) fn sub_questions(
    generator: &dyn Generator,
    question: &str,
    budget: &Budget,
) -> Result<Vec<String>, InferenceError> {
    list(generator, &prompts::decompose(question), budget)
}

/// `count` passages that might answer the question: the first greedy, the others drawn with the seeds 1, 2, ….
pub(super) fn passages(
    generator: &dyn Generator,
    question: &str,
    count: usize,
    budget: &Budget,
) -> Result<Vec<String>, InferenceError> {
    let prompt = prompts::hypothetical(question);
    let mut passages = Vec::with_capacity(count);
    for seed in 0..count as u64 {
        let temperature = if seed == 0 { 0.0 } else { 0.7 };
        let options = GenerateOptions { temperature, seed, ..GenerateOptions::greedy(PASSAGE_TOKENS).stop_at("\n\n") };
        let written = generator.generate(&prompt, &options, budget, &mut |_| ControlFlow::Continue(()))?;
        let text = written.text.trim();
        if !text.is_empty() && !prompts::is_refusal(text) {
            passages.push(text.to_owned());
        }
    }
    Ok(passages)
}
