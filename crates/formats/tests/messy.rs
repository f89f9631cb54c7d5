//! What people really have: 25 files with a trouble each, from other projects' tests (M33, F24, F26).
//!
//! The files are not part of the repository: without them these tests say so and pass.

use std::path::{Path, PathBuf};

use anchorite_core::{Document, LandmarkKind, Limits};
use anchorite_formats::{ExtractError, Item, ReadError, Remark, SkipReason, read};
use serde_json::Value;

/// The folder of the files, if it is there.
fn folder() -> Option<PathBuf> {
    let inside = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = inside.ancestors().map(|folder| folder.join("shared/data/messy"));
    let found = places.into_iter().find(|place| place.join("manifest.jsonl").is_file());
    if found.is_none() {
        eprintln!("skipped: shared/data/messy is not beside the checkout");
    }
    found
}

fn manifest(folder: &Path) -> Vec<Value> {
    let lines = std::fs::read_to_string(folder.join("manifest.jsonl")).expect("a manifest");
    lines.lines().map(|line| serde_json::from_str(line).expect("a record")).collect()
}

fn items(path: &Path, password: Option<&str>) -> Vec<Item> {
    read(&[path.to_owned()], &Limits::default()).with_password(password.map(str::to_owned)).collect()
}

fn strings<'v>(record: &'v Value, name: &str) -> Vec<&'v str> {
    record[name].as_array().map(|all| all.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn only_document(items: Vec<Item>) -> (Document, Vec<Remark>) {
    match <[Item; 1]>::try_from(items) {
        Ok([Item::Document { document, remarks }]) => (document, remarks),
        other => panic!("expected one document, got {other:?}"),
    }
}

#[test]
fn m33_every_messy_file_gives_what_a_reader_sees() {
    let Some(folder) = folder() else { return };
    let mut wrong = Vec::new();
    let records = manifest(&folder);
    assert_eq!(records.len(), 25);
    for record in &records {
        let name = record["file"].as_str().expect("a name");
        let text: String = items(&folder.join(name), None)
            .iter()
            .map(|item| match item {
                Item::Document { document, .. } => format!("{}\n{}\n", document.title, document.text),
                _ => String::new(),
            })
            .collect();
        let text = folded(&text);
        if record["has_text"].as_bool() == Some(true) && text.is_empty() {
            wrong.push(format!("{name}: no text"));
        }
        if record["has_text"].as_bool() == Some(false) && !text.is_empty() {
            wrong.push(format!("{name}: text where there is none: {text:.60}"));
        }
        wrong.extend(
            strings(record, "expect")
                .iter()
                .filter(|it| !text.contains(&folded(it)))
                .map(|it| format!("{name}: lacks {it}")),
        );
        wrong.extend(
            strings(record, "absent").iter().filter(|it| text.contains(**it)).map(|it| format!("{name}: has {it}")),
        );
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn m33_offsets_of_every_outline_are_true() {
    let Some(folder) = folder() else { return };
    for record in manifest(&folder) {
        let name = record["file"].as_str().expect("a name");
        for item in items(&folder.join(name), record["password"].as_str()) {
            let Item::Document { document, .. } = item else { continue };
            let mut last = 0;
            for mark in &document.outline {
                assert!(mark.at >= last && document.text.is_char_boundary(mark.at), "{name}: {mark:?}");
                last = mark.at;
                if let LandmarkKind::Heading { level, end } = mark.kind {
                    assert!(
                        (1..=6).contains(&level) && end > mark.at && end <= document.text.len(),
                        "{name}: {mark:?}"
                    );
                    assert!(document.text.is_char_boundary(end), "{name}: {mark:?}");
                }
            }
        }
    }
}

#[test]
fn m33_scans_are_reported_with_the_remedy() {
    let Some(folder) = folder() else { return };
    for name in ["scan_image_only.pdf", "scan_medical_report.pdf"] {
        match items(&folder.join(name), None).as_slice() {
            [Item::Skipped { reason: SkipReason::NoTextLayer, .. }] => {}
            other => panic!("{name}: {other:?}"),
        }
    }
    assert!(SkipReason::NoTextLayer.to_string().contains("OCR"));
}

#[test]
fn m33_encrypted_files_are_reported_and_opened_with_their_password() {
    let Some(folder) = folder() else { return };
    let path = folder.join("encrypted_password.pdf");
    for (password, wrong) in [(None, false), (Some("not this"), true)] {
        match items(&path, password).as_slice() {
            [Item::Error(ReadError::Extract(ExtractError::Encrypted { .. }))] if !wrong => {}
            [Item::Error(ReadError::Extract(ExtractError::WrongPassword { .. }))] if wrong => {}
            other => panic!("{other:?}"),
        }
    }
    let (document, _) = only_document(items(&path, Some("openpassword")));
    assert!(folded(&document.text).contains("Lorem ipsum dolor sit amet"), "{}", document.text);
}

#[test]
fn m33_gibberish_is_remarked() {
    let Some(folder) = folder() else { return };
    let gibberish = |name: &str| only_document(items(&folder.join(name), None)).1.contains(&Remark::Gibberish);
    assert!(gibberish("broken_cmap.pdf"));
    for name in ["two_columns.pdf", "right_to_left.pdf", "korean_tables.pdf", "code_and_formula.pdf", "corrupted.pdf"] {
        assert!(!gibberish(name), "{name}");
    }
}

#[test]
fn m33_columns_are_read_one_after_the_other() {
    let Some(folder) = folder() else { return };
    let (document, _) = only_document(items(&folder.join("two_columns.pdf"), None));
    let text = folded(&document.text);
    // The end of the left column of the first page, and the beginning of the right one.
    assert!(text.contains("vitae tortor. Proin tempus nibh sit amet nisl."), "a line goes on in its column: {text}");
    assert!(text.contains("Integer non enim. Praesent euismod nunc eu purus."), "{text}");
    assert!(text.contains("fringilla ultrices. Phasellus"), "{text}");
    assert!(!text.contains('ﬁ') && text.contains("consectetuer adipiscing elit"), "words are whole: {text}");
    assert!(text.contains("| Country | Population (millions) |"), "{text}");
    assert_eq!(document.metadata["language"], "lat", "{:?}", document.metadata);
}
