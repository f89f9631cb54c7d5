//! What the tensors and the graph say about the model.

use std::path::Path;

use super::ImportKind;
use super::graph::{Index, Weights};
use super::proto::{GraphProto, NodeProto};
use crate::folder::read_json_if_there;
use crate::{Activation, Architecture, EncoderSpec, Head, ImportError};

pub(super) fn read(
    graph: &GraphProto,
    index: &Index<'_>,
    weights: &Weights<'_>,
    kind: &ImportKind,
) -> Result<EncoderSpec, ImportError> {
    let prefix = if weights.contains("bert.embeddings.word_embeddings.weight") { "bert." } else { "" };
    let table = |name: &str| {
        let name = format!("{prefix}{name}.weight");
        match weights.shape(&name)?.as_slice() {
            [rows, columns] => Ok((*rows, *columns)),
            found => Err(ImportError::Shape { tensor: name, expected: vec![0, 0], found: found.to_vec() }),
        }
    };
    let (vocab_size, hidden_size) = table("embeddings.word_embeddings")?;
    let (intermediate_size, _) = table("encoder.layer.0.intermediate.dense")?;
    let layers =
        (0..).take_while(|layer| weights.contains(&format!("{prefix}encoder.layer.{layer}.output.dense.weight")));
    let max_position_embeddings = table("embeddings.position_embeddings")?.0;
    let mut spec = EncoderSpec {
        architecture: Architecture::Bert,
        hidden_size,
        layers: layers.count(),
        attention_heads: attention_heads(graph, index, hidden_size)?,
        intermediate_size,
        vocab_size,
        max_position_embeddings,
        type_vocab_size: table("embeddings.token_type_embeddings")?.0,
        layer_norm_eps: layer_norm_eps(graph, index)?,
        activation: activation(graph)?,
        pooling: None,
        normalize: false,
        max_tokens: max_position_embeddings,
        query_prefix: String::new(),
        document_prefix: String::new(),
        lower_case: false,
        head: Head::None,
    };
    match kind {
        ImportKind::Reranker => {
            let labels = weights.shape("classifier.weight")?.first().copied().unwrap_or(0);
            spec.head = Head::Classifier { labels };
        }
        ImportKind::Embedder(facts) => {
            spec.pooling = Some(facts.pooling);
            spec.normalize = facts.normalize;
            spec.query_prefix.clone_from(&facts.query_prefix);
            spec.document_prefix.clone_from(&facts.document_prefix);
            spec.lower_case = facts.lower_case;
            spec.max_tokens = facts.max_tokens.unwrap_or(max_position_embeddings).min(max_position_embeddings);
        }
    }
    Ok(spec)
}

/// All values found, if they are one and the same.
fn unanimous<T: PartialEq + std::fmt::Display>(fact: &'static str, found: Vec<T>) -> Result<T, ImportError> {
    let mut found = found.into_iter();
    let first = found.next().ok_or_else(|| ImportError::Fact { fact, reason: "no node shows it".to_owned() })?;
    match found.find(|other| other != &first) {
        None => Ok(first),
        Some(other) => Err(ImportError::Fact { fact, reason: format!("one node shows {first} and another {other}") }),
    }
}

/// A single whole number.
fn whole(index: &Index<'_>, name: &str) -> Option<usize> {
    let values = index.constant(name)?.integers().ok()?;
    match values.as_slice() {
        [value] => usize::try_from(*value).ok(),
        _ => None,
    }
}

/// Each layer reshapes `[…, hidden]` to `[…, heads, components]`; the new shape is put together by a `Concat`.
fn attention_heads(graph: &GraphProto, index: &Index<'_>, hidden: usize) -> Result<usize, ImportError> {
    let heads = |node: &NodeProto| {
        let [.., heads, components] = node.input.as_slice() else { return None };
        let (heads, components) = (whole(index, heads)?, whole(index, components)?);
        (heads.checked_mul(components) == Some(hidden)).then_some(heads)
    };
    let concatenations = graph.node.iter().filter(|node| node.op_type == "Concat" && node.input.len() == 4);
    unanimous("number of attention heads", concatenations.filter_map(heads).collect())
}

/// Layer normalisation divides by `Sqrt(Add(variance, eps))`.
fn layer_norm_eps(graph: &GraphProto, index: &Index<'_>) -> Result<f64, ImportError> {
    let added = |node: &NodeProto| {
        let add = index.producers.get(node.input.first()?.as_str()).filter(|add| add.op_type == "Add")?;
        let values = add.input.iter().find_map(|name| index.constant(name))?.floats().ok()?;
        match values.as_slice() {
            // The shortest decimal that gives this float: 1e-12, not 9.999999960041972e-13.
            [eps] => eps.to_string().parse().ok(),
            _ => None,
        }
    };
    let roots = graph.node.iter().filter(|node| node.op_type == "Sqrt");
    let eps: f64 = unanimous("epsilon of layer normalisation", roots.filter_map(added).collect())?;
    if eps > 0.0 {
        return Ok(eps);
    }
    Err(ImportError::Fact { fact: "epsilon of layer normalisation", reason: format!("it is {eps}") })
}

fn activation(graph: &GraphProto) -> Result<Activation, ImportError> {
    if graph.node.iter().any(|node| node.op_type == "Erf") {
        return Ok(Activation::Gelu);
    }
    Err(ImportError::Fact {
        fact: "activation",
        reason: "there is no error function, so it is not exact GELU".to_owned(),
    })
}

/// `config.json` as transformers writes it, with a note of where it comes from.
pub(super) fn config_json(spec: &EncoderSpec, source_sha256: &str) -> serde_json::Value {
    let architecture = match spec.head {
        Head::None => "BertModel",
        Head::Classifier { .. } => "BertForSequenceClassification",
    };
    let mut config = serde_json::json!({
        "model_type": "bert",
        "architectures": [architecture],
        "hidden_size": spec.hidden_size,
        "num_hidden_layers": spec.layers,
        "num_attention_heads": spec.attention_heads,
        "intermediate_size": spec.intermediate_size,
        "hidden_act": "gelu",
        "layer_norm_eps": spec.layer_norm_eps,
        "max_position_embeddings": spec.max_position_embeddings,
        "type_vocab_size": spec.type_vocab_size,
        "vocab_size": spec.vocab_size,
        "position_embedding_type": "absolute",
    });
    if let Head::Classifier { labels } = spec.head {
        let names = (0..labels).map(|label| (label.to_string(), format!("LABEL_{label}").into()));
        config["id2label"] = serde_json::Value::Object(names.collect());
    }
    config["imported_from"] = serde_json::json!({ "format": "ONNX with 8-bit weights", "sha256": source_sha256 });
    config
}

/// Holds the graph against the `config.json` that lies beside the ONNX file, if one does.
pub(super) fn check_config_beside(onnx: &Path, spec: &EncoderSpec) -> Result<(), ImportError> {
    let beside: Option<serde_json::Map<String, serde_json::Value>> =
        read_json_if_there(&onnx.with_file_name("config.json"))?;
    let Some(beside) = beside else { return Ok(()) };
    let ours = config_json(spec, "");
    let compared =
        ["model_type", "num_attention_heads", "hidden_act", "layer_norm_eps", "hidden_size", "num_hidden_layers"];
    for key in compared {
        if let Some(theirs) = beside.get(key).filter(|theirs| **theirs != ours[key]) {
            let reason =
                format!("config.json beside it says that `{key}` is {theirs}, and the graph shows {}", ours[key]);
            return Err(ImportError::Fact { fact: "configuration", reason });
        }
    }
    Ok(())
}
