//! Conditions on documents, as a person writes them: `year >= 2020 and (lang = "en" or not tags = "draft")`.
//!
//! ```text
//! condition  = term { "or" term }
//! term       = factor { "and" factor }
//! factor     = "not" factor | "(" condition ")" | "has" field | field operator value
//! operator   = "=" | "!=" | "<" | "<=" | ">" | ">=" | "~"          ("~": a pattern with * and ?)
//! field      = source | title | owner | access | added | dated | a key of the metadata, a.b for b within a
//! value      = "text" | 'text' | word | number | true | false
//! ```
//!
//! A field that holds a list fulfils a condition if one of its values does; a field that is absent fulfils none, `!=`
//! included. Numbers are compared with numbers and texts with texts. `added` and `dated` are compared with a day
//! (`2024-05-01`) or a moment (`2024-05-01T12:00:00Z`), both in UTC.

use anchorite_core::days;
use std::fmt::Write as _;
use std::str::FromStr;

use rusqlite::types::Value;
use thiserror::Error;

/// Deepest nesting of parentheses and `not`.
const MOST_DEPTH: usize = 32;
/// Longest condition in bytes.
const MOST_BYTES: usize = 4096;

/// A condition on documents.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// All of them hold.
    All(Vec<Filter>),
    /// One of them holds.
    Any(Vec<Filter>),
    /// It does not hold.
    Not(Box<Filter>),
    /// The field is there.
    Has(Field),
    /// The field compares so with the value.
    Compare(Field, Operator, Operand),
}

/// What a condition is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// Where the document came from.
    Source,
    /// Its title.
    Title,
    /// Whose it is.
    Owner,
    /// Its access label.
    Access,
    /// When it was added.
    Added,
    /// The date it is of.
    Dated,
    /// A key of the metadata; further names lead into objects.
    Metadata(Vec<String>),
}

/// How a field and a value compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Less.
    Less,
    /// Less or equal.
    LessOrEqual,
    /// Greater.
    Greater,
    /// Greater or equal.
    GreaterOrEqual,
    /// Matches a pattern in which `*` stands for anything and `?` for one character; letters in either case.
    Like,
}

/// What a field is compared with.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A text.
    Text(String),
    /// A number.
    Number(f64),
    /// Yes or no.
    Flag(bool),
}

/// A condition that can't be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "the condition {condition:?} can't be read at character {at}: {problem}; write for example: year >= 2020 and lang = \"en\""
)]
pub struct FilterError {
    /// The condition.
    pub condition: String,
    /// The character where reading stopped, from 1.
    pub at: usize,
    /// What is wrong there.
    pub problem: String,
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(condition: &str) -> Result<Self, FilterError> {
        let mut reader = Reader { text: condition, at: 0, depth: 0 };
        if condition.len() > MOST_BYTES {
            return Err(reader.fail(format!("it is longer than {MOST_BYTES} bytes")));
        }
        let filter = reader.condition()?;
        reader.space();
        if reader.at < condition.len() {
            return Err(reader.fail("`and`, `or` or the end was expected"));
        }
        Ok(filter)
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn fail(&self, problem: impl Into<String>) -> FilterError {
        let at = self.text[..self.at].chars().count() + 1;
        // A condition that is far too long is not repeated whole.
        FilterError { condition: self.text.chars().take(200).collect(), at, problem: problem.into() }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Takes `sign` if it comes next.
    fn sign(&mut self, sign: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    /// Letters, digits and signs that stand in names, if some come next; nothing is taken.
    fn word(&self) -> &'t str {
        let rest = self.rest().trim_start();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || "_-.:/*?%@".contains(c))).unwrap_or(rest.len());
        &rest[..end]
    }

    /// Takes the word `keyword` if it comes next.
    fn keyword(&mut self, keyword: &str) -> bool {
        let found = self.word().eq_ignore_ascii_case(keyword);
        if found {
            self.space();
            self.at += keyword.len();
        }
        found
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, FilterError>) -> Result<T, FilterError> {
        if self.depth == MOST_DEPTH {
            return Err(self.fail(format!("it is nested deeper than {MOST_DEPTH}")));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn condition(&mut self) -> Result<Filter, FilterError> {
        let first = self.term()?;
        let mut terms = vec![first];
        while self.keyword("or") {
            terms.push(self.term()?);
        }
        Ok(if terms.len() == 1 { terms.remove(0) } else { Filter::Any(terms) })
    }

    fn term(&mut self) -> Result<Filter, FilterError> {
        let first = self.factor()?;
        let mut factors = vec![first];
        while self.keyword("and") {
            factors.push(self.factor()?);
        }
        Ok(if factors.len() == 1 { factors.remove(0) } else { Filter::All(factors) })
    }

    fn factor(&mut self) -> Result<Filter, FilterError> {
        if self.keyword("not") {
            return self.nested(Self::factor).map(|inner| Filter::Not(Box::new(inner)));
        }
        if self.sign("(") {
            let inner = self.nested(Self::condition)?;
            return if self.sign(")") { Ok(inner) } else { Err(self.fail("`)` was expected")) };
        }
        if self.keyword("has") {
            return self.field().map(Filter::Has);
        }
        let field = self.field()?;
        let operators = [
            ("!=", Operator::NotEqual),
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("=", Operator::Equal),
            ("<", Operator::Less),
            (">", Operator::Greater),
            ("~", Operator::Like),
        ];
        let Some((_, operator)) = operators.into_iter().find(|(sign, _)| self.sign(sign)) else {
            return Err(self.fail("one of = != < <= > >= ~ was expected"));
        };
        self.space();
        let before = self.at;
        let operand = self.operand()?;
        let moment = matches!(field, Field::Added | Field::Dated);
        let fits = match (&operand, operator) {
            (Operand::Text(text), _) if moment => operator != Operator::Like && days::milliseconds(text).is_some(),
            (_, _) if moment => false,
            (Operand::Text(_), _) => true,
            (Operand::Number(_) | Operand::Flag(_), Operator::Like) => false,
            (Operand::Number(_), _) => true,
            (Operand::Flag(_), operator) => matches!(operator, Operator::Equal | Operator::NotEqual),
        };
        if fits {
            return Ok(Filter::Compare(field, operator, operand));
        }
        self.at = before;
        Err(self.fail(if moment { "a day like 2024-05-01 was expected" } else { "this can't be compared so" }))
    }

    fn field(&mut self) -> Result<Field, FilterError> {
        self.space();
        let quoted = self.rest().starts_with(['"', '\'']);
        let name = if quoted { self.quoted()? } else { self.word().to_owned() };
        if name.is_empty() {
            return Err(self.fail("a field was expected"));
        }
        if quoted {
            return Ok(Field::Metadata(vec![name]));
        }
        self.at += name.len();
        Ok(match name.as_str() {
            "source" => Field::Source,
            "title" => Field::Title,
            "owner" => Field::Owner,
            "access" => Field::Access,
            "added" => Field::Added,
            "dated" => Field::Dated,
            _ => {
                let path = name.strip_prefix("metadata.").unwrap_or(&name);
                Field::Metadata(path.split('.').map(str::to_owned).collect())
            }
        })
    }

    fn operand(&mut self) -> Result<Operand, FilterError> {
        if self.rest().starts_with(['"', '\'']) {
            return self.quoted().map(Operand::Text);
        }
        let word = self.word();
        if word.is_empty() {
            return Err(self.fail("a value was expected"));
        }
        self.at += word.len();
        Ok(match word {
            "true" => Operand::Flag(true),
            "false" => Operand::Flag(false),
            _ => match word.parse::<f64>() {
                Ok(number) if number.is_finite() && !word.starts_with(|c: char| c.is_alphabetic()) => {
                    Operand::Number(number)
                }
                _ => Operand::Text(word.to_owned()),
            },
        })
    }

    /// A text between quotes; a quote within it is written twice.
    fn quoted(&mut self) -> Result<String, FilterError> {
        let quote = if self.rest().starts_with('"') { '"' } else { '\'' };
        let start = self.at;
        let mut text = String::new();
        let mut letters = self.rest()[1..].char_indices().peekable();
        while let Some((at, letter)) = letters.next() {
            if letter != quote {
                text.push(letter);
            } else if letters.next_if(|(_, next)| *next == quote).is_some() {
                text.push(quote);
            } else {
                self.at = start + 1 + at + 1;
                return Ok(text);
            }
        }
        Err(self.fail("the quote is not closed"))
    }
}

/// A condition in SQL over a row `s` of `sources` and `d` of `documents`, with its values in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sql {
    pub(crate) text: String,
    pub(crate) values: Vec<Value>,
}

impl Sql {
    pub(crate) fn value(&mut self, value: impl Into<Value>) {
        self.values.push(value.into());
        self.text.push('?');
    }

    pub(crate) fn joined(&mut self, parts: &[Filter], word: &str, empty: &str) {
        if parts.is_empty() {
            self.text.push_str(empty);
            return;
        }
        for (index, part) in parts.iter().enumerate() {
            self.text.push_str(if index == 0 { "(" } else { word });
            self.filter(part);
        }
        self.text.push(')');
    }

    pub(crate) fn filter(&mut self, filter: &Filter) {
        match filter {
            Filter::All(parts) => self.joined(parts, " AND ", "TRUE"),
            Filter::Any(parts) => self.joined(parts, " OR ", "FALSE"),
            Filter::Not(inner) => {
                self.text.push_str("NOT coalesce(");
                self.filter(inner);
                self.text.push_str(", FALSE)");
            }
            Filter::Has(Field::Metadata(path)) => {
                self.text.push_str("json_type(s.metadata, ");
                self.value(json_path(path));
                self.text.push_str(") IS NOT NULL");
            }
            Filter::Has(field) => {
                let _ = match field {
                    Field::Added | Field::Dated => write!(self.text, "TRUE"),
                    _ => write!(self.text, "{} <> ''", column(field)),
                };
            }
            Filter::Compare(Field::Metadata(path), operator, operand) => {
                self.text.push_str("EXISTS (SELECT 1 FROM json_each(s.metadata, ");
                self.value(json_path(path));
                let kinds = match operand {
                    Operand::Text(_) => ") j WHERE j.type = 'text' AND ",
                    Operand::Number(_) => ") j WHERE j.type IN ('integer', 'real') AND ",
                    Operand::Flag(_) => ") j WHERE j.type IN ('true', 'false') AND ",
                };
                self.text.push_str(kinds);
                self.compare("j.value", *operator, operand_value(operand));
                self.text.push(')');
            }
            Filter::Compare(field, operator, operand) => {
                let moment = matches!(field, Field::Added | Field::Dated);
                let value = match operand {
                    Operand::Text(text) if moment => Value::Integer(days::milliseconds(text).unwrap_or_default()),
                    // What a number looks like is a text here: a source may be called 7.
                    Operand::Number(number) => Value::Text(number.to_string()),
                    other => operand_value(other),
                };
                self.compare(column(field), *operator, value);
            }
        }
    }

    fn compare(&mut self, left: &str, operator: Operator, value: Value) {
        let sign = match operator {
            Operator::Equal => "=",
            Operator::NotEqual => "<>",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::Like => {
                let Value::Text(pattern) = value else {
                    self.text.push_str("FALSE");
                    return;
                };
                let _ = write!(self.text, "{left} LIKE ");
                self.value(like(&pattern));
                self.text.push_str(" ESCAPE '\\'");
                return;
            }
        };
        let _ = write!(self.text, "{left} {sign} ");
        self.value(value);
    }
}

fn operand_value(operand: &Operand) -> Value {
    match operand {
        Operand::Text(text) => Value::Text(text.clone()),
        Operand::Number(number) => Value::Real(*number),
        Operand::Flag(flag) => Value::Integer(i64::from(*flag)),
    }
}

fn column(field: &Field) -> &'static str {
    match field {
        Field::Source | Field::Metadata(_) => "s.source",
        Field::Title => "d.title",
        Field::Owner => "s.owner",
        Field::Access => "s.access",
        Field::Added => "s.added_at",
        Field::Dated => "s.dated",
    }
}

/// `$."a"."b"`. SQLite takes names between quotes as they are, and has no way to write a quote within: such a key is never
/// found.
fn json_path(path: &[String]) -> String {
    path.iter().fold("$".to_owned(), |path, name| format!("{path}.\"{}\"", name.replace('"', "\\\"")))
}

/// A pattern with `*` and `?` in the words of LIKE.
fn like(pattern: &str) -> String {
    let mut like = String::with_capacity(pattern.len());
    for letter in pattern.chars() {
        match letter {
            '*' => like.push('%'),
            '?' => like.push('_'),
            '%' | '_' | '\\' => like.extend(['\\', letter]),
            _ => like.push(letter),
        }
    }
    like
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn metadata(name: &str) -> Field {
        Field::Metadata(vec![name.to_owned()])
    }

    #[test]
    fn m36_and_binds_tighter_than_or() {
        let compare = |name: &str, number| Filter::Compare(metadata(name), Operator::Equal, Operand::Number(number));
        let read: Filter = "a = 1 or b = 2 and c = 3".parse().expect("reads");
        assert_eq!(read, Filter::Any(vec![compare("a", 1.0), Filter::All(vec![compare("b", 2.0), compare("c", 3.0)])]));
        let read: Filter = "(a=1 OR b=2)AND NOT c=3".parse().expect("reads");
        assert_eq!(
            read,
            Filter::All(vec![
                Filter::Any(vec![compare("a", 1.0), compare("b", 2.0)]),
                Filter::Not(Box::new(compare("c", 3.0)))
            ])
        );
    }

    #[test]
    fn m36_values_are_texts_numbers_and_flags() {
        let operand = |text: &str| match text.parse::<Filter>() {
            Ok(Filter::Compare(_, _, operand)) => operand,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(operand("k = 2020"), Operand::Number(2020.0));
        assert_eq!(operand("k = -1.5"), Operand::Number(-1.5));
        assert_eq!(operand("k = \"2020\""), Operand::Text("2020".into()));
        assert_eq!(operand("k = 'it''s'"), Operand::Text("it's".into()));
        assert_eq!(operand("k = en"), Operand::Text("en".into()));
        assert_eq!(operand("k = inf"), Operand::Text("inf".into()));
        assert_eq!(operand("k = true"), Operand::Flag(true));
        assert_eq!(operand("dated >= 2024-05-01"), Operand::Text("2024-05-01".into()));
    }

    #[test]
    fn m36_what_cannot_be_read_is_refused_with_the_place() {
        for (condition, at) in [
            ("", 1),
            ("year", 5),
            ("year >= ", 9),
            ("year >= 2020 lang = en", 14),
            ("(a = 1", 7),
            ("a = \"open", 5),
            ("dated > soon", 9),
            ("dated ~ 2024*", 9),
            ("flag < true", 8),
            ("k ~ 5", 5),
            ("ä = 1 or", 9),
        ] {
            let error = condition.parse::<Filter>().expect_err(condition);
            assert_eq!(error.at, at, "{error}");
        }
        assert!("(".repeat(100_000).parse::<Filter>().is_err());
        assert!("not ".repeat(500).parse::<Filter>().is_err());
    }

    proptest! {
        #[test]
        fn m36_any_text_is_a_condition_or_an_error(text in "[a-z()=<>~\"' .0-9ä]{0,40}") {
            let _ = text.parse::<Filter>();
        }
    }
}
