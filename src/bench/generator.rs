//! Measures the generator on this machine: how fast it reads and writes, what drafts save, and how well it predicts.

use std::ops::ControlFlow;
use std::time::Instant;

use anchorite_core::{Budget, DraftCounts, GenerateOptions, Generator, Prompt};
use anchorite_infer::{LocalGenerator, product_instructions};
use serde::Serialize;

use super::{BenchOptions, middle, peak_memory};
use crate::{Engine, Error};

/// What to measure the generator with.
#[derive(Clone, Debug, Default)]
pub struct GeneratorWorkload {
    /// A text of which the first tokens are read.
    pub text: String,
    /// How many of them.
    pub read: usize,
    /// Tokens that are then read one by one, as in writing.
    pub write: usize,
    /// Prompts that are replied to, with drafts and without.
    pub prompts: Vec<String>,
    /// Most tokens of a reply.
    pub reply: usize,
    /// Tokens of `text` whose perplexity is computed, in windows of 512; 0 computes none.
    pub perplexity: usize,
}

/// What was measured of a generator.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GeneratorReport {
    /// The model.
    pub model: String,
    /// `cpu`, `cuda:0`, …
    pub device: String,
    /// The instruction set of the processor that kernels run on.
    pub instructions: String,
    /// Threads.
    pub threads: usize,
    /// Seconds until the model was open.
    pub open_seconds: f64,
    /// Tokens read at once.
    pub read_tokens: usize,
    /// Tokens a second in reading at once: the median of the runs.
    pub read_tokens_per_second: f64,
    /// Tokens a second one by one, behind those: the median of the runs.
    pub write_tokens_per_second: f64,
    /// Replies to prompts.
    pub replies: Option<Replies>,
    /// e to the mean negative log-likelihood of a token.
    pub perplexity: Option<f64>,
    /// Most memory that this process has held, in bytes; `None` where the system does not say.
    pub peak_memory_bytes: Option<u64>,
}

/// Greedy replies to prompts; the time to read a prompt does not count.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Replies {
    /// Prompts.
    pub prompts: usize,
    /// Tokens of all replies.
    pub tokens: usize,
    /// Tokens a second where what was read is guessed to come again and checked several at a time.
    pub tokens_per_second: f64,
    /// Tokens a second without guesses.
    pub plain_tokens_per_second: f64,
    /// Tokens guessed, and those that were right.
    pub draft: DraftCounts,
    /// Replies that are not the same with and without guesses: there must be none.
    pub different: usize,
}

impl Engine {
    /// Measures the generator. `None` if there is none.
    ///
    /// # Errors
    /// If the model can't be opened or fails, or the text has too few tokens.
    pub fn bench_generate(
        &self,
        workload: &GeneratorWorkload,
        options: BenchOptions,
    ) -> Result<Option<GeneratorReport>, Error> {
        let started = Instant::now();
        let Some(generator) = self.models.generator()? else { return Ok(None) };
        let open_seconds = started.elapsed().as_secs_f64();
        let budget = Budget::unlimited();
        let mut tokens = generator.text_tokens(&workload.text)?;
        let perplexity = match workload.perplexity {
            0 => None,
            most => Some(generator.perplexity(&tokens[..tokens.len().min(most)], 512, &budget)?.perplexity),
        };
        tokens.truncate(workload.read);
        generator.measure(&tokens, workload.write.min(4), &budget)?;
        let (mut read, mut write) = (Vec::new(), Vec::new());
        for _ in 0..options.repeats.max(1) {
            let times = generator.measure(&tokens, workload.write, &budget)?;
            read.push(times.read.1.as_secs_f64());
            write.push(times.written.1.as_secs_f64());
        }
        Ok(Some(GeneratorReport {
            model: generator.fingerprint().name.clone(),
            device: self.models.compute().0.to_string(),
            instructions: product_instructions().to_owned(),
            threads: anchorite_infer::threads(),
            open_seconds,
            read_tokens: tokens.len(),
            read_tokens_per_second: tokens.len() as f64 / middle(&mut read),
            write_tokens_per_second: workload.write.min(tokens.len()) as f64 / middle(&mut write),
            replies: if workload.prompts.is_empty() { None } else { Some(replies(&generator, workload)?) },
            perplexity,
            peak_memory_bytes: peak_memory(),
        }))
    }
}

fn replies(generator: &LocalGenerator, workload: &GeneratorWorkload) -> Result<Replies, Error> {
    let mut replies = Replies { prompts: workload.prompts.len(), ..Replies::default() };
    let (mut with, mut without) = (0.0, 0.0);
    for prompt in &workload.prompts {
        let prompt = Prompt::new().user(prompt);
        let reply = |draft: bool| {
            let options = GenerateOptions { draft, ..GenerateOptions::greedy(workload.reply) };
            // What is read is remembered, so that the second call begins to write at once.
            let nothing = GenerateOptions::greedy(0);
            let budget = Budget::unlimited();
            generator.generate(&prompt, &nothing, &budget, &mut |_| ControlFlow::Continue(()))?;
            let started = Instant::now();
            let reply = generator.generate(&prompt, &options, &budget, &mut |_| ControlFlow::Continue(()))?;
            Ok::<_, Error>((reply, started.elapsed().as_secs_f64()))
        };
        let (drafted, seconds) = reply(true)?;
        with += seconds;
        let (plain, seconds) = reply(false)?;
        without += seconds;
        replies.tokens += drafted.tokens.len();
        replies.draft.note(drafted.draft.guessed, drafted.draft.right);
        replies.different += usize::from(drafted.tokens != plain.tokens);
    }
    replies.tokens_per_second = replies.tokens as f64 / with;
    replies.plain_tokens_per_second = replies.tokens as f64 / without;
    Ok(replies)
}
