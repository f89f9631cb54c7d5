//! Tables as text: values with commas, semicolons, tabs or bars between them.

use crate::draft::Draft;

/// Bytes and records that are looked at to find the delimiter.
const SAMPLE: usize = 64 << 10;
const RECORDS: usize = 25;

const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// The byte that parts most records alike; `None` if none parts any.
pub(crate) fn delimiter(text: &str) -> Option<u8> {
    let judged = DELIMITERS.iter().map(|delimiter| {
        let counts = columns(text, *delimiter);
        let usual = most_common(&counts);
        let alike = counts.iter().filter(|count| **count == usual).count();
        // As many records alike as can be, then as many columns.
        (if usual > 1 { alike * 1000 / counts.len().max(1) } else { 0 }, usual, *delimiter)
    });
    judged
        .max_by_key(|(alike, usual, _)| (*alike, *usual))
        .filter(|(alike, ..)| *alike > 0)
        .map(|(.., delimiter)| delimiter)
}

/// Do all the first records, three at least, have the same number of columns?
pub(crate) fn is_table(text: &str, delimiter: u8) -> bool {
    let counts = columns(text, delimiter);
    let ends_sentences = text.lines().take(RECORDS).filter(|line| line.trim_end().ends_with(['.', '!', '?'])).count();
    counts.len() >= 3
        && counts.iter().all(|count| *count == counts[0] && *count > 1)
        && ends_sentences * 3 < counts.len()
}

fn columns(text: &str, delimiter: u8) -> Vec<usize> {
    let sample = &text.as_bytes()[..text.len().min(SAMPLE)];
    let cut = sample.len() < text.len();
    let mut reader = reader(sample, delimiter);
    let mut counts: Vec<usize> =
        reader.byte_records().take(RECORDS + 1).filter_map(Result::ok).map(|record| record.len()).collect();
    // The last one may be cut short.
    if counts.len() > RECORDS || (cut && counts.len() > 1) {
        counts.pop();
    }
    counts
}

fn most_common(counts: &[usize]) -> usize {
    let occurs = |count: &usize| counts.iter().filter(|other| *other == count).count();
    counts.iter().copied().max_by_key(|count| (occurs(count), *count)).unwrap_or(0)
}

fn reader(bytes: &[u8], delimiter: u8) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(bytes)
}

/// Writes the table; its first row names the columns.
pub(crate) fn write(text: &str, delimiter: u8, draft: &mut Draft) {
    let mut reader = reader(text.as_bytes(), delimiter);
    let mut record = csv::StringRecord::new();
    let mut first = true;
    // Records are flexible and the text is UTF-8, so none can fail.
    while let Ok(true) = reader.read_record(&mut record) {
        let cells: Vec<&str> = record.iter().collect();
        if first && cells.len() > 1 {
            draft.header_row(&cells);
        } else {
            draft.row(&cells);
        }
        first = false;
        if draft.is_full() {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m33_tables_are_rows() {
        let text = "name;note\r\nA;\"one; two\nthree\"\r\nB;\r\n";
        assert_eq!(delimiter(text), Some(b';'));
        let mut draft = Draft::new(1000);
        write(text, b';', &mut draft);
        assert_eq!(draft.text(), "| name | note |\n| A | one; two three |\nB");
        assert_eq!(delimiter("no table"), None);
        assert_eq!(delimiter("a,b|c\nd,e\nf,g"), Some(b','));
    }
}
