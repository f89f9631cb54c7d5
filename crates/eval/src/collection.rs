//! Test collections in the layout of BEIR (Thakur et al. 2021): `corpus.jsonl` (or `.jsonl.gz`), `queries.jsonl` and
//! `qrels.tsv`. Fields beyond the usual ones are kept; `source_doc` names documents that a query must not be given.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::error::EvalError;
use crate::metrics::Grades;

const CORPUS: [&str; 2] = ["corpus.jsonl", "corpus.jsonl.gz"];
const QUERIES: &str = "queries.jsonl";
const JUDGEMENTS: &str = "qrels.tsv";

/// A query, with all that its record says.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Identifier.
    pub id: String,
    /// What is asked.
    pub text: String,
    /// The record, without identifier and text.
    pub fields: Map<String, Value>,
}

impl Query {
    fn strings(&self, field: &str) -> Vec<String> {
        match self.fields.get(field) {
            Some(Value::Array(values)) => values.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Some(Value::String(value)) => vec![value.clone()],
            _ => Vec::new(),
        }
    }

    /// Answers, any of which counts; empty if none is known.
    #[must_use]
    pub fn answers(&self) -> Vec<String> {
        self.strings("answers")
    }

    /// Parts of the answer, each with its alternatives; empty unless the answer has several.
    #[must_use]
    pub fn answer_parts(&self) -> Vec<Vec<String>> {
        let parts = self.fields.get("answer_parts").and_then(Value::as_array);
        let alternatives = |part: &Value| match part {
            Value::Array(values) => values.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Value::String(value) => vec![value.clone()],
            _ => Vec::new(),
        };
        parts.map(|parts| parts.iter().map(alternatives).collect()).unwrap_or_default()
    }

    /// Whether the documents hold the answer: what the record says, true if it says nothing.
    #[must_use]
    pub fn is_answerable(&self) -> bool {
        let stated = self.fields.get("answerable").and_then(Value::as_bool);
        let kind = self.fields.get("answerability").and_then(Value::as_str);
        stated.unwrap_or(!matches!(kind, Some("unanswerable" | "underspecified")))
    }

    /// Documents that are taken out of a ranking before it is scored: those that the query was made from.
    #[must_use]
    pub fn excluded(&self) -> Vec<String> {
        self.strings("source_doc")
    }

    /// True if the record's `field` reads `value`.
    #[must_use]
    pub fn has(&self, field: &str, value: &str) -> bool {
        match self.fields.get(field) {
            Some(Value::String(text)) => text == value,
            Some(other) => serde_json::from_str::<Value>(value).is_ok_and(|value| value == *other),
            None => false,
        }
    }
}

/// One line of a corpus, as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its `_id`.
    pub id: String,
    /// The line, without its end.
    pub line: String,
}

/// One test collection. The corpus stays on disk.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Name of its folder.
    pub name: String,
    /// The file of documents.
    pub corpus: PathBuf,
    /// The queries, in the order of their identifiers.
    pub queries: Vec<Query>,
    /// Grades by query; empty if the set has none.
    pub judgements: BTreeMap<String, Grades>,
}

impl Collection {
    /// Reads queries and judgements of the set in `folder`.
    ///
    /// # Errors
    /// If a file can't be read or a line is not what the layout asks for.
    pub fn open(folder: &Path) -> Result<Self, EvalError> {
        let corpus = corpus_of(folder).ok_or(EvalError::NoCollection { path: folder.to_owned(), wanted: WANTED })?;
        let mut queries = read_queries(&folder.join(QUERIES))?;
        queries.sort_by(|a, b| a.id.cmp(&b.id));
        let judged = folder.join(JUDGEMENTS);
        let judgements = if judged.is_file() { read_judgements(&judged)? } else { BTreeMap::new() };
        let folder = std::fs::canonicalize(folder).map_err(EvalError::io(folder))?;
        let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
        Ok(Self { name, corpus, queries, judgements })
    }

    /// The queries that have a relevant document, in the order of their identifiers.
    #[must_use]
    pub fn judged_queries(&self) -> Vec<&Query> {
        let relevant = |query: &&Query| {
            self.judgements.get(&query.id).is_some_and(|grades| grades.values().any(|&grade| grade > 0))
        };
        self.queries.iter().filter(relevant).collect()
    }

    /// The documents, one after the other.
    ///
    /// # Errors
    /// If the file can't be opened; each item if its line is no record.
    pub fn records(&self) -> Result<impl Iterator<Item = Result<Record, EvalError>> + use<>, EvalError> {
        let path = self.corpus.clone();
        let lines = lines(&path)?;
        Ok(lines.map(move |line| {
            let (number, line) = line?;
            let fields: Map<String, Value> = parse(&path, number, &line)?;
            Ok(Record { id: identifier(&path, number, &fields)?, line })
        }))
    }

    /// SHA-256 of the file of documents, in hexadecimal.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn corpus_hash(&self) -> Result<String, EvalError> {
        let mut file = File::open(&self.corpus).map_err(EvalError::io(&self.corpus))?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = file.read(&mut buffer).map_err(EvalError::io(&self.corpus))?;
            if read == 0 {
                return Ok(hex(&hasher.finalize()));
            }
            hasher.update(&buffer[..read]);
        }
    }
}

const WANTED: &str = "corpus.jsonl and queries.jsonl";

fn corpus_of(folder: &Path) -> Option<PathBuf> {
    CORPUS.iter().map(|name| folder.join(name)).find(|path| path.is_file() && folder.join(QUERIES).is_file())
}

/// The sets at `folder`: itself, or the folders in it, by name; of these the ones in `wanted` if any are named.
///
/// # Errors
/// If there is none, a wanted one is missing, or one can't be read.
pub fn collections(folder: &Path, wanted: &[String]) -> Result<Vec<Collection>, EvalError> {
    let folders = sets(folder, WANTED, |folder| corpus_of(folder).is_some())?;
    chosen(folders, wanted)?.iter().map(|folder| Collection::open(folder)).collect()
}

/// `folder` itself if it is a set, else those in it that are, by name.
pub(crate) fn sets(
    folder: &Path,
    wanted: &'static str,
    is_set: impl Fn(&Path) -> bool,
) -> Result<Vec<PathBuf>, EvalError> {
    if is_set(folder) {
        return Ok(vec![folder.to_owned()]);
    }
    let entries = std::fs::read_dir(folder).map_err(EvalError::io(folder))?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut found: Vec<PathBuf> =
        paths.map_err(EvalError::io(folder))?.into_iter().filter(|path| is_set(path)).collect();
    found.sort();
    if found.is_empty() { Err(EvalError::NoCollection { path: folder.to_owned(), wanted }) } else { Ok(found) }
}

/// The folders named, in the order named; all if none is.
pub(crate) fn chosen(folders: Vec<PathBuf>, wanted: &[String]) -> Result<Vec<PathBuf>, EvalError> {
    if wanted.is_empty() {
        return Ok(folders);
    }
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let find = |wanted: &String| {
        folders.iter().find(|path| name(path) == *wanted).cloned().ok_or_else(|| EvalError::UnknownCollection {
            name: wanted.clone(),
            known: folders.iter().map(name).collect::<Vec<_>>().join(", "),
        })
    };
    wanted.iter().map(find).collect()
}

/// `items` in an order that depends on their identifiers alone and on no property of theirs: the head of it is a sample
/// that stays the same however long it is.
pub fn sampled<T>(mut items: Vec<T>, identifier: impl Fn(&T) -> &str) -> Vec<T> {
    items.sort_by_cached_key(|item| hex(&Sha256::digest(identifier(item).as_bytes())));
    items
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Lines that hold something, with their numbers; gzip is told by the name's ending.
pub(crate) fn lines(
    path: &Path,
) -> Result<impl Iterator<Item = Result<(usize, String), EvalError>> + use<>, EvalError> {
    let file = File::open(path).map_err(EvalError::io(path))?;
    let reader: Box<dyn BufRead> = if path.extension().is_some_and(|ending| ending == "gz") {
        Box::new(BufReader::new(MultiGzDecoder::new(file)))
    } else {
        Box::new(BufReader::new(file))
    };
    let path = path.to_owned();
    // Not `lines()`: only `\n` ends a line, and the last may lack it.
    let numbered = reader.split(b'\n').zip(1..).map(move |(line, number)| {
        let bytes = line.map_err(EvalError::io(&path))?;
        let line = String::from_utf8(bytes);
        let line =
            line.map_err(|_| EvalError::Line { path: path.clone(), line: number, problem: "not UTF-8".to_owned() })?;
        Ok((number, line.trim_end_matches('\r').to_owned()))
    });
    Ok(numbered.filter(|line| line.as_ref().map_or(true, |(_, line)| !line.trim().is_empty())))
}

pub(crate) fn parse(path: &Path, number: usize, line: &str) -> Result<Map<String, Value>, EvalError> {
    serde_json::from_str(line).map_err(|error| EvalError::Line {
        path: path.to_owned(),
        line: number,
        problem: format!("not a JSON record, from column {} on", error.column()),
    })
}

pub(crate) fn identifier(path: &Path, number: usize, fields: &Map<String, Value>) -> Result<String, EvalError> {
    match fields.get("_id") {
        Some(Value::String(id)) if !id.is_empty() => Ok(id.clone()),
        Some(Value::Number(id)) => Ok(id.to_string()),
        _ => Err(EvalError::Line {
            path: path.to_owned(),
            line: number,
            problem: "the record has no \"_id\"".to_owned(),
        }),
    }
}

pub(crate) fn text(
    path: &Path,
    number: usize,
    fields: &mut Map<String, Value>,
    field: &str,
) -> Result<String, EvalError> {
    match fields.remove(field) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(EvalError::Line {
            path: path.to_owned(),
            line: number,
            problem: format!("the record has no \"{field}\""),
        }),
    }
}

fn read_queries(path: &Path) -> Result<Vec<Query>, EvalError> {
    lines(path)?
        .map(|line| {
            let (number, line) = line?;
            let mut fields = parse(path, number, &line)?;
            let id = identifier(path, number, &fields)?;
            fields.remove("_id");
            Ok(Query { id, text: text(path, number, &mut fields, "text")?, fields })
        })
        .collect()
}

fn read_judgements(path: &Path) -> Result<BTreeMap<String, Grades>, EvalError> {
    let mut judgements: BTreeMap<String, Grades> = BTreeMap::new();
    // The first line is a heading.
    for line in lines(path)?.skip(1) {
        let (number, line) = line?;
        let wrong =
            |problem: &str| EvalError::Line { path: path.to_owned(), line: number, problem: problem.to_owned() };
        let fields: Vec<&str> = line.split('\t').collect();
        let [query, document, score] = fields[..] else {
            return Err(wrong("not query, document and score with tabs between them"));
        };
        let score: i64 = score.trim().parse().map_err(|_| wrong("the score is no whole number"))?;
        // TREC marks junk with negative grades; it is not relevant.
        let grade = u32::try_from(score.max(0)).map_err(|_| wrong("the score is too large"))?;
        judgements.entry(query.to_owned()).or_default().insert(document.to_owned(), grade);
    }
    Ok(judgements)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn set(folder: &Path) {
        std::fs::create_dir_all(folder).expect("a folder");
        let file = File::create(folder.join("corpus.jsonl.gz")).expect("a file");
        let mut gz = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        gz.write_all(b"{\"_id\": \"a#1\", \"title\": \"\", \"text\": \"one\"}\n{\"_id\": 2, \"text\": \"two\"}\n")
            .expect("writes");
        gz.finish().expect("writes");
        let queries = "{\"_id\": \"q2\", \"text\": \"?\", \"source_doc\": [\"2\"], \"answerable\": false}\n\
                       {\"_id\": \"q1\", \"text\": \"!\", \"answers\": [\"x\"], \"answer_parts\": [[\"x\", \"y\"]]}\n";
        std::fs::write(folder.join(QUERIES), queries).expect("writes");
        let judged = "query-id\tcorpus-id\tscore\nq1\ta#1\t2\nq1\t2\t-1\nq2\t2\t0\n";
        std::fs::write(folder.join(JUDGEMENTS), judged).expect("writes");
    }

    #[test]
    fn m41_a_folder_of_sets_and_a_set_are_read_alike() {
        let folder = tempfile::tempdir().expect("a folder");
        set(&folder.path().join("b"));
        set(&folder.path().join("a"));
        std::fs::create_dir(folder.path().join("none")).expect("a folder");
        let all = collections(folder.path(), &[]).expect("sets");
        assert_eq!(all.iter().map(|set| set.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let one = &collections(&folder.path().join("b"), &[]).expect("a set")[0];
        assert_eq!(one.queries.iter().map(|query| query.id.as_str()).collect::<Vec<_>>(), ["q1", "q2"]);
        assert_eq!(one.judged_queries().len(), 1, "a query without a relevant document is not judged");
        assert_eq!(one.judgements["q1"]["a#1"], 2);
        assert_eq!(one.queries[0].answers(), ["x"]);
        assert_eq!(one.queries[0].answer_parts(), [["x", "y"]]);
        assert!(one.queries[0].is_answerable() && !one.queries[1].is_answerable());
        assert_eq!(one.queries[1].excluded(), ["2"]);
        let records: Vec<Record> = one.records().expect("opens").collect::<Result<_, _>>().expect("records");
        assert_eq!(records.iter().map(|record| record.id.as_str()).collect::<Vec<_>>(), ["a#1", "2"]);
        assert_eq!(one.corpus_hash().expect("reads"), all[0].corpus_hash().expect("reads"));
    }

    #[test]
    fn errors_name_the_file_the_line_and_what_there_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let none = collections(folder.path(), &[]).expect_err("nothing there").to_string();
        assert!(none.contains("corpus.jsonl"), "{none}");
        set(&folder.path().join("a"));
        let unknown = collections(folder.path(), &["z".to_owned()]).expect_err("not there").to_string();
        assert!(unknown.contains('z') && unknown.contains("there are: a"), "{unknown}");
        std::fs::write(folder.path().join("a/qrels.tsv"), "heading\nq1\tonly\n").expect("writes");
        let line = collections(folder.path(), &[]).expect_err("two fields").to_string();
        assert!(line.contains("qrels.tsv, line 2"), "{line}");
    }

    #[test]
    fn a_longer_sample_begins_with_the_shorter_one() {
        let names: Vec<String> = (0..50).map(|index| format!("2hop_{index}")).collect();
        let all = sampled(names.iter().map(String::as_str).collect(), |name| name);
        let even: Vec<&str> = names.iter().map(String::as_str).rev().collect();
        assert_eq!(sampled(even, |name| name), all);
        assert_ne!(all, names, "the order is not that of the names");
    }
}
