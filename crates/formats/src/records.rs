//! JSONL: one document a line, read line by line. Only one line is held at a time.

use std::io::{self, BufRead, BufReader, Read};

use anchorite_core::{Document, LimitExceeded, Limits};
use serde_json::{Map, Value};

use crate::decode::{DecodeWarning, begins_as_utf16, lossy, without_mark, without_nul};
use crate::item::{ExtractError, Item, Remark, SkipReason};

/// The records of one JSONL file.
pub(crate) struct Records {
    reader: Box<dyn BufRead + Send>,
    /// The file, as documents name it.
    name: String,
    limits: Limits,
    line: u64,
    bytes: u64,
    buffer: Vec<u8>,
    over: bool,
}

impl Records {
    /// `bytes` are those of the file, decompressed.
    pub(crate) fn new(bytes: impl Read + Send + 'static, name: String, limits: &Limits) -> Self {
        // One byte more than allowed shows that there is more.
        let reader = Box::new(BufReader::with_capacity(1 << 16, bytes.take(limits.file_bytes.saturating_add(1))));
        Self { reader, name, limits: limits.clone(), line: 0, bytes: 0, buffer: Vec::new(), over: false }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The next record; an error of the bytes underneath is the last.
    pub(crate) fn next(&mut self) -> io::Result<Option<Item>> {
        while !self.over && self.read_line()? {
            if self.bytes > self.limits.file_bytes {
                self.over = true;
                return Ok(Some(self.too_large(self.name.clone(), "file_bytes", self.bytes, self.limits.file_bytes)));
            }
            if self.line == 1 && begins_as_utf16(&self.buffer) {
                self.over = true;
                return Ok(Some(Item::Error(ExtractError::Encoding { path: self.name.clone() }.into())));
            }
            let limit = self.limits.line_bytes;
            if self.buffer.len() > limit {
                let rest = self.skip_line()?;
                let length = self.buffer.len() as u64 + rest;
                let what = format!("line {} of {}", self.line, self.name);
                return Ok(Some(self.too_large(what, "line_bytes", length, limit as u64)));
            }
            let bytes = if self.line == 1 { without_mark(&self.buffer) } else { &self.buffer };
            if !bytes.trim_ascii().is_empty() {
                return Ok(Some(self.record(bytes)));
            }
        }
        Ok(None)
    }

    /// Reads a line without its end into the buffer, or its beginning if it is too long. False at the end of the file.
    fn read_line(&mut self) -> io::Result<bool> {
        self.buffer.clear();
        let most = (self.limits.line_bytes as u64).saturating_add(1);
        let read = self.reader.by_ref().take(most).read_until(b'\n', &mut self.buffer)?;
        self.bytes += read as u64;
        self.line += 1;
        if self.buffer.last() == Some(&b'\n') {
            self.buffer.pop();
        }
        Ok(read > 0)
    }

    /// Reads on to the end of the line and keeps nothing; how many bytes it had.
    fn skip_line(&mut self) -> io::Result<u64> {
        let skipped = self.reader.skip_until(b'\n')? as u64;
        self.bytes += skipped;
        Ok(skipped)
    }

    fn too_large(&self, what: String, limit: &'static str, actual: u64, allowed: u64) -> Item {
        Item::Error(LimitExceeded { what, limit, actual, allowed }.into())
    }

    fn record(&self, bytes: &[u8]) -> Item {
        let mut lost = DecodeWarning::default();
        let line = lossy(bytes, &mut lost);
        let error = |message: String| {
            Item::Error(ExtractError::Record { path: self.name.clone(), line: self.line, message }.into())
        };
        let fields: Map<String, Value> = match serde_json::from_str(&line) {
            Ok(fields) => fields,
            Err(problem) => return error(json_problem(&problem)),
        };
        match record(fields, &self.name, self.line, lost, &self.limits) {
            Ok(item) => item,
            Err(message) => error(message),
        }
    }
}

/// The document of a record: `_id`, or `number` for want of one, `title`, `text`; what is left is metadata. The error is
/// what is wrong with the record.
pub(crate) fn record(
    mut fields: Map<String, Value>,
    name: &str,
    number: u64,
    mut lost: DecodeWarning,
    limits: &Limits,
) -> Result<Item, String> {
    let id = match fields.remove("_id") {
        Some(Value::String(id)) if !id.is_empty() => id,
        Some(Value::Number(id)) => id.to_string(),
        None | Some(Value::Null | Value::String(_)) => number.to_string(),
        Some(_) => return Err("its \"_id\" is neither a string nor a number".to_owned()),
    };
    let title = match fields.remove("title") {
        Some(Value::String(title)) => without_nul(title, &mut lost),
        None | Some(Value::Null) => String::new(),
        Some(_) => return Err("its \"title\" is no string".to_owned()),
    };
    let text = match fields.remove("text") {
        Some(Value::String(text)) => without_nul(text, &mut lost),
        None => return Err("it has no \"text\"".to_owned()),
        Some(_) => return Err("its \"text\" is no string".to_owned()),
    };
    let source = format!("{name}#{id}");
    if text.trim_matches(is_blank).is_empty() {
        let reason = if title.trim().is_empty() { SkipReason::Blank } else { SkipReason::OnlyTitle };
        return Ok(Item::Skipped { source, reason });
    }
    if text.len() > limits.document_bytes {
        let (actual, allowed) = (text.len() as u64, limits.document_bytes as u64);
        let what = format!("the text of {source}");
        return Ok(Item::Error(LimitExceeded { what, limit: "document_bytes", actual, allowed }.into()));
    }
    let metadata = fields.into_iter().collect();
    let document = Document { source, title, text, metadata, outline: Vec::new() };
    Ok(Item::Document { document, remarks: lost.some().map(Remark::Lost).into_iter().collect() })
}

/// White space, and the byte order mark that some writers leave inside.
pub(crate) fn is_blank(character: char) -> bool {
    character.is_whitespace() || character == '\u{feff}'
}

/// serde's words without its line number, which is always 1.
fn json_problem(problem: &serde_json::Error) -> String {
    let words = problem.to_string();
    let words = words.split(" at line ").next().unwrap_or_default();
    format!("{words} (column {})", problem.column())
}
