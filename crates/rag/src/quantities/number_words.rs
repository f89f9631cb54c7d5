//! Numbers in words ("twenty-five", "three hundred and fifty", "a dozen") and magnitude words ("million").

use super::model::Number;

/// A number read from words.
#[derive(Debug, Clone)]
pub(super) struct ParsedWords {
    pub(super) number: Number,
    pub(super) end: usize,
    /// It is the bare word "one" or "a", which mostly counts nothing.
    pub(super) is_one: bool,
}

const SMALL: &[(&str, u32)] = &[
    ("one", 1),
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("eleven", 11),
    ("twelve", 12),
    ("thirteen", 13),
    ("fourteen", 14),
    ("fifteen", 15),
    ("sixteen", 16),
    ("seventeen", 17),
    ("eighteen", 18),
    ("nineteen", 19),
    ("zwei", 2),
    ("drei", 3),
    ("vier", 4),
    ("fünf", 5),
    ("sechs", 6),
    ("sieben", 7),
    ("acht", 8),
    ("neun", 9),
    ("zehn", 10),
    ("zwölf", 12),
];

const TENS: &[(&str, u32)] = &[
    ("twenty", 20),
    ("thirty", 30),
    ("forty", 40),
    ("fifty", 50),
    ("sixty", 60),
    ("seventy", 70),
    ("eighty", 80),
    ("ninety", 90),
    ("zwanzig", 20),
    ("dreißig", 30),
];

const LARGE: &[(&str, f64)] = &[
    ("thousand", 1e3),
    ("million", 1e6),
    ("billion", 1e9),
    ("trillion", 1e12),
    ("tausend", 1e3),
    ("millionen", 1e6),
    ("milliarden", 1e9),
];

/// Words that multiply a number in digits. The last column: only after a currency sign.
const MAGNITUDES: &[(&str, f64, bool)] = &[
    ("hundred", 1e2, false),
    ("thousand", 1e3, false),
    ("million", 1e6, false),
    ("millions", 1e6, false),
    ("mn", 1e6, false),
    ("mln", 1e6, false),
    ("billion", 1e9, false),
    ("bn", 1e9, false),
    ("trillion", 1e12, false),
    ("trn", 1e12, false),
    ("dozen", 12.0, false),
    ("lakh", 1e5, false),
    ("crore", 1e7, false),
    ("tausend", 1e3, false),
    ("tsd", 1e3, false),
    ("mio", 1e6, false),
    ("millionen", 1e6, false),
    ("mrd", 1e9, false),
    ("milliarde", 1e9, false),
    ("milliarden", 1e9, false),
    ("k", 1e3, true),
    ("m", 1e6, true),
    ("b", 1e9, true),
];

/// The byte after one space, hyphen or single line break.
pub(super) fn skip_gap(text: &str, at: usize) -> usize {
    let mut characters = text[at..].chars();
    match characters.next() {
        Some(gap @ (' ' | '\u{a0}' | '\u{202f}' | '\u{2009}' | '-' | '\u{2011}' | '\n')) => {
            let next = at + gap.len_utf8();
            // A line break may come with the indent of the next line.
            if gap == '\n' { next + text[next..].bytes().take_while(|byte| *byte == b' ').count() } else { next }
        }
        _ => at,
    }
}

/// The alphabetic word that starts at `at`, and the byte after it.
pub(super) fn word_at(text: &str, at: usize) -> Option<(&str, usize)> {
    let rest = text.get(at..)?;
    let length = rest.find(|character: char| !character.is_alphabetic()).unwrap_or(rest.len());
    (length > 0).then(|| (&rest[..length], at + length))
}

/// A magnitude word at byte `at`: its factor and the byte after it.
pub(super) fn magnitude_at(text: &str, at: usize, money_before: bool) -> Option<(f64, usize)> {
    let (word, end) = word_at(text, at)?;
    if word.len() > 12 || text[end..].chars().next().is_some_and(|next| next.is_numeric() || next == '/') {
        return None;
    }
    let lowered = word.to_lowercase();
    let row = MAGNITUDES.iter().find(|row| row.0 == lowered && (!row.2 || money_before))?;
    // "Mio." and "Mrd." carry their point.
    let point = usize::from(matches!(row.0, "mio" | "mrd" | "tsd") && text[end..].starts_with('.'));
    Some((row.1, end + point))
}

#[derive(Clone, Copy, PartialEq)]
enum Last {
    Nothing,
    Article,
    Small,
    Tens,
    Hundred,
    Large,
}

struct Reader {
    total: f64,
    current: f64,
    smallest_large: f64,
    last: Last,
    step: f64,
}

impl Reader {
    fn accept(&mut self, word: &str) -> bool {
        if let Some((_, value)) = SMALL.iter().find(|row| row.0 == word) {
            let fits = match self.last {
                Last::Nothing | Last::Hundred | Last::Large => true,
                Last::Tens => *value < 10,
                Last::Article | Last::Small => false,
            };
            return fits && self.add(f64::from(*value), Last::Small);
        }
        if let Some((_, value)) = TENS.iter().find(|row| row.0 == word) {
            let fits = matches!(self.last, Last::Nothing | Last::Hundred | Last::Large);
            return fits && self.add(f64::from(*value), Last::Tens);
        }
        let started = !matches!(self.last, Last::Nothing | Last::Large);
        if matches!(word, "hundred" | "hundert") {
            if !started || self.current >= 100.0 {
                return false;
            }
            self.current *= 100.0;
            self.last = Last::Hundred;
            return true;
        }
        if word == "dozen" {
            if !started || self.total > 0.0 || self.current > 99.0 {
                return false;
            }
            self.current *= 12.0;
            self.last = Last::Hundred;
            return true;
        }
        if let Some((_, factor)) = LARGE.iter().find(|row| row.0 == word) {
            if !started || *factor >= self.smallest_large {
                return false;
            }
            self.total += self.current * factor;
            self.current = 0.0;
            self.smallest_large = *factor;
            self.last = Last::Large;
            self.step = *factor;
            return true;
        }
        false
    }

    fn add(&mut self, value: f64, kind: Last) -> bool {
        self.current += value;
        self.last = kind;
        self.step = 1.0;
        true
    }
}

/// Reads the number in words that starts at byte `start`.
pub(super) fn words_at(text: &str, start: usize) -> Option<ParsedWords> {
    let mut reader = Reader { total: 0.0, current: 0.0, smallest_large: f64::INFINITY, last: Last::Nothing, step: 1.0 };
    let mut end = None;
    let mut count = 0;
    let mut at = start;
    while count < 12 {
        let Some((word, after)) = word_at(text, at) else { break };
        if word.len() > 12 {
            break;
        }
        let lowered = word.to_lowercase();
        if count == 0 && matches!(lowered.as_str(), "a" | "an") {
            // An article counts only before a magnitude: "a hundred", "a dozen".
            reader.current = 1.0;
            reader.last = Last::Article;
        } else if lowered == "and" && matches!(reader.last, Last::Hundred | Last::Large) {
            // Taken only if a number follows.
        } else if reader.accept(&lowered) {
            end = Some(after);
        } else {
            break;
        }
        count += 1;
        let next = skip_gap(text, after);
        if next == after {
            break;
        }
        at = next;
    }
    let mut end = end?;
    let mut value = reader.total + reader.current;
    let mut step = reader.step;
    if let Some(after) = strip_words(text, end, " and a half") {
        end = after;
        value += 0.5 * step;
        step *= 0.5;
    }
    let is_one = value == 1.0;
    Some(ParsedWords { number: Number { value, text: text[start..end].to_owned(), step }, end, is_one })
}

fn strip_words(text: &str, at: usize, words: &str) -> Option<usize> {
    let end = at + words.len();
    let found = text.get(at..end)?;
    let whole = !text[end..].chars().next().is_some_and(char::is_alphanumeric);
    (whole && found.eq_ignore_ascii_case(words)).then_some(end)
}
