//! Small right files of each kind, from which mutations begin.

use std::io::{Cursor, Write};

use anchorite_store::trial::graph_file;
use serde_json::{Value, json};
use zip::write::{SimpleFileOptions, ZipWriter};

use super::targets::GRAPH_NODES;

/// The seeds of a target.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    match target {
        "gguf" => vec![gguf()],
        "safetensors" => vec![safetensors()],
        "tokenizer" => tokenizers().iter().map(|file| file.to_string().into_bytes()).collect(),
        "onnx" => vec![onnx()],
        "config" => configs().iter().map(|file| file.to_string().into_bytes()).collect(),
        "template" => TEMPLATES.iter().map(|text| text.as_bytes().to_vec()).collect(),
        "jsonl" => vec![LINES.as_bytes().to_vec()],
        "pdf" => {
            vec![pdf(PAGE), pdf("q 0 1 -1 0 9 9 cm BT /F 10 Tf [(Turned) -300 (text)] TJ ET Q")]
        }
        "office" => office(),
        "page" => vec![HTML.as_bytes().to_vec(), utf16(HTML)],
        "book" => vec![book()],
        "mail" => vec![
            MAIL.as_bytes().to_vec(),
            format!("From a@example.org Mon\n{MAIL}\nFrom b@example.org Tue\n{MAIL}").into_bytes(),
        ],
        "table" => {
            vec![b"name;age\n\"A; B\";1\nC;2\n".to_vec(), b"name\tage\nA\t1\nB\t2\n".to_vec(), utf16("a,b\n1,2\n3,4\n")]
        }
        "archive" => vec![zipped(&[("a.txt", "one"), ("b/c.md", "# two"), ("d.html", HTML)]), tar()],
        "graph" => vec![graph_file(GRAPH_NODES).expect("the library builds a graph")],
        other => panic!("no target is called {other}"),
    }
}

fn long(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

fn gguf() -> Vec<u8> {
    let number =
        |key: &str, value: u32| [long(key), 4u32.to_le_bytes().to_vec(), value.to_le_bytes().to_vec()].concat();
    let tokens = ["a", "b", "ab"].map(long).concat();
    let entries = [
        [long("general.architecture"), 8u32.to_le_bytes().to_vec(), long("llama")].concat(),
        number("llama.context_length", 128),
        number("llama.embedding_length", 32),
        number("llama.block_count", 1),
        number("llama.attention.head_count", 4),
        number("general.alignment", 32),
        [
            long("tokenizer.ggml.tokens"),
            9u32.to_le_bytes().to_vec(),
            8u32.to_le_bytes().to_vec(),
            3u64.to_le_bytes().to_vec(),
            tokens,
        ]
        .concat(),
    ];
    let tensor = |name: &str, dims: &[u64], kind: u32, offset: u64| {
        let dims: Vec<u8> = dims.iter().flat_map(|size| size.to_le_bytes()).collect();
        let count = (dims.len() as u32 / 8).to_le_bytes().to_vec();
        [long(name), count, dims, kind.to_le_bytes().to_vec(), offset.to_le_bytes().to_vec()].concat()
    };
    let tensors = [tensor("token_embd.weight", &[32, 3], 0, 0), tensor("blk.0.attn_q.weight", &[32, 4], 8, 384)];
    let counts = [(tensors.len() as u64).to_le_bytes(), (entries.len() as u64).to_le_bytes()].concat();
    let mut file = [b"GGUF".to_vec(), 3u32.to_le_bytes().to_vec(), counts, entries.concat(), tensors.concat()].concat();
    file.resize(file.len().next_multiple_of(32) + 384 + 136, 0);
    file
}

fn safetensors() -> Vec<u8> {
    let header = json!({
        "__metadata__": { "format": "pt" },
        "a": { "dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16] },
        "b": { "dtype": "F16", "shape": [3], "data_offsets": [16, 22] },
    })
    .to_string();
    [long(&header), vec![0; 22]].concat()
}

fn tokenizers() -> Vec<Value> {
    let special = |name: &str, id: u64| json!({ "id": name, "ids": [id], "tokens": [name] });
    vec![
        json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": [{
                "id": 1, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
                "special": true,
            }],
            "normalizer": { "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                "strip_accents": null, "lowercase": true },
            "pre_tokenizer": { "type": "BertPreTokenizer" },
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [{ "SpecialToken": { "id": "[CLS]", "type_id": 0 } }, { "Sequence": { "id": "A", "type_id": 0 } }],
                "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "B", "type_id": 1 } }],
                "special_tokens": { "[CLS]": special("[CLS]", 1) },
            },
            "decoder": { "type": "WordPiece", "prefix": "##", "cleanup": true },
            "model": { "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100, "vocab": { "[UNK]": 0, "[CLS]": 1, "a": 2, "##b": 3 } },
        }),
        json!({
            "version": "1.0",
            "added_tokens": [],
            "normalizer": { "type": "Sequence", "normalizers": [
                { "type": "NFKC" }, { "type": "Replace", "pattern": { "Regex": " {2,}" }, "content": " " }] },
            "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
            "post_processor": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
            "decoder": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
            "model": { "type": "BPE", "dropout": null, "unk_token": "a", "continuing_subword_prefix": "",
                "end_of_word_suffix": "", "fuse_unk": false, "byte_fallback": false,
                "vocab": { "a": 0, "b": 1, "ab": 2 }, "merges": [["a", "b"]] },
        }),
        json!({
            "version": "1.0",
            "added_tokens": [],
            "normalizer": { "type": "Prepend", "prepend": "▁" },
            "pre_tokenizer": { "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true },
            "post_processor": null,
            "decoder": { "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true },
            "model": { "type": "Unigram", "unk_id": 0, "byte_fallback": false,
                "vocab": [["<unk>", 0.0], ["▁", -2.0], ["a", -1.5], ["▁a", -3.0]] },
        }),
    ]
}

/// A field with a length.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut length = bytes.len();
    let mut field = vec![number << 3 | 2];
    while length >= 0x80 {
        field.push((length & 0x7F) as u8 | 0x80);
        length >>= 7;
    }
    field.push(length as u8);
    [field, bytes.to_vec()].concat()
}

/// Nodes and tensors of the kinds that the importer follows.
fn onnx() -> Vec<u8> {
    let tensor = |name: &str, kind: u8, dims: &[u8], data: &[u8]| {
        let dims: Vec<u8> = dims.iter().flat_map(|size| [8, *size]).collect();
        field(5, &[dims, vec![16, kind], field(8, name.as_bytes()), field(9, data)].concat())
    };
    let node = |kind: &str, inputs: &[&str], output: &str| {
        let inputs: Vec<u8> = inputs.iter().flat_map(|name| field(1, name.as_bytes())).collect();
        field(1, &[inputs, field(2, output.as_bytes()), field(4, kind.as_bytes())].concat())
    };
    let graph = [
        node("Gather", &["bert.embeddings.word_embeddings.weight_quantized", "ids"], "g"),
        node("DequantizeLinear", &["g", "scale", "zero"], "d"),
        node("MatMulInteger", &["x", "matrix_quantized", "xz", "zero"], "m"),
        node("Cast", &["m"], "c"),
        node("Mul", &["c", "scale"], "u"),
        node("Add", &["u", "bert.encoder.layer.0.attention.self.query.bias"], "a"),
        node("Sqrt", &["a"], "s"),
        node("Erf", &["s"], "e"),
        tensor("bert.embeddings.word_embeddings.weight_quantized", 2, &[4, 2], &[1, 2, 3, 4, 5, 6, 7, 8]),
        tensor("matrix_quantized", 2, &[2, 2], &[1, 2, 3, 4]),
        tensor("scale", 1, &[1], &0.5f32.to_le_bytes()),
        tensor("zero", 2, &[1], &[2]),
        tensor("bert.encoder.layer.0.attention.self.query.bias", 1, &[2], &[0; 8]),
    ]
    .concat();
    field(7, &graph)
}

fn configs() -> Vec<Value> {
    vec![
        json!({
            "model_type": "bert", "architectures": ["BertForSequenceClassification"], "hidden_size": 8,
            "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 100,
            "max_position_embeddings": 64, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu",
            "id2label": { "0": "LABEL_0" },
        }),
        json!({ "model_type": "bert", "architectures": ["BertModel"], "position_embedding_type": "absolute" }),
    ]
}

const TEMPLATES: &[&str] = &[
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' }}{% endfor %}",
    "{%- set n = namespace(s='x', i=0) %}{%- for i in range(10) %}{% set n.s = n.s ~ n.s %}{% endfor %}{{ n.s | upper }}",
    "{% macro m(a, b=2) %}{{ a * b }}{% endmacro %}{{ m('x', 3) }}{{ messages | tojson(indent=2) }}{{ strftime_now('%Y') }}",
    "{% if messages[0].role == 'system' %}{{ messages[0].content.strip().split('a')[-1] }}{% else %}{{ raise_exception('no') }}{% endif %}",
];

const LINES: &str = "{\"_id\": \"1\", \"title\": \"T\", \"text\": \"One sentence. Another one.\"}\n\n{\"text\": \"é 東京 \\ud83d\\ude42\"}\n{\"text\": 7}\n{\"id\": [1, {\"a\": null}], \"text\": \"x\", \"tags\": [\"a\"]}\nnot json\n";

const HTML: &str = "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>T &amp; t</title><style>.a{display:none}</style>\
    </head><body><nav><a href=/>Home</a></nav><h1>Head&shy;ing</h1><p class=a>hidden<p>One <b>bold</b> word.\
    <ul><li>first<li>second</ul><table><tr><th>Name<th>Age<tr><td>A<td>1</table><pre>a\n  b</pre><script>no</script>";

const MAIL: &str = "From: Ann <ann@example.org>\nTo: b@example.org\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\nMIME-Version: 1.0\n\
    Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/plain; charset=iso-8859-1\n\
    Content-Transfer-Encoding: quoted-printable\n\nGr=FC=DFe aus Kiel\n--x\nContent-Type: text/html\n\
    Content-Disposition: attachment; filename=a.html\nContent-Transfer-Encoding: base64\n\nPHA+aGk8L3A+\n--x--\n";

const PAGE: &str = "BT /F 20 Tf 1 0 0 1 150 750 Tm (The whole title) Tj ET\nBT /F 10 Tf 1 0 0 1 50 700 Tm (One line of a para-) Tj\n\
    0 -12 Td (graph, and another.) Tj ET\nBT /F 10 Tf 1 0 0 1 50 650 Tm <41204220> Tj 200 0 Td (12.5) ' ET";

/// Whose cross-references are wrong, so that it is repaired as well.
fn pdf(content: &str) -> Vec<u8> {
    let length = content.len();
    format!(
        "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n\
         3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj\n\
         4 0 obj<</Length {length}>>stream\n{content}\nendstream endobj\n\
         5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding/ToUnicode 6 0 R>>endobj\n\
         6 0 obj<</Length 61>>stream\n1 begincodespacerange <00> <ff> endcodespacerange endcmap    \nendstream endobj\n\
         trailer<</Root 1 0 R/Size 7>>\nstartxref\n99999\n%%EOF"
    )
    .into_bytes()
}

fn utf16(text: &str) -> Vec<u8> {
    [0xFEFFu16].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

/// Stored without compression, so that a mutation of the file is one of the text.
fn zipped(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in entries {
        let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        writer.start_file(*name, stored).expect("begins");
        writer.write_all(text.as_bytes()).expect("writes");
    }
    writer.finish().expect("ends").into_inner()
}

/// One file, without the library: the checksum of its head is right.
fn tar() -> Vec<u8> {
    let mut head = [0u8; 512];
    head[..5].copy_from_slice(b"a.txt");
    head[100..107].copy_from_slice(b"0000644");
    head[124..135].copy_from_slice(b"00000000005");
    head[136..147].copy_from_slice(b"00000000000");
    head[148..156].copy_from_slice(b"        ");
    head[156] = b'0';
    head[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = head.iter().map(|&byte| u32::from(byte)).sum();
    head[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let mut file = head.to_vec();
    file.extend(b"hello");
    file.resize(512 * 4, 0);
    file
}

/// A letter, slides, a table, and a letter and a table of the other kind.
fn office() -> Vec<Vec<u8>> {
    const RELATION: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/";
    let relation = |id: &str, kind: &str, target: &str| {
        format!("<r><Relationship Id='{id}' Type='{RELATION}{kind}' Target='{target}'/></r>")
    };
    let word = "<w:document><w:body><w:p><w:pPr><w:pStyle w:val='T1'/></w:pPr><w:r><w:t>Title</w:t></w:r></w:p>\
        <w:p><w:r><w:t>One</w:t><w:tab/><w:t>two</w:t></w:r><w:del><w:r><w:delText>no</w:delText></w:r></w:del></w:p>\
        <w:tbl><w:tr><w:tc><w:p><w:r><w:t>A</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>1</w:t></w:r></w:p></w:tc></w:tr>\
        </w:tbl></w:body></w:document>";
    let slide =
        "<p:sld><p:sp><p:nvPr><p:ph type='title'/></p:nvPr><a:p><a:r><a:t>First</a:t></a:r></a:p></p:sp></p:sld>";
    let sheet = "<worksheet><sheetData><row r='1'><c r='A1' t='inlineStr'><is><t>What</t></is></c><c r='B1'><v>7.5</v></c></row>\
        </sheetData></worksheet>";
    let text = "<office:text><text:h text:outline-level='2'>Part</text:h><text:p>One<text:s text:c='2'/>two</text:p></office:text>";
    let cells = "<office:spreadsheet><table:table table:name='S'><table:table-row><table:table-cell><text:p>a</text:p>\
        </table:table-cell><table:table-cell table:number-columns-repeated='9'/></table:table-row></table:table></office:spreadsheet>";
    vec![
        zipped(&[
            ("word/styles.xml", "<s><w:style w:styleId='T1'><w:name w:val='heading 1'/></w:style></s>"),
            ("word/document.xml", word),
            ("docProps/core.xml", "<c><dc:title>Letter</dc:title></c>"),
        ]),
        zipped(&[
            ("ppt/presentation.xml", "<p><p:sldId id='256' r:id='rId1'/></p>"),
            ("ppt/_rels/presentation.xml.rels", &relation("rId1", "slide", "slides/slide1.xml")),
            ("ppt/slides/slide1.xml", slide),
        ]),
        zipped(&[
            ("_rels/.rels", &relation("r", "officeDocument", "xl/workbook.xml")),
            ("xl/workbook.xml", "<workbook><sheets><sheet name='M' sheetId='1' r:id='rId1'/></sheets></workbook>"),
            ("xl/_rels/workbook.xml.rels", &relation("rId1", "worksheet", "worksheets/sheet1.xml")),
            ("xl/worksheets/sheet1.xml", sheet),
        ]),
        zipped(&[("mimetype", "application/vnd.oasis.opendocument.text"), ("content.xml", text)]),
        zipped(&[("mimetype", "application/vnd.oasis.opendocument.spreadsheet"), ("content.xml", cells)]),
    ]
}

fn book() -> Vec<u8> {
    let package = "<package><dc:title>Book</dc:title><item id='a' href='one.xhtml' media-type='application/xhtml+xml'/>\
        <itemref idref='a'/></package>";
    zipped(&[
        ("mimetype", "application/epub+zip"),
        ("META-INF/container.xml", "<c><rootfile full-path='OPS/book.opf'/></c>"),
        ("OPS/book.opf", package),
        ("OPS/one.xhtml", "<html><body><h2>One</h2><p>begin</p></body></html>"),
    ])
}
