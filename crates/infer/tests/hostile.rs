//! Files that were damaged or made to harm: each is refused with a reason, or computes; nothing panics, and a file that is
//! cut short under a running model does nothing at all.

#[path = "common/random_gguf.rs"]
mod random_gguf;

use std::fs;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use anchorite_core::{Budget, Embedder, GenerateOptions, Generator, ModelFingerprint, Prompt, Role};
use anchorite_infer::{BiEncoder, DeviceChoice, LoadError, LocalGenerator, Precision};
use anchorite_models::{ModelFolder, ModelLibrary, ModelRole, Profile};
use random_gguf::models;

fn open(path: &Path) -> Result<LocalGenerator, LoadError> {
    let fingerprint = ModelFingerprint { name: "hostile".to_owned(), sha256: String::new() };
    LocalGenerator::open(path, fingerprint, DeviceChoice::Cpu)
}

fn write_a_little(generator: &LocalGenerator) -> bool {
    let options = GenerateOptions::greedy(3);
    let prompt = Prompt::new().user("the world");
    generator.generate(&prompt, &options, &Budget::unlimited(), &mut |_| ControlFlow::Continue(())).is_ok()
}

/// Numbers that come after one another in a fixed order (Marsaglia 2003).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn f14_a_changed_header_is_refused_or_computes_and_never_panics() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.gguf");
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let (mut opened, mut refused) = (0, 0);
    for model in models() {
        let whole = model.bytes();
        // Descriptions come first; a change among the weights is a change of a number, and finite or not it computes.
        let header = whole.len().min(16 << 10);
        for round in 0..40 {
            let mut bytes = whole.clone();
            for _ in 0..=next(&mut state) % 3 {
                let at = (next(&mut state) as usize) % if round % 8 == 0 { whole.len() } else { header };
                bytes[at] = match next(&mut state) % 4 {
                    0 => 0,
                    1 => 0xFF,
                    2 => bytes[at] ^ 1,
                    _ => next(&mut state) as u8,
                };
            }
            fs::write(&path, &bytes).expect("writes");
            let ran = catch_unwind(AssertUnwindSafe(|| open(&path).map(|generator| write_a_little(&generator))));
            match ran.unwrap_or_else(|_| panic!("{}, round {round}: a panic", model.name)) {
                Ok(_) => opened += 1,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    refused += 1;
                }
            }
        }
    }
    assert!(opened > 20 && refused > 20, "{opened} opened, {refused} refused");
}

#[test]
fn f13_a_file_cut_anywhere_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.gguf");
    let whole = models().remove(0).bytes();
    for length in (0..whole.len()).step_by(whole.len() / 64) {
        fs::write(&path, &whole[..length]).expect("writes");
        let message = open(&path).expect_err("refused").to_string();
        assert!(message.contains("model.gguf") && message.contains("byte"), "{length}: {message}");
    }
}

#[test]
fn f19_weights_cut_short_under_a_running_generator_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.gguf");
    fs::write(&path, models().remove(0).bytes()).expect("writes");
    let generator = open(&path).expect("opens");
    let before = generator.logits(&[1, 2, 3]).expect("computes");
    fs::File::options().write(true).open(&path).expect("opens").set_len(100).expect("cuts");
    assert_eq!(generator.logits(&[1, 2, 3]).expect("computes"), before);
    assert!(open(&path).is_err());
}

/// The bi-encoder of profile `tiny`, in a folder of its own whose files may be changed.
fn encoder_copy() -> Option<(tempfile::TempDir, PathBuf)> {
    let found = match ModelLibrary::discover(None).find(ModelRole::Embedder, Profile::Tiny) {
        Ok(found) => found,
        Err(error) => {
            eprintln!("skipped: {error}");
            return None;
        }
    };
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("copy");
    fs::create_dir_all(copy.join("1_Pooling")).expect("a folder");
    for entry in fs::read_dir(&found.path).expect("a folder").map(|entry| entry.expect("an entry")) {
        if entry.path().is_file() {
            fs::copy(entry.path(), copy.join(entry.file_name())).expect("copies");
        }
    }
    fs::copy(found.path.join("1_Pooling/config.json"), copy.join("1_Pooling/config.json")).expect("copies");
    Some((folder, copy))
}

fn open_encoder(path: &Path) -> Result<BiEncoder, LoadError> {
    BiEncoder::open(&ModelFolder::open(path)?, DeviceChoice::Cpu, Precision::Int8)
}

#[test]
fn f19_weights_cut_short_under_a_running_encoder_change_nothing() {
    let Some((_folder, copy)) = encoder_copy() else { return };
    let encoder = open_encoder(&copy).expect("opens");
    let before = encoder.embed(Role::Query, &["a river"]).expect("embeds");
    fs::File::options().write(true).open(copy.join("model.safetensors")).expect("opens").set_len(1000).expect("cuts");
    assert_eq!(encoder.embed(Role::Query, &["a river"]).expect("embeds"), before);
    let message = open_encoder(&copy).expect_err("refused").to_string();
    assert!(message.contains("model.safetensors"), "{message}");
}

/// Cut and made whole again while models are opened: each time it opens, or says why not.
#[test]
fn f19_weights_that_change_while_they_are_read_are_refused_or_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.gguf");
    let whole = models().remove(0).bytes();
    fs::write(&path, &whole).expect("writes");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut length = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                length = (length + 4099) % whole.len();
                let _ = fs::write(&path, &whole[..length]);
                let _ = fs::write(&path, &whole);
            }
        });
        for _ in 0..60 {
            if let Err(error) = open(&path) {
                assert!(!error.to_string().is_empty());
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn f16_f17_a_hostile_tokenizer_is_refused_by_name() {
    let Some((_folder, copy)) = encoder_copy() else { return };
    let path = copy.join("tokenizer.json");
    let whole = fs::read_to_string(&path).expect("reads");
    let huge = whole.replacen("\"[CLS]\": 101", "\"[CLS]\": 4000000000", 1).replacen(
        "\"[CLS]\":101",
        "\"[CLS]\":4000000000",
        1,
    );
    assert_ne!(huge, whole, "the vocabulary is written in another way");
    let merges = r#"{"model": {"type": "BPE", "vocab": {"aa": 0, "bb": 1}, "merges": [["aa", "bb"]]}}"#;
    let prefix = r####"{"model": {"type": "BPE", "continuing_subword_prefix": "###", "vocab": {"a": 0, "b": 1}, "merges": [["a", "b"]]}}"####;
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (what, text) in [
        ("cut", &whole[..whole.len() / 2]),
        ("huge", huge.as_str()),
        ("merges", merges),
        ("prefix", prefix),
        ("nested", nested.as_str()),
        ("empty", "{}"),
        ("none", ""),
    ] {
        fs::write(&path, text).expect("writes");
        let opened = catch_unwind(|| open_encoder(&copy));
        let message = opened.unwrap_or_else(|_| panic!("{what}: a panic")).expect_err(what).to_string();
        assert!(message.contains("tokenizer.json"), "{what}: {message}");
    }
    fs::write(&path, whole).expect("writes");
    assert!(open_encoder(&copy).is_ok());
}
