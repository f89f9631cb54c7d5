//! ZIP and TAR files: each file in them is a document of its own, called `archive.zip#path/inside`.
//!
//! Nothing is ever written, so no path can lead anywhere; but a name like `../../etc/passwd` shows that an archive was made
//! to harm, and its entry is refused and reported, as are links and devices.

use std::io::{Cursor, Read};

use tar::EntryType;
use zip::ZipArchive;

use crate::extract::Extraction;
use crate::item::{ExtractError, Item, SkipReason};
use crate::package::Unpack;
use crate::parsed::Reading;

/// What an entry's name says of it.
fn refusal(name: &str) -> Option<SkipReason> {
    let slashed = name.replace('\\', "/");
    let has_drive = slashed.as_bytes().get(1) == Some(&b':') && slashed.as_bytes()[0].is_ascii_alphabetic();
    if slashed.starts_with('/') || has_drive || slashed.split('/').any(|part| part == "..") || name.contains('\0') {
        return Some(SkipReason::PathOutside);
    }
    slashed
        .split('/')
        .any(|part| (part.starts_with('.') && part != ".") || part == "__MACOSX")
        .then_some(SkipReason::Hidden)
}

fn skipped(reading: &Reading<'_>, name: &str, reason: SkipReason) -> Item {
    Item::Skipped { source: format!("{}#{name}", reading.source), reason }
}

/// What happens after an entry could not be unpacked: the rest is read unless a limit of the whole file was crossed.
fn report(unpack: Unpack, name: &str, format: &str, reading: &Reading<'_>) -> Result<Item, ExtractError> {
    match unpack {
        Unpack::Limit(limit) if matches!(limit.limit, "archive_bytes" | "archive_entries") => Err(limit.into()),
        Unpack::Limit(limit) => Ok(Item::Error(limit.into())),
        Unpack::Damaged(message) => {
            let source = format!("{}#{name}", reading.source);
            Ok(Item::Error(Reading { source: &source, ..*reading }.damaged(format, message).into()))
        }
    }
}

pub(crate) fn read_zip(
    mut archive: ZipArchive<Cursor<Vec<u8>>>,
    extraction: &Extraction<'_>,
    reading: &Reading<'_>,
    sink: &mut dyn FnMut(Item),
) -> Result<(), ExtractError> {
    for index in 0..archive.len() {
        reading.allowance.entry(reading)?;
        let named = archive.name_for_index(index).and_then(Result::ok).map(std::borrow::Cow::into_owned);
        let encrypted = archive.by_index_data(index).is_ok_and(|entry| entry.encrypted());
        let entry = match reading.password.filter(|_| encrypted) {
            Some(password) => archive.by_index_decrypt(index, password.as_bytes()),
            None => archive.by_index(index),
        };
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let source = format!("{}#{}", reading.source, named.unwrap_or_else(|| format!("entry {index}")));
                let inner = Reading { source: &source, ..*reading };
                sink(Item::Error(match error {
                    _ if encrypted => inner.encrypted().into(),
                    error => inner.damaged("ZIP", error).into(),
                }));
                continue;
            }
        };
        let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
        let name = entry.name().map_or(name, std::borrow::Cow::into_owned);
        let kind = entry.unix_mode().map_or(0, |mode| mode & 0o170_000);
        let is_file = matches!(kind, 0 | 0o100_000);
        if let Some(reason) = refusal(&name) {
            sink(skipped(reading, &name, reason));
        } else if entry.is_dir() || kind == 0o040_000 {
            // Folders hold nothing themselves.
        } else if !is_file {
            sink(skipped(reading, &name, SkipReason::NoFileInArchive));
        } else {
            let packed = entry.compressed_size();
            let source = format!("{}#{name}", reading.source);
            match reading.allowance.unpack(entry, packed, &Reading { source: &source, ..*reading }) {
                Ok(bytes) => extraction.inner(reading.source, &name, bytes, sink)?,
                Err(unpack) => sink(report(unpack, &name, "ZIP", reading)?),
            }
        }
    }
    Ok(())
}

pub(crate) fn read_tar(
    bytes: &[u8],
    extraction: &Extraction<'_>,
    reading: &Reading<'_>,
    sink: &mut dyn FnMut(Item),
) -> Result<(), ExtractError> {
    let mut archive = tar::Archive::new(bytes);
    let damaged = |error: std::io::Error| reading.damaged("TAR", error);
    for entry in archive.entries().map_err(damaged)? {
        reading.allowance.entry(reading)?;
        let entry = entry.map_err(damaged)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let kind = entry.header().entry_type();
        if let Some(reason) = refusal(&name) {
            sink(skipped(reading, &name, reason));
            continue;
        }
        match kind {
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                let size = entry.size();
                let source = format!("{}#{name}", reading.source);
                let inner = Reading { source: &source, ..*reading };
                match reading.allowance.unpack(entry.take(size), size, &inner) {
                    Ok(bytes) => extraction.inner(reading.source, &name, bytes, sink)?,
                    Err(unpack) => sink(report(unpack, &name, "TAR", reading)?),
                }
            }
            EntryType::Directory | EntryType::XGlobalHeader | EntryType::XHeader => {}
            _ => sink(skipped(reading, &name, SkipReason::NoFileInArchive)),
        }
    }
    Ok(())
}
