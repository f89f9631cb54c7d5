use serde_json::json;

use super::*;

const ROWS: Rows = Rows { tokens: 8, segments: 2 };

fn word_piece() -> Value {
    json!({
        "added_tokens": [{ "id": 1, "content": "[CLS]" }, { "id": 2, "content": "[SEP]" }],
        "normalizer": { "type": "BertNormalizer", "lowercase": true },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                { "SpecialToken": { "id": "[CLS]", "type_id": 0 } },
                { "Sequence": { "id": "A", "type_id": 0 } },
                { "SpecialToken": { "id": "[SEP]", "type_id": 0 } },
            ],
            "pair": [
                { "Sequence": { "id": "A", "type_id": 0 } },
                { "SpecialToken": { "id": "[SEP]", "type_id": 0 } },
                { "Sequence": { "id": "B", "type_id": 1 } },
            ],
            "special_tokens": {
                "[CLS]": { "id": "[CLS]", "ids": [1], "tokens": ["[CLS]"] },
                "[SEP]": { "id": "[SEP]", "ids": [2], "tokens": ["[SEP]"] },
            },
        },
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": { "[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "##b": 4 },
        },
    })
}

fn bpe() -> Value {
    json!({ "model": { "type": "BPE", "vocab": { "a": 0, "b": 1, "ab": 2 }, "merges": [["a", "b"]] } })
}

fn unigram() -> Value {
    json!({ "model": { "type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.5]] } })
}

fn refused(file: &Value) -> String {
    check_bytes(file.to_string().as_bytes(), ROWS).expect_err("refused")
}

/// `file` with another value at the JSON pointer.
fn with(mut file: Value, pointer: &str, value: Value) -> Value {
    *file.pointer_mut(pointer).unwrap_or_else(|| panic!("nothing at {pointer}")) = value;
    file
}

#[test]
fn good_files_of_each_kind_pass() {
    for file in [word_piece(), bpe(), unigram()] {
        assert_eq!(check_bytes(file.to_string().as_bytes(), ROWS), Ok(()), "{file}");
    }
    let spaced = with(bpe(), "/model/merges", json!(["a b"]));
    assert_eq!(check_bytes(spaced.to_string().as_bytes(), ROWS), Ok(()));
}

#[test]
fn f16_hostile_vocabularies_and_merges_are_refused() {
    let cases = [
        (with(word_piece(), "/model/vocab", json!({})), "no tokens"),
        (with(word_piece(), "/model/unk_token", json!("nothing")), "\"nothing\""),
        (with(word_piece(), "/model/max_input_chars_per_word", json!(1_000_000)), "max_input_chars_per_word"),
        (with(word_piece(), "/model/vocab/a", json!(4)), "number 4 twice"),
        (with(word_piece(), "/model/type", json!("Other")), "\"Other\""),
        (with(word_piece(), "/model/type", json!("Unigram")), "another kind"),
        (with(word_piece(), "/added_tokens/0/content", json!("")), "empty"),
        (with(word_piece(), "/added_tokens/0/content", json!("[SEP]")), "there twice"),
        // What the library panics on: a merge longer than any token, and one shorter than the prefix.
        (with(bpe(), "/model/merges", json!([["ab", "ab"]])), "gives no token"),
        (with(bpe(), "/model/merges", json!([["a", "z"]])), "\"z\", which is no token"),
        (with(bpe(), "/model/merges", json!(["ab"])), "one part"),
        (with(unigram(), "/model/unk_id", json!(2)), "`unk_id` 2"),
        (with(unigram(), "/model/vocab/1/0", json!("")), "the token \"\""),
        (with(unigram(), "/model/vocab/1/0", json!("<unk>")), "twice"),
    ];
    for (file, expected) in cases {
        let message = refused(&file);
        assert!(message.contains(expected), "{expected}: {message}");
    }
    let mut prefixed = bpe();
    prefixed["model"]["continuing_subword_prefix"] = json!("##");
    assert!(refused(&prefixed).contains("shorter than the prefix"));
    let mut dropping = bpe();
    dropping["model"]["dropout"] = json!(0.1);
    assert!(refused(&dropping).contains("dropout"));
    let twice = r#"{ "model": { "type": "WordPiece", "vocab": { "[UNK]": 0, "a": 1, "a": 2 } } }"#;
    assert!(check_bytes(twice.as_bytes(), ROWS).expect_err("refused").contains("\"a\" is there twice"));
    let infinite = r#"{ "model": { "type": "Unigram", "vocab": [["a", 1e999]] } }"#;
    assert!(check_bytes(infinite.as_bytes(), ROWS).is_err());
}

#[test]
fn f17_every_number_of_a_token_has_a_row() {
    let template = "/post_processor/special_tokens/[CLS]";
    let cases = [
        with(word_piece(), "/model/vocab/a", json!(8)),
        with(word_piece(), "/added_tokens/0/id", json!(9)),
        with(word_piece(), &format!("{template}/ids"), json!([4_000_000_000u64])),
        with(
            word_piece(),
            "/post_processor",
            json!({ "type": "BertProcessing", "sep": ["[SEP]", 8], "cls": ["[CLS]", 1] }),
        ),
        with(word_piece(), "/post_processor", json!({ "type": "BertProcessing", "sep": ["[SEP]", 2] })),
    ];
    for file in cases {
        let message = refused(&file);
        assert!(message.contains("8 rows of embeddings"), "{message}");
    }
    assert!(refused(&with(word_piece(), "/post_processor/pair/2/Sequence/type_id", json!(2))).contains("segment 2"));
}

#[test]
fn f16_a_template_holds_the_text_once_and_tokens_that_are_there() {
    let single = "/post_processor/single";
    let text = json!({ "Sequence": { "id": "A", "type_id": 0 } });
    let cases = [
        (with(word_piece(), single, json!([text, text])), "2 times"),
        (with(word_piece(), single, json!([])), "0 times"),
        (with(word_piece(), single, json!(vec![text; 20])), "20 pieces"),
        (with(word_piece(), &format!("{single}/0/SpecialToken/id"), json!("[MASK]")), "none of its special tokens"),
        (with(word_piece(), "/post_processor/special_tokens/[CLS]/ids", json!([1, 2])), "2 numbers for 1 tokens"),
        (with(word_piece(), "/post_processor/type", json!("Other")), "\"Other\""),
        (with(word_piece(), "/post_processor", json!([1])), "no object"),
    ];
    for (file, expected) in cases {
        let message = refused(&file);
        assert!(message.contains(expected), "{expected}: {message}");
    }
}

#[test]
fn f16_what_is_done_to_a_text_can_not_blow_it_up() {
    let replace = |content: &str| json!({ "type": "Replace", "pattern": { "String": "a" }, "content": content });
    let replace_by_pattern =
        |pattern: &str| json!({ "type": "Replace", "pattern": { "Regex": pattern }, "content": " " });
    let split = |pattern: &str| json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated" });
    let cases = [
        (with(word_piece(), "/normalizer", replace(&"x".repeat(65))), "65 bytes in the place"),
        (with(word_piece(), "/pre_tokenizer", split(&"a".repeat(3000))), "3000 bytes"),
        (with(word_piece(), "/pre_tokenizer", split(r"(a+)+\1$")), "refers back"),
        (with(word_piece(), "/normalizer", replace_by_pattern(" {0,}")), "where nothing stands"),
        (with(word_piece(), "/normalizer", replace_by_pattern("(?=b)")), "where nothing stands"),
        (with(word_piece(), "/normalizer", replace_by_pattern("(")), "has the pattern"),
        (
            with(
                word_piece(),
                "/normalizer",
                json!({ "type": "Replaec", "pattern": { "Regex": " {0,}" }, "content": " " }),
            ),
            "where nothing stands",
        ),
        (
            with(
                word_piece(),
                "/normalizer",
                json!({ "type": "Replace", "pattern": { "String": "" }, "content": "x" }),
            ),
            "where nothing stands",
        ),
        (
            with(word_piece(), "/normalizer", json!({ "type": "Sequence", "normalizers": vec![replace("b"); 600] })),
            "more than",
        ),
    ];
    for (file, expected) in cases {
        let message = refused(&file);
        assert!(message.contains(expected), "{expected}: {message}");
    }
    assert_eq!(
        check_bytes(with(word_piece(), "/pre_tokenizer", split(r"\p{L}+|\d{1,3}|\s+")).to_string().as_bytes(), ROWS),
        Ok(())
    );
    let deep = format!("{{\"model\": {{}}, \"normalizer\": {}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(check_bytes(deep.as_bytes(), ROWS).expect_err("refused").contains("can't be understood"));
}

#[test]
fn f16_a_file_beyond_the_limit_is_refused_unread() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, word_piece().to_string()).expect("writes");
    assert!(check_tokenizer(&path, ROWS, &Limits::default()).is_ok());
    let error =
        check_tokenizer(&path, ROWS, &Limits { tokenizer_bytes: 100, ..Limits::default() }).expect_err("refused");
    assert!(error.to_string().contains("tokenizer_bytes"), "{error}");
}
