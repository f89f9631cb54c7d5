//! The title of a Markdown document.

/// Longest line that can be a title, in bytes. A whole document on one line is none.
const LONGEST: usize = 400;

/// The first heading of the first level (`# Title`, or a line above a line of `=`) outside fenced code.
pub(crate) fn markdown_title(text: &str) -> Option<&str> {
    let mut fence = None;
    let mut above = "";
    for line in text.lines() {
        let content = line.trim();
        let mark = ["```", "~~~"].into_iter().find(|mark| content.starts_with(mark));
        match (fence, mark) {
            (None, Some(_)) => fence = mark,
            (Some(open), Some(close)) if open == close => fence = None,
            (Some(_), _) => {}
            (None, None) => {
                let underlined = content.len() >= 3 && content.bytes().all(|byte| byte == b'=');
                let title = if underlined {
                    above
                } else {
                    let heading = content.strip_prefix('#').filter(|rest| rest.starts_with([' ', '\t']));
                    heading.unwrap_or_default().trim().trim_end_matches('#').trim_end()
                };
                if !title.is_empty() && title.len() <= LONGEST {
                    return Some(title);
                }
            }
        }
        above = if mark.is_none() && fence.is_none() { content } else { "" };
    }
    None
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
    }
}
