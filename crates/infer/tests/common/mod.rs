//! Models and data for the tests of this crate. What is not there is skipped, and said.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::HashMap;
use std::io::Read;
use std::path::PathBuf;

use anchorite_models::{ModelFolder, ModelLibrary, ModelRole, Profile, Wanted, fingerprint};

/// The model of a role in a profile, or `None` with a printed reason.
pub(crate) fn model(role: ModelRole, profile: Profile) -> Option<ModelFolder> {
    match ModelLibrary::discover(None).find(role, Wanted::Profile(profile)) {
        Ok(folder) => Some(folder),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// The generator of a profile.
pub(crate) fn generator(profile: Profile) -> Option<anchorite_infer::LocalGenerator> {
    let folder = model(ModelRole::Generator, profile)?;
    let identity = fingerprint(&folder, &mut |_| ()).expect("hashes");
    let file = folder.gguf_file().expect("a GGUF file").to_owned();
    Some(anchorite_infer::LocalGenerator::open(&file, identity, anchorite_infer::DeviceChoice::Cpu).expect("opens"))
}

/// A committed list of numbers from another engine.
pub(crate) fn fixture(name: &str) -> serde_json::Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).expect("a fixture")).expect("JSON")
}

/// Texts of a set of evaluation data beside the checkout by identifier, or `None` with a printed reason.
pub(crate) fn shared_texts(file: &str) -> Option<HashMap<String, String>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(file);
    let Ok(bytes) = std::fs::read(&path) else {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    };
    let mut text = String::new();
    if file.ends_with(".gz") {
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).expect("gzip");
    } else {
        text = String::from_utf8(bytes).expect("UTF-8");
    }
    let records = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    Some(
        records
            .map(|r| (r["_id"].as_str().expect("id").to_owned(), r["text"].as_str().expect("text").to_owned()))
            .collect(),
    )
}
