//! Where sentences begin and end.
//!
//! A sentence ends at a mark (`. ! ? …` and their kin in other scripts) that is not part of an abbreviation, an initial or
//! a number; a paragraph ends at a blank line; a heading, a list item, a table row and a ruled line of Markdown are
//! sentences of their own. A single line break inside a paragraph is white space: text wrapped by hand stays whole.
//!
//! One pass over the text, with looks ahead and behind that are bounded or that the pass skips: linear time, constant
//! memory. The module depends on nothing else.

use std::ops::Range;

/// A sentence of a text: white space at both ends is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// Bytes of the text, on character borders.
    pub range: Range<usize>,
    /// A heading of Markdown, which belongs to what follows.
    pub heading: bool,
}

/// The sentences of `text`, in order. Together they hold every byte of it that is not white space.
#[must_use]
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    Sentences::new(text).map(|sentence| sentence.range).collect()
}

/// The sentences of a text, one after the other.
#[derive(Clone, Debug)]
pub struct Sentences<'t> {
    text: &'t str,
    position: usize,
}

impl<'t> Sentences<'t> {
    /// Begins at the start of `text`.
    #[must_use]
    pub fn new(text: &'t str) -> Self {
        Self { text, position: 0 }
    }
}

impl Iterator for Sentences<'_> {
    type Item = Sentence;

    fn next(&mut self) -> Option<Sentence> {
        let rest = &self.text[self.position..];
        let trimmed = rest.trim_start();
        let start = self.text.len() - trimmed.len();
        if trimmed.is_empty() {
            self.position = start;
            return None;
        }
        let at_line_start = self.position == 0 || rest[..rest.len() - trimmed.len()].contains(is_line_break);
        let line = if at_line_start { kind_of_line(trimmed) } else { Line::Plain };
        let end = match line {
            Line::Heading | Line::Alone => start + trimmed.find(is_line_break).unwrap_or(trimmed.len()),
            Line::Item | Line::Plain => end_of_sentence(self.text, start),
        };
        self.position = end;
        let length = self.text[start..end].trim_end().len();
        Some(Sentence { range: start..start + length, heading: line == Line::Heading })
    }
}

fn is_line_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// Goes on in the next line.
    Plain,
    /// Begins a sentence, and goes on in the next line.
    Item,
    /// A sentence: a table row, a ruled line, a code fence.
    Alone,
    /// A sentence that names what follows.
    Heading,
}

/// What kind of line begins `rest`, by the first characters after its indentation.
fn kind_of_line(rest: &str) -> Line {
    let bytes = rest.as_bytes();
    let run =
        |accept: fn(&u8) -> bool, most: usize| bytes.iter().take(most + 1).take_while(|byte| accept(byte)).count();
    let blank_at = |at: usize| bytes.get(at).is_none_or(u8::is_ascii_whitespace);
    match bytes.first() {
        Some(b'#') if run(|byte| *byte == b'#', 6) <= 6 && blank_at(run(|byte| *byte == b'#', 6)) => Line::Heading,
        Some(b'|') => Line::Alone,
        Some(b'`') if rest.starts_with("```") => Line::Alone,
        Some(b'~') if rest.starts_with("~~~") => Line::Alone,
        Some(b'-' | b'=' | b'*' | b'_') if is_rule(bytes) => Line::Alone,
        Some(b'-' | b'*' | b'+') if blank_at(1) => Line::Item,
        Some(b'0'..=b'9') => {
            let digits = run(u8::is_ascii_digit, 3);
            let marked = digits <= 3 && matches!(bytes.get(digits), Some(b'.' | b')')) && blank_at(digits + 1);
            if marked { Line::Item } else { Line::Plain }
        }
        _ if rest.starts_with('•') => Line::Item,
        _ => Line::Plain,
    }
}

/// A line of at least three equal marks, as under a title. Longer ones than a page is wide are not looked through.
fn is_rule(bytes: &[u8]) -> bool {
    let length = bytes.iter().take(400).take_while(|byte| **byte == bytes[0]).count();
    length >= 3 && bytes.get(length).is_none_or(|byte| matches!(byte, b'\n' | b'\r' | b' '))
}

/// One past the sentence that begins at `start`, which is no white space.
fn end_of_sentence(text: &str, start: usize) -> usize {
    let mut position = start;
    while let Some(character) = text[position..].chars().next() {
        let after = position + character.len_utf8();
        if is_line_break(character) {
            let (next, ends) = look_past_line_break(text, position);
            if ends {
                return position;
            }
            position = next;
        } else if let Some(mark) = Mark::of(character) {
            let (end, mark) = past_marks(text, after, mark);
            if ends_here(text, start, position, end, mark) {
                return end;
            }
            position = end;
        } else {
            position = after;
        }
    }
    text.len()
}

/// Where the line after the break at `position` begins to have text, and whether a sentence ends at the break.
fn look_past_line_break(text: &str, position: usize) -> (usize, bool) {
    let rest = &text[position..];
    let trimmed = rest.trim_start();
    let white = &rest[..rest.len() - trimmed.len()];
    let next = position + white.len();
    let breaks = white.matches(is_line_break).count() - white.matches("\r\n").count();
    let ends = trimmed.is_empty()
        || breaks > 1
        || white.contains(['\u{c}', '\u{2029}'])
        || kind_of_line(trimmed) != Line::Plain;
    (next, ends)
}

/// A mark at which sentences end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// `.`: also in abbreviations, initials and numbers.
    Dot,
    /// `!`, `?`, `…`: ends a sentence before white space.
    Spaced,
    /// Ends a sentence wherever it stands, as in scripts that put no space after it.
    Plain,
}

impl Mark {
    fn of(character: char) -> Option<Self> {
        Some(match character {
            '.' => Self::Dot,
            '!' | '?' | '…' | '‼' | '⁇' | '⁈' | '⁉' | '‽' | '։' => Self::Spaced,
            // Arabic, Urdu, Devanagari, Ethiopic, Myanmar, Khmer, Chinese and Japanese.
            '؟' | '۔' | '।' | '॥' | '።' | '፧' | '။' | '។' | '。' | '｡' | '！' | '？' | '．' => {
                Self::Plain
            }
            _ => return None,
        })
    }
}

fn is_closer(character: char) -> bool {
    matches!(
        character,
        '"' | '\''
            | ')'
            | ']'
            | '}'
            | '”'
            | '’'
            | '»'
            | '›'
            | '」'
            | '』'
            | '）'
            | '】'
            | '》'
            | '〉'
            | '］'
            | '*'
            | '_'
    )
}

fn is_opener(character: char) -> bool {
    matches!(
        character,
        '"' | '\'' | '(' | '[' | '{' | '“' | '‘' | '„' | '‚' | '«' | '‹' | '¿' | '¡' | '*' | '_' | '–' | '—'
    )
}

/// Past further marks and closing quotes and brackets; and what the marks are together: several dots are an ellipsis.
fn past_marks(text: &str, after: usize, first: Mark) -> (usize, Mark) {
    let mut end = after;
    let mut together = first;
    for character in text[after..].chars() {
        if let Some(mark) = Mark::of(character) {
            together = match (together, mark) {
                (Mark::Plain, _) | (_, Mark::Plain) => Mark::Plain,
                _ => Mark::Spaced,
            };
        } else if !is_closer(character) {
            break;
        }
        end += character.len_utf8();
    }
    (end + text[end..].len() - past_references(&text[end..]).len(), together)
}

/// `text` without the references that begin it: `[1]`, `[12][13]`, `[a]`.
fn past_references(text: &str) -> &str {
    let mut rest = text;
    for _ in 0..8 {
        let Some(inside) = rest.strip_prefix('[') else { break };
        let length = inside.bytes().take(5).take_while(u8::is_ascii_alphanumeric).count();
        match inside[length..].strip_prefix(']') {
            Some(after) if (1..5).contains(&length) => rest = after,
            _ => break,
        }
    }
    rest
}

/// Does the sentence from `start` end with the marks from `position` to `end`?
fn ends_here(text: &str, start: usize, position: usize, end: usize, mark: Mark) -> bool {
    let rest = &text[end..];
    let Some(next) = rest.chars().next() else { return true };
    if mark == Mark::Plain {
        return true;
    }
    if !next.is_whitespace() {
        return false;
    }
    // What follows may be another paragraph: if no sentence ends here, one will at the line break.
    let following = past_openers(rest.trim_start());
    let Some(first) = following.chars().next() else { return true };
    if is_lower(first) {
        return false;
    }
    mark != Mark::Dot || !is_abbreviation(text, start, position, following)
}

/// `text` without the quotes and brackets that open it; a long line of them is looked at only in part.
fn past_openers(text: &str) -> &str {
    let mut rest = text;
    for _ in 0..4 {
        rest = rest.strip_prefix(is_opener).unwrap_or(rest);
    }
    rest
}

/// Georgian has no capitals in common use: its letters count as lower case, and yet begin sentences.
fn is_lower(character: char) -> bool {
    character.is_lowercase() && !('\u{10d0}'..='\u{10ff}').contains(&character)
}

/// Longest word before a dot that is looked at, in bytes.
const LONGEST_ABBREVIATION: usize = 16;

/// Is the dot at `position` part of an abbreviation, an initial or a numbering, given what follows?
fn is_abbreviation(text: &str, start: usize, position: usize, following: &str) -> bool {
    let word = word_before(text, start, position);
    let word_start = position - word.len();
    if word.is_empty() {
        return false;
    }
    let next = following.chars().next();
    let before_number = next.is_some_and(char::is_numeric);
    if word.bytes().all(|byte| byte.is_ascii_digit()) {
        // "1. Introduction" begins an item, "3. Oktober" is a date, "in 1999. The" ends a sentence.
        return word_start == start || (word.len() <= 2 && begins_with_word_of(following, MONTHS));
    }
    let lower = word.to_lowercase();
    let known = |list: &[&str]| list.contains(&lower.as_str());
    if known(NEVER_LAST) || (known(TITLES) && word.starts_with(char::is_uppercase)) {
        return true;
    }
    if known(BEFORE_A_NUMBER) {
        return before_number;
    }
    if known(ANYWHERE) {
        return next.is_some_and(|character| !character.is_uppercase());
    }
    let mut letters = word.chars();
    let initial = letters.next().is_some_and(char::is_alphabetic) && letters.next().is_none();
    let acronym = word.contains('.')
        && word.split('.').all(|part| part.chars().count() <= 2 && part.chars().all(char::is_alphabetic));
    (initial || acronym) && !begins_with_word_of(following, SENTENCE_STARTERS)
}

/// The letters, digits and inner dots just before `position`; empty if the word is too long for an abbreviation.
fn word_before(text: &str, start: usize, position: usize) -> &str {
    let mut word_start = position;
    for (at, character) in text[start..position].char_indices().rev() {
        if !(character.is_alphanumeric() || character == '.') {
            break;
        }
        word_start = start + at;
        if position - word_start > LONGEST_ABBREVIATION {
            return "";
        }
    }
    &text[word_start..position]
}

fn begins_with_word_of(text: &str, words: &[&str]) -> bool {
    // Longer than any word of the lists; one more shows that the word goes on.
    let first: String = text.chars().take(12).take_while(|character| character.is_alphabetic()).collect();
    words.contains(&first.to_lowercase().as_str())
}

/// Titles, which are written with a capital ("Ms. Lee", and not "in 10 ms. Then").
const TITLES: &[&str] = &[
    "mr", "mrs", "ms", "mx", "dr", "prof", "st", "rev", "hon", "gen", "col", "lt", "maj", "sgt", "capt", "cmdr", "adm",
    "gov", "sen", "rep", "pres", "messrs", "mme", "mlle", "sra", "srta", "hr",
];

/// Words that never end a sentence (English, German, French, Spanish).
const NEVER_LAST: &[&str] = &[
    "vs", "cf", "e.g", "i.e", "eg", "ie", "viz", "ca", "approx", "z.b", "d.h", "u.a", "bzw", "bspw", "evtl", "ggf",
    "inkl", "zzgl", "sog", "p.ex", "p.ej",
];

/// End no sentence before a number ("No. 5"), and may before anything else ("He said no.").
const BEFORE_A_NUMBER: &[&str] = &[
    "no", "nos", "nr", "fig", "figs", "eq", "eqs", "vol", "vols", "pp", "sec", "secs", "art", "arts", "ch", "chap",
    "ref", "refs", "abs", "para", "tab", "ed", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct",
    "nov", "dec", "núm", "pág",
];

/// End a sentence only before a capital.
const ANYWHERE: &[&str] = &[
    "etc", "inc", "ltd", "co", "corp", "jr", "sr", "al", "a.m", "p.m", "usw", "dept", "est", "bros", "gmbh", "ave",
    "blvd", "rd", "str",
];

/// Words that begin a sentence after an initial or an acronym ("in the U.S. The", "vitamin C. It").
const SENTENCE_STARTERS: &[&str] = &[
    "a", "an", "and", "as", "at", "but", "by", "for", "from", "he", "her", "his", "however", "if", "in", "it", "its",
    "no", "on", "other", "our", "she", "since", "so", "some", "that", "the", "their", "then", "there", "these", "they",
    "this", "those", "to", "we", "what", "when", "where", "while", "with", "you", "der", "die", "das", "er", "sie",
    "es", "ein", "eine", "und", "aber", "im", "le", "la", "les", "il", "elle", "el", "los", "las",
];

/// Months after an ordinal dot, as in German dates.
const MONTHS: &[&str] = &[
    "januar",
    "jänner",
    "februar",
    "märz",
    "april",
    "mai",
    "juni",
    "juli",
    "august",
    "september",
    "oktober",
    "november",
    "dezember",
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(text: &str) -> Vec<&str> {
        sentences(text).into_iter().map(|range| &text[range]).collect()
    }

    /// Each sentence on its own line; joined by spaces they must come apart again.
    fn comes_apart(lines: &str) {
        let expected: Vec<&str> = lines.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        assert_eq!(split(&expected.join(" ")), expected);
    }

    #[test]
    fn m33_sentences_end_at_marks() {
        comes_apart(
            "It is 5,931.5 km away.
            Is it?
            It is!
            Well…
            \"Stay here.\"
            (Nobody did.)
            She wrote to a.b@example.org and read www.example.org/a.html first.
            “Why?” he asked.
            ¿Dónde está?
            ¡Aquí!
            Far.[1]
            Farther.\"[12][13]
            Farthest [14].
            The end",
        );
    }

    #[test]
    fn m33_abbreviations_initials_and_numbers_end_no_sentence() {
        comes_apart(
            "Dr. Smith met Mr. J. R. R. Tolkien, i.e. the author, in St. Albans.
            See No. 5, Fig. 3 and pp. 7 to 9, e.g. Table 2, etc. and more.
            He said no.
            Then he left at 5 p.m. on Friday.
            They met at 7 a.m.
            She was early.
            The U.S. Army and the E.U. Commission agreed.
            Ms. Lee answered within 10 ms.
            Then it stopped.
            It happened in the U.S.
            The law of Acme Inc. applies.
            Smith et al. (2010) found it in 1999.
            We take vitamin C.
            It helps.
            Am 3. Oktober feiert man, z. B. in Berlin bzw. in Bonn.
            Danach nicht.
            Version 1.2.
            Users like it.",
        );
    }

    #[test]
    fn m33_scripts_without_spaces_or_capitals_are_split() {
        assert_eq!(
            split("今日は雨です。明日は晴れ！本当？「はい。」終わり"),
            ["今日は雨です。", "明日は晴れ！", "本当？", "「はい。」", "終わり"]
        );
        comes_apart("यह पहला है।\nयह दूसरा है।");
        comes_apart("هل هذا صحيح؟\nنعم هو كذلك.\nانتهى");
        comes_apart("ეს პირველია.\nეს მეორეა.");
        comes_apart("Это первое.\nЭто второе!");
    }

    #[test]
    fn m33_paragraphs_headings_and_items_are_borders() {
        let text = "# The title\nA line that goes\non here. Next\r\none\r\n\r\nA paragraph\n \t\nanother\n\
                    - one item\n- two\n  lines\n1. First. Second\n2. Third\n| a | b |\n| 1 | 2 |\nTitle\n-----\nlast\u{2029}end";
        assert_eq!(
            split(text),
            [
                "# The title",
                "A line that goes\non here.",
                "Next\r\none",
                "A paragraph",
                "another",
                "- one item",
                "- two\n  lines",
                "1. First.",
                "Second",
                "2. Third",
                "| a | b |",
                "| 1 | 2 |",
                "Title",
                "-----",
                "last",
                "end",
            ]
        );
        let headings: Vec<bool> = Sentences::new("## A\n#no\n#\n####### seven").map(|it| it.heading).collect();
        assert_eq!(headings, [true, false, true, false]);
    }

    #[test]
    fn f24_a_text_without_words_has_no_sentences() {
        for text in ["", " ", "\n\r\n\t\u{a0}\u{3000}\u{2029}"] {
            assert_eq!(split(text), [""; 0]);
        }
        assert_eq!(split("..."), ["..."]);
        assert_eq!(split(". . ."), [".", ".", "."]);
    }

    /// Pieces that matter to the splitter, and any characters.
    pub(crate) fn text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            4 => "[a-zA-Z]{1,9}",
            3 => prop::sample::select(vec![
                " ", " ", ". ", "! ", "?", "\n", "\r\n", "\n\n", "\t", "\u{2029}", "# ", "- ", "1. ", "| ", "---", "Dr. ",
                "e.g. ", "...", "\"", "(", ")", "。", "؟", "\u{301}", "e\u{301}", "\u{200d}", "👩\u{200d}👩\u{200d}👧", "שלום", "مرحبا",
                "한국어", "\0", "\u{feff}", "\u{fffd}", "5,931.5",
            ]).prop_map(str::to_owned),
            1 => any::<char>().prop_map(String::from),
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn f26_sentences_hold_every_word_once_and_in_order(text in text()) {
            let mut position = 0;
            for range in sentences(&text) {
                prop_assert!(text[position..range.start].chars().all(char::is_whitespace));
                let sentence = &text[range.clone()];
                prop_assert!(!sentence.is_empty());
                prop_assert_eq!(sentence, sentence.trim());
                position = range.end;
            }
            prop_assert!(text[position..].chars().all(char::is_whitespace));
        }
    }
}
