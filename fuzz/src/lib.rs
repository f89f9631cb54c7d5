//! What the fuzz targets call. `cargo +nightly fuzz run NAME -- -print_funcs=0` in this folder's parent (looking up the names
//! of new functions takes longer than running them); seeds are written by `cargo test --test hostile_inputs -- --ignored` into
//! `fuzz/corpus`, and inputs that once failed are in `regressions`.

#[allow(dead_code, reason = "seeds are for the tests")]
mod seeds;
pub mod targets;

/// Runs the target `name` on `bytes`, in a folder of its own that is emptied by being written over.
pub fn run(name: &str, bytes: &[u8]) {
    use std::sync::OnceLock;
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().expect("a folder"));
    let target = targets::TARGETS.iter().find(|(known, _)| *known == name);
    let (_, target) = target.expect("the name of a target");
    target(folder.path(), bytes);
}
