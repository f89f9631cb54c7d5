use proptest::prelude::*;

use super::*;

/// Writes GGUF files for tests, right ones and wrong ones.
pub(crate) struct Maker {
    pub(crate) version: u32,
    entries: Vec<(String, u32, Vec<u8>)>,
    tensors: Vec<(String, Vec<u64>, u32, u64)>,
    data: usize,
    pub(crate) counts: Option<(u64, u64)>,
}

impl Maker {
    pub(crate) fn new() -> Self {
        Self { version: 3, entries: Vec::new(), tensors: Vec::new(), data: 0, counts: None }
    }

    pub(crate) fn entry(mut self, key: &str, kind: u32, bytes: &[u8]) -> Self {
        self.entries.push((key.to_owned(), kind, bytes.to_vec()));
        self
    }

    pub(crate) fn number(self, key: &str, value: u32) -> Self {
        self.entry(key, 4, &value.to_le_bytes())
    }

    pub(crate) fn text(self, key: &str, value: &str) -> Self {
        self.entry(key, 8, &string(value))
    }

    pub(crate) fn texts(self, key: &str, values: &[&str]) -> Self {
        let elements: Vec<u8> = values.iter().flat_map(|value| string(value)).collect();
        self.entry(key, 9, &array(8, values.len() as u64, &elements))
    }

    pub(crate) fn tensor(mut self, name: &str, dims: &[u64], kind: u32, offset: u64) -> Self {
        self.tensors.push((name.to_owned(), dims.to_vec(), kind, offset));
        self
    }

    pub(crate) fn data(mut self, bytes: usize) -> Self {
        self.data = bytes;
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(self.version.to_le_bytes());
        let (tensors, entries) = self.counts.unwrap_or((self.tensors.len() as u64, self.entries.len() as u64));
        bytes.extend(tensors.to_le_bytes());
        bytes.extend(entries.to_le_bytes());
        for (key, kind, value) in &self.entries {
            bytes.extend(string(key));
            bytes.extend(kind.to_le_bytes());
            bytes.extend(value);
        }
        for (name, dims, kind, offset) in &self.tensors {
            bytes.extend(string(name));
            bytes.extend((dims.len() as u32).to_le_bytes());
            dims.iter().for_each(|size| bytes.extend(size.to_le_bytes()));
            bytes.extend(kind.to_le_bytes());
            bytes.extend(offset.to_le_bytes());
        }
        bytes.resize(bytes.len().next_multiple_of(32) + self.data, 0);
        bytes
    }
}

pub(crate) fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

pub(crate) fn array(kind: u32, count: u64, elements: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &count.to_le_bytes()[..], elements].concat()
}

fn read_with(bytes: &[u8], limits: &Limits) -> Result<GgufHeader, ModelError> {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, bytes).expect("write");
    GgufHeader::read(&path, limits)
}

fn read(bytes: &[u8]) -> Result<GgufHeader, ModelError> {
    read_with(bytes, &Limits::default())
}

fn refused(maker: &Maker) -> String {
    read(&maker.bytes()).expect_err("refused").to_string()
}

fn good() -> Maker {
    Maker::new()
        .text("general.architecture", "llama")
        .number("llama.block_count", 2)
        .entry("f", 6, &0.5f32.to_le_bytes())
        .entry("yes", 7, &[1])
        .entry("minus", 5, &(-1i32).to_le_bytes())
        .texts("tokenizer.ggml.tokens", &["a", "b", "Ġc"])
        .tensor("token_embd.weight", &[32, 3], 8, 0)
        .tensor("norm", &[5], 0, 128)
        .data(160)
}

#[test]
fn a_good_file_is_read() {
    let header = read(&good().bytes()).expect("good");
    assert_eq!((header.version, header.data_start % 32), (3, 0));
    assert_eq!(header.text("general.architecture"), Some("llama"));
    assert_eq!(header.unsigned("llama.block_count"), Some(2));
    assert_eq!((header.unsigned("minus"), header.unsigned("nothing"), header.unsigned("f")), (None, None, None));
    assert_eq!((header.float("f"), header.boolean("yes")), (Some(0.5), Some(true)));
    assert_eq!(header.texts("tokenizer.ggml.tokens"), Some(vec!["a", "b", "Ġc"]));
    let tensor = header.tensor("token_embd.weight").expect("there");
    assert_eq!((tensor.bytes, tensor.ggml_type, tensor.ggml_type.id()), (3 * 34, GgmlType::Q8_0, 8));
    let mut older = good();
    older.version = 2;
    assert_eq!(read(&older.bytes()).expect("good").version, 2);
}

#[test]
fn f13_a_file_cut_at_any_byte_is_refused_with_the_offset() {
    let bytes = good().bytes();
    // The last tensor ends 12 bytes before the file does.
    let needed = bytes.len() - 12;
    assert!(read(&bytes[..needed]).is_ok());
    for length in 0..needed {
        let error = read(&bytes[..length]).expect_err("cut");
        assert!(
            matches!(error, ModelError::Gguf { offset, .. } if offset <= length as u64),
            "cut at {length}: {error}"
        );
    }
}

#[test]
fn f14_hostile_headers_are_refused() {
    let with_counts = |tensors, entries| {
        let mut maker = good();
        maker.counts = Some((tensors, entries));
        maker
    };
    let with_version = |version| {
        let mut maker = good();
        maker.version = version;
        maker
    };
    let nested = (0..8).fold(array(0, 0, &[]), |inner, _| array(9, 1, &inner));
    let cases = [
        (good().number("general.alignment", 0), "`general.alignment` is 0"),
        (good().number("general.alignment", 24), "`general.alignment` is 24"),
        (good().number("general.alignment", 1 << 31), "`general.alignment` is 2147483648"),
        (good().text("general.alignment", "32"), "not a 32-bit"),
        (with_version(1), "version 1"),
        (with_version(4), "version 4"),
        (with_version(3u32.swap_bytes()), "big-endian"),
        (with_counts(u64::MAX, 1), "gguf_entries"),
        (with_counts(1, u64::MAX), "gguf_entries"),
        (with_counts(60_000, 1), "cut short"),
        (good().entry("deep", 9, &nested), "in each other"),
        (good().entry("many", 9, &array(0, u64::MAX, &[])), "gguf_array_elements"),
        (good().entry("many", 9, &array(8, 1 << 21, &[])), "cut short"),
        (good().entry("odd", 9, &array(99, 1, &[0])), "unknown type 99"),
        (good().entry("odd", 77, &[0]), "unknown type 77"),
        (good().entry("odd", 7, &[2]), "truth value is 2"),
        (good().entry("long", 8, &u64::MAX.to_le_bytes()), "gguf_string_bytes"),
        (good().entry("bytes", 8, &[1, 0, 0, 0, 0, 0, 0, 0, 0xFF]), "not UTF-8"),
        (good().number("twice", 1).number("twice", 2), "`twice` is there twice"),
        (good().tensor("norm", &[1], 0, 0), "`norm` is there twice"),
        (good().tensor("big", &[1 << 40, 1 << 40], 0, 0), "larger than any file"),
        (good().tensor("big", &[u64::MAX], 0, 0), "larger than any file"),
        (good().tensor("none", &[0, 4], 0, 0), "empty dimension"),
        (good().tensor("flat", &[], 0, 0), "has 0 dimensions"),
        (good().tensor("deep", &[1, 1, 1, 1, 1], 0, 0), "has 5 dimensions"),
        (good().tensor("odd", &[33], 8, 160), "stores 32 together"),
        (good().tensor("odd", &[1], 4, 160), "unknown type 4"),
        (good().tensor("odd", &[1], 0, 3), "no multiple of 32"),
        (good().tensor("far", &[1], 0, 160), "was cut short"),
        (good().tensor("far", &[1], 0, u64::MAX - 31), "was cut short"),
        (good().tensor("over", &[1], 0, 0), "overlap"),
    ];
    for (maker, expected) in cases {
        let message = refused(&maker);
        assert!(message.contains(expected) && message.contains("model.gguf"), "{expected}: {message}");
    }
    assert!(read(b"GGML\x03\0\0\0").expect_err("refused").to_string().contains("byte 0"));
}

#[test]
fn f14_what_many_small_pieces_take_together_is_bounded_too() {
    let limits = Limits { gguf_array_elements: 10, gguf_string_bytes: 64, ..Limits::default() };
    let full = array(0, 10, &[0; 10]);
    let many = (0..9).fold(Maker::new(), |maker, number| maker.entry(&number.to_string(), 9, &full));
    let error = read_with(&many.bytes(), &limits).expect_err("refused").to_string();
    assert!(error.contains("all arrays"), "{error}");
    let text = "x".repeat(64);
    let many = (0..9).fold(Maker::new(), |maker, number| maker.text(&number.to_string(), &text));
    let error = read_with(&many.bytes(), &limits).expect_err("refused").to_string();
    assert!(error.contains("all text"), "{error}");
}

proptest! {
    #[test]
    fn f14_any_bytes_after_the_magic_give_a_header_or_an_error(tail in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&[b"GGUF\x03\0\0\0", &tail[..]].concat());
    }

    #[test]
    fn f14_changed_bytes_never_yield_a_tensor_outside_the_file(changes in prop::collection::vec((0usize..600, any::<u8>()), 1..4)) {
        let mut bytes = good().bytes();
        let length = bytes.len();
        for (at, value) in changes {
            bytes[at % length] = value;
        }
        if let Ok(header) = read(&bytes) {
            for tensor in &header.tensors {
                prop_assert!(header.data_start + tensor.offset + tensor.bytes <= length as u64);
            }
        }
    }
}
