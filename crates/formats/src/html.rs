//! HTML: what a reader of the page sees.
//!
//! `html5gum` gives the tokens; what is open, what ends by itself (`<p>`, `<li>`, cells) and what is hidden is kept here.
//! Scripts, styles, navigation, footers, forms and everything that is not shown is left out: text that no reader sees is
//! where instructions to machines hide.

use std::convert::Infallible;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

use crate::decode::Decoded;
use crate::draft::{Draft, fold_into, folded};
use crate::hidden::{Style, hides, hides_inline};
use crate::parsed::Parsed;

/// How deep elements may lie in each other before inner ones are no longer told apart. Browsers stop at 512.
const DEEPEST: usize = 512;
/// Text of a cell beyond this is prose: the page is laid out with a table.
const LONGEST_CELL: usize = 160;

/// A page's text, with its title and language.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) draft: Draft,
    pub(crate) title: Option<String>,
    pub(crate) language: Option<String>,
}

/// Reads a page.
pub(crate) fn read(decoded: &Decoded, most: usize) -> Parsed {
    let mut page = Page { draft: Draft::new(most), title: None, language: None };
    write(&decoded.text, &mut page);
    let mut parsed = Parsed::text(page.draft, page.title);
    if let Parsed::Text { metadata, remarks, .. } = &mut parsed {
        remarks.extend(decoded.lost.some().map(crate::Remark::Lost));
        metadata.extend(decoded.encoding.map(|name| ("encoding".to_owned(), name.into())));
        metadata.extend(page.language.map(|name| ("declared_language".to_owned(), name.into())));
    }
    parsed
}

/// The name of the encoding in the first bytes: `<meta charset=…>`, `<meta … content="…charset=…">`, `<?xml encoding=…?>`.
/// It may stand behind long scripts, so more is looked at than the kilobyte that the standard asks for.
pub(crate) fn declared_encoding(bytes: &[u8]) -> Option<String> {
    let head = &bytes[..bytes.len().min(64 << 10)];
    let lower = head.to_ascii_lowercase();
    let after = |needle: &[u8], from: usize| {
        lower[from..].windows(needle.len()).position(|window| window == needle).map(|at| from + at + needle.len())
    };
    let name = |at: usize| {
        let rest = lower[at..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
        let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
        let end =
            rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && !b"-_:.".contains(byte)).unwrap_or(rest.len());
        (end > 0).then(|| String::from_utf8_lossy(&rest[..end]).into_owned())
    };
    if lower.starts_with(b"<?xml") {
        let end = lower.iter().position(|byte| *byte == b'>').unwrap_or(lower.len());
        if let Some(found) = after(b"encoding", 0).filter(|at| *at < end).and_then(name) {
            return Some(found);
        }
    }
    let mut from = 0;
    while let Some(meta) = after(b"<meta", from) {
        let end = lower[meta..].iter().position(|byte| *byte == b'>').map_or(lower.len(), |at| meta + at);
        if let Some(found) = after(b"charset", meta).filter(|at| *at < end).and_then(name) {
            return Some(found);
        }
        from = meta;
    }
    None
}

/// Writes the text of `markup` behind what `page` holds.
pub(crate) fn write(markup: &str, page: &mut Page) {
    let mut reader = Reader::new(page, hides(markup));
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| -> Option<Infallible> {
        reader.event(&event);
        None
    });
    emitter.naively_switch_states(true);
    if let Some(token) = Tokenizer::new_with_emitter(markup, emitter).next() {
        let Ok(never) = token;
        match never {}
    }
    reader.end();
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Flows with the text around it.
    Inline,
    /// Stands alone.
    Block,
    Heading(u8),
    Item,
    Row,
    Cell,
    Table,
    /// Keeps its line breaks.
    Verbatim,
    Title,
    /// Is not read.
    Silent,
    /// Has no content.
    Void,
}

fn kind(name: &[u8]) -> Kind {
    match name {
        b"h1" => Kind::Heading(1),
        b"h2" => Kind::Heading(2),
        b"h3" => Kind::Heading(3),
        b"h4" => Kind::Heading(4),
        b"h5" | b"h6" => Kind::Heading(5),
        b"li" | b"dt" => Kind::Item,
        b"tr" => Kind::Row,
        b"td" | b"th" => Kind::Cell,
        b"table" => Kind::Table,
        b"pre" | b"listing" | b"xmp" => Kind::Verbatim,
        b"title" => Kind::Title,
        b"script" | b"style" | b"noscript" | b"template" | b"nav" | b"footer" | b"svg" | b"iframe" | b"object"
        | b"canvas" | b"button" | b"select" | b"textarea" | b"dialog" | b"datalist" | b"audio" | b"video"
        | b"noframes" | b"menu" | b"annotation" => Kind::Silent,
        b"area" | b"base" | b"br" | b"col" | b"embed" | b"hr" | b"img" | b"input" | b"link" | b"meta" | b"param"
        | b"source" | b"track" | b"wbr" => Kind::Void,
        b"address" | b"article" | b"aside" | b"blockquote" | b"body" | b"center" | b"dd" | b"details" | b"div"
        | b"dl" | b"fieldset" | b"figcaption" | b"figure" | b"form" | b"header" | b"html" | b"head" | b"main"
        | b"ol" | b"p" | b"section" | b"summary" | b"ul" | b"caption" | b"thead" | b"tbody" | b"tfoot" | b"legend"
        | b"hgroup" | b"search" | b"option" => Kind::Block,
        _ => Kind::Inline,
    }
}

#[derive(Debug)]
struct Open {
    name: Box<[u8]>,
    kind: Kind,
    silent: bool,
}

/// A start tag that is being read.
#[derive(Debug, Default)]
struct Tag {
    name: Vec<u8>,
    attribute: Vec<u8>,
    hidden: bool,
    lang: Option<String>,
}

struct Reader<'p> {
    page: &'p mut Page,
    style: Style,
    open: Vec<Open>,
    /// How many of the open elements are silent.
    silent: usize,
    verbatim: usize,
    tag: Tag,
    /// The block that is being read.
    block: String,
    heading: Option<u8>,
    item: bool,
    /// Cells of the rows that are being read, outermost first.
    rows: Vec<Vec<String>>,
    /// Rows written of each table that is open.
    tables: Vec<usize>,
    title: Option<String>,
}

impl<'p> Reader<'p> {
    fn new(page: &'p mut Page, style: Style) -> Self {
        Self {
            page,
            style,
            open: Vec::new(),
            silent: 0,
            verbatim: 0,
            tag: Tag::default(),
            block: String::new(),
            heading: None,
            item: false,
            rows: Vec::new(),
            tables: Vec::new(),
            title: None,
        }
    }

    fn event(&mut self, event: &CallbackEvent<'_>) {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag = Tag { name: name.to_vec(), ..Tag::default() };
            }
            CallbackEvent::AttributeName { name } => {
                self.tag.attribute.clear();
                self.tag.attribute.extend_from_slice(name);
                let whole_page = matches!(self.tag.name.as_slice(), b"body" | b"html" | b"main");
                self.tag.hidden |= !whole_page && matches!(*name, b"hidden" | b"inert");
            }
            CallbackEvent::AttributeValue { value } => self.attribute(value),
            CallbackEvent::CloseStartTag { self_closing } => self.start(*self_closing),
            CallbackEvent::EndTag { name } => self.close(name),
            CallbackEvent::String { value } if self.silent == 0 => {
                self.text(&String::from_utf8_lossy(value));
            }
            _ => {}
        }
    }

    fn attribute(&mut self, value: &[u8]) {
        let value = String::from_utf8_lossy(value);
        let whole_page = matches!(self.tag.name.as_slice(), b"body" | b"html" | b"main");
        match self.tag.attribute.as_slice() {
            // A page that is hidden until a script has run is shown to readers.
            b"style" if !whole_page => self.tag.hidden |= hides_inline(&value),
            b"class" if !whole_page => self.tag.hidden |= self.style.has_hidden_class(&value),
            b"id" if !whole_page => self.tag.hidden |= self.style.has_hidden_id(&value),
            b"aria-hidden" if !whole_page => self.tag.hidden |= value.trim().eq_ignore_ascii_case("true"),
            b"role" => {
                self.tag.hidden |= matches!(value.trim(), "navigation" | "contentinfo" | "search" | "menu" | "dialog");
            }
            b"lang" if self.tag.name == b"html" => self.tag.lang = Some(value.trim().to_owned()),
            _ => {}
        }
    }

    fn start(&mut self, self_closing: bool) {
        let tag = std::mem::take(&mut self.tag);
        let kind = kind(&tag.name);
        if let Some(lang) = tag.lang.filter(|lang| !lang.is_empty() && lang.len() < 36) {
            self.page.language.get_or_insert(lang);
        }
        self.end_implied(&tag.name, kind);
        if kind == Kind::Void || (self_closing && kind == Kind::Inline) {
            match tag.name.as_slice() {
                _ if self.silent > 0 || tag.hidden => {}
                b"br" => self.line_break(),
                b"hr" => self.flush(),
                b"wbr" => {}
                _ => fold_into(&mut self.block, " "),
            }
            return;
        }
        if self.open.len() >= DEEPEST {
            return;
        }
        let silent = tag.hidden || kind == Kind::Silent;
        if silent {
            // What was open goes on behind it, but not in the same word.
            if self.silent == 0 && self.verbatim == 0 {
                fold_into(&mut self.block, " ");
            }
            self.silent += 1;
        } else if self.silent == 0 {
            self.begin(kind);
        }
        self.open.push(Open { name: tag.name.into(), kind, silent });
    }

    /// What begins with an element that is read.
    fn begin(&mut self, kind: Kind) {
        match kind {
            Kind::Inline | Kind::Void | Kind::Silent => {}
            Kind::Block => self.flush(),
            Kind::Heading(level) => {
                self.flush();
                self.heading = Some(level);
            }
            Kind::Item => {
                self.flush();
                self.item = true;
            }
            Kind::Verbatim => {
                self.flush();
                self.verbatim += 1;
            }
            Kind::Table => {
                self.break_out_of_row();
                self.flush();
                self.page.draft.gap();
                self.tables.push(0);
            }
            Kind::Row => {
                self.flush();
                if self.tables.is_empty() {
                    self.tables.push(0);
                }
                self.rows.push(Vec::new());
            }
            Kind::Cell => self.block.truncate(self.block.trim_end().len()),
            Kind::Title => self.title = Some(String::new()),
        }
    }

    fn close(&mut self, name: &[u8]) {
        let limit = self.open.len().saturating_sub(DEEPEST);
        let Some(at) = self.open.iter().rposition(|open| *open.name == *name).filter(|at| *at >= limit) else {
            if name == b"p" || name == b"br" {
                self.line_break();
            }
            return;
        };
        // A stray end tag ends nothing beyond the cell or the list that it stands in.
        let is_border = |open: &Open| matches!(open.kind, Kind::Cell | Kind::Table) && *open.name != *name;
        if !matches!(name, b"table" | b"tr" | b"tbody" | b"thead" | b"tfoot" | b"body" | b"html" | b"td" | b"th")
            && self.open[at..].iter().any(is_border)
        {
            return;
        }
        self.close_from(at);
    }

    fn close_from(&mut self, at: usize) {
        while self.open.len() > at {
            let Some(open) = self.open.pop() else { return };
            if open.silent {
                self.silent -= 1;
            } else if self.silent == 0 {
                self.finish(open.kind);
            }
        }
    }

    /// What ends with an element that was read.
    fn finish(&mut self, kind: Kind) {
        match kind {
            Kind::Inline | Kind::Void | Kind::Silent => {}
            Kind::Block | Kind::Item => {
                self.flush();
                self.item = false;
            }
            Kind::Heading(_) => {
                self.flush();
                self.heading = None;
            }
            Kind::Verbatim => {
                self.flush();
                self.verbatim = self.verbatim.saturating_sub(1);
            }
            Kind::Cell => {
                let cell = std::mem::take(&mut self.block);
                match self.rows.last_mut() {
                    Some(row) => row.push(cell),
                    None => self.page.draft.paragraph(&cell),
                }
            }
            Kind::Row => self.end_row(),
            Kind::Table => {
                self.flush();
                self.tables.pop();
                self.page.draft.gap();
            }
            Kind::Title => {
                let title = self.title.take().map(|title| folded(&title)).filter(|title| !title.is_empty());
                if let Some(title) = title {
                    self.page.title.get_or_insert(title);
                }
            }
        }
    }

    fn end_row(&mut self) {
        let Some(cells) = self.rows.pop() else { return };
        let first = self.tables.last().is_some_and(|rows| *rows == 0);
        if let Some(rows) = self.tables.last_mut() {
            *rows += 1;
        }
        if cells.iter().all(|cell| cell.len() <= LONGEST_CELL || cells.len() > 2) {
            if first && cells.len() > 1 { self.page.draft.header_row(&cells) } else { self.page.draft.row(&cells) }
        } else {
            for cell in cells {
                self.page.draft.paragraph(&cell);
            }
        }
    }

    /// A table inside a cell: what the outer row holds so far stands above it.
    fn break_out_of_row(&mut self) {
        if self.rows.is_empty() {
            return;
        }
        let block = std::mem::take(&mut self.block);
        if let Some(row) = self.rows.last_mut() {
            row.push(block);
            let cells = std::mem::take(row);
            self.page.draft.row(&cells);
        }
    }

    /// Elements that end where `name` begins.
    fn end_implied(&mut self, name: &[u8], kind: Kind) {
        let (ends, within): (&[&[u8]], &[&[u8]]) = match name {
            b"li" => (&[b"li"], &[b"ul", b"ol", b"menu"]),
            b"dt" | b"dd" => (&[b"dt", b"dd"], &[b"dl"]),
            b"tr" | b"tbody" | b"thead" | b"tfoot" => (&[b"tr", b"caption"], &[b"table"]),
            b"td" | b"th" => (&[b"td", b"th"], &[b"tr", b"table"]),
            b"option" => (&[b"option"], &[b"select", b"datalist"]),
            b"body" => (&[b"head"], &[]),
            _ if matches!(kind, Kind::Block | Kind::Heading(_) | Kind::Table | Kind::Verbatim) => {
                (&[b"p"], &[b"td", b"th", b"button", b"table", b"li"])
            }
            _ => return,
        };
        for at in (0..self.open.len()).rev() {
            let open = &self.open[at];
            if ends.contains(&&*open.name) {
                self.close_from(at);
                return;
            }
            if within.contains(&&*open.name) {
                return;
            }
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(title) = &mut self.title {
            title.push_str(text);
        } else if self.verbatim > 0 {
            self.block.push_str(text);
        } else {
            fold_into(&mut self.block, text);
        }
    }

    fn line_break(&mut self) {
        if self.silent > 0 {
            return;
        }
        if self.rows.is_empty() || self.verbatim > 0 {
            self.block.truncate(self.block.trim_end_matches(' ').len());
            if !self.block.is_empty() {
                self.block.push('\n');
            }
        } else {
            fold_into(&mut self.block, " ");
        }
    }

    /// Writes the block that was read. Inside a row it stays with its cell.
    fn flush(&mut self) {
        if !self.rows.is_empty() && self.verbatim == 0 && self.heading.is_none() && self.block.len() <= 4 * LONGEST_CELL
        {
            fold_into(&mut self.block, " ");
            return;
        }
        let block = std::mem::take(&mut self.block);
        if block.trim().is_empty() {
            return;
        }
        match self.heading {
            Some(level) => self.page.draft.heading(level, &block),
            None if self.item => {
                self.item = false;
                self.page.draft.item(&block);
            }
            None if self.verbatim > 0 => {
                self.page.draft.gap();
                for line in block.lines() {
                    self.page.draft.line(line);
                }
                self.page.draft.gap();
            }
            None => self.page.draft.paragraph(&block),
        }
    }

    fn end(&mut self) {
        self.close_from(0);
        self.rows.clear();
        self.verbatim = 0;
        self.flush();
    }
}
