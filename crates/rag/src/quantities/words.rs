//! Sentences, words, names and stop words: what ties a quantity to a question.

use std::collections::HashSet;
use std::ops::Range;

use super::dates::month_of;
use super::units::is_unit_word;

const STOP_WORDS: &[&str] = &[
    "a",
    "about",
    "above",
    "after",
    "all",
    "also",
    "although",
    "am",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "because",
    "been",
    "before",
    "being",
    "below",
    "between",
    "both",
    "but",
    "by",
    "can",
    "could",
    "did",
    "do",
    "does",
    "due",
    "during",
    "each",
    "either",
    "else",
    "far",
    "for",
    "from",
    "get",
    "give",
    "given",
    "had",
    "has",
    "have",
    "he",
    "her",
    "his",
    "how",
    "however",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "just",
    "let",
    "long",
    "many",
    "may",
    "me",
    "more",
    "most",
    "much",
    "must",
    "my",
    "no",
    "not",
    "of",
    "off",
    "on",
    "one",
    "only",
    "or",
    "other",
    "our",
    "out",
    "over",
    "own",
    "per",
    "please",
    "same",
    "she",
    "should",
    "since",
    "so",
    "some",
    "such",
    "than",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "through",
    "to",
    "under",
    "until",
    "up",
    "upon",
    "us",
    "very",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "which",
    "while",
    "who",
    "whom",
    "whose",
    "why",
    "will",
    "with",
    "within",
    "without",
    "would",
    "yes",
    "you",
    "your",
    "compute",
    "calculate",
    "tell",
    "show",
    "find",
    "say",
    "according",
    "assume",
    "suppose",
    "list",
    "name",
    "explain",
    "describe",
    "receive",
    "receives",
    "received",
    "gets",
    "got",
    "apply",
    "applies",
    "der",
    "die",
    "das",
    "und",
    "ist",
    "wie",
    "viel",
    "was",
    "wer",
    "wann",
    "wo",
    "von",
    "nach",
    "zu",
    "im",
    "am",
    "ich",
    "wenn",
    "bei",
    "für",
    "mit",
    "ein",
    "eine",
    "einer",
    "einen",
    "auf",
    "bis",
    "über",
    "unter",
    "zwischen",
];

/// Whether a lower-case word carries no meaning of its own.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.contains(&word)
}

/// One word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// In lower case, a possessive ending cut off.
    pub(super) lower: String,
    pub(super) span: Range<usize>,
    pub(super) capitalised: bool,
    /// Written in capitals only, two letters or more.
    pub(super) all_capitals: bool,
    /// Nothing but a space or a hyphen parts it from the word before.
    pub(super) follows_directly: bool,
    /// First word of the text or after a sentence end.
    pub(super) initial: bool,
}

/// The words of `text[span]` in order.
pub(super) fn words_of(text: &str, span: Range<usize>) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut at = span.start;
    let mut previous_end = span.start;
    while at < span.end {
        let Some(character) = text[at..].chars().next() else { break };
        if !character.is_alphanumeric() {
            at += character.len_utf8();
            continue;
        }
        let rest = &text[at..span.end];
        let length = rest.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(rest.len());
        let word = &rest[..length];
        let gap = &text[previous_end..at];
        // The "s" of "Munich's" is no word.
        if word == "s" && matches!(gap, "'" | "’") {
            at += length;
            previous_end = at;
            continue;
        }
        let end_before = gap.chars().any(|mark| matches!(mark, '.' | '!' | '?' | ':' | ';' | '\n' | '"' | '“' | '•'));
        let letters = word.chars().filter(|letter| letter.is_alphabetic()).count();
        words.push(Word {
            lower: word.to_lowercase(),
            span: at..at + length,
            capitalised: word.starts_with(char::is_uppercase),
            all_capitals: letters >= 2 && !word.chars().any(char::is_lowercase),
            follows_directly: matches!(gap, " " | "\u{a0}"),
            initial: words.is_empty() || end_before,
        });
        at += length;
        previous_end = at;
    }
    words
}

/// A crude common form of a word: plural and verb endings off.
pub(super) fn stem(word: &str) -> String {
    let count = word.chars().count();
    let cut = |suffix: &str, least: usize| {
        word.strip_suffix(suffix).filter(|rest| count >= least && rest.is_ascii()).map(str::to_owned)
    };
    if let Some(base) = cut("ies", 5) {
        return format!("{base}y");
    }
    for (suffix, least) in [("sses", 6), ("ing", 6), ("ed", 5), ("es", 6), ("s", 4), ("e", 5)] {
        if suffix == "s" && word.ends_with("ss") {
            continue;
        }
        if let Some(base) = cut(suffix, least) {
            return base;
        }
    }
    word.to_owned()
}

/// The stems of the meaningful words of `text[span]`, numbers left out.
pub(super) fn content_stems(text: &str, span: Range<usize>) -> HashSet<String> {
    words_of(text, span)
        .into_iter()
        .filter(|word| word.lower.chars().any(char::is_alphabetic) && !is_stop_word(&word.lower))
        .filter(|word| word.lower.chars().count() > 1 && !is_unit_word(&word.lower))
        .map(|word| stem(&word.lower))
        .collect()
}

const ABBREVIATIONS: &[&str] = &[
    "no", "nos", "nr", "approx", "ca", "c", "e.g", "i.e", "st", "mr", "mrs", "dr", "prof", "vs", "u.s", "u.k", "art",
    "fig", "sec", "vol", "max", "min", "est", "inc", "etc", "z.b", "bzw", "mio", "mrd", "p", "pp", "jan", "feb", "mar",
    "apr", "jun", "jul", "aug", "sept", "sep", "oct", "nov", "dec", "b.c", "a.d",
];

/// The sentences of a text; list lines and table rows are sentences of their own. Spans hold no outer white space.
pub(super) fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut result = Vec::new();
    let mut start = 0;
    let mut line_start = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '\n' => {
                if line_ends_sentence(&text[line_start..at], &text[at + 1..]) {
                    push_sentence(text, start..at, &mut result);
                    start = at + 1;
                }
                line_start = at + 1;
            }
            '.' | '!' | '?' | '…' => {
                let mut end = at + character.len_utf8();
                while let Some((next_at, next)) = characters
                    .next_if(|(_, next)| matches!(next, '.' | '!' | '?' | '"' | '”' | ')' | '\'' | '’' | '*' | '_'))
                {
                    end = next_at + next.len_utf8();
                }
                if point_ends_sentence(text, start, at, end, character) {
                    push_sentence(text, start..end, &mut result);
                    start = end;
                }
            }
            _ => {}
        }
    }
    push_sentence(text, start..text.len(), &mut result);
    result
}

fn push_sentence(text: &str, span: Range<usize>, result: &mut Vec<Range<usize>>) {
    let piece = &text[span.clone()];
    let trimmed_start = span.start + (piece.len() - piece.trim_start().len());
    let end = span.start + piece.trim_end().len();
    if trimmed_start < end {
        result.push(trimmed_start..end);
    }
}

/// Whether a line starts a list item, heading, quotation or table row.
pub(super) fn is_list_line(line: &str) -> bool {
    let line = line.trim_start();
    if line.starts_with(['-', '*', '•', '–', '|', '#', '>', '·', '+']) {
        return true;
    }
    let inner = line.strip_prefix('(').unwrap_or(line);
    let length = inner.chars().take_while(|letter| letter.is_ascii_alphanumeric()).count();
    (1..=3).contains(&length)
        && inner[length..].starts_with([')', '.'])
        && (line.len() > inner.len() || inner[length + 1..].starts_with(' '))
}

fn line_ends_sentence(line: &str, rest: &str) -> bool {
    let next = rest.split('\n').next().unwrap_or("");
    let line = line.trim_end();
    if next.trim().is_empty() || is_list_line(next) || line.trim_start().starts_with(['#', '|']) {
        return true;
    }
    if line.ends_with(['.', '!', '?', ':', ';', '|']) {
        return true;
    }
    // A short line without an end is an entry of its own; a long one is text broken to a width.
    line.chars().count() < 40 && !line.ends_with(',')
}

fn point_ends_sentence(text: &str, start: usize, at: usize, end: usize, mark: char) -> bool {
    let mut rest = text[end..].chars();
    match rest.next() {
        None => return true,
        Some(next) if next.is_whitespace() => {}
        Some(_) => return false,
    }
    let following = rest.find(|next| !next.is_whitespace());
    if following.is_some_and(char::is_lowercase) {
        return false;
    }
    if mark != '.' {
        return true;
    }
    let head = &text[start..at];
    let word_start = head.rfind(|letter: char| letter.is_whitespace() || letter == '(').map_or(0, |found| found + 1);
    let word = head.get(word_start..).unwrap_or("").to_lowercase();
    // An initial ("J. Smith"), a list number at the start, an ordinal before a German month, or an abbreviation.
    let lone_letter = word.chars().count() == 1 && word.chars().all(char::is_alphabetic) && word != "m";
    let list_number = word_start == 0 && word.len() <= 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    let before_month = word.bytes().all(|byte| byte.is_ascii_digit())
        && text[end..].split_whitespace().next().is_some_and(|next| month_of(next).is_some());
    !(lone_letter || list_number || before_month || ABBREVIATIONS.contains(&word.as_str()))
}

/// A name of the question: one or more capitalised words in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    /// As written.
    pub(super) text: String,
    /// Its words in lower case.
    pub(super) words: Vec<String>,
    pub(super) span: Range<usize>,
}

/// The names of a text in order, each once, as they are written.
pub(crate) fn names(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in names_of(text, 0..text.len()) {
        if !names.contains(&name.text) {
            names.push(name.text);
        }
    }
    names
}

/// The names of a text in order; words that only start a sentence, months and units are none.
pub(super) fn names_of(text: &str, span: Range<usize>) -> Vec<Name> {
    let words = words_of(text, span);
    let mut names: Vec<Name> = Vec::new();
    let mut open = false;
    for word in &words {
        let is_name = word.capitalised
            && !is_stop_word(&word.lower)
            && word.lower != "i"
            && month_of(&text[word.span.clone()]).is_none()
            && !is_unit_word(&text[word.span.clone()])
            && !(word.initial && is_common_opening(&word.lower))
            || open && word.follows_directly && word.lower.chars().all(|letter| letter.is_ascii_digit());
        if !is_name {
            // "US" is the stop word "us" in capitals.
            if word.all_capitals && word.lower == "us" {
                names.push(Name { text: "US".to_owned(), words: vec!["us".to_owned()], span: word.span.clone() });
            }
            open = false;
            continue;
        }
        match names.last_mut() {
            Some(last) if open && word.follows_directly => {
                last.text.push(' ');
                last.text.push_str(&text[word.span.clone()]);
                last.words.push(word.lower.clone());
                last.span.end = word.span.end;
            }
            _ => names.push(Name {
                text: text[word.span.clone()].to_owned(),
                words: vec![word.lower.clone()],
                span: word.span.clone(),
            }),
        }
        open = true;
    }
    names
}

/// Words that often open a question or sentence without being names.
fn is_common_opening(lower: &str) -> bool {
    const OPENINGS: &[&str] = &[
        "compare",
        "flight",
        "flights",
        "distance",
        "passengers",
        "passenger",
        "compensation",
        "computed",
        "today",
        "total",
        "combined",
        "altogether",
        "difference",
        "category",
        "given",
        "once",
        "thanks",
        "hello",
        "add",
        "sum",
        "even",
        "instead",
        "still",
        "therefore",
        "hence",
        "thus",
        "regarding",
        "concerning",
        "are",
        "airline",
    ];
    OPENINGS.contains(&lower)
}
