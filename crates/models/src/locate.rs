//! Where models are looked for, and finding one there.

use std::path::{Path, PathBuf};

use crate::folder::{file_names, is_plain_name};
use crate::{KnownModel, Manifest, ModelError, ModelFolder, ModelKind, ModelRole, Origin, Profile, hub_cache};

/// A place to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Why it is looked at.
    pub origin: Origin,
    /// The folder: one folder (or GGUF file) per model; or a Hugging Face cache.
    pub path: PathBuf,
}

/// Which model of a role is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// The one that a profile names.
    Profile(Profile),
    /// The one of this name: a folder's name, `organisation/name` in a Hugging Face cache, or a path.
    Name(&'a str),
}

impl From<Profile> for Wanted<'_> {
    fn from(profile: Profile) -> Self {
        Self::Profile(profile)
    }
}

impl<'a> From<&'a str> for Wanted<'a> {
    fn from(name: &'a str) -> Self {
        Self::Name(name)
    }
}

/// The folders with models that this process may use.
#[derive(Clone, Debug)]
pub struct ModelLibrary {
    roots: Vec<Root>,
}

/// The folder under the user's data folder that models are installed into.
#[must_use]
pub fn models_data_folder() -> Option<PathBuf> {
    directories::ProjectDirs::from("", "", "anchorite").map(|folders| folders.data_dir().join("models"))
}

/// The user's cache folder of this program: what lies there can be thrown away.
#[must_use]
pub fn cache_folder() -> Option<PathBuf> {
    directories::ProjectDirs::from("", "", "anchorite").map(|folders| folders.cache_dir().to_owned())
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn hub_cache_folder() -> Option<PathBuf> {
    variable("HF_HUB_CACHE")
        .or_else(|| Some(variable("HF_HOME")?.join("hub")))
        .or_else(|| Some(directories::BaseDirs::new()?.home_dir().join(".cache/huggingface/hub")))
}

impl ModelLibrary {
    /// Lists the places of this process, in the order in which they are searched: `explicit` or else ANCHORITE_MODELS;
    /// `models/` beside the program; `models/` in the current folder; the user's data folder; a Hugging Face cache
    /// (HF_HUB_CACHE, HF_HOME, or the default). Places that do not exist are left out, but for the first: asking for a
    /// folder that is not there, or has no model at all, is a mistake that [`ModelLibrary::find`] reports.
    #[must_use]
    pub fn discover(explicit: Option<&Path>) -> Self {
        let program = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join("models")));
        let checkout = std::env::current_dir().ok().map(|folder| folder.join("models"));
        Self::with_roots([
            (Origin::Explicit, explicit.map(Path::to_path_buf).or_else(|| variable("ANCHORITE_MODELS"))),
            (Origin::Program, program),
            (Origin::Checkout, checkout),
            (Origin::UserData, models_data_folder()),
            (Origin::HubCache, hub_cache_folder()),
        ])
    }

    /// A library over given places.
    #[must_use]
    pub fn with_roots(places: impl IntoIterator<Item = (Origin, Option<PathBuf>)>) -> Self {
        let mut roots: Vec<Root> = Vec::new();
        for (origin, path) in places {
            let Some(path) = path else { continue };
            let wanted = origin == Origin::Explicit || path.is_dir();
            if wanted && roots.iter().all(|root| root.path != path) {
                roots.push(Root { origin, path });
            }
        }
        Self { roots }
    }

    /// The places, in the order in which they are searched.
    #[must_use]
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// Finds a model. For known models the sizes of all files are checked; the bytes are checked by [`crate::verify`].
    ///
    /// A profile's model is looked for by its name. If the folder that the user pointed to does not have it but has
    /// exactly one other model of that role, that one is taken: whoever brings a folder of own models need not name them.
    ///
    /// # Errors
    /// [`ModelError::Missing`] if no place has it, [`ModelError::Invalid`] if the first place that has it has it damaged,
    /// or the model is for something else; [`ModelError::NoModels`] if the folder the user pointed to has none at all.
    pub fn find<'a>(&self, role: ModelRole, wanted: impl Into<Wanted<'a>>) -> Result<ModelFolder, ModelError> {
        self.check_explicit()?;
        let manifest = Manifest::built_in();
        match wanted.into() {
            Wanted::Profile(profile) => {
                let known = manifest.of_profile(profile, role);
                // Invariant: `Manifest::parse` refuses a list with a profile that lacks a role.
                let known = known.expect("every profile has a model of every role");
                self.find_named(role, &known.name, Some(known), true)
            }
            Wanted::Name(name) => {
                if let Some(folder) = self.open_path(name)? {
                    return check_role(folder, role);
                }
                self.find_named(role, name, manifest.model(name), false)
            }
        }
    }

    fn check_explicit(&self) -> Result<(), ModelError> {
        let Some(root) = self.roots.first().filter(|root| root.origin == Origin::Explicit) else { return Ok(()) };
        let reason = if !root.path.exists() {
            "does not exist"
        } else if !root.path.is_dir() {
            "is not a folder"
        } else if models_in(root, true).is_empty() {
            "holds no model"
        } else {
            return Ok(());
        };
        Err(ModelError::NoModels { folder: root.path.clone(), reason })
    }

    /// A name that is a path, not a name: with a separator, and there.
    fn open_path(&self, name: &str) -> Result<Option<ModelFolder>, ModelError> {
        let path = Path::new(name);
        let looks_like_path =
            name.contains(['/', '\\']) || name.to_ascii_lowercase().ends_with(".gguf") || name.starts_with('.');
        if !looks_like_path {
            return Ok(None);
        }
        if path.exists() {
            return ModelFolder::open(path).map(Some);
        }
        Ok(None)
    }

    fn find_named(
        &self,
        role: ModelRole,
        name: &str,
        known: Option<&KnownModel>,
        any_in_explicit: bool,
    ) -> Result<ModelFolder, ModelError> {
        for root in &self.roots {
            if let Some(folder) = find_in(root, name, known)? {
                return check_role(folder, role);
            }
            if any_in_explicit && root.origin == Origin::Explicit {
                let mut own: Vec<ModelFolder> =
                    models_in(root, false).into_iter().filter(|folder| folder.role == role).collect();
                if own.len() == 1 {
                    return Ok(own.remove(0));
                }
            }
        }
        let others = self.list().into_iter().filter(|folder| folder.role == role).map(|folder| folder.name).collect();
        let looked = self.roots.iter().map(|root| root.path.clone()).collect();
        Err(ModelError::Missing { role, wanted: name.to_owned(), looked, others })
    }

    /// Every usable model of every place; a name found twice is listed where it is found first.
    #[must_use]
    pub fn list(&self) -> Vec<ModelFolder> {
        let mut found: Vec<ModelFolder> = Vec::new();
        for folder in self.roots.iter().flat_map(|root| models_in(root, false)) {
            if found.iter().all(|other| other.name != folder.name) {
                found.push(folder);
            }
        }
        found
    }
}

fn check_role(folder: ModelFolder, role: ModelRole) -> Result<ModelFolder, ModelError> {
    if folder.role == role {
        return Ok(folder);
    }
    let reason = format!("is a model of the kind `{}`, and a `{role}` is needed", folder.role);
    Err(ModelError::invalid(&folder.path, reason, format!("name another model as {role}")))
}

fn find_in(root: &Root, name: &str, known: Option<&KnownModel>) -> Result<Option<ModelFolder>, ModelError> {
    if root.origin == Origin::HubCache {
        return find_in_hub_cache(root, name, known);
    }
    let name = known.map_or(name, |known| known.name.as_str());
    if !is_plain_name(name) {
        return Ok(None);
    }
    let path = root.path.join(name);
    if path.is_dir() {
        // A folder with a known name is held to what is known of it.
        if let Some(known) = known {
            known.check_sizes(&path)?;
        }
        return ModelFolder::open_as(&path, Some(name), root.origin).map(Some);
    }
    let file = root.path.join(format!("{name}.gguf"));
    if file.is_file() {
        return ModelFolder::open_as(&file, Some(name), root.origin).map(Some);
    }
    Ok(None)
}

fn find_in_hub_cache(root: &Root, name: &str, known: Option<&KnownModel>) -> Result<Option<ModelFolder>, ModelError> {
    let repository = known.map_or(name, |known| known.upstream.repo.as_str());
    let Some(snapshot) = hub_cache::snapshot(&root.path, repository) else { return Ok(None) };
    // A repository often holds one model in several precisions: the known file is the one wanted.
    let gguf = known.and_then(|known| known.files.iter().find(|file| file.name.ends_with(".gguf")));
    if let (Some(known), Some(gguf)) = (known, gguf) {
        let file = hub_cache::file(&root.path, repository, &gguf.name);
        return Ok(file.map(|file| ModelFolder {
            name: known.name.clone(),
            path: snapshot,
            role: ModelRole::Generator,
            kind: ModelKind::Gguf { file },
            origin: Origin::HubCache,
        }));
    }
    if gguf.is_none() && hub_cache::file(&root.path, repository, "config.json").is_none() {
        // A cache may hold a few files of a repository that somebody looked at: that is not the model.
        let has_gguf = file_names(&snapshot)?.iter().any(|name| name.ends_with(".gguf"));
        if !has_gguf {
            return Ok(None);
        }
    }
    ModelFolder::open_as(&snapshot, Some(known.map_or(repository, |known| &known.name)), Origin::HubCache).map(Some)
}

/// The models of a place. `damaged` counts known folders too whose files are not whole, as a sign of what the place is for.
fn models_in(root: &Root, damaged: bool) -> Vec<ModelFolder> {
    if root.origin == Origin::HubCache {
        let repositories = hub_cache::repositories(&root.path);
        return repositories
            .into_iter()
            .filter_map(|(name, snapshot)| {
                let folder = ModelFolder::open_as(&snapshot, Some(&name), Origin::HubCache).ok()?;
                folder.weight_files().ok().map(|_| folder)
            })
            .collect();
    }
    let Ok(names) = file_names(&root.path) else { return Vec::new() };
    names
        .into_iter()
        .filter(|name| !name.starts_with('.'))
        .filter_map(|name| {
            let path = root.path.join(&name);
            if !path.is_dir() {
                let stem = name.strip_suffix(".gguf")?;
                return ModelFolder::open_as(&path, Some(stem), root.origin).ok();
            }
            let known = Manifest::built_in().model(&name);
            match (ModelFolder::open_as(&path, Some(&name), root.origin), known) {
                (Ok(folder), known) => {
                    let whole =
                        known.is_none_or(|known| known.check_sizes(&path).is_ok()) && folder.weight_files().is_ok();
                    (whole || damaged).then_some(folder)
                }
                (Err(_), Some(known)) if damaged => Some(ModelFolder {
                    name: known.name.clone(),
                    path,
                    role: known.role,
                    kind: ModelKind::Safetensors,
                    origin: root.origin,
                }),
                (Err(_), _) => None,
            }
        })
        .collect()
}

#[cfg(test)]
#[path = "locate_tests.rs"]
mod tests;
