//! The part of the scanner that reads one number: what it may start with, its unit, its noun, and what makes it a name.

use super::bounds::{Prefix, prefix_of, suffix_of};
use super::dates::date_from_digits;
use super::items::{Item, ItemValue};
use super::model::Number;
use super::number_words::{skip_gap, word_at, words_at};
use super::numbers::{DigitsResult, Parsed, Style, digits_at};
use super::scanner::Scanner;
use super::units::{Dimension, Unit, is_currency_sign, unit_at};

/// Words after which a bare number names something instead of counting.
const LABEL_WORDS: &[&str] = &[
    "no",
    "nos",
    "nr",
    "article",
    "articles",
    "art",
    "section",
    "sections",
    "sec",
    "chapter",
    "chapters",
    "figure",
    "figures",
    "fig",
    "table",
    "tables",
    "page",
    "pages",
    "p",
    "pp",
    "paragraph",
    "paragraphs",
    "para",
    "clause",
    "rule",
    "step",
    "part",
    "volume",
    "vol",
    "version",
    "v",
    "regulation",
    "directive",
    "act",
    "law",
    "item",
    "line",
    "room",
    "gate",
    "route",
    "flight",
    "bus",
    "platform",
    "annex",
    "appendix",
    "category",
    "class",
    "grade",
    "level",
    "tier",
    "band",
    "zone",
    "stage",
    "type",
    "group",
    "phase",
    "case",
    "issue",
    "exhibit",
    "form",
    "code",
    "phone",
    "tel",
    "telephone",
    "fax",
    "isbn",
    "issn",
    "doi",
    "postcode",
    "model",
    "season",
    "episode",
    "day",
    "week",
    "artikel",
    "absatz",
    "abs",
    "kapitel",
    "seite",
    "nummer",
    "stufe",
    "klasse",
    "kategorie",
    "highway",
    "psalm",
];

/// Words before a four-digit number that make it a year.
const YEAR_WORDS: &[&str] = &[
    "in", "since", "until", "till", "during", "year", "years", "circa", "early", "late", "mid", "spring", "summer",
    "autumn", "fall", "winter", "im", "seit", "jahr", "jahre", "anno", "before", "after", "by", "born",
];

const MONEY_WORDS: &[&str] =
    &["cost", "costs", "price", "priced", "pay", "paid", "fee", "fine", "fined", "worth", "earn", "earned", "charge"];

const NOT_NOUNS: &[&str] = &[
    "of", "in", "and", "or", "to", "for", "with", "on", "at", "by", "from", "is", "are", "was", "were", "per", "the",
    "a", "an", "as", "that", "which", "who", "when", "if", "than", "but", "it", "its", "has", "had", "have", "will",
    "be", "been", "not", "up", "down", "into", "over", "under", "between", "until", "after", "before", "during",
    "while", "did", "does", "do", "can", "could", "would", "should", "may", "might", "must", "also", "out", "more",
    "less", "und", "oder", "bis", "von", "im", "am", "pm", "this", "these", "those", "he", "she", "they", "we", "then",
    "so", "because", "since", "about", "each", "only", "later", "earlier", "too", "via", "upon", "through", "against",
];

/// Whether a word looks like a plural or another countable noun.
pub(super) fn looks_plural(word: &str) -> bool {
    matches!(word, "people" | "men" | "women" | "children" | "inhabitants")
        || word.len() > 3
            && word.ends_with('s')
            && !word.ends_with("ss")
            && !matches!(word, "this" | "thus" | "whereas")
}

impl<'t> Scanner<'t> {
    pub(super) fn digits(&mut self, currency: Option<(Unit, usize)>) {
        let start = self.at;
        let Some((signed_start, negative)) =
            (if currency.is_some() { Some((start, false)) } else { self.number_start(start) })
        else {
            self.skip_identifier();
            return;
        };
        if self.before(start) == Some('+') && currency.is_none() {
            let digits = self.text[start..].bytes().take_while(u8::is_ascii_digit).count();
            if unit_at(self.text, skip_gap(self.text, start + digits)).is_none() {
                self.skip_phone();
                return;
            }
        }
        if currency.is_none() {
            if self.is_marker(start) {
                self.at = start + self.text[start..].bytes().take_while(u8::is_ascii_digit).count();
                return;
            }
            if let Some((date, end)) = date_from_digits(self.text, start) {
                self.push_date(date, start, end);
                return;
            }
        }
        let text = self.text;
        let unit_after =
            move |at: usize| unit_at(text, skip_gap(text, at)).map(|(unit, _)| unit.dimension == Dimension::Money);
        match digits_at(text, start, self.style, currency.is_some(), &unit_after) {
            DigitsResult::Skip(end) => {
                self.at = end;
                self.skip_phone();
            }
            DigitsResult::Number(parsed) => self.number(parsed, start, signed_start, negative, currency),
        }
    }

    pub(super) fn number(
        &mut self,
        mut parsed: Parsed,
        start: usize,
        signed_start: usize,
        negative: bool,
        currency: Option<(Unit, usize)>,
    ) {
        if self.is_identifier_after(&parsed) {
            self.at = parsed.end;
            self.skip_identifier();
            return;
        }
        let gap = skip_gap(self.text, parsed.end);
        let found = unit_at(self.text, gap).filter(|(unit, end)| self.accepts_unit(&parsed, unit, gap, *end, start));
        if let Some((unit, currency_start)) = currency {
            // "$5 USD" names its currency twice.
            let end = found.filter(|(after, _)| after.symbol == unit.symbol).map_or(parsed.end, |(_, end)| end);
            self.push_measured(parsed.number, unit, currency_start, end, Some(true), parsed.magnitude);
            return;
        }
        let attached =
            self.peek(parsed.end).is_some_and(|next| next.is_alphabetic() || matches!(next, '-' | '°' | 'º' | '′'));
        let found = found.or_else(|| self.inches_after_feet(start, gap));
        let Some((unit, end)) = found else {
            let range_dash = self.text[parsed.end..].strip_prefix('-').is_some_and(|rest| {
                rest.starts_with(|next: char| next.is_ascii_digit() || next == ' ' || is_currency_sign(next))
            });
            if attached && !range_dash {
                self.at = parsed.end;
                self.skip_identifier();
            } else {
                self.bare_number(parsed, start, signed_start, negative);
            }
            return;
        };
        let may_be_negative = matches!(unit.dimension, Dimension::Temperature | Dimension::Percent | Dimension::Money);
        let mut item_start = start;
        if negative && may_be_negative {
            parsed.number.value = -parsed.number.value;
            parsed.number.text = format!("−{}", parsed.number.text);
            item_start = signed_start;
        }
        let unit = self.pounds(unit, start);
        self.push_measured(parsed.number, unit, item_start, end, None, parsed.magnitude);
    }

    /// "in" is an inch only after feet: "6 ft 2 in".
    pub(super) fn inches_after_feet(&self, start: usize, gap: usize) -> Option<(Unit, usize)> {
        let last = self.items.last().filter(|item| item.unit.as_ref().is_some_and(|unit| unit.symbol == "ft"))?;
        let tail = self.text[gap..].strip_prefix("in")?;
        let follows = self.text[last.span.end..start].trim().is_empty() && !tail.starts_with(char::is_alphanumeric);
        follows.then(|| Unit::named("in")).flatten().map(|unit| (unit, gap + 2))
    }

    /// "pounds" are money where the words before speak of paying.
    pub(super) fn pounds(&self, unit: Unit, start: usize) -> Unit {
        if unit.symbol != "lb" {
            return unit;
        }
        let mut from = start.saturating_sub(40);
        while !self.text.is_char_boundary(from) {
            from += 1;
        }
        let words =
            self.text[from..start].rsplit(|letter: char| letter.is_ascii_digit()).next().unwrap_or("").to_lowercase();
        let pays = words.split(|letter: char| !letter.is_alphabetic()).any(|word| MONEY_WORDS.contains(&word));
        if pays { Unit::currency("GBP") } else { unit }
    }

    pub(super) fn accepts_unit(&self, parsed: &Parsed, unit: &Unit, gap: usize, end: usize, start: usize) -> bool {
        let attached = gap == parsed.end;
        let spelling = &self.text[gap..end];
        match spelling {
            // "4K" is a thousand or a picture size, "300 K" a temperature.
            "K" if attached => false,
            // "1990s", "in her 20s".
            "s" if attached => {
                let decade = parsed.plain_digits.is_some() && parsed.number.value % 10.0 == 0.0;
                !decade
                    || parsed.plain_digits != Some(4)
                        && !self.previous_word(start).is_some_and(|word| {
                            matches!(
                                word.to_lowercase().as_str(),
                                "his" | "her" | "their" | "the" | "mid" | "early" | "late" | "my" | "your" | "our"
                            )
                        })
            }
            // "10m people" are millions.
            "m" if attached => !self.next_lower_word(end).is_some_and(looks_plural),
            "t" | "g" | "l" | "L" | "h" | "m" | "s" | "W" | "J" if self.text[parsed.end..gap].contains('\n') => false,
            _ => unit.dimension != Dimension::Data || spelling != "bit" || !self.text[end..].starts_with(" of"),
        }
    }

    pub(super) fn next_lower_word(&self, at: usize) -> Option<&'t str> {
        let rest = self.text[at..].strip_prefix([' ', '\u{a0}'])?;
        let (word, _) = word_at(rest, 0)?;
        word.starts_with(char::is_lowercase).then_some(word)
    }

    /// Times, versions, sizes and telephone numbers: digits tied to further digits.
    pub(super) fn is_identifier_after(&self, parsed: &Parsed) -> bool {
        let rest = &self.text[parsed.end..];
        let mut characters = rest.chars();
        let Some(first) = characters.next() else { return false };
        let second = characters.next();
        let digit_follows = second.is_some_and(|next| next.is_ascii_digit());
        match first {
            '_' | '@' => true,
            // "the 1970's".
            '\'' | '’' => second == Some('s'),
            ':' | '/' | '×' | 'x' if digit_follows => true,
            '-' if digit_follows => {
                let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
                let after = 1 + digits;
                let again =
                    rest[after..].strip_prefix('-').is_some_and(|tail| tail.starts_with(|c: char| c.is_ascii_digit()));
                let has_unit = unit_at(rest, skip_gap(rest, after)).is_some();
                let phone = parsed.plain_digits == Some(3) && digits == 4 && !has_unit;
                again || phone || rest[after..].starts_with(char::is_alphabetic) && !has_unit
            }
            _ => false,
        }
    }

    pub(super) fn bare_number(&mut self, mut parsed: Parsed, start: usize, signed_start: usize, negative: bool) {
        let text = self.text;
        let previous = self.previous_word(start);
        let lowered = previous.map(str::to_lowercase);
        let lowered = lowered.as_deref();
        self.at = parsed.end;
        let found_noun = self.noun_after(parsed.end);
        let noun_end = found_noun.as_ref().map_or(parsed.end, |found| found.1);
        let noun = found_noun.map(|found| found.0);
        // Clock times: "5 pm", "10 a.m.".
        let rest = text[parsed.end..].trim_start_matches([' ', '\u{a0}']);
        if ["pm", "am", "a.m", "p.m", "o'clock", "o’clock", "Uhr"]
            .iter()
            .any(|clock| rest.strip_prefix(clock).is_some_and(|tail| !tail.starts_with(char::is_alphanumeric)))
        {
            return;
        }
        let plain = parsed.plain_digits;
        let value = parsed.number.value;
        let prefix = prefix_of(text, start, false);
        let year_like = plain == Some(4) && (1000.0..=2199.0).contains(&value) && !negative;
        let plural = noun.as_deref().is_some_and(looks_plural);
        let is_year = year_like && {
            let said = lowered.is_some_and(|word| YEAR_WORDS.contains(&word));
            let counts = plural || prefix.bound.is_some() || text[parsed.end..].starts_with(" of ");
            said || !counts && value >= 1400.0
        };
        if !is_year && self.is_label(previous, lowered, start, plural) {
            return;
        }
        let mut item_start = start;
        if negative {
            parsed.number.value = -value;
            parsed.number.text = format!("−{}", parsed.number.text);
            item_start = signed_start;
        }
        let per = self.per_after(noun_end);
        let suffix = suffix_of(text, parsed.end).or_else(|| suffix_of(text, noun_end));
        let prefix = if is_year { prefix_of(text, start, true) } else { prefix_of(text, item_start, false) };
        self.items.push(Item {
            value: ItemValue::Number(parsed.number),
            unit: None,
            noun: if is_year { None } else { noun },
            span: item_start..parsed.end,
            currency_first: false,
            plain_digits: plain,
            is_year,
            magnitude: parsed.magnitude,
            per,
            prefix,
            suffix,
            compound: false,
            provisional: false,
        });
    }

    /// Whether the word before makes a bare number a name: "Article 7", "Boeing 747".
    pub(super) fn is_label(&self, previous: Option<&str>, lowered: Option<&str>, start: usize, plural: bool) -> bool {
        let (Some(previous), Some(lowered)) = (previous, lowered) else { return false };
        if LABEL_WORDS.contains(&lowered) && lowered.len() + 4 >= previous.len() {
            return true;
        }
        if plural
            || !previous.starts_with(char::is_uppercase)
            || !self.before(start).is_some_and(|c| matches!(c, ' ' | '\u{a0}'))
        {
            return false;
        }
        // The first word of a sentence is capitalised whatever it is.
        let head = self.text[..start].trim_end();
        let word_start = head.len() - previous.len().min(head.len());
        if !head.is_char_boundary(word_start) {
            return false;
        }
        let earlier = head[..word_start].trim_end_matches([' ', '"', '“', '(', '*']).chars().next_back();
        let first = earlier.is_none_or(|earlier| matches!(earlier, '.' | '!' | '?' | '\n' | ':' | ';' | '-' | '•'));
        !first || !NOT_NOUNS.contains(&lowered) && !super::words::is_stop_word(lowered)
    }

    /// The word a bare number counts, in lower case, and the byte after it.
    pub(super) fn noun_after(&self, end: usize) -> Option<(String, usize)> {
        let gap = self.peek(end).filter(|gap| matches!(gap, ' ' | '\u{a0}'))?.len_utf8();
        let (word, word_end) = word_at(self.text, end + gap)?;
        let cased = word.starts_with(char::is_lowercase) || self.style == Style::Continental;
        let lowered = word.to_lowercase();
        let is_noun = cased && word.len() >= 3 && word.len() <= 24 && !NOT_NOUNS.contains(&lowered.as_str());
        is_noun.then_some((lowered, word_end))
    }

    /// The noun of "per night" or "/night" at `end`.
    pub(super) fn per_after(&self, end: usize) -> Option<String> {
        let rest = self.text.get(end..)?;
        let rest =
            rest.strip_prefix(" per ").or_else(|| rest.strip_prefix('/')).or_else(|| rest.strip_prefix(" pro "))?;
        let (word, _) = word_at(rest, 0)?;
        (word.len() <= 24).then(|| word.to_lowercase())
    }

    pub(super) fn push_measured(
        &mut self,
        number: Number,
        unit: Unit,
        start: usize,
        end: usize,
        currency_first: Option<bool>,
        magnitude: f64,
    ) {
        let prefix: Prefix = prefix_of(self.text, start, false);
        let per = self.per_after(end);
        self.items.push(Item {
            value: ItemValue::Number(number),
            unit: Some(unit),
            noun: None,
            span: start..end,
            currency_first: currency_first.unwrap_or(false),
            plain_digits: None,
            is_year: false,
            magnitude,
            per,
            prefix,
            suffix: suffix_of(self.text, end),
            compound: false,
            provisional: false,
        });
        self.at = end;
    }

    /// A number in words at `start`; false where the words are no number that measures or counts.
    pub(super) fn number_words(&mut self, start: usize) -> bool {
        let Some(parsed) = words_at(self.text, start) else { return false };
        let end = self.skip_repeated_digits(&parsed.number, parsed.end);
        let gap = skip_gap(self.text, end);
        if let Some((unit, unit_end)) = unit_at(self.text, gap) {
            // "one second thought", "one bar", "two cups" stay what they are; only a lone letter is no unit here.
            if self.text[gap..unit_end].chars().count() > 1
                || !self.text[gap..unit_end].starts_with(char::is_alphabetic)
            {
                let unit = self.pounds(unit, start);
                self.push_measured(parsed.number, unit, start, unit_end, None, 1.0);
                return true;
            }
        }
        let hyphenated = self.peek(end).is_some_and(|next| matches!(next, '-' | '\u{2011}'));
        if hyphenated {
            return false;
        }
        let found_noun = self.noun_after(end);
        let noun_end = found_noun.as_ref().map_or(end, |found| found.1);
        let noun = found_noun.map(|found| found.0);
        let is_fraction = noun.as_deref().is_some_and(|noun| {
            matches!(
                noun,
                "third"
                    | "thirds"
                    | "half"
                    | "halves"
                    | "quarter"
                    | "quarters"
                    | "fifth"
                    | "fifths"
                    | "tenth"
                    | "tenths"
            )
        });
        let range_follows = [" to ", " and ", " bis ", " or "].iter().any(|word| self.text[end..].starts_with(word));
        let label = self.previous_word(start).is_some_and(|word| LABEL_WORDS.contains(&word.to_lowercase().as_str()));
        if is_fraction || parsed.is_one && !range_follows || label || noun.is_none() && !range_follows {
            self.at = end;
            return true;
        }
        let per = self.per_after(noun_end);
        let provisional = noun.is_none();
        self.items.push(Item {
            value: ItemValue::Number(parsed.number),
            unit: None,
            noun,
            span: start..end,
            currency_first: false,
            plain_digits: None,
            is_year: false,
            magnitude: 1.0,
            per,
            prefix: prefix_of(self.text, start, false),
            suffix: suffix_of(self.text, end).or_else(|| suffix_of(self.text, noun_end)),
            compound: false,
            provisional,
        });
        self.at = end;
        true
    }

    /// "seven (7) days": the figure in brackets repeats the word.
    pub(super) fn skip_repeated_digits(&self, number: &Number, end: usize) -> usize {
        let Some(rest) = self.text[end..].strip_prefix(" (") else { return end };
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let same = digits > 0 && rest[..digits].parse::<f64>().is_ok_and(|value| value == number.value);
        if same && rest[digits..].starts_with(')') { end + 2 + digits + 1 } else { end }
    }
}
