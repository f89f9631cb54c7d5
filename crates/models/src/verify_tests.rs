use std::time::{Duration, SystemTime};

use super::*;
use crate::{ModelRole, Origin};

fn encoder(root: &Path, files: &[(&str, &str)]) -> ModelFolder {
    for (name, text) in files {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().expect("has a parent")).expect("create");
        std::fs::write(path, text).expect("write");
    }
    ModelFolder {
        name: "mine".to_owned(),
        path: root.to_path_buf(),
        role: ModelRole::Embedder,
        kind: ModelKind::Safetensors,
        origin: Origin::UserData,
    }
}

const FILES: [(&str, &str); 5] = [
    ("model.safetensors", "weights"),
    ("config.json", "{}"),
    ("tokenizer.json", "{}"),
    ("1_Pooling/config.json", "{}"),
    ("README.md", "not part of the model"),
];

fn run(folder: &ModelFolder, depth: Depth) -> Result<Verified, ModelError> {
    verify(folder, depth, &mut |_| {})
}

fn set_modified(path: &Path, time: SystemTime) {
    let file = File::options().write(true).open(path).expect("open");
    file.set_modified(time).expect("set the modification time");
}

/// A list entry whose weights have the given text.
fn known(weights: &str) -> KnownModel {
    let sha256 = hexadecimal(&Sha256::digest(weights.as_bytes()));
    let text = format!(
        "name = 'mine'\nrole = 'embedder'\nabout = ''\nlicence = 'MIT'\nupstream = {{ repo = 'a/b' }}\n\
         [[file]]\nname = 'model.safetensors'\nbytes = {}\nsha256 = '{sha256}'\n",
        weights.len()
    );
    toml::from_str(&text).expect("a list entry")
}

#[test]
fn the_stamp_spares_hashing_until_a_file_changes() {
    let root = tempfile::tempdir().expect("folder");
    let folder = encoder(root.path(), &FILES);
    let first = run(&folder, Depth::Quick).expect("verifies");
    assert_eq!(first.hashed, 4);
    let again = run(&folder, Depth::Quick).expect("verifies");
    assert_eq!((again.hashed, &again.files), (0, &first.files));
    assert_eq!(run(&folder, Depth::Full).expect("verifies").hashed, 4);

    let tokenizer = root.path().join("tokenizer.json");
    set_modified(&tokenizer, SystemTime::now() + Duration::from_secs(5));
    let touched = run(&folder, Depth::Quick).expect("verifies");
    assert_eq!((touched.hashed, touched.combined_sha256()), (1, first.combined_sha256()));
    std::fs::write(&tokenizer, "[]").expect("write");
    let edited = run(&folder, Depth::Quick).expect("verifies");
    assert_eq!(edited.hashed, 1);
    assert_ne!(edited.combined_sha256(), first.combined_sha256());
}

#[test]
fn m45_the_fingerprint_depends_on_what_changes_the_output_and_on_nothing_else() {
    let (one, two) = (tempfile::tempdir().expect("folder"), tempfile::tempdir().expect("folder"));
    let first = fingerprint(&encoder(one.path(), &FILES), &mut |_| {}).expect("fingerprint");
    let mut other = FILES;
    other[4].1 = "another text";
    let same = fingerprint(&encoder(two.path(), &other), &mut |_| {}).expect("fingerprint");
    assert_eq!(first, same);
    std::fs::write(two.path().join("1_Pooling/config.json"), "{ }").expect("write");
    let pooled = fingerprint(&encoder(two.path(), &[]), &mut |_| {}).expect("fingerprint");
    assert_ne!(first, pooled);
}

#[test]
fn f18_an_edited_known_model_is_refused_with_both_hashes() {
    let root = tempfile::tempdir().expect("folder");
    let folder = encoder(root.path(), &FILES);
    let good = known("weights");
    assert!(verify_against(&folder, Some(&good), Depth::Full, &mut |_| {}).expect("verifies").known);

    std::fs::write(root.path().join("model.safetensors"), "WEIGHTS").expect("write");
    set_modified(&root.path().join("model.safetensors"), SystemTime::now() + Duration::from_secs(5));
    let message = verify_against(&folder, Some(&good), Depth::Quick, &mut |_| {}).expect_err("edited").to_string();
    for part in
        ["model.safetensors", &good.files[0].sha256, &hexadecimal(&Sha256::digest(b"WEIGHTS")), "cargo xtask setup"]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
    std::fs::write(root.path().join("model.safetensors"), "weight").expect("write");
    let message = verify_against(&folder, Some(&good), Depth::Quick, &mut |_| {}).expect_err("short").to_string();
    assert!(message.contains("has 6 bytes instead of 7"), "{message}");
}

#[test]
fn a_refused_model_gets_no_stamp() {
    let root = tempfile::tempdir().expect("folder");
    let folder = encoder(root.path(), &FILES);
    assert!(verify_against(&folder, Some(&known("WEIGHTS")), Depth::Quick, &mut |_| {}).is_err());
    assert!(!root.path().join(STAMP).exists());
}

#[test]
fn a_stamp_that_is_damaged_or_of_another_version_is_ignored() {
    let root = tempfile::tempdir().expect("folder");
    let folder = encoder(root.path(), &FILES);
    let first = run(&folder, Depth::Quick).expect("verifies");
    let stamp = root.path().join(STAMP);
    let text = std::fs::read_to_string(&stamp).expect("read");
    for bad in [text[..text.len() / 2].to_owned(), text.replace("\"version\": 1", "\"version\": 2"), String::new()] {
        std::fs::write(&stamp, bad).expect("write");
        let again = run(&folder, Depth::Quick).expect("verifies");
        assert_eq!((again.hashed, &again.files), (4, &first.files));
    }
    let names: Vec<String> = file_names(root.path()).expect("list");
    assert!(names.iter().all(|name| !name.ends_with(".tmp")), "{names:?}");
}

#[test]
fn progress_ends_at_the_total() {
    let root = tempfile::tempdir().expect("folder");
    let folder = encoder(root.path(), &FILES);
    let mut seen = Vec::new();
    verify(&folder, Depth::Full, &mut |progress| seen.push((progress.done, progress.total))).expect("verifies");
    assert!(seen.is_sorted());
    assert_eq!(seen.last(), Some(&(13, 13)));
}

#[test]
fn a_hash_is_the_published_one() {
    let root = tempfile::tempdir().expect("folder");
    let path = root.path().join("abc");
    std::fs::write(&path, "abc").expect("write");
    let found = hash_file(&path, &mut |_| {}).expect("hash");
    assert_eq!(found, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
