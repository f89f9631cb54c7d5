//! What was read, kept on disk: for the words that every prompt over documents begins with. It lies in the user's own cache
//! folder and never in a knowledge base, which may come from somebody else: what stands here is what the model has "read".
//!
//! A file is a cache. It names the model and how numbers lie in it, ends with the hash of everything before, and what does
//! not agree is as if it were not there.

use std::path::Path;
use std::sync::Arc;

use anchorite_models::{ModelError, write_whole};
use sha2::{Digest, Sha256};

use super::native::{Page, Sequence};

const MAGIC: &[u8; 8] = b"ANCHPFX1";
const HASH: usize = 32;

/// Writes `sequence` to `path`, whole or not at all. `key` names the model and the layout of its pages.
pub(super) fn save(path: &Path, key: &str, sequence: &Sequence) -> Result<(), ModelError> {
    let mut bytes = MAGIC.to_vec();
    let count = |bytes: &mut Vec<u8>, count: usize| bytes.extend((count as u64).to_le_bytes());
    count(&mut bytes, key.len());
    bytes.extend(key.as_bytes());
    count(&mut bytes, sequence.len());
    bytes.extend(sequence.tokens().iter().flat_map(|token| token.to_le_bytes()));
    count(&mut bytes, sequence.pages().len());
    for page in sequence.pages() {
        count(&mut bytes, page.attention.len());
        bytes.extend(page.attention.iter().flat_map(|number| number.to_le_bytes()));
        count(&mut bytes, page.columns.len());
        bytes.extend(page.columns.iter().flat_map(|number| number.to_le_bytes()));
    }
    let hash = Sha256::digest(&bytes);
    bytes.extend(hash);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|source| ModelError::Io {
            path: folder.to_owned(),
            action: "make",
            source,
        })?;
    }
    write_whole(path, &bytes)
}

/// Reads what `save` wrote; `None` if there is nothing for this model, its pages are not of `page` numbers (of keys and
/// values, and of columns), or it is damaged.
pub(super) fn load(path: &Path, key: &str, page: (usize, usize)) -> Option<Sequence> {
    let bytes = std::fs::read(path).ok()?;
    let (bytes, hash) = bytes.split_at_checked(bytes.len().checked_sub(HASH)?)?;
    if Sha256::digest(bytes).as_slice() != hash {
        return None;
    }
    let mut reader = Reader(bytes.strip_prefix(MAGIC)?);
    let length = reader.count()?;
    if reader.take(length)? != key.as_bytes() {
        return None;
    }
    let tokens = reader.numbers(u32::from_le_bytes)?;
    let pages = (0..reader.count()?)
        .map(|_| {
            let attention = reader.numbers(u16::from_le_bytes)?;
            let columns = reader.numbers(f32::from_le_bytes)?;
            ((attention.len(), columns.len()) == page).then(|| Arc::new(Page { attention, columns }))
        })
        .collect::<Option<Vec<_>>>()?;
    reader.0.is_empty().then(|| Sequence::from_parts(tokens, pages)).flatten()
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn count(&mut self) -> Option<usize> {
        let bytes = self.take(8)?.try_into().ok()?;
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    }

    fn numbers<const N: usize, T>(&mut self, make: impl Fn([u8; N]) -> T) -> Option<Vec<T>> {
        let count = self.count()?;
        let bytes = self.take(count.checked_mul(N)?)?;
        bytes.chunks_exact(N).map(|bytes| bytes.try_into().ok().map(&make)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f12_pages_of_another_size_or_model_are_as_if_they_were_not_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cache/head.bin");
        let page = Page { attention: vec![7, 8, 9], columns: vec![0.5] };
        let sequence = Sequence::from_parts(vec![1, 2], vec![Arc::new(page)]).expect("two tokens are one page");
        save(&path, "model", &sequence).expect("saves");
        let back = load(&path, "model", (3, 1)).expect("loads");
        assert_eq!((back.tokens(), back.pages()[0].attention.as_slice()), (&[1, 2][..], &[7, 8, 9][..]));
        assert!(load(&path, "model", (4, 1)).is_none() && load(&path, "model", (3, 0)).is_none());
        assert!(load(&path, "other", (3, 1)).is_none());
        assert!(load(&folder.path().join("nothing"), "model", (3, 1)).is_none());
    }
}
