//! Every architecture against llama.cpp, on tiny models with random weights: logits, greedy writing, and tokens of texts.
//! `fixtures/random_models.py` says how the numbers came about.

mod common;
#[path = "common/random_gguf.rs"]
mod random_gguf;

use std::ops::ControlFlow;
use std::path::Path;

use anchorite_core::{Budget, GenerateOptions, Generator, ModelFingerprint, Prompt};
use anchorite_infer::{DeviceChoice, LoadError, LocalGenerator};
use anchorite_models::hash_file;
use candle_core::quantized::gguf_file::Value;
use random_gguf::RandomModel;

/// Renders a conversation as its plain words, so that tests decide about every token.
const BARE_TEMPLATE: &str = "{% for message in messages %}{{ message['content'] }}{% endfor %}";

fn open(model: &RandomModel) -> Result<LocalGenerator, LoadError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, model.bytes()).expect("writes");
    let fingerprint = ModelFingerprint { name: model.name.to_owned(), sha256: String::new() };
    LocalGenerator::open(&path, fingerprint, DeviceChoice::Cpu)
}

fn bare(model: RandomModel) -> LocalGenerator {
    open(&model.with("tokenizer.chat_template", Value::String(BARE_TEMPLATE.to_owned()))).expect("opens")
}

/// The other engine's numbers for the model of this name, if they were computed on the bytes that it has today.
fn expected(name: &str) -> serde_json::Value {
    let expected = common::fixture(&format!("random_{name}.json"));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, random_gguf::model(name).bytes()).expect("writes");
    let hash = hash_file(&path, &mut |_| ()).expect("hashes");
    assert_eq!(expected["sha256"], hash, "the recipe of {name} changed: make its fixture again");
    expected
}

fn numbers<T: serde::de::DeserializeOwned>(value: &serde_json::Value) -> Vec<T> {
    serde_json::from_value(value.clone()).expect("numbers")
}

/// Largest difference to the other engine's logits over all sequences and kept positions.
fn largest_difference(generator: &LocalGenerator, expected: &serde_json::Value) -> f32 {
    let mut largest: f32 = 0.0;
    for sequence in expected["sequences"].as_array().expect("sequences") {
        let rows = generator.logits(&numbers::<u32>(&sequence["tokens"])).expect("logits");
        for kept in sequence["positions"].as_array().expect("positions") {
            let row = &rows[kept["at"].as_u64().expect("a position") as usize];
            let theirs: Vec<f32> = numbers(&kept["logits"]);
            assert!(theirs.iter().fold(0f32, |most, x| most.max(x.abs())) > 0.5, "the logits say nothing");
            let differences = row.iter().zip(&theirs).map(|(ours, theirs)| (ours - theirs).abs());
            largest = differences.fold(largest, |most, x| if x.is_nan() { f32::INFINITY } else { most.max(x) });
            let best = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let chosen = kept["argmax"].as_u64().expect("a token") as usize;
            largest = largest.max(best - row[chosen]);
        }
    }
    largest
}

fn assert_parity(name: &str, tolerance: f32) {
    let generator = open(&random_gguf::model(name)).expect("opens");
    let difference = largest_difference(&generator, &expected(name));
    eprintln!("{name}: logits differ by {difference:.2e} at most");
    assert!(difference < tolerance, "{name}: logits differ by {difference}");
}

/// Keys and values are kept as 16-bit floats, those of the numbers compared with were not.
const TOLERANCE: f32 = 5e-3;
/// And llama.cpp takes the GELU of Gemma from a table of 16-bit floats.
const GELU_TOLERANCE: f32 = 6e-3;

#[test]
fn m01_llama_with_divided_frequencies_gives_the_logits_of_llama_cpp() {
    assert_parity("llama", TOLERANCE);
}

#[test]
fn m01_llama_with_wide_heads_and_divided_positions_gives_the_logits_of_llama_cpp() {
    assert_parity("llama_sentence_piece", TOLERANCE);
}

#[test]
fn m01_qwen2_with_biases_gives_the_logits_of_llama_cpp() {
    assert_parity("qwen2", TOLERANCE);
}

#[test]
fn m01_qwen3_gives_the_logits_of_llama_cpp() {
    assert_parity("qwen3", TOLERANCE);
}

#[test]
fn m01_gemma3_gives_the_logits_of_llama_cpp() {
    assert_parity("gemma3", GELU_TOLERANCE);
}

#[test]
fn m01_gemma3_with_its_own_window_pattern_gives_the_logits_of_llama_cpp() {
    assert_parity("gemma3_pattern", GELU_TOLERANCE);
}

#[test]
fn m01_gemma3_with_capped_logits_and_no_window_gives_the_logits_of_llama_cpp() {
    assert_parity("gemma3_global", GELU_TOLERANCE);
}

#[test]
fn m01_gemma3_of_62_layers_gives_the_logits_of_llama_cpp() {
    // The table's error grows with the layers.
    assert_parity("gemma3_deep", 2.5 * GELU_TOLERANCE);
}

#[test]
fn m01_lfm2_gives_the_logits_of_llama_cpp() {
    assert_parity("lfm2", TOLERANCE);
}

#[test]
fn m01_lfm2_with_a_window_gives_the_logits_of_llama_cpp() {
    assert_parity("lfm2_window", TOLERANCE);
}

/// Parity would prove little if the numbers stayed the same whatever the file says.
#[test]
fn m01_the_fixtures_notice_a_wrong_setting() {
    let settings = [
        ("llama", "llama.rope.freq_base", Value::F32(10_000.0)),
        ("llama_sentence_piece", "llama.rope.scaling.type", Value::String("none".to_owned())),
        ("qwen2", "qwen2.rope.freq_base", Value::F32(10_000.0)),
        ("qwen3", "qwen3.attention.layer_norm_rms_epsilon", Value::F32(0.03)),
        ("gemma3", "gemma3.attention.sliding_window", Value::U32(9)),
        ("gemma3", "gemma3.rope.scaling.factor", Value::F32(7.0)),
        ("gemma3", "gemma3.rope.freq_base", Value::F32(100_000.0)),
        ("gemma3", "gemma3.rope.freq_base_swa", Value::F32(9_000.0)),
        ("gemma3_pattern", "gemma3.attention.sliding_window_pattern", Value::U32(6)),
        ("gemma3_pattern", "gemma3.rope.freq_base_swa", Value::F32(310.0)),
        ("gemma3_global", "gemma3.final_logit_softcapping", Value::F32(1.6)),
        ("lfm2_window", "lfm2.attention.sliding_window", Value::U32(9)),
    ];
    for (name, key, value) in settings {
        let changed = open(&random_gguf::model(name).with(key, value)).expect("opens");
        let difference = largest_difference(&changed, &expected(name));
        assert!(difference > 2.5 * GELU_TOLERANCE, "{name} hardly depends on {key}: {difference}");
    }
}

/// Tokens that the template alone produces: `text` is written by it, not by anybody in the conversation.
fn template_tokens(model: RandomModel, text: &str) -> Vec<u32> {
    let template = format!("{{{{ {} }}}}", serde_json::to_string(text).expect("a string"));
    let generator = open(&model.with("tokenizer.chat_template", Value::String(template))).expect("opens");
    generator.encode(&Prompt::new().user("x")).expect("encodes")
}

fn assert_same_tokens(name: &str) {
    let expected = expected(name);
    let generator = bare(random_gguf::model(name));
    let mut differing = Vec::new();
    for case in expected["texts"].as_array().expect("texts") {
        let (text, theirs) = (case["text"].as_str().expect("text"), numbers::<u32>(&case["tokens"]));
        // What a reply begins with goes to the tokenizer as it is; only the token that begins a text may precede it.
        let start = generator.encode(&Prompt::new().user("")).expect("encodes");
        let ours = generator.encode(&Prompt::new().user("").reply(text)).expect("encodes")[start.len()..].to_vec();
        if ours != theirs {
            differing.push(format!("{text:?}: {ours:?}, expected {theirs:?}"));
        }
    }
    for case in expected["conversations"].as_array().expect("conversations") {
        let (text, theirs) = (case["text"].as_str().expect("text"), numbers::<u32>(&case["tokens"]));
        let ours = template_tokens(random_gguf::model(name), text);
        if ours != theirs {
            differing.push(format!("the template's {text:?}: {ours:?}, expected {theirs:?}"));
        }
    }
    assert!(differing.is_empty(), "{name} splits otherwise:\n{}", differing.join("\n"));
}

#[test]
fn m01_sentence_piece_gives_the_tokens_of_llama_cpp() {
    assert_same_tokens("gemma3");
}

#[test]
fn m01_sentence_piece_with_a_space_before_the_text_gives_the_tokens_of_llama_cpp() {
    assert_same_tokens("llama_sentence_piece");
}

#[test]
fn m01_every_known_way_of_splitting_gives_the_tokens_of_llama_cpp() {
    for model in random_gguf::splits() {
        assert_same_tokens(model.name);
    }
}

fn greedy(generator: &LocalGenerator, prompt: &Prompt, tokens: usize) -> anchorite_core::Generation {
    let options = GenerateOptions::greedy(tokens);
    generator.generate(prompt, &options, &Budget::unlimited(), &mut |_| ControlFlow::Continue(())).expect("writes")
}

/// How much less than the best token's logit each token of `written` has, when all is read again at once: 0 for the best.
fn regret(generator: &LocalGenerator, prompt: &[u32], written: &[u32]) -> f32 {
    let whole: Vec<u32> = prompt.iter().chain(written).copied().collect();
    let rows = generator.logits(&whole).expect("logits");
    let behind = rows[prompt.len() - 1..]
        .iter()
        .zip(written)
        .map(|(row, &token)| row.iter().copied().fold(f32::NEG_INFINITY, f32::max) - row[token as usize]);
    behind.fold(0.0, f32::max)
}

#[test]
fn m01_one_token_at_a_time_writes_what_reading_everything_at_once_would() {
    let long = "the world in abababa lighthouse 1234 then hen ".repeat(20);
    for model in random_gguf::models() {
        let name = model.name;
        let generator = bare(model);
        // One shorter than any window, one longer than a pass of the decoder, one that shares its beginning.
        for words in ["ab", long.as_str(), &long[..long.len() - 9]] {
            let prompt = Prompt::new().user(words);
            let tokens = generator.encode(&prompt).expect("encodes");
            let written = greedy(&generator, &prompt, 24).tokens;
            assert!(written.len() > 8, "{name} ends after {} tokens", written.len());
            let regret = regret(&generator, &tokens, &written);
            assert!(regret < 1e-3, "{name} after {} tokens: {regret}", tokens.len());
        }
    }
}

#[test]
fn m20_the_probabilities_of_options_follow_from_the_logits() {
    let options = ["the world", "hen", "12 34 abab", "x"];
    for model in random_gguf::models() {
        let name = model.name;
        let generator = bare(model);
        let prompt = Prompt::new().user("the lighthouse in the world or then hen");
        let start = generator.encode(&prompt).expect("encodes");
        let mean = |option: &str| {
            let whole = generator.encode(&prompt.clone().reply(option)).expect("encodes");
            let rows = generator.logits(&whole).expect("logits");
            let log = |row: &[f32], token: u32| row[token as usize] - row.iter().map(|x| x.exp()).sum::<f32>().ln();
            let sum: f32 = (start.len()..whole.len()).map(|at| log(&rows[at - 1], whole[at])).sum();
            sum / (whole.len() - start.len()) as f32
        };
        let means = options.map(mean);
        let total: f32 = means.iter().map(|x| x.exp()).sum();
        let chosen = generator.choose(&prompt, &options, &Budget::unlimited()).expect("chooses");
        for (ours, mean) in chosen.iter().zip(means) {
            assert!((ours - mean.exp() / total).abs() < 1e-3, "{name}: {chosen:?}, means {means:?}");
        }
    }
}

fn refusal(model: &RandomModel) -> String {
    open(model).expect_err("refused").to_string()
}

#[test]
fn m01_what_is_not_known_is_refused_by_name_with_what_is() {
    let llama = || random_gguf::model("llama");
    let text = |words: &str| Value::String(words.to_owned());
    let message = refusal(&llama().with("general.architecture", text("mamba")));
    assert!(message.contains("`mamba`") && message.contains("llama, qwen2, qwen3, gemma3, lfm2"), "{message}");
    let message = refusal(&llama().with("llama.rope.scaling.type", text("yarn")));
    assert!(message.contains("rope.scaling.type") && message.contains("`yarn`"), "{message}");
    assert!(message.contains("none, linear and llama3"), "{message}");
    let message = refusal(&llama().with("tokenizer.ggml.model", text("rwkv")));
    assert!(message.contains("`rwkv`") && message.contains("gpt2, llama"), "{message}");
    let message = refusal(&llama().with("tokenizer.ggml.pre", text("tekken")));
    assert!(message.contains("`tekken`") && message.contains("smollm, qwen2, llama-bpe"), "{message}");
    let gemma = random_gguf::model("gemma3").with("gemma3.attention.sliding_window_pattern", text("odd"));
    assert!(refusal(&gemma).contains("gemma3.attention.sliding_window_pattern"));
}

/// Writes the models into the folder that the environment names, for the other engine to read.
#[test]
#[ignore = "only to make the fixtures"]
fn write_the_random_models() {
    let folder = std::env::var("ANCHORITE_RANDOM_MODELS").expect("ANCHORITE_RANDOM_MODELS names a folder");
    for model in random_gguf::models().into_iter().chain(random_gguf::splits()) {
        std::fs::write(Path::new(&folder).join(format!("{}.gguf", model.name)), model.bytes()).expect("writes");
    }
}
