//! The files that sentence-transformers puts beside a bi-encoder: which modules follow the transformer, how its outputs are
//! pooled, how many tokens it reads, and which words go before a query or a document.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::ModelError;
use crate::folder::{is_plain_path, read_json, read_json_if_there};

/// How the vectors of a text's tokens become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// The first token's.
    Cls,
    /// The mean over the tokens that are not padding.
    Mean,
    /// The largest value of each component.
    Max,
}

impl Pooling {
    const KNOWN: [&str; 3] = ["cls", "mean", "max"];

    fn from_name(name: &str) -> Option<Self> {
        match name {
            "cls" | "cls_token" => Some(Self::Cls),
            "mean" | "mean_tokens" => Some(Self::Mean),
            "max" | "max_tokens" => Some(Self::Max),
            _ => None,
        }
    }
}

/// What a bi-encoder needs besides the transformer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentenceFacts {
    /// How token vectors become one.
    pub pooling: Pooling,
    /// Whether the vector is then scaled to unit length.
    pub normalize: bool,
    /// Most tokens read, special tokens included; `None` leaves it to the tokenizer and the number of positions.
    #[serde(default)]
    pub max_tokens: Option<usize>,
    /// Put before a query.
    #[serde(default)]
    pub query_prefix: String,
    /// Put before a document.
    #[serde(default)]
    pub document_prefix: String,
    /// Whether the text is put into lower case before the tokenizer sees it.
    #[serde(default)]
    pub lower_case: bool,
}

#[derive(Deserialize)]
struct Module {
    idx: usize,
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize, Default)]
struct TransformerFile {
    max_seq_length: Option<usize>,
    #[serde(default)]
    do_lower_case: bool,
}

#[derive(Deserialize, Default)]
struct PromptsFile {
    #[serde(default)]
    prompts: BTreeMap<String, String>,
    default_prompt_name: Option<String>,
}

impl SentenceFacts {
    /// Reads the files of a folder.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] naming a file that is missing or can't be understood, [`ModelError::Unsupported`] naming a
    /// module or pooling that is not known.
    pub fn read(folder: &Path) -> Result<Self, ModelError> {
        let (pooling_folder, normalize) = read_modules(folder)?;
        let pooling = read_pooling(&folder.join(pooling_folder).join("config.json"))?;
        let transformer: TransformerFile =
            read_json_if_there(&folder.join("sentence_bert_config.json"))?.unwrap_or_default();
        let prompts: PromptsFile =
            read_json_if_there(&folder.join("config_sentence_transformers.json"))?.unwrap_or_default();
        let prompt = |names: &[&str]| {
            let named = names.iter().find_map(|name| prompts.prompts.get(*name));
            let default = || prompts.prompts.get(prompts.default_prompt_name.as_deref()?);
            named.or_else(default).cloned().unwrap_or_default()
        };
        Ok(Self {
            pooling,
            normalize,
            max_tokens: transformer.max_seq_length,
            query_prefix: prompt(&["query"]),
            document_prefix: prompt(&["document", "passage", "corpus"]),
            lower_case: transformer.do_lower_case,
        })
    }

    /// The files that say this, as sentence-transformers writes them: path in the folder and content.
    #[must_use]
    pub fn files(&self, dimensions: usize, positions: usize) -> Vec<(&'static str, serde_json::Value)> {
        let module = |index: usize, path: &str, kind: &str| {
            serde_json::json!({
                "idx": index, "name": index.to_string(), "path": path, "type": format!("sentence_transformers.models.{kind}"),
            })
        };
        let mut modules = vec![module(0, "", "Transformer"), module(1, "1_Pooling", "Pooling")];
        if self.normalize {
            modules.push(module(2, "2_Normalize", "Normalize"));
        }
        let pooling = serde_json::json!({
            "word_embedding_dimension": dimensions,
            "pooling_mode_cls_token": self.pooling == Pooling::Cls,
            "pooling_mode_mean_tokens": self.pooling == Pooling::Mean,
            "pooling_mode_max_tokens": self.pooling == Pooling::Max,
            "pooling_mode_mean_sqrt_len_tokens": false,
        });
        let transformer = serde_json::json!({
            "max_seq_length": self.max_tokens.unwrap_or(positions), "do_lower_case": self.lower_case,
        });
        let prompts =
            serde_json::json!({ "prompts": { "query": self.query_prefix, "document": self.document_prefix } });
        vec![
            ("modules.json", serde_json::Value::Array(modules)),
            ("1_Pooling/config.json", pooling),
            ("sentence_bert_config.json", transformer),
            ("config_sentence_transformers.json", prompts),
        ]
    }
}

/// The folder of the pooling module, and whether a normalisation follows.
fn read_modules(folder: &Path) -> Result<(String, bool), ModelError> {
    const KNOWN: [&str; 3] = ["Transformer", "Pooling", "Normalize"];
    let path = folder.join("modules.json");
    let Some(mut modules) = read_json_if_there::<Vec<Module>>(&path)? else {
        // Older folders have the pooling alone; nothing then says that vectors are normalised.
        return Ok(("1_Pooling".to_owned(), false));
    };
    modules.sort_by_key(|module| module.idx);
    let mut kinds = Vec::new();
    for module in &modules {
        let kind = module.kind.rsplit('.').next().unwrap_or_default();
        match KNOWN.iter().position(|known| *known == kind) {
            Some(place) => kinds.push(place),
            None => return Err(ModelError::unsupported(&path, "module", module.kind.as_str(), &KNOWN)),
        }
    }
    if !matches!(kinds.as_slice(), [0, 1] | [0, 1, 2]) {
        let names: Vec<&str> = kinds.iter().map(|place| KNOWN[*place]).collect();
        let reason = format!(
            "has the modules {}, and they must be Transformer, Pooling and perhaps Normalize",
            names.join(", ")
        );
        return Err(ModelError::invalid(&path, reason, "choose another model"));
    }
    if !modules[0].path.is_empty() {
        let found = format!("Transformer in the folder {}", modules[0].path);
        return Err(ModelError::unsupported(&path, "module", found, &["Transformer beside modules.json"]));
    }
    if !is_plain_path(&modules[1].path) {
        let reason = format!("names the folder `{}`, which is not inside the model's", modules[1].path);
        return Err(ModelError::invalid(&path, reason, "copy the model again from a source you trust"));
    }
    Ok((modules[1].path.clone(), kinds.len() == 3))
}

fn read_pooling(path: &Path) -> Result<Pooling, ModelError> {
    if !path.is_file() {
        let remedy =
            "copy that file too: it says how token vectors become one vector, and guessing would give wrong results";
        return Err(ModelError::invalid(path, "is missing", remedy));
    }
    let fields: BTreeMap<String, serde_json::Value> = read_json(path)?;
    if fields.get("include_prompt") == Some(&serde_json::Value::Bool(false)) {
        return Err(ModelError::unsupported(path, "pooling", "include_prompt = false", &Pooling::KNOWN));
    }
    let mut modes: Vec<&str> = fields
        .iter()
        .filter(|(_, value)| **value == serde_json::Value::Bool(true))
        .filter_map(|(name, _)| name.strip_prefix("pooling_mode_"))
        .collect();
    if let Some(mode) = fields.get("pooling_mode").and_then(serde_json::Value::as_str) {
        modes.push(mode);
    }
    match modes.as_slice() {
        [] => {
            Err(ModelError::invalid(path, "turns no pooling mode on", "copy the file again from where the model came"))
        }
        [mode] => {
            Pooling::from_name(mode).ok_or_else(|| ModelError::unsupported(path, "pooling", *mode, &Pooling::KNOWN))
        }
        several => Err(ModelError::unsupported(path, "pooling", several.join(" + "), &Pooling::KNOWN)),
    }
}
