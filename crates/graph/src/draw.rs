//! Drawing a graph or a path: Mermaid (<https://mermaid.js.org/syntax/flowchart.html>) and Graphviz.
//!
//! The same graph always gives the same text: nodes and labels come in the order in which they were added.

use std::fmt::Write;

use anchorite_core::StepRecord;

use crate::State;
use crate::graph::{END, Graph, Target};

impl<S: State> Graph<'_, S> {
    /// The graph as a Mermaid flowchart. Nodes that guard a cycle are hexagons.
    #[must_use]
    pub fn mermaid(&self) -> String {
        let mut lines = vec![
            "---".to_owned(),
            // A JSON string is a YAML string.
            format!("title: {}", serde_json::Value::from(self.name.as_str())),
            "---".to_owned(),
            "flowchart TD".to_owned(),
            "    start([START])".to_owned(),
        ];
        for (index, node) in self.nodes.iter().enumerate() {
            let name = mermaid_text(&node.name);
            lines.push(if node.guarded {
                format!("    n{index}{{{{\"{name}\"}}}}")
            } else {
                format!("    n{index}[\"{name}\"]")
            });
        }
        lines.push("    finish([END])".to_owned());
        lines.push(format!("    start --> n{}", self.entry));
        for (index, label, target) in self.edges() {
            let target = identifier(target);
            lines.push(match label {
                None => format!("    n{index} --> {target}"),
                Some(label) => format!("    n{index} -->|\"{}\"| {target}", mermaid_text(label)),
            });
        }
        lines.push(String::new());
        lines.join("\n")
    }

    /// The graph for Graphviz' `dot`. Nodes that guard a cycle are hexagons.
    #[must_use]
    pub fn dot(&self) -> String {
        let mut lines =
            vec![format!("digraph {} {{", dot_text(&self.name)), "    start [label=\"START\", shape=oval];".to_owned()];
        for (index, node) in self.nodes.iter().enumerate() {
            let shape = if node.guarded { "hexagon" } else { "box" };
            lines.push(format!("    n{index} [label={}, shape={shape}];", dot_text(&node.name)));
        }
        lines.push("    finish [label=\"END\", shape=oval];".to_owned());
        lines.push(format!("    start -> n{};", self.entry));
        for (index, label, target) in self.edges() {
            let target = identifier(target);
            lines.push(match label {
                None => format!("    n{index} -> {target};"),
                Some(label) => format!("    n{index} -> {target} [label={}];", dot_text(label)),
            });
        }
        lines.push("}".to_owned());
        lines.push(String::new());
        lines.join("\n")
    }

    fn edges(&self) -> impl Iterator<Item = (usize, Option<&'static str>, Target)> {
        self.nodes.iter().enumerate().flat_map(|(index, node)| {
            node.exit.targets().into_iter().map(move |(label, target)| (index, label, target))
        })
    }
}

fn identifier(target: Target) -> String {
    match target {
        Target::Node(index) => format!("n{index}"),
        Target::End => "finish".to_owned(),
    }
}

/// Text between double quotes. Mermaid has no backslash; it reads `#NUMBER;` as a character, and Markdown and HTML as such.
fn mermaid_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '#' | '<' | '>' | '&' | '`' | '*' | '\\' | ';' | '|' => {
                // Writing to a string can't fail.
                let _ = write!(escaped, "#{};", u32::from(character));
            }
            control if control.is_control() => escaped.push(' '),
            plain => escaped.push(plain),
        }
    }
    escaped
}

fn dot_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 2);
    escaped.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => escaped.extend(['\\', character]),
            control if control.is_control() => escaped.push(' '),
            plain => escaped.push(plain),
        }
    }
    escaped.push('"');
    escaped
}

/// One numbered line a step: node, decision, note, time.
pub(crate) fn trace(path: &[StepRecord]) -> String {
    let mut text = String::new();
    for (index, step) in path.iter().enumerate() {
        let _ = write!(text, "{:>3}. {}", index + 1, step.node);
        if let Some(decision) = &step.decision {
            let _ = write!(text, " -> {decision}");
        }
        if !step.note.is_empty() {
            let _ = write!(text, ": {}", step.note);
        }
        let _ = writeln!(text, " ({:.2} s)", step.seconds);
    }
    text
}

/// The steps as a chain, in which a node stands as often as it ran.
pub(crate) fn path_mermaid(path: &[StepRecord], next: &str) -> String {
    let mut lines = vec!["flowchart TD".to_owned(), "    start([START])".to_owned()];
    let mut edge = "    start -->".to_owned();
    for (index, step) in path.iter().enumerate() {
        let number = index + 1;
        lines.push(format!("{edge} s{number}[\"{number}. {}\"]", mermaid_text(&step.node)));
        edge = match &step.decision {
            None => format!("    s{number} -->"),
            Some(decision) => format!("    s{number} -->|\"{}\"|", mermaid_text(decision)),
        };
    }
    lines.push(if next == END {
        format!("{edge} finish([END])")
    } else {
        format!("{edge} stopped([\"stopped before {}\"])", mermaid_text(next))
    });
    lines.push(String::new());
    lines.join("\n")
}
