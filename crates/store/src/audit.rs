//! The audit trail: what happened to which source, when, in which generation, and by whom. Lines are only ever added, and
//! each carries a hash over itself and the line before, so that a line that was changed or taken out afterwards shows.

use anchorite_core::ContentHash;
use rusqlite::{Connection, OptionalExtension, Row};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What a line of the audit trail says happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A document was added.
    Add,
    /// A source was noted at a document that was there.
    Alias,
    /// A source's metadata, owner, label, date or term changed.
    Metadata,
    /// A source was taken from a document, because its content changed or somebody removed it.
    Unlink,
    /// A document was removed.
    Remove,
    /// A source came to the end of its term, and was taken from its document.
    Expire,
    /// What a source held is gone from the history too.
    Erase,
}

impl Action {
    const ALL: [Self; 7] =
        [Self::Add, Self::Alias, Self::Metadata, Self::Unlink, Self::Remove, Self::Expire, Self::Erase];

    /// As it is written in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Alias => "alias",
            Self::Metadata => "metadata",
            Self::Unlink => "unlink",
            Self::Remove => "remove",
            Self::Expire => "expire",
            Self::Erase => "erase",
        }
    }

    /// True if a source is there after this.
    pub(crate) fn leaves_a_source(self) -> bool {
        matches!(self, Self::Add | Self::Alias | Self::Metadata)
    }

    pub(crate) fn read(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }
}

/// One line of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Milliseconds since 1970.
    pub at: i64,
    /// What happened.
    pub action: Action,
    /// To which source.
    pub source: String,
    /// To which document.
    pub document: i64,
    /// Its content.
    pub hash: ContentHash,
    /// In which generation.
    pub generation: i64,
    /// By whom; empty where nobody said.
    pub actor: String,
}

impl AuditEntry {
    pub(crate) const COLUMNS: &'static str = "at, action, source, document, hash, generation, actor";

    pub(crate) fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let action: String = row.get(1)?;
        let unknown = || {
            let error = format!("unknown action {action}").into();
            rusqlite::Error::FromSqlConversionFailure(1, rusqlite::types::Type::Text, error)
        };
        Ok(Self {
            at: row.get(0)?,
            action: Action::read(&action).ok_or_else(unknown)?,
            source: row.get(2)?,
            document: row.get(3)?,
            hash: ContentHash::from_hex(row.get(4)?),
            generation: row.get(5)?,
            actor: row.get(6)?,
        })
    }

    /// The hash over this line and `before`, the hash of the line before it.
    pub(crate) fn chained(&self, before: &str) -> String {
        let mut hash = Sha256::new();
        let (at, document) = (self.at.to_string(), self.document.to_string());
        let generation = self.generation.to_string();
        let parts =
            [before, &at, self.action.as_str(), &self.source, &document, self.hash.as_str(), &generation, &self.actor];
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The hash of the newest line; empty if there is none.
pub(crate) fn newest_hash(connection: &Connection) -> rusqlite::Result<String> {
    let newest = connection
        .prepare_cached("SELECT chain FROM audit ORDER BY id DESC LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(newest.unwrap_or_default())
}

/// Adds a line behind the one whose hash is `before`; returns the new line's hash.
pub(crate) fn append(connection: &Connection, entry: &AuditEntry, before: &str) -> rusqlite::Result<String> {
    let chain = entry.chained(before);
    connection
        .prepare_cached(
            "INSERT INTO audit (at, action, source, document, hash, generation, actor, chain)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute((
            entry.at,
            entry.action.as_str(),
            &entry.source,
            entry.document,
            entry.hash.as_str(),
            entry.generation,
            &entry.actor,
            &chain,
        ))?;
    Ok(chain)
}

/// Computes every line's hash anew and writes it: for lines of a format that had none.
pub(crate) fn chain_all(connection: &Connection) -> rusqlite::Result<()> {
    let mut lines = connection.prepare(&format!("SELECT {}, id FROM audit ORDER BY id", AuditEntry::COLUMNS))?;
    let mut write = connection.prepare("UPDATE audit SET chain = ?2 WHERE id = ?1")?;
    let mut before = String::new();
    let lines: Vec<(AuditEntry, i64)> =
        lines.query_map([], |row| Ok((AuditEntry::from_row(row)?, row.get(7)?)))?.collect::<rusqlite::Result<_>>()?;
    for (entry, id) in lines {
        before = entry.chained(&before);
        write.execute((id, &before))?;
    }
    Ok(())
}
