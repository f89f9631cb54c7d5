//! Values of Rust types from a generator: the type says what may be written.

use std::ops::ControlFlow;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::{Budget, Constraint, GenerateOptions, Generator, InferenceError, Prompt};

impl Constraint {
    /// JSON of a value of type `T`.
    #[must_use]
    pub fn of<T: JsonSchema>() -> Self {
        Self::JsonSchema(schemars::schema_for!(T).to_value().to_string())
    }
}

/// Has `generator` reply to `prompt` with a value of type `T`, which is whole within `options.max_tokens`.
///
/// # Errors
/// As [`Generator::generate`]; and if the type can't be written so.
pub fn generate_as<T: JsonSchema + DeserializeOwned>(
    generator: &dyn Generator,
    prompt: &Prompt,
    options: GenerateOptions,
    budget: &Budget,
) -> Result<T, InferenceError> {
    let options = options.constrained(Constraint::of::<T>());
    let written = generator.generate(prompt, &options, budget, &mut |_| ControlFlow::Continue(()))?;
    serde_json::from_str(&written.text)
        .map_err(|error| InferenceError::Constraint { problem: format!("what was written is no such value: {error}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, JsonSchema)]
    #[schemars(crate = "schemars")]
    #[allow(dead_code, reason = "only its shape is asked for")]
    struct Verdict {
        supported: bool,
        missing: Vec<String>,
    }

    #[test]
    fn m20_a_type_derives_its_schema() {
        let Constraint::JsonSchema(schema) = Constraint::of::<Verdict>() else { panic!("a schema") };
        let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
        assert_eq!(schema["properties"]["supported"]["type"], "boolean");
        assert_eq!(schema["properties"]["missing"]["items"]["type"], "string");
        assert_eq!(schema["required"], serde_json::json!(["supported", "missing"]));
    }
}
