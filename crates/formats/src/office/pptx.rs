//! PresentationML (ECMA-376, part 1, 19): slides in their order, titles as headings, tables, speaker's notes.

use super::{Table, description, inline};
use crate::draft::Draft;
use crate::item::{ExtractError, Remark};
use crate::package::Package;
use crate::parsed::{Parsed, Reading};
use crate::xml::{Event, walk};

const PRESENTATION: &str = "ppt/presentation.xml";

pub(crate) fn read(bytes: Vec<u8>, reading: &Reading<'_>) -> Result<Parsed, ExtractError> {
    let mut package = Package::open(bytes, "PPTX", reading)?;
    let mut draft = reading.draft();
    let mut damage = None;
    for (index, name) in slides(&mut package)?.iter().enumerate() {
        let Some(slide) = package.text(name)? else { continue };
        draft.page(u32::try_from(index + 1).unwrap_or(u32::MAX));
        draft.gap();
        damage = damage.or(write(&slide, &mut draft).err());
        let notes = package.relations(name)?.into_iter().find(|relation| relation.kind == "notesSlide");
        if let Some(notes) = notes
            && let Some(text) = package.text(&notes.target)?
        {
            let mut spoken = Draft::new(reading.limits.document_bytes);
            damage = damage.or(write(&text, &mut spoken).err());
            if !spoken.is_empty() {
                draft.paragraph("Notes:");
                draft.line(spoken.text());
            }
        }
        if draft.is_full() {
            break;
        }
    }
    let (title, metadata) = description(&mut package, "docProps/core.xml")?;
    let remarks = damage.map(|message| Remark::Incomplete { message }).into_iter().collect();
    Ok(Parsed::Text { draft, title, metadata, remarks })
}

/// The slides' parts, in the order of the presentation.
fn slides(package: &mut Package<'_>) -> Result<Vec<String>, ExtractError> {
    let relations = package.relations(PRESENTATION)?;
    let presentation = package.needed(PRESENTATION)?;
    let mut slides = Vec::new();
    // Where the order can't be read, the slides found so far are all.
    let _ = walk(&presentation, &mut |event| {
        if let Event::Start(element) = event
            && element.name() == "sldId"
        {
            // Two attributes are called `id`; only one of them is a relation's.
            let found = relations.iter().find(|relation| element.has(&relation.id) && relation.kind == "slide");
            slides.extend(found.map(|relation| relation.target.clone()));
        }
        true
    });
    if slides.is_empty() {
        let is_slide = |name: &String| name.starts_with("ppt/slides/slide") && name.ends_with(".xml");
        slides = package.names().into_iter().filter(is_slide).collect();
        slides.sort_by_key(|name| (name.len(), name.clone()));
    }
    Ok(slides)
}

fn write(text: &str, draft: &mut Draft) -> Result<(), String> {
    let (mut paragraph, mut in_text, mut title, mut furniture) = (String::new(), false, false, false);
    let mut tables: Vec<Table> = Vec::new();
    walk(text, &mut |event| {
        match event {
            Event::Start(element) => match element.name() {
                "sp" => (title, furniture) = (false, false),
                "ph" => {
                    let kind = element.attribute("type").unwrap_or_default();
                    title = kind == "title" || kind == "ctrTitle";
                    furniture = matches!(kind.as_str(), "sldNum" | "dt" | "ftr" | "hdr" | "sldImg");
                }
                "t" => in_text = true,
                "br" => paragraph.push('\n'),
                "tbl" => tables.push(Table::default()),
                "tr" => tables.iter_mut().last().into_iter().for_each(Table::begin_row),
                "tc" => tables.iter_mut().last().into_iter().for_each(Table::begin_cell),
                _ => {}
            },
            Event::Text(text) if in_text => paragraph.push_str(text),
            Event::Text(_) => {}
            Event::End("t") => in_text = false,
            Event::End("p") => {
                let text = std::mem::take(&mut paragraph);
                match tables.last_mut() {
                    Some(table) => table.paragraph(&text),
                    None if furniture => {}
                    None if title => draft.heading(2, &text),
                    None => draft.line(&text),
                }
            }
            Event::End("tc") => tables.iter_mut().last().into_iter().for_each(Table::end_cell),
            Event::End("tbl") => {
                let rows = tables.pop().map(Table::rows).unwrap_or_default();
                match tables.last_mut() {
                    Some(outer) => outer.paragraph(&inline(&rows)),
                    None => rows.iter().for_each(|cells| draft.row(cells)),
                }
            }
            Event::End("sp") => draft.gap(),
            Event::End(_) => {}
        }
        !draft.is_full()
    })
}
