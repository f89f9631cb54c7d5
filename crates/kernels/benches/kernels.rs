//! The kernels on one thread, on every instruction set of this processor, at the sizes of an encoder of 384 numbers a token.
//! Operations are multiplications and additions.
#![allow(missing_docs, reason = "what criterion's macros make has no documentation")]

use anchorite_kernels::{
    BlockKind, BlockLinear, BlockRows, Buffer, ByteLinear, ByteRows, Finish, FloatLinear, Heads, Isa, Product, Team,
    attention, layer_norm,
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const HIDDEN: usize = 384;

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|index| ((index * 7919) % 1000) as f32 / 500.0 - 1.0).collect()
}

fn products(criterion: &mut Criterion) {
    for (inputs, outputs) in [(HIDDEN, 3 * HIDDEN), (HIDDEN, 4 * HIDDEN), (4 * HIDDEN, HIDDEN)] {
        let mut group = criterion.benchmark_group(format!("product {inputs} × {outputs}"));
        for rows in [1, 16, 48] {
            group.throughput(Throughput::Elements((2 * rows * inputs * outputs) as u64));
            let (weight, bias, x) = (numbers(inputs * outputs), numbers(outputs), numbers(rows * inputs));
            let mut out = vec![0.0; rows * outputs];
            for isa in Isa::available() {
                let floats = FloatLinear::new(isa, &weight, &bias, inputs);
                group.bench_function(BenchmarkId::new(format!("f32 {isa}"), rows), |bencher| {
                    bencher.iter(|| floats.forward(&x, Finish::Store, &mut out));
                });
                let bytes = ByteLinear::new(isa, &weight, &bias, inputs);
                let mut quantized = ByteRows::default();
                group.bench_function(BenchmarkId::new(format!("int8 {isa}"), rows), |bencher| {
                    bencher.iter(|| {
                        quantized.quantize(isa, &x, inputs);
                        bytes.forward(&quantized, Finish::Store, &mut out);
                    });
                });
            }
        }
        group.finish();
    }
}

/// The quantised products of a decoder of 1,536 numbers a token, on one thread.
fn blocks(criterion: &mut Criterion) {
    const INPUTS: usize = 1536;
    let team = Team::new(1);
    for kind in [BlockKind::Q4_0, BlockKind::Q4K, BlockKind::Q6K, BlockKind::Q8_0] {
        let mut group = criterion.benchmark_group(format!("{kind:?} {INPUTS} × {INPUTS}"));
        // The bytes of no model, with scales that are finite numbers.
        let file: Vec<u8> =
            (0..INPUTS * INPUTS / kind.inputs() * kind.bytes()).map(|at| (at * 7919 % 59) as u8).collect();
        for rows in [1, 4, 64, 200] {
            group.throughput(Throughput::Elements((2 * rows * INPUTS * INPUTS) as u64));
            let (x, mut out) = (numbers(rows * INPUTS), vec![0.0; rows * INPUTS]);
            for isa in Isa::available() {
                let layer = BlockLinear::new(isa, &team, kind, &file, INPUTS, None);
                let mut quantized = BlockRows::default();
                quantized.quantize(isa, &team, &x, INPUTS);
                group.bench_function(BenchmarkId::new(isa.name(), rows), |bencher| {
                    bencher.iter(|| {
                        let product = Product { layer: &layer, finish: Finish::Store, out: &mut out };
                        BlockLinear::forward(&team, &quantized, &mut [product]);
                    });
                });
            }
        }
        group.finish();
    }
}

fn rest(criterion: &mut Criterion) {
    let heads = Heads { count: 12, size: 32 };
    let mut group = criterion.benchmark_group("attention of a text");
    for length in [16, 128, 256] {
        group.throughput(Throughput::Elements((4 * length * length * HIDDEN) as u64));
        let (projections, mut out) = (numbers(length * 3 * HIDDEN), vec![0.0; length * HIDDEN]);
        let mut scratch = Buffer::default();
        for isa in Isa::available() {
            group.bench_function(BenchmarkId::new(isa.name(), length), |bencher| {
                bencher.iter(|| attention(isa, heads, &projections, length, &mut out, &mut scratch));
            });
        }
    }
    group.finish();
    let mut group = criterion.benchmark_group("normalisation of 48 rows");
    group.throughput(Throughput::Elements(48 * HIDDEN as u64));
    let (mut x, weight, bias) = (numbers(48 * HIDDEN), numbers(HIDDEN), numbers(HIDDEN));
    for isa in Isa::available() {
        group.bench_function(isa.name(), |bencher| bencher.iter(|| layer_norm(isa, &mut x, &weight, &bias, 1e-12)));
    }
    group.finish();
}

criterion_group!(benches, products, blocks, rest);
criterion_main!(benches);
