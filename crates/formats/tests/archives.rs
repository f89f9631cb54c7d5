//! Archives: each file in them is a document; what leads out of them is refused (F29), and what would fill memory or disk is
//! stopped (F30).

use std::fs;
use std::io::{Cursor, Write};

use anchorite_core::Limits;
use anchorite_formats::{ExtractError, Item, ReadError, read};
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};
use zip::write::{SimpleFileOptions, ZipWriter};

fn zipped(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        writer.start_file(*name, SimpleFileOptions::default()).expect("begins");
        writer.write_all(bytes).expect("writes");
    }
    writer.finish().expect("ends").into_inner()
}

/// A TAR file with names as they are: the library that writes them refuses what is tested here.
fn tarred(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, kind, content) in entries {
        let mut header = Header::new_ustar();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        if kind.is_symlink() || kind.is_hard_link() {
            header.set_link_name("/etc/passwd").expect("a name");
        }
        header.set_cksum();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("compresses");
    encoder.finish().expect("compresses")
}

fn lines(name: &str, bytes: &[u8], limits: &Limits) -> Vec<String> {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("writes");
    let root = format!("{}/", folder.path().display());
    let line = |item| match item {
        Item::Document { document, .. } => format!("{} | {} | {}", document.source, document.title, document.text),
        Item::Skipped { source, reason } => format!("{source} skipped: {reason:?}"),
        Item::Error(ReadError::Extract(ExtractError::Limit(limit))) => format!("{} over {}", limit.what, limit.limit),
        Item::Error(error) => format!("error: {error}"),
    };
    read(&[path], limits).map(|item| line(item).replace(&root, "")).collect()
}

const TAR_OF_TWO: &[(&str, EntryType, &[u8])] = &[
    ("notes/", EntryType::Directory, b""),
    ("notes/a.txt", EntryType::Regular, b"One."),
    ("b.md", EntryType::Regular, b"# Two\n"),
];

#[test]
fn m33_each_file_in_an_archive_is_a_document() {
    let limits = Limits::default();
    let archive = zipped(&[
        ("notes/a.txt", b"One."),
        ("b.md", b"# Two\n"),
        ("c.jsonl", b"{\"_id\": \"x\", \"text\": \"Three\"}"),
    ]);
    let expected = ["in.zip#notes/a.txt | a | One.", "in.zip#b.md | Two | # Two\n", "in.zip#c.jsonl#x |  | Three"];
    assert_eq!(lines("in.zip", &archive, &limits), expected);
    assert_eq!(lines("in.zip", &zipped(&[]), &limits), [""; 0]);
    let expected = ["in.tar#notes/a.txt | a | One.", "in.tar#b.md | Two | # Two\n"];
    assert_eq!(lines("in.tar", &tarred(TAR_OF_TWO), &limits), expected);
    let expected = expected.map(|line| line.replace("in.tar", "in.tgz"));
    assert_eq!(lines("in.tgz", &gzipped(&tarred(TAR_OF_TWO)), &limits), expected);
    let nested = zipped(&[("deep/inner.zip", &zipped(&[("a.txt", b"One.")]))]);
    assert_eq!(lines("out.zip", &nested, &limits), ["out.zip#deep/inner.zip#a.txt | a | One."]);
    assert_eq!(
        lines("hidden.zip", &zipped(&[(".git/config", b"x"), ("__MACOSX/._a", b"x")]), &limits),
        ["hidden.zip#.git/config skipped: Hidden", "hidden.zip#__MACOSX/._a skipped: Hidden"]
    );
}

#[test]
fn f29_entries_that_lead_out_of_a_zip_file_are_refused() {
    let names = ["../up.txt", "a/../../up.txt", "/etc/passwd", "..\\up.txt", "C:\\up.txt", "\\\\server\\up.txt"];
    let mut entries: Vec<(&str, &[u8])> = names.iter().map(|name| (*name, &b"harm"[..])).collect();
    entries.push(("good.txt", b"good"));
    let lines = lines("in.zip", &zipped(&entries), &Limits::default());
    assert_eq!(lines.len(), entries.len(), "{lines:#?}");
    for (name, line) in names.iter().zip(&lines) {
        assert!(line.ends_with("skipped: PathOutside"), "{name}: {line}");
    }
    assert_eq!(lines.last().map(String::as_str), Some("in.zip#good.txt | good | good"));
}

#[test]
fn f29_links_in_a_zip_file_are_refused() {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.add_symlink("link.txt", "/etc/passwd", SimpleFileOptions::default()).expect("a link");
    writer.start_file("good.txt", SimpleFileOptions::default()).expect("begins");
    writer.write_all(b"good").expect("writes");
    let bytes = writer.finish().expect("ends").into_inner();
    let expected = ["in.zip#link.txt skipped: NoFileInArchive", "in.zip#good.txt | good | good"];
    assert_eq!(lines("in.zip", &bytes, &Limits::default()), expected);
}

#[test]
fn f29_links_devices_and_paths_in_a_tar_file_are_refused() {
    let bytes = tarred(&[
        ("../up.txt", EntryType::Regular, b"harm"),
        ("/etc/shadow", EntryType::Regular, b"harm"),
        ("soft.txt", EntryType::Symlink, b""),
        ("hard.txt", EntryType::Link, b""),
        ("character", EntryType::Char, b""),
        ("block", EntryType::Block, b""),
        ("pipe", EntryType::Fifo, b""),
        ("good.txt", EntryType::Regular, b"good"),
    ]);
    let expected = [
        "in.tar#../up.txt skipped: PathOutside",
        "in.tar#/etc/shadow skipped: PathOutside",
        "in.tar#soft.txt skipped: NoFileInArchive",
        "in.tar#hard.txt skipped: NoFileInArchive",
        "in.tar#character skipped: NoFileInArchive",
        "in.tar#block skipped: NoFileInArchive",
        "in.tar#pipe skipped: NoFileInArchive",
        "in.tar#good.txt | good | good",
    ];
    assert_eq!(lines("in.tar", &bytes, &Limits::default()), expected);
}

#[test]
fn f30_a_bomb_is_stopped_by_ratio_size_total_and_number() {
    let zeros = vec![b'x'; 8 << 20];
    let bomb = zipped(&[("bomb.txt", &zeros), ("good.txt", b"good")]);
    assert!(bomb.len() < 20_000);
    let found = lines("in.zip", &bomb, &Limits::default());
    assert_eq!(found, ["the packing ratio of in.zip#bomb.txt over archive_ratio", "in.zip#good.txt | good | good"]);
    let limits = Limits { archive_ratio: u64::MAX, packed_file_bytes: 1 << 20, ..Limits::default() };
    let found = lines("in.zip", &bomb, &limits);
    assert_eq!(found, ["the size of in.zip#bomb.txt over packed_file_bytes", "in.zip#good.txt | good | good"]);
    // The total ends the archive: what is behind it is not read.
    let many: Vec<(String, Vec<u8>)> = (0..10).map(|number| (format!("{number}.txt"), vec![b'y'; 1 << 20])).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let limits = Limits { archive_ratio: u64::MAX, archive_bytes: 3 << 20, ..Limits::default() };
    let found = lines("in.zip", &zipped(&many), &limits);
    assert_eq!(found.len(), 4, "{:?}", found.iter().map(|line| line.len()).collect::<Vec<_>>());
    assert_eq!(found[3], "the unpacked total of in.zip#3.txt over archive_bytes");
    let limits = Limits { archive_entries: 5, ..Limits::default() };
    assert_eq!(lines("in.zip", &zipped(&many), &limits), ["the number of entries of in.zip over archive_entries"]);
    let entries: Vec<(&str, EntryType, &[u8])> =
        many.iter().map(|(name, _)| (*name, EntryType::Regular, &b"z"[..])).collect();
    let found = lines("in.tar", &tarred(&entries), &limits);
    assert_eq!(found.last().map(String::as_str), Some("the number of entries of in.tar over archive_entries"));
    assert_eq!(found.len(), 6);
    let limits = Limits { archive_ratio: 50, ..Limits::default() };
    let found = lines("in.txt.gz", &gzipped(&zeros), &limits);
    assert_eq!(found, ["the packing ratio of in.txt.gz over archive_ratio"]);
}

#[test]
fn f30_archives_in_archives_end_at_a_depth() {
    let mut bytes = zipped(&[("a.txt", b"deep")]);
    for _ in 0..20 {
        bytes = zipped(&[("in.zip", &bytes)]);
    }
    let found = lines("out.zip", &bytes, &Limits::default());
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("the depth of out.zip#in.zip#in.zip") && found[0].ends_with("over archive_depth"),
        "{found:?}"
    );
    let mut bytes = b"deep".to_vec();
    for _ in 0..20 {
        bytes = gzipped(&bytes);
    }
    let found = lines("out.gz", &bytes, &Limits::default());
    assert_eq!(found, ["the depth of out.gz over archive_depth"]);
}

#[test]
fn f30_a_document_that_is_an_archive_is_a_bomb_too() {
    let mut xml = b"<?xml version=\"1.0\"?><w:document xmlns:w=\"w\"><w:body>".to_vec();
    xml.extend(b"<w:p><w:r><w:t>x</w:t></w:r></w:p>".repeat(400_000));
    let bytes = zipped(&[("[Content_Types].xml", b"<Types/>"), ("word/document.xml", &xml)]);
    let limits = Limits { archive_ratio: 50, ..Limits::default() };
    assert_eq!(lines("in.docx", &bytes, &limits), ["the packing ratio of in.docx over archive_ratio"]);
    let sheet = b"<row/>".repeat(2_000_000);
    let bytes = zipped(&[("xl/workbook.xml", b"<workbook/>"), ("xl/worksheets/sheet1.xml", &sheet)]);
    assert_eq!(lines("in.xlsx", &bytes, &limits), ["the packing ratio of in.xlsx over archive_ratio"]);
}

#[test]
fn f29_encrypted_entries_are_reported_and_opened_with_the_password() {
    use zip::unstable::write::FileOptionsExt;

    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().with_deprecated_encryption(b"sesame").expect("a password");
    writer.start_file("secret.txt", options).expect("begins");
    writer.write_all(b"the secret").expect("writes");
    let bytes = writer.finish().expect("ends").into_inner();
    let found = lines("in.zip", &bytes, &Limits::default());
    assert!(found.len() == 1 && found[0].contains("in.zip#secret.txt: encrypted; give its password"), "{found:?}");
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("in.zip");
    fs::write(&path, bytes).expect("writes");
    let open = |password: &str| -> Vec<Item> {
        read(std::slice::from_ref(&path), &Limits::default()).with_password(Some(password.to_owned())).collect()
    };
    assert!(matches!(open("sesame").as_slice(), [Item::Document { document, .. }] if document.text == "the secret"));
    assert!(matches!(open("wrong").as_slice(), [Item::Error(_)]));
}
