//! Messages and mailboxes (RFC 5322, RFC 2045 to 2049, RFC 4155).
//!
//! A message is its headers that matter and its text; of a text in two formats the plain one. What is attached is read as
//! documents of its own.

use mail_parser::mailbox::mbox::MessageIterator;
use mail_parser::{Address, Message, MessageParser, MimeHeaders, PartType};
use serde_json::Value;

use crate::extract::Extraction;
use crate::html::{Page, write};
use crate::item::{ExtractError, Item};
use crate::parsed::{Parsed, Reading};

/// Reads one message.
pub(crate) fn read(
    bytes: &[u8],
    name: &str,
    extraction: &Extraction<'_>,
    reading: &Reading<'_>,
    sink: &mut dyn FnMut(Item),
) -> Result<(), ExtractError> {
    let message = MessageParser::default().parse(bytes).ok_or_else(|| reading.damaged("mail", "it has no headers"))?;
    sink(crate::extract::finish(text(&message, reading), "mail", name, reading));
    for (index, part) in message.attachments().enumerate() {
        reading.allowance.entry(reading)?;
        let (usual, content) = match &part.contents() {
            _ if part.is_multipart() => continue,
            content => ("attachment", content.to_vec()),
        };
        let message = matches!(part.body, PartType::Message(_));
        let name = match part.attachment_name() {
            Some(name) if !name.trim().is_empty() => plain_name(name),
            _ if message => format!("message-{}.eml", index + 1),
            _ => format!("{usual}-{}", index + 1),
        };
        extraction.inner(reading.source, &name, content, sink)?;
    }
    Ok(())
}

/// Reads every message of a mailbox.
pub(crate) fn read_mailbox(
    bytes: &[u8],
    extraction: &Extraction<'_>,
    reading: &Reading<'_>,
    sink: &mut dyn FnMut(Item),
) -> Result<(), ExtractError> {
    for (index, message) in MessageIterator::new(bytes).enumerate() {
        reading.allowance.entry(reading)?;
        let message = message.map_err(|_| reading.damaged("mailbox", "a message has no beginning"))?;
        extraction.inner(reading.source, &format!("{}.eml", index + 1), message.unwrap_contents(), sink)?;
    }
    Ok(())
}

/// An attachment's name is what the sender wrote; only its last part is a name.
fn plain_name(name: &str) -> String {
    name.rsplit(['/', '\\']).next().unwrap_or(name).trim().to_owned()
}

fn text(message: &Message<'_>, reading: &Reading<'_>) -> Parsed {
    let subject = message.subject().map(crate::draft::folded).filter(|subject| !subject.is_empty());
    let date = message.date().map(|date| date.to_rfc3339());
    let headers = [
        ("From", message.from().map(addresses)),
        ("To", message.to().map(addresses)),
        ("Cc", message.cc().map(addresses)),
        ("Date", date),
        ("Subject", subject.clone()),
    ];
    let mut page = Page { draft: reading.draft(), title: None, language: None };
    for (name, value) in headers.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
        page.draft.line(&format!("{name}: {value}"));
    }
    page.draft.gap();
    for part in message.text_bodies() {
        match &part.body {
            PartType::Text(text) => page.draft.paragraph(&text.replace("\r\n", "\n")),
            // There is no plain text, or this part has none.
            PartType::Html(markup) => write(markup, &mut page),
            _ => {}
        }
    }
    let mut parsed = Parsed::text(page.draft, subject);
    if let Parsed::Text { metadata, .. } = &mut parsed {
        for (name, value) in headers {
            metadata.extend(value.map(|value| (name.to_lowercase(), Value::from(value))));
        }
    }
    parsed
}

fn addresses(address: &Address<'_>) -> String {
    let one = |name: Option<&str>, place: Option<&str>| match (name, place) {
        (Some(name), Some(place)) => format!("{name} <{place}>"),
        (name, place) => name.or(place).unwrap_or_default().to_owned(),
    };
    let all: Vec<String> =
        address.iter().map(|address| one(address.name(), address.address())).filter(|one| !one.is_empty()).collect();
    all.join(", ")
}
