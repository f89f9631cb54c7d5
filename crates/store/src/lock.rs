//! One writer at a time, across processes: an advisory lock that the system releases when its holder ends.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use crate::error::{At, StoreError};

/// Name of the lock file in a knowledge base.
pub(crate) const LOCK_FILE: &str = "writer.lock";

/// Held for as long as this value lives.
#[derive(Debug)]
pub(crate) struct WriterLock {
    file: File,
}

impl WriterLock {
    /// Takes the lock of the knowledge base `folder`, or fails at once.
    pub(crate) fn take(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(LOCK_FILE);
        let mut file =
            File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(|error| {
                match StoreError::from_io(&path, error) {
                    StoreError::ReadOnly { .. } => StoreError::ReadOnly { path: folder.to_owned() },
                    other => other,
                }
            })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // A holder that has not yet written its name, or a system that forbids reading, leaves this empty.
                let _ = file.read_to_string(&mut holder);
                let holder = holder.trim();
                let holder = if holder.is_empty() { "another process" } else { holder };
                return Err(StoreError::Locked { path: folder.to_owned(), holder: holder.to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(error).at(&path),
        }
        // The holder's name is a courtesy to the next one who asks: a full disk must not forbid deleting documents.
        let _ = file.set_len(0).and_then(|()| file.write_all(holder_text().as_bytes()));
        Ok(Self { file })
    }
}

impl Drop for WriterLock {
    fn drop(&mut self) {
        let _ = self.file.rewind().and_then(|()| self.file.set_len(0));
        // Closing the file releases the lock as well; doing it here keeps the order visible.
        let _ = self.file.unlock();
    }
}

fn holder_text() -> String {
    let program = std::env::args_os().next().unwrap_or_default();
    let program = Path::new(&program).file_name().map(|name| name.to_string_lossy().into_owned());
    format!("process {} ({})", std::process::id(), program.unwrap_or_else(|| "unknown".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f08_the_second_is_told_who_holds_the_lock_and_gets_it_afterwards() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let first = WriterLock::take(folder.path()).expect("free");
        let Err(StoreError::Locked { holder, .. }) = WriterLock::take(folder.path()) else {
            panic!("the lock was given twice")
        };
        assert!(holder.contains(&std::process::id().to_string()), "{holder}");
        drop(first);
        WriterLock::take(folder.path()).expect("free again");
    }
}
