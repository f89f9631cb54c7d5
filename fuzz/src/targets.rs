//! What is done with hostile bytes, and what must hold whatever they are. Shared by the fuzz targets and by the test that
//! runs them over seeds and seeded mutations on every build.

use std::fs;
use std::path::Path;

use anchorite_core::{LandmarkKind, Limits};
use anchorite_formats::{Item, read};
use anchorite_models::{
    EncoderSpec, GeneratorSpec, GgufHeader, ImportKind, ModelRole, Rows, SafetensorsHeader, check_tokenizer,
    import_onnx,
};
use anchorite_store::trial::try_graph_file;

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
    ("pdf", document),
    ("office", document),
    ("page", document),
    ("book", document),
    ("mail", document),
    ("table", document),
    ("archive", document),
    ("graph", graph),
];

/// Nodes of the graph that is a seed.
pub const GRAPH_NODES: usize = 40;

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

fn jsonl(folder: &Path, bytes: &[u8]) {
    read_file(&write(folder, "lines.jsonl", bytes), &Limits { line_bytes: 1 << 12, ..limits() });
}

/// What a file is is told by its content: one target for every kind, begun from seeds of one.
fn document(folder: &Path, bytes: &[u8]) {
    let small = Limits { packed_file_bytes: 1 << 20, document_bytes: 1 << 20, archive_bytes: 1 << 22, ..limits() };
    read_file(&write(folder, "file", bytes), &small);
}

/// Landmarks of what was read lie on the borders of characters, and what is refused has a reason.
fn read_file(path: &Path, limits: &Limits) {
    for item in read(&[path.to_owned()], limits) {
        match item {
            Item::Document { document, .. } => {
                assert!(!document.text.trim().is_empty(), "a document without text");
                for landmark in &document.outline {
                    assert!(document.text.is_char_boundary(landmark.at), "{landmark:?}");
                    if let LandmarkKind::Heading { end, .. } = landmark.kind {
                        assert!(landmark.at <= end && document.text.is_char_boundary(end), "{landmark:?}");
                    }
                }
                assert!(document.outline.is_sorted_by_key(|landmark| landmark.at), "landmarks out of order");
            }
            Item::Skipped { reason, .. } => assert!(!reason.to_string().is_empty()),
            Item::Error(error) => assert!(!error.to_string().is_empty() && !error.place().is_empty(), "{error}"),
        }
    }
}

fn graph(_: &Path, bytes: &[u8]) {
    if let Err(reason) = try_graph_file(bytes, GRAPH_NODES) {
        assert!(!reason.is_empty());
    }
}
