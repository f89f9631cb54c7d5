//! The two ways to compute an encoder, kernels and tensors, against each other on small random weights.

use std::collections::HashMap;

use anchorite_models::{Activation, Architecture, EncoderSpec, Head, Pooling};
use candle_core::{Device, Tensor};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::Precision;
use super::batch::Packed;
use super::bert::Bert;
use super::native::{NativeBert, Rows};
use super::weights::Weights;

fn spec(hidden: usize, heads: usize, activation: Activation) -> EncoderSpec {
    EncoderSpec {
        architecture: Architecture::Bert,
        hidden_size: hidden,
        layers: 3,
        attention_heads: heads,
        intermediate_size: hidden * 3,
        vocab_size: 50,
        max_position_embeddings: 80,
        type_vocab_size: 2,
        layer_norm_eps: 1e-12,
        activation,
        pooling: Some(Pooling::Mean),
        normalize: true,
        max_tokens: 80,
        query_prefix: String::new(),
        document_prefix: String::new(),
        lower_case: false,
        head: Head::None,
    }
}

fn random_weights(spec: &EncoderSpec, random: &mut StdRng) -> Weights {
    let mut tensors = HashMap::new();
    let mut add = |name: String, shape: &[usize], center: f32| {
        let numbers: Vec<f32> =
            (0..shape.iter().product()).map(|_| center + random.random_range(-0.3f32..0.3)).collect();
        tensors.insert(name, Tensor::from_vec(numbers, shape, &Device::Cpu).expect("a tensor"));
    };
    let (hidden, intermediate) = (spec.hidden_size, spec.intermediate_size);
    add("embeddings.word_embeddings.weight".to_owned(), &[spec.vocab_size, hidden], 0.0);
    add("embeddings.position_embeddings.weight".to_owned(), &[spec.max_position_embeddings, hidden], 0.0);
    add("embeddings.token_type_embeddings.weight".to_owned(), &[spec.type_vocab_size, hidden], 0.0);
    let mut norms = vec!["embeddings.LayerNorm".to_owned()];
    for layer in 0..spec.layers {
        let name = |part: &str| format!("encoder.layer.{layer}.{part}");
        let square = ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"];
        let products = square.map(|part| (part, hidden, hidden)).into_iter();
        for (part, outputs, inputs) in
            products.chain([("intermediate.dense", intermediate, hidden), ("output.dense", hidden, intermediate)])
        {
            add(name(&format!("{part}.weight")), &[outputs, inputs], 0.0);
            add(name(&format!("{part}.bias")), &[outputs], 0.0);
        }
        norms.extend([name("attention.output.LayerNorm"), name("output.LayerNorm")]);
    }
    for norm in norms {
        add(format!("{norm}.weight"), &[hidden], 1.0);
        add(format!("{norm}.bias"), &[hidden], 0.0);
    }
    Weights::of(tensors)
}

fn packed(lengths: &[usize], random: &mut StdRng) -> Packed {
    let mut packed = Packed::default();
    for &length in lengths {
        let ids: Vec<u32> = (0..length).map(|_| random.random_range(0..50)).collect();
        let types: Vec<u32> = (0..length).map(|place| u32::from(place * 2 > length)).collect();
        packed.push(&ids, &types);
    }
    packed
}

#[test]
fn kernels_and_tensors_compute_the_same_encoder() {
    let mut random = StdRng::seed_from_u64(7);
    let shapes = [(48, 3, Activation::Gelu), (40, 2, Activation::GeluTanh), (64, 2, Activation::Relu)];
    for (hidden, heads, activation) in shapes {
        let spec = spec(hidden, heads, activation);
        let weights = random_weights(&spec, &mut random);
        let native = NativeBert::load(&weights, &spec, Precision::F32).expect("loads");
        let tensors = Bert::load(&weights, &spec).expect("loads");
        for lengths in [&[5usize][..], &[1, 1, 70, 3, 80, 16], &[33, 33, 33]] {
            let packed = packed(lengths, &mut random);
            let theirs: Vec<f32> =
                tensors.forward(&packed).expect("computes").flatten_all().expect("flat").to_vec1().expect("numbers");
            let ours = native.forward(&packed, Rows::All, <[f32]>::to_vec).expect("computes");
            let difference = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(ours.len() == theirs.len() && difference < 5e-4, "{hidden}, {lengths:?}: {difference}");

            let firsts = native.forward(&packed, Rows::First, <[f32]>::to_vec).expect("computes");
            let mut start = 0;
            for (first, length) in firsts.chunks_exact(hidden).zip(lengths) {
                assert_eq!(first, &ours[start * hidden..][..hidden], "the first tokens alone, {lengths:?}");
                start += length;
            }
        }
    }
}

#[test]
fn f20_a_weight_that_is_no_number_is_refused_by_name() {
    let mut random = StdRng::seed_from_u64(9);
    let spec = spec(32, 2, Activation::Gelu);
    for number in [f32::NAN, f32::INFINITY] {
        let mut weights = random_weights(&spec, &mut random);
        let name = "encoder.layer.1.output.dense.bias";
        weights.replace(name, Tensor::full(number, 32, &Device::Cpu).expect("a tensor"));
        let error = NativeBert::load(&weights, &spec, Precision::Int8).err().expect("refused").to_string();
        assert!(error.contains(name) && error.contains("damaged"), "{error}");
    }
}

#[test]
fn a_token_without_a_row_and_a_text_without_a_token_are_errors() {
    let mut random = StdRng::seed_from_u64(8);
    let spec = spec(32, 2, Activation::Gelu);
    let native = NativeBert::load(&random_weights(&spec, &mut random), &spec, Precision::Int8).expect("loads");
    let refused = |ids: &[u32], types: &[u32], says: &str| {
        let mut packed = Packed::default();
        packed.push(ids, types);
        let error = native.forward(&packed, Rows::All, |_| ()).expect_err("refused");
        assert!(error.contains(says), "{error}");
    };
    refused(&[1, 50], &[0, 0], "token 50");
    refused(&[1], &[2], "token type 2");
    refused(&[1; 81], &[0; 81], "position 80");
    refused(&[], &[], "no token");
}
