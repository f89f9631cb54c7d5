//! Is a text language at all? A font without a map to Unicode gives characters that are none of the text.

/// Characters looked at.
const SAMPLE: usize = 20_000;
/// A text shorter than this is not judged.
const FEWEST: usize = 200;

/// True if the text can't be one of any language: too many characters that no text has, or words that change script again
/// and again.
pub(crate) fn is_gibberish(text: &str) -> bool {
    let (mut letters, mut odd, mut changes, mut words) = (0usize, 0usize, 0usize, 0usize);
    let mut last: Option<Script> = None;
    for character in text.chars().take(SAMPLE) {
        if character == '\u{fffd}' || ('\u{e000}'..='\u{f8ff}').contains(&character) {
            odd += 1;
            letters += 1;
        } else if character.is_alphabetic() {
            letters += 1;
            let script = script(character);
            changes += usize::from(last.is_some_and(|last| last != script));
            last = Some(script);
        } else {
            words += usize::from(last.is_some());
            last = None;
        }
    }
    letters >= FEWEST && (odd * 5 > letters || changes * 8 > letters.max(words))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Latin,
    Block(u32),
    /// Chinese, Japanese and Korean are written in several at once.
    Eastern,
}

fn script(character: char) -> Script {
    match u32::from(character) {
        0..=0x24f | 0x1e00..=0x1eff | 0xff21..=0xff5a => Script::Latin,
        0x2e80..=0x9fff | 0xac00..=0xd7ff | 0xf900..=0xfaff | 0x1100..=0x11ff | 0x20000..=0x3ffff => Script::Eastern,
        // Alphabets have blocks of 128 or 256.
        other => Script::Block(other / 256),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_from_what_a_broken_font_gives() {
        assert!(!is_gibberish(&"The lease ends on 31 March; see § 4. ".repeat(20)));
        assert!(!is_gibberish(&"適応フィルタは API と Rust で書かれた。한국어 문장도 있다. ".repeat(20)));
        assert!(!is_gibberish(&"Η ταχύτητα α = βx, где x — число. ".repeat(20)));
        assert!(is_gibberish(&"aжβ क한ש ".repeat(60)));
        assert!(is_gibberish(&"ab\u{fffd}c\u{fffd} ".repeat(100)));
        assert!(!is_gibberish("\u{fffd}\u{fffd}"));
    }
}
