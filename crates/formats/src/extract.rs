//! From the bytes of a file to its documents.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use anchorite_core::{Document, LandmarkKind, LimitExceeded, Limits};
use flate2::read::MultiGzDecoder;
use serde_json::Value;
use zip::ZipArchive;

use crate::decode::{DecodeWarning, Decoded, decode};
use crate::item::{ExtractError, Item, ReadError, Remark, SkipReason};
use crate::kind::{self, HEAD, Kind};
use crate::markdown::{markdown_outline, markdown_title};
use crate::office::workbook::Stored;
use crate::package::Allowance;
use crate::parsed::{Parsed, Reading};
use crate::records::{Records, is_blank, record};
use crate::{archive, delimited, epub, html, json, mail, office, pdf};

/// Gives `sink` every document in `bytes`, the content of the file that documents call `source`.
///
/// `name` is the file's name; it settles what the content leaves open. Archives and attachments give several documents,
/// called `source#name`.
pub(crate) fn extract(
    source: &str,
    name: &str,
    bytes: Vec<u8>,
    limits: &Limits,
    password: Option<&str>,
    sink: &mut dyn FnMut(Item),
) {
    let allowance = Allowance::new();
    let extraction = Extraction { limits, password, allowance: &allowance, depth: 0 };
    extraction.read(source, name, bytes, sink);
}

/// The reading of one file, with all that is in it.
pub(crate) struct Extraction<'a> {
    limits: &'a Limits,
    password: Option<&'a str>,
    allowance: &'a Allowance,
    depth: u64,
}

impl Extraction<'_> {
    /// Reads what is inside `source` under `name`.
    pub(crate) fn inner(
        &self,
        source: &str,
        name: &str,
        bytes: Vec<u8>,
        sink: &mut dyn FnMut(Item),
    ) -> Result<(), LimitExceeded> {
        let source = format!("{source}#{name}");
        let depth = self.depth + 1;
        match LimitExceeded::check(
            || format!("the depth of {source}"),
            "archive_depth",
            depth,
            self.limits.archive_depth,
        ) {
            Ok(()) => Extraction { depth, ..*self }.read(&source, name, bytes, sink),
            Err(limit) => sink(Item::Error(limit.into())),
        }
        Ok(())
    }

    fn read(&self, source: &str, name: &str, bytes: Vec<u8>, sink: &mut dyn FnMut(Item)) {
        let reading = Reading { source, limits: self.limits, password: self.password, allowance: self.allowance };
        let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
        if let Err(error) = self.dispatch(name, bytes, &reading, sink) {
            sink(Item::Error(error.into()));
        }
    }

    fn dispatch(
        &self,
        name: &str,
        bytes: Vec<u8>,
        reading: &Reading<'_>,
        sink: &mut dyn FnMut(Item),
    ) -> Result<(), ExtractError> {
        let found = kind::by_magic(&bytes[..bytes.len().min(HEAD)]);
        let (kind, parsed) = match found {
            Some(Kind::Zip) => return self.zip(name, bytes, reading, sink),
            Some(Kind::Tar) => return archive::read_tar(&bytes, self, reading, sink),
            Some(Kind::Gzip) => return self.gzip(name, &bytes, reading, sink),
            Some(Kind::Pdf) => (Kind::Pdf, pdf::read(bytes, reading)?),
            Some(Kind::Workbook) => (Kind::Workbook, old_workbook(bytes, reading)?),
            Some(_) => (Kind::Other, Parsed::Skipped(SkipReason::UnknownFormat)),
            None => return self.text(name, bytes, reading, sink),
        };
        sink(finish(parsed, kind.name(), name, reading));
        Ok(())
    }

    fn zip(
        &self,
        name: &str,
        bytes: Vec<u8>,
        reading: &Reading<'_>,
        sink: &mut dyn FnMut(Item),
    ) -> Result<(), ExtractError> {
        let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| reading.damaged("ZIP", error))?;
        let entries = archive.len() as u64;
        reading.check("the number of entries", "archive_entries", entries, reading.limits.archive_entries)?;
        let mut media_type = String::new();
        if let Ok(entry) = archive.by_name("mimetype") {
            // What is no media type names none.
            let _ = entry.take(200).read_to_string(&mut media_type);
        }
        let names: Vec<String> = archive.file_names().flatten().map(std::borrow::Cow::into_owned).collect();
        let kind = kind::by_entries(names.iter().map(String::as_str), Some(&media_type));
        let parsed = match kind {
            Kind::Docx => office::docx::read(archive.into_inner().into_inner(), reading)?,
            Kind::Pptx => office::pptx::read(archive.into_inner().into_inner(), reading)?,
            Kind::Workbook => {
                // The library that reads it knows no limits: they are asked beforehand.
                within_limits(&mut archive, reading)?;
                let xml = names.iter().any(|name| name == "xl/workbook.xml");
                let stored = if xml { Stored::Xml } else { Stored::Binary };
                office::workbook::read(archive.into_inner().into_inner(), stored, reading)?
            }
            Kind::OpenDocument => office::opendocument::read(archive.into_inner().into_inner(), reading)?,
            Kind::Epub => epub::read(archive.into_inner().into_inner(), reading)?,
            _ => return archive::read_zip(archive, self, reading, sink),
        };
        sink(finish(parsed, kind.name(), name, reading));
        Ok(())
    }

    /// A compressed file is what it holds.
    fn gzip(
        &self,
        name: &str,
        bytes: &[u8],
        reading: &Reading<'_>,
        sink: &mut dyn FnMut(Item),
    ) -> Result<(), ExtractError> {
        let packed = bytes.len() as u64;
        let bytes = match reading.allowance.unpack(MultiGzDecoder::new(bytes), packed, reading) {
            Ok(bytes) => bytes,
            Err(crate::package::Unpack::Limit(limit)) => return Err(limit.into()),
            Err(crate::package::Unpack::Damaged(message)) => return Err(reading.damaged("gzip", message)),
        };
        let depth = self.depth + 1;
        reading.check("the depth", "archive_depth", depth, self.limits.archive_depth)?;
        Extraction { depth, ..*self }.read(reading.source, &without_gz(name), bytes, sink);
        Ok(())
    }

    fn text(
        &self,
        name: &str,
        bytes: Vec<u8>,
        reading: &Reading<'_>,
        sink: &mut dyn FnMut(Item),
    ) -> Result<(), ExtractError> {
        let declared = if bytes.contains(&b'<') { html::declared_encoding(&bytes) } else { None };
        // Messages are in several encodings at once, and the decoded text is only looked at to know what it is.
        let decoded = decode(bytes.clone(), declared.as_deref());
        if decoded.is_hardly_text() {
            sink(Item::Skipped { source: reading.source.to_owned(), reason: SkipReason::NotText });
            return Ok(());
        }
        match kind::by_text(&decoded.text, name) {
            Kind::Html => sink(finish(html::read(&decoded, reading.limits.document_bytes), "html", name, reading)),
            Kind::Mail => return mail::read(&bytes, name, self, reading, sink),
            Kind::Mailbox => return mail::read_mailbox(&bytes, self, reading, sink),
            Kind::Records => records(bytes, reading, sink),
            kind => {
                let item = plain(kind, decoded, name, reading, sink)?;
                sink(item);
            }
        }
        Ok(())
    }
}

/// `name` without `.gz`; `.tgz` is short for `.tar.gz`.
fn without_gz(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    if let Some(stem) = lower.strip_suffix(".tgz") {
        return format!("{}.tar", &name[..stem.len()]);
    }
    lower.strip_suffix(".gz").map_or(name, |stem| &name[..stem.len()]).to_owned()
}

/// `name` without what says how it is written.
pub(crate) fn stem(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let name = without_gz(name);
    match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() && ending.len() <= 8 && !ending.contains(' ') => stem.to_owned(),
        _ => name,
    }
}

fn within_limits(archive: &mut ZipArchive<Cursor<Vec<u8>>>, reading: &Reading<'_>) -> Result<(), ExtractError> {
    for index in 0..archive.len() {
        let Ok(entry) = archive.by_index(index) else { continue };
        let packed = entry.compressed_size();
        match reading.allowance.unpack(entry, packed, reading) {
            Err(crate::package::Unpack::Limit(limit)) => return Err(limit.into()),
            // What is damaged is reported by whoever needs it.
            Ok(_) | Err(crate::package::Unpack::Damaged(_)) => {}
        }
    }
    Ok(())
}

/// The container of all of Microsoft's older formats; workbooks are read.
fn old_workbook(bytes: Vec<u8>, reading: &Reading<'_>) -> Result<Parsed, ExtractError> {
    let names_one = |name: &str| {
        let wide: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        bytes.windows(wide.len()).any(|window| window == wide)
    };
    if names_one("EncryptedPackage") {
        return Err(reading.encrypted());
    }
    if names_one("Workbook") || names_one("Book\0") {
        return office::workbook::read(bytes, Stored::Old, reading);
    }
    Ok(Parsed::Skipped(SkipReason::UnknownFormat))
}

fn records(bytes: Vec<u8>, reading: &Reading<'_>, sink: &mut dyn FnMut(Item)) {
    let mut records = Records::new(Cursor::new(bytes), reading.source.to_owned(), reading.limits);
    // Reading from memory does not fail.
    while let Ok(Some(item)) = records.next() {
        sink(item);
    }
}

fn plain(
    kind: Kind,
    decoded: Decoded,
    name: &str,
    reading: &Reading<'_>,
    sink: &mut dyn FnMut(Item),
) -> Result<Item, ExtractError> {
    let Decoded { text, lost, encoding } = decoded;
    let mut metadata = BTreeMap::new();
    metadata.extend(encoding.map(|name| ("encoding".to_owned(), Value::from(name))));
    if let Kind::Code(language) = kind {
        metadata.insert("code".to_owned(), Value::from(language));
    }
    let remarks: Vec<Remark> = lost.some().map(Remark::Lost).into_iter().collect();
    let mut draft = reading.draft();
    match kind {
        Kind::Delimited(delimiter) => delimited::write(&text, delimiter, &mut draft),
        Kind::Json => match serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')) {
            Ok(Value::Array(values)) if is_records(&values) => return listed(values, lost, reading, sink),
            Ok(value) => json::write(&value, &mut draft),
            // Whatever it is, it is text.
            Err(_) => return as_it_stands(Kind::Text, text, metadata, remarks, name, reading),
        },
        kind => return as_it_stands(kind, text, metadata, remarks, name, reading),
    }
    Ok(finish(Parsed::Text { draft, title: None, metadata, remarks }, kind.name(), name, reading))
}

fn is_records(values: &[Value]) -> bool {
    !values.is_empty() && values.iter().all(|value| value.get("text").is_some_and(Value::is_string))
}

/// The documents of a list of records; the last one is returned.
fn listed(
    values: Vec<Value>,
    lost: DecodeWarning,
    reading: &Reading<'_>,
    sink: &mut dyn FnMut(Item),
) -> Result<Item, ExtractError> {
    let mut last = None;
    for (index, value) in values.into_iter().enumerate() {
        let Value::Object(fields) = value else { continue };
        let number = index as u64 + 1;
        let item = record(fields, reading.source, number, lost, reading.limits).unwrap_or_else(|message| {
            Item::Error(ExtractError::Record { path: reading.source.to_owned(), line: number, message }.into())
        });
        if let Some(before) = last.replace(item) {
            sink(before);
        }
    }
    last.ok_or_else(|| reading.damaged("JSON", "it has no records"))
}

/// Text, Markdown and source code are what they are: their offsets are the file's.
fn as_it_stands(
    kind: Kind,
    text: String,
    metadata: BTreeMap<String, Value>,
    remarks: Vec<Remark>,
    name: &str,
    reading: &Reading<'_>,
) -> Result<Item, ExtractError> {
    // UTF-16 grows when it becomes UTF-8.
    let (actual, allowed) = (text.len() as u64, reading.limits.document_bytes as u64);
    LimitExceeded::check(|| reading.source.to_owned(), "document_bytes", actual, allowed)?;
    let (title, outline) = match kind {
        Kind::Markdown => (markdown_title(&text).map(str::to_owned), markdown_outline(&text)),
        _ => (None, Vec::new()),
    };
    let title = title.unwrap_or_else(|| stem(name));
    Ok(document(Document { source: reading.source.to_owned(), title, text, metadata, outline }, kind.name(), remarks))
}

/// The item for what a parser found.
pub(crate) fn finish(parsed: Parsed, format: &str, name: &str, reading: &Reading<'_>) -> Item {
    let source = reading.source.to_owned();
    match parsed {
        Parsed::Skipped(reason) => Item::Skipped { source, reason },
        Parsed::Text { draft, title, metadata, remarks } => match draft.finish(&source) {
            Err(limit) => Item::Error(ReadError::from(limit)),
            Ok((text, outline)) => {
                let title = title.unwrap_or_else(|| stem(name));
                document(Document { source, title, text, metadata, outline }, format, remarks)
            }
        },
    }
}

/// A document that is complete but for what every document has.
fn document(mut document: Document, format: &str, remarks: Vec<Remark>) -> Item {
    if document.text.trim_matches(is_blank).is_empty() {
        return Item::Skipped { source: document.source, reason: SkipReason::Blank };
    }
    document.metadata.insert("format".to_owned(), Value::from(format));
    if let Some(language) = crate::language::of(&document.text) {
        document.metadata.entry("language".to_owned()).or_insert_with(|| Value::from(language));
    }
    Item::Document { document, remarks }
}

/// Can `document` have come out of `source`? What another process wrote is looked at before it is used.
pub(crate) fn is_whole(document: &Document, source: &str, limits: &Limits) -> bool {
    let named = document.source.strip_prefix(source).is_some_and(|rest| rest.is_empty() || rest.starts_with('#'));
    let mut last = 0;
    let outlined = document.outline.iter().all(|mark| {
        let in_order = mark.at >= last && document.text.is_char_boundary(mark.at);
        last = mark.at;
        in_order
            && match mark.kind {
                LandmarkKind::Heading { end, .. } => end >= mark.at && document.text.is_char_boundary(end),
                LandmarkKind::Page(_) => true,
            }
    });
    named
        && outlined
        && document.text.len() <= limits.document_bytes
        && !document.text.trim_matches(is_blank).is_empty()
}
