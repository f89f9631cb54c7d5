//! A tokenizer built from the metadata of a GGUF file.
//!
//! Two kinds exist: `gpt2` is byte-level BPE (Sennrich et al. 2016, Radford et al. 2019), `llama` is SentencePiece BPE (Kudo
//! and Richardson 2018), whose merges are not stored and follow from the scores. How text is split before merging is a
//! name (`tokenizer.ggml.pre`); an unknown name is refused, because a wrong split silently makes a model worse.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use candle_core::quantized::gguf_file::{Content, Value};
use tokenizers::decoders::DecoderWrapper;
use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::byte_level::ByteLevel as ByteLevelDecoder;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::sequence::Sequence as DecoderSequence;
use tokenizers::models::bpe::BPE;
use tokenizers::normalizers::replace::Replace;
use tokenizers::normalizers::unicode::NFC;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{AddedToken, SplitDelimiterBehavior, Tokenizer};

use super::spec::{as_size, string};
use crate::error::LoadError;

/// GPT-2's own split, and the two that Qwen 2 and Llama 3 derive from it (they differ in how digits group).
const SPLIT_GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)";
const SPLIT_QWEN2: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const SPLIT_LLAMA3: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const KNOWN_SPLITS: &str = "default, gpt-2, smollm, qwen2, llama-bpe, llama3, smaug-bpe, lfm2";

/// Kinds of token in `tokenizer.ggml.token_type`.
const CONTROL: usize = 3;
const USER_DEFINED: usize = 4;

/// The vocabulary of a generator: text to tokens and back.
pub(crate) struct Vocabulary {
    /// Finds control tokens in text: for what the chat template writes.
    with_control: Tokenizer,
    /// Reads control tokens as the characters they are written with: for everybody's words.
    plain: Tokenizer,
    /// Strings of the control tokens, longest first.
    pub(crate) control: Vec<String>,
    /// Tokens that end a turn.
    pub(crate) end: HashSet<u32>,
    /// Token that begins a text, if the model wants one.
    pub(crate) begin: Option<u32>,
    /// Strings of the beginning and ending tokens, for the template.
    pub(crate) begin_text: String,
    pub(crate) end_text: String,
    /// Number of tokens.
    pub(crate) len: usize,
}

impl Vocabulary {
    /// Builds the tokenizer of `content`; `origin` names the file in errors.
    pub(crate) fn from_gguf(content: &Content, origin: &str) -> Result<Self, LoadError> {
        let fault = |problem: String| LoadError::Tokenizer { origin: origin.to_owned(), problem };
        let tokens = strings(content, "tokenizer.ggml.tokens")?;
        let kinds = sizes(content, "tokenizer.ggml.token_type");
        let id = |key: &str| {
            content.metadata.get(key).and_then(as_size).filter(|&id| id < tokens.len()).map(|id| id as u32)
        };
        let flag = |key: &str| content.metadata.get(key).and_then(|value| value.to_bool().ok());
        let mut tokenizer = match string(content, "tokenizer.ggml.model")? {
            "gpt2" => byte_level(content, &tokens).map_err(fault)?,
            "llama" => sentence_piece(content, &tokens).map_err(fault)?,
            other => return Err(fault(format!("`{other}` is not supported; known kinds: gpt2, llama"))),
        };

        let begin = id("tokenizer.ggml.bos_token_id");
        let end_of_text = id("tokenizer.ggml.eos_token_id");
        let mut control: HashSet<u32> = kinds
            .iter()
            .enumerate()
            .filter(|&(index, &kind)| kind == CONTROL && index < tokens.len())
            .map(|(index, _)| index as u32)
            .collect();
        control.extend(begin);
        control.extend(end_of_text);
        let mut end: HashSet<u32> = [end_of_text, id("tokenizer.ggml.eot_token_id"), id("tokenizer.ggml.eom_token_id")]
            .into_iter()
            .flatten()
            .collect();
        // Files name one ending token; models write whichever ends a turn in their template.
        for text in ["<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>"] {
            if let Some(index) = tokens.iter().position(|token| token == text).filter(|index| control.contains(&(*index as u32))) {
                end.insert(index as u32);
            }
        }
        let added = |special: bool, ids: &mut dyn Iterator<Item = usize>| {
            ids.map(|index| AddedToken::from(tokens[index].clone(), special)).collect::<Vec<_>>()
        };
        let mut control_ids: Vec<usize> = control.iter().map(|&id| id as usize).collect();
        control_ids.sort_unstable();
        let user_defined = added(false, &mut (0..tokens.len()).filter(|&i| kinds.get(i) == Some(&USER_DEFINED)));
        tokenizer.add_special_tokens(added(true, &mut control_ids.iter().copied())).map_err(|e| fault(e.to_string()))?;
        tokenizer.add_tokens(user_defined).map_err(|e| fault(e.to_string()))?;

        let text_of = |id: Option<u32>| id.map(|id| tokens[id as usize].clone()).unwrap_or_default();
        let mut control_texts: Vec<String> = control_ids.iter().map(|&id| tokens[id].clone()).collect();
        control_texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        let mut plain = tokenizer.clone();
        plain.set_encode_special_tokens(true);
        Ok(Self {
            with_control: tokenizer,
            plain,
            control: control_texts,
            end,
            begin: begin.filter(|_| flag("tokenizer.ggml.add_bos_token").unwrap_or(begin.is_some() && uses_begin(content))),
            begin_text: text_of(begin),
            end_text: text_of(end_of_text),
            len: tokens.len(),
        })
    }

    /// Tokens of what a template writes.
    pub(crate) fn encode_template(&self, text: &str) -> Result<Vec<u32>, String> {
        encode(&self.with_control, text)
    }

    /// Tokens of anybody's words; a control token written in them is plain text (F27).
    pub(crate) fn encode_plain(&self, text: &str) -> Result<Vec<u32>, String> {
        encode(&self.plain, text)
    }

    /// Text of `tokens`, control tokens left out. Bytes that are no character yet come out as U+FFFD.
    pub(crate) fn decode(&self, tokens: &[u32]) -> Result<String, String> {
        self.with_control.decode(tokens, true).map_err(|error| error.to_string())
    }
}

fn encode(tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>, String> {
    // The tokenizer's own patterns can give up on hostile input; that must not take the program down.
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tokenizer.encode_fast(text, false))) {
        Ok(Ok(encoding)) => Ok(encoding.get_ids().to_vec()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the tokenizer failed on this text".to_owned()),
    }
}

fn uses_begin(content: &Content) -> bool {
    // SentencePiece models begin every text with their token unless the file says otherwise.
    matches!(string(content, "tokenizer.ggml.model"), Ok("llama"))
}

fn byte_level(content: &Content, tokens: &[String]) -> Result<Tokenizer, String> {
    let merges = strings(content, "tokenizer.ggml.merges").map_err(|error| error.to_string())?;
    let merges = merges
        .iter()
        .map(|merge| {
            let (left, right) = merge.split_once(' ').ok_or_else(|| format!("the merge `{merge}` has no space"))?;
            Ok((left.to_owned(), right.to_owned()))
        })
        .collect::<Result<Vec<_>, String>>()?;
    let mut tokenizer = build(tokens, merges, false)?;
    let name = match content.metadata.get("tokenizer.ggml.pre") {
        Some(value) => value.to_string().map_err(|error| error.to_string())?.as_str(),
        None => "default",
    };
    let split = |pattern: &str| -> Result<PreTokenizerWrapper, String> {
        Split::new(SplitPattern::Regex(pattern.to_owned()), SplitDelimiterBehavior::Isolated, false)
            .map(Into::into)
            .map_err(|error| error.to_string())
    };
    let mut steps = match name {
        "default" | "gpt-2" => vec![split(SPLIT_GPT2)?],
        "smollm" => vec![split(r"\p{N}")?, split(SPLIT_GPT2)?],
        "qwen2" => vec![split(SPLIT_QWEN2)?],
        "llama-bpe" | "llama3" | "llama-v3" | "smaug-bpe" | "lfm2" => vec![split(SPLIT_LLAMA3)?],
        other => return Err(format!("the way `{other}` of splitting text is not supported; known: {KNOWN_SPLITS}")),
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
fn sentence_piece(content: &Content, tokens: &[String]) -> Result<Tokenizer, String> {
    let scores: Vec<f32> = match content.metadata.get("tokenizer.ggml.scores") {
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
    let mut tokenizer = build(tokens, merges, true)?;
    tokenizer
        .with_normalizer(Some(Replace::new(" ", "\u{2581}").map_err(|error| error.to_string())?))
        .map_err(|error| error.to_string())?;
    let steps: Vec<DecoderWrapper> = vec![
        Replace::new("\u{2581}", " ").map_err(|error| error.to_string())?.into(),
        ByteFallback::new().into(),
        Fuse::new().into(),
    ];
    tokenizer.with_decoder(Some(DecoderSequence::new(steps)));
    Ok(tokenizer)
}

fn build(tokens: &[String], merges: Vec<(String, String)>, byte_fallback: bool) -> Result<Tokenizer, String> {
    let vocabulary: HashMap<String, u32> =
        tokens.iter().enumerate().map(|(id, token)| (token.clone(), id as u32)).collect();
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
    let model = BPE::builder()
        .vocab_and_merges(vocabulary.into_iter().collect::<tokenizers::models::bpe::Vocab>(), merges)
        .byte_fallback(byte_fallback)
        .fuse_unk(byte_fallback)
        .build()
        .map_err(|error| error.to_string())?;
    Ok(Tokenizer::new(model))
}

fn strings(content: &Content, key: &str) -> Result<Arc<Vec<String>>, LoadError> {
    let fault = || LoadError::Metadata { key: key.to_owned(), problem: "missing or not a list of strings".to_owned() };
    let Some(Value::Array(items)) = content.metadata.get(key) else { return Err(fault()) };
    let texts = items.iter().map(|item| item.to_string().cloned()).collect::<Result<Vec<_>, _>>();
    texts.map(Arc::new).map_err(|_| fault())
}

fn sizes(content: &Content, key: &str) -> Vec<usize> {
    match content.metadata.get(key) {
        Some(Value::Array(items)) => items.iter().map(|item| as_size(item).unwrap_or(0)).collect(),
        _ => Vec::new(),
    }
}
