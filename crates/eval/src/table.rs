//! Tables of plain text.

use std::fmt;

/// Rows under headings; the first column is aligned left, the others right.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with headings.
    #[must_use]
    pub fn new<H: ToString>(headings: &[H]) -> Self {
        Self { rows: vec![headings.iter().map(ToString::to_string).collect()] }
    }

    /// Adds a row; missing cells stay empty.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (index, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> = (0..columns)
                .map(|column| {
                    let cell = row.get(column).map_or("", String::as_str);
                    let width = widths[column];
                    if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                })
                .collect();
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{}", cells.join("  ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["set", "nDCG"]);
        table.row(vec!["größer".to_owned(), "0.5".to_owned()]);
        table.row(vec!["x".to_owned()]);
        assert_eq!(table.to_string(), "set     nDCG\ngrößer   0.5\nx");
    }
}
