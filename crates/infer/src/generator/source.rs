//! The bytes of a model file, read from several threads at once.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Bytes that can be read at any place, by several threads at once.
pub(crate) trait ReadAt: Sync {
    /// Fills `bytes` from the place `at` on.
    fn read_exact_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()>;
    /// Number of bytes.
    fn length(&self) -> io::Result<u64>;
}

impl ReadAt for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_exact_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, bytes, at)
    }

    #[cfg(windows)]
    fn read_exact_at(&self, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match std::os::windows::fs::FileExt::seek_read(self, bytes, at)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => {
                    bytes = &mut bytes[read..];
                    at += read as u64;
                }
            }
        }
        Ok(())
    }

    /// Elsewhere a file has one place only, and threads take turns.
    #[cfg(not(any(unix, windows)))]
    fn read_exact_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut file = self;
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(bytes)
    }
}

impl ReadAt for &[u8] {
    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_exact_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let found = rest.get(..bytes.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(found);
        Ok(())
    }
}

/// The same for who wants to read on and on.
pub(crate) struct Reader<'a> {
    source: &'a dyn ReadAt,
    at: u64,
}

impl<'a> Reader<'a> {
    /// From the first byte on.
    pub(crate) fn new(source: &'a dyn ReadAt) -> Self {
        Self { source, at: 0 }
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.source.read_exact_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }
}

impl Seek for Reader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::Current(offset) => self.at.checked_add_signed(offset),
            SeekFrom::End(offset) => self.source.length()?.checked_add_signed(offset),
        };
        self.at = place.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f13_reading_past_the_end_is_an_error_and_places_are_kept() {
        let bytes: &[u8] = &[1, 2, 3, 4, 5];
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("bytes");
        std::fs::write(&path, bytes).expect("writes");
        let file = File::open(&path).expect("opens");
        let mut two = [0; 2];
        for source in [&file as &dyn ReadAt, &bytes as &dyn ReadAt] {
            source.read_exact_at(&mut two, 3).expect("reads");
            assert_eq!(two, [4, 5]);
            assert!(source.read_exact_at(&mut two, 4).is_err());
            let mut reader = Reader::new(source);
            reader.seek(SeekFrom::Start(1)).expect("seeks");
            reader.read_exact(&mut two).expect("reads");
            assert_eq!((two, reader.stream_position().expect("a place")), ([2, 3], 3));
            assert_eq!(reader.seek(SeekFrom::End(-1)).expect("seeks"), 4);
            assert!(reader.seek(SeekFrom::Current(-9)).is_err());
        }
    }
}
