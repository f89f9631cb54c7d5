//! EPUB (3.3): the chapters of a book, in the order they are read.

use std::collections::HashMap;

use crate::html::{Page, write};
use crate::item::{ExtractError, Remark};
use crate::package::{Package, resolved};
use crate::parsed::{Parsed, Reading};
use crate::xml::{Event, walk};

const CONTAINER: &str = "META-INF/container.xml";

pub(crate) fn read(bytes: Vec<u8>, reading: &Reading<'_>) -> Result<Parsed, ExtractError> {
    let mut package = Package::open(bytes, "EPUB", reading)?;
    let container = package.needed(CONTAINER)?;
    let mut root = None;
    let mut damage = walk(&container, &mut |event| {
        if let Event::Start(element) = event
            && element.name() == "rootfile"
        {
            root = root.take().or(element.attribute("full-path"));
        }
        true
    })
    .err();
    let root = root.ok_or_else(|| reading.damaged("EPUB", format_args!("{CONTAINER} names no book")))?;
    let (title, metadata) = crate::office::description(&mut package, &root)?;
    let book = package.needed(&root)?;
    let mut page = Page { draft: reading.draft(), title: None, language: None };
    let (chapters, problem) = chapters(&book, root.rsplit_once('/').map_or("", |(folder, _)| folder));
    damage = damage.or(problem);
    let mut missing = 0;
    for name in &chapters {
        match package.text(name)? {
            Some(chapter) => {
                page.draft.gap();
                write(&chapter, &mut page);
            }
            None => missing += 1,
        }
        if page.draft.is_full() {
            break;
        }
    }
    if missing > 0 {
        damage.get_or_insert_with(|| format!("{missing} of {} chapters are missing", chapters.len()));
    }
    let remarks = damage.map(|message| Remark::Incomplete { message }).into_iter().collect();
    Ok(Parsed::Text { draft: page.draft, title: title.or(page.title), metadata, remarks })
}

/// The parts that the book's spine names, in order, and what is wrong with the book's description.
fn chapters(book: &str, folder: &str) -> (Vec<String>, Option<String>) {
    let mut items: HashMap<String, String> = HashMap::new();
    let mut chapters = Vec::new();
    let damage = walk(book, &mut |event| {
        let Event::Start(element) = event else { return true };
        match element.name() {
            "item" => {
                let media = element.attribute("media-type").unwrap_or_default();
                if let (Some(id), Some(place)) = (element.attribute("id"), element.attribute("href"))
                    && (media.contains("html") || media.contains("dtbook"))
                {
                    items.insert(id, resolved(folder, &unescaped(&place)));
                }
            }
            "itemref" => chapters.extend(element.attribute("idref").and_then(|id| items.get(&id).cloned())),
            _ => {}
        }
        true
    });
    (chapters, damage.err())
}

/// A relative URL as the name of a part: without its fragment, `%20` as a space.
fn unescaped(url: &str) -> String {
    let bytes = url.split('#').next().unwrap_or_default().as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.filter(|_| bytes[at] == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                plain.push(byte);
                at += 3;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}
