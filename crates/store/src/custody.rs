//! What a source says of its document beside the content: whose it is, who may see it, of when it is, how long it is kept.

use rusqlite::Row;
use serde::{Deserialize, Serialize};

use crate::view::PRIVATE;

/// What is wanted of a source. What is `None` stays as it is, or is as usual for a new source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Custody {
    /// Whose it is; usually nobody's.
    pub owner: Option<String>,
    /// Who may see it: a label, [`crate::PUBLIC`] or [`PRIVATE`]. Usually public, and private if it has an owner.
    pub access: Option<String>,
    /// The date it is of, in milliseconds since 1970; usually when it is added.
    pub dated: Option<i64>,
    /// When it goes; usually never.
    pub expiry: Option<Expiry>,
}

/// How long a source is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expiry {
    /// For ever.
    Never,
    /// Until this moment, in milliseconds since 1970. From then on no search finds it, and the next writer erases it.
    At(i64),
}

/// What is known of a source beside its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Particulars {
    /// A JSON object.
    pub(crate) metadata: String,
    pub(crate) owner: String,
    pub(crate) access: String,
    pub(crate) dated: i64,
    pub(crate) expires_at: Option<i64>,
}

impl Particulars {
    /// From the columns `metadata, owner, access, dated, expires_at`, the first of which is `first`.
    pub(crate) fn from_row(row: &Row<'_>, first: usize) -> rusqlite::Result<Self> {
        Ok(Self {
            metadata: row.get(first)?,
            owner: row.get(first + 1)?,
            access: row.get(first + 2)?,
            dated: row.get(first + 3)?,
            expires_at: row.get(first + 4)?,
        })
    }

    /// What `custody` wants, over what `before` was.
    pub(crate) fn wanted(metadata: String, custody: &Custody, before: Option<&Self>, now: i64) -> Self {
        let owner = custody.owner.clone().or(before.map(|before| before.owner.clone())).unwrap_or_default();
        let usual = || match before {
            Some(before) => before.access.clone(),
            None if owner.is_empty() => String::new(),
            None => PRIVATE.to_owned(),
        };
        Self {
            metadata,
            access: custody.access.clone().unwrap_or_else(usual),
            dated: custody.dated.or(before.map(|before| before.dated)).unwrap_or(now),
            expires_at: match custody.expiry {
                Some(Expiry::Never) => None,
                Some(Expiry::At(moment)) => Some(moment),
                None => before.and_then(|before| before.expires_at),
            },
            owner,
        }
    }
}
