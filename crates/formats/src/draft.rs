//! A text that is being put together, with its pages and headings.
//!
//! Every parser of a format with structure writes through this, so that they all write alike: a blank line between blocks,
//! `#` before headings, `| a | b |` for the rows of tables, `- ` before items, white space folded.

use anchorite_core::{Landmark, LandmarkKind, LimitExceeded};

/// Longest line that is taken for a heading, in bytes.
const LONGEST_HEADING: usize = 400;

/// A text with its outline.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    text: String,
    outline: Vec<Landmark>,
    /// A page that begins with the next text.
    page: Option<u32>,
    most: usize,
    cut: bool,
}

impl Draft {
    /// Takes `most` bytes and no more; what exceeds it is an error at the end.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// True once nothing more is taken: the parser may stop.
    pub(crate) fn is_full(&self) -> bool {
        self.cut
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What follows is page, slide or sheet `number`, from 1.
    pub(crate) fn page(&mut self, number: u32) {
        self.page = Some(number);
    }

    /// A paragraph; its own line breaks are kept.
    pub(crate) fn paragraph(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty() && self.begin("\n\n", text.len()) {
            self.text.push_str(text);
        }
    }

    /// A line that belongs with the line before it.
    pub(crate) fn line(&mut self, text: &str) {
        let text = text.trim_end();
        if !text.trim_start().is_empty() && self.begin("\n", text.len()) {
            self.text.push_str(text);
        }
    }

    /// An item of a list.
    pub(crate) fn item(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty() && self.begin("\n", text.len() + 2) {
            self.text.push_str("- ");
            self.text.push_str(text);
        }
    }

    /// A heading; one that is too long is a paragraph.
    pub(crate) fn heading(&mut self, level: u8, text: &str) {
        let text = folded(text);
        if text.is_empty() {
            return;
        }
        if text.len() > LONGEST_HEADING {
            self.paragraph(&text);
            return;
        }
        let level = level.clamp(1, 6);
        if self.begin("\n\n", text.len() + usize::from(level) + 1) {
            let at = self.text.len();
            self.text.extend(std::iter::repeat_n('#', usize::from(level)));
            self.text.push(' ');
            self.text.push_str(&text);
            self.landmark(at, level);
        }
    }

    /// A row of a table. Blank cells keep their place; a blank row is left out, and one cell alone is a line.
    pub(crate) fn row<T: AsRef<str>>(&mut self, cells: &[T]) {
        let last = cells.iter().rposition(|cell| !cell.as_ref().trim().is_empty());
        let Some(last) = last else { return };
        if last == 0 {
            self.line(&folded(cells[0].as_ref()));
            return;
        }
        let mut line = String::from("|");
        for cell in &cells[..=last] {
            line.push(' ');
            line.push_str(&folded(cell.as_ref()));
            line.push_str(" |");
        }
        self.line(&line);
    }

    /// The first row of a table, which names its columns: it stands for a heading over all the rows.
    pub(crate) fn header_row<T: AsRef<str>>(&mut self, cells: &[T]) {
        let before = self.text.len();
        self.row(cells);
        let line = &self.text[before..];
        let at = before + (line.len() - line.trim_start().len());
        if at < self.text.len() && self.text.len() - at <= LONGEST_HEADING {
            self.landmark(at, 6);
        }
    }

    /// An empty line before what comes next.
    pub(crate) fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            let missing = if self.text.ends_with('\n') { "\n" } else { "\n\n" };
            self.text.push_str(missing);
        }
    }

    fn landmark(&mut self, at: usize, level: u8) {
        self.outline.push(Landmark { at, kind: LandmarkKind::Heading { level, end: self.text.len() } });
    }

    /// Makes room for `bytes`, behind `separator`. False if there is none.
    fn begin(&mut self, separator: &str, bytes: usize) -> bool {
        if self.cut || self.text.len() + bytes + 2 > self.most {
            self.cut = true;
            return false;
        }
        if !self.text.is_empty() {
            if separator.len() > 1 {
                self.gap();
            } else if !self.text.ends_with('\n') {
                self.text.push_str(separator);
            }
        }
        if let Some(number) = self.page.take() {
            self.outline.push(Landmark { at: self.text.len(), kind: LandmarkKind::Page(number) });
        }
        true
    }

    /// The text and its outline.
    ///
    /// # Errors
    /// [`LimitExceeded`] of `document_bytes`, naming `source`, if it did not fit.
    pub(crate) fn finish(self, source: &str) -> Result<(String, Vec<Landmark>), LimitExceeded> {
        if self.cut {
            let (actual, allowed) = (self.most as u64 + 1, self.most as u64);
            return Err(LimitExceeded { what: source.to_owned(), limit: "document_bytes", actual, allowed });
        }
        let mut text = self.text;
        text.truncate(text.trim_end().len());
        Ok((text, self.outline))
    }
}

/// `text` with each run of white space as one space, none at the ends, and without what is no text: NUL, soft hyphens,
/// byte order marks.
pub(crate) fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    fold_into(&mut folded, text);
    folded.truncate(folded.trim_end_matches(' ').len());
    folded
}

/// Adds `text` to `folded` as [`folded`] does, with no space at the beginning of a line; one may be left at the end.
pub(crate) fn fold_into(folded: &mut String, text: &str) {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            rest = rest.trim_start();
            if !folded.is_empty() && !folded.ends_with([' ', '\n']) {
                folded.push(' ');
            }
            continue;
        }
        let end = rest.find(|character: char| character.is_whitespace() || is_no_text(character)).unwrap_or(rest.len());
        folded.push_str(&rest[..end]);
        rest = &rest[end..];
        if let Some(next) = rest.chars().next().filter(|next| is_no_text(*next)) {
            rest = &rest[next.len_utf8()..];
        }
    }
}

fn is_no_text(character: char) -> bool {
    matches!(character, '\0' | '\u{ad}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_keeps_pages_headings_and_rows_with_true_offsets() {
        let mut draft = Draft::new(1000);
        draft.page(1);
        draft.heading(2, "The\n title");
        draft.paragraph("One.");
        draft.page(2);
        draft.header_row(&["a", "b"]);
        draft.row(&["1", "", " "]);
        draft.row(&["1", " x\ny ", ""]);
        draft.item("an item");
        let (text, outline) = draft.finish("s").expect("fits");
        assert_eq!(text, "## The title\n\nOne.\n| a | b |\n1\n| 1 | x y |\n- an item");
        let at = |mark: &Landmark| match mark.kind {
            LandmarkKind::Page(number) => format!("{number}: {}", &text[mark.at..mark.at + 2]),
            LandmarkKind::Heading { level, end } => format!("h{level}: {}", &text[mark.at..end]),
        };
        assert_eq!(outline.iter().map(at).collect::<Vec<_>>(), ["1: ##", "h2: ## The title", "2: | ", "h6: | a | b |"]);
    }

    #[test]
    fn a_draft_that_is_too_long_is_an_error() {
        let mut draft = Draft::new(20);
        draft.paragraph("0123456789");
        assert!(!draft.is_full());
        draft.paragraph("0123456789");
        assert!(draft.is_full());
        assert_eq!(draft.finish("s").expect_err("too long").limit, "document_bytes");
    }

    #[test]
    fn white_space_is_folded() {
        assert_eq!(folded(" a\n\u{a0} b\0c\u{ad}d "), "a bcd");
        assert_eq!(folded("\n "), "");
    }
}
