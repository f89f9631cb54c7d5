//! From an older format to this one, in one transaction: afterwards the knowledge base has this format or the old one.

use std::path::Path;

use rusqlite::Connection;

use crate::audit;
use crate::error::{At, StoreError};
use crate::schema::{self, FORMAT};

/// The first format that can be brought up to date.
const OLDEST: i64 = 1;

/// Whether a knowledge base of `format` can be brought up to date.
pub(crate) fn is_possible(format: i64) -> bool {
    (OLDEST..FORMAT).contains(&format)
}

/// Brings a database of the older `format` to the present one.
pub(crate) fn migrate(connection: &mut Connection, folder: &Path, format: i64) -> Result<(), StoreError> {
    tracing::info!(folder = %folder.display(), from = format, to = FORMAT, "bringing the knowledge base up to date");
    run(connection, format).at(folder)
}

fn run(connection: &mut Connection, format: i64) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    if format < 2 {
        transaction.execute_batch(
            "ALTER TABLE generations ADD COLUMN actor TEXT NOT NULL DEFAULT '';
             ALTER TABLE documents ADD COLUMN outline TEXT NOT NULL DEFAULT '[]';
             ALTER TABLE sources ADD COLUMN owner TEXT NOT NULL DEFAULT '';
             ALTER TABLE sources ADD COLUMN access TEXT NOT NULL DEFAULT '';
             ALTER TABLE sources ADD COLUMN dated INTEGER NOT NULL DEFAULT 0;
             ALTER TABLE sources ADD COLUMN expires_at INTEGER;
             ALTER TABLE audit ADD COLUMN actor TEXT NOT NULL DEFAULT '';
             ALTER TABLE audit ADD COLUMN chain TEXT NOT NULL DEFAULT '';
             UPDATE sources SET dated = added_at;",
        )?;
        transaction.execute_batch(schema::HISTORY)?;
        transaction.execute_batch(schema::MEMORY_INDEXES)?;
        audit::chain_all(&transaction)?;
        transaction.execute_batch(schema::AUDIT_IS_APPEND_ONLY)?;
    }
    transaction.execute_batch(schema::CACHES)?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()
}
