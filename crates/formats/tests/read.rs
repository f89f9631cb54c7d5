//! Reading: formats, folders, standard input, and what is wrong with files (M33, F24, F26, F32).

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anchorite_core::{Document, Limits};
use anchorite_formats::{Item, ReadError, Reader, Remark, SkipReason, read, total_bytes};
use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().expect("temporary folder")
}

fn put(folder: &TempDir, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().expect("inside the folder")).expect("makes folders");
    fs::write(&path, bytes).expect("writes");
    path
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("compresses");
    encoder.finish().expect("compresses")
}

/// One line an item, paths relative to `root`.
fn lines(root: &Path, reader: Reader) -> Vec<String> {
    let root = format!("{}/", root.display());
    let line = |item| match item {
        Item::Document { document: Document { source, title, text, .. }, remarks } => {
            let remark = |it: &Remark| match it {
                Remark::Lost(lost) => format!(" [{}/{}]", lost.invalid, lost.nul),
                other => format!(" [{other}]"),
            };
            format!("{source} | {title} | {text:?}{}", remarks.iter().map(remark).collect::<String>())
        }
        Item::Skipped { source, reason } => format!("{source} skipped: {reason:?}"),
        Item::Error(error) => format!("error: {error}"),
    };
    reader.map(|item| line(item).replace(&root, "")).collect()
}

fn read_all(root: &Path) -> Vec<String> {
    lines(root, read(&[root.to_owned()], &Limits::default()))
}

fn read_one(name: &str, bytes: impl AsRef<[u8]>) -> Vec<String> {
    let folder = folder();
    let path = put(&folder, name, bytes);
    lines(folder.path(), read(&[path], &Limits::default()))
}

#[test]
fn m33_text_and_markdown_are_one_document_each() {
    assert_eq!(read_one("notes.v2.txt", "One.\r\nTwo."), ["notes.v2.txt | notes.v2 | \"One.\\r\\nTwo.\""]);
    assert_eq!(read_one("a.md", "intro\n# The title\ntext"), ["a.md | The title | \"intro\\n# The title\\ntext\""]);
    assert_eq!(read_one("b.md", "no heading"), ["b.md | b | \"no heading\""]);
    assert_eq!(read_one("c.txt.gz", gzip(b"squeezed")), ["c.txt.gz | c | \"squeezed\""]);
    assert_eq!(read_one("d.md.gz", gzip(b"# D\n")), ["d.md.gz | D | \"# D\\n\""]);
    // Two compressed files one after the other are one.
    assert_eq!(read_one("e.txt.gz", [gzip(b"one "), gzip(b"two")].concat()), ["e.txt.gz | e | \"one two\""]);
}

#[test]
fn m33_each_line_of_jsonl_is_a_document() {
    let jsonl = concat!(
        "{\"_id\": \"a/1\", \"title\": \"T\", \"text\": \"One \\u00e9\", \"year\": 1999, \"tags\": [\"x\"]}\r\n",
        "\n  \n",
        "{\"_id\": 7, \"text\": \"Seven\", \"title\": null}\n",
        "{\"text\": \"no id\"}\n{\"_id\": \"\", \"text\": \"empty id\"}",
    );
    let expected = ["#a/1 | T | \"One é\"", "#7 |  | \"Seven\"", "#5 |  | \"no id\"", "#6 |  | \"empty id\""];
    let named = |name: &str| expected.map(|line| format!("{name}{line}"));
    assert_eq!(read_one("r.jsonl", jsonl), named("r.jsonl"));
    assert_eq!(read_one("r.jsonl.gz", gzip(jsonl.as_bytes())), named("r.jsonl.gz"));
    assert_eq!(read_one("bom.jsonl", format!("\u{feff}{jsonl}")), named("bom.jsonl"));

    let folder = folder();
    let path = put(&folder, "r.jsonl", jsonl);
    match read(&[path], &Limits::default()).next() {
        Some(Item::Document { document, .. }) => {
            let expected = BTreeMap::from([
                ("tags".to_owned(), serde_json::json!(["x"])),
                ("year".to_owned(), serde_json::json!(1999)),
            ]);
            assert_eq!(document.metadata, expected);
        }
        other => panic!("expected a document, got {other:?}"),
    }
}

#[test]
fn m33_a_bad_line_is_named_and_the_rest_goes_on() {
    let jsonl = "{\"text\": \"one\"}\nnot json\n[1]\n{\"_id\": \"x\"}\n{\"text\": 5}\n{\"text\": \"t\", \"_id\": {}}\n\
                 {\"text\": \"t\", \"title\": 1}\n{\"text\": \"\\ud800\"}\n{\"text\": \"nine\"}\n{\"text\": \"cut";
    let lines = read_one("r.jsonl", jsonl);
    assert_eq!(lines.first().map(String::as_str), Some("r.jsonl#1 |  | \"one\""));
    assert_eq!(lines.len(), 10);
    for (index, number) in (2..=8).enumerate() {
        assert!(lines[index + 1].starts_with(&format!("error: r.jsonl:{number}: ")), "{}", lines[index + 1]);
    }
    assert!(lines[1].contains("(column 2); each line must be"), "{}", lines[1]);
    assert!(lines[3].contains("it has no \"text\""), "{}", lines[3]);
    assert_eq!(lines[8], "r.jsonl#9 |  | \"nine\"");
    assert!(lines[9].starts_with("error: r.jsonl:10: "), "{}", lines[9]);
}

#[test]
fn m33_a_folder_is_read_in_the_order_of_names() {
    let folder = folder();
    for (name, bytes) in [
        ("b.txt", "B"),
        ("a/z.txt", "Z"),
        ("a/c.md", "C"),
        ("a.txt", "A"),
        ("picture.png", "P"),
        (".hidden.txt", "H"),
        (".git/config.txt", "G"),
        ("empty/.keep", ""),
        ("sound.txt", "ID3\u{4}"),
        ("ü ñ.txt", "U"),
    ] {
        put(&folder, name, bytes);
    }
    let expected = [
        ".git skipped: Hidden",
        ".hidden.txt skipped: Hidden",
        "a/c.md | c | \"C\"",
        "a/z.txt | z | \"Z\"",
        "a.txt | a | \"A\"",
        "b.txt | b | \"B\"",
        "empty/.keep skipped: Hidden",
        "picture.png | picture | \"P\"",
        "sound.txt skipped: UnknownFormat",
        "ü ñ.txt | ü ñ | \"U\"",
    ];
    assert_eq!(read_all(folder.path()), expected);
    assert_eq!(read_all(folder.path()), expected, "twice the same");
    // Named as such, a hidden file is read.
    let hidden = folder.path().join(".hidden.txt");
    assert_eq!(lines(folder.path(), read(&[hidden], &Limits::default())), [".hidden.txt | .hidden | \"H\""]);
}

#[test]
fn f24_what_has_no_text_is_skipped_with_a_reason() {
    for bytes in [&b""[..], b" \r\n\t", b"\xef\xbb\xbf", b"\xff\xfe", b"\xef\xbb\xbf\n", "\u{a0}\u{2003}".as_bytes()] {
        assert_eq!(read_one("e.txt", bytes), ["e.txt skipped: Blank"], "{bytes:?}");
    }
    assert_eq!(read_one("e.txt.gz", gzip(b"")), ["e.txt.gz skipped: Blank"]);
    assert_eq!(read_one("e.jsonl", "\n \n"), [""; 0]);
    let records = "{\"text\": \" \"}\n{\"title\": \"T\", \"text\": \"\\ufeff\\n\"}";
    assert_eq!(read_one("r.jsonl", records), ["r.jsonl#1 skipped: Blank", "r.jsonl#2 skipped: OnlyTitle"]);
}

#[test]
fn f26_what_is_no_text_is_reported() {
    assert_eq!(
        read_one("l.txt", b"A caf\xe9 in Paris, of course."),
        ["l.txt | l | \"A café in Paris, of course.\""],
        "another encoding is told"
    );
    assert_eq!(
        read_one("l.txt", [&b"Caf\xe9, "[..], "ü".repeat(20).as_bytes()].concat()),
        [format!("l.txt | l | \"Caf\u{fffd}, {}\" [1/0]", "ü".repeat(20))]
    );
    assert_eq!(
        read_one("n.txt", b"A word, NUL \0 and more."),
        ["n.txt | n | \"A word, NUL \u{fffd} and more.\" [0/1]"]
    );
    let utf16: Vec<u8> = "\u{feff}Die Größe des Hauses 😀".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(read_one("u.txt", &utf16), ["u.txt | u | \"Die Größe des Hauses 😀\""]);
    assert_eq!(
        read_one("u.txt", &utf16[..utf16.len() - 1]),
        ["u.txt | u | \"Die Größe des Hauses \u{fffd}\u{fffd}\" [2/0]"]
    );
    let records = [&b"{\"text\": \"caf\xe9 \\u0000\", \"title\": \"\\u0000\"}"[..], b"\n{\"text\": \"fine\"}"].concat();
    assert_eq!(
        read_one("r.jsonl", &records),
        ["r.jsonl#1 | \u{fffd} | \"caf\u{fffd} \u{fffd}\" [1/2]", "r.jsonl#2 |  | \"fine\"",]
    );
    assert_eq!(read_one("b.txt", (0..=255).collect::<Vec<u8>>()), ["b.txt skipped: NotText"]);
    let utf16_jsonl: Vec<u8> = "\u{feff}{\"text\": \"x\"}\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let error = read_one("u.jsonl", &utf16_jsonl);
    assert!(error.len() == 1 && error[0].starts_with("error: u.jsonl: JSONL must be UTF-8"), "{error:?}");
}

#[test]
fn f26_the_text_is_what_the_file_holds() {
    let text = "e\u{301}\u{200d}👩\u{200d}👧 שלום \u{202e}x\r\nNFD: a\u{308}\t\u{2028}\u{85} end \n";
    assert_eq!(read_one("t.txt", text), [format!("t.txt | t | {text:?}")]);
}

#[test]
fn m33_what_can_not_be_read_is_an_error_that_names_it() {
    let folder = folder();
    let missing = folder.path().join("missing.txt");
    let good = put(&folder, "good.txt", "G");
    let lines = lines(folder.path(), read(&[missing, good], &Limits::default()));
    assert!(lines[0].starts_with("error: missing.txt: "), "{}", lines[0]);
    assert_eq!(lines[1..], ["good.txt | good | \"G\""]);

    let whole = gzip("{\"text\": \"a line that is long enough\"}\n".repeat(2000).as_bytes());
    let cut = read_one("cut.jsonl.gz", &whole[..whole.len() - 9]);
    assert!(cut.len() > 1000, "what came before is kept: {}", cut.len());
    assert!(cut.last().expect("some").starts_with("error: cut.jsonl.gz: not a whole gzip file"), "{:?}", cut.last());
    let fake = read_one("fake.txt.gz", "plain text");
    assert_eq!(fake, ["fake.txt.gz | fake | \"plain text\""], "what it is, not what it is called");
    let fake = read_one("fake.txt.gz", b"\x1f\x8b\x08 no more");
    assert!(fake[0].starts_with("error: fake.txt.gz: not a whole gzip file"), "{fake:?}");
}

#[test]
fn m33_limits_are_named() {
    let limits = Limits { line_bytes: 40, document_bytes: 20, file_bytes: 120, ..Limits::default() };
    let folder = folder();
    let one = |name: &str, bytes: &[u8]| lines(folder.path(), read(&[put(&folder, name, bytes)], &limits));
    let fits = "x".repeat(20);
    assert_eq!(one("a.txt", fits.as_bytes()), [format!("a.txt | a | {fits:?}")]);
    let over = one("b.txt", "x".repeat(21).as_bytes());
    assert!(over[0].starts_with("error: b.txt is 21, and the limit `document_bytes` is 20"), "{over:?}");
    // A small file that would fill the memory.
    let bomb = one("c.txt.gz", &gzip(&vec![b'x'; 5_000_000]));
    assert!(bomb[0].contains("is 5000000, and the limit `document_bytes` is 20"), "{bomb:?}");

    let exact = format!("{{\"text\": {:27}\"x\"}}", "");
    assert_eq!(exact.len(), 40);
    let records = format!("{exact}\n{exact} \n{{\"text\": \"y\"}}\n");
    let lines_of = one("d.jsonl", records.as_bytes());
    assert_eq!(lines_of[0], "d.jsonl#1 |  | \"x\"");
    assert!(
        lines_of[1].starts_with("error: line 2 of d.jsonl is 42, and the limit `line_bytes` is 40"),
        "{lines_of:?}"
    );
    assert_eq!(lines_of[2..], ["d.jsonl#3 |  | \"y\""]);

    let long = one("e.jsonl", "{\"text\": \"yyyyyyyyyyyyyyyyyyyyyyyyy\"}".as_bytes());
    assert!(
        long[0].starts_with("error: the text of e.jsonl#1 is 25, and the limit `document_bytes` is 20"),
        "{long:?}"
    );
    let large = one("f.jsonl", "{\"text\": \"x\"}\n".repeat(10).as_bytes());
    assert!(large[0].starts_with("error: f.jsonl is 140, and the limit `file_bytes` is 120"), "{large:?}");
    let bomb = one("g.jsonl.gz", &gzip("{\"text\": \"x\"}\n".repeat(100_000).as_bytes()));
    assert_eq!(bomb.len(), 9);
    assert!(bomb[8].starts_with("error: g.jsonl.gz is 121, and the limit `file_bytes` is 120"), "{bomb:?}");
}

fn from_input(input: impl Read + Send + 'static) -> Vec<String> {
    let reader = read(&[PathBuf::from("-")], &Limits::default()).with_standard_input(input);
    lines(Path::new("nowhere"), reader)
}

#[test]
fn m33_standard_input_is_records_or_a_text() {
    assert_eq!(
        from_input(&b" \n {\"_id\": \"a\", \"text\": \"A\"}\n{\"text\": \"B\"}"[..]),
        ["-#a |  | \"A\"", "-#3 |  | \"B\""]
    );
    assert_eq!(from_input("\u{feff}{\"text\": \"A\"}".as_bytes()), ["-#1 |  | \"A\""]);
    assert_eq!(from_input(&b"# Title\n{not json}"[..]), ["- | Title | \"# Title\\n{not json}\""]);
    assert_eq!(from_input(&b"hi"[..]), ["- |  | \"hi\""]);
    assert_eq!(from_input(&b"{"[..]).len(), 1);
    assert_eq!(from_input(io::empty()), ["- skipped: Blank"]);
    let twice = [PathBuf::from("-"), PathBuf::from("-")];
    let reader = read(&twice, &Limits::default()).with_standard_input(&b"once"[..]);
    assert_eq!(lines(Path::new("nowhere"), reader), ["- |  | \"once\"", "- skipped: Blank"]);
    assert_eq!(total_bytes(&twice), None);
}

/// A pipe that gives one byte at a time.
struct Dribble(io::Cursor<Vec<u8>>);

impl Read for Dribble {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(1);
        self.0.read(&mut buffer[..most])
    }
}

#[test]
fn m33_a_slow_pipe_gives_the_same() {
    let bytes = "\u{feff} {\"text\": \"A\"}\n{\"text\": \"B\"}\n".as_bytes().to_vec();
    assert_eq!(from_input(Dribble(io::Cursor::new(bytes))), ["-#1 |  | \"A\"", "-#2 |  | \"B\""]);
}

/// Endless records; counts what was taken of them.
struct Endless {
    line: &'static [u8],
    at: usize,
    taken: Arc<AtomicU64>,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        for byte in &mut *buffer {
            *byte = self.line[self.at];
            self.at = (self.at + 1) % self.line.len();
        }
        self.taken.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        Ok(buffer.len())
    }
}

#[test]
fn m33_records_come_before_the_file_is_read() {
    let taken = Arc::new(AtomicU64::new(0));
    let endless = Endless { line: b"{\"text\": \"again\"}\n", at: 0, taken: Arc::clone(&taken) };
    let reader = read(&[PathBuf::from("-")], &Limits::default()).with_standard_input(endless);
    let progress = reader.progress();
    let mut documents = 0;
    for item in reader.take(10_000) {
        documents += u64::from(matches!(item, Item::Document { .. }));
        let ahead = progress.bytes() - documents * 18;
        assert!(ahead < 200_000, "{ahead} bytes are held");
    }
    assert_eq!(documents, 10_000);
    assert_eq!(progress.bytes(), taken.load(Ordering::Relaxed));
}

#[test]
fn m33_progress_ends_at_the_total() {
    let folder = folder();
    put(&folder, "a.txt", "some text");
    put(&folder, "b.jsonl", "{\"text\": \"x\"}\nbad\n");
    put(&folder, "c.jsonl.gz", gzip("{\"text\": \"x\"}\n".repeat(50).as_bytes()));
    put(&folder, "d.txt.gz", "damaged");
    put(&folder, "e.txt", "too large ".repeat(100));
    put(&folder, "f.png", "not read");
    let paths = [folder.path().to_owned()];
    let limits = Limits { document_bytes: 500, ..Limits::default() };
    let reader = read(&paths, &limits);
    let progress = reader.progress();
    assert_eq!(progress.bytes(), 0);
    assert_eq!(reader.count(), 1 + 2 + 50 + 3);
    assert_eq!(Some(progress.bytes()), total_bytes(&paths));
}

#[cfg(unix)]
mod f32_special_files {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    #[test]
    fn f32_pipes_devices_and_links_are_skipped_with_a_reason() {
        let folder = folder();
        let outside = tempfile::tempdir().expect("temporary folder");
        fs::write(outside.path().join("secret.txt"), "S").expect("writes");
        put(&folder, "real/a.txt", "A");
        let at = |name: &str| folder.path().join(name);
        symlink(".", at("real/loop")).expect("links");
        symlink("real", at("alias")).expect("links");
        symlink("real/a.txt", at("file.txt")).expect("links");
        symlink("nowhere.txt", at("broken.txt")).expect("links");
        symlink("/dev/zero", at("zero.txt")).expect("links");
        symlink(outside.path(), at("out")).expect("links");
        symlink(outside.path().join("secret.txt"), at("out.txt")).expect("links");
        let made = Command::new("mkfifo").arg(at("pipe.txt")).status().expect("mkfifo runs");
        assert!(made.success());
        let mut lines = read_all(folder.path());
        let broken = lines.remove(2);
        assert!(broken.starts_with("error: broken.txt: "), "{broken}");
        assert_eq!(
            lines,
            [
                "alias/a.txt | a | \"A\"",
                "alias/loop skipped: LinkLoop",
                // The error of the broken link was here.
                "file.txt | file | \"A\"",
                "out skipped: LinkOutside",
                "out.txt skipped: LinkOutside",
                "pipe.txt skipped: NotAFile",
                "real/a.txt | a | \"A\"",
                "real/loop skipped: LinkLoop",
                "zero.txt skipped: LinkOutside",
            ]
        );
        // Named as such, a link is followed and a device is still none of ours.
        let named = [at("out"), PathBuf::from("/dev/zero"), at("pipe.txt")];
        let lines = lines.len() + super::lines(folder.path(), read(&named, &Limits::default())).len();
        assert_eq!(lines, 9 + 3);
        let device = super::lines(folder.path(), read(&named[1..2], &Limits::default()));
        assert_eq!(device, ["/dev/zero skipped: NotAFile"]);
    }

    #[test]
    fn f32_a_name_that_is_not_unicode_is_skipped() {
        let folder = folder();
        let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
        fs::write(folder.path().join(name), "x").expect("writes");
        assert_eq!(read_all(folder.path()), ["caf\u{fffd}.txt skipped: NameNotUnicode"]);
    }

    #[test]
    fn f32_a_file_that_changes_while_it_is_read_is_reported() {
        let folder = folder();
        let path = put(&folder, "growing.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
        let mut reader = read(std::slice::from_ref(&path), &Limits::default());
        assert!(matches!(reader.next(), Some(Item::Document { .. })));
        let mut file = fs::OpenOptions::new().append(true).open(&path).expect("opens");
        file.write_all(b"{\"text\": \"three\"}\n").expect("writes");
        let rest: Vec<Item> = reader.collect();
        match rest.last() {
            Some(Item::Error(ReadError::Changed { path: named })) => assert_eq!(*named, path.display().to_string()),
            other => panic!("expected the change, got {other:?}"),
        }
    }
}

#[test]
fn m33_every_reason_has_words() {
    use SkipReason::{
        Blank, Changed, Hidden, LinkLoop, LinkOutside, NameNotUnicode, NoFileInArchive, NoTextLayer, NotAFile, NotText,
        OnlyTitle, PathOutside, UnknownFormat,
    };
    let reasons = [
        Blank,
        Changed,
        Hidden,
        LinkLoop,
        LinkOutside,
        NameNotUnicode,
        NoFileInArchive,
        NoTextLayer,
        NotAFile,
        NotText,
        OnlyTitle,
        PathOutside,
        UnknownFormat,
    ];
    let words: std::collections::BTreeSet<String> = reasons.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), reasons.len());
}
