//! Every access to files goes through [`Storage`], the database's by the VFS that it names, so that tests can make any of
//! them fail.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

/// The operations on files that the caches need, and how SQLite reaches its own.
pub trait Storage: Send + Sync + fmt::Debug {
    /// The bytes of a file.
    ///
    /// # Errors
    /// As the system says.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Creates or truncates a file, writes `bytes`, and waits until they are on the medium.
    ///
    /// # Errors
    /// As the system says.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Waits until a file's bytes are on the medium.
    ///
    /// # Errors
    /// As the system says.
    fn sync_file(&self, path: &Path) -> io::Result<()>;

    /// Waits until a folder's entries are on the medium.
    ///
    /// # Errors
    /// As the system says.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Gives a file or folder another name, replacing a file of that name.
    ///
    /// # Errors
    /// As the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes a folder and those above it.
    ///
    /// # Errors
    /// As the system says.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Removes a file, or a folder with everything in it. Something that is not there is no error.
    ///
    /// # Errors
    /// As the system says.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Names of a folder's entries, sorted. A folder that is not there has none.
    ///
    /// # Errors
    /// As the system says.
    fn list(&self, path: &Path) -> io::Result<Vec<OsString>>;

    /// What changes whenever a file's bytes do, and can't be made alike by copying it: its place on the medium, its size,
    /// and the moments of its last changes. `None` where the system does not tell.
    fn stamp(&self, path: &Path) -> Option<String> {
        let _ = path;
        None
    }

    /// Name of the VFS that SQLite opens the database with; `None` for the system's own.
    fn sqlite_vfs(&self) -> Option<&str> {
        None
    }
}

/// The file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Storage for Disk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        // Windows flushes only files opened for writing.
        File::options().read(true).append(true).open(path)?.sync_all()
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let result = match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
            Ok(_) => fs::remove_file(path),
            Err(error) => Err(error),
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        let mut names = match fs::read_dir(path) {
            Ok(entries) => entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<io::Result<Vec<_>>>()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        names.sort();
        Ok(names)
    }

    #[cfg(unix)]
    fn stamp(&self, path: &Path) -> Option<String> {
        use std::os::unix::fs::MetadataExt;
        let it = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
        // The moment of change of the entry itself (ctime) is the system's: no program can set it.
        let changed = (it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec());
        Some(format!("{} {} {} {changed:?}", it.dev(), it.ino(), it.len()))
    }

    #[cfg(windows)]
    fn stamp(&self, path: &Path) -> Option<String> {
        use std::os::windows::fs::MetadataExt;
        let it = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(format!("{} {} {}", it.file_size(), it.creation_time(), it.last_write_time()))
    }
}

/// The stamps of a folder's files; `None` if one is missing.
pub(crate) fn folder_stamp(storage: &dyn Storage, folder: &Path) -> Option<String> {
    let names = storage.list(folder).ok()?;
    let stamps = names
        .iter()
        .map(|name| storage.stamp(&folder.join(name)).map(|stamp| format!("{}: {stamp}", name.to_string_lossy())));
    stamps.collect::<Option<Vec<String>>>().map(|stamps| stamps.join("; ")).filter(|stamps| !stamps.is_empty())
}

/// Puts the finished folder `built` in place of `target`, both in `parent`: afterwards either the old or the new folder
/// is there, or none, which a cache survives.
pub(crate) fn publish_dir(storage: &dyn Storage, parent: &Path, built: &Path, target: &Path) -> io::Result<()> {
    storage.sync_dir(built)?;
    storage.remove(target)?;
    storage.rename(built, target)?;
    storage.sync_dir(parent)
}

/// SHA-256 over a folder's files: for each, its name, length and bytes.
pub(crate) struct FolderHash(Sha256);

impl FolderHash {
    pub(crate) fn new() -> Self {
        Self(Sha256::new())
    }

    /// Adds a file. Files must come sorted by name.
    pub(crate) fn add(&mut self, name: &str, bytes: &[u8]) {
        for part in [name.as_bytes(), bytes] {
            self.0.update((part.len() as u64).to_le_bytes());
            self.0.update(part);
        }
    }

    /// 64 hexadecimal digits.
    pub(crate) fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_published_whole_in_place_of_an_older_one() {
        let parent = tempfile::tempdir().expect("temporary folder");
        let (built, target) = (parent.path().join("new"), parent.path().join("7"));
        for (dir, text) in [(&target, "old"), (&built, "new")] {
            Disk.create_dir_all(dir).expect("folder");
            Disk.write(&dir.join("file"), text.as_bytes()).expect("file");
        }
        publish_dir(&Disk, parent.path(), &built, &target).expect("published");
        assert_eq!(Disk.read(&target.join("file")).expect("file"), b"new");
        assert_eq!(Disk.list(parent.path()).expect("list"), ["7"]);
    }

    #[test]
    fn the_folder_hash_separates_names_from_bytes() {
        let hash = |files: &[(&str, &str)]| {
            let mut hash = FolderHash::new();
            files.iter().for_each(|(name, bytes)| hash.add(name, bytes.as_bytes()));
            hash.finish()
        };
        assert_ne!(hash(&[("ab", "c")]), hash(&[("a", "bc")]));
        assert_ne!(hash(&[("a", "b"), ("c", "d")]), hash(&[("a", "bcd")]));
        assert_eq!(hash(&[("a", "b")]), hash(&[("a", "b")]));
    }

    #[test]
    fn removing_what_is_not_there_is_no_error() {
        let dir = tempfile::tempdir().expect("temporary folder");
        Disk.remove(&dir.path().join("nothing")).expect("no error");
        assert!(Disk.list(&dir.path().join("nothing")).expect("no error").is_empty());
    }
}
