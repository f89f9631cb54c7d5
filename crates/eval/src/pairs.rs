//! Pairs of a premise and a claim, labelled: `pairs.jsonl`.

use std::path::Path;

use serde_json::Value;

use crate::collection::{chosen, identifier, lines, parse, sets, text};
use crate::error::EvalError;

const PAIRS: &str = "pairs.jsonl";

/// A claim, and the text that is or is not evidence for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Identifier.
    pub id: String,
    /// The question that the claim answers; empty if there is none.
    pub question: String,
    /// The evidence.
    pub premise: String,
    /// The claim.
    pub claim: String,
    /// True for labels "entailed" and "supported".
    pub supported: bool,
}

/// The sets of pairs at `folder` (itself, or the folders in it), by name; of these those in `wanted` if any are named.
///
/// # Errors
/// If there is none, a wanted one is missing, or one can't be read.
pub fn pair_sets(folder: &Path, wanted: &[String]) -> Result<Vec<(String, Vec<Pair>)>, EvalError> {
    let folders = chosen(sets(folder, PAIRS, |folder| folder.join(PAIRS).is_file())?, wanted)?;
    folders
        .iter()
        .map(|folder| {
            let real = std::fs::canonicalize(folder).map_err(EvalError::io(folder))?;
            let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok((name, read_pairs(&folder.join(PAIRS))?))
        })
        .collect()
}

/// The pairs of one file.
///
/// # Errors
/// If it can't be read, or a line lacks a field or has an unknown label.
pub fn read_pairs(path: &Path) -> Result<Vec<Pair>, EvalError> {
    lines(path)?
        .map(|line| {
            let (number, line) = line?;
            let mut fields = parse(path, number, &line)?;
            let id = identifier(path, number, &fields)?;
            let label = text(path, number, &mut fields, "label")?;
            let supported = match label.as_str() {
                "entailed" | "supported" => true,
                "neutral" | "contradicted" | "unsupported" => false,
                _ => {
                    let problem = format!("unknown label `{label}`");
                    return Err(EvalError::Line { path: path.to_owned(), line: number, problem });
                }
            };
            let question = fields.get("question").and_then(Value::as_str).unwrap_or_default().to_owned();
            let premise = text(path, number, &mut fields, "premise")?;
            Ok(Pair { id, question, premise, claim: text(path, number, &mut fields, "claim")?, supported })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m20_labels_of_both_kinds_are_read_and_others_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(PAIRS);
        let line = |id: &str, label: &str| {
            format!("{{\"_id\": \"{id}\", \"premise\": \"p\", \"claim\": \"c\", \"label\": \"{label}\"}}\n")
        };
        std::fs::write(&path, line("1", "entailed") + &line("2", "neutral") + &line("3", "supported")).expect("writes");
        let sets = pair_sets(folder.path(), &[]).expect("pairs");
        assert_eq!(sets[0].1.iter().map(|pair| pair.supported).collect::<Vec<_>>(), [true, false, true]);
        std::fs::write(&path, line("1", "maybe")).expect("writes");
        let refused = read_pairs(&path).expect_err("an unknown label").to_string();
        assert!(refused.contains("line 1") && refused.contains("maybe"), "{refused}");
    }
}
