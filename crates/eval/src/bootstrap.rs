//! How far a mean can be trusted: the percentile bootstrap (Efron 1979) over queries.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;

/// Samples drawn; enough that the ends of a 95 % interval move by less than a point.
const RESAMPLES: usize = 1_000;

/// The seed is fixed: the same values give the same interval.
const SEED: u64 = 41;

/// A mean, and the interval that holds 95 % of the means of samples drawn with replacement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// The 2.5th percentile.
    pub low: f64,
    /// The 97.5th percentile.
    pub high: f64,
}

/// The mean of `values` with its interval; zeros if there are none.
#[must_use]
pub fn mean_with_interval(values: &[f64]) -> Interval {
    if values.is_empty() {
        return Interval::default();
    }
    let count = values.len();
    let mean = values.iter().sum::<f64>() / count as f64;
    let mut random = StdRng::seed_from_u64(SEED);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| (0..count).map(|_| values[random.random_range(0..count)]).sum::<f64>() / count as f64)
        .collect();
    means.sort_by(f64::total_cmp);
    Interval { mean, low: means[RESAMPLES / 40], high: means[RESAMPLES - 1 - RESAMPLES / 40] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m41_the_interval_is_that_of_the_normal_approximation_for_many_values() {
        let values: Vec<f64> = (0..400).map(|index| f64::from(index % 2)).collect();
        let interval = mean_with_interval(&values);
        // The mean of 400 fair coins deviates by 0.025; 1.96 of these on each side.
        assert_eq!(interval.mean, 0.5);
        assert!((interval.low - 0.451).abs() < 0.008 && (interval.high - 0.549).abs() < 0.008, "{interval:?}");
        assert_eq!(interval, mean_with_interval(&values), "the seed is fixed");
    }

    #[test]
    fn equal_values_leave_no_doubt() {
        assert_eq!(mean_with_interval(&[0.25; 9]), Interval { mean: 0.25, low: 0.25, high: 0.25 });
        assert_eq!(mean_with_interval(&[]), Interval::default());
    }
}
