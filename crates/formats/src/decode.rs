//! Bytes to text, in whatever encoding.
//!
//! The encoding is told by a byte order mark; else by the bytes, if they are UTF-8; else by a declaration inside (XML, HTML,
//! mail); else by statistics. What is no text in it becomes U+FFFD, and is counted. So does NUL: databases and tokenizers cut
//! text at it. Nothing else is changed; line ends stay as they are.

use std::borrow::Cow;
use std::fmt;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};
use serde::{Deserialize, Serialize};

/// What could not be kept when a document was decoded. Each became U+FFFD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The encoding's name, where it is not UTF-8.
    pub(crate) encoding: Option<&'static str>,
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

/// Decodes a whole text. `declared` is the name of the encoding that the content claims for itself.
pub(crate) fn decode(bytes: Vec<u8>, declared: Option<&str>) -> Decoded {
    let mut lost = DecodeWarning::default();
    let (text, encoding) = if let Some(units) = bytes.strip_prefix(UTF16_LITTLE_MARK) {
        (utf16(units, u16::from_le_bytes, &mut lost), Some("UTF-16LE"))
    } else if let Some(units) = bytes.strip_prefix(UTF16_BIG_MARK) {
        (utf16(units, u16::from_be_bytes, &mut lost), Some("UTF-16BE"))
    } else if let Some((read, name)) = unmarked_utf16(&bytes) {
        (utf16(&bytes, read, &mut lost), Some(name))
    } else if bytes.starts_with(UTF8_MARK) || std::str::from_utf8(&bytes).is_ok() || is_nearly_utf8(&bytes) {
        (utf8(bytes, &mut lost), None)
    } else {
        let encoding =
            declared.and_then(|label| Encoding::for_label(label.as_bytes())).unwrap_or_else(|| guess(&bytes));
        (other(&bytes, encoding, &mut lost), Some(encoding.name()))
    };
    Decoded { text: without_nul(text, &mut lost), lost, encoding }
}

/// A few bytes that went wrong don't make a text of UTF-8 one of another encoding, in which no byte would be wrong.
fn is_nearly_utf8(bytes: &[u8]) -> bool {
    let (mut good, mut bad) = (0usize, 0usize);
    for chunk in bytes.utf8_chunks() {
        good += chunk.valid().bytes().filter(|byte| *byte >= 0xc0).count();
        bad += usize::from(!chunk.invalid().is_empty());
    }
    good > 8 * bad
}

/// The most probable encoding of bytes that are not UTF-8.
fn guess(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    // What comes later changes the guess no more.
    detector.feed(&bytes[..bytes.len().min(1 << 20)], true);
    detector.guess(None, Utf8Detection::Deny)
}

fn other(bytes: &[u8], encoding: &'static Encoding, lost: &mut DecodeWarning) -> String {
    if encoding == UTF_8 {
        return utf8(bytes.to_vec(), lost);
    }
    let (text, wrong) = encoding.decode_without_bom_handling(bytes);
    if wrong {
        lost.invalid += text.chars().filter(|character| *character == char::REPLACEMENT_CHARACTER).count();
    }
    // Windows-1252 has a character for every byte, control characters among them: bytes that are no text show by those.
    let controls =
        |character: &char| character.is_control() && !matches!(character, '\t' | '\n' | '\r' | '\u{c}' | '\0');
    lost.invalid += text.chars().filter(controls).count();
    text.into_owned()
}

/// A unit of UTF-16 from its bytes.
type ReadUnit = fn([u8; 2]) -> u16;

/// Bytes looked at to tell UTF-16 from UTF-8.
const SAMPLE: usize = 4096;

/// UTF-16 without a mark shows by its NUL bytes, of which UTF-8 text has none: most characters of Latin text have one, and
/// always on the same side.
fn unmarked_utf16(bytes: &[u8]) -> Option<(ReadUnit, &'static str)> {
    let sample = &bytes[..bytes.len().min(SAMPLE)];
    let nul_at = |side: usize| sample.iter().skip(side).step_by(2).filter(|byte| **byte == 0).count();
    let (first, second, pairs) = (nul_at(0), nul_at(1), sample.len() / 2);
    let most = |nul: usize, other: usize| pairs >= 4 && nul * 2 > pairs && other * 20 < nul;
    if most(second, first) {
        Some((u16::from_le_bytes, "UTF-16LE"))
    } else if most(first, second) {
        Some((u16::from_be_bytes, "UTF-16BE"))
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
        let Decoded { text, lost, .. } = decode(bytes.to_vec(), None);
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
        let nearly = |bytes: &[u8]| [bytes, "üäö".repeat(20).as_bytes()].concat();
        let expected = format!("caf\u{fffd} \u{fffd}\u{fffd}!{}", "üäö".repeat(20));
        assert_eq!(decoded(&nearly(b"caf\xe9 \xff\xff!")), (expected, 3, 0));
        assert_eq!(decoded(b"a\0bcd\0"), ("a\u{fffd}bcd\u{fffd}".to_owned(), 0, 2));
        assert_eq!(decoded(b"\xff\xfea\0\x00\xd8b\0"), ("a\u{fffd}b".to_owned(), 1, 0));
        assert_eq!(decoded(b"\xfe\xff\0ab"), ("a\u{fffd}".to_owned(), 1, 0));
        // A replacement character of the text itself is no loss.
        assert_eq!(decoded("\u{fffd}".as_bytes()), ("\u{fffd}".to_owned(), 0, 0));
    }

    #[test]
    fn f26_other_encodings_are_declared_or_guessed() {
        let named = |bytes: &[u8], declared: Option<&str>| {
            let Decoded { text, lost, encoding } = decode(bytes.to_vec(), declared);
            assert_eq!(lost, DecodeWarning::default());
            (text, encoding)
        };
        let german = "Die schöne Straße, für 15,50 €";
        let bytes = encoding_rs::WINDOWS_1252.encode(german).0;
        assert_eq!(named(&bytes, None), (german.to_owned(), Some("windows-1252")));
        let russian = "Компания основана в 1999 году";
        let bytes = encoding_rs::WINDOWS_1251.encode(russian).0;
        assert_eq!(named(&bytes, None), (russian.to_owned(), Some("windows-1251")));
        assert_eq!(named(&bytes, Some("cp1251")).0, russian);
        let japanese = "これは日本語の文章です。";
        assert_eq!(named(&encoding_rs::SHIFT_JIS.encode(japanese).0, None).0, japanese);
        // What the bytes are is surer than what they claim.
        assert_eq!(named("für".as_bytes(), Some("latin1")), ("für".to_owned(), None));
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
        let hardly = |bytes: &[u8]| decode(bytes.to_vec(), None).is_hardly_text();
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
            let Decoded { text, lost, encoding } = decode(bytes.clone(), None);
            prop_assert!(!text.contains('\0'));
            if lost == DecodeWarning::default() && encoding.is_none() {
                prop_assert_eq!(text.as_bytes(), without_mark(&bytes));
            }
        }
    }
}
