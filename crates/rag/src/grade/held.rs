//! Do the passages hold the answer at all? Read from the generator's own state, before it writes a word.
//!
//! A small model answers a question that its passages don't answer, and refuses one that they do. Between its layers the two
//! lie apart all the same, along a direction that can be learned from examples (Slobodkin et al. 2023, "The Curious Case of
//! Hallucinatory (Un)answerability"; probes of this kind: Alain and Bengio 2016).

use serde::{Deserialize, Serialize};

use super::sigmoid;

/// Logistic regression on the state of a generator's last token, behind the question that an answer is written to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// The model that it was fitted on.
    pub model: String,
    /// The layer whose state it reads, counted from 0.
    pub layer: usize,
    /// What is added.
    pub bias: f32,
    /// A weight for each component of the state.
    pub weights: Vec<f32>,
}

impl Probe {
    /// Reads a probe from JSON; the model it was fitted on must be `model`.
    ///
    /// # Errors
    /// A line that says what is wrong.
    pub fn read(text: &str, model: &str) -> Result<Self, String> {
        let probe: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if probe.model != model {
            return Err(format!("it was fitted on {}, and the generator is {model}", probe.model));
        }
        if probe.weights.is_empty() || !probe.weights.iter().chain([&probe.bias]).all(|x| x.is_finite()) {
            return Err("its weights are no numbers".to_owned());
        }
        Ok(probe)
    }

    /// Probability that the passages hold the answer; `None` if the state is that of another model.
    #[must_use]
    pub fn probability(&self, state: &[f32]) -> Option<f32> {
        if state.len() != self.weights.len() || state.iter().any(|x| !x.is_finite()) {
            return None;
        }
        let sum: f64 = state.iter().zip(&self.weights).map(|(x, weight)| f64::from(*x) * f64::from(*weight)).sum();
        Some(sigmoid(sum as f32 + self.bias))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m20_a_probe_reads_states_of_its_own_model_only() {
        let probe = Probe { model: "m".to_owned(), layer: 1, bias: -1.0, weights: vec![2.0, 0.0, -1.0] };
        let held = probe.probability(&[2.0, 9.0, 0.0]).expect("of its width");
        assert!((held - 1.0 / (1.0 + (-3.0f32).exp())).abs() < 1e-6);
        assert!(probe.probability(&[0.0, 0.0, 5.0]).expect("of its width") < 0.01);
        assert_eq!(probe.probability(&[1.0, 2.0]), None);
        assert_eq!(probe.probability(&[1.0, f32::NAN, 2.0]), None);
    }

    #[test]
    fn m20_a_probe_of_another_model_or_without_numbers_is_refused() {
        let text = |weights: &str| format!("{{\"model\": \"m\", \"layer\": 3, \"bias\": 0.5, \"weights\": {weights}}}");
        assert_eq!(Probe::read(&text("[1, -2.5]"), "m").expect("whole").weights, [1.0, -2.5]);
        assert!(Probe::read(&text("[1]"), "other").is_err_and(|error| error.contains("fitted on m")));
        assert!(Probe::read(&text("[]"), "m").is_err() && Probe::read(&text("[1e99]"), "m").is_err());
        assert!(Probe::read("{}", "m").is_err());
    }
}
