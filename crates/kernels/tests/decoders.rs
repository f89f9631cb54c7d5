//! The kernels of decoders on every instruction set of this processor: against plain arithmetic, and alike however rows,
//! pages and threads divide the work.

use anchorite_kernels::{
    BlockKind, BlockLinear, BlockRows, CausalHeads, Finish, FloatLinear, Gate, Isa, PAGE, Product, Team, rms_norm,
};
use proptest::collection::vec;
use proptest::prelude::*;

const KINDS: [BlockKind; 8] = [
    BlockKind::Q4_0,
    BlockKind::Q4_1,
    BlockKind::Q5_0,
    BlockKind::Q5_1,
    BlockKind::Q8_0,
    BlockKind::Q4K,
    BlockKind::Q5K,
    BlockKind::Q6K,
];

fn cases() -> ProptestConfig {
    ProptestConfig { cases: if cfg!(miri) { 2 } else { 48 }, failure_persistence: None, ..ProptestConfig::default() }
}

/// A 16-bit float between 0.0001 and 0.03, or its negative.
fn half() -> impl Strategy<Value = u16> {
    (0x0700u16..0x27A0, any::<bool>()).prop_map(|(half, negative)| if negative { half | 0x8000 } else { half })
}

/// Where the 16-bit floats of a block stand.
fn halves(kind: BlockKind) -> &'static [usize] {
    match kind {
        BlockKind::Q4_0 | BlockKind::Q5_0 | BlockKind::Q8_0 => &[0],
        BlockKind::Q4_1 | BlockKind::Q5_1 | BlockKind::Q4K | BlockKind::Q5K => &[0, 2],
        BlockKind::Q6K => &[208],
    }
}

fn blocks(kind: BlockKind, count: usize) -> impl Strategy<Value = Vec<u8>> {
    let scales = halves(kind);
    (vec(any::<u8>(), count * kind.bytes()), vec(half(), count * scales.len())).prop_map(move |(mut bytes, floats)| {
        for (block, floats) in bytes.chunks_exact_mut(kind.bytes()).zip(floats.chunks_exact(scales.len())) {
            for (at, float) in scales.iter().zip(floats) {
                block[*at..at + 2].copy_from_slice(&float.to_le_bytes());
            }
        }
        bytes
    })
}

fn layer() -> impl Strategy<Value = (BlockKind, usize, Vec<u8>)> {
    (prop::sample::select(&KINDS), 1usize..40, 1usize..4).prop_flat_map(|(kind, outputs, units)| {
        (Just(kind), Just(units * kind.inputs()), blocks(kind, outputs * units))
    })
}

fn float(bytes: &[u8], at: usize) -> f64 {
    let half = u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let sign = if half & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(half >> 10 & 31), f64::from(half & 1023) / 1024.0);
    sign * if exponent == 0 { fraction * 2f64.powi(-14) } else { (1.0 + fraction) * 2f64.powi(exponent - 15) }
}

/// Weight `index` of a block, read as the format says, one at a time.
fn weight(kind: BlockKind, block: &[u8], index: usize) -> f64 {
    let nibble = |from: usize| {
        let byte = block[from + index % 16];
        f64::from(if index < 16 { byte & 15 } else { byte >> 4 })
    };
    let fifth = |from: usize| f64::from(block[from + index / 8] >> (index % 8) & 1) * 16.0;
    let pair = |sub: usize| {
        let s = &block[4..16];
        if sub < 4 {
            (f64::from(s[sub] & 63), f64::from(s[sub + 4] & 63))
        } else {
            let scale = s[sub + 4] & 15 | (s[sub - 4] >> 6) << 4;
            (f64::from(scale), f64::from(s[sub + 4] >> 4 | (s[sub] >> 6) << 4))
        }
    };
    match kind {
        BlockKind::Q4_0 => float(block, 0) * (nibble(2) - 8.0),
        BlockKind::Q4_1 => float(block, 0) * nibble(4) + float(block, 2),
        BlockKind::Q5_0 => float(block, 0) * (nibble(6) + fifth(2) - 16.0),
        BlockKind::Q5_1 => float(block, 0) * (nibble(8) + fifth(4)) + float(block, 2),
        BlockKind::Q8_0 => float(block, 0) * f64::from(block[2 + index] as i8),
        BlockKind::Q4K | BlockKind::Q5K => {
            let (sub, place) = (index / 32, index % 32);
            let (scale, least) = pair(sub);
            let five = kind == BlockKind::Q5K;
            let byte = block[if five { 48 } else { 16 } + sub / 2 * 32 + place];
            let low = f64::from(if sub % 2 == 0 { byte & 15 } else { byte >> 4 });
            let high = if five { f64::from(block[16 + place] >> sub & 1) * 16.0 } else { 0.0 };
            float(block, 0) * scale * (low + high) - float(block, 2) * least
        }
        BlockKind::Q6K => {
            let (part, place) = (index / 128, index % 128);
            let (quarter, l) = (place / 32, place % 32);
            let byte = block[64 * part + 32 * (quarter % 2) + l];
            let low = if quarter < 2 { byte & 15 } else { byte >> 4 };
            let high = block[128 + 32 * part + l] >> (2 * quarter) & 3;
            let scale = f64::from(block[192 + index / 16] as i8);
            float(block, 208) * scale * (f64::from(low | high << 4) - 32.0)
        }
    }
}

fn weights(kind: BlockKind, inputs: usize, bytes: &[u8]) -> Vec<Vec<f64>> {
    let row = inputs / kind.inputs() * kind.bytes();
    let block = |block: &[u8]| (0..kind.inputs()).map(|index| weight(kind, block, index)).collect::<Vec<_>>();
    bytes.chunks_exact(row).map(|row| row.chunks_exact(kind.bytes()).flat_map(block).collect()).collect()
}

fn forward(layer: &BlockLinear, isa: Isa, team: &Team, x: &[f32], finish: Finish, out: &mut [f32]) {
    let mut rows = BlockRows::default();
    rows.quantize(isa, team, x, layer.inputs());
    BlockLinear::forward(team, &rows, &mut [Product { layer, finish, out }]);
}

/// What bytes make of activations: for each 32 of them the scale is the greatest over 127.
fn rounded(x: &[f32]) -> Vec<f64> {
    let block = |block: &[f32]| {
        let greatest = block.iter().fold(0f32, |most, x| most.max(x.abs()));
        let inverse = if greatest > 0.0 { 127.0 / greatest } else { 0.0 };
        let scale = f64::from(greatest / 127.0);
        block.iter().map(|x| f64::from((x * inverse).round_ties_even()) * scale).collect::<Vec<_>>()
    };
    x.chunks(32).flat_map(block).collect()
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn weights_are_those_of_the_file((kind, inputs, bytes) in layer()) {
        let want = weights(kind, inputs, &bytes);
        let team = Team::new(2);
        for isa in Isa::available() {
            let layer = BlockLinear::new(isa, &team, kind, &bytes, inputs, None);
            prop_assert_eq!(layer.outputs(), want.len());
            for (output, want) in want.iter().enumerate() {
                let mut row = vec![0.0; inputs];
                layer.row(output, &mut row);
                for (weight, want) in row.iter().zip(want) {
                    prop_assert!((f64::from(*weight) - want).abs() <= 1e-6 * want.abs().max(0.1), "{isa} {kind:?}: {weight}, not {want}");
                }
            }
        }
    }

    #[test]
    fn products_are_right_and_alike_however_they_are_divided(
        ((kind, inputs, bytes), rows, seed) in (layer(), prop_oneof![8 => 1usize..20, 1 => 60usize..70], any::<u32>())
    ) {
        let want = weights(kind, inputs, &bytes);
        let outputs = want.len();
        let bias: Vec<f32> = (0..outputs).map(|output| output as f32 / 8.0).collect();
        let number = |index: usize| {
            let mixed = (index as u32).wrapping_mul(2_654_435_761).wrapping_add(seed).wrapping_mul(747_796_405) >> 8;
            mixed as f32 / f32::from(1u16 << 15) / 256.0 - 1.0
        };
        let x: Vec<f32> = (0..rows * inputs).map(number).collect();
        let seen = rounded(&x);
        for isa in Isa::available() {
            let (one, three) = (Team::new(1), Team::new(3));
            let layer = BlockLinear::new(isa, &one, kind, &bytes, inputs, Some(&bias));
            let mut out = vec![1.0; rows * outputs];
            forward(&layer, isa, &one, &x, Finish::Add, &mut out);
            for (row, out) in out.chunks_exact(outputs).enumerate() {
                for (output, y) in out.iter().enumerate() {
                    let products = want[output].iter().zip(&seen[row * inputs..]).map(|(w, x)| w * x);
                    let size: f64 = products.clone().map(f64::abs).sum();
                    let want = products.sum::<f64>() + f64::from(bias[output]) + 1.0;
                    prop_assert!((f64::from(*y) - want).abs() <= 2e-5 * (size + 10.0), "{isa} {kind:?}: {y}, not {want}");
                }
            }
            let mut divided = vec![1.0; rows * outputs];
            forward(&layer, isa, &three, &x, Finish::Add, &mut divided);
            let mut alone = vec![1.0; rows * outputs];
            for (x, out) in x.chunks_exact(inputs).zip(alone.chunks_exact_mut(outputs)) {
                forward(&layer, isa, &three, x, Finish::Add, out);
            }
            for index in 0..out.len() {
                prop_assert_eq!(out[index].to_bits(), divided[index].to_bits(), "{} {:?}: on three threads", isa, kind);
                prop_assert_eq!(out[index].to_bits(), alone[index].to_bits(), "{} {:?}: a row alone", isa, kind);
            }
        }
    }

    #[test]
    fn attention_over_pages_is_right_and_alike_however_tokens_come(
        (groups, shared, size, window, tokens, start) in (
            1usize..3, 1usize..4, prop::sample::select(vec![4usize, 16, 40, 64]),
            prop::option::of(1usize..100), 1usize..30, 0usize..150,
        ),
        seed in any::<u32>(),
    ) {
        let heads = CausalHeads { count: groups * shared, groups, size, scale: 1.0 / (size as f32).sqrt(), window };
        let number = |index: usize| {
            let mixed = (index as u32).wrapping_mul(2_654_435_761).wrapping_add(seed).wrapping_mul(747_796_405) >> 8;
            // Sixteenths, which 16-bit floats hold exactly.
            ((mixed % 97) as f32 - 48.0) / 16.0
        };
        let total = start + tokens;
        let keys: Vec<f32> = (0..total * groups * size).map(number).collect();
        let values: Vec<f32> = (0..total * groups * size).map(|index| number(index + 1_000_003)).collect();
        let queries: Vec<f32> = (0..tokens * heads.count * size).map(|index| number(index + 2_000_003) / 2.0).collect();
        for isa in Isa::available() {
            let mut pages = vec![vec![0u16; heads.page_len(isa)]; total.div_ceil(PAGE)];
            for (token, (key, value)) in keys.chunks_exact(groups * size).zip(values.chunks_exact(groups * size)).enumerate() {
                heads.remember(isa, &mut pages[token / PAGE], token % PAGE, key, value);
            }
            let pages: Vec<&[u16]> = pages.iter().map(Vec::as_slice).collect();
            let mut out = vec![f32::NAN; queries.len()];
            heads.attend(isa, &Team::new(1), &queries, start, &pages, &mut out);
            for token in 0..tokens {
                for head in 0..heads.count {
                    let query = &queries[(token * heads.count + head) * size..][..size];
                    let position = start + token;
                    let first = window.map_or(0, |window| (position + 1).saturating_sub(window));
                    let at = |what: &[f32], key: usize, n: usize| f64::from(what[(key * groups + head / shared) * size + n]);
                    let scores: Vec<f64> = (first..=position)
                        .map(|key| (0..size).map(|n| f64::from(query[n]) * at(&keys, key, n)).sum::<f64>())
                        .map(|score| score / (size as f64).sqrt())
                        .collect();
                    let greatest = scores.iter().fold(f64::MIN, |a, b| a.max(*b));
                    let powers: Vec<f64> = scores.iter().map(|score| (score - greatest).exp()).collect();
                    let sum: f64 = powers.iter().sum();
                    for n in 0..size {
                        let mixed: f64 = powers.iter().enumerate().map(|(key, power)| power * at(&values, first + key, n)).sum();
                        let (y, want) = (out[(token * heads.count + head) * size + n], mixed / sum);
                        prop_assert!((f64::from(y) - want).abs() <= 1e-4, "{isa}: {y}, not {want}");
                    }
                }
            }
            let mut alone = vec![f32::NAN; queries.len()];
            let team = Team::new(3);
            let width = heads.count * size;
            for (token, (query, out)) in queries.chunks_exact(width).zip(alone.chunks_exact_mut(width)).enumerate() {
                // Pages of tokens to come may be there or not.
                let needed = (start + token) / PAGE + 1;
                heads.attend(isa, &team, query, start + token, &pages[..needed], out);
            }
            prop_assert!(out.iter().zip(&alone).all(|(a, b)| a.to_bits() == b.to_bits()), "{isa}: tokens one by one");
        }
    }

    #[test]
    fn rows_are_normalised_to_a_mean_square_of_one((x, weight) in (1usize..100).prop_flat_map(|n| (vec(-10f32..10.0, n), vec(-2f32..2.0, n)))) {
        let square = x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / x.len() as f64;
        for isa in Isa::available() {
            let mut y = x.clone();
            rms_norm(isa, &mut y, &weight, 1e-5);
            for index in 0..x.len() {
                let want = f64::from(x[index]) / (square + 1e-5).sqrt() * f64::from(weight[index]);
                prop_assert!((f64::from(y[index]) - want).abs() <= 1e-4, "{isa}: {} not {want}", y[index]);
            }
        }
    }

    #[test]
    fn gates_multiply(x in vec((-20f32..20.0, -5f32..5.0), 0..70)) {
        let (gate, up): (Vec<f32>, Vec<f32>) = x.into_iter().unzip();
        for isa in Isa::available() {
            for function in [Gate::Silu, Gate::GeluTanh] {
                let mut y = gate.clone();
                function.apply(isa, &mut y, &up);
                for ((y, x), up) in y.iter().zip(&gate).zip(&up) {
                    let x = f64::from(*x);
                    let f = match function {
                        Gate::Silu => x / (1.0 + (-x).exp()),
                        Gate::GeluTanh => 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh()),
                    };
                    prop_assert!((f64::from(*y) - f * f64::from(*up)).abs() <= 1e-4, "{isa} {function:?}({x})");
                }
            }
        }
    }

    #[test]
    fn plain_numbers_on_a_team_are_the_same_as_alone((inputs, outputs, rows) in (1usize..40, 1usize..80, 1usize..9)) {
        let number = |index: usize| ((index * 7919) % 1000) as f32 / 500.0 - 1.0;
        let weight: Vec<f32> = (0..inputs * outputs).map(number).collect();
        let x: Vec<f32> = (0..inputs * rows).map(|index| number(index + 17)).collect();
        for isa in Isa::available() {
            let layer = FloatLinear::new(isa, &weight, &vec![0.5; outputs], inputs);
            let (mut one, mut many) = (vec![0.0; rows * outputs], vec![0.0; rows * outputs]);
            layer.forward(&x, Finish::Store, &mut one);
            layer.forward_on(&Team::new(3), &x, Finish::Store, &mut many);
            prop_assert_eq!(one, many, "{}", isa);
            let mut row = vec![0.0; inputs];
            layer.row(outputs - 1, &mut row);
            prop_assert_eq!(&row, &weight[(outputs - 1) * inputs..], "{}", isa);
        }
    }
}

#[test]
fn zeros_and_what_is_no_number() {
    let team = Team::new(1);
    for isa in Isa::available() {
        let layer = BlockLinear::new(isa, &team, BlockKind::Q8_0, &[0x3C; 34 * 3], 32, None);
        let mut out = [7.0; 3];
        forward(&layer, isa, &team, &[0.0; 32], Finish::Store, &mut out);
        assert_eq!(out, [0.0; 3], "{isa}");
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for place in [0, 5, 31] {
                let mut x = [1.0; 32];
                x[place] = bad;
                forward(&layer, isa, &team, &x, Finish::Store, &mut out);
                assert!(out.iter().all(|y| !y.is_finite()), "{isa}: {bad} became {out:?}");
            }
        }
    }
}

#[test]
fn the_greatest_bytes_do_not_overflow() {
    let team = Team::new(1);
    for kind in KINDS {
        for fill in [0x00, 0x80, 0xFF] {
            let mut bytes = vec![fill; kind.bytes() * 512 / kind.inputs()];
            for block in bytes.chunks_exact_mut(kind.bytes()) {
                for at in halves(kind) {
                    block[*at..at + 2].copy_from_slice(&0x3C00u16.to_le_bytes());
                }
            }
            let row: f64 = weights(kind, 512, &bytes)[0].iter().sum();
            for isa in Isa::available() {
                for sign in [1.0, -1.0] {
                    let layer = BlockLinear::new(isa, &team, kind, &bytes, 512, None);
                    let mut out = [0.0];
                    forward(&layer, isa, &team, &[sign; 512], Finish::Store, &mut out);
                    let want = row * f64::from(sign);
                    assert!(
                        (f64::from(out[0]) - want).abs() <= 1e-4 * want.abs() + 1e-2,
                        "{isa} {kind:?} {fill:#x}: {out:?}, not {want}"
                    );
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "rows of blocks of 256, not of 128")]
fn rows_of_half_a_block_are_refused() {
    let _ = BlockLinear::new(Isa::PORTABLE, &Team::new(1), BlockKind::Q4K, &[0; 144], 128, None);
}
