//! How good probabilities are: do they order right (AUROC), and do they mean what they say (calibration)?

use serde::Serialize;

/// Bins of the reliability table.
const BINS: usize = 10;

/// Area under the receiver operating characteristic: the probability that a true case scores higher than a false one,
/// ties counted half (Mann and Whitney 1947). `None` unless both kinds are there.
#[must_use]
pub fn auroc(scored: &[(f64, bool)]) -> Option<f64> {
    let positive = scored.iter().filter(|(_, truth)| *truth).count();
    let negative = scored.len() - positive;
    if positive == 0 || negative == 0 {
        return None;
    }
    let mut sorted: Vec<&(f64, bool)> = scored.iter().collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut ranks = 0.0;
    let mut start = 0;
    while start < sorted.len() {
        let ties = sorted[start..].iter().take_while(|(score, _)| *score == sorted[start].0).count();
        // Equal scores share the mean of the ranks they take up.
        let rank = start as f64 + (ties + 1) as f64 / 2.0;
        ranks += rank * sorted[start..start + ties].iter().filter(|(_, truth)| *truth).count() as f64;
        start += ties;
    }
    let (positive, negative) = (positive as f64, negative as f64);
    Some((ranks - positive * (positive + 1.0) / 2.0) / (positive * negative))
}

/// One row of a reliability table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// Least probability of the bin.
    pub from: f64,
    /// Most probability of the bin.
    pub to: f64,
    /// Cases in it.
    pub count: usize,
    /// Mean of what was said.
    pub said: f64,
    /// Share of them that were true.
    pub true_share: f64,
}

/// A reliability table with its summary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// Expected calibration error: mean distance between what was said and what was true, weighted by the bins' counts
    /// (Naeini, Cooper and Hauskrecht 2015), ten bins of equal width.
    pub expected_error: f64,
    /// The bins that hold cases.
    pub bins: Vec<Bin>,
}

/// The reliability of probabilities.
#[must_use]
pub fn calibration(scored: &[(f64, bool)]) -> Calibration {
    let mut bins = Vec::new();
    let mut error = 0.0;
    for index in 0..BINS {
        let inside: Vec<&(f64, bool)> = scored
            .iter()
            .filter(|(probability, _)| ((probability * BINS as f64) as usize).min(BINS - 1) == index)
            .collect();
        if inside.is_empty() {
            continue;
        }
        let count = inside.len() as f64;
        let said = inside.iter().map(|(probability, _)| probability).sum::<f64>() / count;
        let true_share = inside.iter().filter(|(_, truth)| *truth).count() as f64 / count;
        error += count * (said - true_share).abs();
        let (from, to) = (index as f64 / BINS as f64, (index + 1) as f64 / BINS as f64);
        bins.push(Bin { from, to, count: inside.len(), said, true_share });
    }
    Calibration { expected_error: if scored.is_empty() { 0.0 } else { error / scored.len() as f64 }, bins }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn m20_auroc_worked_out_by_hand() {
        assert_eq!(auroc(&[(0.9, true), (0.1, false)]), Some(1.0));
        assert_eq!(auroc(&[(0.1, true), (0.9, false)]), Some(0.0));
        assert_eq!(auroc(&[(0.5, true), (0.5, false)]), Some(0.5));
        // Of six pairs, true above false in four, equal in one.
        let scored = [(0.8, true), (0.4, true), (0.4, false), (0.2, false), (0.6, false)];
        assert_eq!(auroc(&scored), Some(4.5 / 6.0));
        assert_eq!(auroc(&[(0.3, true)]), None);
    }

    #[test]
    fn m20_calibration_worked_out_by_hand() {
        let scored = [(0.75, true), (0.75, false), (0.05, false), (1.0, true)];
        let table = calibration(&scored);
        assert_eq!(table.bins.len(), 3);
        // (2 · 0.25 + 1 · 0.05 + 1 · 0) / 4
        assert!((table.expected_error - 0.1375).abs() < 1e-12, "{table:?}");
        assert_eq!(calibration(&[]).expected_error, 0.0);
    }

    proptest! {
        #[test]
        fn m20_auroc_is_the_share_of_pairs_in_order(scored in prop::collection::vec((0u8..6, any::<bool>()), 2..30)) {
            let scored: Vec<(f64, bool)> = scored.iter().map(|&(score, truth)| (f64::from(score), truth)).collect();
            let mut sum = 0.0;
            let mut pairs = 0.0;
            for (yes, _) in scored.iter().filter(|(_, truth)| *truth) {
                for (no, _) in scored.iter().filter(|(_, truth)| !*truth) {
                    pairs += 1.0;
                    sum += if yes > no { 1.0 } else if yes == no { 0.5 } else { 0.0 };
                }
            }
            match auroc(&scored) {
                Some(area) => prop_assert!((area - sum / pairs).abs() < 1e-12),
                None => prop_assert_eq!(pairs, 0.0),
            }
        }
    }
}
