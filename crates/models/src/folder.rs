//! A folder with one model, and what it is for.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ModelError;

/// What a model is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelRole {
    /// Turns texts into vectors (a bi-encoder).
    Embedder,
    /// Scores passages against a query (a cross-encoder).
    Reranker,
    /// Writes text.
    Generator,
}

impl ModelRole {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Embedder, Self::Reranker, Self::Generator];

    /// The name, in lower case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Embedder => "embedder",
            Self::Reranker => "reranker",
            Self::Generator => "generator",
        }
    }
}

impl fmt::Display for ModelRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ModelRole {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == name)
            .ok_or_else(|| format!("`{name}` is not a role; known: embedder, reranker, generator"))
    }
}

/// Through which place a model was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// `--models DIR` or ANCHORITE_MODELS.
    Explicit,
    /// `models/` beside the program.
    Program,
    /// `models/` in the current folder.
    Checkout,
    /// The user's data folder.
    UserData,
    /// A Hugging Face cache; never written to.
    HubCache,
    /// A path the user gave for this one model; never written to.
    Path,
}

impl Origin {
    /// True if Anchorite keeps the folder, so that names of the manifest bind and a stamp may be written into it.
    #[must_use]
    pub fn is_library(self) -> bool {
        !matches!(self, Self::HubCache | Self::Path)
    }
}

/// How the weights are stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    /// `*.safetensors` with `config.json` and `tokenizer.json`.
    Safetensors,
    /// One GGUF file that carries its tokenizer and chat template.
    Gguf {
        /// The file.
        file: PathBuf,
    },
}

/// A folder with one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelFolder {
    /// Name for people and for settings: the folder's name, or `organisation/name` in a Hugging Face cache.
    pub name: String,
    /// The folder.
    pub path: PathBuf,
    /// What the model is for.
    pub role: ModelRole,
    /// How its weights are stored.
    pub kind: ModelKind,
    /// Through which place it was found.
    pub origin: Origin,
}

const COPY_AGAIN: &str = "copy the model's files again, or choose another model";

impl ModelFolder {
    /// Opens the folder or GGUF file at a path that the user gave for this one model.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] if the files there are not a model.
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        Self::open_as(path, None, Origin::Path)
    }

    pub(crate) fn open_as(path: &Path, name: Option<&str>, origin: Origin) -> Result<Self, ModelError> {
        if path.is_file() {
            return Self::open_file(path, name, origin);
        }
        let names = file_names(path)?;
        let name = name.map_or_else(|| last_component(path), str::to_owned);
        let folder = |role, kind| Self { name: name.clone(), path: path.to_path_buf(), role, kind, origin };

        let gguf: Vec<&String> = names.iter().filter(|name| is_gguf(name)).collect();
        match gguf.as_slice() {
            [] => {}
            [file] => return Ok(folder(ModelRole::Generator, ModelKind::Gguf { file: path.join(file) })),
            several => {
                let list: Vec<&str> = several.iter().map(|name| name.as_str()).collect();
                return Err(ModelError::invalid(
                    path,
                    format!("holds several GGUF files ({})", list.join(", ")),
                    "name one of the files instead of the folder; a model cut in pieces must be joined first",
                ));
            }
        }
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        if !has("config.json") {
            return Err(ModelError::invalid(
                path,
                "is not a model folder: it has neither a *.gguf file nor config.json",
                COPY_AGAIN,
            ));
        }
        if is_classifier(path)? {
            return Ok(folder(ModelRole::Reranker, ModelKind::Safetensors));
        }
        if has("modules.json") || has("1_Pooling") {
            return Ok(folder(ModelRole::Embedder, ModelKind::Safetensors));
        }
        Err(ModelError::invalid(
            path,
            "is neither an embedder (no modules.json and no 1_Pooling/) nor a reranker (`architectures` in config.json names no …ForSequenceClassification) nor a generator (no *.gguf)",
            COPY_AGAIN,
        ))
    }

    fn open_file(path: &Path, name: Option<&str>, origin: Origin) -> Result<Self, ModelError> {
        let file_name = last_component(path);
        if !is_gguf(&file_name) {
            return Err(ModelError::invalid(
                path,
                "is not a GGUF file",
                "give a model folder, or a file that ends in .gguf",
            ));
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        let stem = file_name.rsplit_once('.').map_or(file_name.as_str(), |(stem, _)| stem);
        Ok(Self {
            name: name.unwrap_or(stem).to_owned(),
            path: parent.to_path_buf(),
            role: ModelRole::Generator,
            kind: ModelKind::Gguf { file: path.to_path_buf() },
            origin,
        })
    }

    /// The GGUF file, if the weights are stored in one.
    #[must_use]
    pub fn gguf_file(&self) -> Option<&Path> {
        match &self.kind {
            ModelKind::Gguf { file } => Some(file),
            ModelKind::Safetensors => None,
        }
    }

    /// The files with weights, sorted by name.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] if a folder of safetensors has none.
    pub fn weight_files(&self) -> Result<Vec<PathBuf>, ModelError> {
        if let Some(file) = self.gguf_file() {
            return Ok(vec![file.to_path_buf()]);
        }
        let names = file_names(&self.path)?;
        let files: Vec<PathBuf> =
            names.iter().filter(|name| name.ends_with(".safetensors")).map(|name| self.path.join(name)).collect();
        if files.is_empty() {
            let other = names.iter().find(|name| name.ends_with(".bin") || name.ends_with(".onnx"));
            let reason = match other {
                Some(name) => format!("has no model.safetensors; {name} is not read"),
                None => "has no model.safetensors".to_owned(),
            };
            let remedy = "save the model as safetensors, or import 8-bit ONNX with `cargo xtask import-onnx`";
            return Err(ModelError::invalid(&self.path, reason, remedy));
        }
        Ok(files)
    }

    /// Bytes of weights on disk.
    ///
    /// # Errors
    /// As [`ModelFolder::weight_files`], or if a file can't be looked at.
    pub fn weight_bytes(&self) -> Result<u64, ModelError> {
        self.weight_files()?.iter().try_fold(0u64, |sum, file| {
            let bytes = std::fs::metadata(file).map_err(ModelError::io("read", file))?.len();
            Ok(sum.saturating_add(bytes))
        })
    }
}

fn is_gguf(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
}

fn is_classifier(folder: &Path) -> Result<bool, ModelError> {
    #[derive(Deserialize)]
    struct Architectures {
        #[serde(default)]
        architectures: Vec<String>,
    }
    let found: Architectures = read_json(&folder.join("config.json"))?;
    Ok(found.architectures.iter().any(|name| name.ends_with("ForSequenceClassification")))
}

/// Largest description file that is read; a model's JSON files other than the tokenizer are far smaller.
const DESCRIPTION_BYTES: u64 = 16 << 20;

/// Reads a small JSON file.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ModelError> {
    let bytes = std::fs::metadata(path).map_err(ModelError::io("read", path))?.len();
    if bytes > DESCRIPTION_BYTES {
        return Err(ModelError::invalid(
            path,
            format!("has {bytes} bytes, far too many for a description"),
            COPY_AGAIN,
        ));
    }
    let text = std::fs::read(path).map_err(ModelError::io("read", path))?;
    serde_json::from_slice(&text)
        .map_err(|error| ModelError::invalid(path, format!("can't be understood: {error}"), COPY_AGAIN))
}

/// Reads a small JSON file if it exists.
pub(crate) fn read_json_if_there<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, ModelError> {
    match read_json(path) {
        Ok(value) => Ok(Some(value)),
        Err(ModelError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Names in a folder, sorted. Names that are not UTF-8 are none of a model's.
pub(crate) fn file_names(folder: &Path) -> Result<Vec<String>, ModelError> {
    let entries = std::fs::read_dir(folder).map_err(ModelError::io("read", folder))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(ModelError::io("read", folder))?;
        if let Ok(name) = entry.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn last_component(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    absolute.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// True for a name that can be one component of a path on every system and can't leave its folder.
pub(crate) fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 128
        && !name.starts_with(['.', '-'])
        && !name.ends_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// True for a relative path of plain names.
pub(crate) fn is_plain_path(path: &str) -> bool {
    path.split('/').all(is_plain_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("temporary folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("has a parent")).expect("create");
            std::fs::write(path, text).expect("write");
        }
        folder
    }

    #[test]
    fn m04_the_role_is_told_from_the_files() {
        let embedder = folder_with(&[("config.json", r#"{"architectures":["BertModel"]}"#), ("modules.json", "[]")]);
        assert_eq!(ModelFolder::open(embedder.path()).expect("opens").role, ModelRole::Embedder);
        let reranker = folder_with(&[("config.json", r#"{"architectures":["BertForSequenceClassification"]}"#)]);
        assert_eq!(ModelFolder::open(reranker.path()).expect("opens").role, ModelRole::Reranker);
        let generator = folder_with(&[("Some.Q4_K_M.GGUF", "")]);
        let opened = ModelFolder::open(generator.path()).expect("opens");
        assert_eq!(opened.role, ModelRole::Generator);
        assert_eq!(opened.weight_files().expect("weights"), [generator.path().join("Some.Q4_K_M.GGUF")]);
        let single = ModelFolder::open(&generator.path().join("Some.Q4_K_M.GGUF")).expect("opens");
        assert_eq!((single.name.as_str(), single.role), ("Some.Q4_K_M", ModelRole::Generator));
    }

    #[test]
    fn f18_what_is_no_model_is_refused_with_the_reason() {
        let message = |folder: &tempfile::TempDir| ModelFolder::open(folder.path()).expect_err("refused").to_string();
        assert!(message(&folder_with(&[("notes.txt", "")])).contains("neither a *.gguf file nor config.json"));
        assert!(message(&folder_with(&[("config.json", "{}")])).contains("neither an embedder"));
        assert!(message(&folder_with(&[("config.json", "{")])).contains("can't be understood"));
        assert!(message(&folder_with(&[("a.gguf", ""), ("b.gguf", "")])).contains("a.gguf, b.gguf"));
        let no_weights = folder_with(&[("config.json", "{}"), ("modules.json", "[]"), ("pytorch_model.bin", "")]);
        let error = ModelFolder::open(no_weights.path()).expect("opens").weight_files().expect_err("no weights");
        assert!(error.to_string().contains("pytorch_model.bin is not read"), "{error}");
    }

    #[test]
    fn names_that_leave_a_folder_are_not_plain() {
        for name in ["..", ".", "", "a/b", "a\\b", "/etc", "-rf", "C:", "x\0", "name."] {
            assert!(!is_plain_name(name), "{name:?}");
        }
        assert!(is_plain_name("all-MiniLM-L6-v2"));
        assert!(is_plain_path("1_Pooling/config.json"));
        assert!(!is_plain_path("1_Pooling/../../secret"));
        assert!(!is_plain_path("/absolute"));
    }
}
