//! Lines that stand on page after page: headers, footers, page numbers. The first of each is kept.

use std::collections::{HashMap, HashSet};

use super::columns::{Block, Row};

/// Pages that a line stands on at least before it is one of these.
const FEWEST_PAGES: usize = 3;

/// Drops repeated lines at the top and at the bottom of pages.
pub(crate) fn drop_repeated(pages: &mut [Vec<Block>]) {
    if pages.len() < FEWEST_PAGES {
        return;
    }
    let mut counted: HashMap<String, usize> = HashMap::new();
    for (number, page) in pages.iter().enumerate() {
        let keys: HashSet<String> =
            edges(page).into_iter().flat_map(|(block, row)| keys(&page[block].rows[row], number)).collect();
        for key in keys {
            *counted.entry(key).or_default() += 1;
        }
    }
    let enough = FEWEST_PAGES.max(pages.len() * 2 / 5);
    let mut seen: HashSet<String> = HashSet::new();
    for (number, page) in pages.iter_mut().enumerate() {
        // From the last, so that what is left keeps its place.
        for (block, row) in edges(page).into_iter().rev() {
            let mut again = false;
            for key in keys(&page[block].rows[row], number) {
                if counted.get(&key).is_some_and(|count| *count >= enough) {
                    again |= !seen.insert(key);
                }
            }
            if again {
                page[block].rows.remove(row);
            }
        }
        page.retain(|block| !block.rows.is_empty());
    }
}

/// The uppermost and the lowest rows of a page, two of each, by block and row.
fn edges(page: &[Block]) -> Vec<(usize, usize)> {
    let mut rows: Vec<(f32, usize, usize)> = Vec::new();
    for (index, block) in page.iter().enumerate() {
        for (number, row) in block.rows.iter().enumerate() {
            rows.extend(row.first().map(|first| (first.y, index, number)));
        }
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let last = rows.len().saturating_sub(2).max(2.min(rows.len()));
    let mut edges: Vec<(usize, usize)> =
        rows.iter().take(2).chain(&rows[last..]).map(|(_, block, row)| (*block, *row)).collect();
    edges.sort_unstable();
    edges
}

/// What makes two rows the same: their text as it is, with every number as its distance from the page's, or with only the
/// first as that ("3 of 10"). So numbers of pages are the same on all pages, and numbers of chapters are not.
fn keys(row: &Row, page: usize) -> [String; 3] {
    let text = row.iter().map(|segment| segment.text.as_str()).collect::<Vec<_>>().join(" ");
    let mut every = String::from("every ");
    let mut first = String::from("first ");
    let mut rest = text.as_str();
    let mut numbers = 0;
    while let Some(start) = rest.find(|character: char| character.is_ascii_digit()) {
        let end = rest[start..].find(|character: char| !character.is_ascii_digit()).map_or(rest.len(), |at| start + at);
        let number = &rest[start..end];
        let distance = number.parse::<i64>().map_or_else(|_| number.to_owned(), |it| format!("#{}", it - page as i64));
        every.push_str(&rest[..start]);
        every.push_str(&distance);
        first.push_str(&rest[..start]);
        first.push_str(if numbers == 0 { &distance } else { number });
        numbers += 1;
        rest = &rest[end..];
    }
    every.push_str(rest);
    first.push_str(rest);
    [text, every, first]
}
