//! Checks a `tokenizer.json` before the tokenizer library reads it: the library trusts the file, and panics, overflows or
//! runs very long on some that are wrong (its issues 2094, 2151, 2198).
//!
//! What is held here: the file's size; every number of a token against the rows of the model's embedding; that merges make
//! tokens out of tokens; that the template around a text holds the text once; and that what is done to a text beforehand
//! can't blow it up.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;

use anchorite_core::{LimitExceeded, Limits};
use fancy_regex::Regex;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::ModelError;

const COPY_AGAIN: &str = "copy the file again from where the model came";

/// A word longer than this is unknown to any WordPiece model in use (100); time grows with its square.
const LONGEST_WORD: u64 = 1_000;
/// Steps of normalising and splitting, each in each other.
const MOST_STEPS: usize = 1_000;
/// What stands in for one match in a text: longer, it would make a small text a large one.
const LONGEST_REPLACEMENT: usize = 64;
/// Longer than any pattern of a tokenizer in use.
const LONGEST_PATTERN: usize = 2_048;
/// Special tokens around a text; models have two or three.
const MOST_SPECIAL: usize = 16;

/// Rows of a model's embeddings that a tokenizer's numbers point to.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// Of tokens.
    pub tokens: usize,
    /// Of segments: which of two texts a token belongs to.
    pub segments: usize,
}

#[derive(Deserialize)]
struct File {
    model: Model,
    #[serde(default)]
    added_tokens: Vec<Added>,
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    post_processor: Value,
    /// Not looked into, but read: what is no JSON inside them makes the library panic.
    #[serde(default, rename = "decoder")]
    _decoder: Value,
    #[serde(default, rename = "truncation")]
    _truncation: Value,
    #[serde(default, rename = "padding")]
    _padding: Value,
}

#[derive(Deserialize)]
struct Added {
    id: u64,
    content: String,
}

#[derive(Deserialize)]
struct Model {
    #[serde(rename = "type")]
    kind: Option<String>,
    vocab: Vocab,
    #[serde(default)]
    merges: Vec<Merge>,
    unk_token: Option<String>,
    unk_id: Option<u64>,
    continuing_subword_prefix: Option<String>,
    max_input_chars_per_word: Option<u64>,
    dropout: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Merge {
    Pair(String, String),
    Spaced(String),
}

impl Merge {
    fn parts(&self) -> Option<(&str, &str)> {
        match self {
            Self::Pair(left, right) => Some((left, right)),
            Self::Spaced(text) => text.split_once(' '),
        }
    }
}

/// Tokens with their numbers, or in the order of their numbers with a score each.
enum Vocab {
    Numbered(HashMap<String, u64>),
    Scored(Vec<(String, f64)>),
}

impl<'de> Deserialize<'de> for Vocab {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Tokens;
        impl<'de> Visitor<'de> for Tokens {
            type Value = Vocab;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tokens with their numbers, or a list of tokens with their scores")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vocab, A::Error> {
                let mut tokens = HashMap::new();
                while let Some((token, number)) = map.next_entry::<String, u64>()? {
                    if tokens.insert(token.clone(), number).is_some() {
                        return Err(A::Error::custom(format!("the token {token:?} is there twice")));
                    }
                }
                Ok(Vocab::Numbered(tokens))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vocab, A::Error> {
                let mut tokens = Vec::new();
                while let Some(token) = list.next_element()? {
                    tokens.push(token);
                }
                Ok(Vocab::Scored(tokens))
            }
        }
        deserializer.deserialize_any(Tokens)
    }
}

/// Checks the file at `path` for a model with `rows`.
///
/// # Errors
/// [`ModelError::Invalid`] naming the file and what is wrong with it, [`ModelError::Limit`] if it is larger than
/// [`Limits::tokenizer_bytes`], [`ModelError::Io`] if it can't be read.
pub fn check_tokenizer(path: &Path, rows: Rows, limits: &Limits) -> Result<(), ModelError> {
    let bytes = std::fs::metadata(path).map_err(ModelError::io("read", path))?.len();
    LimitExceeded::check(|| path.display().to_string(), "tokenizer_bytes", bytes, limits.tokenizer_bytes)?;
    let text = std::fs::read(path).map_err(ModelError::io("read", path))?;
    check_bytes(&text, rows).map_err(|reason| ModelError::invalid(path, reason, COPY_AGAIN))
}

/// As [`check_tokenizer`], of the bytes of a file; what is wrong with them comes back in words.
pub(crate) fn check_bytes(bytes: &[u8], rows: Rows) -> Result<(), String> {
    let file: File = serde_json::from_slice(bytes).map_err(|error| format!("can't be understood: {error}"))?;
    let numbers = check_vocabulary(&file.model, rows)?;
    check_kind(&file.model, &numbers)?;
    let mut added = HashSet::new();
    for token in &file.added_tokens {
        check_number(&format!("the added token {:?}", token.content), token.id, rows)?;
        if token.content.is_empty() || !added.insert(token.content.as_str()) {
            return Err(format!("has the added token {:?}, which is empty or there twice", token.content));
        }
    }
    let mut steps = 0;
    check_steps(&file.normalizer, &mut steps)?;
    check_steps(&file.pre_tokenizer, &mut steps)?;
    check_template(&file.post_processor, rows)
}

fn check_number(what: &str, number: u64, rows: Rows) -> Result<(), String> {
    if number < rows.tokens as u64 {
        return Ok(());
    }
    Err(format!("has {what} with the number {number}, and the model has {} rows of embeddings", rows.tokens))
}

/// The tokens by name; each number once.
fn check_vocabulary(model: &Model, rows: Rows) -> Result<HashMap<&str, u64>, String> {
    let numbers: HashMap<&str, u64> = match &model.vocab {
        Vocab::Numbered(tokens) => tokens.iter().map(|(token, number)| (token.as_str(), *number)).collect(),
        Vocab::Scored(tokens) => {
            if let Some((token, score)) = tokens.iter().find(|(token, score)| token.is_empty() || !score.is_finite()) {
                return Err(format!("has the token {token:?} with the score {score}"));
            }
            tokens.iter().zip(0..).map(|((token, _), number)| (token.as_str(), number)).collect()
        }
    };
    if numbers.is_empty() {
        return Err("has no tokens".to_owned());
    }
    let mut taken = HashSet::new();
    for (token, number) in &numbers {
        check_number(&format!("the token {token:?}"), *number, rows)?;
        if !taken.insert(number) {
            return Err(format!("gives the number {number} twice, once to the token {token:?}"));
        }
    }
    if let Vocab::Scored(tokens) = &model.vocab
        && tokens.len() != numbers.len()
    {
        return Err("has a token twice".to_owned());
    }
    Ok(numbers)
}

/// What each kind of model needs. The library tells older files, which don't name it, by their members; so do we.
fn check_kind(model: &Model, numbers: &HashMap<&str, u64>) -> Result<(), String> {
    let scored = matches!(model.vocab, Vocab::Scored(_));
    let guess = if scored {
        "Unigram"
    } else if model.merges.is_empty() {
        "WordPiece"
    } else {
        "BPE"
    };
    let kind = model.kind.as_deref().unwrap_or(guess);
    if scored != (kind == "Unigram") {
        return Err(format!("has the kind {kind}, and a vocabulary of another kind"));
    }
    let unknown = model.unk_token.as_deref();
    match kind {
        "WordPiece" | "WordLevel" => {
            let unknown = unknown.unwrap_or("[UNK]");
            if !numbers.contains_key(unknown) {
                return Err(format!("has no token {unknown:?} for what it does not know"));
            }
            let longest = model.max_input_chars_per_word.unwrap_or(1);
            if !(1..=LONGEST_WORD).contains(&longest) {
                return Err(format!("has `max_input_chars_per_word` {longest}; 1 to {LONGEST_WORD} are possible"));
            }
            Ok(())
        }
        "Unigram" => match model.unk_id {
            Some(id) if id >= numbers.len() as u64 => Err(format!("has `unk_id` {id} and {} tokens", numbers.len())),
            _ => Ok(()),
        },
        "BPE" => check_merges(model, numbers),
        other => Err(format!("has a model of the kind {other:?}; WordPiece, WordLevel, BPE and Unigram can be read")),
    }
}

fn check_merges(model: &Model, numbers: &HashMap<&str, u64>) -> Result<(), String> {
    if model.dropout.is_some_and(|dropout| dropout != 0.0) {
        return Err("has `dropout`, with which a text would be cut differently each time".to_owned());
    }
    if let Some(unknown) = model.unk_token.as_deref().filter(|token| !numbers.contains_key(token)) {
        return Err(format!("has no token {unknown:?} for what it does not know"));
    }
    let prefix = model.continuing_subword_prefix.as_deref().unwrap_or_default();
    for (index, merge) in model.merges.iter().enumerate() {
        let fault = |problem: String| Err(format!("has a merge, number {index}, {problem}"));
        let Some((left, right)) = merge.parts() else { return fault("of one part".to_owned()) };
        for part in [left, right] {
            if !numbers.contains_key(part) {
                return fault(format!("of {part:?}, which is no token"));
            }
        }
        // The library cuts as many bytes off the second part as the prefix has, wherever that is.
        let Some(rest) = right.get(prefix.len()..) else {
            return fault(format!("of {right:?}, which is shorter than the prefix {prefix:?}"));
        };
        if !numbers.contains_key(format!("{left}{rest}").as_str()) {
            return fault(format!("of {left:?} and {right:?}, which gives no token"));
        }
    }
    Ok(())
}

/// What is done to a text before it is cut: patterns and replacements of bounded length, and not without end.
fn check_steps(value: &Value, steps: &mut usize) -> Result<(), String> {
    *steps += 1;
    if *steps > MOST_STEPS {
        return Err(format!("does more than {MOST_STEPS} things to a text"));
    }
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| check_steps(item, steps)),
        Value::Object(members) => {
            members.iter().try_for_each(|(name, member)| check_member(name, member, steps))?;
            // By what it has, as the library tells it, which replaces under any name.
            match members.get("pattern") {
                Some(pattern) if members.contains_key("content") => check_replaced(pattern),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn check_member(name: &str, member: &Value, steps: &mut usize) -> Result<(), String> {
    let length = member.as_str().map_or(0, str::len);
    match name {
        // Kept in Base64 and used as a table, not as text.
        "precompiled_charsmap" => Ok(()),
        "content" | "prepend" | "replacement" if length > LONGEST_REPLACEMENT => {
            Err(format!("puts {length} bytes in the place of a match; {LONGEST_REPLACEMENT} are possible"))
        }
        _ if length > LONGEST_PATTERN => Err(format!("has a pattern of {length} bytes")),
        "Regex" => check_pattern(member.as_str().unwrap_or_default()),
        _ => check_steps(member, steps),
    }
}

/// References back to what was matched before take exponential time on hostile texts; no tokenizer in use has one.
fn check_pattern(pattern: &str) -> Result<(), String> {
    let mut escaped = false;
    for character in pattern.chars() {
        if escaped && (character.is_ascii_digit() && character != '0' || character == 'k') {
            return Err(format!("has the pattern {pattern:?}, which refers back to what it matched"));
        }
        escaped = character == '\\' && !escaped;
    }
    Ok(())
}

/// The library counts characters wrongly, and panics, where what is to be replaced can be nothing at all. Whether a pattern
/// can match nothing is tried on texts with something of everything; its length was checked.
fn check_replaced(pattern: &Value) -> Result<(), String> {
    const TRIED: [&str; 6] = ["", "a", " \n", "Ab 1, b2.\tc_", "é 東京 🙂", "\u{301}\u{a0}\u{200b}"];
    let nothing = |pattern: &str| Err(format!("replaces the pattern {pattern:?}, which matches where nothing stands"));
    if let Some(text) = pattern.get("String").and_then(Value::as_str) {
        return if text.is_empty() { nothing(text) } else { Ok(()) };
    }
    let Some(pattern) = pattern.get("Regex").and_then(Value::as_str) else { return Ok(()) };
    let regex = Regex::new(pattern).map_err(|error| format!("has the pattern {pattern:?}: {error}"))?;
    let empty = |text: &&str| regex.find_iter(text).flatten().any(|found| found.start() == found.end());
    if TRIED.iter().any(empty) { nothing(pattern) } else { Ok(()) }
}

/// What is put around a text: numbers that exist, and the text itself once.
fn check_template(value: &Value, rows: Rows) -> Result<(), String> {
    let Value::Object(members) = value else {
        return match value {
            Value::Null => Ok(()),
            _ => Err("has a `post_processor` that is no object".to_owned()),
        };
    };
    let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "Sequence" => {
            let inner = members.get("processors").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            if inner.len() > MOST_SPECIAL {
                return Err(format!("has {} processors behind each other", inner.len()));
            }
            inner.iter().try_for_each(|inner| check_template(inner, rows))
        }
        "TemplateProcessing" => {
            let special = members.get("special_tokens").and_then(Value::as_object);
            let special = special.ok_or("has a template without `special_tokens`")?;
            for (name, token) in special {
                let ids = token.get("ids").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                let tokens = token.get("tokens").and_then(Value::as_array).map_or(0, Vec::len);
                if ids.len() != tokens || ids.is_empty() || ids.len() > MOST_SPECIAL {
                    return Err(format!(
                        "has the special token {name:?} with {} numbers for {tokens} tokens",
                        ids.len()
                    ));
                }
                for id in ids {
                    let id =
                        id.as_u64().ok_or_else(|| format!("has the special token {name:?} with the number {id}"))?;
                    check_number(&format!("the special token {name:?}"), id, rows)?;
                }
            }
            check_pieces(members.get("single"), special, &[("A", 1), ("B", 0)], rows)?;
            check_pieces(members.get("pair"), special, &[("A", 1), ("B", 1)], rows)
        }
        "BertProcessing" | "RobertaProcessing" => ["sep", "cls"].into_iter().try_for_each(|name| {
            let id = members.get(name).and_then(|pair| pair.get(1)).and_then(Value::as_u64);
            check_number(&format!("the special token `{name}`"), id.unwrap_or(u64::MAX), rows)
        }),
        "ByteLevel" => Ok(()),
        other => Err(format!("has a `post_processor` of the kind {other:?}")),
    }
}

fn check_pieces(
    pieces: Option<&Value>,
    special: &serde_json::Map<String, Value>,
    wanted: &[(&str, usize)],
    rows: Rows,
) -> Result<(), String> {
    let Some(pieces) = pieces.and_then(Value::as_array) else { return Err("has a template without pieces".to_owned()) };
    if pieces.len() > MOST_SPECIAL {
        return Err(format!("has a template of {} pieces", pieces.len()));
    }
    let mut texts = Vec::new();
    for piece in pieces {
        let (text, token) = (piece.get("Sequence"), piece.get("SpecialToken"));
        let inner = text.or(token).ok_or_else(|| format!("has a template with the piece {piece}"))?;
        let name = inner.get("id").and_then(Value::as_str).unwrap_or_default();
        let segment = inner.get("type_id").and_then(Value::as_u64).unwrap_or(u64::MAX);
        if segment >= rows.segments as u64 {
            return Err(format!("has a template with the segment {segment}, and the model has {}", rows.segments));
        }
        if text.is_some() {
            texts.push(name);
        } else if !special.contains_key(name) {
            return Err(format!("has a template with {name:?}, which is none of its special tokens"));
        }
    }
    for (name, times) in wanted {
        let found = texts.iter().filter(|text| *text == name).count();
        if found != *times {
            return Err(format!("has a template that holds the text {name} {found} times instead of {times}"));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "tokenizer_tests.rs"]
mod tests;
