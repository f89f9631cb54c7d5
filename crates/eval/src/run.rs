//! Rankings, and the run files of TREC: `query Q0 document rank score tag`, a line a document.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::collection::lines;
use crate::error::EvalError;

/// A document of a ranking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    /// Identifier of the document.
    pub document: String,
    /// Falls from rank to rank.
    pub score: f32,
}

/// The rankings of one system.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    rankings: BTreeMap<String, Vec<Ranked>>,
}

impl Run {
    /// An empty run.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the ranking of a query, best first. Programs that read run files order by score, and ties each in their own
    /// way: a score that does not fall is lowered to the next smaller number, so that the order given is the only one.
    pub fn insert(&mut self, query: &str, ranking: impl IntoIterator<Item = (String, f32)>) {
        let mut ceiling = f32::INFINITY;
        let falling = ranking.into_iter().map(|(document, score)| {
            let score = if score < ceiling { score } else { ceiling.next_down() };
            ceiling = score;
            Ranked { document, score }
        });
        self.rankings.insert(query.to_owned(), falling.collect());
    }

    /// The documents found for a query, best first; none if it is not in the run.
    #[must_use]
    pub fn documents(&self, query: &str) -> Vec<&str> {
        let ranking = self.rankings.get(query).map(Vec::as_slice).unwrap_or_default();
        ranking.iter().map(|ranked| ranked.document.as_str()).collect()
    }

    /// Writes the run as TREC does, under the name `tag`.
    ///
    /// # Errors
    /// If an identifier has white space, or writing fails.
    pub fn write(&self, path: &Path, tag: &str) -> Result<(), EvalError> {
        for identifier in self
            .rankings
            .iter()
            .flat_map(|(query, ranking)| std::iter::once(query).chain(ranking.iter().map(|ranked| &ranked.document)))
        {
            if identifier.contains(char::is_whitespace) {
                return Err(EvalError::Identifier { identifier: identifier.clone() });
            }
        }
        let write = || -> io::Result<()> {
            let mut out = io::BufWriter::new(std::fs::File::create(path)?);
            for (query, ranking) in &self.rankings {
                for (ranked, rank) in ranking.iter().zip(1..) {
                    writeln!(out, "{query} Q0 {} {rank} {} {tag}", ranked.document, ranked.score)?;
                }
            }
            out.flush()
        };
        write().map_err(EvalError::io(path))
    }

    /// Reads a run file; documents are ordered by score.
    ///
    /// # Errors
    /// If it can't be read, or a line has not six fields with a number as the fifth.
    pub fn read(path: &Path) -> Result<Self, EvalError> {
        let mut rankings: BTreeMap<String, Vec<Ranked>> = BTreeMap::new();
        for line in lines(path)? {
            let (number, line) = line?;
            let fields: Vec<&str> = line.split_whitespace().collect();
            let ranked = match fields[..] {
                [query, _, document, _, score, _] => {
                    score.parse().ok().map(|score| (query, Ranked { document: document.to_owned(), score }))
                }
                _ => None,
            };
            let Some((query, ranked)) = ranked else {
                let problem = "not `query Q0 document rank score tag`".to_owned();
                return Err(EvalError::Line { path: path.to_owned(), line: number, problem });
            };
            rankings.entry(query.to_owned()).or_default().push(ranked);
        }
        for ranking in rankings.values_mut() {
            ranking.sort_by(|a, b| b.score.total_cmp(&a.score));
        }
        Ok(Self { rankings })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m41_a_run_file_says_what_was_ranked_and_ties_keep_their_order() {
        let mut run = Run::new();
        let ranking = [("b", 2.5), ("a", 2.5), ("c", 7.0), ("d", -1.0)];
        run.insert("q#1", ranking.map(|(document, score)| (document.to_owned(), score)));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.txt");
        run.write(&path, "anchorite-hybrid").expect("writes");
        let text = std::fs::read_to_string(&path).expect("reads");
        assert!(text.starts_with("q#1 Q0 b 1 2.5 anchorite-hybrid\nq#1 Q0 a 2 2.49"), "{text}");
        let read = Run::read(&path).expect("reads");
        assert_eq!(read, run, "every digit comes back");
        assert_eq!(read.documents("q#1"), ["b", "a", "c", "d"]);
        assert!(read.documents("q2").is_empty());
    }

    #[test]
    fn an_identifier_with_white_space_is_refused() {
        let mut run = Run::new();
        run.insert("q", [("two words".to_owned(), 1.0)]);
        let folder = tempfile::tempdir().expect("a folder");
        let refused = run.write(&folder.path().join("run.txt"), "x").expect_err("white space");
        assert!(refused.to_string().contains("two words"), "{refused}");
    }
}
