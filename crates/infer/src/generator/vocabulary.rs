//! The vocabulary of a generator: text to tokens and back.

use std::collections::{HashMap, HashSet};

use candle_core::quantized::gguf_file::Content;
use tokenizers::{AddedToken, Tokenizer};

use super::spec::as_size;
use super::words::{Words, sizes, space_before, strings};
use crate::error::LoadError;
use crate::guarded::guarded;

/// Kinds of token in `tokenizer.ggml.token_type`.
const UNKNOWN: usize = 2;
const CONTROL: usize = 3;
const USER_DEFINED: usize = 4;

/// The vocabulary of a generator: text to tokens and back.
pub(crate) struct Vocabulary {
    /// Finds control tokens in text: for what the chat template writes.
    with_control: Tokenizer,
    /// Reads control tokens as the characters they are written with: for everybody's words.
    plain: Tokenizer,
    /// As `plain`, for words that go on after others; only where a text begins with a space that nobody wrote.
    continued: Option<Tokenizer>,
    /// Tokens that nobody's words give.
    control_ids: HashSet<u32>,
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
    /// The bytes of a token of text are one character each, as in GPT-2's vocabulary; otherwise a space is U+2581.
    byte_level: bool,
}

impl Vocabulary {
    /// Builds the tokenizer of `content`; `origin` names the file in errors.
    pub(crate) fn from_gguf(content: &Content, origin: &str) -> Result<Self, LoadError> {
        let fault = |problem: String| LoadError::Tokenizer { origin: origin.to_owned(), problem };
        let tokens = strings(content, "tokenizer.ggml.tokens")?;
        let kinds = sizes(content, "tokenizer.ggml.token_type");
        let id =
            |key: &str| content.metadata.get(key).and_then(as_size).filter(|&id| id < tokens.len()).map(|id| id as u32);
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
        let unknown = kinds.iter().position(|&kind| kind == UNKNOWN).map(|id| id as u32);
        let words = Words::new(content, &tokens, &control, unknown).map_err(fault)?;
        let mut tokenizer = words.tokenizer().map_err(fault)?;
        let mut end: HashSet<u32> = [end_of_text, id("tokenizer.ggml.eot_token_id"), id("tokenizer.ggml.eom_token_id")]
            .into_iter()
            .flatten()
            .collect();
        // Files name one ending token; models write whichever ends a turn in their template.
        for text in ["<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>"] {
            if let Some(index) =
                tokens.iter().position(|token| token == text).filter(|index| control.contains(&(*index as u32)))
            {
                end.insert(index as u32);
            }
        }
        let added = |special: bool, ids: &mut dyn Iterator<Item = usize>| {
            // Looked for in the text as it was written, before spaces are replaced.
            ids.map(|index| AddedToken::from(tokens[index].clone(), special).normalized(false)).collect::<Vec<_>>()
        };
        let mut control_ids: Vec<usize> = control.iter().map(|&id| id as usize).collect();
        control_ids.sort_unstable();
        let user_defined = added(false, &mut (0..tokens.len()).filter(|&i| kinds.get(i) == Some(&USER_DEFINED)));
        tokenizer
            .add_special_tokens(added(true, &mut control_ids.iter().copied()))
            .map_err(|e| fault(e.to_string()))?;
        tokenizer.add_tokens(user_defined).map_err(|e| fault(e.to_string()))?;

        let text_of = |id: Option<u32>| id.map(|id| tokens[id as usize].clone()).unwrap_or_default();
        let mut control_texts: Vec<String> = control_ids.iter().map(|&id| tokens[id].clone()).collect();
        control_texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        let mut plain = tokenizer.clone();
        plain.set_encode_special_tokens(true);
        let continued = words.begin_with_space().then(|| plain.clone());
        if continued.is_some() {
            for tokenizer in [&mut tokenizer, &mut plain] {
                let normalizer = space_before().map_err(fault)?;
                tokenizer.with_normalizer(Some(normalizer)).map_err(|error| fault(error.to_string()))?;
            }
        }
        let begin_text = text_of(begin);
        let begin = begin.filter(|_| words.begin_with_token());
        let byte_level = words.byte_characters();
        Ok(Self {
            with_control: tokenizer,
            plain,
            continued,
            control_ids: control,
            control: control_texts,
            end,
            begin,
            begin_text,
            end_text: text_of(end_of_text),
            len: tokens.len(),
            byte_level,
        })
    }

    /// Tokens of what a template writes.
    pub(crate) fn encode_template(&self, text: &str) -> Result<Vec<u32>, String> {
        encode(&self.with_control, text)
    }

    /// Tokens of anybody's words; a control token written in them is plain text (F27).
    pub(crate) fn encode_plain(&self, text: &str) -> Result<Vec<u32>, String> {
        self.words(&self.plain, text)
    }

    /// Tokens of anybody's words that go on after `before`.
    pub(crate) fn encode_continuation(&self, text: &str, before: &[u32]) -> Result<Vec<u32>, String> {
        let starts = before.last().is_none_or(|last| self.control_ids.contains(last));
        self.words(self.continued.as_ref().filter(|_| !starts).unwrap_or(&self.plain), text)
    }

    fn words(&self, tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>, String> {
        let mut tokens = encode(tokenizer, text)?;
        // A vocabulary that looks whole words up finds a control token that is a word.
        while let Some(at) = tokens.iter().position(|token| self.control_ids.contains(token)) {
            tokens.splice(at..=at, self.spelled(tokens[at]));
        }
        Ok(tokens)
    }

    /// The tokens of the single characters that `control` is written with.
    fn spelled(&self, control: u32) -> Vec<u32> {
        let id = |token: &str| self.with_control.token_to_id(token).filter(|id| !self.control_ids.contains(id));
        let text = self.with_control.id_to_token(control).unwrap_or_default();
        let spell = |character: char| match id(character.encode_utf8(&mut [0; 4])) {
            Some(id) => vec![id],
            None => character.to_string().bytes().filter_map(|byte| id(&format!("<0x{byte:02X}>"))).collect(),
        };
        text.chars().flat_map(spell).collect()
    }

    /// The bytes that each token stands for in a text, by number; of a control token its name behind a byte that no text has.
    pub(crate) fn token_bytes(&self) -> Vec<Vec<u8>> {
        let characters = byte_characters();
        let bytes = |id: u32| {
            let Some(token) = self.with_control.id_to_token(id) else { return Vec::new() };
            if self.control_ids.contains(&id) {
                return [&[0xFF], token.as_bytes()].concat();
            }
            if self.byte_level {
                // What is none of the characters was added as it is.
                let bytes: Option<Vec<u8>> = token.chars().map(|c| characters.get(&c).copied()).collect();
                return bytes.unwrap_or_else(|| token.into_bytes());
            }
            let byte = token.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
            match byte.filter(|hex| hex.len() == 2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
                Some(byte) => vec![byte],
                None => token.replace('\u{2581}', " ").into_bytes(),
            }
        };
        (0..self.len as u32).map(bytes).collect()
    }

    /// Text of `tokens`, control tokens left out. Bytes that are no character yet come out as U+FFFD.
    pub(crate) fn decode(&self, tokens: &[u32]) -> Result<String, String> {
        self.with_control.decode(tokens, true).map_err(|error| error.to_string())
    }
}

/// The bytes that characters stand for in a byte-level vocabulary (Radford et al. 2019): printable ones for themselves, all
/// others for characters from 256 on.
fn byte_characters() -> HashMap<char, u8> {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut next = 256;
    (0..=255)
        .map(|byte: u8| {
            let code = if printable(byte) {
                u32::from(byte)
            } else {
                next += 1;
                next - 1
            };
            (char::from_u32(code).unwrap_or_default(), byte)
        })
        .collect()
}

fn encode(tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>, String> {
    // The tokenizer's own patterns can give up on hostile input; that must not take the program down.
    match guarded(|| tokenizer.encode_fast(text, false)) {
        Some(Ok(encoding)) => Ok(encoding.get_ids().to_vec()),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("the tokenizer failed on this text".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use candle_core::quantized::gguf_file::Value;

    use super::super::random_gguf::{RandomModel, model};
    use super::*;

    fn read(model: &RandomModel) -> Result<Vocabulary, LoadError> {
        let content = Content::read(&mut Cursor::new(model.bytes())).expect("a file");
        Vocabulary::from_gguf(&content, "test.gguf")
    }

    fn texts(list: &[&str]) -> Value {
        Value::Array(list.iter().map(|text| Value::String((*text).to_owned())).collect())
    }

    fn problem(model: &RandomModel) -> String {
        read(model).err().expect("refused").to_string()
    }

    #[test]
    fn an_unknown_split_is_refused_by_name_with_the_known_ones() {
        let message = problem(&model("qwen2").with("tokenizer.ggml.pre", Value::String("tekken".to_owned())));
        assert!(message.contains("test.gguf") && message.contains("`tekken`"), "{message}");
        for known in ["default", "gpt-2", "smollm", "qwen2", "llama-bpe", "llama3", "llama-v3", "smaug-bpe", "lfm2"] {
            assert!(message.contains(known), "{message}");
            assert!(
                read(&model("qwen2").with("tokenizer.ggml.pre", Value::String(known.to_owned()))).is_ok(),
                "{known}"
            );
        }
    }

    #[test]
    fn an_unknown_kind_is_refused_by_name_with_the_known_ones() {
        let message = problem(&model("qwen2").with("tokenizer.ggml.model", Value::String("bert".to_owned())));
        assert!(message.contains("`bert`") && message.contains("gpt2, llama"), "{message}");
    }

    #[test]
    fn f14_merges_of_what_is_no_token_are_refused() {
        let merged = |merge: &str| problem(&model("qwen2").with("tokenizer.ggml.merges", texts(&["h e", merge])));
        assert!(merged("q nothing").contains("`nothing`, which is no token"));
        assert!(merged("nothing q").contains("`nothing`, which is no token"));
        assert!(merged("q x").contains("`q` and `x` gives no token"));
        assert!(merged("qx").contains("`qx` has no space"));
        assert!(merged("").contains("has no space"));
        let message = problem(&model("qwen2").with("tokenizer.ggml.merges", Value::U32(7)));
        assert!(message.contains("tokenizer.ggml.merges"), "{message}");
    }

    #[test]
    fn f14_damaged_lists_of_tokens_are_refused() {
        let message = problem(&model("gemma3").with("tokenizer.ggml.scores", Value::Array(vec![Value::F32(0.0)])));
        assert!(message.contains("tokenizer.ggml.scores"), "{message}");
        let message = problem(&model("gemma3").with("tokenizer.ggml.tokens", Value::Array(vec![Value::U32(0)])));
        assert!(message.contains("tokenizer.ggml.tokens"), "{message}");
        let twice = model("qwen2").with("tokenizer.ggml.merges", texts(&["h e", "h e", "he he"]));
        assert!(problem(&twice).contains("gives no token"));
    }

    /// A vocabulary in which `word` is a control token, though it is written with letters or signs only.
    fn with_control(name: &str, word: &str) -> Vocabulary {
        let base = model(name);
        let list = |key: &str| {
            let value = base.metadata.iter().find(|(name, _)| name == key).expect("a list");
            value.1.to_vec().expect("a list").clone()
        };
        let (tokens, mut kinds) = (list("tokenizer.ggml.tokens"), list("tokenizer.ggml.token_type"));
        let at = tokens.iter().position(|token| token.to_string().is_ok_and(|token| token == word)).expect("a token");
        kinds[at] = Value::I32(CONTROL as i32);
        read(&base.with("tokenizer.ggml.token_type", Value::Array(kinds))).expect("a vocabulary")
    }

    #[test]
    fn f27_no_words_give_a_control_token() {
        // Reached by merges, by looking whole words up, and by scores.
        for (name, word, written) in
            [("qwen2", "Ġworld", " world"), ("llama", "hello", "hello"), ("gemma3", "lighthouse", "lighthouse")]
        {
            let vocabulary = with_control(name, word);
            let control = vocabulary.with_control.token_to_id(word).expect("a token");
            let tokens = vocabulary.encode_plain(&format!("the{written} {written}")).expect("encodes");
            assert!(!tokens.contains(&control), "{name}: {tokens:?}");
            assert_eq!(vocabulary.decode(&tokens).expect("decodes"), format!("the{written} {written}"));
        }
    }

    #[test]
    fn a_text_begins_with_a_token_where_the_model_was_made_so() {
        let begins = |name: &str| read(&model(name)).expect("a vocabulary").begin.is_some();
        assert!(begins("gemma3") && begins("split_llama3") && begins("split_lfm2"));
        assert!(!begins("split_qwen2") && !begins("split_smollm") && !begins("split_smaug"));
        let told = |name: &str, yes: bool| {
            let model = model(name).with("tokenizer.ggml.add_bos_token", Value::Bool(yes));
            read(&model).expect("a vocabulary").begin.is_some()
        };
        assert!(told("split_qwen2", true) && !told("gemma3", false));
    }

    #[test]
    fn m20_the_bytes_of_tokens_make_up_the_text() {
        for name in ["gemma3", "llama", "split_default", "llama_sentence_piece"] {
            let vocabulary = read(&model(name)).expect("a vocabulary");
            let bytes = vocabulary.token_bytes();
            assert_eq!(bytes.len(), vocabulary.len);
            for text in ["the world, in 1234 'll", "é 東京 🙂", "a\nb c\t"] {
                let tokens = vocabulary.encode_plain(text).expect("encodes");
                let whole: Vec<u8> = tokens.iter().flat_map(|token| bytes[*token as usize].clone()).collect();
                let whole = String::from_utf8(whole).expect("UTF-8");
                assert_eq!(whole.strip_prefix(' ').unwrap_or(&whole), text, "{name}");
            }
        }
    }

    #[test]
    fn f26_every_text_comes_back_as_it_was() {
        for name in ["gemma3", "llama", "split_default", "split_smollm"] {
            let vocabulary = read(&model(name)).expect("a vocabulary");
            for text in ["東京 🙂 سلام", "a\u{0}b\u{ad}\u{200b}", "  \t\r\n\n x  ", "<|im_start|><bos>"] {
                let tokens = vocabulary.encode_plain(text).expect("encodes");
                assert_eq!(vocabulary.decode(&tokens).expect("decodes"), text, "{name}");
            }
        }
    }
}
