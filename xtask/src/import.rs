//! `import-onnx`: the importer, for models of one's own.

use std::fs;
use std::path::{Path, PathBuf};

use anchorite_models::{ImportKind, Manifest, ModelRole, Pooling, SentenceFacts, hash_file, import_onnx};
use anyhow::{Context, Result, bail};

use crate::{Arguments, report};

const TOKENIZER_FILES: [&str; 2] = ["tokenizer.json", "tokenizer_config.json"];

pub(crate) fn import(mut arguments: Arguments) -> Result<()> {
    let kind = arguments.option("--kind")?.context("--kind reranker or --kind embedder is missing")?;
    let role: ModelRole = kind.parse().map_err(anyhow::Error::msg)?;
    let said = sentence_facts(&mut arguments)?;
    let source = PathBuf::from(arguments.word("the ONNX file or its folder")?);
    let out = PathBuf::from(arguments.word("the folder to write to")?);
    arguments.end()?;

    let onnx = if source.is_dir() { source.join("model.onnx") } else { source };
    if !onnx.is_file() {
        bail!("{} is not there", onnx.display());
    }
    let beside = onnx.parent().map_or_else(PathBuf::new, Path::to_path_buf);
    let kind = match role {
        ModelRole::Reranker => ImportKind::Reranker,
        ModelRole::Embedder => ImportKind::Embedder(facts_for(&onnx, &beside, said)?),
        ModelRole::Generator => bail!("generators are read from GGUF files and need no import"),
    };
    fs::create_dir_all(&out).with_context(|| format!("can't create {}", out.display()))?;
    for name in TOKENIZER_FILES {
        if beside.join(name).is_file() && !out.join(name).exists() {
            fs::copy(beside.join(name), out.join(name))
                .with_context(|| format!("can't copy {name} to {}", out.display()))?;
        }
    }
    if !out.join(TOKENIZER_FILES[0]).is_file() {
        report::line(&format!(
            "note: there is no tokenizer.json beside {}; put one into {}",
            onnx.display(),
            out.display()
        ));
    }
    let imported = import_onnx(&onnx, &out, &kind)?;
    println!(
        "{}: {} tensors from the ONNX file with SHA-256 {}",
        out.display(),
        imported.tensors,
        imported.source_sha256
    );
    for name in &imported.files {
        let path = out.join(name);
        println!("{}  {}  {name}", hash_file(&path, &mut |_| {})?, fs::metadata(&path)?.len());
    }
    Ok(())
}

/// What the command line says about pooling; `None` if it says nothing.
fn sentence_facts(arguments: &mut Arguments) -> Result<Option<SentenceFacts>> {
    let pooling = arguments.option("--pooling")?;
    let normalize = arguments.flag("--normalize");
    let query_prefix = arguments.option("--query-prefix")?;
    let document_prefix = arguments.option("--document-prefix")?;
    let max_tokens = arguments.option("--max-tokens")?;
    let Some(pooling) = pooling else {
        let others = normalize || query_prefix.is_some() || document_prefix.is_some() || max_tokens.is_some();
        if others {
            bail!("--pooling is missing: the other facts of an embedder go with it");
        }
        return Ok(None);
    };
    let pooling = match pooling.as_str() {
        "cls" => Pooling::Cls,
        "mean" => Pooling::Mean,
        "max" => Pooling::Max,
        other => bail!("`{other}` is not a pooling; known: cls, mean, max"),
    };
    let max_tokens = max_tokens.map(|number| number.parse().context("--max-tokens needs a number")).transpose()?;
    let (query_prefix, document_prefix) = (query_prefix.unwrap_or_default(), document_prefix.unwrap_or_default());
    Ok(Some(SentenceFacts { pooling, normalize, max_tokens, query_prefix, document_prefix, lower_case: false }))
}

/// From the command line, the files of sentence-transformers beside the ONNX file, or the list of known models.
fn facts_for(onnx: &Path, beside: &Path, said: Option<SentenceFacts>) -> Result<SentenceFacts> {
    if let Some(facts) = said {
        return Ok(facts);
    }
    if beside.join("modules.json").is_file() || beside.join("1_Pooling").is_dir() {
        return Ok(SentenceFacts::read(beside)?);
    }
    let sha256 = hash_file(onnx, &mut |_| {})?;
    let known = Manifest::built_in().models().iter().filter_map(|model| model.import.as_ref());
    let facts = known.filter(|import| import.sha256 == sha256).find_map(|import| import.sentence.clone());
    facts.with_context(|| {
        format!(
            "nothing beside {} says how token vectors become one; say it with --pooling cls|mean|max [--normalize]",
            onnx.display()
        )
    })
}
