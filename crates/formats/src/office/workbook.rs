//! Workbooks: sheets as tables of what their cells show.
//!
//! Cells of the common kind are read one after the other: a single cell in the last row and column of a sheet is a few bytes,
//! and a table as large as the sheet would not fit into memory.

use std::io::Cursor;

use calamine::{Data, DataRef, DataType, ExcelDateTime, Reader, Sheets, Xls, Xlsb, Xlsx};

use crate::draft::Draft;
use crate::item::{ExtractError, Remark};
use crate::parsed::{Parsed, Reading};

/// Cells of a row beyond this column are shown without the blank ones between.
const WIDEST: usize = 256;
/// Cells of a sheet that is read as a whole.
const MOST_CELLS: usize = 20_000_000;

/// The three ways that workbooks are stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// XML in a package.
    Xml,
    /// Records in a package.
    Binary,
    /// Records in the container of older programs.
    Old,
}

pub(crate) fn read(bytes: Vec<u8>, stored: Stored, reading: &Reading<'_>) -> Result<Parsed, ExtractError> {
    let bytes = Cursor::new(bytes);
    let opened = match stored {
        Stored::Xml => Xlsx::new(bytes).map(Sheets::Xlsx).map_err(|error| error.to_string()),
        Stored::Binary => Xlsb::new(bytes).map(Sheets::Xlsb).map_err(|error| error.to_string()),
        Stored::Old => Xls::new(bytes).map(Sheets::Xls).map_err(|error| error.to_string()),
    };
    let mut sheets = opened.map_err(|message| {
        if message.to_lowercase().contains("password") {
            return ExtractError::Encrypted { path: reading.source.to_owned() };
        }
        reading.damaged("workbook", message)
    })?;
    let mut draft = reading.draft();
    let mut damage: Option<String> = None;
    for (index, name) in sheets.sheet_names().into_iter().enumerate() {
        draft.page(u32::try_from(index + 1).unwrap_or(u32::MAX));
        draft.heading(2, &name);
        draft.gap();
        let written = match &mut sheets {
            Sheets::Xlsx(book) => stream(book, &name, &mut draft),
            other => match other.worksheet_range(&name) {
                Ok(range) if range.get_size().0.saturating_mul(range.get_size().1) <= MOST_CELLS => {
                    let rows = range.rows().map(|row| row.iter().map(shown).collect::<Vec<_>>());
                    table(rows, &mut draft);
                    Ok(())
                }
                Ok(_) => Err(format!("sheet {name} is too large")),
                Err(error) => Err(error.to_string()),
            },
        };
        damage = damage.or(written.err());
        if draft.is_full() {
            break;
        }
    }
    let mut parsed = Parsed::text(draft, None);
    if let Parsed::Text { remarks, .. } = &mut parsed {
        remarks.extend(damage.map(|message| Remark::Incomplete { message }));
    }
    Ok(parsed)
}

fn stream(book: &mut Xlsx<Cursor<Vec<u8>>>, name: &str, draft: &mut Draft) -> Result<(), String> {
    let mut cells = book.worksheet_cells_reader(name).map_err(|error| error.to_string())?;
    let mut row: Vec<String> = Vec::new();
    let mut current = None;
    let mut first = true;
    let mut put = |row: &mut Vec<String>, draft: &mut Draft| {
        if first && row.len() > 1 {
            draft.header_row(row);
        } else {
            draft.row(row);
        }
        first &= row.is_empty();
        row.clear();
    };
    while let Some(cell) = cells.next_cell().map_err(|error| error.to_string())? {
        let (line, column) = cell.get_position();
        if current != Some(line) {
            put(&mut row, draft);
            current = Some(line);
            if draft.is_full() {
                return Ok(());
            }
        }
        let text = shown_reference(cell.get_value());
        if text.is_empty() {
            continue;
        }
        let column = column as usize;
        if column < WIDEST && column > row.len() {
            row.resize(column, String::new());
        }
        row.push(text);
    }
    put(&mut row, draft);
    Ok(())
}

fn table(rows: impl Iterator<Item = Vec<String>>, draft: &mut Draft) {
    let mut first = true;
    for row in rows {
        if first && row.len() > 1 {
            draft.header_row(&row);
        } else {
            draft.row(&row);
        }
        first = false;
    }
}

fn shown_reference(value: &DataRef<'_>) -> String {
    match value {
        DataRef::SharedString(text) => (*text).to_owned(),
        other => shown(&Data::from(other.clone())),
    }
}

/// A value as a reader sees it, more or less: the format of numbers is not followed.
fn shown(value: &Data) -> String {
    match value {
        Data::Empty => String::new(),
        Data::String(text) | Data::DateTimeIso(text) | Data::DurationIso(text) => text.clone(),
        Data::Bool(truth) => if *truth { "TRUE" } else { "FALSE" }.to_owned(),
        Data::DateTime(date) => moment(date),
        Data::Error(error) => error.to_string(),
        other => other.as_string().unwrap_or_else(|| other.to_string()),
    }
}

fn moment(date: &ExcelDateTime) -> String {
    let (year, month, day, hour, minute, second, _) = date.to_ymd_hms_milli();
    if date.is_duration() {
        let minutes = (date.as_f64() * 24.0 * 60.0).round() as i64;
        return format!("{}:{:02}", minutes / 60, minutes % 60);
    }
    match (date.as_f64() < 1.0, (hour, minute, second) == (0, 0, 0)) {
        (true, _) => format!("{hour:02}:{minute:02}:{second:02}"),
        (false, true) => format!("{year:04}-{month:02}-{day:02}"),
        (false, false) => format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"),
    }
}
