//! `sbom`: the program's parts as a CycloneDX document, <https://cyclonedx.org/docs/1.6/json/>.
//!
//! Crates come from `cargo metadata`, resolved for this machine, and only those that the program is built from: what its
//! tests need is no part of it. A crate's hash is the one that the lock file pins. The known models are parts too, each
//! file with the hash that it is checked against. The same checkout gives the same bytes: there is no time and no random
//! number in the document.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anchorite_models::{KnownModel, Manifest};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::stages::cargo;

/// The package of the program.
const PROGRAM: &str = "anchorite-cli";

/// Writes the document, and says where.
pub(crate) fn sbom(out: Option<PathBuf>) -> Result<PathBuf> {
    let checkout =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("this program was built outside a checkout")?;
    let metadata = metadata(checkout)?;
    let lock = std::fs::read_to_string(checkout.join("Cargo.lock")).context("can't read Cargo.lock")?;
    let document = document(&metadata, &checksums(&lock), Manifest::built_in().models())?;
    let out = out.unwrap_or_else(|| {
        Path::new(text(&metadata, "target_directory").unwrap_or("target")).join("anchorite.cdx.json")
    });
    let content = format!("{}\n", serde_json::to_string_pretty(&document)?);
    std::fs::write(&out, content).with_context(|| format!("can't write {}", out.display()))?;
    Ok(out)
}

fn metadata(checkout: &Path) -> Result<Value> {
    let host =
        std::process::Command::new("rustc").args(["--print", "host-tuple"]).output().context("can't run rustc")?;
    let host = String::from_utf8(host.stdout)?;
    let arguments = ["metadata", "--format-version", "1", "--offline", "--locked", "--filter-platform", host.trim()];
    let output = cargo().args(arguments).current_dir(checkout).output().context("can't run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// SHA-256 of each crate's archive, by name and version. The workspace's own crates have none.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut all = BTreeMap::new();
    let (mut name, mut version) = (String::new(), String::new());
    for line in lock.lines() {
        let value = |field: &str| line.strip_prefix(field)?.strip_suffix('"').map(str::to_owned);
        if let Some(value) = value("name = \"") {
            name = value;
        } else if let Some(value) = value("version = \"") {
            version = value;
        } else if let Some(value) = value("checksum = \"") {
            all.insert((name.clone(), version.clone()), value);
        }
    }
    all
}

fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value.get(field)?.as_str()
}

fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What each package is built from, tests left out.
fn dependencies(metadata: &Value) -> BTreeMap<&str, BTreeSet<&str>> {
    let used = |dependency: &&Value| list(dependency, "dep_kinds").iter().any(|kind| kind["kind"] != "dev");
    let nodes = list(&metadata["resolve"], "nodes").iter();
    nodes
        .filter_map(|node| {
            let others = list(node, "deps").iter().filter(used).filter_map(|dependency| text(dependency, "pkg"));
            Some((text(node, "id")?, others.collect()))
        })
        .collect()
}

fn document(metadata: &Value, checksums: &BTreeMap<(String, String), String>, models: &[KnownModel]) -> Result<Value> {
    let packages: BTreeMap<&str, &Value> =
        list(metadata, "packages").iter().filter_map(|package| Some((text(package, "id")?, package))).collect();
    let program = packages.iter().find(|(_, package)| text(package, "name") == Some(PROGRAM));
    let (&program, _) = program.with_context(|| format!("the workspace has no package {PROGRAM}"))?;
    let dependencies = dependencies(metadata);
    let mut open = vec![program];
    let mut parts: BTreeSet<&str> = BTreeSet::new();
    while let Some(id) = open.pop() {
        if parts.insert(id) {
            open.extend(dependencies.get(id).into_iter().flatten());
        }
    }
    let reference = |id: &&str| packages.get(id).map(|package| package_url(package));
    let component = |id: &&str| packages.get(id).map(|package| crate_component(package, checksums));
    let mut components: Vec<Value> = parts.iter().filter(|id| **id != program).filter_map(component).collect();
    components.extend(models.iter().map(model_component));
    let graph: Vec<Value> = parts
        .iter()
        .filter_map(|id| {
            let others: Vec<String> = dependencies.get(id).into_iter().flatten().filter_map(reference).collect();
            Some(json!({ "ref": reference(id)?, "dependsOn": others }))
        })
        .collect();
    let mut subject = crate_component(packages[program], checksums);
    subject["type"] = "application".into();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "tools": { "components": [{ "type": "application", "name": "cargo xtask sbom" }] },
            "component": subject,
        },
        "components": components,
        "dependencies": graph,
    }))
}

/// The name of a crate in the form that other tools know: <https://github.com/package-url/purl-spec>.
fn package_url(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(package, "name").unwrap_or_default(), text(package, "version").unwrap_or_default())
}

fn crate_component(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let name = text(package, "name").unwrap_or_default();
    let version = text(package, "version").unwrap_or_default();
    let mut component = json!({
        "type": "library",
        "bom-ref": package_url(package),
        "name": name,
        "version": version,
        "purl": package_url(package),
    });
    if let Some(licence) = text(package, "license") {
        // Before expressions had a grammar, crates wrote a slash for "or".
        component["licenses"] = json!([{ "expression": licence.replace(" / ", " OR ").replace('/', " OR ") }]);
    }
    if let Some(description) = text(package, "description") {
        component["description"] = description.split_whitespace().collect::<Vec<_>>().join(" ").into();
    }
    if let Some(checksum) = checksums.get(&(name.to_owned(), version.to_owned())) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

/// A model that the program may use; it is fetched apart from it.
fn model_component(model: &KnownModel) -> Value {
    let files: Vec<Value> = model
        .files
        .iter()
        .map(|file| {
            json!({
                "type": "file",
                "bom-ref": format!("model:{}/{}", model.name, file.name),
                "name": file.name,
                "hashes": [{ "alg": "SHA-256", "content": file.sha256 }],
            })
        })
        .collect();
    json!({
        "type": "machine-learning-model",
        "bom-ref": format!("model:{}", model.name),
        "name": model.name,
        "scope": "optional",
        "licenses": [{ "expression": model.licence }],
        "components": files,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built() -> Value {
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a checkout");
        let lock = std::fs::read_to_string(checkout.join("Cargo.lock")).expect("a lock file");
        document(&metadata(checkout).expect("metadata"), &checksums(&lock), Manifest::built_in().models())
            .expect("built")
    }

    #[test]
    fn m44_every_part_has_a_licence_and_all_that_is_not_ours_a_hash() {
        let document = built();
        let components = list(&document, "components");
        assert!(components.len() > 200, "only {} parts", components.len());
        for component in components {
            let name = text(component, "name").expect("a name");
            assert!(!list(component, "licenses").is_empty(), "{name} has no licence");
            let ours = name.starts_with("anchorite");
            let is_model = component["type"] == "machine-learning-model";
            assert_eq!(list(component, "hashes").is_empty(), ours || is_model, "{name}");
            assert_eq!(list(component, "components").is_empty(), !is_model, "{name}");
        }
        let names: BTreeSet<&str> = components.iter().filter_map(|one| text(one, "name")).collect();
        assert!(["candle-core", "rusqlite", "usearch", "seccompiler"].iter().all(|name| names.contains(name)));
        assert!(!names.contains("proptest") && !names.contains("criterion"), "what tests need is no part");
    }

    #[test]
    fn m44_the_graph_names_parts_of_the_document_only() {
        let document = built();
        let subject = text(&document["metadata"]["component"], "bom-ref");
        let known: BTreeSet<&str> =
            list(&document, "components").iter().filter_map(|one| text(one, "bom-ref")).chain(subject).collect();
        let graph = list(&document, "dependencies");
        assert!(graph.len() > 200, "{}", graph.len());
        for node in graph {
            let others = list(node, "dependsOn").iter().filter_map(Value::as_str);
            for reference in others.chain(text(node, "ref")) {
                assert!(known.contains(reference), "{reference}");
            }
        }
        assert_eq!(document, built(), "the same checkout gives the same document");
    }
}
