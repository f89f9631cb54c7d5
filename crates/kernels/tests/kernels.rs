//! Every kernel on every instruction set of this processor against plain loops in double precision, and against itself:
//! what a row gives may not depend on its neighbours.

use anchorite_kernels::{Buffer, ByteLinear, ByteRows, Finish, FloatLinear, Heads, Isa, attention, layer_norm};
use proptest::collection::vec;
use proptest::prelude::*;

fn config() -> ProptestConfig {
    ProptestConfig { cases: if cfg!(miri) { 3 } else { 64 }, failure_persistence: None, ..ProptestConfig::default() }
}

/// Sizes that fill tiles and panels, and sizes that don't.
fn size(most: usize) -> impl Strategy<Value = usize> {
    let most = if cfg!(miri) { most.min(20) } else { most };
    prop_oneof![1..=most, Just(1), Just(8.min(most)), Just(16.min(most)), Just(most)]
}

fn numbers(count: usize) -> impl Strategy<Value = Vec<f32>> {
    vec(prop_oneof![8 => -2.0f32..2.0, 1 => Just(0.0f32), 1 => -40.0f32..40.0], count)
}

/// `x·Wᵀ + b` for `[rows, inputs]`, `[outputs, inputs]`, `[outputs]`.
fn product(x: &[f32], weight: &[f32], bias: &[f32], inputs: usize) -> Vec<f64> {
    let mut out = Vec::new();
    for x in x.chunks_exact(inputs) {
        for (weight, bias) in weight.chunks_exact(inputs).zip(bias) {
            let products = x.iter().zip(weight).map(|(x, w)| f64::from(*x) * f64::from(*w));
            out.push(products.sum::<f64>() + f64::from(*bias));
        }
    }
    out
}

/// Sum of the magnitudes of the products of one row with one output: what errors are measured by.
fn magnitude(x: &[f32], weight: &[f32]) -> f64 {
    x.iter().zip(weight).map(|(x, w)| f64::from((x * w).abs())).sum()
}

#[derive(Debug, Clone)]
struct Case {
    inputs: usize,
    x: Vec<f32>,
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Case {
    fn rows(&self) -> usize {
        self.x.len() / self.inputs
    }
}

fn case() -> impl Strategy<Value = Case> {
    (size(30), size(100), size(150)).prop_flat_map(|(rows, inputs, outputs)| {
        (numbers(rows * inputs), numbers(outputs * inputs), numbers(outputs)).prop_map(move |(x, weight, bias)| Case {
            inputs,
            x,
            weight,
            bias,
        })
    })
}

fn bytes_forward(layer: &ByteLinear, isa: Isa, x: &[f32], finish: Finish, out: &mut [f32]) {
    let mut rows = ByteRows::default();
    rows.quantize(isa, x, layer.inputs());
    layer.forward(&rows, finish, out);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn float_products_are_right(case in case()) {
        let want = product(&case.x, &case.weight, &case.bias, case.inputs);
        for isa in Isa::available() {
            let layer = FloatLinear::new(isa, &case.weight, &case.bias, case.inputs);
            let mut out = vec![f32::NAN; want.len()];
            layer.forward(&case.x, Finish::Store, &mut out);
            for (index, (y, want)) in out.iter().zip(&want).enumerate() {
                let (row, output) = (index / case.bias.len(), index % case.bias.len());
                let scale = magnitude(&case.x[row * case.inputs..], &case.weight[output * case.inputs..][..case.inputs]);
                prop_assert!((f64::from(*y) - want).abs() <= 1e-5 * (scale + 1.0), "{isa}: {y}, not {want}");
            }
        }
    }

    #[test]
    fn byte_products_are_as_near_as_bytes_allow(case in case()) {
        let want = product(&case.x, &case.weight, &case.bias, case.inputs);
        for isa in Isa::available() {
            let layer = ByteLinear::new(isa, &case.weight, &case.bias, case.inputs);
            let mut out = vec![f32::NAN; want.len()];
            bytes_forward(&layer, isa, &case.x, Finish::Store, &mut out);
            for (index, (y, want)) in out.iter().zip(&want).enumerate() {
                let (row, output) = (index / case.bias.len(), index % case.bias.len());
                let x = &case.x[row * case.inputs..][..case.inputs];
                let weight = &case.weight[output * case.inputs..][..case.inputs];
                // Half a step of each activation times its weight, and half a step of each weight times its activation;
                // a weight's step is at most four times the 127th part of the greatest, where eight great ones meet.
                let step = (x.iter().fold(f32::MIN, |a, b| a.max(*b)) - x.iter().fold(f32::MAX, |a, b| a.min(*b))) / 127.0;
                let weight_step = weight.iter().fold(0.0f32, |a, b| a.max(b.abs())) / 127.0 * 4.02;
                let from_x = weight.iter().map(|w| w.abs() + weight_step).sum::<f32>() * step / 2.0;
                let from_weight = x.iter().map(|x| x.abs()).sum::<f32>() * weight_step / 2.0;
                let allowed = f64::from(from_x + from_weight) * 1.01 + 1e-4;
                prop_assert!((f64::from(*y) - want).abs() <= allowed, "{isa}: {y}, not {want} ± {allowed}");
            }
        }
    }

    #[test]
    fn a_row_gives_the_same_bits_alone_and_among_others(case in case()) {
        let outputs = case.bias.len();
        for isa in Isa::available() {
            let floats = FloatLinear::new(isa, &case.weight, &case.bias, case.inputs);
            let bytes = ByteLinear::new(isa, &case.weight, &case.bias, case.inputs);
            let mut together = [vec![0.0; case.rows() * outputs], vec![0.0; case.rows() * outputs]];
            floats.forward(&case.x, Finish::Gelu, &mut together[0]);
            bytes_forward(&bytes, isa, &case.x, Finish::Gelu, &mut together[1]);
            for (row, x) in case.x.chunks_exact(case.inputs).enumerate() {
                let mut alone = [vec![0.0; outputs], vec![0.0; outputs]];
                floats.forward(x, Finish::Gelu, &mut alone[0]);
                bytes_forward(&bytes, isa, x, Finish::Gelu, &mut alone[1]);
                for (alone, together) in alone.iter().zip(&together) {
                    let among = &together[row * outputs..][..outputs];
                    prop_assert!(alone.iter().zip(among).all(|(a, b)| a.to_bits() == b.to_bits()), "{isa}, row {row}");
                }
            }
        }
    }

    #[test]
    fn integers_are_exact_on_every_processor(
        (inputs, bytes, weights) in (size(200), size(12)).prop_flat_map(|(inputs, outputs)| {
            (Just(inputs), vec(0u8..=127, inputs), vec(-25i8..=25, outputs * inputs))
        })
    ) {
        // A row whose least byte is 0 and greatest 127, and weights whose greatest is 127, have the scale 1: the output is
        // the sum of the products of integers itself.
        let mut x: Vec<f32> = bytes.iter().map(|b| f32::from(*b)).collect();
        x.extend([0.0, 127.0]);
        let inputs = inputs + 2;
        let mut weight = Vec::new();
        for row in weights.chunks_exact(inputs - 2) {
            weight.extend(row.iter().map(|w| f32::from(*w)));
            weight.extend([127.0, 0.0]);
        }
        let outputs = weight.len() / inputs;
        let sums = product(&x, &weight, &vec![0.0; outputs], inputs);
        for isa in Isa::available() {
            let layer = ByteLinear::new(isa, &weight, &vec![0.0; outputs], inputs);
            let mut out = vec![0.0; outputs];
            bytes_forward(&layer, isa, &x, Finish::Store, &mut out);
            for ((y, want), weight) in out.iter().zip(&sums).zip(weight.chunks_exact(inputs)) {
                let meet = |at: &[usize]| -> (f32, f32) {
                    let weights = |start: usize| at.iter().map(move |i| weight.get(start + i).copied().unwrap_or(0.0));
                    (0..inputs).step_by(16).fold((0.0, 0.0), |(most, least), start| {
                        let up: f32 = weights(start).filter(|w| *w > 0.0).sum();
                        let down: f32 = weights(start).filter(|w| *w < 0.0).sum();
                        (f32::max(most, up), f32::min(least, down))
                    })
                };
                let first = meet(&[0, 1, 4, 5, 8, 9, 12, 13]);
                let second = meet(&[2, 3, 6, 7, 10, 11, 14, 15]);
                if first.0.max(second.0) <= 258.0 && first.1.min(second.1) >= -258.0 {
                    prop_assert_eq!(f64::from(*y), *want, "{}", isa);
                }
            }
        }
    }

    #[test]
    fn bytes_of_a_row_are_the_same_on_every_processor(x in size(100).prop_flat_map(numbers)) {
        let one = |isa: Isa| {
            let identity = ByteLinear::new(isa, &vec![0.0; x.len()], &[0.0], x.len());
            let mut rows = ByteRows::default();
            rows.quantize(isa, &x, identity.inputs());
            format!("{rows:?} {:?}", rows.row(0))
        };
        let portable = one(Isa::PORTABLE);
        for isa in Isa::available() {
            prop_assert_eq!(one(isa), portable.clone(), "{}", isa);
        }
    }

    #[test]
    fn attention_is_right_and_depends_on_its_own_text_alone(
        (heads, length, projections) in (1usize..4, prop_oneof![Just(4usize), Just(16), Just(20), Just(32), Just(64)], size(70))
            .prop_flat_map(|(count, size, length)| {
                (Just(Heads { count, size }), Just(length), numbers(length * 3 * count * size))
            })
    ) {
        let hidden = heads.count * heads.size;
        let want = plain_attention(heads, &projections, length);
        for isa in Isa::available() {
            let mut scratch = Buffer::default();
            let mut out = vec![f32::NAN; length * hidden];
            attention(isa, heads, &projections, length, &mut out, &mut scratch);
            for (y, want) in out.iter().zip(&want) {
                // Scores may be in the hundreds, and their rounding is in the exponent.
                prop_assert!((f64::from(*y) - want).abs() <= 2e-3 + 2e-4 * want.abs(), "{isa}: {y}, not {want}");
            }
            let mut first = vec![f32::NAN; hidden];
            attention(isa, heads, &projections, 1, &mut first, &mut scratch);
            prop_assert!(first.iter().zip(&out).all(|(a, b)| a.to_bits() == b.to_bits()), "{isa}: the first token alone");
        }
    }

    #[test]
    fn rows_are_normalised((x, weight, bias) in size(100).prop_flat_map(|n| (numbers(n), numbers(n), numbers(n)))) {
        let n = x.len() as f64;
        let mean = x.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
        let variance = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / n;
        for isa in Isa::available() {
            let mut y = x.clone();
            layer_norm(isa, &mut y, &weight, &bias, 1e-5);
            for index in 0..x.len() {
                let unit = (f64::from(x[index]) - mean) / (variance + 1e-5).sqrt();
                let want = unit * f64::from(weight[index]) + f64::from(bias[index]);
                prop_assert!((f64::from(y[index]) - want).abs() <= 2e-3 * (1.0 + want.abs()), "{isa}: {} not {want}", y[index]);
            }
        }
    }
}

fn plain_attention(heads: Heads, projections: &[f32], length: usize) -> Vec<f64> {
    let hidden = heads.count * heads.size;
    let at = |token: usize, part: usize, head: usize, number: usize| {
        f64::from(projections[token * 3 * hidden + part * hidden + head * heads.size + number])
    };
    let mut out = vec![0.0; length * hidden];
    for head in 0..heads.count {
        for query in 0..length {
            let scores: Vec<f64> = (0..length)
                .map(|key| (0..heads.size).map(|n| at(query, 0, head, n) * at(key, 1, head, n)).sum::<f64>())
                .map(|score| score / (heads.size as f64).sqrt())
                .collect();
            let greatest = scores.iter().fold(f64::MIN, |a, b| a.max(*b));
            let powers: Vec<f64> = scores.iter().map(|score| (score - greatest).exp()).collect();
            let sum: f64 = powers.iter().sum();
            for number in 0..heads.size {
                let mixed: f64 = powers.iter().enumerate().map(|(key, power)| power * at(key, 2, head, number)).sum();
                out[query * hidden + head * heads.size + number] = mixed / sum;
            }
        }
    }
    out
}

#[test]
fn the_greatest_weights_against_the_greatest_activations_do_not_overflow() {
    for isa in Isa::available() {
        for sign in [1.0, -1.0] {
            let inputs = 64;
            let weight = vec![sign; 40 * inputs];
            let mut x = vec![1.0; 3 * inputs];
            x[0] = 0.0;
            let layer = ByteLinear::new(isa, &weight, &[0.0; 40], inputs);
            let mut out = vec![0.0; 3 * 40];
            bytes_forward(&layer, isa, &x, Finish::Store, &mut out);
            for (row, out) in out.chunks_exact(40).enumerate() {
                let want = sign * if row == 0 { 63.0 } else { 64.0 };
                assert!(out.iter().all(|y| (y - want).abs() < 1.0), "{isa}: {out:?}, not {want}");
            }
        }
    }
}

#[test]
fn zero_rows_zero_weights_and_rows_all_alike_are_fine() {
    for isa in Isa::available() {
        let layer = ByteLinear::new(isa, &[0.0; 30], &[1.0, 2.0, 3.0], 10);
        let mut out = [0.0; 6];
        bytes_forward(&layer, isa, &[5.0; 20], Finish::Store, &mut out);
        assert_eq!(out, [1.0, 2.0, 3.0, 1.0, 2.0, 3.0], "{isa}");
        bytes_forward(&layer, isa, &[], Finish::Store, &mut []);
        let layer = ByteLinear::new(isa, &[0.5; 10], &[0.0], 10);
        let mut out = [0.0; 1];
        bytes_forward(&layer, isa, &[3.0; 10], Finish::Store, &mut out);
        assert!((out[0] - 15.0).abs() < 0.2, "{isa}: {out:?}");
    }
}

#[test]
fn a_number_that_is_none_is_seen_in_the_result() {
    for isa in Isa::available() {
        let layer = ByteLinear::new(isa, &[1.0; 20], &[0.0], 20);
        let mut x = [1.0; 20];
        x[3] = f32::INFINITY;
        let mut out = [0.0];
        bytes_forward(&layer, isa, &x, Finish::Store, &mut out);
        assert!(!out[0].is_finite(), "{isa}: {out:?}");
    }
}

#[test]
fn what_happens_to_an_output_on_its_way_to_memory() {
    let (weight, bias) = ([1.0f32; 4], [0.5f32; 4]);
    for isa in Isa::available() {
        let layer = FloatLinear::new(isa, &weight, &bias, 1);
        let finished = |finish: Finish, x: f32, there: f32| {
            let mut out = [there; 4];
            layer.forward(&[x], finish, &mut out);
            assert!(out.iter().all(|y| *y == out[0]), "{isa}: {out:?}");
            out[0]
        };
        assert_eq!(finished(Finish::Store, 1.0, 7.0), 1.5);
        assert_eq!(finished(Finish::Add, 1.0, 7.0), 8.5);
        assert_eq!(finished(Finish::Relu, -2.0, 7.0), 0.0);
        assert!((finished(Finish::Gelu, 0.5, 7.0) - 0.841_345).abs() < 1e-5);
        assert!((finished(Finish::GeluTanh, 0.5, 7.0) - 0.841_192).abs() < 1e-5);
    }
}

#[test]
#[should_panic(expected = "rows of input and output")]
fn an_output_of_another_length_is_refused() {
    FloatLinear::new(Isa::PORTABLE, &[1.0; 4], &[0.0; 2], 2).forward(&[1.0; 4], Finish::Store, &mut [0.0; 3]);
}

#[test]
#[should_panic(expected = "attention of 3 tokens over 2")]
fn more_queries_than_tokens_are_refused() {
    let heads = Heads { count: 1, size: 4 };
    attention(Isa::PORTABLE, heads, &[0.0; 24], 3, &mut [0.0; 12], &mut Buffer::default());
}
