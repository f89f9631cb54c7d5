//! PDF.
//!
//! A file says which glyph stands where, not what is read after what. Objects and their repair are `hayro-syntax`, codes to
//! characters `hayro-font`; from there it is our own: content to glyphs ([`content`]), glyphs to stretches of text
//! ([`segments`]), those to columns in their order ([`columns`]), and columns to paragraphs, headings and tables
//! ([`paragraphs`]).

mod columns;
mod content;
mod direction;
mod font;
mod furniture;
mod paragraphs;
mod segments;

use std::collections::BTreeMap;

use hayro_syntax::{DecryptionError, LoadPdfError, Pdf};
use serde_json::Value;

use crate::draft::Draft;
use crate::item::{ExtractError, Remark, SkipReason};
use crate::parsed::{Parsed, Reading};
use columns::Block;
use content::Interpreter;
use paragraphs::Sizes;

/// Fewer characters than this on a page of images are the stamp of a scanner, not its text.
const FEWEST_CHARACTERS: usize = 10;

/// Reads a file.
pub(crate) fn read(bytes: Vec<u8>, reading: &Reading<'_>) -> Result<Parsed, ExtractError> {
    let opened = match reading.password {
        Some(password) => Pdf::new_with_password(bytes, password),
        None => Pdf::new(bytes),
    };
    let file = opened.map_err(|error| failure(error, reading))?;
    let mut interpreter = Interpreter::new();
    let mut pages: Vec<Vec<Block>> = Vec::new();
    let (mut unknown, mut codes, mut images, mut bare) = (0, 0, 0, 0);
    for page in file.pages().iter() {
        let shown = interpreter.page(page);
        unknown += shown.unknown;
        codes += shown.codes;
        images += shown.images;
        if shown.codes < FEWEST_CHARACTERS && shown.images > 0 {
            bare += 1;
        }
        let groups = shown.groups.into_iter();
        pages.push(groups.flat_map(|group| columns::blocks(segments::segments(group))).collect());
    }
    if pages.is_empty() {
        return Err(reading.damaged("PDF", "it has no pages"));
    }
    if bare == pages.len() || (codes == 0 && images > 0) {
        return Ok(Parsed::Skipped(SkipReason::NoTextLayer));
    }
    let count = pages.len();
    furniture::drop_repeated(&mut pages);
    let sizes = Sizes::of(&pages);
    let mut draft = reading.draft();
    for (index, blocks) in pages.into_iter().enumerate() {
        draft.page(u32::try_from(index + 1).unwrap_or(u32::MAX));
        for block in blocks {
            draft.gap();
            paragraphs::write(block, &sizes, &mut draft);
        }
        if draft.is_full() {
            break;
        }
    }
    let mut remarks = Vec::new();
    if bare > 0 {
        remarks.push(Remark::PagesWithoutText { pages: bare, of: count });
    }
    if is_gibberish(&draft, unknown, codes) {
        remarks.push(Remark::Gibberish);
    }
    let (title, metadata) = description(&file, count);
    Ok(Parsed::Text { draft, title, metadata, remarks })
}

fn failure(error: LoadPdfError, reading: &Reading<'_>) -> ExtractError {
    match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => reading.encrypted(),
        LoadPdfError::Decryption(DecryptionError::UnsupportedAlgorithm) => {
            reading.damaged("PDF", "it is encrypted in a way that is not supported")
        }
        LoadPdfError::Decryption(_) => reading.damaged("PDF", "its encryption is damaged"),
        LoadPdfError::Invalid => reading.damaged("PDF", "no pages were found in it"),
    }
}

/// A font without a map to Unicode gives codes that nobody knows, or the wrong ones.
fn is_gibberish(draft: &Draft, unknown: usize, codes: usize) -> bool {
    unknown * 5 > codes || crate::gibberish::is_gibberish(draft.text())
}

fn description(file: &Pdf, pages: usize) -> (Option<String>, BTreeMap<String, Value>) {
    let known = file.metadata();
    let text = |bytes: &Option<Box<[u8]>>| {
        bytes.as_deref().map(text_string).map(|text| crate::draft::folded(&text)).filter(|text| !text.is_empty())
    };
    let mut metadata = BTreeMap::from([("pages".to_owned(), Value::from(pages))]);
    for (name, value) in [("author", &known.author), ("subject", &known.subject), ("keywords", &known.keywords)] {
        if let Some(value) = text(value) {
            metadata.insert(name.to_owned(), Value::from(value));
        }
    }
    if let Some(date) = known.creation_date {
        let date = format!("{:04}-{:02}-{:02}", date.year, date.month, date.day);
        metadata.insert("created".to_owned(), Value::from(date));
    }
    (text(&known.title).filter(|title| is_title(title)), metadata)
}

/// Programs write the name of what they made the file from where the title should be.
fn is_title(title: &str) -> bool {
    let lower = title.to_lowercase();
    let endings = [".doc", ".docx", ".dvi", ".tex", ".indd", ".qxd", ".ppt", ".pptx", ".xls", ".pdf", ".odt", ".rtf"];
    !lower.starts_with("microsoft word")
        && !lower.starts_with("untitled")
        && !endings.iter().any(|it| lower.ends_with(it))
}

/// A text string (PDF 2.0, 7.9.2.2): UTF-16 or UTF-8 with a mark, else one byte a character, read as Windows-1252, which
/// agrees where documents do.
pub(crate) fn text_string(bytes: &[u8]) -> String {
    let (encoding, bytes) = match bytes {
        [0xfe, 0xff, rest @ ..] => (encoding_rs::UTF_16BE, rest),
        [0xff, 0xfe, rest @ ..] => (encoding_rs::UTF_16LE, rest),
        [0xef, 0xbb, 0xbf, rest @ ..] => (encoding_rs::UTF_8, rest),
        rest => (encoding_rs::WINDOWS_1252, rest),
    };
    encoding.decode_without_bom_handling(bytes).0.into_owned()
}
