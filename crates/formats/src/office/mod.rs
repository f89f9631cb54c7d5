//! Office formats: WordprocessingML, PresentationML, workbooks, OpenDocument.

pub(crate) mod docx;
pub(crate) mod opendocument;
pub(crate) mod pptx;
pub(crate) mod workbook;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::draft::folded;
use crate::item::ExtractError;
use crate::package::Package;
use crate::xml::{Event, walk};

/// Title and metadata of the part `name`: Dublin Core, as both families of formats have it.
pub(crate) fn description(
    package: &mut Package<'_>,
    name: &str,
) -> Result<(Option<String>, BTreeMap<String, Value>), ExtractError> {
    let (mut title, mut metadata) = (None, BTreeMap::new());
    let Some(text) = package.text(name)? else { return Ok((title, metadata)) };
    let mut field: Option<&'static str> = None;
    let mut value = String::new();
    // A description that can't be read describes nothing.
    let _ = walk(&text, &mut |event| {
        match event {
            Event::Start(element) => {
                field = match element.name() {
                    "title" => Some("title"),
                    "creator" | "initial-creator" => Some("author"),
                    "subject" => Some("subject"),
                    "created" | "creation-date" => Some("created"),
                    "modified" => Some("modified"),
                    "keywords" | "keyword" => Some("keywords"),
                    _ => None,
                };
                value.clear();
            }
            Event::Text(text) => value.push_str(text),
            Event::End(_) => {
                let value = folded(&std::mem::take(&mut value));
                match field.take() {
                    Some("title") if !value.is_empty() => title = Some(value),
                    Some(name) if name != "title" && !value.is_empty() => {
                        metadata.entry(name.to_owned()).or_insert_with(|| value.into());
                    }
                    _ => {}
                }
            }
        }
        true
    });
    Ok((title, metadata))
}

/// A table that is being read; tables in its cells are part of their cell's text.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    cell: String,
}

impl Table {
    pub(crate) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(crate) fn begin_cell(&mut self) {
        self.cell.clear();
    }

    /// A paragraph of the cell that is being read.
    pub(crate) fn paragraph(&mut self, text: &str) {
        if !text.trim().is_empty() {
            if !self.cell.is_empty() {
                self.cell.push(' ');
            }
            self.cell.push_str(text.trim());
        }
    }

    pub(crate) fn end_cell(&mut self) {
        let cell = std::mem::take(&mut self.cell);
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// A cell that another one spans.
    pub(crate) fn skip_cells(&mut self, count: usize) {
        if let Some(row) = self.rows.last_mut() {
            row.extend(std::iter::repeat_n(String::new(), count));
        }
    }

    /// Its rows, when it ends.
    pub(crate) fn rows(self) -> Vec<Vec<String>> {
        self.rows
    }
}

/// The rows of a table inside a cell, as part of the cell's text.
pub(crate) fn inline(rows: &[Vec<String>]) -> String {
    let row =
        |cells: &Vec<String>| cells.iter().filter(|cell| !cell.is_empty()).cloned().collect::<Vec<_>>().join(", ");
    rows.iter().map(row).filter(|row| !row.is_empty()).collect::<Vec<_>>().join("; ")
}
