//! What is looked at before a document is taken in: whose it is and how long it is kept, and whether it holds secrets.

use std::str::FromStr;

use anchorite_core::Document;
use anchorite_core::days;
use anchorite_store::{Custody, Expiry};
use anchorite_text::{SecretKind, redacted, secrets};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::ingest::{Attention, IngestReport};

/// Fields of a document's metadata that say what [`Custody`] says of all.
const OWNER: &str = "_owner";
const ACCESS: &str = "_access";
const DATED: [&str; 2] = ["_date", "date"];
const EXPIRES: &str = "_expires";

/// What is done with a document that has secrets in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SecretPolicy {
    /// Nobody looks for them.
    Allow,
    /// It is taken in, and the report tells of them.
    #[default]
    Flag,
    /// It is taken in with an asterisk for each of their bytes.
    Redact,
    /// It is not taken in.
    Refuse,
}

impl FromStr for SecretPolicy {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "allow" => Ok(Self::Allow),
            "flag" => Ok(Self::Flag),
            "redact" => Ok(Self::Redact),
            "refuse" => Ok(Self::Refuse),
            _ => Err(Error::UnknownName {
                what: "policy for secrets",
                name: name.into(),
                known: "allow, flag, redact, refuse",
            }),
        }
    }
}

/// Deals with the secrets of a document; false if it is not taken in because of them.
pub(crate) fn admit_secrets(document: &mut Document, policy: SecretPolicy, report: &mut IngestReport) -> bool {
    if policy == SecretPolicy::Allow {
        return true;
    }
    let found = secrets(&document.text);
    if found.is_empty() {
        return true;
    }
    let mut kinds: Vec<SecretKind> = found.iter().map(|secret| secret.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let kinds = kinds.iter().map(SecretKind::to_string).collect::<Vec<_>>().join(", ");
    let line = document.text[..found[0].span.start].matches('\n').count() + 1;
    let what = format!("it holds {kinds} ({} in all, the first in line {line})", found.len());
    let source = document.source.clone();
    match policy {
        SecretPolicy::Refuse => {
            let reason = format!("{what}; take it in with --secrets redact or --secrets flag if that is intended");
            report.failed.push(Attention { source, reason });
            return false;
        }
        SecretPolicy::Redact => {
            document.text = redacted(&document.text, &found);
            report.warnings.push(Attention { source, reason: format!("{what}; asterisks stand in their place") });
        }
        _ => report.warnings.push(Attention { source, reason: format!("{what}; see --secrets") }),
    }
    true
}

/// What is said of all documents, and of this one by its own metadata.
pub(crate) fn custody_of(document: &Document, general: &Custody) -> Custody {
    let text = |key: &str| document.metadata.get(key).and_then(|value| value.as_str());
    let dated = DATED.iter().find_map(|key| text(key).and_then(days::milliseconds));
    Custody {
        owner: text(OWNER).map(str::to_owned).or_else(|| general.owner.clone()),
        access: text(ACCESS).map(str::to_owned).or_else(|| general.access.clone()),
        dated: dated.or(general.dated),
        expiry: text(EXPIRES).and_then(days::milliseconds).map(Expiry::At).or(general.expiry),
    }
}
