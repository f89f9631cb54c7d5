//! What a page's styles hide.
//!
//! Not a style engine: rules at the top level whose selector is one class or one id, and `style` attributes. Rules inside
//! `@media` hold for some readers only and are not asked.

use std::collections::HashSet;

/// Classes and ids that are not shown.
#[derive(Debug, Default)]
pub(crate) struct Style {
    classes: HashSet<String>,
    ids: HashSet<String>,
}

/// Most bytes of style sheets that are looked at.
const MOST: usize = 256 << 10;

/// What the style sheets inside `markup` hide.
pub(crate) fn hides(markup: &str) -> Style {
    let mut style = Style::default();
    let mut rest = markup;
    let mut looked = 0;
    while let Some(at) = find_tag(rest, "<style") {
        rest = &rest[at + "<style".len()..];
        let Some(start) = rest.find('>') else { break };
        let end = find_tag(&rest[start..], "</style").map_or(rest.len(), |end| start + end);
        looked += end - start;
        if looked > MOST {
            break;
        }
        style.read(&rest[start + 1..end.max(start + 1)]);
        rest = &rest[end..];
    }
    style
}

fn find_tag(text: &str, tag: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(at) = text.get(from..)?.find('<').map(|at| from + at) {
        if bytes.len() >= at + tag.len() && bytes[at..at + tag.len()].eq_ignore_ascii_case(tag.as_bytes()) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

impl Style {
    fn read(&mut self, sheet: &str) {
        let sheet = without_comments(sheet);
        let mut rest = sheet.as_str();
        while let Some(open) = rest.find('{') {
            let selector = rest[..open].rsplit([';', '}']).next().unwrap_or_default().trim();
            let body = &rest[open + 1..];
            let close = matching(body);
            if !selector.starts_with('@') && hides_inline(&body[..close]) {
                for one in selector.split(',').map(str::trim) {
                    self.hide(one);
                }
            }
            rest = body.get(close + 1..).unwrap_or_default();
        }
    }

    fn hide(&mut self, selector: &str) {
        let simple = |name: &str| {
            !name.is_empty() && name.chars().all(|character| character.is_alphanumeric() || "-_".contains(character))
        };
        if let Some(class) = selector.strip_prefix('.').filter(|name| simple(name)) {
            self.classes.insert(class.to_owned());
        } else if let Some(id) = selector.strip_prefix('#').filter(|name| simple(name)) {
            self.ids.insert(id.to_owned());
        }
    }

    pub(crate) fn has_hidden_class(&self, classes: &str) -> bool {
        !self.classes.is_empty() && classes.split_ascii_whitespace().any(|class| self.classes.contains(class))
    }

    pub(crate) fn has_hidden_id(&self, id: &str) -> bool {
        self.ids.contains(id.trim())
    }
}

/// Do the declarations of a rule or of a `style` attribute hide what they stand for?
pub(crate) fn hides_inline(declarations: &str) -> bool {
    declarations.split(';').any(|declaration| {
        let Some((name, value)) = declaration.split_once(':') else { return false };
        let name = name.trim().to_ascii_lowercase();
        let value = value.trim().to_ascii_lowercase();
        let value = value.trim_end_matches("!important").trim_end();
        match name.as_str() {
            "display" => value == "none",
            "visibility" => value == "hidden" || value == "collapse",
            "opacity" | "font-size" | "max-height" | "max-width" => is_nothing(value),
            "left" | "top" | "right" | "text-indent" | "margin-left" => is_far_off(value),
            "clip" => {
                value.replace(' ', "").starts_with("rect(0,0,0,0") || value.replace(' ', "").starts_with("rect(00")
            }
            _ => false,
        }
    })
}

fn is_nothing(value: &str) -> bool {
    let number = value.trim_end_matches(|character: char| character.is_ascii_alphabetic() || character == '%');
    number.parse::<f32>().is_ok_and(|number| number == 0.0)
}

fn is_far_off(value: &str) -> bool {
    let number = value.trim_end_matches(|character: char| character.is_ascii_alphabetic() || character == '%');
    number.parse::<f32>().is_ok_and(|number| number <= -900.0)
}

/// Where the bracket that is open before `body` closes.
fn matching(body: &str) -> usize {
    let mut depth = 1usize;
    for (at, byte) in body.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    body.len()
}

fn without_comments(sheet: &str) -> String {
    let mut plain = String::with_capacity(sheet.len());
    let mut rest = sheet;
    while let Some(start) = rest.find("/*") {
        plain.push_str(&rest[..start]);
        let Some(end) = rest[start + 2..].find("*/") else { return plain };
        rest = &rest[start + 2 + end + 2..];
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f28_what_styles_hide_is_known() {
        let style = hides(
            "<STYLE type=x>/* .shown {display:none} */ .a, #b { color: red; DISPLAY : none !important }\
             @media print { .c { display: none } } p.d { display:none } .e{display:block}</style>",
        );
        assert!(style.has_hidden_class("x a") && style.has_hidden_id("b"));
        for shown in ["shown", "c", "d", "e", ""] {
            assert!(!style.has_hidden_class(shown), "{shown}");
        }
        for hidden in
            ["display:none", "a:b; Visibility: HIDDEN", "opacity: 0", "font-size:0px", "position:absolute;left:-9999px"]
        {
            assert!(hides_inline(hidden), "{hidden}");
        }
        for shown in ["display:block", "opacity:.5", "left:-1px", "font-size:0.8em", "", ":", "display"] {
            assert!(!hides_inline(shown), "{shown}");
        }
    }

    #[test]
    fn f25_unclosed_style_sheets_are_passed_over_in_linear_time() {
        let style = hides(&"<style>.a{".repeat(20_000));
        assert!(!style.has_hidden_class("b"));
        let style = hides(&"<".repeat(1_000_000));
        assert!(!style.has_hidden_class("a"));
    }
}
