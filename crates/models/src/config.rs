//! What an encoder's own files say about it. Nothing is assumed: what a file must say and does not is an error.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::folder::{read_json, read_json_if_there};
use crate::{ModelError, ModelRole, Pooling, SentenceFacts};

/// Kinds of encoder that can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// BERT (Devlin et al. 2019) with absolute positions.
    Bert,
}

impl Architecture {
    /// Values of `model_type` that can be run.
    pub const KNOWN: [&str; 1] = ["bert"];
}

/// The non-linearity of the feed-forward layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// Exact GELU, with the error function (Hendrycks and Gimpel 2016).
    Gelu,
    /// GELU approximated with tanh.
    GeluTanh,
    /// Rectified linear.
    Relu,
}

impl Activation {
    const KNOWN: [&str; 4] = ["gelu", "gelu_new", "gelu_pytorch_tanh", "relu"];

    fn from_name(name: &str) -> Option<Self> {
        match name {
            "gelu" => Some(Self::Gelu),
            "gelu_new" | "gelu_pytorch_tanh" => Some(Self::GeluTanh),
            "relu" => Some(Self::Relu),
            _ => None,
        }
    }
}

/// What follows the transformer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Head {
    /// Nothing: the token vectors are the output.
    None,
    /// The first token through a dense layer with tanh, then a linear layer to this many labels.
    Classifier {
        /// Number of outputs.
        labels: usize,
    },
}

/// An encoder, as its files describe it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EncoderSpec {
    /// Kind of encoder.
    pub architecture: Architecture,
    /// Components of a token's vector.
    pub hidden_size: usize,
    /// Number of layers.
    pub layers: usize,
    /// Attention heads a layer; divides `hidden_size`.
    pub attention_heads: usize,
    /// Components inside the feed-forward layers.
    pub intermediate_size: usize,
    /// Rows of the token embedding; every token id is below.
    pub vocab_size: usize,
    /// Rows of the position embedding.
    pub max_position_embeddings: usize,
    /// Rows of the segment embedding.
    pub type_vocab_size: usize,
    /// Added to the variance in layer normalisation.
    pub layer_norm_eps: f64,
    /// Non-linearity of the feed-forward layers.
    pub activation: Activation,
    /// How token vectors become one; `None` for a cross-encoder.
    pub pooling: Option<Pooling>,
    /// Whether the vector is scaled to unit length.
    pub normalize: bool,
    /// Most tokens read, special tokens included.
    pub max_tokens: usize,
    /// Put before a query; empty for none.
    pub query_prefix: String,
    /// Put before a document; empty for none.
    pub document_prefix: String,
    /// Whether the text is put into lower case before the tokenizer sees it.
    pub lower_case: bool,
    /// What follows the transformer.
    pub head: Head,
}

#[derive(Deserialize)]
struct ConfigFile {
    model_type: Option<String>,
    #[serde(default)]
    architectures: Vec<String>,
    hidden_size: Option<usize>,
    num_hidden_layers: Option<usize>,
    num_attention_heads: Option<usize>,
    intermediate_size: Option<usize>,
    vocab_size: Option<usize>,
    max_position_embeddings: Option<usize>,
    type_vocab_size: Option<usize>,
    layer_norm_eps: Option<f64>,
    hidden_act: Option<String>,
    position_embedding_type: Option<String>,
    num_labels: Option<usize>,
    id2label: Option<BTreeMap<String, serde_json::Value>>,
}

#[derive(Deserialize)]
struct TokenizerConfigFile {
    model_max_length: Option<f64>,
}

/// Beyond any encoder in use; keeps products of sizes far from overflow.
const LARGEST_SIZE: usize = 1 << 24;
/// Beyond any encoder in use, too; each layer has names and shapes of its own, which take memory.
const MOST_LAYERS: usize = 1_024;

impl EncoderSpec {
    /// Reads `config.json`, `tokenizer_config.json` and, for an embedder, the files of sentence-transformers.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] naming an architecture, activation, pooling or module that can't be run, with the list
    /// of those that can; [`ModelError::Invalid`] naming a file that is missing, can't be understood, or lacks a value.
    pub fn read(folder: &Path, role: ModelRole) -> Result<Self, ModelError> {
        let path = folder.join("config.json");
        let config: ConfigFile = read_json(&path)?;
        let copy_again = "copy the file again from where the model came";
        let size = |name: &'static str, value: Option<usize>| match value {
            Some(value) if (1..=LARGEST_SIZE).contains(&value) => Ok(value),
            Some(value) => Err(ModelError::invalid(&path, format!("`{name}` is {value}"), copy_again)),
            None => Err(ModelError::invalid(&path, format!("does not say `{name}`"), copy_again)),
        };
        let model_type = config.model_type.as_deref().unwrap_or("(none)");
        if model_type != "bert" {
            return Err(ModelError::unsupported(&path, "model_type", model_type, &Architecture::KNOWN));
        }
        // BERT's configuration says "absolute" by leaving it out.
        let positions = config.position_embedding_type.as_deref().unwrap_or("absolute");
        if positions != "absolute" {
            return Err(ModelError::unsupported(&path, "position_embedding_type", positions, &["absolute"]));
        }
        let activation = config.hidden_act.as_deref().unwrap_or("(none)");
        let activation = Activation::from_name(activation)
            .ok_or_else(|| ModelError::unsupported(&path, "hidden_act", activation, &Activation::KNOWN))?;
        let eps = config.layer_norm_eps.filter(|eps| eps.is_finite() && *eps > 0.0);
        let hidden_size = size("hidden_size", config.hidden_size)?;
        let attention_heads = size("num_attention_heads", config.num_attention_heads)?;
        if !hidden_size.is_multiple_of(attention_heads) {
            let reason =
                format!("`hidden_size` {hidden_size} is not divisible by `num_attention_heads` {attention_heads}");
            return Err(ModelError::invalid(&path, reason, copy_again));
        }
        let mut spec = Self {
            architecture: Architecture::Bert,
            hidden_size,
            layers: size("num_hidden_layers", config.num_hidden_layers)?,
            attention_heads,
            intermediate_size: size("intermediate_size", config.intermediate_size)?,
            vocab_size: size("vocab_size", config.vocab_size)?,
            max_position_embeddings: size("max_position_embeddings", config.max_position_embeddings)?,
            type_vocab_size: size("type_vocab_size", config.type_vocab_size)?,
            layer_norm_eps: eps
                .ok_or_else(|| ModelError::invalid(&path, "does not say a usable `layer_norm_eps`", copy_again))?,
            activation,
            pooling: None,
            normalize: false,
            max_tokens: 0,
            query_prefix: String::new(),
            document_prefix: String::new(),
            lower_case: false,
            head: Head::None,
        };
        if spec.layers > MOST_LAYERS {
            return Err(ModelError::invalid(&path, format!("`num_hidden_layers` is {}", spec.layers), copy_again));
        }
        let mut max_tokens = None;
        match role {
            ModelRole::Embedder => {
                let facts = SentenceFacts::read(folder)?;
                max_tokens = facts.max_tokens;
                spec.pooling = Some(facts.pooling);
                spec.normalize = facts.normalize;
                spec.query_prefix = facts.query_prefix;
                spec.document_prefix = facts.document_prefix;
                spec.lower_case = facts.lower_case;
            }
            ModelRole::Reranker => spec.head = read_head(&path, &config)?,
            ModelRole::Generator => {
                let reason = "describes an encoder, and a generator is needed";
                return Err(ModelError::invalid(&path, reason, "choose a model with a GGUF file"));
            }
        }
        spec.max_tokens = match max_tokens {
            Some(tokens) => tokens,
            None => tokenizer_limit(folder)?.unwrap_or(spec.max_position_embeddings),
        }
        .min(spec.max_position_embeddings);
        // Two special tokens stand around every text, and one between query and passage.
        if spec.max_tokens < 4 {
            let reason = format!("lets the model read {} tokens", spec.max_tokens);
            return Err(ModelError::invalid(folder, reason, copy_again));
        }
        Ok(spec)
    }

    /// Name and shape of every tensor that a forward pass reads, without the `bert.` that some files put before those of
    /// the transformer. Weights of linear layers are `[outputs, inputs]`.
    #[must_use]
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let (hidden, wide) = (self.hidden_size, self.intermediate_size);
        let mut tensors = vec![
            ("embeddings.word_embeddings.weight".to_owned(), vec![self.vocab_size, hidden]),
            ("embeddings.position_embeddings.weight".to_owned(), vec![self.max_position_embeddings, hidden]),
            ("embeddings.token_type_embeddings.weight".to_owned(), vec![self.type_vocab_size, hidden]),
        ];
        let mut linear = |name: String, outputs: usize, inputs: usize| {
            tensors.push((format!("{name}.weight"), vec![outputs, inputs]));
            tensors.push((format!("{name}.bias"), vec![outputs]));
        };
        for layer in 0..self.layers {
            for part in ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"]
            {
                linear(format!("encoder.layer.{layer}.{part}"), hidden, hidden);
            }
            linear(format!("encoder.layer.{layer}.intermediate.dense"), wide, hidden);
            linear(format!("encoder.layer.{layer}.output.dense"), hidden, wide);
        }
        if let Head::Classifier { labels } = self.head {
            linear("pooler.dense".to_owned(), hidden, hidden);
            linear("classifier".to_owned(), labels, hidden);
        }
        let mut norm = |name: String| {
            tensors.push((format!("{name}.weight"), vec![hidden]));
            tensors.push((format!("{name}.bias"), vec![hidden]));
        };
        norm("embeddings.LayerNorm".to_owned());
        for layer in 0..self.layers {
            norm(format!("encoder.layer.{layer}.attention.output.LayerNorm"));
            norm(format!("encoder.layer.{layer}.output.LayerNorm"));
        }
        tensors
    }
}

/// True for tensors that stand outside the transformer and so never have the prefix.
pub(crate) fn is_head_tensor(name: &str) -> bool {
    name.starts_with("classifier.")
}

fn read_head(path: &Path, config: &ConfigFile) -> Result<Head, ModelError> {
    if !config.architectures.iter().any(|name| name == "BertForSequenceClassification") {
        let found = config.architectures.join(", ");
        return Err(ModelError::unsupported(path, "architecture", found, &["BertForSequenceClassification"]));
    }
    let labels = config.num_labels.or_else(|| config.id2label.as_ref().map(BTreeMap::len));
    match labels {
        Some(labels) if (1..=LARGEST_SIZE).contains(&labels) => Ok(Head::Classifier { labels }),
        // transformers leaves the two labels out that it takes for granted.
        None => Ok(Head::Classifier { labels: 2 }),
        Some(labels) => Err(ModelError::invalid(path, format!("has {labels} labels"), "copy the file again")),
    }
}

/// The tokenizer's own limit. Tokenizers without one write a number beyond any text.
fn tokenizer_limit(folder: &Path) -> Result<Option<usize>, ModelError> {
    let file: Option<TokenizerConfigFile> = read_json_if_there(&folder.join("tokenizer_config.json"))?;
    let length = file.and_then(|file| file.model_max_length).filter(|length| (1.0..1e9).contains(length));
    // Truncation is intended: lengths are whole numbers, within the range just checked.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Ok(length.map(|length| length as usize))
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
