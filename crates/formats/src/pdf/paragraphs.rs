//! Rows to paragraphs, headings and tables.
//!
//! A line goes on in the next one if it reaches the end of its column and nothing says that something new begins: a wider
//! gap, another size, an indentation, an item's mark. A word that was parted at the end of a line is joined again. Rows of
//! several segments below each other are a table. What is larger than most text of the file, or bold and alone, is a heading.

use super::columns::{Block, Row};
use super::segments::Segment;
use crate::draft::Draft;

/// Sizes of a file's text.
#[derive(Debug)]
pub(crate) struct Sizes {
    /// The size of most characters.
    body: f32,
    /// Larger ones, from the largest, each at least a tenth smaller than the one before.
    larger: Vec<f32>,
}

/// Text this many times larger than most is a heading.
const HEADING: f32 = 1.12;
/// A heading has this many characters at most.
const LONGEST_HEADING: usize = 200;

impl Sizes {
    pub(crate) fn of(pages: &[Vec<Block>]) -> Self {
        let mut counted: std::collections::BTreeMap<i32, usize> = std::collections::BTreeMap::new();
        for segment in pages.iter().flatten().flat_map(|block| block.rows.iter().flatten()) {
            *counted.entry((segment.size * 4.0).round() as i32).or_default() += segment.characters;
        }
        let body = counted.iter().max_by_key(|(_, count)| **count).map_or(0.0, |(size, _)| *size as f32 / 4.0);
        let mut larger: Vec<f32> = Vec::new();
        for size in counted.keys().rev().map(|size| *size as f32 / 4.0).filter(|size| *size >= body * HEADING) {
            if larger.last().is_none_or(|last| size < last * 0.9) {
                larger.push(size);
            }
        }
        Self { body, larger }
    }

    /// The level of a heading of this size; `None` if text of this size is none.
    fn level(&self, size: f32) -> Option<u8> {
        if size < self.body * HEADING {
            return None;
        }
        let rank = self.larger.iter().position(|larger| size >= larger * 0.95).unwrap_or(self.larger.len());
        // Titles, then sections: deeper levels are told by numbers, not by sizes.
        Some(u8::try_from(rank.min(3)).unwrap_or(3) + 1)
    }
}

/// One line of a block.
struct Line {
    text: String,
    x0: f32,
    x1: f32,
    y: f32,
    size: f32,
    bold: bool,
    right_to_left: bool,
}

impl Line {
    fn of(row: &Row) -> Option<Self> {
        let widest = row.iter().max_by_key(|segment| segment.characters)?;
        let (y, size, right_to_left) = (widest.y, widest.size, widest.right_to_left);
        let bold = row.iter().all(|segment| segment.bold);
        let x0 = row.iter().map(|segment| segment.x0).fold(f32::INFINITY, f32::min);
        let x1 = row.iter().map(|segment| segment.x1).fold(f32::NEG_INFINITY, f32::max);
        let texts: Vec<&str> = row.iter().map(|segment| segment.text.trim()).collect();
        Some(Self { text: texts.join(" "), x0, x1, y, size, bold, right_to_left })
    }
}

/// Writes one block.
pub(crate) fn write(block: Block, sizes: &Sizes, draft: &mut Draft) {
    let Block { rows, x0, x1 } = block;
    let pitch = pitch(&rows);
    let mut open = Open { lines: Vec::new(), x0, x1, pitch };
    let mut rows = rows.into_iter().peekable();
    let mut table = false;
    while let Some(row) = rows.next() {
        let next_is_row = rows.peek().is_some_and(is_tabular);
        if is_tabular(&row) && (table || next_is_row) {
            open.write(sizes, draft);
            if !table {
                draft.gap();
            }
            table = true;
            let cells: Vec<&str> = row.iter().map(|segment: &Segment| segment.text.as_str()).collect();
            draft.row(&cells);
            continue;
        }
        if table {
            draft.gap();
        }
        table = false;
        let Some(line) = Line::of(&row) else { continue };
        if open.lines.last().is_some_and(|last| open.breaks(last, &line)) {
            open.write(sizes, draft);
        }
        open.lines.push(line);
    }
    open.write(sizes, draft);
}

/// Is there a gap in the row that no space of a stretched line is as wide as?
fn is_tabular(row: &Row) -> bool {
    row.windows(2).any(|pair| {
        let gap = (pair[1].x0 - pair[0].x1).max(pair[0].x0 - pair[1].x1);
        gap > 1.25 * pair[0].size.max(pair[1].size)
    })
}

/// The usual distance of two baselines.
fn pitch(rows: &[Row]) -> f32 {
    let mut distances: Vec<f32> = rows
        .windows(2)
        .filter_map(|pair| Some(pair[1].first()?.y - pair[0].first()?.y))
        .filter(|distance| *distance > 0.5)
        .collect();
    if distances.is_empty() {
        return 0.0;
    }
    // Lower than the middle: gaps between paragraphs are wider than lines, and there may be many.
    let at = distances.len() / 3;
    *distances.select_nth_unstable_by(at, f32::total_cmp).1
}

/// The paragraph that is being read.
struct Open {
    lines: Vec<Line>,
    x0: f32,
    x1: f32,
    pitch: f32,
}

impl Open {
    /// Does `line` begin something new behind `last`?
    fn breaks(&self, last: &Line, line: &Line) -> bool {
        let gap = line.y - last.y;
        let size = last.size.max(line.size);
        if (last.size - line.size).abs() > 0.08 * size || last.bold != line.bold {
            return true;
        }
        if gap > (self.pitch * 1.35).max(size * 1.1) || gap < 0.0 {
            return true;
        }
        let indented = if line.right_to_left { last.x1 - line.x1 } else { line.x0 - last.x0 };
        let first = self.lines.len() == 1;
        // A first line hangs to the right of the rest, or to the left of it in a list.
        (indented > 0.8 * size && !first && ends_sentence(&last.text)) || begins_item(&line.text)
    }

    fn write(&mut self, sizes: &Sizes, draft: &mut Draft) {
        let lines = std::mem::take(&mut self.lines);
        let Some(first) = lines.first() else { return };
        let characters: usize = lines.iter().map(|line| line.text.len()).sum();
        let level = sizes.level(first.size).or_else(|| {
            let numbered = first.text.starts_with(|character: char| character.is_ascii_digit());
            let short = lines.len() == 1 && characters <= 80 && !ends_sentence(&first.text);
            (first.bold && short && (numbered || first.size >= sizes.body * 0.97)).then_some(4)
        });
        let has_letters = first.text.chars().any(char::is_alphabetic);
        if let Some(level) = level.filter(|_| characters <= LONGEST_HEADING && lines.len() <= 4 && has_letters) {
            draft.heading(level, &joined(&lines, f32::NEG_INFINITY, f32::INFINITY));
        } else {
            draft.paragraph(&joined(&lines, self.x0, self.x1));
        }
    }
}

/// The lines as one text. A line that ends well before its column does keeps its break: it is a line of code, of a list, of
/// an address.
fn joined(lines: &[Line], x0: f32, x1: f32) -> String {
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        let words = line.text.trim();
        let Some(last) = index.checked_sub(1).map(|before| &lines[before]) else {
            text.push_str(words);
            continue;
        };
        if parts_word(&text, words) {
            text.pop();
            text.push_str(words);
            continue;
        }
        let width = x1 - x0;
        let short = if !width.is_finite() {
            false
        } else if line.right_to_left {
            last.x0 - x0 > 0.25 * width
        } else {
            x1 - last.x1 > 0.25 * width
        };
        let dense = text.chars().next_back().is_some_and(is_dense) && words.chars().next().is_some_and(is_dense);
        if short {
            text.push('\n');
        } else if !dense {
            text.push(' ');
        }
        text.push_str(words);
    }
    text
}

/// Chinese and Japanese put no spaces between words; Korean does.
fn is_dense(character: char) -> bool {
    matches!(character, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ff60}' | '\u{20000}'..='\u{3ffff}')
}

/// Was a word parted between the end of `text` and `next`?
fn parts_word(text: &str, next: &str) -> bool {
    let mut back = text.chars().rev();
    let hyphen = matches!(back.next(), Some('-' | '\u{2010}' | '\u{ad}'));
    hyphen && back.next().is_some_and(char::is_alphabetic) && next.starts_with(char::is_lowercase)
}

fn ends_sentence(text: &str) -> bool {
    text.trim_end_matches(['"', '\'', ')', ']', '”', '’', '»'])
        .ends_with(['.', '!', '?', ':', ';', '…', '。', '！', '？', '؟', '۔', '।'])
}

/// A bullet, a number or a letter with a full stop or bracket.
fn begins_item(text: &str) -> bool {
    let mut characters = text.chars();
    match characters.next() {
        Some('•' | '◦' | '▪' | '●' | '○' | '■' | '□' | '–' | '—' | '*' | '‣' | '·') => {
            characters.next().is_none_or(char::is_whitespace)
        }
        Some('-') => characters.next() == Some(' '),
        Some('(') => {
            let label: String = characters.by_ref().take_while(|character| *character != ')').take(5).collect();
            (1..=4).contains(&label.len()) && label.chars().all(char::is_alphanumeric)
        }
        Some(first) if first.is_ascii_digit() => {
            let rest = text.trim_start_matches(|character: char| character.is_ascii_digit());
            text.len() - rest.len() <= 3 && rest.starts_with(['.', ')']) && rest[1..].starts_with(' ')
        }
        Some(first) if first.is_alphabetic() => {
            matches!((characters.next(), characters.next()), (Some(')'), Some(' ')))
        }
        _ => false,
    }
}
