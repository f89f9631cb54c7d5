//! The headings of a Markdown document, and its title among them.

use std::ops::Range;

use anchorite_core::{Landmark, LandmarkKind};

/// Longest line that can be a heading, in bytes. A whole document on one line is none.
const LONGEST: usize = 400;

/// A heading of a Markdown document.
struct Heading {
    level: u8,
    /// The words.
    words: Range<usize>,
    /// The whole line, or both lines where it is underlined.
    lines: Range<usize>,
}

/// The first heading of the first level (`# Title`, or a line above a line of `=`) outside fenced code.
pub(crate) fn markdown_title(text: &str) -> Option<&str> {
    headings(text).find(|heading| heading.level == 1).map(|heading| &text[heading.words])
}

/// All headings, as landmarks.
pub(crate) fn markdown_outline(text: &str) -> Vec<Landmark> {
    headings(text)
        .map(|heading| Landmark {
            at: heading.lines.start,
            kind: LandmarkKind::Heading { level: heading.level, end: heading.lines.end },
        })
        .collect()
}

fn headings(text: &str) -> impl Iterator<Item = Heading> {
    let mut fence = None;
    let mut above = 0..0;
    let mut offset = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = offset;
        offset += line.len();
        let content = line.trim();
        let from = start + (line.len() - line.trim_start().len());
        let range = from..from + content.len();
        let mark = ["```", "~~~"].into_iter().find(|mark| content.starts_with(mark));
        let before = std::mem::replace(&mut above, 0..0);
        match (fence, mark) {
            (None, Some(_)) => fence = mark,
            (Some(open), Some(close)) if open == close => fence = None,
            (Some(_), _) => {}
            (None, None) => {
                above = range.clone();
                return heading(content, range, before);
            }
        }
        None
    })
}

fn heading(content: &str, line: Range<usize>, before: Range<usize>) -> Option<Heading> {
    if content.len() > LONGEST {
        return None;
    }
    let under = |mark: u8| content.len() >= 3 && content.bytes().all(|byte| byte == mark);
    let hashes = content.bytes().take_while(|byte| *byte == b'#').count();
    let rest = &content[hashes..];
    if under(b'=') && !before.is_empty() && before.len() <= LONGEST {
        return Some(Heading { level: 1, lines: before.start..line.end, words: before });
    }
    if !(1..=6).contains(&hashes) || !rest.starts_with([' ', '\t']) {
        return None;
    }
    let words = rest.trim().trim_end_matches('#').trim_end();
    let start = line.start + hashes + (rest.len() - rest.trim_start().len());
    (!words.is_empty()).then(|| Heading {
        level: u8::try_from(hashes).unwrap_or(6),
        words: start..start + words.len(),
        lines: line,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m33_the_title_is_the_first_heading_of_the_first_level() {
        assert_eq!(markdown_title("intro\n\n## Part\r\n# The *title* #\n# Other"), Some("The *title*"));
        assert_eq!(markdown_title("```sh\n# no title\n~~~\n```\n#tag\n\nReal title\n==========\n"), Some("Real title"));
        assert_eq!(markdown_title("~~~\n# never closed\n"), None);
        assert_eq!(markdown_title("=====\n#\n# \ntext"), None);
        assert_eq!(markdown_title(&format!("# {}", "x".repeat(10_000))), None);
        let text = "# One\n\n  ## Two ##\r\n```\n# code\n```\nThree\n=====\n";
        let outline = markdown_outline(text);
        let lines = outline.iter().map(|mark| match mark.kind {
            LandmarkKind::Heading { level, end } => (level, &text[mark.at..end]),
            LandmarkKind::Page(_) => panic!("no pages in Markdown"),
        });
        assert_eq!(lines.collect::<Vec<_>>(), [(1, "# One"), (2, "## Two ##"), (1, "Three\n=====")]);
    }
}
