//! The next token from the logits.

use anchorite_core::GenerateOptions;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Draws tokens; greedy where the temperature is 0.
pub(crate) struct Sampler {
    temperature: f32,
    top_p: f32,
    top_k: usize,
    min_p: f32,
    repetition_penalty: f32,
    random: StdRng,
}

impl Sampler {
    pub(crate) fn new(options: &GenerateOptions) -> Self {
        Self {
            temperature: options.temperature,
            top_p: options.top_p,
            top_k: options.top_k,
            min_p: options.min_p,
            repetition_penalty: options.repetition_penalty,
            random: StdRng::seed_from_u64(options.seed),
        }
    }

    /// The next token after `seen`. `None` if a logit is NaN or none is finite.
    pub(crate) fn next(&mut self, logits: &mut [f32], seen: &[u32]) -> Option<u32> {
        if logits.iter().any(|x| x.is_nan()) {
            return None;
        }
        if (self.repetition_penalty - 1.0).abs() > f32::EPSILON {
            let mut penalised = vec![false; logits.len()];
            for &token in seen {
                let index = token as usize;
                if index < logits.len() && !std::mem::replace(&mut penalised[index], true) {
                    let x = logits[index];
                    logits[index] = if x > 0.0 { x / self.repetition_penalty } else { x * self.repetition_penalty };
                }
            }
        }
        let (best, &highest) = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)))?;
        if !highest.is_finite() {
            return None;
        }
        if self.temperature <= 0.0 {
            return Some(best as u32);
        }
        let mut candidates: Vec<(u32, f32)> = logits
            .iter()
            .enumerate()
            .map(|(token, &x)| (token as u32, ((x - highest) / self.temperature).exp()))
            .collect();
        candidates.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        if self.top_k > 0 {
            candidates.truncate(self.top_k);
        }
        // The most probable one has the weight 1.
        let kept = candidates.partition_point(|(_, weight)| *weight >= self.min_p);
        candidates.truncate(kept.max(1));
        let total: f32 = candidates.iter().map(|(_, weight)| weight).sum();
        if self.top_p < 1.0 {
            let mut mass = 0.0;
            let kept = candidates
                .iter()
                .position(|(_, weight)| {
                    mass += weight / total;
                    mass >= self.top_p
                })
                .map_or(candidates.len(), |last| last + 1);
            candidates.truncate(kept);
        }
        let total: f32 = candidates.iter().map(|(_, weight)| weight).sum();
        let mut draw = self.random.random::<f32>() * total;
        for &(token, weight) in &candidates {
            draw -= weight;
            if draw <= 0.0 {
                return Some(token);
            }
        }
        candidates.last().map(|&(token, _)| token)
    }
}

/// Logarithms of the softmax of `logits`.
pub(crate) fn log_softmax(logits: &[f32]) -> Vec<f32> {
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&x| f64::from(x - highest).exp()).sum();
    let log_sum = sum.ln() as f32 + highest;
    logits.iter().map(|x| x - log_sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greedy_takes_the_first_of_the_highest() {
        let mut greedy = Sampler::new(&GenerateOptions::default());
        assert_eq!(greedy.next(&mut [0.0, 3.0, 3.0, -1.0], &[]), Some(1));
    }

    #[test]
    fn f21_logits_that_are_not_numbers_are_refused() {
        let mut greedy = Sampler::new(&GenerateOptions::default());
        assert_eq!(greedy.next(&mut [0.0, f32::NAN], &[]), None);
        assert_eq!(greedy.next(&mut [f32::NEG_INFINITY; 3], &[]), None);
    }

    #[test]
    fn the_same_seed_draws_the_same_tokens_within_the_nucleus() {
        let options = GenerateOptions { temperature: 1.0, top_p: 0.8, seed: 7, ..GenerateOptions::default() };
        let (mut one, mut two) = (Sampler::new(&options), Sampler::new(&options));
        for _ in 0..200 {
            let logits = [2.0_f32, 1.9, -8.0, -9.0];
            let token = one.next(&mut logits.clone(), &[]);
            assert_eq!(token, two.next(&mut logits.clone(), &[]));
            assert!(token < Some(2), "outside the nucleus: {token:?}");
        }
    }

    #[test]
    fn tokens_far_below_the_most_probable_one_are_left_out() {
        let options = GenerateOptions { temperature: 1.0, min_p: 0.3, ..GenerateOptions::default() };
        let mut sampler = Sampler::new(&options);
        let mut drawn = [0; 4];
        for _ in 0..500 {
            // e⁻¹ of the first is within 0.3 of it, e⁻¹·⁵ is not.
            let token = sampler.next(&mut [1.0, 2.0, 0.5, -3.0], &[]).expect("draws");
            drawn[token as usize] += 1;
        }
        assert!(drawn[0] > 50 && drawn[1] > 200 && drawn[2] == 0 && drawn[3] == 0, "{drawn:?}");
    }

    #[test]
    fn the_penalty_counts_a_token_once() {
        let options = GenerateOptions { repetition_penalty: 2.0, ..GenerateOptions::default() };
        let mut logits = [4.0, 1.9, -1.0];
        assert_eq!(Sampler::new(&options).next(&mut logits, &[0, 0, 2]), Some(0));
        assert_eq!(logits, [2.0, 1.9, -2.0]);
    }

    #[test]
    fn log_softmax_sums_to_one() {
        let sum: f32 = log_softmax(&[1.0, 2.0, 30.0]).iter().map(|x| x.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-5);
    }
}
