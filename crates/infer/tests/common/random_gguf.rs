//! Tiny generators with random weights, one per architecture and per detail that real files differ in. The same bytes come
//! out every time, on every machine: only then can another engine's logits be kept as numbers.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::io::Cursor;

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};

/// Kinds of token in `tokenizer.ggml.token_type`.
const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
const BYTE: i32 = 6;

/// A model that is made, not trained.
pub(crate) struct RandomModel {
    pub(crate) name: &'static str,
    pub(crate) metadata: Vec<(String, Value)>,
    tensors: Vec<(String, Vec<usize>, Vec<f32>)>,
}

impl RandomModel {
    /// Sets a value of the metadata, in its place if it is there already.
    pub(crate) fn with(mut self, key: &str, value: Value) -> Self {
        match self.metadata.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => self.metadata.push((key.to_owned(), value)),
        }
        self
    }

    /// The file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.bytes_as(GgmlDType::F32, false)
    }

    /// The file with its matrices quantised; or with plain numbers that are what quantising left of them.
    pub(crate) fn bytes_as(&self, kind: GgmlDType, plain: bool) -> Vec<u8> {
        let exact = |tensor: &Tensor| QTensor::quantize(tensor, GgmlDType::F32).expect("no rounding");
        let tensors: Vec<(&str, QTensor)> = self
            .tensors
            .iter()
            .map(|(name, shape, numbers)| {
                let tensor = Tensor::from_slice(numbers, shape.as_slice(), &Device::Cpu).expect("a tensor");
                let made = if shape.len() == 2 && shape[1].is_multiple_of(kind.block_size()) {
                    QTensor::quantize(&tensor, kind).expect("quantises")
                } else {
                    exact(&tensor)
                };
                let made = if plain { exact(&made.dequantize(&Device::Cpu).expect("numbers")) } else { made };
                (name.as_str(), made)
            })
            .collect();
        let tensors: Vec<(&str, &QTensor)> = tensors.iter().map(|(name, tensor)| (*name, tensor)).collect();
        let metadata: Vec<(&str, &Value)> = self.metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
        let mut file = Cursor::new(Vec::new());
        gguf_file::write(&mut file, &metadata, &tensors).expect("writes into memory");
        file.into_inner()
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014): the same numbers everywhere.
struct Random(u64);

impl Random {
    /// A stream of its own for every name, so that a new tensor leaves the others as they are.
    fn named(name: &str) -> Self {
        Self(
            name.bytes()
                .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)),
        )
    }

    /// Between -1 and 1, in steps that a 32-bit float holds exactly.
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (z >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

/// Sizes of a model; what they leave out is in the metadata that the recipe adds.
struct Shape {
    architecture: &'static str,
    layers: usize,
    hidden: usize,
    heads: usize,
    /// One for all layers or one per layer; 0 is a layer that convolves.
    key_value_heads: &'static [usize],
    head_dim: usize,
}

/// Columns of the short convolution.
const CONVOLUTION_LENGTH: usize = 3;
/// Longest context; longer than one pass of the decoder.
const CONTEXT: u32 = 1024;

struct Maker {
    model: RandomModel,
    shape: Shape,
}

impl Maker {
    fn new(name: &'static str, shape: Shape) -> Self {
        let metadata = vec![("general.architecture".to_owned(), Value::String(shape.architecture.to_owned()))];
        let sizes = [
            ("context_length", CONTEXT as usize),
            ("embedding_length", shape.hidden),
            ("block_count", shape.layers),
            ("feed_forward_length", 2 * shape.hidden),
            ("attention.head_count", shape.heads),
            ("attention.key_length", shape.head_dim),
            ("attention.value_length", shape.head_dim),
            ("rope.dimension_count", shape.head_dim),
        ];
        let heads = match shape.key_value_heads {
            [all] => Value::U32(*all as u32),
            each => Value::Array(each.iter().map(|&heads| Value::U32(heads as u32)).collect()),
        };
        let mut maker = Self { model: RandomModel { name, metadata, tensors: Vec::new() }, shape };
        for (key, size) in sizes {
            maker = maker.key(key, Value::U32(size as u32));
        }
        maker.key("attention.head_count_kv", heads).key("attention.layer_norm_rms_epsilon", Value::F32(1e-5))
    }

    fn key(mut self, key: &str, value: Value) -> Self {
        self.model.metadata.push((format!("{}.{key}", self.shape.architecture), value));
        self
    }

    fn words(mut self, words: Vec<(String, Value)>) -> Self {
        self.model.metadata.extend(words);
        self
    }

    fn vocabulary(&self) -> usize {
        let tokens = self.model.metadata.iter().find(|(key, _)| key == "tokenizer.ggml.tokens");
        tokens.and_then(|(_, value)| value.to_vec().ok()).expect("the words come first").len()
    }

    fn add(&mut self, name: &str, shape: &[usize], spread: f32, middle: f32) {
        let mut random = Random::named(&format!("{}/{name}", self.model.name));
        let numbers = (0..shape.iter().product()).map(|_| middle + spread * random.next()).collect();
        self.model.tensors.push((name.to_owned(), shape.to_vec(), numbers));
    }

    /// A product that keeps the variance of what it multiplies, times `gain` squared.
    fn matrix(&mut self, name: &str, rows: usize, columns: usize, gain: f32) {
        self.add(name, &[rows, columns], gain * (3.0 / columns as f32).sqrt(), 0.0);
    }

    fn norm(&mut self, name: &str, size: usize) {
        self.add(name, &[size], 0.2, 1.0);
    }

    /// Everything but what only some architectures have.
    fn tensors(mut self) -> Self {
        let (hidden, wide) = (self.shape.hidden, 2 * self.shape.hidden);
        self.matrix("token_embd.weight", self.vocabulary(), hidden, 1.0);
        self.norm(
            if self.shape.architecture == "lfm2" { "token_embd_norm.weight" } else { "output_norm.weight" },
            hidden,
        );
        for layer in 0..self.shape.layers {
            let name = |part: &str| format!("blk.{layer}.{part}.weight");
            self.norm(&name("attn_norm"), hidden);
            let groups = *self.shape.key_value_heads.get(layer).unwrap_or(&self.shape.key_value_heads[0]);
            if groups > 0 {
                let (queries, keys) = (self.shape.heads * self.shape.head_dim, groups * self.shape.head_dim);
                // Attention that prefers some positions clearly shows an error of position or mask.
                self.matrix(&name("attn_q"), queries, hidden, 1.5);
                self.matrix(&name("attn_k"), keys, hidden, 1.5);
                self.matrix(&name("attn_v"), keys, hidden, 1.0);
                self.matrix(&name("attn_output"), hidden, queries, 1.0);
            } else {
                self.matrix(&name("shortconv.in_proj"), 3 * hidden, hidden, 1.0);
                self.matrix(&name("shortconv.out_proj"), hidden, hidden, 1.0);
                self.add(&name("shortconv.conv"), &[hidden, CONVOLUTION_LENGTH], 1.0, 0.0);
            }
            self.norm(&name("ffn_norm"), hidden);
            self.matrix(&name("ffn_gate"), wide, hidden, 1.0);
            self.matrix(&name("ffn_up"), wide, hidden, 1.0);
            self.matrix(&name("ffn_down"), hidden, wide, 1.0);
        }
        self
    }

    /// Adds to every layer that attends.
    fn attention(mut self, add: impl Fn(&mut Self, &dyn Fn(&str) -> String)) -> Self {
        for layer in 0..self.shape.layers {
            if *self.shape.key_value_heads.get(layer).unwrap_or(&1) > 0 {
                add(&mut self, &|part: &str| format!("blk.{layer}.{part}"));
            }
        }
        self
    }

    fn head_norms(self) -> Self {
        let size = self.shape.head_dim;
        self.attention(|maker, name| {
            maker.norm(&name("attn_q_norm.weight"), size);
            maker.norm(&name("attn_k_norm.weight"), size);
        })
    }

    fn post_norms(self) -> Self {
        let size = self.shape.hidden;
        self.attention(|maker, name| {
            maker.norm(&name("post_attention_norm.weight"), size);
            maker.norm(&name("post_ffw_norm.weight"), size);
        })
    }

    fn biases(self) -> Self {
        let (queries, keys) =
            (self.shape.heads * self.shape.head_dim, self.shape.key_value_heads[0] * self.shape.head_dim);
        self.attention(|maker, name| {
            maker.add(&name("attn_q.bias"), &[queries], 0.7, 0.0);
            maker.add(&name("attn_k.bias"), &[keys], 0.7, 0.0);
            maker.add(&name("attn_v.bias"), &[keys], 0.7, 0.0);
        })
    }

    /// An output matrix of its own instead of the embeddings.
    fn output(mut self) -> Self {
        self.matrix("output.weight", self.vocabulary(), self.shape.hidden, 1.0);
        self
    }
}

fn strings<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> Value {
    Value::Array(items.into_iter().map(|item| Value::String(item.as_ref().to_owned())).collect())
}

/// The characters that stand for the 256 bytes in a byte-level vocabulary (Radford et al. 2019).
fn byte_characters() -> Vec<char> {
    let printable =
        |byte: u32| (33..=126).contains(&byte) || (161..=172).contains(&byte) || (174..=255).contains(&byte);
    let mut next = 256;
    (0..256)
        .map(|byte| {
            let code = if printable(byte) {
                byte
            } else {
                next += 1;
                next - 1
            };
            char::from_u32(code).expect("a character")
        })
        .collect()
}

/// A byte-level vocabulary of about 300 tokens that is split the way `pre` names.
pub(crate) fn byte_level(pre: &str) -> Vec<(String, Value)> {
    let merges = [
        "Ġ t",
        "h e",
        "i n",
        "Ġt he",
        "r e",
        "o n",
        "e r",
        "Ġ a",
        "in g",
        "Ġ w",
        "o r",
        "Ġw or",
        "l d",
        "Ġwor ld",
        "Ġ Ġ",
        "ĠĠ ĠĠ",
        "1 2",
        "12 3",
        "3 4",
        "Ċ Ċ",
        "Ã ©",
        ". Ċ",
        "' s",
        "' S",
        "l l",
        "' ll",
        ". .",
        "! !",
        "Ġ 1",
        "Ġ .",
        "< |",
        "| >",
        "Ġa n",
        "d e",
    ];
    let mut tokens: Vec<(String, i32)> = byte_characters().into_iter().map(|c| (c.to_string(), NORMAL)).collect();
    tokens.extend(merges.iter().map(|merge| (merge.replace(' ', ""), NORMAL)));
    // Words that no merges lead to: found only where whole words are looked up first.
    tokens.extend(["hello", "Ġkeeper"].map(|word| (word.to_owned(), NORMAL)));
    let end_of_text = tokens.len() as u32;
    tokens.extend(["<|endoftext|>", "<|im_start|>", "<|im_end|>"].map(|word| (word.to_owned(), CONTROL)));
    tokens.push(("<tool>".to_owned(), USER_DEFINED));
    vec![
        ("tokenizer.ggml.model".to_owned(), Value::String("gpt2".to_owned())),
        ("tokenizer.ggml.pre".to_owned(), Value::String(pre.to_owned())),
        ("tokenizer.ggml.tokens".to_owned(), strings(tokens.iter().map(|(token, _)| token))),
        (
            "tokenizer.ggml.token_type".to_owned(),
            Value::Array(tokens.iter().map(|&(_, kind)| Value::I32(kind)).collect()),
        ),
        ("tokenizer.ggml.merges".to_owned(), strings(merges)),
        ("tokenizer.ggml.bos_token_id".to_owned(), Value::U32(end_of_text)),
        ("tokenizer.ggml.eos_token_id".to_owned(), Value::U32(end_of_text + 2)),
    ]
}

/// A SentencePiece vocabulary: bytes, single characters, and pieces whose scores say what is merged first.
pub(crate) fn sentence_piece(space_prefix: Option<bool>) -> Vec<(String, Value)> {
    let mut tokens: Vec<(String, i32)> =
        [("<pad>", CONTROL), ("<eos>", CONTROL), ("<bos>", CONTROL), ("<unk>", UNKNOWN), ("\n\n", USER_DEFINED)]
            .map(|(token, kind)| (token.to_owned(), kind))
            .into();
    tokens.extend((0..256).map(|byte| (format!("<0x{byte:02X}>"), BYTE)));
    tokens.extend(["<start_of_turn>", "<end_of_turn>"].map(|token| (token.to_owned(), CONTROL)));
    tokens.extend(["<tool>", "  "].map(|token| (token.to_owned(), USER_DEFINED)));
    let pieces = [
        "▁t",
        "he",
        "in",
        "▁a",
        "the",
        "▁the",
        "er",
        "on",
        "re",
        "en",
        "then",
        "hen",
        "▁th",
        "or",
        "▁w",
        "wor",
        "▁wor",
        "ld",
        "world",
        "▁world",
        "ing",
        "li",
        "light",
        "ght",
        "ig",
        "hou",
        "se",
        "house",
        "lighthouse",
        "ab",
        "ba",
        "aba",
        "bab",
        "12",
        "23",
        "▁1",
        "..",
        "é",
        "...",
        "ré",
    ];
    let single = ('a'..='z').chain('A'..='S').chain("▁0123456.,!?'<>|".chars());
    tokens.extend(pieces.iter().map(|&piece| (piece.to_owned(), NORMAL)));
    tokens.extend(single.filter(|c| *c != 'q').map(|c| (c.to_string(), NORMAL)));
    let scores = tokens.iter().enumerate().map(|(id, &(_, kind))| if kind == NORMAL { -(id as f32) } else { 0.0 });
    let mut words = vec![
        ("tokenizer.ggml.model".to_owned(), Value::String("llama".to_owned())),
        ("tokenizer.ggml.pre".to_owned(), Value::String("default".to_owned())),
        ("tokenizer.ggml.tokens".to_owned(), strings(tokens.iter().map(|(token, _)| token))),
        ("tokenizer.ggml.scores".to_owned(), Value::Array(scores.map(Value::F32).collect())),
        (
            "tokenizer.ggml.token_type".to_owned(),
            Value::Array(tokens.iter().map(|&(_, kind)| Value::I32(kind)).collect()),
        ),
        ("tokenizer.ggml.bos_token_id".to_owned(), Value::U32(2)),
        ("tokenizer.ggml.eos_token_id".to_owned(), Value::U32(1)),
        ("tokenizer.ggml.unknown_token_id".to_owned(), Value::U32(3)),
    ];
    words.extend(space_prefix.map(|yes| ("tokenizer.ggml.add_space_prefix".to_owned(), Value::Bool(yes))));
    words
}

/// Wide enough for every kind of quantised block; with biases.
pub(crate) fn wide() -> RandomModel {
    let shape = Shape { architecture: "qwen2", layers: 2, hidden: 256, heads: 4, key_value_heads: &[2], head_dim: 64 };
    Maker::new("wide", shape).words(byte_level("qwen2")).tensors().biases().output().model
}

/// All models.
pub(crate) fn models() -> Vec<RandomModel> {
    vec![
        llama(),
        llama_sentence_piece(),
        qwen2(),
        qwen3(),
        gemma3(),
        gemma3_pattern(),
        gemma3_global(),
        gemma3_deep(),
        lfm2(),
        lfm2_window(),
    ]
}

/// The smallest models, one for each way of splitting text before merging.
pub(crate) fn splits() -> Vec<RandomModel> {
    [
        ("split_default", "default"),
        ("split_gpt2", "gpt-2"),
        ("split_smollm", "smollm"),
        ("split_qwen2", "qwen2"),
        ("split_llama3", "llama-bpe"),
        ("split_smaug", "smaug-bpe"),
        ("split_lfm2", "lfm2"),
    ]
    .map(|(name, pre)| {
        let shape =
            Shape { architecture: "llama", layers: 1, hidden: 32, heads: 2, key_value_heads: &[1], head_dim: 16 };
        Maker::new(name, shape).words(byte_level(pre)).tensors().model
    })
    .into()
}

/// The model of this name.
pub(crate) fn model(name: &str) -> RandomModel {
    models().into_iter().chain(splits()).find(|model| model.name == name).expect("a model of this name")
}

/// As Llama 3: interleaved pairs, frequencies divided by a tensor of factors.
fn llama() -> RandomModel {
    let shape = Shape { architecture: "llama", layers: 3, hidden: 64, heads: 4, key_value_heads: &[2], head_dim: 16 };
    let maker = Maker::new("llama", shape).key("rope.freq_base", Value::F32(500_000.0)).words(byte_level("llama-bpe"));
    let mut maker = maker.tensors().output();
    maker.add("rope_freqs.weight", &[8], 3.0, 4.5);
    maker.model
}

/// As Llama 2: SentencePiece with a space before the text; with heads wider than their share, and positions divided.
fn llama_sentence_piece() -> RandomModel {
    let shape = Shape { architecture: "llama", layers: 2, hidden: 64, heads: 4, key_value_heads: &[4], head_dim: 24 };
    let maker = Maker::new("llama_sentence_piece", shape)
        .key("rope.scaling.type", Value::String("linear".to_owned()))
        .key("rope.scaling.factor", Value::F32(2.5))
        .words(sentence_piece(None));
    maker.tensors().model
}

fn qwen2() -> RandomModel {
    let shape = Shape { architecture: "qwen2", layers: 2, hidden: 64, heads: 4, key_value_heads: &[2], head_dim: 16 };
    let maker = Maker::new("qwen2", shape).key("rope.freq_base", Value::F32(1e6)).words(byte_level("qwen2"));
    maker.tensors().biases().model
}

fn qwen3() -> RandomModel {
    let shape = Shape { architecture: "qwen3", layers: 3, hidden: 96, heads: 4, key_value_heads: &[2], head_dim: 32 };
    let maker = Maker::new("qwen3", shape).key("rope.freq_base", Value::F32(1e6)).words(byte_level("qwen2"));
    maker.tensors().head_norms().output().model
}

/// As the 4-billion Gemma 3: five layers that see a window, then one that sees all at an eighth of the positions.
fn gemma3() -> RandomModel {
    let shape = Shape { architecture: "gemma3", layers: 7, hidden: 64, heads: 4, key_value_heads: &[2], head_dim: 32 };
    let maker = Maker::new("gemma3", shape)
        .key("rope.freq_base", Value::F32(1e6))
        .key("rope.scaling.type", Value::String("linear".to_owned()))
        .key("rope.scaling.factor", Value::F32(8.0))
        .key("attention.sliding_window", Value::U32(8))
        .words(sentence_piece(Some(false)));
    maker.tensors().head_norms().post_norms().model
}

/// Every other layer sees all, and the windowed ones have a base of their own.
fn gemma3_pattern() -> RandomModel {
    let shape = Shape { architecture: "gemma3", layers: 4, hidden: 64, heads: 4, key_value_heads: &[2], head_dim: 16 };
    let maker = Maker::new("gemma3_pattern", shape)
        .key("rope.freq_base", Value::F32(1e5))
        .key("rope.freq_base_swa", Value::F32(300.0))
        .key("attention.sliding_window", Value::U32(12))
        .key("attention.sliding_window_pattern", Value::U32(2))
        .words(sentence_piece(Some(false)));
    maker.tensors().head_norms().post_norms().model
}

/// No window at all, and logits bent to stay within bounds.
fn gemma3_global() -> RandomModel {
    let shape = Shape { architecture: "gemma3", layers: 2, hidden: 64, heads: 4, key_value_heads: &[1], head_dim: 16 };
    let maker = Maker::new("gemma3_global", shape)
        .key("rope.freq_base", Value::F32(1e4))
        .key("final_logit_softcapping", Value::F32(1.5))
        .words(sentence_piece(Some(false)));
    maker.tensors().head_norms().post_norms().model
}

/// As deep as the 27-billion Gemma 3, which alone scales by the share of a head instead of its width.
fn gemma3_deep() -> RandomModel {
    let shape = Shape { architecture: "gemma3", layers: 62, hidden: 32, heads: 2, key_value_heads: &[1], head_dim: 8 };
    let maker = Maker::new("gemma3_deep", shape)
        .key("rope.freq_base", Value::F32(1e6))
        .key("attention.sliding_window", Value::U32(16))
        .words(sentence_piece(Some(false)));
    maker.tensors().head_norms().post_norms().model
}

fn lfm2() -> RandomModel {
    let heads = &[0, 2, 0, 0, 2];
    let shape = Shape { architecture: "lfm2", layers: 5, hidden: 64, heads: 4, key_value_heads: heads, head_dim: 16 };
    let maker = Maker::new("lfm2", shape)
        .key("rope.freq_base", Value::F32(1e6))
        .key("shortconv.l_cache", Value::U32(CONVOLUTION_LENGTH as u32))
        .words(byte_level("lfm2"));
    maker.tensors().head_norms().model
}

fn lfm2_window() -> RandomModel {
    let shape =
        Shape { architecture: "lfm2", layers: 3, hidden: 64, heads: 4, key_value_heads: &[2, 0, 1], head_dim: 16 };
    let maker = Maker::new("lfm2_window", shape)
        .key("rope.freq_base", Value::F32(1e4))
        .key("shortconv.l_cache", Value::U32(CONVOLUTION_LENGTH as u32))
        .key("attention.sliding_window", Value::U32(8))
        .words(byte_level("lfm2"));
    maker.tensors().head_norms().model
}
