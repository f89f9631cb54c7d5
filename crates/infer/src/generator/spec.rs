//! What a decoder looks like, read from the metadata of its GGUF file.

use anchorite_models::{GeneratorArchitecture as Architecture, GeneratorSpec};
use candle_core::quantized::gguf_file::{Content, Value};

use crate::error::LoadError;

/// Sizes and constants of a decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct DecoderSpec {
    /// Which computation.
    pub architecture: Architecture,
    /// Number of layers.
    pub layers: usize,
    /// Width of the hidden state.
    pub hidden: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads of each layer; 0 marks a layer of LFM2 that convolves instead of attending.
    pub key_value_heads: Vec<usize>,
    /// Width of a query or key head.
    pub head_dim: usize,
    /// Positions the model was made for.
    pub context_length: usize,
    /// Added to the variance in RMS normalisation.
    pub norm_epsilon: f64,
    /// Base of the rotary frequencies (Su et al. 2021).
    pub rope_base: f32,
    /// Base in layers with a sliding window (Gemma 3).
    pub rope_base_local: f32,
    /// Divides positions (linear scaling of the rotary embedding).
    pub rope_linear_factor: f32,
    /// Components of a head that are rotated.
    pub rope_dim: usize,
    /// Keys seen by layers with a sliding window.
    pub sliding_window: Option<usize>,
    /// The last of every so many layers sees all keys, the others a window; 0 leaves none that sees all.
    pub window_period: usize,
    /// Multiplies queries before the inner product.
    pub attention_scale: f64,
    /// Columns kept by the short convolution (LFM2).
    pub convolution_length: usize,
    /// Logits are bent to stay below this: `cap · tanh(logit / cap)`.
    pub logit_cap: Option<f64>,
}

impl DecoderSpec {
    /// Reads from the metadata of `content` what `known`, which was checked against the tensors, does not say.
    ///
    /// # Errors
    /// [`LoadError::Metadata`] naming a key that is missing or has a value that makes no sense.
    pub fn from_gguf(content: &Content, known: &GeneratorSpec) -> Result<Self, LoadError> {
        let architecture = known.architecture;
        let prefix = match architecture {
            Architecture::Llama => "llama",
            Architecture::Qwen2 => "qwen2",
            Architecture::Qwen3 => "qwen3",
            Architecture::Gemma3 => "gemma3",
            Architecture::Lfm2 => "lfm2",
        };
        let keys = Keys { content, prefix };
        let (layers, hidden, heads, head_dim) =
            (known.layers, known.embedding_length, known.attention_heads, known.head_length);
        let key_value_heads = match keys.get("attention.head_count_kv") {
            Some(_) => keys.sizes("attention.head_count_kv", layers)?,
            None => vec![heads; layers],
        };
        let rope_linear_factor = match keys.optional_string("rope.scaling.type") {
            None | Some("linear") => keys
                .optional_float("rope.scaling.factor")
                .or_else(|| keys.optional_float("rope.scale_linear"))
                .unwrap_or(1.0),
            // Llama 3 stores its scaling as a tensor of factors; nothing is left to be computed here.
            Some("none" | "llama3") => 1.0,
            Some(other) => {
                return Err(LoadError::Metadata {
                    key: format!("{prefix}.rope.scaling.type"),
                    problem: format!("`{other}` is not supported; known are none, linear and llama3"),
                });
            }
        };
        let rope_base = keys.optional_float("rope.freq_base").unwrap_or(10_000.0);
        let spec = Self {
            architecture,
            layers,
            hidden,
            heads,
            head_dim,
            context_length: known.context_length,
            norm_epsilon: f64::from(keys.float("attention.layer_norm_rms_epsilon")?),
            rope_base,
            rope_base_local: keys.optional_float("rope.freq_base_swa").unwrap_or(10_000.0),
            rope_linear_factor,
            rope_dim: keys.optional_size("rope.dimension_count").unwrap_or(head_dim),
            // Files of other architectures name a window too, but their models attend to everything.
            sliding_window: match architecture {
                Architecture::Gemma3 | Architecture::Lfm2 => keys.optional_size("attention.sliding_window"),
                _ => None,
            },
            window_period: match (architecture, keys.get("attention.sliding_window_pattern")) {
                (Architecture::Gemma3, None) => 6,
                (Architecture::Gemma3, Some(_)) => keys.size("attention.sliding_window_pattern")?,
                _ => 0,
            },
            // The 27-billion Gemma 3 (62 layers) is the only one that scales by the mean width of a head.
            attention_scale: if architecture == Architecture::Gemma3 && layers == 62 {
                1.0 / ((hidden / heads) as f64).sqrt()
            } else {
                1.0 / (head_dim as f64).sqrt()
            },
            convolution_length: match architecture {
                Architecture::Lfm2 => keys.size("shortconv.l_cache")?,
                _ => 0,
            },
            logit_cap: match architecture {
                Architecture::Gemma3 => keys.optional_float("final_logit_softcapping").map(f64::from),
                _ => None,
            },
            key_value_heads,
        };
        spec.check(prefix)?;
        Ok(spec)
    }

    /// True if `layer` sees only the last `sliding_window` keys.
    #[must_use]
    pub fn is_local(&self, layer: usize) -> bool {
        self.sliding_window.is_some() && (self.window_period == 0 || !(layer + 1).is_multiple_of(self.window_period))
    }

    /// Llama's files keep the two halves of a rotated pair next to each other; all others keep them half a head apart.
    #[must_use]
    pub fn rope_interleaved(&self) -> bool {
        self.architecture == Architecture::Llama
    }

    fn check(&self, prefix: &str) -> Result<(), LoadError> {
        let fault = |key: &str, problem: String| Err(LoadError::Metadata { key: format!("{prefix}.{key}"), problem });
        if self.head_dim == 0 || !self.head_dim.is_multiple_of(2) {
            return fault("attention.key_length", format!("a head of {} components can't be rotated", self.head_dim));
        }
        if self.rope_dim != self.head_dim {
            return fault("rope.dimension_count", format!("{} of {} components", self.rope_dim, self.head_dim));
        }
        if let Some(bad) = self.key_value_heads.iter().find(|&&n| n > 0 && !self.heads.is_multiple_of(n)) {
            return fault("attention.head_count_kv", format!("{bad} does not divide {} heads", self.heads));
        }
        if self.architecture != Architecture::Lfm2 && self.key_value_heads.contains(&0) {
            return fault("attention.head_count_kv", "0 heads".to_owned());
        }
        Ok(())
    }
}

struct Keys<'a> {
    content: &'a Content,
    prefix: &'a str,
}

impl<'a> Keys<'a> {
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.content.metadata.get(&format!("{}.{key}", self.prefix))
    }

    fn fault(&self, key: &str, problem: &str) -> LoadError {
        LoadError::Metadata { key: format!("{}.{key}", self.prefix), problem: problem.to_owned() }
    }

    /// A size from 1 to 2^24; larger ones are damage.
    fn size(&self, key: &str) -> Result<usize, LoadError> {
        let value = self.get(key).ok_or_else(|| self.fault(key, "missing"))?;
        as_size(value).filter(|&n| n > 0).ok_or_else(|| self.fault(key, "not a size"))
    }

    fn optional_size(&self, key: &str) -> Option<usize> {
        self.get(key).and_then(as_size).filter(|&n| n > 0)
    }

    fn sizes(&self, key: &str, count: usize) -> Result<Vec<usize>, LoadError> {
        let value = self.get(key).ok_or_else(|| self.fault(key, "missing"))?;
        match value {
            Value::Array(items) if items.len() == count => {
                items.iter().map(|item| as_size(item).ok_or_else(|| self.fault(key, "not sizes"))).collect()
            }
            Value::Array(_) => Err(self.fault(key, "one entry per layer expected")),
            single => Ok(vec![as_size(single).ok_or_else(|| self.fault(key, "not a size"))?; count]),
        }
    }

    fn float(&self, key: &str) -> Result<f32, LoadError> {
        self.optional_float(key).ok_or_else(|| self.fault(key, "missing or not a positive number"))
    }

    fn optional_float(&self, key: &str) -> Option<f32> {
        self.get(key).and_then(|value| value.to_f32().ok()).filter(|x| x.is_finite() && *x > 0.0)
    }

    fn optional_string(&self, key: &str) -> Option<&'a str> {
        self.get(key).and_then(|value| value.to_string().ok()).map(String::as_str)
    }
}

/// An integer of any width as a size; `None` if it is negative or beyond 2^24.
pub(crate) fn as_size(value: &Value) -> Option<usize> {
    let wide = match value {
        Value::U8(n) => u64::from(*n),
        Value::U16(n) => u64::from(*n),
        Value::U32(n) => u64::from(*n),
        Value::U64(n) => *n,
        Value::I8(n) => u64::try_from(*n).ok()?,
        Value::I16(n) => u64::try_from(*n).ok()?,
        Value::I32(n) => u64::try_from(*n).ok()?,
        Value::I64(n) => u64::try_from(*n).ok()?,
        _ => return None,
    };
    usize::try_from(wide).ok().filter(|&n| n <= 1 << 24)
}

/// A string value that must be there.
pub(crate) fn string<'a>(content: &'a Content, key: &str) -> Result<&'a str, LoadError> {
    content
        .metadata
        .get(key)
        .and_then(|value| value.to_string().ok())
        .map(String::as_str)
        .ok_or_else(|| LoadError::Metadata { key: key.to_owned(), problem: "missing or not a string".to_owned() })
}
