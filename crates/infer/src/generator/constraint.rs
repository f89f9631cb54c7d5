//! Writing within a grammar: JSON of a schema, a regular expression, or a context-free grammar, by llguidance.
//!
//! Before each token those that the grammar does not allow are struck out. So that a text also *ends* within its cap, the
//! way from here to an end of the grammar is looked for after every token, and a token that would leave too little room for
//! it is not taken: the way is.

use std::collections::VecDeque;
use std::sync::Arc;

use anchorite_core::Constraint;
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, SimpleVob, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};

use super::vocabulary::Vocabulary;

/// What ends JSON soonest, in this order, where the grammar allows it.
const CLOSING: [&[u8]; 10] = [b"}", b"]", b",", b":", b"0", b"null", QUOTE, b"false", b"[", b"{"];
const QUOTE: &[u8] = b"\"";
/// What ends the free words of a pattern or grammar, before any of those.
const LINE: &[u8] = b"\n";
/// What is allowed together inside of a string only.
const WITHIN_STRINGS: [&[u8]; 2] = [b"^", b"~"];
/// Tokens tried at a place by the search that goes several ways.
const BRANCHES: usize = 12;
/// How deep it goes.
const DEPTH: usize = 4;
/// Where more tokens than so many ways' lengths are left, the way out is not looked for.
const AMPLE: usize = 4;

/// Makes guides for one vocabulary.
pub(super) struct Grammars {
    factory: ParserFactory,
    environment: TokEnv,
    closing: Vec<u32>,
    line: Option<u32>,
    quote: Option<u32>,
    within_strings: Vec<Option<u32>>,
}

impl Grammars {
    pub(super) fn new(vocabulary: &Vocabulary) -> Result<Self, String> {
        let mut end: Vec<u32> = vocabulary.end.iter().copied().collect();
        end.sort_unstable();
        let first = *end.first().ok_or("the vocabulary has no token that ends a text")?;
        let words = vocabulary.token_bytes();
        let info = TokRxInfo::new(words.len() as u32, first);
        let trie = TokTrie::from(&info, &words).with_eos_tokens(&end);
        let closing = CLOSING.iter().filter_map(|text| trie.token_id(text)).collect();
        let (quote, line) = (trie.token_id(QUOTE), trie.token_id(LINE));
        let within_strings = WITHIN_STRINGS.iter().map(|text| trie.token_id(text)).collect();
        let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new_simple(&environment).map_err(|error| error.to_string())?;
        factory.quiet();
        Ok(Self { factory, environment, closing, line, quote, within_strings })
    }

    /// A guide for one text of at most `cap` tokens.
    pub(super) fn guide(&self, constraint: &Constraint, cap: usize) -> Result<Guide<'_>, String> {
        let grammar = match constraint {
            Constraint::JsonSchema(schema) => TopLevelGrammar::from_json_schema(compact(schema)?),
            Constraint::Regex(pattern) => TopLevelGrammar::from_regex(pattern),
            Constraint::Grammar(grammar) => TopLevelGrammar::from_lark(grammar.clone()),
        };
        // Between the parts of JSON a line break may stand for ever.
        let lines = !matches!(constraint, Constraint::JsonSchema(_));
        let matcher = Matcher::new(self.factory.create_parser(grammar));
        if let Some(problem) = matcher.get_error() {
            return Err(first_line(&problem));
        }
        let mut guide = Guide {
            grammars: self,
            matcher,
            way: Vec::new(),
            shortest: 0,
            forced: VecDeque::new(),
            over: false,
            lines,
        };
        guide.way =
            guide.way_out(cap)?.ok_or_else(|| format!("no text of {cap} tokens or fewer was found that fits it"))?;
        guide.shortest = guide.way.len();
        Ok(guide)
    }
}

/// The schema, with JSON written without spaces between its parts, unless it says otherwise, and with numbers that fit where
/// they go.
fn compact(schema: &str) -> Result<Value, String> {
    let mut schema: Value = serde_json::from_str(schema).map_err(|error| format!("the schema is no JSON: {error}"))?;
    if schema == Value::Bool(true) {
        schema = json!({});
    }
    bound(&mut schema);
    let Some(parts) = schema.as_object_mut() else { return Err("a schema is an object or `true`".to_owned()) };
    parts.entry("x-guidance").or_insert_with(|| json!({"whitespace_flexible": false}));
    Ok(schema)
}

/// Bounds numbers that have no bounds: by the type that their format names, else by what a 64-bit float holds exactly. A
/// small model writes digits without end.
fn bound(schema: &mut Value) {
    const EXACT: i64 = 1 << 53;
    match schema {
        Value::Object(parts) => {
            let kind = parts.get("type").and_then(Value::as_str);
            if kind == Some("integer") || kind == Some("number") {
                let (least, most) = match parts.get("format").and_then(Value::as_str) {
                    Some("uint8") => (0, i64::from(u8::MAX)),
                    Some("uint16") => (0, i64::from(u16::MAX)),
                    Some("uint32") => (0, i64::from(u32::MAX)),
                    Some("uint64" | "uint") => (0, EXACT),
                    Some("int8") => (i64::from(i8::MIN), i64::from(i8::MAX)),
                    Some("int16") => (i64::from(i16::MIN), i64::from(i16::MAX)),
                    Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
                    _ => (-EXACT, EXACT),
                };
                if !parts.contains_key("minimum") && !parts.contains_key("exclusiveMinimum") {
                    parts.insert("minimum".to_owned(), least.into());
                }
                if !parts.contains_key("maximum") && !parts.contains_key("exclusiveMaximum") {
                    parts.insert("maximum".to_owned(), most.into());
                }
            }
            // Values that are given as such are no schemas.
            parts
                .iter_mut()
                .filter(|(name, _)| !matches!(name.as_str(), "enum" | "const" | "default"))
                .for_each(|(_, part)| bound(part));
        }
        Value::Array(parts) => parts.iter_mut().for_each(bound),
        _ => (),
    }
}

fn first_line(problem: &str) -> String {
    problem.lines().next().unwrap_or_default().to_owned()
}

/// Follows one text through its grammar.
pub(super) struct Guide<'a> {
    grammars: &'a Grammars,
    matcher: Matcher,
    /// Tokens from here to an end of the grammar.
    way: Vec<u32>,
    /// Tokens of the way from the beginning.
    shortest: usize,
    /// Tokens that are written whatever the logits say.
    forced: VecDeque<u32>,
    over: bool,
    /// Lines end the free words of this grammar.
    lines: bool,
}

impl Guide<'_> {
    /// The next token of the text, where `left` more may be written; `sample` draws from logits. `None` where it ends.
    pub(super) fn next(
        &mut self,
        logits: &mut [f32],
        left: usize,
        sample: impl FnOnce(&mut [f32]) -> Option<u32>,
    ) -> Result<Option<u32>, String> {
        if let Some(token) = self.forced.pop_front() {
            self.consume(token)?;
            self.over |= self.forced.is_empty();
            return Ok(Some(token));
        }
        if self.over || left == 0 {
            return Ok(None);
        }
        let mask = self.matcher.compute_mask_or_eos().map_err(|error| first_line(&error.to_string()))?;
        for (token, logit) in logits.iter_mut().enumerate() {
            if !allowed(&mask, token) {
                *logit = f32::NEG_INFINITY;
            }
        }
        let next = sample(logits).ok_or("no token is allowed")?;
        if self.grammars.environment.tok_trie().eos_tokens().contains(&next) {
            return Ok(None);
        }
        self.consume(next)?;
        if self.matcher.is_stopped() {
            self.over = true;
            return Ok(Some(next));
        }
        if left > AMPLE * (self.way.len() + self.shortest) + 64 {
            return Ok(Some(next));
        }
        match self.way_out(left - 1)? {
            Some(way) => {
                self.way = way;
                Ok(Some(next))
            }
            None => {
                self.matcher.rollback(1).map_err(|error| first_line(&error.to_string()))?;
                let way = self.way_out(left)?.ok_or("no way to its end was found within the cap")?;
                self.forced = way.into();
                match self.forced.pop_front() {
                    Some(token) => {
                        self.consume(token)?;
                        self.over |= self.forced.is_empty();
                        Ok(Some(token))
                    }
                    None => Ok(None),
                }
            }
        }
    }

    /// Sees to it that the text is whole.
    pub(super) fn complete(&mut self) -> Result<(), String> {
        if self.over || self.matcher.is_stopped() || self.accepting()? {
            Ok(())
        } else {
            Err("it is not whole within the tokens allowed".to_owned())
        }
    }

    fn consume(&mut self, token: u32) -> Result<(), String> {
        self.matcher.consume_token(token).map_err(|error| first_line(&error.to_string()))
    }

    /// Tokens to an end of the grammar, `most` of them at most; the guide stays where it is.
    fn way_out(&mut self, most: usize) -> Result<Option<Vec<u32>>, String> {
        let mut way = Vec::new();
        let found = self.straight(most, &mut way)?;
        self.back(way.len())?;
        if found {
            return Ok(Some(way));
        }
        for depth in 1..=DEPTH.min(most) {
            way.clear();
            if self.several(depth, &mut way)? {
                self.back(way.len())?;
                return Ok(Some(way));
            }
        }
        Ok(None)
    }

    fn back(&mut self, tokens: usize) -> Result<(), String> {
        if tokens == 0 {
            return Ok(());
        }
        self.matcher.rollback(tokens).map_err(|error| first_line(&error.to_string()))
    }

    fn accepting(&mut self) -> Result<bool, String> {
        self.matcher.is_accepting().map_err(|error| first_line(&error.to_string()))
    }

    fn mask(&mut self) -> Result<SimpleVob, String> {
        self.matcher.compute_mask().map_err(|error| first_line(&error.to_string()))
    }

    /// Goes by what ends JSON soonest, and where nothing of that is allowed by the longest token.
    fn straight(&mut self, most: usize, way: &mut Vec<u32>) -> Result<bool, String> {
        loop {
            if self.matcher.is_stopped() || self.accepting()? {
                return Ok(true);
            }
            if way.len() == most {
                return Ok(false);
            }
            let mask = self.mask()?;
            let allowed = |token: &u32| mask.is_allowed(*token);
            let in_string = self.grammars.within_strings.iter().all(|token| token.as_ref().is_some_and(allowed));
            let quote = self.grammars.quote.filter(|token| in_string && allowed(token));
            let leaving = if self.lines { self.leaving(&mask)? } else { None };
            let closing = leaving.or(quote).or_else(|| self.grammars.closing.iter().copied().find(allowed));
            let Some(token) = closing.or_else(|| self.longest(&mask)) else { return Ok(false) };
            self.consume(token)?;
            way.push(token);
        }
    }

    /// A line's end, bracket or quote that leads out of free words: after it far fewer tokens are allowed than before, or
    /// the text may end.
    fn leaving(&mut self, mask: &SimpleVob) -> Result<Option<u32>, String> {
        let before = mask.num_set();
        let candidates: Vec<u32> = self.grammars.line.iter().chain(&self.grammars.closing).copied().collect();
        for token in candidates.into_iter().filter(|&token| mask.is_allowed(token)) {
            self.consume(token)?;
            let out = self.matcher.is_stopped() || self.accepting()? || 2 * self.mask()?.num_set() < before;
            self.back(1)?;
            if out {
                return Ok(Some(token));
            }
        }
        Ok(None)
    }

    fn longest(&self, mask: &SimpleVob) -> Option<u32> {
        let trie = self.grammars.environment.tok_trie();
        let tokens =
            (0..trie.vocab_size() as u32).filter(|&token| mask.is_allowed(token) && !trie.is_special_token(token));
        tokens.max_by_key(|&token| (trie.token_len(token), std::cmp::Reverse(token)))
    }

    /// Tries several tokens at each place.
    fn several(&mut self, depth: usize, way: &mut Vec<u32>) -> Result<bool, String> {
        if self.matcher.is_stopped() || self.accepting()? {
            return Ok(true);
        }
        if way.len() == depth {
            return Ok(false);
        }
        let mask = self.mask()?;
        for token in self.branches(&mask) {
            self.consume(token)?;
            way.push(token);
            if self.several(depth, way)? {
                return Ok(true);
            }
            way.pop();
            self.back(1)?;
        }
        Ok(false)
    }

    /// Of the tokens allowed, the shortest ones that begin with different bytes, and the longest.
    fn branches(&self, mask: &SimpleVob) -> Vec<u32> {
        let trie = self.grammars.environment.tok_trie();
        let mut shortest: [Option<u32>; 256] = [None; 256];
        for token in
            (0..trie.vocab_size() as u32).filter(|&token| mask.is_allowed(token) && !trie.is_special_token(token))
        {
            if let Some(&byte) = trie.token(token).first() {
                let place = &mut shortest[usize::from(byte)];
                if place.is_none_or(|before| trie.token_len(token) < trie.token_len(before)) {
                    *place = Some(token);
                }
            }
        }
        self.longest(mask).into_iter().chain(shortest.into_iter().flatten()).take(BRANCHES).collect()
    }
}

fn allowed(mask: &SimpleVob, token: usize) -> bool {
    token < mask.len() && mask.is_allowed(token as u32)
}
