//! What a file is, by its content. The name decides only where the content can't: Markdown and source code are plain text to
//! look at, and so are tables of one column.

/// What a file is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Pdf,
    Docx,
    Pptx,
    /// Every kind of workbook but OpenDocument's: `.xlsx`, `.xlsb`, `.xls`.
    Workbook,
    OpenDocument,
    Epub,
    Zip,
    Tar,
    Gzip,
    Html,
    Mail,
    Mailbox,
    /// JSONL.
    Records,
    Json,
    /// Values with this byte between them.
    Delimited(u8),
    Markdown,
    /// Source code in a language.
    Code(&'static str),
    Text,
    /// Something without text, or whose text can't be read.
    Other,
}

impl Kind {
    /// Parsers of these are run in a process of their own.
    pub(crate) fn is_risky(self) -> bool {
        !matches!(
            self,
            Self::Records | Self::Json | Self::Delimited(_) | Self::Markdown | Self::Code(_) | Self::Text | Self::Other
        )
    }

    /// The name as metadata have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pdf => "pdf",
            Self::Docx => "docx",
            Self::Pptx => "pptx",
            Self::Workbook => "workbook",
            Self::OpenDocument => "opendocument",
            Self::Epub => "epub",
            Self::Zip => "zip",
            Self::Tar => "tar",
            Self::Gzip => "gzip",
            Self::Html => "html",
            Self::Mail => "mail",
            Self::Mailbox => "mailbox",
            Self::Records => "jsonl",
            Self::Json => "json",
            Self::Delimited(_) => "csv",
            Self::Markdown => "markdown",
            Self::Code(_) => "code",
            Self::Text => "text",
            Self::Other => "other",
        }
    }
}

/// Bytes that most formats show themselves in.
pub(crate) const HEAD: usize = 4096;

/// Beginnings of formats that hold no text, or none that is read here.
const OTHERS: &[&[u8]] = &[
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"BM\x36",
    b"II*\0",
    b"MM\0*",
    b"RIFF",
    b"OggS",
    b"fLaC",
    b"ID3",
    b"\0\0\0\x18ftyp",
    b"\0\0\0\x1cftyp",
    b"\0\0\0\x20ftyp",
    b"\x1aE\xdf\xa3",
    b"\x7fELF",
    b"MZ\x90",
    b"\xca\xfe\xba\xbe",
    b"\xcf\xfa\xed\xfe",
    b"SQLite format 3",
    b"\x28\xb5\x2f\xfd",
    b"BZh",
    b"\xfd7zXZ",
    b"7z\xbc\xaf",
    b"Rar!",
    b"wOFF",
    b"wOF2",
    b"\0asm",
    b"GGUF",
    b"PAR1",
    b"!<arch>",
    b"{\\rtf",
    b"%!PS",
];

/// What `head`, the beginning of a file, shows at once; `None` if the whole content must be looked at.
pub(crate) fn by_magic(head: &[u8]) -> Option<Kind> {
    let window = &head[..head.len().min(1024)];
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        Some(Kind::Zip)
    } else if head.starts_with(b"\x1f\x8b") {
        Some(Kind::Gzip)
    } else if head.starts_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") {
        Some(Kind::Workbook)
    } else if window.windows(5).any(|five| five == b"%PDF-") && !window.starts_with(b"From ") {
        Some(Kind::Pdf)
    } else if is_tar(head) {
        Some(Kind::Tar)
    } else if OTHERS.iter().any(|magic| head.starts_with(magic)) {
        Some(Kind::Other)
    } else {
        None
    }
}

/// The checksum of the first header holds, whatever the dialect (POSIX.1-1988, 10.1.1).
fn is_tar(head: &[u8]) -> bool {
    let Some(header) = head.get(..512).filter(|header| header[0] != 0) else { return false };
    let written = header[148..156].iter().copied().skip_while(|byte| *byte == b' ');
    let digits = written.take_while(|byte| (b'0'..=b'7').contains(byte));
    let written = digits.fold(0u32, |sum, digit| sum * 8 + u32::from(digit - b'0'));
    let counted: u32 = header
        .iter()
        .enumerate()
        .map(|(at, byte)| if (148..156).contains(&at) { u32::from(b' ') } else { u32::from(*byte) })
        .sum();
    written == counted
}

/// What a ZIP file's entries make it.
pub(crate) fn by_entries<'n>(mut names: impl Iterator<Item = &'n str>, media_type: Option<&str>) -> Kind {
    match media_type.map(str::trim) {
        Some("application/epub+zip") => return Kind::Epub,
        Some(media) if media.starts_with("application/vnd.oasis.opendocument.") => return Kind::OpenDocument,
        _ => {}
    }
    let kind = names.find_map(|name| match name {
        "word/document.xml" => Some(Kind::Docx),
        "ppt/presentation.xml" => Some(Kind::Pptx),
        "xl/workbook.xml" | "xl/workbook.bin" => Some(Kind::Workbook),
        "META-INF/container.xml" => Some(Kind::Epub),
        _ => None,
    });
    kind.unwrap_or(Kind::Zip)
}

/// What text is, by how it begins and, where that can't tell, by the ending of its name.
pub(crate) fn by_text(text: &str, name: &str) -> Kind {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
    let ending = ending.as_str();
    let begin = text.trim_start_matches('\u{feff}').trim_start();
    let head = prefix(begin, 2048);
    let lower = head.to_ascii_lowercase();
    let is_page = lower.starts_with("<!doctype html") || lower.starts_with("<html") || {
        let markup = lower.starts_with("<?xml") || lower.starts_with("<!--") || lower.starts_with("<!doctype");
        markup && lower.contains("<html")
    };
    if is_page {
        return Kind::Html;
    }
    let by_name = by_ending(ending);
    if matches!(by_name, Some(Kind::Markdown | Kind::Code(_) | Kind::Records)) {
        return by_name.unwrap_or(Kind::Text);
    }
    if ending.starts_with("htm") || ending == "xhtml" {
        return if lower.contains('<') { Kind::Html } else { Kind::Text };
    }
    let tags = ["<head", "<body", "<div", "<p>", "<p ", "<table", "<h1", "<title", "<ul", "<span", "<meta", "<br"];
    if begin.starts_with('<') && tags.iter().filter(|tag| lower.contains(**tag)).count() >= 2 {
        return Kind::Html;
    }
    if is_mailbox(head) {
        return Kind::Mailbox;
    }
    if is_mail(head, ending) {
        return Kind::Mail;
    }
    if let Some(kind) = json(begin, ending) {
        return kind;
    }
    match by_name {
        Some(Kind::Delimited(usual)) => Kind::Delimited(crate::delimited::delimiter(text).unwrap_or(usual)),
        Some(kind) => kind,
        // Nameless text comes from a pipe, and may have a title.
        None if name.is_empty() => Kind::Markdown,
        None if ending == "txt" || ending == "text" || ending == "log" => Kind::Text,
        None => match crate::delimited::delimiter(text) {
            Some(delimiter) if crate::delimited::is_table(text, delimiter) => Kind::Delimited(delimiter),
            _ => Kind::Text,
        },
    }
}

fn prefix(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn by_ending(ending: &str) -> Option<Kind> {
    Some(match ending {
        "md" | "markdown" | "mdown" | "mkd" => Kind::Markdown,
        "jsonl" | "ndjson" => Kind::Records,
        "csv" => Kind::Delimited(b','),
        "tsv" | "tab" => Kind::Delimited(b'\t'),
        "rs" => Kind::Code("Rust"),
        "py" | "pyi" => Kind::Code("Python"),
        "js" | "mjs" | "cjs" | "jsx" => Kind::Code("JavaScript"),
        "ts" | "tsx" => Kind::Code("TypeScript"),
        "java" => Kind::Code("Java"),
        "kt" | "kts" => Kind::Code("Kotlin"),
        "c" | "h" => Kind::Code("C"),
        "cc" | "cpp" | "cxx" | "hpp" | "hh" => Kind::Code("C++"),
        "cs" => Kind::Code("C#"),
        "go" => Kind::Code("Go"),
        "rb" => Kind::Code("Ruby"),
        "php" => Kind::Code("PHP"),
        "swift" => Kind::Code("Swift"),
        "scala" => Kind::Code("Scala"),
        "sh" | "bash" | "zsh" => Kind::Code("Shell"),
        "ps1" => Kind::Code("PowerShell"),
        "sql" => Kind::Code("SQL"),
        "r" => Kind::Code("R"),
        "lua" => Kind::Code("Lua"),
        "pl" | "pm" => Kind::Code("Perl"),
        "css" | "scss" => Kind::Code("CSS"),
        "toml" => Kind::Code("TOML"),
        "yaml" | "yml" => Kind::Code("YAML"),
        _ => return None,
    })
}

/// The line that parts the messages of a mailbox (RFC 4155), and a header behind it.
fn is_mailbox(head: &str) -> bool {
    let known = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.starts_with("x-") || HEADERS.contains(&name.as_str())
    };
    head.starts_with("From ") && head.lines().nth(1).and_then(header).is_some_and(known)
}

/// Headers that every message has one of at least, and that little else has.
const HEADERS: &[&str] = &[
    "from",
    "to",
    "subject",
    "date",
    "received",
    "mime-version",
    "message-id",
    "return-path",
    "delivered-to",
    "content-type",
    "reply-to",
    "x-mailer",
    "content-transfer-encoding",
    "cc",
    "sender",
];

fn is_mail(head: &str, ending: &str) -> bool {
    let mut found: std::collections::BTreeSet<&str> = std::collections::BTreeSet::new();
    for (number, line) in head.lines().enumerate() {
        if line.is_empty() {
            break;
        }
        match header(line) {
            Some(name) => {
                found.extend(HEADERS.iter().copied().find(|known| name.eq_ignore_ascii_case(known)));
            }
            None if number > 0 && line.starts_with([' ', '\t']) => {}
            None => return false,
        }
    }
    let origin = found.contains(&"from") || found.contains(&"received") || found.contains(&"return-path");
    if ending == "eml" { !found.is_empty() } else { found.len() >= 3 && origin }
}

/// The name of a header line.
fn header(line: &str) -> Option<&str> {
    let (name, _) = line.split_once(':')?;
    let is_name =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    is_name.then_some(name)
}

/// JSON, one value or one a line.
fn json(begin: &str, ending: &str) -> Option<Kind> {
    if !begin.starts_with(['{', '[']) {
        return None;
    }
    let mut lines = begin.lines().filter(|line| !line.trim().is_empty());
    let is_object = |line: &str| line.starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok();
    if lines.next().is_some_and(is_object) && lines.next().is_some_and(|line| line.starts_with('{')) {
        return Some(Kind::Records);
    }
    if ending == "json" || serde_json::from_str::<serde::de::IgnoredAny>(begin).is_ok() {
        return Some(Kind::Json);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m33_formats_are_told_by_their_content() {
        assert_eq!(by_magic(b"\n%PDF-1.7"), Some(Kind::Pdf));
        assert_eq!(by_magic(b"PK\x03\x04...."), Some(Kind::Zip));
        assert_eq!(by_magic(b"\x89PNG\r\n"), Some(Kind::Other));
        assert_eq!(by_magic(b"plain"), None);
        for (text, name, expected) in [
            ("<!DOCTYPE HTML><p>x", "a.txt", Kind::Html),
            ("<h1 align=center>x</h1>\n<p>y", "README.md", Kind::Markdown),
            ("<div><p>x</p></div>", "x", Kind::Html),
            ("a < b", "a.html", Kind::Html),
            ("a < b", "a.txt", Kind::Text),
            ("<?xml version='1.0'?><html xmlns='x'>", "a", Kind::Html),
            ("From: a@b.c\nTo: d@e.f\nSubject: g\n\nh", "message", Kind::Mail),
            ("Subject: only", "a.eml", Kind::Mail),
            ("Subject: only", "a.txt", Kind::Text),
            ("From a@b Mon Jan 1 00:00:00 2024\nFrom: a@b\n\nx", "x", Kind::Mailbox),
            ("From here on\nnothing: more", "x", Kind::Text),
            ("{\"a\": 1}\n{\"a\": 2}\n", "x", Kind::Records),
            ("{\"a\":\n 1}", "x", Kind::Json),
            ("[1, 2]", "x", Kind::Json),
            ("[not json", "x", Kind::Text),
            ("fn main() {}", "main.rs", Kind::Code("Rust")),
            ("a;b\n1;2\n3;4\n", "t.csv", Kind::Delimited(b';')),
            ("a\tb\n1\t2\n3\t4\n", "table", Kind::Delimited(b'\t')),
            ("One, two.\nThree, four.\n", "prose", Kind::Text),
            ("# x", "x.md", Kind::Markdown),
        ] {
            assert_eq!(by_text(text, name), expected, "{text:?} in {name}");
        }
    }
}
