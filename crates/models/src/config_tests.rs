use super::*;

const BERT: &str = r#"{"model_type":"bert","architectures":["BertModel"],"hidden_size":8,"num_hidden_layers":2,
    "num_attention_heads":2,"intermediate_size":16,"vocab_size":100,"max_position_embeddings":64,"type_vocab_size":2,
    "layer_norm_eps":1e-12,"hidden_act":"gelu"}"#;
const MODULES: &str = r#"[{"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"},
    {"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},
    {"idx":2,"name":"2","path":"2_Normalize","type":"sentence_transformers.models.Normalize"}]"#;
const MEAN: &str = r#"{"pooling_mode_mean_tokens":true,"pooling_mode_cls_token":false}"#;

fn embedder(changes: &[(&str, Option<String>)]) -> tempfile::TempDir {
    let mut files: BTreeMap<&str, Option<String>> = BTreeMap::from([
        ("config.json", Some(BERT.to_owned())),
        ("modules.json", Some(MODULES.to_owned())),
        ("1_Pooling/config.json", Some(MEAN.to_owned())),
        ("sentence_bert_config.json", Some(r#"{"max_seq_length":32,"do_lower_case":false}"#.to_owned())),
    ]);
    files.extend(changes.iter().cloned());
    let folder = tempfile::tempdir().expect("folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("has a parent")).expect("create");
        if let Some(text) = text {
            std::fs::write(path, text).expect("write");
        }
    }
    folder
}

fn read(changes: &[(&str, Option<String>)]) -> Result<EncoderSpec, ModelError> {
    EncoderSpec::read(embedder(changes).path(), ModelRole::Embedder)
}

fn refused(name: &'static str, text: impl Into<String>) -> String {
    read(&[(name, Some(text.into()))]).expect_err("refused").to_string()
}

#[test]
fn m01_pooling_normalisation_length_and_prefixes_come_from_the_models_files() {
    let spec = read(&[]).expect("reads");
    assert_eq!((spec.pooling, spec.normalize, spec.max_tokens), (Some(Pooling::Mean), true, 32));
    assert_eq!((spec.hidden_size, spec.layers, spec.attention_heads, spec.head), (8, 2, 2, Head::None));
    assert_eq!((spec.query_prefix.as_str(), spec.document_prefix.as_str()), ("", ""));

    let prompts = r#"{"prompts":{"query":"query: ","passage":"passage: "}}"#.to_owned();
    let modules = MODULES.replace(r#","type":"sentence_transformers.models.Normalize""#, "");
    assert!(read(&[("modules.json", Some(modules))]).is_err(), "a module without a type is not passed over");
    let two = r#"[{"idx":0,"path":"","type":"a.Transformer"},{"idx":1,"path":"pool","type":"b.Pooling"}]"#.to_owned();
    let spec = read(&[
        ("modules.json", Some(two)),
        ("pool/config.json", Some(r#"{"pooling_mode_cls_token":true}"#.to_owned())),
        ("config_sentence_transformers.json", Some(prompts)),
        ("sentence_bert_config.json", None),
        ("tokenizer_config.json", Some(r#"{"model_max_length":48}"#.to_owned())),
    ])
    .expect("reads");
    assert_eq!((spec.pooling, spec.normalize, spec.max_tokens), (Some(Pooling::Cls), false, 48));
    assert_eq!((spec.query_prefix.as_str(), spec.document_prefix.as_str()), ("query: ", "passage: "));
}

#[test]
fn more_tokens_than_positions_are_never_read() {
    let long = r#"{"max_seq_length":4096}"#.to_owned();
    assert_eq!(read(&[("sentence_bert_config.json", Some(long))]).expect("reads").max_tokens, 64);
    let endless = r#"{"model_max_length":1000000000000000019884624838656}"#.to_owned();
    let changes = [("sentence_bert_config.json", None), ("tokenizer_config.json", Some(endless))];
    assert_eq!(read(&changes).expect("reads").max_tokens, 64);
}

#[test]
fn what_can_t_be_run_is_refused_by_name_with_what_can() {
    let message = refused("config.json", BERT.replace("\"bert\"", "\"mamba\""));
    assert!(message.contains("`mamba`") && message.contains("known: bert"), "{message}");
    assert!(refused("config.json", BERT.replace("\"gelu\"", "\"swish\"")).contains("`swish`"));
    let relative = BERT.replacen('{', "{\"position_embedding_type\":\"relative_key\",", 1);
    assert!(refused("config.json", relative).contains("`relative_key`"));
    assert!(refused("1_Pooling/config.json", r#"{"pooling_mode_lasttoken":true}"#).contains("`lasttoken`"));
    let both = r#"{"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":true}"#;
    assert!(refused("1_Pooling/config.json", both).contains("cls_token + mean_tokens"));
    assert!(refused("1_Pooling/config.json", "{}").contains("no pooling mode"));
    let dense = MODULES.replace("models.Normalize", "models.Dense");
    assert!(refused("modules.json", dense).contains("models.Dense"));
    assert!(refused("modules.json", MODULES.replace("1_Pooling", "../elsewhere")).contains("not inside"));
}

#[test]
fn f18_a_missing_or_nonsensical_value_is_named() {
    let error = read(&[("1_Pooling/config.json", None)]).expect_err("refused").to_string();
    assert!(error.contains("1_Pooling/config.json: is missing"), "{error}");
    assert!(refused("config.json", BERT.replace("\"hidden_size\":8,", "")).contains("does not say `hidden_size`"));
    let many = BERT.replace("layers\":2", "layers\":16000000");
    assert!(refused("config.json", many).contains("`num_hidden_layers` is 16000000"));
    assert!(refused("config.json", BERT.replace("heads\":2", "heads\":0")).contains("`num_attention_heads` is 0"));
    assert!(refused("config.json", BERT.replace("heads\":2", "heads\":3")).contains("not divisible"));
    assert!(refused("config.json", BERT.replace("1e-12", "0")).contains("layer_norm_eps"));
    let huge = BERT.replace("vocab_size\":100", "vocab_size\":18446744073709551615");
    assert!(refused("config.json", huge).contains("`vocab_size` is"));
    assert!(refused("sentence_bert_config.json", r#"{"max_seq_length":1}"#).contains("read 1 tokens"));
}

#[test]
fn m01_a_reranker_has_a_classifier_with_its_labels() {
    let classifier = BERT.replace("BertModel", "BertForSequenceClassification");
    let one = classifier.replacen('{', "{\"id2label\":{\"0\":\"LABEL_0\"},", 1);
    let read = |config: String| {
        let folder = embedder(&[("config.json", Some(config)), ("1_Pooling/config.json", None)]);
        EncoderSpec::read(folder.path(), ModelRole::Reranker)
    };
    let spec = read(one).expect("reads");
    assert_eq!((spec.head, spec.pooling), (Head::Classifier { labels: 1 }, None));
    let tensors = spec.tensors();
    assert!(tensors.contains(&("classifier.weight".to_owned(), vec![1, 8])));
    assert!(tensors.contains(&("encoder.layer.1.intermediate.dense.weight".to_owned(), vec![16, 8])));
    assert_eq!(tensors.len(), 3 + 2 + 2 * 16 + 4);
    assert_eq!(read(classifier).expect("reads").head, Head::Classifier { labels: 2 });
    let message = read(BERT.to_owned()).expect_err("refused").to_string();
    assert!(message.contains("BertModel"), "{message}");
}

#[test]
fn the_files_written_for_an_imported_model_say_what_was_meant() {
    let facts = SentenceFacts {
        pooling: Pooling::Cls,
        normalize: true,
        max_tokens: Some(50),
        query_prefix: "Find: ".to_owned(),
        document_prefix: String::new(),
        lower_case: false,
    };
    let folder = tempfile::tempdir().expect("folder");
    for (name, value) in facts.files(8, 64) {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("has a parent")).expect("create");
        std::fs::write(path, value.to_string()).expect("write");
    }
    assert_eq!(SentenceFacts::read(folder.path()).expect("reads"), facts);
}
