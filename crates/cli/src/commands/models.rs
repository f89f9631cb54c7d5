//! `anchorite models`

use anchorite::model_files::{Depth, verify};
use anchorite::{Engine, ModelRole};
use anyhow::Result;
use serde_json::json;

use crate::Found;
use crate::arguments::ModelsAction;
use crate::output::Output;

pub(crate) fn run(engine: &Engine, action: &ModelsAction, output: &Output) -> Result<Found> {
    match action {
        ModelsAction::List => list(engine, output),
        ModelsAction::Verify => verify_all(engine, output),
        ModelsAction::Path => paths(engine, output),
    }
}

fn list(engine: &Engine, output: &Output) -> Result<Found> {
    let library = engine.models().library();
    let models = library.list();
    if output.json {
        let places: Vec<_> =
            library.roots().iter().map(|root| json!({ "origin": root.origin, "path": root.path })).collect();
        output.document(&json!({ "models": models, "places": places }))?;
    } else {
        for model in &models {
            output.line(format_args!("{:<10} {:<36} {}", model.role, model.name, model.path.display()))?;
        }
        for root in library.roots() {
            output.remark(format_args!("looked at {}", root.path.display()));
        }
        if models.is_empty() {
            output.remark("no models; run `cargo xtask setup`, or point `--models DIR` to a folder that has some");
        }
    }
    Ok(if models.is_empty() { Found::No } else { Found::Yes })
}

fn verify_all(engine: &Engine, output: &Output) -> Result<Found> {
    let mut reports = Vec::new();
    for role in ModelRole::ALL {
        let folder = engine.models().folder(role)?;
        let bar = output.bar(0, "{spinner} {msg} [{bar:32}] {bytes} of {total_bytes}");
        bar.set_message(folder.name.clone());
        let verified = verify(&folder, Depth::Full, &mut |progress| {
            bar.set_length(progress.total);
            bar.set_position(progress.done);
        })?;
        bar.finish_and_clear();
        if !output.json {
            let files: Vec<&str> = verified.files.iter().map(|file| file.name.as_str()).collect();
            output.line(format_args!("{:<10} {} is whole ({})", role, folder.name, files.join(", ")))?;
        }
        reports.push(json!({ "role": role, "name": folder.name, "path": folder.path, "files": verified.files }));
    }
    if output.json {
        output.document(&reports)?;
    }
    Ok(Found::Yes)
}

fn paths(engine: &Engine, output: &Output) -> Result<Found> {
    let folders = ModelRole::ALL.map(|role| engine.models().folder(role));
    let mut found = Vec::new();
    for folder in folders {
        let folder = folder?;
        if !output.json {
            output.line(format_args!("{:<10} {}", folder.role, folder.path.display()))?;
        }
        found.push(folder);
    }
    if output.json {
        output.document(&found)?;
    }
    Ok(Found::Yes)
}
