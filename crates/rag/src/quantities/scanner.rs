//! One pass over a text that finds every number and date which measures, counts or dates something.

use super::bounds::prefix_of;
use super::dates::date_from_word;
use super::items::{Item, ItemValue};
use super::model::{Date, Number};
use super::number_words::{skip_gap, word_at};
use super::numbers::{Style, fraction_sign, style_of};
use super::units::{currency_prefix_at, is_currency_sign, unit_at};

pub(super) struct Scanner<'t> {
    pub(super) text: &'t str,
    pub(super) style: Style,
    pub(super) at: usize,
    pub(super) items: Vec<Item>,
}

/// Finds the items of a text in order.
pub(super) fn items_of(text: &str) -> Vec<Item> {
    let mut scanner = Scanner { text, style: style_of(text), at: 0, items: Vec::new() };
    while let Some(character) = scanner.peek(scanner.at) {
        if character.is_ascii_digit() {
            scanner.digits(None);
        } else if character.is_alphabetic() {
            scanner.word();
        } else if is_currency_sign(character) {
            scanner.currency_sign();
        } else if let Some(value) = fraction_sign(character) {
            scanner.fraction(character, value);
        } else {
            scanner.at += character.len_utf8();
        }
    }
    scanner.items
}

impl<'t> Scanner<'t> {
    pub(super) fn peek(&self, at: usize) -> Option<char> {
        self.text.get(at..)?.chars().next()
    }

    pub(super) fn before(&self, at: usize) -> Option<char> {
        self.text[..at].chars().next_back()
    }

    /// Skips letters and digits, and what ties more of them on: "261/2004", "747-400", "10:30", "a.b".
    pub(super) fn skip_identifier(&mut self) {
        let mut rest = self.text[self.at..].char_indices().peekable();
        let mut end = self.text.len();
        while let Some((offset, character)) = rest.next() {
            let tied = matches!(character, '.' | ':' | '/' | '-' | '_' | '@')
                && rest.peek().is_some_and(|(_, next)| next.is_alphanumeric());
            if !character.is_alphanumeric() && !tied {
                end = self.at + offset;
                break;
            }
        }
        self.at = end.max(self.at + self.peek(self.at).map_or(0, char::len_utf8));
    }

    /// Skips the groups of a telephone number.
    pub(super) fn skip_phone(&mut self) {
        if self.peek(self.at).is_some_and(char::is_alphanumeric) {
            self.skip_identifier();
        }
        loop {
            let rest = &self.text[self.at..];
            let gap = rest.bytes().take_while(|byte| matches!(byte, b' ' | b'-' | b'(' | b')' | b'/')).count();
            let digits = rest[gap..].bytes().take_while(u8::is_ascii_digit).count();
            if gap == 0 || gap > 2 || digits == 0 || self.peek(self.at + gap + digits).is_some_and(char::is_alphabetic)
            {
                return;
            }
            self.at += gap + digits;
        }
    }

    pub(super) fn push_date(&mut self, date: Date, start: usize, end: usize) {
        self.items.push(Item {
            value: ItemValue::Date(date),
            unit: None,
            noun: None,
            span: start..end,
            currency_first: false,
            plain_digits: None,
            is_year: false,
            magnitude: 1.0,
            per: None,
            prefix: prefix_of(self.text, start, true),
            suffix: None,
            compound: false,
            provisional: false,
        });
        self.at = end;
    }

    pub(super) fn word(&mut self) {
        let start = self.at;
        let Some((word, end)) = word_at(self.text, start) else {
            self.at += self.peek(start).map_or(1, char::len_utf8);
            return;
        };
        let tied = self.before(start).is_some_and(|before| before.is_alphanumeric() || matches!(before, '_' | '@'));
        if tied {
            self.skip_identifier_word(end);
            return;
        }
        if let Some((date, date_end)) = date_from_word(self.text, start) {
            self.push_date(date, start, date_end);
            return;
        }
        if let Some((unit, after)) = currency_prefix_at(self.text, start) {
            let gap = if self.peek(after).is_some_and(|next| matches!(next, ' ' | '\u{a0}')) {
                after + self.peek(after).map_or(0, char::len_utf8)
            } else {
                after
            };
            if self.peek(gap).is_some_and(|next| next.is_ascii_digit()) {
                self.at = gap;
                self.digits(Some((unit, start)));
                return;
            }
        }
        let hyphen_before = self.before(start).is_some_and(|before| matches!(before, '-' | '\u{2011}' | '\''));
        if word.len() <= 12 && !hyphen_before && self.number_words(start) {
            return;
        }
        self.skip_identifier_word(end);
    }

    /// After a word: its tied digits go with it ("EU261"), but a hyphen or slash parts it from what follows.
    pub(super) fn skip_identifier_word(&mut self, end: usize) {
        self.at = end;
        if self.peek(end).is_some_and(char::is_numeric) {
            self.skip_identifier();
        }
    }

    pub(super) fn currency_sign(&mut self) {
        let start = self.at;
        let foreign = self.before(start).is_some_and(char::is_alphabetic);
        let Some((unit, after)) = currency_prefix_at(self.text, start) else {
            self.at += self.peek(start).map_or(1, char::len_utf8);
            return;
        };
        let gap = after + usize::from(self.text[after..].starts_with(' '));
        self.at = after;
        if self.peek(gap).is_some_and(|next| next.is_ascii_digit()) {
            self.at = gap;
            if foreign {
                self.skip_identifier();
            } else {
                self.digits(Some((unit, start)));
            }
        }
    }

    pub(super) fn fraction(&mut self, character: char, value: f64) {
        let start = self.at;
        let end = start + character.len_utf8();
        self.at = end;
        let gap = skip_gap(self.text, end);
        if let Some((unit, unit_end)) = unit_at(self.text, gap) {
            let number = Number { value, text: character.to_string(), step: 0.125 };
            self.push_measured(number, unit, start, unit_end, None, 1.0);
        }
    }

    /// Whether what stands before a digit at `start` lets a number begin there; the start with its sign.
    pub(super) fn number_start(&self, start: usize) -> Option<(usize, bool)> {
        let Some(before) = self.before(start) else { return Some((start, false)) };
        if before.is_alphanumeric() || matches!(before, '_' | '#' | '\\' | '@' | '^' | '.' | '§') {
            return None;
        }
        let sign_start = start - before.len_utf8();
        let earlier = self.before(sign_start);
        match before {
            '/' | ':' if earlier.is_some_and(char::is_alphanumeric) => None,
            ' ' if earlier == Some('§') => None,
            '-' | '−' => {
                if self.items.last().is_some_and(|item| item.span.end == sign_start) {
                    return Some((start, false));
                }
                if earlier.is_some_and(char::is_alphanumeric) {
                    return None;
                }
                let last = self.text[..sign_start].trim_end().chars().next_back();
                let binary = last.is_some_and(|last| last.is_alphanumeric()) && self.items_end_near(sign_start);
                let negative = !binary && earlier.is_none_or(|earlier| earlier.is_whitespace() || earlier == '(');
                Some(if negative { (sign_start, true) } else { (start, false) })
            }
            _ => Some((start, false)),
        }
    }

    pub(super) fn items_end_near(&self, at: usize) -> bool {
        self.items.last().is_some_and(|item| at >= item.span.end && self.text[item.span.end..at].trim().is_empty())
    }

    /// "1." and "(1)" at the start of a line, "[12]" anywhere.
    pub(super) fn is_marker(&self, start: usize) -> bool {
        let digits = self.text[start..].bytes().take_while(u8::is_ascii_digit).count();
        let after = self.peek(start + digits);
        let before = self.before(start);
        if digits > 3 {
            return false;
        }
        if before == Some('[') && after.is_some_and(|after| matches!(after, ']' | ',' | '-' | '–')) {
            return true;
        }
        let follows_space =
            self.text[start + digits..].chars().nth(1).is_none_or(|next| next.is_whitespace() || next == '*');
        if before == Some('(') && after == Some(')') {
            return digits <= 2 && follows_space;
        }
        // A line of blanks and markup before it; looking back no further than a few bytes keeps this linear.
        let mut blank = true;
        for character in self.text[..start].chars().rev().take(8) {
            if character == '\n' {
                break;
            }
            blank &= matches!(character, ' ' | '\t' | '#' | '>' | '*' | '-' | '(');
        }
        blank && after.is_some_and(|after| matches!(after, '.' | ')')) && follows_space
    }

    pub(super) fn previous_word(&self, start: usize) -> Option<&'t str> {
        let head = self.text[..start].trim_end_matches([' ', '\u{a0}', '.', '\n', '(']);
        if start - head.len() > 3 {
            return None;
        }
        let word_start = head.char_indices().rev().take(24).take_while(|(_, letter)| letter.is_alphabetic()).last()?.0;
        Some(&head[word_start..])
    }
}
