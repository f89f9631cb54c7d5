//! Small right files of each kind, from which mutations begin.

use serde_json::{Value, json};

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
