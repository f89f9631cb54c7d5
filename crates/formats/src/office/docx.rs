//! WordprocessingML (ECMA-376, part 1, 17): paragraphs, headings by their styles, lists, tables, notes, text boxes.
//!
//! What is deleted, hidden (`vanish`) or said twice for older programs (`Fallback`) is left out, and so are field codes.

use std::collections::HashMap;

use super::{Table, description, inline};
use crate::draft::Draft;
use crate::item::{ExtractError, Remark};
use crate::package::Package;
use crate::parsed::{Parsed, Reading};
use crate::xml::{Element, Event, walk};

pub(crate) fn read(bytes: Vec<u8>, reading: &Reading<'_>) -> Result<Parsed, ExtractError> {
    let mut package = Package::open(bytes, "DOCX", reading)?;
    let styles = package.text("word/styles.xml")?.map(|text| heading_styles(&text)).unwrap_or_default();
    let document = package.needed("word/document.xml")?;
    let mut writer = Writer::new(reading.draft(), styles);
    let mut damage = walk(&document, &mut |event| writer.event(event)).err();
    writer.end();
    for name in ["word/footnotes.xml", "word/endnotes.xml"] {
        if let Some(notes) = package.text(name)? {
            writer.draft.gap();
            damage = damage.or(walk(&notes, &mut |event| writer.event(event)).err());
            writer.end();
        }
    }
    let (title, metadata) = description(&mut package, "docProps/core.xml")?;
    let remarks = damage.map(|message| Remark::Incomplete { message }).into_iter().collect();
    Ok(Parsed::Text { draft: writer.draft, title, metadata, remarks })
}

/// The levels of headings, by the identifier of their style.
fn heading_styles(text: &str) -> HashMap<String, u8> {
    let mut styles = HashMap::new();
    let mut current = String::new();
    // Without styles there are no headings, which is all.
    let _ = walk(text, &mut |event| {
        if let Event::Start(element) = event {
            let value = element.attribute("val").unwrap_or_default();
            match element.name() {
                "style" => current = element.attribute("styleId").unwrap_or_default(),
                "name" => {
                    let name = value.to_ascii_lowercase();
                    let level = name.strip_prefix("heading ").and_then(|digits| digits.trim().parse::<u8>().ok());
                    let level = level.or_else(|| (name == "title").then_some(1));
                    styles.extend(level.map(|level| (current.clone(), level)));
                }
                "outlineLvl" => {
                    let level = value.parse::<u8>().ok().filter(|level| *level < 9);
                    styles.extend(level.map(|level| (current.clone(), level + 1)));
                }
                _ => {}
            }
        }
        true
    });
    styles
}

/// A paragraph that is being read. A text box stands inside a paragraph and has its own.
#[derive(Debug, Default)]
struct Paragraph {
    text: String,
    level: Option<u8>,
    item: bool,
}

struct Writer {
    draft: Draft,
    styles: HashMap<String, u8>,
    paragraphs: Vec<Paragraph>,
    tables: Vec<Table>,
    /// Elements that are open inside one that is left out.
    silent: usize,
    in_text: bool,
    run_hidden: bool,
    page: u32,
    page_begins: bool,
}

impl Writer {
    fn new(draft: Draft, styles: HashMap<String, u8>) -> Self {
        Self {
            draft,
            styles,
            paragraphs: Vec::new(),
            tables: Vec::new(),
            silent: 0,
            in_text: false,
            run_hidden: false,
            page: 1,
            page_begins: true,
        }
    }

    fn event(&mut self, event: Event<'_>) -> bool {
        match event {
            Event::Start(_) if self.silent > 0 => self.silent += 1,
            Event::End(_) if self.silent > 0 => self.silent -= 1,
            Event::Start(element) => self.start(&element),
            Event::End(name) => self.close(name),
            Event::Text(text) => {
                if self.in_text && !self.run_hidden {
                    self.push(text);
                }
            }
        }
        !self.draft.is_full()
    }

    fn push(&mut self, text: &str) {
        if let Some(paragraph) = self.paragraphs.last_mut() {
            paragraph.text.push_str(text);
        }
    }

    fn start(&mut self, element: &Element<'_>) {
        let value = || element.attribute("val").unwrap_or_default();
        match element.name() {
            "Fallback" | "instrText" | "delText" | "del" | "moveFrom" | "pPrChange" | "rPrChange" | "separator" => {
                self.silent = 1;
            }
            "p" => self.paragraphs.push(Paragraph::default()),
            "pStyle" => {
                let level = self.styles.get(&value()).copied();
                if let Some(paragraph) = self.paragraphs.last_mut() {
                    paragraph.level = level.or(paragraph.level);
                }
            }
            "numPr" => {
                if let Some(paragraph) = self.paragraphs.last_mut() {
                    paragraph.item = true;
                }
            }
            "r" => self.run_hidden = false,
            "vanish" => self.run_hidden = !matches!(value().as_str(), "0" | "false" | "off"),
            "t" => self.in_text = true,
            "tab" | "ptab" if self.paragraphs.last().is_some_and(|paragraph| !paragraph.text.is_empty()) => {
                self.push("\t");
            }
            "br" if element.attribute("type").as_deref() == Some("page") => self.next_page(),
            "br" | "cr" => self.push("\n"),
            "lastRenderedPageBreak" => self.next_page(),
            "noBreakHyphen" => self.push("-"),
            "footnoteReference" | "endnoteReference" => {
                let number = element.attribute("id").unwrap_or_default();
                self.push(&format!(" [{number}]"));
            }
            "footnote" | "endnote" => {
                let number = element.attribute("id").unwrap_or_default();
                // Separators are notes too, and have no number that a text names.
                if element.attribute("type").is_some() {
                    self.silent = 1;
                } else {
                    self.draft.line(&format!("[{number}]"));
                }
            }
            "tbl" => self.tables.push(Table::default()),
            "tr" => self.table(Table::begin_row),
            "tc" => self.table(Table::begin_cell),
            "gridSpan" => {
                let more = value().parse::<usize>().unwrap_or(1).saturating_sub(1).min(64);
                self.table(|table| table.skip_cells(more));
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
            "t" => self.in_text = false,
            "p" => {
                if let Some(paragraph) = self.paragraphs.pop() {
                    self.write(&paragraph);
                }
            }
            "tc" => self.table(Table::end_cell),
            "tbl" => {
                let Some(table) = self.tables.pop() else { return };
                let rows = table.rows();
                match self.tables.last_mut() {
                    Some(outer) => outer.paragraph(&inline(&rows)),
                    None => {
                        self.begin_page();
                        self.draft.gap();
                        for (number, cells) in rows.iter().enumerate() {
                            if number == 0 && rows.len() > 1 && cells.len() > 1 {
                                self.draft.header_row(cells);
                            } else {
                                self.draft.row(cells);
                            }
                        }
                        self.draft.gap();
                    }
                }
            }
            _ => {}
        }
    }

    fn next_page(&mut self) {
        self.page += 1;
        self.page_begins = true;
    }

    fn begin_page(&mut self) {
        if std::mem::take(&mut self.page_begins) {
            self.draft.page(self.page);
        }
    }

    fn write(&mut self, paragraph: &Paragraph) {
        let text = paragraph.text.trim();
        if text.is_empty() {
            return;
        }
        if let Some(table) = self.tables.last_mut() {
            table.paragraph(text);
            return;
        }
        self.begin_page();
        match paragraph.level {
            Some(level) => self.draft.heading(level, text),
            None if paragraph.item => self.draft.item(text),
            None => self.draft.paragraph(text),
        }
    }

    /// Writes what a damaged file left open.
    fn end(&mut self) {
        while let Some(paragraph) = self.paragraphs.pop() {
            self.write(&paragraph);
        }
        while !self.tables.is_empty() {
            self.table(Table::end_cell);
            self.close("tbl");
        }
        self.silent = 0;
        self.in_text = false;
    }
}
