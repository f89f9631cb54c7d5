//! The generator: a quantized decoder in a GGUF file, with the tokenizer and chat template of the same file.

mod body;
mod constraint;
mod draft;
mod measure;
mod native;
#[cfg(test)]
mod parity_tests;
mod prefix;
mod prefix_file;
#[cfg(test)]
#[path = "../../tests/common/random_gguf.rs"]
mod random_gguf;
mod sampler;
mod source;
mod spec;
mod stream;
mod template;
mod tensors;
mod vocabulary;
mod watch;
mod words;
mod writer;

use std::fs::File;
use std::io::{Cursor, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use anchorite_core::{
    Budget, DraftCounts, GenerateOptions, Generation, Generator, InferenceError, Limits, ModelFingerprint, Prompt,
    TokenCounter,
};
use anchorite_models::{GeneratorSpec, GgmlType, GgufHeader, GgufTensor, check_memory};
use candle_core::quantized::gguf_file::Content;

pub use self::measure::{GeneratorTimes, Perplexity};
pub use self::spec::DecoderSpec;
pub use self::template::try_chat_template;

use self::body::{Body, Failure, Memory, PASS_TOKENS, Rows};
use self::constraint::Grammars;
use self::draft::Draft;
use self::prefix::common;
use self::sampler::log_softmax;
use self::template::ChatTemplate;
use self::vocabulary::Vocabulary;
use self::watch::Watch;
use self::writer::Writer;
use crate::device::DeviceChoice;
use crate::error::LoadError;
use crate::guarded::guarded;

/// Longest context kept in memory; models that allow more are used up to here.
const MAX_CONTEXT: usize = 32_768;

/// Bytes that weights take once they are laid out for the processor, and the largest tensor once more: plain numbers and
/// kinds of two and three bits are read whole before they are.
fn memory_of(header: &GgufHeader) -> u64 {
    let laid_out = |tensor: &GgufTensor| match tensor.ggml_type {
        GgmlType::F32 => tensor.bytes,
        // Multiplied in single precision.
        GgmlType::F16 | GgmlType::BF16 => 2 * tensor.bytes,
        GgmlType::Q2_K | GgmlType::Q3_K => tensor.bytes / tensor.ggml_type.block_bytes() * 8 * 34,
        _ => tensor.bytes + tensor.bytes / 32,
    };
    let largest = header.tensors.iter().map(|tensor| tensor.bytes).max().unwrap_or(0);
    header.tensors.iter().map(laid_out).sum::<u64>() + largest
}

/// Tokens whose keys and values must fit for a generator to be worth opening.
const TYPICAL_CONTEXT: usize = 4096;

/// A generator that runs in this process. One prompt is computed at a time; what a prompt has in common with those before it,
/// from its first token on, is not computed again.
pub struct LocalGenerator {
    fingerprint: ModelFingerprint,
    body: Body,
    vocabulary: Vocabulary,
    template: ChatTemplate,
    memory: Mutex<Memory>,
    /// Made when the first text is constrained.
    grammars: OnceLock<Result<Grammars, String>>,
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
        let context = known.context_length.min(TYPICAL_CONTEXT);
        check_memory(&model, memory_of(&header) + known.cache_bytes(context))?;
        let backend = |source| LoadError::Backend { model: model.clone(), source };
        // Read from memory: the library asks for its position at every string, which a file would be asked for each time.
        let mut begin = Vec::new();
        (&file).take(header.data_start).read_to_end(&mut begin).map_err(io)?;
        let content = Content::read(&mut Cursor::new(begin)).map_err(backend)?;
        let spec = DecoderSpec::from_gguf(&content, &known)?;
        let origin = path.display().to_string();
        // Words and weights don't wait for each other.
        let (vocabulary, body) = std::thread::scope(|scope| {
            let vocabulary = scope.spawn(|| guarded(|| Vocabulary::from_gguf(&content, &origin)));
            let body = Body::load(spec, &content, &file, device);
            (vocabulary.join().ok().flatten(), body)
        });
        // The library has panicked on hostile vocabularies; that is an error like any other.
        let vocabulary = vocabulary.unwrap_or_else(|| {
            let problem = "the file makes the tokenizer library fail; it is damaged".to_owned();
            Err(LoadError::Tokenizer { origin: origin.clone(), problem })
        })?;
        let template = match content.metadata.get("tokenizer.chat_template") {
            Some(value) => Some(value.to_string().map_err(backend)?.as_str()),
            None => None,
        };
        let template = ChatTemplate::or_chatml(template, &vocabulary)
            .map_err(|problem| LoadError::Template { model: model.clone(), problem })?;
        let body = body?;
        if vocabulary.len > body.vocabulary() {
            return Err(LoadError::Tokenizer {
                origin,
                problem: format!("{} tokens, but only {} rows of embeddings", vocabulary.len, body.vocabulary()),
            });
        }
        let memory = Mutex::new(body.new_memory());
        Ok(Self { fingerprint, body, vocabulary, template, memory, grammars: OnceLock::new() })
    }

    /// What is wrong with the file's chat template, where ChatML is used in its place.
    #[must_use]
    pub fn template_problem(&self) -> Option<&str> {
        self.template.problem()
    }

    /// Sizes and constants of the decoder.
    #[must_use]
    pub fn spec(&self) -> &DecoderSpec {
        self.body.spec()
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
        let mut memory = self.body.new_memory();
        let mut rows = Vec::with_capacity(tokens.len());
        for piece in tokens.chunks(PASS_TOKENS) {
            let logits = self.pass(piece, &mut memory, piece.len(), &Budget::unlimited())?;
            rows.extend(logits.iter().map(<[f32]>::to_vec));
        }
        Ok(rows)
    }

    fn fault(&self, message: impl std::fmt::Display) -> InferenceError {
        InferenceError::Backend { model: self.fingerprint.name.clone(), message: message.to_string() }
    }

    /// Reads `tokens`, and gives the logits after the last `wanted` of them. A pass that failed half-way leaves layers of
    /// different lengths behind, so the memory is given up with it.
    fn pass(
        &self,
        tokens: &[u32],
        memory: &mut Memory,
        wanted: usize,
        budget: &Budget,
    ) -> Result<Rows, InferenceError> {
        self.watched_pass(tokens, memory, wanted, budget, None)
    }

    fn watched_pass(
        &self,
        tokens: &[u32],
        memory: &mut Memory,
        wanted: usize,
        budget: &Budget,
        watch: Option<&mut Watch<'_>>,
    ) -> Result<Rows, InferenceError> {
        self.body.forward(tokens, memory, wanted, budget, watch).map_err(|failure| match failure {
            Failure::Budget(error) => error.into(),
            Failure::Backend(error) => {
                *memory = self.body.new_memory();
                self.fault(error)
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        // A memory whose computation panicked is dropped, so the lock's poison carries no more meaning.
        self.memory.lock().unwrap_or_else(|poisoned: PoisonError<_>| {
            let mut guard = poisoned.into_inner();
            *guard = self.body.new_memory();
            guard
        })
    }

    /// Brings the state of `memory` to hold exactly `tokens`; returns the logits after the last, and how many tokens were
    /// remembered.
    fn read(&self, tokens: &[u32], memory: &mut Memory, budget: &Budget) -> Result<(Rows, usize), InferenceError> {
        self.watched_read(tokens, memory, budget, None)
    }

    fn watched_read(
        &self,
        tokens: &[u32],
        memory: &mut Memory,
        budget: &Budget,
        mut watch: Option<&mut Watch<'_>>,
    ) -> Result<(Rows, usize), InferenceError> {
        // The last token is always computed: its logits are what is asked for.
        let kept = memory.rewind(tokens, tokens.len().saturating_sub(1));
        let mut logits = None;
        for piece in tokens[kept..].chunks(PASS_TOKENS) {
            budget.check()?;
            logits = Some(self.watched_pass(piece, memory, 1, budget, watch.as_deref_mut())?);
            budget.note_read(piece.len());
        }
        let logits = logits.ok_or(InferenceError::EmptyInput { what: "prompt" })?;
        if logits.iter().flatten().any(|x| x.is_nan()) {
            return Err(self.not_a_number());
        }
        memory.keep();
        Ok((logits, kept))
    }

    fn not_a_number(&self) -> InferenceError {
        InferenceError::NotANumber { model: self.fingerprint.name.clone() }
    }

    /// Remembers how prompts with these instructions begin: from the file `path` where an earlier process left it there,
    /// else by reading it and leaving it there. Returns how many tokens that are, and whether they came from the file.
    ///
    /// # Errors
    /// If the budget runs out or the backend fails. A file that can't be written is no error: it is a cache.
    pub fn remember_instructions(
        &self,
        path: &Path,
        instructions: &str,
        budget: &Budget,
    ) -> Result<(usize, bool), InferenceError> {
        let Some(decoder) = self.body.native() else { return Ok((0, false)) };
        let beginning = |word: &str| self.encode(&Prompt::new().system(instructions).user(word));
        let (one, other) = (beginning("a")?, beginning("1")?);
        let tokens = &one[..common(&one, &other)];
        if tokens.is_empty() {
            return Ok((0, false));
        }
        let key = format!("{} {}", self.fingerprint.sha256, decoder.instructions());
        let mut memory = self.lock();
        let kept = prefix_file::load(path, &key, decoder.page()).filter(|sequence| sequence.tokens() == tokens);
        if let Some(sequence) = kept {
            memory.keep_read(&sequence);
            return Ok((tokens.len(), true));
        }
        self.read(tokens, &mut memory, budget)?;
        if let Some(sequence) = memory.sequence() {
            // Without the file the next process reads it again.
            let _ = prefix_file::save(path, &key, sequence);
        }
        Ok((tokens.len(), false))
    }

    fn grammars(&self) -> Result<&Grammars, String> {
        self.grammars.get_or_init(|| Grammars::new(&self.vocabulary)).as_ref().map_err(Clone::clone)
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
        memory: &mut Memory,
        budget: &Budget,
    ) -> Result<f32, InferenceError> {
        let Some((&first, rest)) = option.split_first() else {
            return Err(InferenceError::EmptyInput { what: "option" });
        };
        let mut sum = log_softmax(logits)[first as usize];
        if !rest.is_empty() {
            if memory.len() != prompt.len() {
                // A state that can't go back forgot the prompt after the option before.
                self.read(prompt, memory, budget)?;
            }
            let rows = self.pass(&option[..rest.len()], memory, rest.len(), budget)?;
            budget.note_read(rest.len());
            sum += rows.iter().zip(rest).map(|(row, &next)| log_softmax(row)[next as usize]).sum::<f32>();
            memory.truncate(prompt.len());
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
        let most = options.max_tokens.min(self.context_length() - prompt_tokens);
        // A constraint that can't be met is refused before anything is read.
        let mut writer = Writer::new(self, options, most, sink)?;
        budget.note_call();
        let mut memory = self.lock();
        let (mut rows, cached_tokens) = self.read(&tokens, &mut memory, budget)?;
        let (mut draft, mut counts) = (Draft::default(), DraftCounts::default());
        let mut guess: Vec<u32> = Vec::new();
        // `rows` are the logits after the last token that is certain, and after each one of the guess behind it.
        'writing: while tokens.len() - prompt_tokens < most {
            let mut right = 0;
            for row in 0..=guess.len() {
                let Some(next) = writer.next(rows.get(row), &mut tokens, budget)? else { break 'writing };
                if tokens.len() - prompt_tokens == most {
                    break 'writing;
                }
                if guess.get(row) != Some(&next) {
                    break;
                }
                right += 1;
            }
            counts.note(guess.len(), right);
            draft.learn(guess.len(), right);
            memory.truncate(tokens.len() - 1);
            budget.check()?;
            guess.clear();
            // Where several tokens are read nearly as fast as one, and to the same bits.
            if options.draft && self.body.native().is_some() {
                let room = most - (tokens.len() - prompt_tokens) - 1;
                guess.extend(draft.guess(&tokens).iter().take(room));
            }
            let pass: Vec<u32> = tokens.last().into_iter().chain(&guess).copied().collect();
            rows = self.pass(&pass, &mut memory, pass.len(), budget)?;
        }
        memory.truncate(tokens.len());
        memory.keep();
        let (text, written, finish) = writer.finish()?;
        Ok(Generation { text, prompt_tokens, cached_tokens, tokens: written, finish, draft: counts })
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
        let mut memory = self.lock();
        let (mut logits, _) = self.read(&tokens, &mut memory, budget)?;
        let logits = logits.get(0);
        let scores = encoded
            .iter()
            .map(|option| self.option_score(option, logits, &tokens, &mut memory, budget))
            .collect::<Result<Vec<f32>, _>>()?;
        Ok(log_softmax(&scores).into_iter().map(f32::exp).collect())
    }

    fn states(
        &self,
        prompt: &Prompt,
        layers: &[usize],
        budget: &Budget,
    ) -> Result<Option<Vec<Vec<f32>>>, InferenceError> {
        let tokens = self.checked_tokens(prompt, 1)?;
        budget.note_call();
        let mut watch = Watch::new(layers);
        self.watched_read(&tokens, &mut self.lock(), budget, Some(&mut watch))?;
        Ok(watch.states())
    }
}
