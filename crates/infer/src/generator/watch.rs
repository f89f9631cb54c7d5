//! Looking at what a token comes to between the layers.

/// The layers that are looked at, and the state of the last token after each of them.
pub(super) struct Watch<'a> {
    layers: &'a [usize],
    states: Vec<Vec<f32>>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(layers: &'a [usize]) -> Self {
        Self { layers, states: vec![Vec::new(); layers.len()] }
    }

    pub(super) fn wants(&self, layer: usize) -> bool {
        self.layers.contains(&layer)
    }

    /// Of several passes the last one counts.
    pub(super) fn note(&mut self, layer: usize, state: &[f32]) {
        for (wanted, slot) in self.layers.iter().zip(&mut self.states) {
            if *wanted == layer {
                slot.clear();
                slot.extend_from_slice(state);
            }
        }
    }

    /// One state for each layer; `None` if the model lacks one of them.
    pub(super) fn states(self) -> Option<Vec<Vec<f32>>> {
        self.states.iter().all(|state| !state.is_empty()).then_some(self.states)
    }
}
