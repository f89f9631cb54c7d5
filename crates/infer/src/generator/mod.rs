//! The generator: a quantized decoder in a GGUF file, with the tokenizer and chat template of the same file.

mod decoder;
#[cfg(test)]
#[path = "../../tests/common/random_gguf.rs"]
mod random_gguf;
mod sampler;
mod spec;
mod state;
mod stream;
mod template;
mod vocabulary;
mod words;

use std::fs::File;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anchorite_core::{
    Budget, FinishReason, GenerateOptions, Generation, Generator, InferenceError, Limits, ModelFingerprint, Prompt,
    TokenCounter,
};
use anchorite_models::{GeneratorSpec, GgufHeader, check_memory};
use candle_core::quantized::gguf_file::Content;

pub use self::spec::DecoderSpec;

use self::decoder::{Decoder, PASS_TOKENS};
use self::sampler::{Sampler, log_softmax};
use self::state::State;
use self::stream::TextStream;
use self::template::ChatTemplate;
use self::vocabulary::Vocabulary;
use crate::device::DeviceChoice;
use crate::error::LoadError;

/// Longest context kept in memory; models that allow more are used up to here.
const MAX_CONTEXT: usize = 32_768;

/// Memory that weights take, in sizes of their file: once as stored and once rearranged for the processor's vector
/// instructions.
const MEMORY_FACTOR: f64 = 2.0;

/// Tokens whose keys and values must fit for a generator to be worth opening.
const TYPICAL_CONTEXT: usize = 4096;

/// A generator that runs in this process. One prompt is computed at a time; what the next prompt has in common with the
/// last one, from its first token on, is not computed again.
pub struct LocalGenerator {
    fingerprint: ModelFingerprint,
    decoder: Decoder,
    vocabulary: Vocabulary,
    template: ChatTemplate,
    state: Mutex<State>,
}

impl std::fmt::Debug for LocalGenerator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalGenerator").field("fingerprint", &self.fingerprint).field("spec", self.spec()).finish()
    }
}

impl LocalGenerator {
    /// Opens the GGUF file `path`. The file is checked before any of it is trusted.
    ///
    /// # Errors
    /// [`LoadError`] naming what is wrong with the file, or that it does not fit into memory.
    pub fn open(path: &Path, fingerprint: ModelFingerprint, device: DeviceChoice) -> Result<Self, LoadError> {
        let model = fingerprint.name.clone();
        let header = GgufHeader::read(path, &Limits::default())?;
        let known = GeneratorSpec::read(path, &header)?;
        let io = |source| LoadError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let bytes = file.metadata().map_err(io)?.len();
        let context = known.context_length.min(TYPICAL_CONTEXT);
        check_memory(&model, (bytes as f64 * MEMORY_FACTOR) as u64 + known.cache_bytes(context))?;
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let backend = |source| LoadError::Backend { model: model.clone(), source };
        let content = Content::read(&mut reader).map_err(backend)?;
        let spec = DecoderSpec::from_gguf(&content, &known)?;
        let origin = path.display().to_string();
        let vocabulary = Vocabulary::from_gguf(&content, &origin)?;
        let template = match content.metadata.get("tokenizer.chat_template") {
            Some(value) => Some(value.to_string().map_err(backend)?.as_str()),
            None => None,
        };
        let template =
            ChatTemplate::new(template).map_err(|problem| LoadError::Template { model: model.clone(), problem })?;
        let decoder = Decoder::load(spec, &content, &mut reader, &device.open()?)?;
        if vocabulary.len > decoder.vocabulary() {
            return Err(LoadError::Tokenizer {
                origin,
                problem: format!("{} tokens, but only {} rows of embeddings", vocabulary.len, decoder.vocabulary()),
            });
        }
        let state = Mutex::new(decoder.new_state());
        Ok(Self { fingerprint, decoder, vocabulary, template, state })
    }

    /// Sizes and constants of the decoder.
    #[must_use]
    pub fn spec(&self) -> &DecoderSpec {
        self.decoder.spec()
    }

    /// Tokens of `prompt` after the chat template.
    ///
    /// # Errors
    /// If the template fails on this conversation.
    pub fn encode(&self, prompt: &Prompt) -> Result<Vec<u32>, InferenceError> {
        self.template.encode(prompt, &self.vocabulary).map_err(|message| self.fault(message))
    }

    /// Logits after each token of `tokens`, read from an empty state: one row per token. For measuring perplexity and
    /// comparing with other engines.
    ///
    /// # Errors
    /// If the backend fails.
    pub fn logits(&self, tokens: &[u32]) -> Result<Vec<Vec<f32>>, InferenceError> {
        let mut state = self.decoder.new_state();
        let mut rows = Vec::with_capacity(tokens.len());
        for piece in tokens.chunks(PASS_TOKENS) {
            let logits = self.decoder.forward_all(piece, &mut state).and_then(|all| all.to_vec2::<f32>());
            rows.extend(logits.map_err(|error| self.fault(error))?);
        }
        Ok(rows)
    }

    fn fault(&self, message: impl std::fmt::Display) -> InferenceError {
        InferenceError::Backend { model: self.fingerprint.name.clone(), message: message.to_string() }
    }

    /// A pass that failed half-way leaves layers of different lengths behind, so the state is given up with it.
    fn or_forget<T>(&self, computed: candle_core::Result<T>, state: &mut State) -> Result<T, InferenceError> {
        computed.map_err(|error| {
            *state = self.decoder.new_state();
            self.fault(error)
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A state whose computation panicked is dropped with its tokens, so the lock's poison carries no more meaning.
        self.state.lock().unwrap_or_else(|poisoned: PoisonError<_>| {
            let mut guard = poisoned.into_inner();
            *guard = self.decoder.new_state();
            guard
        })
    }

    /// Brings `state` to hold exactly `tokens`; returns the logits after the last, and how many were kept.
    fn read(&self, tokens: &[u32], state: &mut State, budget: &Budget) -> Result<(Vec<f32>, usize), InferenceError> {
        let common = state.tokens().iter().zip(tokens).take_while(|(a, b)| a == b).count();
        // The last token is always computed: its logits are what is asked for.
        let kept = state.truncate(common.min(tokens.len().saturating_sub(1)));
        let mut logits = Vec::new();
        for piece in tokens[kept..].chunks(PASS_TOKENS) {
            budget.check()?;
            logits = self.or_forget(self.decoder.forward(piece, state), state)?;
            budget.note_read(piece.len());
        }
        if logits.iter().any(|x| x.is_nan()) {
            return Err(InferenceError::NotANumber { model: self.fingerprint.name.clone() });
        }
        Ok((logits, kept))
    }

    fn checked_tokens(&self, prompt: &Prompt, room: usize) -> Result<Vec<u32>, InferenceError> {
        if prompt.messages.iter().all(|message| message.content.trim().is_empty()) {
            return Err(InferenceError::EmptyInput { what: "prompt" });
        }
        let tokens = self.encode(prompt)?;
        self.check_room(&tokens, room)?;
        Ok(tokens)
    }

    /// Refuses a prompt that leaves less than `room` tokens of the context.
    fn check_room(&self, tokens: &[u32], room: usize) -> Result<(), InferenceError> {
        let limit = self.context_length().saturating_sub(room);
        if tokens.len() > limit { Err(InferenceError::PromptTooLong { tokens: tokens.len(), limit }) } else { Ok(()) }
    }

    /// Mean log-probability of the tokens of `option` after what `state` holds; `logits` are those after its last token.
    fn option_score(
        &self,
        option: &[u32],
        logits: &[f32],
        prompt: &[u32],
        state: &mut State,
        budget: &Budget,
    ) -> Result<f32, InferenceError> {
        let (Some(&first), rest) = (option.first(), option.len() - 1) else {
            return Err(InferenceError::EmptyInput { what: "option" });
        };
        let mut sum = log_softmax(logits)[first as usize];
        if rest > 0 {
            if state.tokens().len() != prompt.len() {
                // A state that can't go back forgot the prompt after the option before.
                self.read(prompt, state, budget)?;
            }
            let rows = self.decoder.forward_all(&option[..rest], state).and_then(|all| all.to_vec2::<f32>());
            let rows = self.or_forget(rows, state)?;
            budget.note_read(rest);
            sum += rows.iter().zip(&option[1..]).map(|(row, &next)| log_softmax(row)[next as usize]).sum::<f32>();
            state.truncate(prompt.len());
        }
        Ok(sum / option.len() as f32)
    }
}

impl TokenCounter for LocalGenerator {
    fn count(&self, text: &str) -> usize {
        self.vocabulary.encode_plain(text).map_or(text.len(), |tokens| tokens.len())
    }
}

impl Generator for LocalGenerator {
    fn fingerprint(&self) -> &ModelFingerprint {
        &self.fingerprint
    }

    fn context_length(&self) -> usize {
        self.spec().context_length.min(MAX_CONTEXT)
    }

    fn prompt_tokens(&self, prompt: &Prompt) -> Result<usize, InferenceError> {
        self.encode(prompt).map(|tokens| tokens.len())
    }

    fn generate(
        &self,
        prompt: &Prompt,
        options: &GenerateOptions,
        budget: &Budget,
        sink: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<Generation, InferenceError> {
        let mut tokens = self.checked_tokens(prompt, 1)?;
        let prompt_tokens = tokens.len();
        budget.note_call();
        let mut state = self.lock();
        let (mut logits, cached_tokens) = self.read(&tokens, &mut state, budget)?;
        let mut sampler = Sampler::new(options);
        let mut stream = TextStream::new(&options.stop);
        let mut finish = FinishReason::Length;
        let most = options.max_tokens.min(self.context_length() - prompt_tokens);
        for written in 0..most {
            let next = sampler
                .next(&mut logits, &tokens)
                .ok_or_else(|| InferenceError::NotANumber { model: self.fingerprint.name.clone() })?;
            if self.vocabulary.end.contains(&next) {
                finish = FinishReason::EndOfTurn;
                break;
            }
            tokens.push(next);
            budget.note_written(1);
            let piece = stream.push(next, &self.vocabulary).map_err(|message| self.fault(message))?;
            if !piece.is_empty() && sink(piece).is_break() {
                finish = FinishReason::Cancelled;
                break;
            }
            if stream.stopped() {
                finish = FinishReason::Stop;
                break;
            }
            if written + 1 < most {
                budget.check()?;
                logits = self.or_forget(self.decoder.forward(&[next], &mut state), &mut state)?;
            }
        }
        let (held, text, written) = stream.finish(&self.vocabulary).map_err(|message| self.fault(message))?;
        if !held.is_empty() && finish != FinishReason::Cancelled {
            // The text is complete already, so a request to stop has nothing left to stop.
            let _ = sink(&held);
        }
        Ok(Generation { text, prompt_tokens, cached_tokens, tokens: written, finish })
    }

    fn choose(&self, prompt: &Prompt, options: &[&str], budget: &Budget) -> Result<Vec<f32>, InferenceError> {
        if options.is_empty() {
            return Err(InferenceError::EmptyInput { what: "list of options" });
        }
        let tokens = self.checked_tokens(prompt, 1)?;
        let encoded = options
            .iter()
            .map(|option| self.vocabulary.encode_continuation(option, &tokens).map_err(|message| self.fault(message)))
            .collect::<Result<Vec<_>, _>>()?;
        let room = encoded.iter().map(Vec::len).max().unwrap_or(1);
        self.check_room(&tokens, room)?;
        budget.note_call();
        let mut state = self.lock();
        let (logits, _) = self.read(&tokens, &mut state, budget)?;
        let scores = encoded
            .iter()
            .map(|option| self.option_score(option, &logits, &tokens, &mut state, budget))
            .collect::<Result<Vec<f32>, _>>()?;
        Ok(log_softmax(&scores).into_iter().map(f32::exp).collect())
    }
}
