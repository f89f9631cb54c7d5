//! Builds a tokenizer from the words of a GGUF file.
//!
//! Two kinds exist: `gpt2` is byte-level BPE (Sennrich et al. 2016, Radford et al. 2019), `llama` is SentencePiece BPE (Kudo
//! and Richardson 2018), whose merges are not stored and follow from the scores. How text is split before merging is a
//! name (`tokenizer.ggml.pre`); an unknown name is refused, because a wrong split silently makes a model worse.

use std::collections::{HashMap, HashSet};

use candle_core::quantized::gguf_file::{Content, Value};
use tokenizers::decoders::DecoderWrapper;
use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::byte_level::ByteLevel as ByteLevelDecoder;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::sequence::Sequence as DecoderSequence;
use tokenizers::models::bpe::BPE;
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::normalizers::prepend::Prepend;
use tokenizers::normalizers::replace::Replace;
use tokenizers::normalizers::unicode::NFC;
use tokenizers::normalizers::utils::Sequence as NormalizerSequence;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{SplitDelimiterBehavior, Tokenizer};

use super::spec::{as_size, string};
use crate::error::LoadError;

/// GPT-2's own split, and the two that Qwen 2 and Llama 3 derive from it (they differ in how digits group). What no pattern
/// matches stays together.
const SPLIT_GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)";
const SPLIT_QWEN2: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const SPLIT_LLAMA3: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// For files that name no split: punctuation, words, and digits in threes, one after the other.
const SPLIT_DEFAULT: [&str; 4] = [r"[\p{P}\$\+<=>\^~\|]+", SPLIT_GPT2, r"\p{N}+", "[0-9][0-9][0-9]"];
const KNOWN_SPLITS: &str = "default, gpt-2, smollm, qwen2, llama-bpe, llama3, llama-v3, smaug-bpe, lfm2";

/// What SentencePiece writes for a space.
const SPACE: &str = "\u{2581}";

/// Kinds of vocabulary (`tokenizer.ggml.model`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    ByteLevel,
    SentencePiece,
}

/// What a tokenizer is built from.
pub(super) struct Words<'a> {
    content: &'a Content,
    kind: Kind,
    tokens: &'a [String],
    /// Tokens that words never give.
    control: &'a HashSet<u32>,
    /// Stands for what has no token; byte-level vocabularies have none, for every byte is a token.
    unknown: Option<u32>,
}

impl<'a> Words<'a> {
    pub(super) fn new(
        content: &'a Content,
        tokens: &'a [String],
        control: &'a HashSet<u32>,
        unknown: Option<u32>,
    ) -> Result<Self, String> {
        let kind = match string(content, "tokenizer.ggml.model").map_err(|error| error.to_string())? {
            "gpt2" => Kind::ByteLevel,
            "llama" => Kind::SentencePiece,
            other => return Err(format!("`{other}` is not supported; known kinds: gpt2, llama")),
        };
        Ok(Self { content, kind, tokens, control, unknown })
    }

    /// The tokenizer for words that go on after others.
    pub(super) fn tokenizer(&self) -> Result<Tokenizer, String> {
        match self.kind {
            Kind::ByteLevel => self.byte_level(),
            Kind::SentencePiece => self.sentence_piece(),
        }
    }

    fn flag(&self, key: &str) -> Option<bool> {
        self.content.metadata.get(key).and_then(|value| value.to_bool().ok())
    }

    /// Whether tokens are written in characters that stand for bytes.
    pub(super) fn byte_characters(&self) -> bool {
        self.kind == Kind::ByteLevel
    }

    /// Whether a text begins with a token of its own.
    pub(super) fn begin_with_token(&self) -> bool {
        let usual = self.kind == Kind::SentencePiece || self.like_llama3();
        self.flag("tokenizer.ggml.add_bos_token").unwrap_or(usual)
    }

    /// Whether a text begins with a space that nobody wrote, also after a control token.
    pub(super) fn begin_with_space(&self) -> bool {
        self.kind == Kind::SentencePiece && self.flag("tokenizer.ggml.add_space_prefix").unwrap_or(true)
    }

    fn split(&self) -> Result<&str, String> {
        match self.content.metadata.get("tokenizer.ggml.pre") {
            Some(value) => value.to_string().map(String::as_str).map_err(|error| error.to_string()),
            None => Ok("default"),
        }
    }

    /// Llama 3 and what splits like it look whole words up before merging.
    fn like_llama3(&self) -> bool {
        matches!(self.split(), Ok("llama-bpe" | "llama3" | "llama-v3" | "lfm2"))
    }

    fn byte_level(&self) -> Result<Tokenizer, String> {
        let merges = strings(self.content, "tokenizer.ggml.merges").map_err(|error| error.to_string())?;
        let merges = merges
            .iter()
            .map(|merge| {
                let (left, right) = merge.split_once(' ').ok_or_else(|| format!("the merge `{merge}` has no space"))?;
                Ok((left.to_owned(), right.to_owned()))
            })
            .collect::<Result<Vec<_>, String>>()?;
        let mut tokenizer = self.build(merges)?;
        let split = |pattern: &str| -> Result<PreTokenizerWrapper, String> {
            Split::new(SplitPattern::Regex(pattern.to_owned()), SplitDelimiterBehavior::Isolated, false)
                .map(Into::into)
                .map_err(|error| error.to_string())
        };
        let name = self.split()?;
        let mut steps = match name {
            "default" => SPLIT_DEFAULT.into_iter().map(split).collect::<Result<Vec<_>, _>>()?,
            "gpt-2" => vec![split(SPLIT_GPT2)?],
            "smollm" => vec![split(r"\p{N}")?, split(SPLIT_GPT2)?],
            "qwen2" => vec![split(SPLIT_QWEN2)?],
            "llama-bpe" | "llama3" | "llama-v3" | "smaug-bpe" | "lfm2" => vec![split(SPLIT_LLAMA3)?],
            other => {
                return Err(format!("the way `{other}` of splitting text is not supported; known: {KNOWN_SPLITS}"));
            }
        };
        if name == "qwen2" {
            tokenizer.with_normalizer(Some(NFC)).map_err(|error| error.to_string())?;
        }
        steps.push(ByteLevel::new(false, false, false).into());
        tokenizer.with_pre_tokenizer(Some(Sequence::new(steps)));
        tokenizer.with_decoder(Some(ByteLevelDecoder::new(false, false, false)));
        Ok(tokenizer)
    }

    /// SentencePiece stores no merges: any two tokens whose concatenation is a token may merge, better scores first.
    fn sentence_piece(&self) -> Result<Tokenizer, String> {
        let tokens = self.tokens;
        let scores: Vec<f32> = match self.content.metadata.get("tokenizer.ggml.scores") {
            Some(Value::Array(items)) if items.len() == tokens.len() => {
                items.iter().map(|item| item.to_f32().unwrap_or(f32::MIN)).collect()
            }
            _ => return Err("`tokenizer.ggml.scores` is missing or has another length than the tokens".to_owned()),
        };
        let ids: HashMap<&str, usize> = tokens.iter().enumerate().map(|(id, token)| (token.as_str(), id)).collect();
        let mut candidates: Vec<(usize, usize, usize)> = Vec::new();
        for (merged, token) in tokens.iter().enumerate() {
            for (border, _) in token.char_indices().skip(1) {
                if let (Some(&left), Some(&right)) = (ids.get(&token[..border]), ids.get(&token[border..])) {
                    candidates.push((merged, left, right));
                }
            }
        }
        candidates.sort_by(|a, b| scores[b.0].total_cmp(&scores[a.0]).then(a.cmp(b)));
        let merges =
            candidates.into_iter().map(|(_, left, right)| (tokens[left].clone(), tokens[right].clone())).collect();
        let mut tokenizer = self.build(merges)?;
        tokenizer.with_normalizer(Some(escaped_spaces()?)).map_err(|error| error.to_string())?;
        let steps: Vec<DecoderWrapper> = vec![
            Replace::new(SPACE, " ").map_err(|error| error.to_string())?.into(),
            ByteFallback::new().into(),
            Fuse::new().into(),
        ];
        tokenizer.with_decoder(Some(DecoderSequence::new(steps)));
        Ok(tokenizer)
    }

    fn build(&self, mut merges: Vec<(String, String)>) -> Result<Tokenizer, String> {
        let vocabulary: HashMap<String, u32> =
            self.tokens.iter().enumerate().map(|(id, token)| (token.clone(), id as u32)).collect();
        // The library panics on merges that lead nowhere; they are damage, and named.
        for (left, right) in &merges {
            for part in [left, right] {
                if !vocabulary.contains_key(part) {
                    return Err(format!("a merge names `{part}`, which is no token"));
                }
            }
            if !vocabulary.contains_key(&format!("{left}{right}")) {
                return Err(format!("the merge of `{left}` and `{right}` gives no token"));
            }
        }
        // Nobody's words may grow into a control token (F27).
        merges.retain(|(left, right)| !self.control.contains(&vocabulary[&format!("{left}{right}")]));
        let sentence_piece = self.kind == Kind::SentencePiece;
        let mut builder = BPE::builder()
            .vocab_and_merges(vocabulary.into_iter().collect::<tokenizers::models::bpe::Vocab>(), merges)
            .byte_fallback(sentence_piece)
            .fuse_unk(sentence_piece)
            .ignore_merges(!sentence_piece && self.like_llama3());
        if let Some(unknown) = self.unknown.filter(|_| sentence_piece).and_then(|id| self.tokens.get(id as usize)) {
            builder = builder.unk_token(unknown.clone());
        }
        Ok(Tokenizer::new(builder.build().map_err(|error| error.to_string())?))
    }
}

/// The normaliser of words that begin with a space nobody wrote.
pub(super) fn space_before() -> Result<NormalizerSequence, String> {
    Ok(NormalizerSequence::new(vec![Prepend::new(SPACE.to_owned()).into(), escaped_spaces()?]))
}

fn escaped_spaces() -> Result<NormalizerWrapper, String> {
    Replace::new(" ", SPACE).map(Into::into).map_err(|error| error.to_string())
}

/// A list of strings that must be there.
pub(super) fn strings(content: &Content, key: &str) -> Result<Vec<String>, LoadError> {
    let fault = || LoadError::Metadata { key: key.to_owned(), problem: "missing or not a list of strings".to_owned() };
    let Some(Value::Array(items)) = content.metadata.get(key) else { return Err(fault()) };
    let texts = items.iter().map(|item| item.to_string().cloned()).collect::<Result<Vec<_>, _>>();
    texts.map_err(|_| fault())
}

/// A list of sizes; what is none is 0.
pub(super) fn sizes(content: &Content, key: &str) -> Vec<usize> {
    match content.metadata.get(key) {
        Some(Value::Array(items)) => items.iter().map(|item| as_size(item).unwrap_or(0)).collect(),
        _ => Vec::new(),
    }
}
