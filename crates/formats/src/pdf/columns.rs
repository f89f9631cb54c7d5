//! The reading order of a page: columns one after the other, and within a column its rows from top to bottom.
//!
//! A gutter is a vertical strip that hardly any segment crosses, with prose on both sides. Segments that do cross it (titles,
//! wide figures, footers) part the page into bands, and each band is read column by column. A table has strips too, but what
//! stands beside them is short: it stays together and is read row by row.

use super::segments::Segment;

/// Segments beside each other on one baseline.
pub(crate) type Row = Vec<Segment>;

/// A column of text: rows from top to bottom.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) rows: Vec<Row>,
    pub(crate) x0: f32,
    pub(crate) x1: f32,
}

/// Columns within columns within columns are no columns.
const DEEPEST: usize = 4;
/// Lines that a column has at least on each side of a gutter.
const LEAST_LINES: usize = 4;
/// Characters that the lines of prose have at least, in the middle.
const LEAST_CHARACTERS: usize = 14;

/// The blocks of a page in the order they are read.
pub(crate) fn blocks(segments: Vec<Segment>) -> Vec<Block> {
    let mut blocks = Vec::new();
    part(segments, 0, &mut blocks);
    blocks
}

fn part(segments: Vec<Segment>, depth: usize, blocks: &mut Vec<Block>) {
    if segments.is_empty() {
        return;
    }
    let gutter = if depth < DEEPEST { gutter(&segments) } else { None };
    let Some(gutter) = gutter else {
        blocks.push(block(segments));
        return;
    };
    let from_right = segments.iter().filter(|segment| segment.right_to_left).count() * 2 > segments.len();
    let mut left = Vec::new();
    let mut right = Vec::new();
    let mut across: Vec<Segment> = Vec::new();
    let emit = |left: &mut Vec<Segment>, right: &mut Vec<Segment>, blocks: &mut Vec<Block>| {
        let (first, second) = if from_right { (right, left) } else { (left, right) };
        part(std::mem::take(first), depth + 1, blocks);
        part(std::mem::take(second), depth + 1, blocks);
    };
    for segment in segments {
        if segment.x1 <= gutter || segment.x0 >= gutter {
            if !across.is_empty() {
                blocks.push(block(std::mem::take(&mut across)));
            }
            if segment.x1 <= gutter { left.push(segment) } else { right.push(segment) }
        } else {
            if !left.is_empty() || !right.is_empty() {
                emit(&mut left, &mut right, blocks);
            }
            across.push(segment);
        }
    }
    if !across.is_empty() {
        blocks.push(block(across));
    }
    emit(&mut left, &mut right, blocks);
}

/// Where a strip between two columns of prose lies. `segments` are sorted by baseline.
fn gutter(segments: &[Segment]) -> Option<f32> {
    if segments.len() < 2 * LEAST_LINES {
        return None;
    }
    let x0 = segments.iter().map(|segment| segment.x0).fold(f32::INFINITY, f32::min);
    let x1 = segments.iter().map(|segment| segment.x1).fold(f32::NEG_INFINITY, f32::max);
    let size = median(segments.iter().map(|segment| segment.size));
    let width = x1 - x0;
    // A strip of a hundredth of the width is as fine as matters; 2 points are as fine as can be on any page.
    let step = (width / 400.0).max(0.5);
    let bins = ((width / step) as usize + 1).min(2000);
    let mut covered = vec![0usize; bins + 1];
    for segment in segments {
        let first = (((segment.x0 - x0) / step) as usize).min(bins);
        let last = (((segment.x1 - x0) / step) as usize).min(bins);
        for bin in &mut covered[first..=last] {
            *bin += 1;
        }
    }
    let allowed = segments.len() / 5;
    let mut best: Option<(usize, f32)> = None;
    let mut start = None;
    for (bin, count) in covered.iter().enumerate() {
        if *count <= allowed && bin < bins {
            start.get_or_insert(bin);
            continue;
        }
        let Some(first) = start.take() else { continue };
        for (from, to) in quietest(&covered, first, bin, 1 + segments.len() / 40) {
            let strip = (to - from) as f32 * step;
            let middle = x0 + (from + to) as f32 * 0.5 * step;
            let inside = middle > x0 + 0.12 * width && middle < x1 - 0.12 * width;
            if strip >= 0.6 * size && inside && has_prose_beside(segments, middle) {
                let crossing = covered[from];
                if best.is_none_or(|(least, _)| crossing < least) {
                    best = Some((crossing, middle));
                }
            }
        }
    }
    best.map(|(_, middle)| middle)
}

/// The stretches of `covered[first..end]` that hardly more than the fewest segments cross: a page's number may stand in the
/// middle of a gutter.
fn quietest(covered: &[usize], first: usize, end: usize, few: usize) -> Vec<(usize, usize)> {
    let least = covered[first..end].iter().copied().min().unwrap_or(0) + few;
    let mut stretches = Vec::new();
    let mut start = None;
    for (bin, count) in covered.iter().enumerate().take(end + 1).skip(first) {
        if bin < end && *count <= least {
            start.get_or_insert(bin);
        } else if let Some(from) = start.take() {
            stretches.push((from, bin));
        }
    }
    stretches
}

fn has_prose_beside(segments: &[Segment], gutter: f32) -> bool {
    let left: Vec<&Segment> = segments.iter().filter(|segment| segment.x1 <= gutter).collect();
    let right: Vec<&Segment> = segments.iter().filter(|segment| segment.x0 >= gutter).collect();
    is_prose(&left) && is_prose(&right)
}

fn is_prose(side: &[&Segment]) -> bool {
    if side.len() < LEAST_LINES {
        return false;
    }
    let x0 = side.iter().map(|segment| segment.x0).fold(f32::INFINITY, f32::min);
    let x1 = side.iter().map(|segment| segment.x1).fold(f32::NEG_INFINITY, f32::max);
    let width = median(side.iter().map(|segment| segment.x1 - segment.x0));
    let characters = median(side.iter().map(|segment| weight(segment) as f32));
    width >= 0.5 * (x1 - x0) && characters >= LEAST_CHARACTERS as f32
}

/// Characters, those of scripts without spaces counted twice.
fn weight(segment: &Segment) -> usize {
    let dense = segment.text.chars().filter(|character| ('\u{2e80}'..='\u{d7ff}').contains(character)).count();
    segment.characters + dense
}

fn median(values: impl Iterator<Item = f32>) -> f32 {
    let mut values: Vec<f32> = values.collect();
    if values.is_empty() {
        return 0.0;
    }
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f32::total_cmp).1
}

/// The rows of `segments`, which are sorted by baseline.
fn block(segments: Vec<Segment>) -> Block {
    let x0 = segments.iter().map(|segment| segment.x0).fold(f32::INFINITY, f32::min);
    let x1 = segments.iter().map(|segment| segment.x1).fold(f32::NEG_INFINITY, f32::max);
    let mut rows: Vec<Row> = Vec::new();
    for segment in segments {
        match rows.last_mut() {
            Some(row) if row.first().is_some_and(|first| segment.y - first.y < 0.4 * first.size.min(segment.size)) => {
                row.push(segment);
            }
            _ => rows.push(vec![segment]),
        }
    }
    for row in &mut rows {
        let from_right = row.iter().filter(|segment| segment.right_to_left).count() * 2 > row.len();
        row.sort_by(|a, b| if from_right { b.x1.total_cmp(&a.x1) } else { a.x0.total_cmp(&b.x0) });
    }
    Block { rows, x0, x1 }
}
