//! Every format in a small file made here: its text, its structure, and what is no part of it (M33, F28).

use std::fs;
use std::io::{Cursor, Write};

use anchorite_core::{Document, LandmarkKind, Limits};
use anchorite_formats::{Item, Remark, SkipReason, read};
use zip::write::{SimpleFileOptions, ZipWriter};

fn zipped(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in entries {
        writer.start_file(*name, SimpleFileOptions::default()).expect("begins");
        writer.write_all(text.as_bytes()).expect("writes");
    }
    writer.finish().expect("ends").into_inner()
}

fn items(name: &str, bytes: impl AsRef<[u8]>) -> Vec<Item> {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("writes");
    read(&[path], &Limits::default()).collect()
}

fn one(name: &str, bytes: impl AsRef<[u8]>) -> Document {
    match <[Item; 1]>::try_from(items(name, bytes)) {
        Ok([Item::Document { document, remarks }]) => {
            assert_eq!(remarks, [], "{name}");
            document
        }
        other => panic!("{name}: {other:?}"),
    }
}

/// The headings with their levels, and the pages.
fn outline(document: &Document) -> Vec<String> {
    let show = |mark: &anchorite_core::Landmark| match mark.kind {
        LandmarkKind::Page(number) => {
            format!("page {number} at {:?}", document.text[mark.at..].lines().next().unwrap_or(""))
        }
        LandmarkKind::Heading { level, end } => format!("h{level} {}", &document.text[mark.at..end]),
    };
    document.outline.iter().map(show).collect()
}

#[test]
fn m33_html_gives_its_text_with_structure() {
    let page = one(
        "page.html",
        "<!DOCTYPE html><html lang=en><head><title>The &amp; title</title><style>.x{color:red}</style></head><body>
         <nav><a href=/>Home</a></nav><h1>Head&shy;ing</h1><p>One <b>bold</b>\n word.<p>Two<br>lines
         <ul><li>first<li>second</ul><table><tr><th>Name<th>Age<tr><td>A<td>1<tr><td>B<td></table>
         <pre>fn a() {\n    b();\n}</pre><script>var no = 1;</script><footer>Imprint</footer></body></html>",
    );
    assert_eq!(page.title, "The & title");
    assert_eq!(
        page.text,
        "# Heading\n\nOne bold word.\n\nTwo\nlines\n- first\n- second\n\n| Name | Age |\n| A | 1 |\nB\n\nfn a() {\n    b();\n}"
    );
    assert_eq!(outline(&page), ["h1 # Heading", "h6 | Name | Age |"]);
    assert_eq!(page.metadata["declared_language"], "en");
}

#[test]
fn f28_what_no_reader_sees_is_not_read() {
    let hidden = [
        "<p hidden>H</p>",
        "<div style='display: none'>H <p>H</p></div>",
        "<span style=\"visibility:hidden\">H</span>",
        "<p aria-hidden=true>H</p>",
        "<p class='a gone b'>H</p>",
        "<p id=away>H</p>",
        "<div style='position:absolute; left:-9999px'>H</div>",
        "<p style='font-size:0'>H</p>",
        "<!-- H -->",
        "<template>H</template><noscript>H</noscript><svg><text>H</text></svg>",
        "<textarea>H</textarea><select><option>H</select>",
        "<p style='opacity:0'>H<p style='display:none'>H<div>seen</div>",
    ];
    let style = "<style>.gone { display: none } #away { visibility: hidden }</style>";
    for markup in hidden {
        let page = one(
            "page.html",
            format!("<html><head>{style}</head><body><p>before</p>{markup}<p>after</p></body></html>"),
        );
        assert!(page.text.starts_with("before") && page.text.ends_with("after"), "{markup}: {}", page.text);
        assert!(!page.text.contains('H'), "{markup}: {}", page.text);
    }
    let page = one("page.html", "<html><body style='display:none'><p>shown by a script</p></body></html>");
    assert_eq!(page.text, "shown by a script");
}

#[test]
fn m33_broken_html_is_read_as_far_as_it_goes() {
    for (markup, text) in [
        ("<html><p>a</div></span>b</p><td>c", "ab\n\nc"),
        (
            "<html><table><tr><td>a<table><tr><td>b</td></tr></table></td><td>c</td></tr></table>d",
            "a\n\nb\n\n|  | c |\n\nd",
        ),
        ("<html><body>a <b>b <i>c</b> d</i> e", "a b c d e"),
        ("<html>&lt;&#x41;&nope;&", "<A&nope;&"),
        ("<html><p>cut <a href='", "cut"),
    ] {
        let read = one("page.html", markup).text;
        assert_eq!(
            read.split_whitespace().collect::<Vec<_>>(),
            text.split_whitespace().collect::<Vec<_>>(),
            "{markup}"
        );
    }
    let deep = format!("<html>{}deep{}", "<div>".repeat(100_000), "</div>".repeat(100_000));
    assert_eq!(one("page.html", deep).text, "deep");
}

const WORD: &str = "<?xml version='1.0'?><w:document xmlns:w='w' xmlns:mc='m'><w:body>
  <w:p><w:pPr><w:pStyle w:val='T1'/></w:pPr><w:r><w:t>The </w:t></w:r><w:r><w:t>title</w:t></w:r></w:p>
  <w:p><w:r><w:t xml:space='preserve'>One</w:t><w:tab/><w:t>two</w:t></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t>HIDDEN</w:t></w:r>
    <w:del><w:r><w:delText>DELETED</w:delText></w:r></w:del><w:r><w:footnoteReference w:id='2'/></w:r></w:p>
  <w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>an item</w:t></w:r></w:p>
  <w:tbl><w:tr><w:tc><w:p><w:r><w:t>Name</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>Age</w:t></w:r></w:p></w:tc></w:tr>
    <w:tr><w:tc><w:p><w:r><w:t>A</w:t></w:r></w:p><w:tbl><w:tr><w:tc><w:p><w:r><w:t>inner</w:t></w:r></w:p></w:tc></w:tr></w:tbl></w:tc>
      <w:tc><w:p><w:r><w:t>1</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
  <w:p><w:r><w:br w:type='page'/><w:t>Second page</w:t></w:r>
    <mc:AlternateContent><mc:Choice><w:txbxContent><w:p><w:r><w:t>A box</w:t></w:r></w:p></w:txbxContent></mc:Choice>
      <mc:Fallback><w:p><w:r><w:t>A box</w:t></w:r></w:p></mc:Fallback></mc:AlternateContent></w:p>
</w:body></w:document>";

#[test]
fn m33_word_documents_give_headings_tables_notes_and_pages() {
    let document = one(
        "letter.docx",
        zipped(&[
            ("word/styles.xml", "<s><w:style w:styleId='T1'><w:name w:val='heading 1'/></w:style></s>"),
            ("word/document.xml", WORD),
            ("word/footnotes.xml", "<n><w:footnote w:id='2'><w:p><w:r><w:t>A note</w:t></w:r></w:p></w:footnote></n>"),
            ("docProps/core.xml", "<c><dc:title>Letter</dc:title><dc:creator>Me</dc:creator></c>"),
        ]),
    );
    assert_eq!((document.title.as_str(), &document.metadata["author"]), ("Letter", &"Me".into()));
    assert_eq!(
        document.text,
        "# The title\n\nOne\ttwo [2]\n- an item\n\n| Name | Age |\n| A inner | 1 |\n\nA box\n\nSecond page\n\n[2]\n\nA note"
    );
    let expected = ["page 1 at \"# The title\"", "h1 # The title", "h6 | Name | Age |", "page 2 at \"A box\""];
    assert_eq!(outline(&document), expected);
}

#[test]
fn m33_a_damaged_document_gives_what_is_left() {
    let cut = &WORD[..WORD.find("Age").expect("there") + 3];
    match items("cut.docx", zipped(&[("word/document.xml", cut)])).as_slice() {
        [Item::Document { document, remarks }] => {
            assert!(document.text.contains("One\ttwo"), "{}", document.text);
            assert!(document.text.contains("Name"), "{}", document.text);
            let _ = remarks;
        }
        other => panic!("{other:?}"),
    }
    let whole = zipped(&[("word/document.xml", WORD)]);
    match items("cut.docx", &whole[..whole.len() / 2]).as_slice() {
        [Item::Error(error)] => assert!(error.to_string().contains("not a whole"), "{error}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn m33_slides_come_in_their_order() {
    let slide = |title: &str, text: &str| {
        format!(
            "<p:sld><p:sp><p:nvPr><p:ph type='title'/></p:nvPr><a:p><a:r><a:t>{title}</a:t></a:r></a:p></p:sp>\
             <p:sp><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sp>\
             <p:sp><p:ph type='sldNum'/><a:p><a:r><a:t>7</a:t></a:r></a:p></p:sp></p:sld>"
        )
    };
    let relation = |id: &str, kind: &str, target: &str| {
        format!("<Relationship Id='{id}' Type='http://x/{kind}' Target='{target}'/>")
    };
    let document = one(
        "talk.pptx",
        zipped(&[
            ("ppt/presentation.xml", "<p><p:sldId id='256' r:id='rId2'/><p:sldId id='257' r:id='rId1'/></p>"),
            (
                "ppt/_rels/presentation.xml.rels",
                &format!(
                    "<r>{}{}</r>",
                    relation("rId1", "slide", "slides/slide1.xml"),
                    relation("rId2", "slide", "slides/slide2.xml")
                ),
            ),
            ("ppt/slides/slide1.xml", &slide("Last", "the end")),
            ("ppt/slides/slide2.xml", &slide("First", "the start")),
            (
                "ppt/slides/_rels/slide2.xml.rels",
                &format!("<r>{}</r>", relation("a", "notesSlide", "../notesSlides/n.xml")),
            ),
            ("ppt/notesSlides/n.xml", &slide("", "say this")),
        ]),
    );
    assert_eq!(document.text, "## First\n\nthe start\n\nNotes:\nsay this\n\n## Last\n\nthe end");
    assert_eq!(outline(&document), ["page 1 at \"## First\"", "h2 ## First", "page 2 at \"## Last\"", "h2 ## Last"]);
}

#[test]
fn m33_workbooks_give_rows_of_what_is_shown() {
    let document = one(
        "numbers.xlsx",
        zipped(&[
            (
                "_rels/.rels",
                "<Relationships><Relationship Id='r' Type='http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument' Target='xl/workbook.xml'/></Relationships>",
            ),
            ("xl/workbook.xml", "<workbook><sheets><sheet name='Money' sheetId='1' r:id='rId1'/></sheets></workbook>"),
            (
                "xl/_rels/workbook.xml.rels",
                "<Relationships><Relationship Id='rId1' Type='http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet' Target='worksheets/sheet1.xml'/></Relationships>",
            ),
            (
                "xl/worksheets/sheet1.xml",
                "<worksheet><sheetData><row r='1'><c r='A1' t='inlineStr'><is><t>What</t></is></c><c r='B1' t='inlineStr'><is><t>EUR</t></is></c></row>\
                 <row r='2'><c r='A2' t='inlineStr'><is><t>Rent</t></is></c><c r='B2'><v>1200.5</v></c></row>\
                 <row r='1048576'><c r='XFD1048576'><v>7</v></c></row></sheetData></worksheet>",
            ),
        ]),
    );
    assert_eq!(document.text, "## Money\n\n| What | EUR |\n| Rent | 1200.5 |\n7");
}

#[test]
fn m33_open_documents_are_read() {
    let text = "<office:document-content><office:text><text:h text:outline-level='2'>Part</text:h>\
                <text:p>One<text:s text:c='2'/>two<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>aside</text:p></text:note-body></text:note>.</text:p>\
                <text:list><text:list-item><text:p>item</text:p></text:list-item></text:list></office:text></office:document-content>";
    let media = "application/vnd.oasis.opendocument.text";
    let document = one("a.odt", zipped(&[("mimetype", media), ("content.xml", text)]));
    assert_eq!(document.text, "## Part\n\nOne  two [aside].\n- item");
    let sheet = "<office:spreadsheet><table:table table:name='S'><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell>\
                 <table:table-cell table:number-columns-repeated='16000'/></table:table-row>\
                 <table:table-row><table:table-cell table:number-columns-repeated='2'><text:p>b</text:p></table:table-cell><table:table-cell><text:p>c</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet>";
    let media = "application/vnd.oasis.opendocument.spreadsheet";
    let document = one("a.ods", zipped(&[("mimetype", media), ("content.xml", sheet)]));
    assert_eq!(document.text, "## S\n\na\n| b |  | c |");
    assert_eq!(outline(&document), ["page 1 at \"## S\"", "h2 ## S"]);
}

#[test]
fn m33_books_are_read_chapter_by_chapter() {
    let document = one(
        "book.epub",
        zipped(&[
            ("mimetype", "application/epub+zip"),
            ("META-INF/container.xml", "<c><rootfile full-path='OPS/book.opf'/></c>"),
            (
                "OPS/book.opf",
                "<package><dc:title>Book</dc:title><dc:creator>Her</dc:creator><item id='b' href='two%20b.xhtml' media-type='application/xhtml+xml'/>\
                 <item id='a' href='one.xhtml' media-type='application/xhtml+xml'/><itemref idref='a'/><itemref idref='b'/></package>",
            ),
            ("OPS/two b.xhtml", "<html><body><h2>Two</h2><p>end</p></body></html>"),
            ("OPS/one.xhtml", "<html><body><h2>One</h2><p>begin</p></body></html>"),
        ]),
    );
    assert_eq!((document.title.as_str(), &document.metadata["author"]), ("Book", &"Her".into()));
    assert_eq!(document.text, "## One\n\nbegin\n\n## Two\n\nend");
}

const MESSAGE: &str = "From: =?utf-8?q?J=C3=BCrgen?= <j@example.org>\r\nTo: you@example.org\r\nSubject: The lease\r\n\
    Date: Tue, 5 Mar 2024 10:00:00 +0100\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
    --b\r\nContent-Type: multipart/alternative; boundary=c\r\n\r\n--c\r\nContent-Type: text/plain; charset=iso-8859-1\r\n\
    Content-Transfer-Encoding: quoted-printable\r\n\r\nSch=F6ne Gr=FC=DFe\r\n--c\r\nContent-Type: text/html\r\n\r\n<p>HTML</p>\r\n--c--\r\n\
    --b\r\nContent-Type: text/csv; name=\"../t.csv\"\r\nContent-Disposition: attachment; filename=\"../t.csv\"\r\n\r\na,b\r\n1,2\r\n--b--\r\n";

#[test]
fn m33_messages_give_headers_text_and_attachments() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("mail.eml");
    fs::write(&path, MESSAGE).expect("writes");
    let found: Vec<Document> = read(&[path], &Limits::default())
        .map(|item| match item {
            Item::Document { document, .. } => document,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].title, "The lease");
    assert_eq!(
        found[0].text,
        "From: Jürgen <j@example.org>\nTo: you@example.org\nDate: 2024-03-05T10:00:00+01:00\nSubject: The lease\n\nSchöne Grüße"
    );
    assert_eq!(found[0].metadata["from"], "Jürgen <j@example.org>");
    assert!(found[1].source.ends_with("mail.eml#t.csv"), "{}", found[1].source);
    assert_eq!(found[1].text, "| a | b |\n| 1 | 2 |");

    let mailbox = format!(
        "From a@b Tue Mar  5 10:00:00 2024\n{}\nFrom a@b Tue Mar  5 10:00:00 2024\nFrom: x@y\nSubject: B\n\nText\n",
        MESSAGE.replace("\r\n", "\n")
    );
    let sources: Vec<String> = items("all.mbox", mailbox)
        .into_iter()
        .map(|item| match item {
            Item::Document { document, .. } => document.source.rsplit('/').next().unwrap_or_default().to_owned(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(sources, ["all.mbox#1.eml", "all.mbox#1.eml#t.csv", "all.mbox#2.eml"]);
}

#[test]
fn m33_json_and_code_are_read() {
    assert_eq!(one("a.json", "{\"a\": {\"b\": [1, 2]}}").text, "a.b: 1, 2");
    let records = items("a.json", "[{\"_id\": \"x\", \"text\": \"One\"}, {\"text\": \"Two\"}]");
    let sources: Vec<&str> = records
        .iter()
        .map(|item| match item {
            Item::Document { document, .. } => document.source.rsplit('/').next().unwrap_or_default(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(sources, ["a.json#x", "a.json#2"]);
    let code = one("main.rs", "fn main() {}\n");
    assert_eq!((code.text.as_str(), &code.metadata["code"]), ("fn main() {}\n", &"Rust".into()));
    assert_eq!(one("a.json", "{not json").text, "{not json");
}

/// A PDF of one page with `content`, and objects as they must be; its cross-references are wrong, so it is repaired as well.
fn pdf(content: &str) -> Vec<u8> {
    format!(
        "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n\
         3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj\n\
         4 0 obj<</Length {}>>stream\n{content}\nendstream endobj\n\
         5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>endobj\n\
         trailer<</Root 1 0 R/Size 6>>\nstartxref\n99999\n%%EOF",
        content.len()
    )
    .into_bytes()
}

fn line(x: i32, y: i32, text: &str) -> String {
    format!("BT /F 10 Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET\n")
}

#[test]
fn m33_pdf_text_is_put_in_its_order() {
    let mut content = String::from("BT /F 20 Tf 1 0 0 1 150 750 Tm (The whole title) Tj ET\n");
    // Row by row, as some programs write columns.
    for row in 0..8 {
        let y = 700 - row * 12;
        content += &line(50, y, &format!("left column goes on in line {row} and"));
        content += &line(320, y, &format!("right column goes on in line {row} and"));
    }
    let document = one("columns.pdf", pdf(&content));
    let text = document.text.replace('\n', " ");
    assert!(document.text.starts_with("# The whole title"), "{}", document.text);
    let (left, right) = (text.find("left column goes on in line 7"), text.find("right column goes on in line 0"));
    assert!(left < right && left.is_some(), "{text}");
    assert_eq!(outline(&document)[0], "page 1 at \"# The whole title\"");
}

#[test]
fn m33_pdf_words_parted_at_line_ends_are_whole() {
    let content = [
        line(50, 700, "This line is quite a lot longer than the others and adip-"),
        line(50, 688, "iscing is one word. The well-known"),
        line(50, 660, "Another paragraph."),
    ];
    let document = one("hyphen.pdf", pdf(&content.concat()));
    assert!(document.text.contains("and adipiscing is one word."), "{}", document.text);
    assert!(document.text.ends_with("\n\nAnother paragraph."), "{}", document.text);
}

#[test]
fn m33_pdf_tables_are_rows() {
    let mut content = String::new();
    for (row, cells) in
        [["Country", "Capital", "People"], ["Austria", "Vienna", "9"], ["Finland", "Helsinki", "6"]].iter().enumerate()
    {
        for (column, cell) in cells.iter().enumerate() {
            content += &line(50 + 120 * column as i32, 700 - 15 * row as i32, cell);
        }
    }
    let document = one("table.pdf", pdf(&content));
    assert_eq!(document.text, "| Country | Capital | People |\n| Austria | Vienna | 9 |\n| Finland | Helsinki | 6 |");
}

#[test]
fn m33_turned_pdf_pages_are_read() {
    let content = "BT /F 10 Tf 0 1 -1 0 300 100 Tm (Turned to the left) Tj 0 -14 Td (and on) Tj ET";
    let document = one("turned.pdf", pdf(content));
    assert_eq!(document.text.replace('\n', " "), "Turned to the left and on");
}

#[test]
fn m33_a_pdf_without_text_is_a_scan_or_blank() {
    let image = "q 100 0 0 100 0 0 cm BI /W 1 /H 1 /BPC 8 /CS /G ID x EI Q";
    match items("scan.pdf", pdf(image)).as_slice() {
        [Item::Skipped { reason: SkipReason::NoTextLayer, .. }] => {}
        other => panic!("{other:?}"),
    }
    match items("blank.pdf", pdf("q Q")).as_slice() {
        [Item::Skipped { reason: SkipReason::Blank, .. }] => {}
        other => panic!("{other:?}"),
    }
    match items("none.pdf", "%PDF-1.4 and nothing else").as_slice() {
        [Item::Error(error)] => assert!(error.to_string().contains("not a whole PDF"), "{error}"),
        other => panic!("{other:?}"),
    }
    assert!(Remark::Gibberish.to_string().contains("OCR"));
}
