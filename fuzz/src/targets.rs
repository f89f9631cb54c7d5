//! What is done with hostile bytes, and what must hold whatever they are. Shared by the fuzz targets and by the test that
//! runs them over seeds and seeded mutations on every build.

use std::fs;
use std::path::Path;

use anchorite_core::Limits;
use anchorite_formats::{Item, read};
use anchorite_models::{
    EncoderSpec, GeneratorSpec, GgufHeader, ImportKind, ModelRole, Rows, SafetensorsHeader, check_tokenizer,
    import_onnx,
};

/// A target: it may write into the folder, and panics where something does not hold.
pub type Target = fn(&Path, &[u8]);

/// The targets by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("gguf", gguf),
    ("safetensors", safetensors),
    ("tokenizer", tokenizer),
    ("onnx", onnx),
    ("config", config),
    ("template", template),
    ("jsonl", jsonl),
];

fn write(folder: &Path, name: &str, bytes: &[u8]) -> std::path::PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).expect("a file can be written");
    path
}

/// Small, so that what is beyond them is met often.
fn limits() -> Limits {
    Limits { gguf_string_bytes: 1 << 16, gguf_array_elements: 1 << 12, ..Limits::default() }
}

/// A header that is believed describes tensors that lie in the file, apart from each other.
fn gguf(folder: &Path, bytes: &[u8]) {
    let path = write(folder, "model.gguf", bytes);
    let Ok(header) = GgufHeader::read(&path, &limits()) else { return };
    let mut spans: Vec<(u64, u64)> = header.tensors.iter().map(|one| (one.offset, one.offset + one.bytes)).collect();
    spans.sort_unstable();
    for (begin, end) in &spans {
        assert!(begin <= end && header.data_start + end <= bytes.len() as u64, "{begin}…{end}");
    }
    assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "tensors overlap");
    if let Ok(spec) = GeneratorSpec::read(&path, &header) {
        assert!(spec.vocabulary > 0 && spec.attention_heads > 0 && spec.layers <= header.tensors.len());
        let _ = spec.cache_bytes(usize::MAX);
    }
}

/// The same, without gaps.
fn safetensors(folder: &Path, bytes: &[u8]) {
    let path = write(folder, "model.safetensors", bytes);
    let Ok(header) = SafetensorsHeader::read(&path, &limits()) else { return };
    for (name, tensor) in &header.tensors {
        let numbers: u64 = tensor.shape.iter().map(|size| *size as u64).product();
        assert_eq!(numbers * tensor.dtype.bits(), (tensor.end - tensor.begin) * 8, "{name}");
        assert!(tensor.end <= bytes.len() as u64, "{name}");
    }
}

/// Texts with something of everything in them.
const TEXTS: &[&str] =
    &["a", "ab b a", "", "  \t\n", "é 東京 🙂 سلام", "a\u{0}b\u{200b}\u{301}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"];

/// A file that is believed makes the library neither panic nor give a number without a row.
fn tokenizer(folder: &Path, bytes: &[u8]) {
    let rows = Rows { tokens: 64, segments: 2 };
    let path = write(folder, "tokenizer.json", bytes);
    if check_tokenizer(&path, rows, &limits()).is_err() {
        return;
    }
    let Ok(mut tokenizer) = tokenizers::Tokenizer::from_bytes(bytes) else { return };
    tokenizer.with_padding(None);
    if tokenizer.with_truncation(None).is_err() {
        return;
    }
    for text in TEXTS {
        let single = tokenizer.encode_fast(*text, true);
        let pair = tokenizer.encode_fast((*text, "b"), true);
        for encoding in [single, pair].into_iter().flatten() {
            assert!(encoding.get_ids().iter().all(|id| (*id as usize) < rows.tokens), "{text:?}");
            assert!(encoding.get_type_ids().iter().all(|segment| (*segment as usize) < rows.segments), "{text:?}");
        }
    }
}

fn onnx(folder: &Path, bytes: &[u8]) {
    let path = write(folder, "model.onnx", bytes);
    let out = folder.join("imported");
    fs::create_dir_all(&out).expect("a folder can be made");
    let _ = import_onnx(&path, &out, &ImportKind::Reranker);
}

fn config(folder: &Path, bytes: &[u8]) {
    write(folder, "config.json", bytes);
    for role in [ModelRole::Embedder, ModelRole::Reranker] {
        if let Ok(spec) = EncoderSpec::read(folder, role) {
            assert!(spec.tensors().len() < 100_000 && spec.max_tokens >= 4);
            assert!(spec.hidden_size.is_multiple_of(spec.attention_heads));
        }
    }
}

fn template(_: &Path, bytes: &[u8]) {
    if let Ok(source) = std::str::from_utf8(bytes) {
        let _ = anchorite_infer::try_chat_template(source);
    }
}

/// Spans of what was read lie on the borders of characters, and what is refused has a reason.
fn jsonl(folder: &Path, bytes: &[u8]) {
    let path = write(folder, "lines.jsonl", bytes);
    for item in read(&[path], &Limits { line_bytes: 1 << 12, ..limits() }) {
        match item {
            Item::Document { document, .. } => assert!(!document.text.trim().is_empty(), "a document without text"),
            Item::Skipped { reason, .. } => assert!(!reason.to_string().is_empty()),
            Item::Error(error) => assert!(error.to_string().contains("lines.jsonl"), "{error}"),
        }
    }
}
