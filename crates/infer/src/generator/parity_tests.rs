//! The decoder on the processor against the one on candle's tensors, and against itself read in other pieces.

use std::io::Cursor;

use anchorite_core::{Budget, Limits};
use anchorite_models::{GeneratorSpec, GgufHeader};
use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::Content;

use super::body::{Body, Memory};
use super::native::NativeDecoder;
use super::random_gguf::{self, RandomModel};
use super::spec::DecoderSpec;
use super::tensors::TensorDecoder;
use super::watch::Watch;

/// Both decoders, each on its file.
fn open(native: &[u8], tensors: &[u8], threads: usize) -> (Body, Body) {
    let folder = tempfile::tempdir().expect("a folder");
    let spec = |bytes: &[u8]| {
        let path = folder.path().join("model.gguf");
        std::fs::write(&path, bytes).expect("writes");
        let header = GgufHeader::read(&path, &Limits::default()).expect("a header");
        let known = GeneratorSpec::read(&path, &header).expect("known");
        let content = Content::read(&mut Cursor::new(bytes)).expect("content");
        (DecoderSpec::from_gguf(&content, &known).expect("a spec"), content)
    };
    let (native_spec, native_content) = spec(native);
    let (tensor_spec, tensor_content) = spec(tensors);
    let native = NativeDecoder::load(native_spec, &native_content, &native, threads);
    let cpu = candle_core::Device::Cpu;
    let tensors = TensorDecoder::load(tensor_spec, &tensor_content, &mut Cursor::new(tensors), &cpu);
    (Body::Native(Box::new(native.expect("loads"))), Body::Tensors(Box::new(tensors.expect("loads"))))
}

/// Logits after each of `tokens`, read in pieces that end where `ends` says.
fn read(body: &Body, memory: &mut Memory, tokens: &[u32], ends: &[usize]) -> Vec<Vec<f32>> {
    let mut rows = Vec::new();
    let mut from = 0;
    for &end in ends.iter().chain([&tokens.len()]) {
        let piece = &tokens[from..end];
        let logits = body.forward(piece, memory, piece.len(), &Budget::unlimited(), None);
        rows.extend(logits.unwrap_or_else(|_| panic!("computes")).iter().map(<[f32]>::to_vec));
        from = end;
    }
    rows
}

fn tokens(count: usize, vocabulary: usize) -> Vec<u32> {
    (0..count).map(|index| (index * index * 31 + index * 7) as u32 % vocabulary as u32).collect()
}

/// Root of the mean square of the differences, as a share of the spread of `b`.
fn difference(a: &[Vec<f32>], b: &[Vec<f32>]) -> f64 {
    let pairs = a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| (f64::from(*a), f64::from(*b)));
    let (off, size) = pairs.fold((0.0, 0.0), |(off, size), (a, b)| (off + (a - b).powi(2), size + b * b));
    (off / size).sqrt()
}

#[test]
fn m01_every_quantised_kind_gives_the_logits_of_its_numbers() {
    let model = random_gguf::wide();
    let kinds = [
        GgmlDType::F16,
        GgmlDType::BF16,
        GgmlDType::Q4_0,
        GgmlDType::Q4_1,
        GgmlDType::Q5_0,
        GgmlDType::Q5_1,
        GgmlDType::Q8_0,
        GgmlDType::Q2K,
        GgmlDType::Q3K,
        GgmlDType::Q4K,
        GgmlDType::Q5K,
        GgmlDType::Q6K,
    ];
    for kind in kinds {
        let (native, tensors) = open(&model.bytes_as(kind, false), &model.bytes_as(kind, true), 2);
        let tokens = tokens(90, native.vocabulary());
        let ours = read(&native, &mut native.new_memory(), &tokens, &[]);
        let exact = read(&tensors, &mut tensors.new_memory(), &tokens, &[]);
        let difference = difference(&ours, &exact);
        eprintln!("{kind:?}: {difference:.4} of the spread");
        // Activations of eight bits; plain numbers differ by the 16-bit floats of keys and values alone, and kinds without a
        // kernel of their own by eight bits once more.
        let allowed = match kind {
            GgmlDType::F16 | GgmlDType::BF16 => 0.002,
            GgmlDType::Q2K | GgmlDType::Q3K => 0.04,
            _ => 0.025,
        };
        assert!(difference < allowed, "{kind:?}: {difference}");
    }
}

/// The other engine's numbers are what the native decoder is held against in `tests/architectures.rs`; keys and values of 16
/// bits allow it a difference that would hide small faults. Tensors are exact.
#[test]
fn m01_tensors_give_the_logits_of_llama_cpp() {
    for model in random_gguf::models() {
        let path = format!("{}/tests/fixtures/random_{}.json", env!("CARGO_MANIFEST_DIR"), model.name);
        let expected: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).expect("a fixture")).expect("JSON");
        let (native, tensors) = open(&model.bytes(), &model.bytes(), 1);
        // llama.cpp takes the GELU of Gemma from a table of 16-bit floats; the error grows with the layers.
        let allowed = match model.name {
            "gemma3_deep" => 1.2e-2,
            name if name.starts_with("gemma3") => 3e-3,
            _ => 1e-4,
        };
        for sequence in expected["sequences"].as_array().expect("sequences") {
            let tokens: Vec<u32> = serde_json::from_value(sequence["tokens"].clone()).expect("tokens");
            let ours = read(&tensors, &mut tensors.new_memory(), &tokens, &[]);
            let halves = read(&native, &mut native.new_memory(), &tokens, &[]);
            assert!(difference(&halves, &ours) < 3e-3, "{}: {}", model.name, difference(&halves, &ours));
            for kept in sequence["positions"].as_array().expect("positions") {
                let theirs: Vec<f32> = serde_json::from_value(kept["logits"].clone()).expect("logits");
                let row = &ours[kept["at"].as_u64().expect("a position") as usize];
                let off = row.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(off < allowed, "{}: {off}", model.name);
            }
        }
    }
}

/// All architectures, and quantised blocks of the two families.
fn models() -> Vec<(String, Vec<u8>)> {
    let plain = |model: RandomModel| (model.name.to_owned(), model.bytes());
    let quantised = |kind| (format!("wide {kind:?}"), random_gguf::wide().bytes_as(kind, false));
    let mut models: Vec<_> = random_gguf::models().into_iter().map(plain).collect();
    models.extend([GgmlDType::Q4_1, GgmlDType::Q4K, GgmlDType::Q6K].map(quantised));
    models
}

#[test]
fn m47_logits_are_the_same_to_the_bit_however_the_tokens_are_read() {
    for (name, bytes) in models() {
        let (one, _) = open(&bytes, &bytes, 1);
        let (three, _) = open(&bytes, &bytes, 3);
        let tokens = tokens(150, one.vocabulary());
        let whole = read(&one, &mut one.new_memory(), &tokens, &[]);
        for ends in [vec![1, 2, 3, 66, 67, 140], (1..150).collect()] {
            let pieces = read(&three, &mut three.new_memory(), &tokens, &ends);
            assert!(pieces == whole, "{name}: pieces that end at {ends:?}");
        }
        // Another prompt that begins alike, and back again: what is remembered is what would be read.
        let mut memory = three.new_memory();
        read(&three, &mut memory, &tokens, &[]);
        memory.keep();
        let other: Vec<u32> = tokens[..70].iter().copied().chain([5, 6, 7]).collect();
        assert_eq!(memory.rewind(&other, 72), 70, "{name}");
        read(&three, &mut memory, &other[70..], &[]);
        memory.keep();
        assert_eq!(memory.rewind(&tokens, 149), 149, "{name}");
        let again = read(&three, &mut memory, &tokens[149..], &[]);
        assert!(again[0] == whole[149], "{name}: remembered");
        assert_eq!(memory.rewind(&other, 72), 72, "{name}: the other prompt is remembered too");
    }
}

#[test]
fn states_between_layers_are_the_same_in_both_decoders_and_however_they_are_read() {
    for model in random_gguf::models() {
        let (native, tensors) = open(&model.bytes(), &model.bytes(), 2);
        let layers = [0, native.spec().layers - 1];
        let tokens = tokens(70, native.vocabulary());
        let states = |body: &Body, from: usize| {
            let mut memory = body.new_memory();
            if from > 0 {
                read(body, &mut memory, &tokens[..from], &[]);
            }
            let mut watch = Watch::new(&layers);
            let read = body.forward(&tokens[from..], &mut memory, 1, &Budget::unlimited(), Some(&mut watch));
            assert!(read.is_ok());
            watch.states().expect("both layers")
        };
        let (whole, exact) = (states(&native, 0), states(&tensors, 0));
        assert!(whole.iter().all(|state| state.len() == native.spec().hidden), "{}", model.name);
        assert!(states(&native, 69) == whole, "{}", model.name);
        assert!(difference(&whole, &exact) < 3e-3, "{}: {}", model.name, difference(&whole, &exact));
        assert!(Watch::new(&[10_000]).states().is_none());
    }
}

#[test]
fn a_pass_that_is_stopped_leaves_the_state_as_it_was() {
    let (native, _) = {
        let bytes = random_gguf::model("qwen2").bytes();
        open(&bytes, &bytes, 1)
    };
    let tokens = tokens(100, native.vocabulary());
    let mut memory = native.new_memory();
    let whole = read(&native, &mut native.new_memory(), &tokens, &[]);
    read(&native, &mut memory, &tokens[..40], &[]);
    let budget = Budget::unlimited();
    budget.cancel();
    assert!(native.forward(&tokens[40..], &mut memory, 1, &budget, None).is_err());
    assert_eq!(memory.len(), 40);
    assert!(read(&native, &mut memory, &tokens[40..], &[]) == whole[40..]);
}

#[test]
fn f23_memory_is_asked_for_as_weights_will_lie_in_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.gguf");
    let needed = |kind| {
        std::fs::write(&path, random_gguf::wide().bytes_as(kind, false)).expect("writes");
        let header = GgufHeader::read(&path, &Limits::default()).expect("a header");
        super::memory_of(&header) as f64
    };
    let (single, half) = (needed(GgmlDType::F32), needed(GgmlDType::F16));
    // The largest tensor is in memory once more while it is laid out, and is half as large there.
    assert!(half <= single && half > 0.8 * single, "{half} and {single}");
    assert!(needed(GgmlDType::Q2K) > 0.8 * needed(GgmlDType::Q8_0), "two bits become eight");
    assert!(needed(GgmlDType::Q4K) < 0.65 * needed(GgmlDType::Q8_0));
}
