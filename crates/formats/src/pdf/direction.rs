//! From the order in which a line is seen to the order in which it is read.
//!
//! A file says where characters stand, so a line comes from left to right. In scripts that are written from right to left
//! that is backwards, and words and numbers of other scripts within are not. This is the inverse of the reordering of the
//! Unicode Bidirectional Algorithm (UAX 9) for text with one level of nesting, which is what lines of documents have.

use unicode_normalization::char::is_combining_mark;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Right,
    Left,
    Neither,
}

pub(crate) fn is_mark(character: char) -> bool {
    is_combining_mark(character)
}

/// Hebrew, Arabic, Syriac, Thaana, N'Ko and their kin, with the shapes of their letters.
fn is_right_to_left(character: char) -> bool {
    matches!(character, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
        && !is_digit(character)
}

/// Digits go from left to right in every script but N'Ko.
fn is_digit(character: char) -> bool {
    character.is_ascii_digit() || matches!(character, '\u{660}'..='\u{669}' | '\u{6f0}'..='\u{6f9}')
}

fn way(piece: &str) -> Way {
    match piece.chars().next() {
        Some(first) if is_right_to_left(first) => Way::Left,
        Some(first) if first.is_alphanumeric() => Way::Right,
        _ => Way::Neither,
    }
}

/// `pieces` of a line, from left to right as they are seen, to the text as it is read, and whether it is mostly written from
/// right to left.
pub(crate) fn logical(pieces: &[String]) -> (String, bool) {
    let ways: Vec<Way> = pieces.iter().map(|piece| way(piece)).collect();
    // Words are counted, not letters: one long name does not turn a line round.
    let (left, right) = words(pieces, &ways);
    if left == 0 {
        return (pieces.concat(), false);
    }
    let right_to_left = left >= right;
    let base = if right_to_left { Way::Left } else { Way::Right };
    let mut runs = runs(&resolved(&ways, base));
    if right_to_left {
        runs.reverse();
    }
    let mut text = String::new();
    for (way, run) in runs {
        if way == Way::Left {
            for piece in pieces[run].iter().rev() {
                text.push_str(mirrored(piece));
            }
        } else {
            for piece in &pieces[run] {
                text.push_str(piece);
            }
        }
    }
    (text.trim().to_owned(), right_to_left)
}

/// Words that begin with a letter from right to left, and from left to right.
fn words(pieces: &[String], ways: &[Way]) -> (usize, usize) {
    let (mut left, mut right, mut inside) = (0, 0, Way::Neither);
    for (piece, way) in pieces.iter().zip(ways) {
        if *way == Way::Left && inside != Way::Left {
            left += 1;
        } else if *way == Way::Right && inside != Way::Right && piece.starts_with(char::is_alphabetic) {
            right += 1;
        }
        inside = *way;
    }
    (left, right)
}

/// What is neither goes the way of both its neighbours, or of the line.
fn resolved(ways: &[Way], base: Way) -> Vec<Way> {
    let mut resolved = ways.to_vec();
    let mut index = 0;
    while index < ways.len() {
        if ways[index] != Way::Neither {
            index += 1;
            continue;
        }
        let end = (index..ways.len()).find(|at| ways[*at] != Way::Neither).unwrap_or(ways.len());
        let before = index.checked_sub(1).map_or(base, |at| ways[at]);
        let after = ways.get(end).copied().unwrap_or(base);
        let way = if before == after { before } else { base };
        resolved[index..end].fill(way);
        index = end;
    }
    resolved
}

fn runs(ways: &[Way]) -> Vec<(Way, std::ops::Range<usize>)> {
    let mut runs: Vec<(Way, std::ops::Range<usize>)> = Vec::new();
    for (index, way) in ways.iter().enumerate() {
        match runs.last_mut() {
            Some((last, run)) if last == way => run.end = index + 1,
            _ => runs.push((*way, index..index + 1)),
        }
    }
    runs
}

/// Brackets are seen mirrored where text goes from right to left.
fn mirrored(piece: &str) -> &str {
    match piece {
        "(" => ")",
        ")" => "(",
        "[" => "]",
        "]" => "[",
        "{" => "}",
        "}" => "{",
        "«" => "»",
        "»" => "«",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(seen: &str) -> (String, bool) {
        let pieces: Vec<String> = seen.chars().map(String::from).collect();
        logical(&pieces)
    }

    #[test]
    fn f26_lines_from_right_to_left_are_read_in_their_order() {
        assert_eq!(read("plain (text) 12"), ("plain (text) 12".to_owned(), false));
        // Seen from left to right, the last letter comes first.
        assert_eq!(read("םולש"), ("שלום".to_owned(), true));
        assert_eq!(read("ב 12 א"), ("א 12 ב".to_owned(), true));
        assert_eq!(read("ב Rust 1.95 א"), ("א Rust 1.95 ב".to_owned(), true));
        assert_eq!(read("English תא more words"), ("English את more words".to_owned(), false));
        assert_eq!(read("(ב) א"), ("א (ב)".to_owned(), true));
    }
}
