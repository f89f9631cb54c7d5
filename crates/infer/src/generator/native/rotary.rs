//! Rotary positions (Su et al. 2021).

/// The frequencies of the pairs of a head.
pub(super) struct Rotary {
    frequencies: Vec<f32>,
    interleaved: bool,
}

/// Cosines and sines `[tokens, pairs]`.
pub(super) struct Rotation {
    cos: Vec<f32>,
    sin: Vec<f32>,
    interleaved: bool,
}

impl Rotary {
    /// Heads of `dim` numbers; `factors` divide the frequencies one by one, `linear_factor` all of them. The two numbers of
    /// a pair are neighbours where they are `interleaved`, and half a head apart otherwise.
    pub(super) fn new(dim: usize, base: f32, linear_factor: f32, factors: Option<&[f32]>, interleaved: bool) -> Self {
        let frequencies = (0..dim / 2)
            .map(|pair| {
                let factor = factors.and_then(|factors| factors.get(pair)).copied().unwrap_or(1.0);
                1.0 / (base.powf((2 * pair) as f32 / dim as f32) * factor * linear_factor)
            })
            .collect();
        Self { frequencies, interleaved }
    }

    /// The rotation of `count` tokens from position `start` on.
    pub(super) fn at(&self, start: usize, count: usize) -> Rotation {
        let angles =
            (start..start + count).flat_map(|position| self.frequencies.iter().map(move |f| position as f32 * f));
        let (sin, cos) = angles.map(f32::sin_cos).unzip();
        Rotation { cos, sin, interleaved: self.interleaved }
    }
}

impl Rotation {
    /// Rotates all heads of `token`, which lie side by side in `x`.
    pub(super) fn apply(&self, token: usize, x: &mut [f32], dim: usize) {
        let pairs = dim / 2;
        let (cos, sin) = (&self.cos[token * pairs..][..pairs], &self.sin[token * pairs..][..pairs]);
        for head in x.chunks_exact_mut(dim) {
            if self.interleaved {
                for ((pair, cos), sin) in head.chunks_exact_mut(2).zip(cos).zip(sin) {
                    let (a, b) = (pair[0], pair[1]);
                    pair[0] = a * cos - b * sin;
                    pair[1] = a * sin + b * cos;
                }
            } else {
                let (first, second) = head.split_at_mut(pairs);
                for (((a, b), cos), sin) in first.iter_mut().zip(second).zip(cos).zip(sin) {
                    (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
                }
            }
        }
    }
}
