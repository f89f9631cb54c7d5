//! What was learned about the states of known generators: see `models/probes/`.

/// The probe for whether passages hold an answer, for the generator named `model`, as JSON; `None` if none was fitted.
#[must_use]
pub fn probe(model: &str) -> Option<&'static str> {
    match model {
        "Qwen2.5-Coder-1.5B-Instruct" => Some(include_str!("../../../models/probes/Qwen2.5-Coder-1.5B-Instruct.json")),
        _ => None,
    }
}
