use proptest::prelude::*;

use super::*;

fn file_of(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

fn read_bytes(bytes: &[u8], limits: &Limits) -> Result<SafetensorsHeader, ModelError> {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("model.safetensors");
    std::fs::write(&path, bytes).expect("write");
    SafetensorsHeader::read(&path, limits)
}

fn read(header: &str, data: usize) -> Result<SafetensorsHeader, ModelError> {
    read_bytes(&file_of(header, data), &Limits::default())
}

fn refused(header: &str, data: usize) -> String {
    read(header, data).expect_err("refused").to_string()
}

const GOOD: &str = r#"{"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,2],"data_offsets":[2,18]},"a":{"dtype":"BF16","shape":[],"data_offsets":[0,2]}}"#;

#[test]
fn a_good_file_is_read() {
    let header = read(GOOD, 18).expect("good");
    assert_eq!(header.metadata["format"], "pt");
    let begin = 8 + GOOD.len() as u64 + 2;
    let entry = TensorEntry { dtype: Dtype::F32, shape: vec![2, 2], begin, end: begin + 16 };
    assert_eq!(header.tensors["b"], entry);
    assert!(read("{}", 0).expect("empty").tensors.is_empty());
}

#[test]
fn f15_a_header_bomb_is_refused_before_it_is_read() {
    let mut bytes = u64::MAX.to_le_bytes().to_vec();
    bytes.extend_from_slice(b"{}");
    assert!(matches!(read_bytes(&bytes, &Limits::default()), Err(ModelError::Safetensors { .. })));
    let limits = Limits { safetensors_header_bytes: 10, ..Limits::default() };
    let error = read_bytes(&file_of(GOOD, 18), &limits).expect_err("refused");
    assert!(matches!(&error, ModelError::Limit(limit) if limit.limit == "safetensors_header_bytes"), "{error}");
}

#[test]
fn f15_duplicates_gaps_overlaps_and_false_sizes_are_refused_by_name() {
    let entry = |name: &str, shape: &str, begin: u64, end: u64| {
        format!(r#""{name}":{{"dtype":"F32","shape":{shape},"data_offsets":[{begin},{end}]}}"#)
    };
    let two = |first: String, second: String| format!("{{{first},{second}}}");
    let cases = [
        (two(entry("a", "[1]", 0, 4), entry("a", "[1]", 4, 8)), "`a`: it is there twice"),
        (format!("{{{}}}", entry("a", "[1]", 4, 8)), "gap before it, from 0 to 4"),
        (two(entry("a", "[2]", 0, 8), entry("b", "[1]", 4, 8)), "inside the tensor before"),
        (format!("{{{}}}", entry("a", "[3]", 0, 8)), "needs 12 bytes"),
        (format!("{{{}}}", entry("a", "[1]", 8, 4)), "it lies at 8…4"),
        (format!("{{{}}}", entry("a", "[100]", 0, 400)), "it lies at 0…400"),
        (format!("{{{}}}", entry("a", "[1]", 0, 4)), "tensors end at 4"),
        (format!("{{{}}}", entry("a", "[4294967296,4294967296]", 0, 8)), "larger than any file"),
        (format!("{{{}}}", entry("a", "[18446744073709551615]", 0, 8)), "larger than any file"),
        (format!("{{{}}}", entry("a", "[-1]", 0, 8)), "not what it should be"),
        ("{\"a\":{\"dtype\":\"F99\",\"shape\":[2],\"data_offsets\":[0,8]}}".to_owned(), "F99"),
        ("{\"a\":{\"dtype\":\"F4\",\"shape\":[1],\"data_offsets\":[0,8]}}".to_owned(), "whole byte"),
        (
            "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}".to_owned(),
            "duplicate field",
        ),
        ("{\"__metadata__\":{},\"__metadata__\":{}}".to_owned(), "twice"),
        ("[]".to_owned(), "does not begin"),
        ("{} {".to_owned(), "trailing"),
        (String::new(), "does not begin"),
        ("{".repeat(100_000), "not what it should be"),
    ];
    for (header, expected) in cases {
        let message = refused(&header, 8);
        assert!(message.contains(expected) && message.contains("model.safetensors"), "{expected}: {message}");
    }
}

#[test]
fn f15_a_file_cut_anywhere_is_refused() {
    let whole = file_of(GOOD, 18);
    for length in 0..whole.len() {
        assert!(read_bytes(&whole[..length], &Limits::default()).is_err(), "cut at {length}");
    }
}

#[test]
fn f17_shapes_are_held_against_the_config() {
    let spec = EncoderSpec {
        architecture: crate::Architecture::Bert,
        hidden_size: 4,
        layers: 1,
        attention_heads: 2,
        intermediate_size: 8,
        vocab_size: 10,
        max_position_embeddings: 6,
        type_vocab_size: 2,
        layer_norm_eps: 1e-12,
        activation: crate::Activation::Gelu,
        pooling: None,
        normalize: false,
        max_tokens: 6,
        query_prefix: String::new(),
        document_prefix: String::new(),
        lower_case: false,
        head: crate::Head::Classifier { labels: 1 },
    };
    let header_of = |prefix: &str| {
        let tensors = spec.tensors().into_iter().map(|(name, shape)| {
            let name = if is_head_tensor(&name) { name } else { format!("{prefix}{name}") };
            (name, TensorEntry { dtype: Dtype::F32, shape, begin: 0, end: 0 })
        });
        SafetensorsHeader { tensors: tensors.collect(), metadata: BTreeMap::new() }
    };
    let path = Path::new("model.safetensors");
    assert_eq!(header_of("").check_encoder(path, &spec).expect("fits"), "");
    assert_eq!(header_of("bert.").check_encoder(path, &spec).expect("fits"), "bert.");
    let mut short = header_of("bert.");
    short.tensors.get_mut("bert.embeddings.word_embeddings.weight").expect("there").shape = vec![9, 4];
    let message = short.check_encoder(path, &spec).expect_err("too few rows").to_string();
    assert!(
        message.contains("word_embeddings") && message.contains("[9, 4]") && message.contains("[10, 4]"),
        "{message}"
    );
    let mut missing = header_of("bert.");
    missing.tensors.remove("classifier.bias");
    assert!(missing.check_encoder(path, &spec).expect_err("missing").to_string().contains("classifier.bias"));
    let mut integers = header_of("");
    integers.tensors.get_mut("pooler.dense.weight").expect("there").dtype = Dtype::I8;
    assert!(integers.check_encoder(path, &spec).expect_err("integers").to_string().contains("I8"));
}

proptest! {
    #[test]
    fn f15_any_bytes_give_a_header_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_bytes(&bytes, &Limits::default());
    }

    #[test]
    fn f15_one_changed_byte_never_yields_a_tensor_outside_the_file(at in 0usize..190, value: u8) {
        let mut bytes = file_of(GOOD, 18);
        let length = bytes.len();
        bytes[at % length] = value;
        if let Ok(header) = read_bytes(&bytes, &Limits::default()) {
            for tensor in header.tensors.values() {
                prop_assert!(tensor.begin <= tensor.end && tensor.end <= length as u64);
            }
        }
    }

    #[test]
    fn tensors_laid_end_to_end_are_accepted(sizes in prop::collection::vec(0usize..20, 0..12)) {
        let mut members = Vec::new();
        let mut reached = 0;
        for (number, size) in sizes.iter().enumerate() {
            members.push(format!(r#""t{number}":{{"dtype":"F16","shape":[{size}],"data_offsets":[{reached},{}]}}"#, reached + 2 * size));
            reached += 2 * size;
        }
        let header = read(&format!("{{{}}}", members.join(",")), reached);
        prop_assert_eq!(header.expect("laid end to end").tensors.len(), sizes.len());
    }
}
