//! Are a model's bytes the right ones? SHA-256 of its files, and a stamp that spares hashing them each time.
//!
//! The stamp says: this file, with this size and this modification time, had this hash. It lies in the model's folder if
//! Anchorite keeps that folder, and in the user's cache folder for folders of others (a Hugging Face cache, a path).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anchorite_core::ModelFingerprint;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::folder::{file_names, read_json};
use crate::manifest::remedy_for;
use crate::{KnownModel, Manifest, ModelError, ModelFolder, ModelKind};

const STAMP: &str = "anchorite-model.json";
const STAMP_VERSION: u32 = 1;

/// How far hashing has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The file being read.
    pub file: &'a str,
    /// Bytes read so far, of all files.
    pub done: u64,
    /// Bytes to read, of all files.
    pub total: u64,
}

/// Whether stamps are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// A file whose size and modification time are those of the stamp is not read again.
    Quick,
    /// Every file is read.
    Full,
}

/// A file and its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedFile {
    /// Path in the folder.
    pub name: String,
    /// Size.
    pub bytes: u64,
    /// Modification time in nanoseconds since 1970.
    pub modified_ns: u64,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
}

/// The files of a model that change its output, hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The files, sorted by name.
    pub files: Vec<VerifiedFile>,
    /// How many of them had to be read.
    pub hashed: usize,
    /// True if the hashes are those of the list of known models; false if there is nothing to compare with.
    pub known: bool,
}

impl Verified {
    /// SHA-256 over names and hashes, in the order of names.
    #[must_use]
    pub fn combined_sha256(&self) -> String {
        let mut hasher = Sha256::new();
        for file in &self.files {
            hasher.update((file.name.len() as u64).to_le_bytes());
            hasher.update(file.name.as_bytes());
            hasher.update(file.sha256.as_bytes());
        }
        hexadecimal(&hasher.finalize())
    }
}

#[derive(Serialize, Deserialize)]
struct Stamp {
    version: u32,
    files: Vec<VerifiedFile>,
}

/// Identity of the model in `folder`: its name, and a hash over every file that changes its output.
///
/// # Errors
/// As [`verify`].
pub fn fingerprint(
    folder: &ModelFolder,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<ModelFingerprint, ModelError> {
    let verified = verify(folder, Depth::Quick, progress)?;
    Ok(ModelFingerprint { name: folder.name.clone(), sha256: verified.combined_sha256() })
}

/// Hashes the files of a model, compares them with the list of known models if the folder has a known name, and renews
/// the stamp.
///
/// # Errors
/// [`ModelError::Invalid`] naming the file that is missing, cut short or edited, with the hash expected and the hash found;
/// [`ModelError::Io`] if a file can't be read. Not being able to write the stamp is no error: the next call hashes again.
pub fn verify(
    folder: &ModelFolder,
    depth: Depth,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Verified, ModelError> {
    let known = folder.origin.is_library().then(|| Manifest::built_in().model(&folder.name)).flatten();
    verify_against(folder, known, depth, progress)
}

/// As [`verify`], against a given list entry.
pub(crate) fn verify_against(
    folder: &ModelFolder,
    known: Option<&KnownModel>,
    depth: Depth,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Verified, ModelError> {
    if let Some(known) = known {
        known.check_sizes(&folder.path)?;
    }
    let stamped = if depth == Depth::Quick { read_stamp(folder) } else { BTreeMap::new() };
    let mut files = Vec::new();
    for name in relevant_files(folder, known)? {
        let (bytes, modified_ns) = look_at(&folder.path.join(&name))?;
        files.push(VerifiedFile { name, bytes, modified_ns, sha256: String::new() });
    }
    let stale = |file: &VerifiedFile| {
        let stamp = stamped.get(&file.name);
        stamp.is_none_or(|stamp| (stamp.bytes, stamp.modified_ns) != (file.bytes, file.modified_ns))
    };
    let total = files.iter().filter(|file| stale(file)).map(|file| file.bytes).sum();
    let (mut done, mut hashed) = (0, 0);
    for file in &mut files {
        if !stale(file) {
            file.sha256.clone_from(&stamped[&file.name].sha256);
            continue;
        }
        let path = folder.path.join(&file.name);
        file.sha256 = hash_file(&path, &mut |bytes| {
            done += bytes;
            progress(Progress { file: &file.name, done, total });
        })?;
        hashed += 1;
        // A file that changes while it is read has no hash worth keeping.
        if look_at(&path)? != (file.bytes, file.modified_ns) {
            return Err(ModelError::invalid(
                &path,
                "was changed while it was read",
                "wait until it is copied, and try again",
            ));
        }
    }
    if let Some(known) = known {
        compare(folder, known, &files)?;
    }
    if hashed > 0 {
        write_stamp(folder, &files);
    }
    Ok(Verified { files, hashed, known: known.is_some() })
}

fn compare(folder: &ModelFolder, known: &KnownModel, files: &[VerifiedFile]) -> Result<(), ModelError> {
    for expected in &known.files {
        let found = files.iter().find(|file| file.name == expected.name);
        if let Some(found) = found.filter(|found| found.sha256 != expected.sha256) {
            let reason =
                format!("is damaged or edited: its SHA-256 is {} instead of {}", found.sha256, expected.sha256);
            return Err(ModelError::invalid(&folder.path.join(&expected.name), reason, remedy_for(&known.name)));
        }
    }
    Ok(())
}

/// Files of an encoder that change its output, besides the weights and the folders of its modules.
const ENCODER_FILES: [&str; 6] = [
    "config.json",
    "config_sentence_transformers.json",
    "modules.json",
    "sentence_bert_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
];

fn relevant_files(folder: &ModelFolder, known: Option<&KnownModel>) -> Result<Vec<String>, ModelError> {
    let mut names: Vec<String> = match &folder.kind {
        ModelKind::Gguf { file } => {
            let name = file.file_name().and_then(|name| name.to_str());
            let remedy = "rename it";
            vec![name.ok_or_else(|| ModelError::invalid(file, "has a name that is not UTF-8", remedy))?.to_owned()]
        }
        ModelKind::Safetensors => {
            let there = file_names(&folder.path)?;
            let module = |name: &&String| name.starts_with(|first: char| first.is_ascii_digit()) && name.contains('_');
            let modules = there.iter().filter(module).map(|name| format!("{name}/config.json"));
            let weights = there.iter().filter(|name| name.ends_with(".safetensors")).cloned();
            let described = ENCODER_FILES.iter().map(|name| (*name).to_owned());
            let optional = modules.chain(described).filter(|name| folder.path.join(name).is_file());
            weights.chain(optional).collect()
        }
    };
    if let Some(known) = known {
        names.extend(known.files.iter().map(|file| file.name.clone()));
    }
    names.sort();
    names.dedup();
    Ok(names)
}

fn look_at(path: &Path) -> Result<(u64, u64), ModelError> {
    let metadata = std::fs::metadata(path).map_err(ModelError::io("read", path))?;
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let nanoseconds = modified.and_then(|time| u64::try_from(time.as_nanos()).ok()).unwrap_or(0);
    Ok((metadata.len(), nanoseconds))
}

/// SHA-256 of a file, in hexadecimal. `progress` is told the size of each piece read.
///
/// # Errors
/// [`ModelError::Io`] if it can't be read.
pub fn hash_file(path: &Path, progress: &mut dyn FnMut(u64)) -> Result<String, ModelError> {
    let mut file = File::open(path).map_err(ModelError::io("read", path))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0u8; 1 << 20];
    loop {
        let read = file.read(&mut buffer).map_err(ModelError::io("read", path))?;
        if read == 0 {
            return Ok(hexadecimal(&hasher.finalize()));
        }
        hasher.update(&buffer[..read]);
        progress(read as u64);
    }
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Where the stamp of a folder may lie: in the folder, and in the user's cache folder.
fn stamp_paths(folder: &ModelFolder) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    if folder.origin.is_library() {
        let inside = match &folder.kind {
            // Several loose GGUF files may share a folder.
            ModelKind::Gguf { file } if folder.path.file_name().is_none_or(|name| name != folder.name.as_str()) => {
                file.with_extension("gguf.anchorite.json")
            }
            _ => folder.path.join(STAMP),
        };
        paths.push(inside);
    }
    let absolute = std::path::absolute(&folder.path).unwrap_or_else(|_| folder.path.clone());
    let identity = format!(
        "{}\n{}",
        absolute.display(),
        folder.gguf_file().map_or(String::new(), |file| file.display().to_string())
    );
    let key = hexadecimal(&Sha256::digest(identity.as_bytes()));
    if let Some(folder) = crate::locate::cache_folder() {
        paths.push(folder.join("stamps").join(format!("{key}.json")));
    }
    paths
}

fn read_stamp(folder: &ModelFolder) -> BTreeMap<String, VerifiedFile> {
    for path in stamp_paths(folder) {
        // A stamp that can't be read only costs time.
        let Ok(stamp) = read_json::<Stamp>(&path) else { continue };
        if stamp.version == STAMP_VERSION {
            // Without a modification time a change could not be seen.
            let files = stamp.files.into_iter().filter(|file| file.modified_ns != 0);
            return files.map(|file| (file.name.clone(), file)).collect();
        }
    }
    BTreeMap::new()
}

fn write_stamp(folder: &ModelFolder, files: &[VerifiedFile]) {
    let stamp = Stamp { version: STAMP_VERSION, files: files.to_vec() };
    // Invariant: strings and numbers always have a JSON form.
    let text = serde_json::to_string_pretty(&stamp).expect("a stamp is representable in JSON");
    for path in stamp_paths(folder) {
        let Some(parent) = path.parent() else { continue };
        let made = folder.path == parent || std::fs::create_dir_all(parent).is_ok();
        if made && write_whole(&path, text.as_bytes()).is_ok() {
            return;
        }
    }
}

/// Writes a file so that it is there whole or not at all, whatever happens meanwhile: to a temporary name, to disk, then
/// renamed.
///
/// # Errors
/// [`ModelError::Io`] if it can't be written; the file that was there before is still there.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), ModelError> {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let written = File::create(&temporary)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| std::fs::rename(&temporary, path));
    if let Err(error) = written {
        let _ = std::fs::remove_file(&temporary);
        return Err(ModelError::io("write", path)(error));
    }
    sync_folder(path);
    Ok(())
}

/// Makes a rename last. Only Unix lets a folder be synced; elsewhere the file system does it by itself.
fn sync_folder(path: &Path) {
    #[cfg(unix)]
    if let Some(folder) = path.parent().and_then(|parent| File::open(parent).ok()) {
        let _ = folder.sync_all();
    }
    #[cfg(not(unix))]
    let _ = path;
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
