//! `anchorite graph`

use anchorite::{Strategy, strategy_graph};
use anyhow::Result;
use serde_json::json;

use crate::Found;
use crate::arguments::{Graph, GraphFormat};
use crate::output::Output;

pub(crate) fn run(arguments: &Graph, output: &Output) -> Result<Found> {
    let strategy: Strategy = arguments.strategy.parse()?;
    let (mermaid, dot) = strategy_graph(strategy)?;
    let drawing = match arguments.format {
        GraphFormat::Mermaid => mermaid,
        GraphFormat::Dot => dot,
    };
    if output.json {
        output.document(&json!({ "strategy": strategy.name(), "drawing": drawing }))?;
    } else {
        output.line(drawing.trim_end())?;
    }
    Ok(Found::Yes)
}
