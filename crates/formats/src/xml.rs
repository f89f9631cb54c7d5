//! XML as events with local names, entities resolved; tolerant of what is not well-formed.
//!
//! Entities that a file declares itself are not expanded: the five of XML and numbers are.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event as Token};

use crate::decode::decode;

/// How deep elements may lie in each other.
const DEEPEST: usize = 4096;

/// What a file holds, one after the other.
pub(crate) enum Event<'e> {
    Start(Element<'e>),
    /// The local name of what ends.
    End(&'e str),
    Text(&'e str),
}

/// The start of an element.
pub(crate) struct Element<'e>(&'e BytesStart<'e>);

impl Element<'_> {
    /// The name without its prefix.
    pub(crate) fn name(&self) -> &str {
        local(self.0.name().into_inner())
    }

    /// Has any attribute this value?
    pub(crate) fn has(&self, value: &str) -> bool {
        self.0.attributes().with_checks(false).flatten().any(|attribute| *attribute.value == *value)
    }

    /// The value of the attribute with this local name.
    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        self.0
            .attributes()
            .with_checks(false)
            .flatten()
            .find(|attribute| local(attribute.key.into_inner()) == name)
            .map(|attribute| unescape(&attribute.value).map_or_else(|_| attribute.value.to_string(), Cow::into_owned))
    }
}

fn local(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

/// The text of an XML file, in the encoding that it declares.
pub(crate) fn decoded(bytes: Vec<u8>) -> String {
    let declared = crate::html::declared_encoding(&bytes);
    decode(bytes, declared.as_deref()).text
}

/// Gives `visit` every event until it says false.
///
/// # Errors
/// What is wrong with the file; everything before it was visited.
pub(crate) fn walk(text: &str, visit: &mut dyn FnMut(Event<'_>) -> bool) -> Result<(), String> {
    let mut reader = Reader::from_str(text);
    let settings = reader.config_mut();
    settings.check_end_names = false;
    settings.allow_unmatched_ends = true;
    settings.allow_dangling_amp = true;
    let mut depth = 0usize;
    loop {
        let token = reader.read_event().map_err(|error| error.to_string())?;
        let goes_on = match token {
            Token::Start(start) => {
                depth += 1;
                if depth > DEEPEST {
                    return Err(format!("elements lie more than {DEEPEST} deep in each other"));
                }
                visit(Event::Start(Element(&start)))
            }
            Token::Empty(start) => {
                visit(Event::Start(Element(&start))) && visit(Event::End(local(start.name().into_inner())))
            }
            Token::End(end) => {
                depth = depth.saturating_sub(1);
                visit(Event::End(local(end.name().into_inner())))
            }
            Token::Text(text) => visit(Event::Text(&text.xml10_content())),
            Token::CData(text) => visit(Event::Text(&text.xml10_content())),
            Token::GeneralRef(reference) => {
                let character = reference.resolve_char_ref().ok().flatten().or_else(|| {
                    Some(match &*reference.xml10_content() {
                        "amp" => '&',
                        "lt" => '<',
                        "gt" => '>',
                        "quot" => '"',
                        "apos" => '\'',
                        "nbsp" => '\u{a0}',
                        _ => return None,
                    })
                });
                character.is_none_or(|character| visit(Event::Text(character.encode_utf8(&mut [0; 4]))))
            }
            Token::Eof => return Ok(()),
            _ => true,
        };
        if !goes_on {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_local_names_and_resolved_entities() {
        let mut seen = String::new();
        let text = "<?xml version='1.0'?><w:p w:id='a&amp;b'>x &lt;&#x41;&own; <b/><![CDATA[<c>]]></w:p>";
        walk(text, &mut |event| {
            match event {
                Event::Start(element) => {
                    seen.push_str(&format!("<{} {:?}>", element.name(), element.attribute("id")));
                }
                Event::End(name) => seen.push_str(&format!("</{name}>")),
                Event::Text(text) => seen.push_str(text),
            }
            true
        })
        .expect("well-formed");
        assert_eq!(seen, "<p Some(\"a&b\")>x <A <b None></b><c></p>");
        assert!(walk(&"<a>".repeat(5000), &mut |_| true).is_err());
    }
}
