//! Bytes to text: UTF-8 and UTF-16, with or without a byte order mark.
//!
//! What is no text becomes U+FFFD, and is counted. So does NUL: databases and tokenizers cut text at it. Nothing else is
//! changed; line ends stay as they are.

use std::borrow::Cow;
use std::fmt;

/// What could not be kept when a document was decoded. Each became U+FFFD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecodeWarning {
    /// Sequences that are not valid in the encoding.
    pub invalid: usize,
    /// NUL characters.
    pub nul: usize,
}

impl DecodeWarning {
    /// `None` if everything was kept.
    pub(crate) fn some(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

impl fmt::Display for DecodeWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} places that are no valid text and {} NUL characters were replaced by U+FFFD; check the encoding",
            self.invalid, self.nul
        )
    }
}

/// Text, and what was lost on the way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub(crate) text: String,
    pub(crate) lost: DecodeWarning,
}

impl Decoded {
    /// True if so much was lost that the bytes were hardly text: more than one character in ten.
    pub(crate) fn is_hardly_text(&self) -> bool {
        let lost = self.lost.invalid + self.lost.nul;
        lost > 0 && lost * 10 > self.text.chars().count()
    }
}

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
const UTF16_LITTLE_MARK: &[u8] = b"\xff\xfe";
const UTF16_BIG_MARK: &[u8] = b"\xfe\xff";

/// `bytes` without a UTF-8 byte order mark.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(UTF8_MARK).unwrap_or(bytes)
}

pub(crate) fn begins_as_utf16(bytes: &[u8]) -> bool {
    bytes.starts_with(UTF16_LITTLE_MARK) || bytes.starts_with(UTF16_BIG_MARK)
}

/// Decodes a whole text.
pub(crate) fn decode(bytes: Vec<u8>) -> Decoded {
    let mut lost = DecodeWarning::default();
    let text = if let Some(units) = bytes.strip_prefix(UTF16_LITTLE_MARK) {
        utf16(units, u16::from_le_bytes, &mut lost)
    } else if let Some(units) = bytes.strip_prefix(UTF16_BIG_MARK) {
        utf16(units, u16::from_be_bytes, &mut lost)
    } else {
        match unmarked_utf16(&bytes) {
            Some(read) => utf16(&bytes, read, &mut lost),
            None => utf8(bytes, &mut lost),
        }
    };
    Decoded { text: without_nul(text, &mut lost), lost }
}

/// Bytes looked at to tell UTF-16 from UTF-8.
const SAMPLE: usize = 4096;

/// UTF-16 without a mark shows by its NUL bytes, of which UTF-8 text has none: most characters of Latin text have one, and
/// always on the same side.
fn unmarked_utf16(bytes: &[u8]) -> Option<fn([u8; 2]) -> u16> {
    let sample = &bytes[..bytes.len().min(SAMPLE)];
    let nul_at = |side: usize| sample.iter().skip(side).step_by(2).filter(|byte| **byte == 0).count();
    let (first, second, pairs) = (nul_at(0), nul_at(1), sample.len() / 2);
    let most = |nul: usize, other: usize| pairs >= 4 && nul * 2 > pairs && other * 20 < nul;
    if most(second, first) {
        Some(u16::from_le_bytes)
    } else if most(first, second) {
        Some(u16::from_be_bytes)
    } else {
        None
    }
}

/// `text` with each NUL replaced.
pub(crate) fn without_nul(text: String, lost: &mut DecodeWarning) -> String {
    let nul = text.bytes().filter(|byte| *byte == 0).count();
    lost.nul += nul;
    if nul == 0 { text } else { text.replace('\0', "\u{fffd}") }
}

fn utf16(units: &[u8], read: fn([u8; 2]) -> u16, lost: &mut DecodeWarning) -> String {
    let pairs = units.chunks_exact(2);
    let odd = !pairs.remainder().is_empty();
    let mut text: String = char::decode_utf16(pairs.map(|pair| read([pair[0], pair[1]])))
        .map(|unit| {
            unit.unwrap_or_else(|_| {
                lost.invalid += 1;
                char::REPLACEMENT_CHARACTER
            })
        })
        .collect();
    if odd {
        lost.invalid += 1;
        text.push(char::REPLACEMENT_CHARACTER);
    }
    text
}

fn utf8(mut bytes: Vec<u8>, lost: &mut DecodeWarning) -> String {
    if bytes.starts_with(UTF8_MARK) {
        bytes.drain(..UTF8_MARK.len());
    }
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => lossy(error.as_bytes(), lost).into_owned(),
    }
}

/// UTF-8 with what is not valid replaced.
pub(crate) fn lossy<'b>(bytes: &'b [u8], lost: &mut DecodeWarning) -> Cow<'b, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            lost.invalid += 1;
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(bytes: &[u8]) -> (String, usize, usize) {
        let Decoded { text, lost } = decode(bytes.to_vec());
        (text, lost.invalid, lost.nul)
    }

    fn utf16_bytes(text: &str, write: fn(u16) -> [u8; 2]) -> Vec<u8> {
        [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(write).collect()
    }

    #[test]
    fn f24_a_byte_order_mark_is_no_text() {
        assert_eq!(decoded(b"\xef\xbb\xbf"), (String::new(), 0, 0));
        assert_eq!(decoded(b"\xff\xfe"), (String::new(), 0, 0));
        assert_eq!(decoded(b"\xef\xbb\xbfa"), ("a".to_owned(), 0, 0));
        // Only the first mark is one.
        assert_eq!(decoded("a\u{feff}b".as_bytes()), ("a\u{feff}b".to_owned(), 0, 0));
    }

    #[test]
    fn f26_what_is_no_text_is_replaced_and_counted() {
        assert_eq!(decoded(b"caf\xe9 \xff\xff!"), ("caf\u{fffd} \u{fffd}\u{fffd}!".to_owned(), 3, 0));
        assert_eq!(decoded(b"a\0bcd\0"), ("a\u{fffd}bcd\u{fffd}".to_owned(), 0, 2));
        assert_eq!(decoded(b"\xff\xfea\0\x00\xd8b\0"), ("a\u{fffd}b".to_owned(), 1, 0));
        assert_eq!(decoded(b"\xfe\xff\0ab"), ("a\u{fffd}".to_owned(), 1, 0));
        // A replacement character of the text itself is no loss.
        assert_eq!(decoded("\u{fffd}".as_bytes()), ("\u{fffd}".to_owned(), 0, 0));
    }

    #[test]
    fn f26_utf16_without_a_mark_is_noticed() {
        for write in [u16::to_le_bytes, u16::to_be_bytes] {
            let bytes = utf16_bytes("This is a café.\n", write);
            assert_eq!(decoded(&bytes[2..]), ("This is a café.\n".to_owned(), 0, 0));
        }
    }

    #[test]
    fn f26_bytes_that_are_hardly_text_are_noticed() {
        let hardly = |bytes: &[u8]| decode(bytes.to_vec()).is_hardly_text();
        assert!(hardly(b"\0\0\0\0one\0\0\0two\0\0"));
        assert!(hardly(&(0..=255).collect::<Vec<u8>>()));
        assert!(!hardly("naïve – 日本語".as_bytes()));
        assert!(!hardly("A café in a sentence of one wrong byte.".replace('é', "e").as_bytes()));
        assert!(!hardly(b"One wrong byte in a caf\xe9."));
        assert!(!hardly(b""));
    }

    proptest! {
        #[test]
        fn f26_every_text_comes_through_every_encoding(text in "[^\\x00\\u{feff}][^\\x00]{0,40}") {
            let plain = || (text.clone(), 0, 0);
            prop_assert_eq!(decoded(text.as_bytes()), plain());
            prop_assert_eq!(decoded(&[UTF8_MARK, text.as_bytes()].concat()), plain());
            prop_assert_eq!(decoded(&utf16_bytes(&text, u16::to_le_bytes)), plain());
            prop_assert_eq!(decoded(&utf16_bytes(&text, u16::to_be_bytes)), plain());
        }

        #[test]
        fn f26_any_bytes_are_decoded_or_reported(bytes: Vec<u8>) {
            let Decoded { text, lost } = decode(bytes.clone());
            prop_assert!(!text.contains('\0'));
            if lost == DecodeWarning::default() && !begins_as_utf16(&bytes) && !bytes.contains(&0) {
                prop_assert_eq!(text.as_bytes(), without_mark(&bytes));
            }
        }
    }
}
