//! OpenDocument (ISO/IEC 26300): texts, sheets and presentations have one vocabulary.

use super::{Table, description, inline};
use crate::draft::Draft;
use crate::item::{ExtractError, Remark};
use crate::package::Package;
use crate::parsed::{Parsed, Reading};
use crate::xml::{Element, Event, walk};

/// Cells and rows that are said to be repeated fill the sheet; few of them are meant.
const MOST_REPEATED: usize = 64;

pub(crate) fn read(bytes: Vec<u8>, reading: &Reading<'_>) -> Result<Parsed, ExtractError> {
    let mut package = Package::open(bytes, "OpenDocument", reading)?;
    if package.text("META-INF/manifest.xml")?.is_some_and(|manifest| manifest.contains("encryption-data")) {
        // The package itself is not encrypted, its parts are, and no well-kept crate takes those apart.
        return Err(ExtractError::Encrypted { path: package.reading().source.to_owned() });
    }
    let is_sheet = package.text("mimetype")?.is_some_and(|media| media.contains("spreadsheet"));
    let content = package.needed("content.xml")?;
    let mut writer = Writer::new(reading.draft(), is_sheet);
    let damage = walk(&content, &mut |event| writer.event(event)).err();
    writer.end();
    let (title, metadata) = description(&mut package, "meta.xml")?;
    let remarks = damage.map(|message| Remark::Incomplete { message }).into_iter().collect();
    Ok(Parsed::Text { draft: writer.draft, title, metadata, remarks })
}

#[derive(Debug, Default)]
struct Paragraph {
    text: String,
    level: Option<u8>,
}

struct Writer {
    draft: Draft,
    is_sheet: bool,
    paragraphs: Vec<Paragraph>,
    tables: Vec<Table>,
    silent: usize,
    lists: usize,
    repeated: usize,
    pages: u32,
}

impl Writer {
    fn new(draft: Draft, is_sheet: bool) -> Self {
        let (paragraphs, tables) = (Vec::new(), Vec::new());
        Self { draft, is_sheet, paragraphs, tables, silent: 0, lists: 0, repeated: 0, pages: 0 }
    }

    fn event(&mut self, event: Event<'_>) -> bool {
        match event {
            Event::Start(_) if self.silent > 0 => self.silent += 1,
            Event::End(_) if self.silent > 0 => self.silent -= 1,
            Event::Start(element) => self.start(&element),
            Event::End(name) => self.close(name),
            Event::Text(_) if self.silent > 0 => {}
            Event::Text(text) => self.push(text),
        }
        !self.draft.is_full()
    }

    fn push(&mut self, text: &str) {
        if let Some(paragraph) = self.paragraphs.last_mut() {
            paragraph.text.push_str(text);
        }
    }

    fn start(&mut self, element: &Element<'_>) {
        let number = |name: &str| element.attribute(name).and_then(|digits| digits.parse::<usize>().ok());
        match element.name() {
            "tracked-changes" | "annotation" | "sequence-decls" | "forms" | "note-citation" | "master-styles" => {
                self.silent = 1;
            }
            "p" => self.paragraphs.push(Paragraph::default()),
            "h" => {
                let level = number("outline-level").unwrap_or(1).clamp(1, 6);
                let level = Some(u8::try_from(level).unwrap_or(6));
                self.paragraphs.push(Paragraph { text: String::new(), level });
            }
            "s" => self.push(&" ".repeat(number("c").unwrap_or(1).min(MOST_REPEATED))),
            "tab" => self.push("\t"),
            "line-break" => self.push("\n"),
            "list" => self.lists += 1,
            "note" => self.push(" ["),
            // A slide of a presentation; drawings of texts are pages of none.
            "page" => {
                self.pages += 1;
                self.draft.page(self.pages);
                self.draft.gap();
            }
            "table" if self.is_sheet && self.tables.is_empty() => {
                self.pages += 1;
                self.draft.page(self.pages);
                self.draft.heading(2, &element.attribute("name").unwrap_or_default());
                self.tables.push(Table::default());
            }
            "table" => self.tables.push(Table::default()),
            "table-row" => self.table(Table::begin_row),
            "table-cell" | "covered-table-cell" => {
                self.repeated = number("number-columns-repeated").unwrap_or(1);
                self.table(Table::begin_cell);
            }
            _ => {}
        }
    }

    fn table(&mut self, act: impl FnOnce(&mut Table)) {
        if let Some(table) = self.tables.last_mut() {
            act(table);
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "p" | "h" => {
                if let Some(paragraph) = self.paragraphs.pop() {
                    self.write(&paragraph);
                }
            }
            "note" => self.push("]"),
            "list" => self.lists = self.lists.saturating_sub(1),
            "table-cell" | "covered-table-cell" => {
                let more = std::mem::take(&mut self.repeated).saturating_sub(1).min(MOST_REPEATED);
                self.table(|table| {
                    table.end_cell();
                    table.skip_cells(more);
                });
            }
            "table" => {
                let Some(table) = self.tables.pop() else { return };
                let rows = table.rows();
                match self.tables.last_mut() {
                    Some(outer) => outer.paragraph(&inline(&rows)),
                    None => {
                        self.draft.gap();
                        rows.iter().for_each(|cells| self.draft.row(cells));
                        self.draft.gap();
                    }
                }
            }
            _ => {}
        }
    }

    fn write(&mut self, paragraph: &Paragraph) {
        let text = paragraph.text.trim();
        // A note stands inside the paragraph that it belongs to.
        if let Some(outer) = self.paragraphs.last_mut() {
            outer.text.push_str(text);
        } else if let Some(table) = self.tables.last_mut() {
            table.paragraph(text);
        } else if let Some(level) = paragraph.level {
            self.draft.heading(level, text);
        } else if self.lists > 0 {
            self.draft.item(text);
        } else {
            self.draft.paragraph(text);
        }
    }

    fn end(&mut self) {
        while let Some(paragraph) = self.paragraphs.pop() {
            self.write(&paragraph);
        }
        while !self.tables.is_empty() {
            self.table(Table::end_cell);
            self.close("table");
        }
    }
}
