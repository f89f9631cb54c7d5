//! Logistic regression with a ridge, solved among the features or among the examples, whichever are fewer.

/// A fitted model: the log-odds of a row are `bias + Σ weight · x`.
#[derive(Clone, Debug, PartialEq)]
pub struct Logistic {
    /// A weight for each feature.
    pub weights: Vec<f64>,
    /// What is added.
    pub bias: f64,
}

/// Steps of Newton's method at most; it has come to rest long before.
const STEPS: usize = 50;
/// Least curvature of an example, so that those that are certain don't leave the equations without a solution.
const LEAST_CURVATURE: f64 = 1e-3;

impl Logistic {
    /// Fits by iteratively reweighted least squares, in the dual where there are more features than examples (Hastie,
    /// Tibshirani and Friedman, *The Elements of Statistical Learning*, 4.4 and 18.3.5). Features are brought to mean 0 and
    /// deviation 1/√features first, so that `ridge` means the same for any number of them; the model is given back in the
    /// features' own units.
    ///
    /// Where there is a model `from` earlier examples, what departs from it is fitted, and it is departing that `ridge` makes
    /// dear: what was learned before goes on counting, though its examples are gone.
    ///
    /// # Panics
    /// If the rows are of different lengths (or not of that of `from`), or not as many as labels.
    #[must_use]
    pub fn fit(rows: &[&[f32]], labels: &[bool], ridge: f64, from: Option<&Self>) -> Self {
        assert_eq!(rows.len(), labels.len(), "a label for each row");
        let (count, features) = (rows.len(), rows.first().map_or(0, |row| row.len()));
        assert!(rows.iter().all(|row| row.len() == features), "rows of one length");
        assert!(from.is_none_or(|from| rows.is_empty() || from.weights.len() == features), "a weight for each feature");
        let before: Vec<f64> = rows.iter().map(|row| from.map_or(0.0, |from| from.log_odds(row))).collect();
        let (mean, scale) = spread(rows, features);
        let scaled: Vec<Vec<f64>> = rows
            .iter()
            .map(|row| (0..features).map(|at| (f64::from(row[at]) - mean[at]) * scale[at]).collect())
            .collect();
        let (mut weights, bias) = if features < count {
            among_features(&scaled, labels, &before, ridge)
        } else {
            among_examples(&scaled, labels, &before, ridge)
        };
        weights.iter_mut().zip(&scale).for_each(|(weight, scale)| *weight *= scale);
        let mut bias = bias - dot(&weights, &mean);
        if let Some(from) = from {
            weights.iter_mut().zip(&from.weights).for_each(|(weight, before)| *weight += before);
            bias += from.bias;
        }
        Self { weights, bias }
    }

    /// Log-odds of a row.
    #[must_use]
    pub fn log_odds(&self, row: &[f32]) -> f64 {
        self.bias + row.iter().zip(&self.weights).map(|(x, weight)| f64::from(*x) * weight).sum::<f64>()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// What a sum of log-odds says of an example, its curvature, and how far it is from the truth in units of that.
fn step(sum: f64, truth: bool) -> (f64, f64) {
    let said = 1.0 / (1.0 + (-sum).exp());
    let curvature = (said * (1.0 - said)).max(LEAST_CURVATURE);
    (curvature, (f64::from(u8::from(truth)) - said) / curvature)
}

/// Weights and bias, by equations in as many unknowns as there are features.
fn among_features(rows: &[Vec<f64>], labels: &[bool], before: &[f64], ridge: f64) -> (Vec<f64>, f64) {
    let features = rows.first().map_or(0, Vec::len);
    // The bias is the last weight, and costs nothing.
    let mut weights = vec![0.0; features + 1];
    for _ in 0..STEPS {
        let mut system = vec![vec![0.0; features + 2]; features + 1];
        (0..features).for_each(|at| system[at][at] = ridge);
        for ((row, truth), before) in rows.iter().zip(labels).zip(before) {
            let sum = dot(row, &weights[..features]) + weights[features];
            let (curvature, missed) = step(sum + before, *truth);
            let value = |at: usize| row.get(at).copied().unwrap_or(1.0);
            for (at, equation) in system.iter_mut().enumerate() {
                let share = curvature * value(at);
                (0..=features).for_each(|other| equation[other] += share * value(other));
                equation[features + 1] += share * (sum + missed);
            }
        }
        let solved = solve(system);
        let moved = solved.iter().zip(&weights).map(|(new, old)| (new - old).abs()).fold(0.0, f64::max);
        weights = solved;
        if moved < 1e-6 {
            break;
        }
    }
    let bias = weights.pop().unwrap_or_default();
    (weights, bias)
}

/// The same by equations in as many unknowns as there are examples.
fn among_examples(rows: &[Vec<f64>], labels: &[bool], before: &[f64], ridge: f64) -> (Vec<f64>, f64) {
    let count = rows.len();
    let kernel: Vec<Vec<f64>> = rows.iter().map(|a| rows.iter().map(|b| dot(a, b)).collect()).collect();
    let (mut dual, mut bias) = (vec![0.0; count], 0.0);
    for _ in 0..STEPS {
        let mut system = vec![vec![0.0; count + 2]; count + 1];
        for at in 0..count {
            let sum = dot(&kernel[at], &dual) + bias;
            let (curvature, missed) = step(sum + before[at], labels[at]);
            system[at][..count].copy_from_slice(&kernel[at]);
            system[at][at] += ridge / curvature;
            system[at][count] = 1.0;
            system[at][count + 1] = sum + missed;
            system[count][at] = 1.0;
        }
        let solved = solve(system);
        let moved = solved[..count].iter().zip(&dual).map(|(new, old)| (new - old).abs()).fold(0.0, f64::max);
        dual.copy_from_slice(&solved[..count]);
        bias = solved[count];
        if moved < 1e-6 {
            break;
        }
    }
    let features = rows.first().map_or(0, Vec::len);
    let weights =
        (0..features).map(|at| rows.iter().zip(&dual).map(|(row, share)| row[at] * share).sum::<f64>()).collect();
    (weights, bias)
}

/// Log-odds of each row by a model that was fitted (`from` another, where there is one) without it, and without all others
/// of its group: groups are dealt into `folds` in turn.
///
/// # Panics
/// If rows, labels and groups are not of one number.
#[must_use]
pub fn cross_validated(
    rows: &[&[f32]],
    labels: &[bool],
    groups: &[usize],
    (ridge, from): (f64, Option<&Logistic>),
    folds: usize,
) -> Vec<f64> {
    assert_eq!(rows.len(), groups.len(), "a group for each row");
    let mut said = vec![0.0; rows.len()];
    for fold in 0..folds {
        let others = (0..rows.len()).filter(|&at| groups[at] % folds != fold);
        let (known, truth): (Vec<&[f32]>, Vec<bool>) = others.map(|at| (rows[at], labels[at])).unzip();
        let model = Logistic::fit(&known, &truth, ridge, from);
        for at in (0..rows.len()).filter(|&at| groups[at] % folds == fold) {
            said[at] = model.log_odds(rows[at]);
        }
    }
    said
}

/// The features' means, and what brings their deviations to 1/√features.
fn spread(rows: &[&[f32]], features: usize) -> (Vec<f64>, Vec<f64>) {
    let count = rows.len().max(1) as f64;
    let mean: Vec<f64> =
        (0..features).map(|at| rows.iter().map(|row| f64::from(row[at])).sum::<f64>() / count).collect();
    let scale = (0..features)
        .map(|at| {
            let square = rows.iter().map(|row| (f64::from(row[at]) - mean[at]).powi(2)).sum::<f64>() / count;
            1.0 / ((square.sqrt() + 1e-6) * (features as f64).sqrt())
        })
        .collect();
    (mean, scale)
}

/// Solves linear equations by elimination with pivots; the right side is the last column.
fn solve(mut system: Vec<Vec<f64>>) -> Vec<f64> {
    let count = system.len();
    for column in 0..count {
        let size = |row: &usize| system[*row][column].abs();
        let pivot = (column..count).max_by(|a, b| size(a).total_cmp(&size(b))).unwrap_or(column);
        system.swap(column, pivot);
        let (above, below) = system.split_at_mut(column + 1);
        let lead = &above[column];
        for row in below {
            let factor = row[column] / lead[column];
            if factor != 0.0 {
                row[column..].iter_mut().zip(&lead[column..]).for_each(|(x, lead)| *x -= factor * lead);
            }
        }
    }
    let mut solved = vec![0.0; count];
    for row in (0..count).rev() {
        let known: f64 = (row + 1..count).map(|at| system[row][at] * solved[at]).sum();
        solved[row] = (system[row][count] - known) / system[row][row];
    }
    solved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auroc;

    /// Numbers that look random.
    fn noise(seed: &mut u64) -> f32 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    fn examples(count: usize, features: usize) -> (Vec<Vec<f32>>, Vec<bool>) {
        let mut seed = 5;
        (0..count)
            .map(|at| {
                let label = at % 3 == 0;
                let mut row: Vec<f32> = (0..features).map(|_| 40.0 + 9.0 * noise(&mut seed)).collect();
                row[7] += if label { 12.0 } else { -12.0 };
                row[1] -= if label { 12.0 } else { -12.0 };
                (row, label)
            })
            .unzip()
    }

    #[test]
    fn what_tells_two_kinds_apart_is_found_among_many_features() {
        let (rows, labels) = examples(120, 300);
        let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
        let model = Logistic::fit(&rows[..90], &labels[..90], 0.1, None);
        let strongest = (0..300).max_by(|&a, &b| model.weights[a].abs().total_cmp(&model.weights[b].abs()));
        assert!(matches!(strongest, Some(1 | 7)), "{strongest:?}");
        let said: Vec<(f64, bool)> =
            rows[90..].iter().zip(&labels[90..]).map(|(row, label)| (model.log_odds(row), *label)).collect();
        assert!(auroc(&said).expect("both kinds") > 0.9, "{said:?}");
        let alone: Vec<usize> = (0..rows.len()).collect();
        let held_out = cross_validated(&rows, &labels, &alone, (0.1, None), 5);
        let said: Vec<(f64, bool)> = held_out.into_iter().zip(labels.iter().copied()).collect();
        assert!(auroc(&said).expect("both kinds") > 0.9);
        // What has no sign is not made one: labels dealt by chance are told no better than by chance.
        let chance: Vec<bool> = (0..120).map(|at| (at * 7919) % 13 < 6).collect();
        let said: Vec<(f64, bool)> =
            cross_validated(&rows, &chance, &alone, (0.1, None), 5).into_iter().zip(chance).collect();
        assert!((auroc(&said).expect("both kinds") - 0.5).abs() < 0.17, "{:?}", auroc(&said));
    }

    #[test]
    fn what_was_learned_before_goes_on_counting() {
        let (rows, labels) = examples(120, 300);
        let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
        let area = |model: &Logistic| {
            let said: Vec<(f64, bool)> =
                rows[90..].iter().zip(&labels[90..]).map(|(row, label)| (model.log_odds(row), *label)).collect();
            auroc(&said).expect("both kinds")
        };
        let first = Logistic::fit(&rows[..60], &labels[..60], 0.1, None);
        // Few more examples, alone, and on top of those before.
        let alone = Logistic::fit(&rows[60..72], &labels[60..72], 0.1, None);
        let further = Logistic::fit(&rows[60..90], &labels[60..90], 0.3, Some(&first));
        assert!(area(&further) > area(&alone) && area(&further) >= area(&first), "{} {}", area(&further), area(&alone));
        // Where departing is too dear, all stays as it was, but for what is added to every row alike.
        let same = Logistic::fit(&rows[60..90], &labels[60..90], 1e9, Some(&first));
        assert!(same.weights.iter().zip(&first.weights).all(|(a, b)| (a - b).abs() < 1e-6));
    }

    #[test]
    fn both_ways_come_to_the_same() {
        let (rows, labels) = examples(40, 30);
        let rows: Vec<Vec<f64>> =
            rows.iter().map(|row| row.iter().map(|x| (f64::from(*x) - 40.0) / 50.0).collect()).collect();
        let before: Vec<f64> = (0..40).map(|at| f64::from(at % 5) / 4.0).collect();
        let (a, a_bias) = among_features(&rows, &labels, &before, 0.3);
        let (b, b_bias) = among_examples(&rows, &labels, &before, 0.3);
        assert!((a_bias - b_bias).abs() < 1e-4, "{a_bias} {b_bias}");
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-4), "{a:?} {b:?}");
    }

    #[test]
    fn equations_are_solved() {
        let solved = solve(vec![vec![0.0, 2.0, 4.0], vec![3.0, 1.0, 5.0]]);
        assert!((solved[0] - 1.0).abs() < 1e-12 && (solved[1] - 2.0).abs() < 1e-12);
    }
}
