//! Ingest of what people really have, through the program and its child process (M33, F31).

mod common;

use std::path::{Path, PathBuf};

use common::{Workplace, list_at, number_at, text_at};

/// The folder of real files with a trouble each, if it is there.
fn messy() -> Option<PathBuf> {
    let inside = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = inside.ancestors().map(|folder| folder.join("shared/data/messy")).find(|place| place.is_dir());
    if found.is_none() {
        eprintln!("skipped: shared/data/messy is not beside the checkout");
    }
    found
}

#[test]
fn m33_a_folder_of_messy_files_is_taken_in_and_found() {
    let (Some(place), Some(messy)) = (Workplace::with_models(), messy()) else { return };
    for name in [
        "scan_image_only.pdf",
        "encrypted_password.pdf",
        "rotated_pages.pdf",
        "right_to_left.pdf",
        "broken_cmap.pdf",
        "tables.docx",
        "cp1252.html",
        "semicolon.csv",
    ] {
        place.write(&format!("messy/{name}"), std::fs::read(messy.join(name)).expect("reads"));
    }
    place.write("messy/damaged.pdf", "%PDF-1.7 and no more");
    let report = place.json(&["ingest", "messy", "--kb", "messy.kb"], 0);
    assert_eq!(number_at(&report, "/added"), 6, "{report:#}");
    assert!(report["notice"].is_null(), "the child is limited in all: {report:#}");
    let failed: Vec<&str> = list_at(&report, "/failed").iter().map(|failed| text_at(failed, "/source")).collect();
    assert_eq!(failed, ["messy/damaged.pdf", "messy/encrypted_password.pdf"]);
    assert!(text_at(&list_at(&report, "/failed")[1], "/reason").contains("--password"));
    assert_eq!(text_at(&list_at(&report, "/skipped")[0], "/source"), "messy/scan_image_only.pdf");
    assert!(text_at(&list_at(&report, "/warnings")[0], "/reason").contains("gibberish"), "{report:#}");

    let report = place.json(&["ingest", "messy", "--kb", "messy.kb", "--password", "openpassword"], 0);
    assert_eq!(number_at(&report, "/added"), 1, "{report:#}");
    let found =
        place.json(&["search", "toolkit for detecting and extracting metadata", "--kb", "messy.kb", "-k", "1"], 0);
    assert!(found.to_string().contains("messy/rotated_pages.pdf"), "{found:#}");
}
