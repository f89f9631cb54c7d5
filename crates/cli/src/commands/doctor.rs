//! `anchorite doctor`

use anchorite::{Engine, ModelRole, threads};
use anyhow::Result;
use serde::Serialize;

use crate::Found;
use crate::output::Output;

#[derive(Serialize)]
struct Check {
    what: String,
    good: bool,
    finding: String,
}

pub(crate) fn run(engine: &Engine, output: &Output) -> Result<Found> {
    let mut checks = vec![
        Check {
            what: "machine".to_owned(),
            good: true,
            finding: format!("{} {}, {} threads", std::env::consts::OS, std::env::consts::ARCH, threads()),
        },
        memory(),
    ];
    for role in ModelRole::ALL {
        checks.push(model(engine, role));
    }
    let healthy = checks.iter().all(|check| check.good);
    if output.json {
        output.document(&serde_json::json!({ "healthy": healthy, "checks": checks }))?;
    } else {
        for check in &checks {
            output.line(format_args!(
                "{} {:<10} {}",
                if check.good { "ok " } else { "BAD" },
                check.what,
                check.finding
            ))?;
        }
    }
    Ok(if healthy { Found::Yes } else { Found::No })
}

fn memory() -> Check {
    let finding = match anchorite::model_files::available_memory() {
        Some(bytes) => format!("{} MiB free", bytes >> 20),
        None => "unknown on this system".to_owned(),
    };
    Check { what: "memory".to_owned(), good: true, finding }
}

/// A model is good if it can be found and opened, which reads and checks all of it.
fn model(engine: &Engine, role: ModelRole) -> Check {
    let opened = match role {
        ModelRole::Embedder => engine.models().embedder().map(|_| true),
        ModelRole::Reranker => engine.models().reranker().map(|model| model.is_some()),
        ModelRole::Generator => engine.models().generator().map(|model| model.is_some()),
    };
    let (good, finding) = match opened {
        Ok(true) => {
            let model = engine.models().in_use().into_iter().find(|model| model.role == role);
            (true, model.map_or_else(String::new, |m| format!("{} on {} ({})", m.name, m.device, m.sha256)))
        }
        Ok(false) => (false, "missing, or larger than the free memory; run `cargo xtask setup`".to_owned()),
        Err(error) => (false, error.to_string()),
    };
    Check { what: role.to_string(), good, finding }
}
