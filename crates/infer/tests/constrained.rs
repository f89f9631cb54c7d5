//! Constrained writing: whatever the schema and the prompt, what is written fits, and ends within its cap.

mod common;
#[path = "common/random_gguf.rs"]
mod random_gguf;

use std::ops::ControlFlow;

use anchorite_core::{
    Budget, Constraint, FinishReason, GenerateOptions, Generation, Generator, InferenceError, ModelFingerprint, Prompt,
    generate_as,
};
use anchorite_infer::{DeviceChoice, LocalGenerator};
use anchorite_models::Profile;
use serde_json::{Value, json};

fn random_generator(name: &str) -> LocalGenerator {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, random_gguf::model(name).bytes()).expect("writes");
    let fingerprint = ModelFingerprint { name: name.to_owned(), sha256: String::new() };
    LocalGenerator::open(&path, fingerprint, DeviceChoice::Cpu).expect("opens")
}

fn write(generator: &LocalGenerator, prompt: &str, options: &GenerateOptions) -> Result<Generation, InferenceError> {
    generator.generate(&Prompt::new().user(prompt), options, &Budget::unlimited(), &mut |_| ControlFlow::Continue(()))
}

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most
    }

    fn word(&mut self) -> String {
        let count = 1 + self.below(8);
        (0..count).map(|_| char::from(b'a' + self.below(26) as u8)).collect()
    }

    fn schema(&mut self, depth: u64) -> Value {
        match self.below(if depth == 0 { 7 } else { 10 }) {
            0 => json!({"type": "string"}),
            1 => json!({"type": "string", "maxLength": self.below(20)}),
            2 => json!({"type": "string", "enum": [self.word(), self.word(), "ja, \"é\" 東"]}),
            3 => {
                let least = self.below(100) as i64 - 50;
                json!({"type": "integer", "minimum": least, "maximum": least + self.below(1000) as i64})
            }
            4 => json!({"type": "number"}),
            5 => json!({"type": "boolean"}),
            6 => json!({"type": "null"}),
            7 => {
                let most = 1 + self.below(6);
                json!({"type": "array", "items": self.schema(depth - 1), "minItems": self.below(2), "maxItems": most})
            }
            8 => json!({"anyOf": [self.schema(depth - 1), self.schema(depth - 1)]}),
            _ => {
                let count = self.below(4);
                let names: Vec<String> = (0..count).map(|index| format!("{}{index}", self.word())).collect();
                let parts: serde_json::Map<_, _> =
                    names.iter().map(|name| (name.clone(), self.schema(depth - 1))).collect();
                let required: Vec<&String> = names.iter().filter(|_| self.below(3) > 0).collect();
                json!({"type": "object", "properties": parts, "required": required, "additionalProperties": false})
            }
        }
    }
}

/// Says what is wrong with `value`, for schemas made above.
fn check(schema: &Value, value: &Value) -> Result<(), String> {
    let fault = || Err(format!("{value} is not {schema}"));
    if let Some(several) = schema["anyOf"].as_array() {
        return if several.iter().any(|schema| check(schema, value).is_ok()) { Ok(()) } else { fault() };
    }
    let fits = match schema["type"].as_str().expect("a type") {
        "string" => value.as_str().is_some_and(|text| {
            let known = schema["enum"].as_array().is_none_or(|known| known.contains(value));
            known && schema["maxLength"].as_u64().is_none_or(|most| text.chars().count() as u64 <= most)
        }),
        // -0 is an integer too, which is read as a float.
        "integer" => value.as_i64().or((value.as_f64() == Some(0.0)).then_some(0)).is_some_and(|number| {
            (schema["minimum"].as_i64().expect("least")..=schema["maximum"].as_i64().expect("most")).contains(&number)
        }),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => {
            let Some(items) = value.as_array() else { return fault() };
            items.iter().try_for_each(|item| check(&schema["items"], item))?;
            let (least, most) = (schema["minItems"].as_u64(), schema["maxItems"].as_u64());
            (least.expect("least")..=most.expect("most")).contains(&(items.len() as u64))
        }
        _ => {
            let Some(parts) = value.as_object() else { return fault() };
            for (name, part) in parts {
                match schema["properties"].get(name) {
                    Some(schema) => check(schema, part)?,
                    None => return fault(),
                }
            }
            schema["required"]
                .as_array()
                .expect("names")
                .iter()
                .all(|name| parts.contains_key(name.as_str().expect("text")))
        }
    };
    if fits { Ok(()) } else { fault() }
}

/// Writes `count` times by random schemas, prompts, samplings and caps.
fn try_schemas(generator: &LocalGenerator, count: u64, caps: u64) {
    let mut refused = 0;
    for seed in 0..count {
        let mut random = Random(seed * 7 + 1);
        let schema = random.schema(3);
        let prompt = (0..1 + random.below(6)).map(|_| random.word()).collect::<Vec<_>>().join(" ");
        let cap = 8 + random.below(caps) as usize;
        let options = GenerateOptions {
            temperature: random.below(3) as f32 * 0.7,
            seed,
            ..GenerateOptions::greedy(cap).constrained(Constraint::JsonSchema(schema.to_string()))
        };
        match write(generator, &prompt, &options) {
            Ok(written) => {
                let value: Value = serde_json::from_str(&written.text)
                    .unwrap_or_else(|error| panic!("{seed}: {error} in {:?} for {schema}", written.text));
                check(&schema, &value).unwrap_or_else(|fault| panic!("{seed}: {fault}"));
                assert!(written.tokens.len() <= cap, "{seed}: {} of {cap} tokens", written.tokens.len());
                assert_eq!(written.finish, FinishReason::EndOfTurn, "{seed}");
            }
            // The shortest text of the schema has more tokens than the cap allows: said before anything is written.
            Err(InferenceError::Constraint { problem }) => {
                assert!(problem.contains("tokens or fewer") && cap < 100, "{seed}, {cap}: {problem} for {schema}");
                refused += 1;
            }
            Err(other) => panic!("{seed}: {other}"),
        }
    }
    eprintln!("{count} texts, of which {refused} would not have fitted into their cap");
    assert!(refused * 10 < count, "{refused} of {count} were refused");
}

/// How many are tried: `ANCHORITE_CONSTRAINED`, or enough to find a fault again.
fn trials(usual: u64) -> u64 {
    std::env::var("ANCHORITE_CONSTRAINED").ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}

#[test]
fn m20_whatever_the_schema_what_is_written_fits_and_ends() {
    for name in ["qwen2", "gemma3"] {
        try_schemas(&random_generator(name), trials(300), 200);
    }
}

#[test]
fn m20_the_tiny_generator_writes_what_a_schema_asks_for() {
    let Some(generator) = common::generator(Profile::Tiny) else { return };
    try_schemas(&generator, trials(25), 120);
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Place {
    name: String,
    population: u32,
    capital: bool,
}

#[test]
fn m20_a_value_of_a_type_is_written() {
    let Some(generator) = common::generator(Profile::Base) else { return };
    let prompt = Prompt::new().user("Paris is the capital of France and has 2,102,650 people. Describe it as JSON.");
    let place: Place =
        generate_as(&generator, &prompt, GenerateOptions::greedy(80), &Budget::unlimited()).expect("a place");
    assert_eq!((place.name.as_str(), place.population, place.capital), ("Paris", 2_102_650, true), "{place:?}");
}

#[test]
fn m20_patterns_and_grammars_are_followed() {
    let generator = random_generator("qwen2");
    for (constraint, fits) in [
        (
            Constraint::Regex("[0-9]{3}-[a-f]+b".into()),
            (|text: &str| text.len() > 5 && text.ends_with('b')) as fn(&str) -> bool,
        ),
        (Constraint::Regex("(yes|no)".into()), |text| text == "yes" || text == "no"),
        // Free words of bounded length, ended by a line and by a bracket: far more than the cap would hold.
        (Constraint::Regex("T: [^\\n\\[\\]]{1,160}\\nA: (go|end)\\[[^\\n\\[\\]]{1,120}\\]".into()), |text| {
            text.starts_with("T: ") && text.ends_with(']') && text.contains("\nA: ")
        }),
        (Constraint::Grammar("start: \"(\" start \")\" | \"x\"".into()), |text| {
            let depth = text.matches('(').count();
            text == format!("{}x{}", "(".repeat(depth), ")".repeat(depth))
        }),
    ] {
        for seed in 0..20 {
            let options = GenerateOptions { temperature: 1.0, seed, ..GenerateOptions::greedy(30) };
            let written = write(&generator, "the world", &options.constrained(constraint.clone())).expect("writes");
            assert!(fits(&written.text), "{constraint:?}: {:?}", written.text);
        }
    }
}

#[test]
fn m20_what_can_not_be_followed_is_refused_before_anything_is_read() {
    let generator = random_generator("qwen2");
    let refused = |constraint: Constraint, cap: usize| {
        let budget = Budget::unlimited();
        let options = GenerateOptions::greedy(cap).constrained(constraint);
        let error = generator
            .generate(&Prompt::new().user("x"), &options, &budget, &mut |_| ControlFlow::Continue(()))
            .expect_err("refused");
        assert_eq!(budget.spent().tokens_read, 0);
        assert!(matches!(error, InferenceError::Constraint { .. }), "{error}");
        error.to_string()
    };
    assert!(refused(Constraint::JsonSchema("{".into()), 9).contains("the schema is no JSON"));
    assert!(refused(Constraint::JsonSchema("[]".into()), 9).contains("an object or `true`"));
    assert!(refused(Constraint::JsonSchema(r#"{"type": "colour"}"#.into()), 9).contains("colour"));
    assert!(!refused(Constraint::Regex("(".into()), 9).is_empty());
    assert!(!refused(Constraint::Grammar("start: nothing".into()), 9).is_empty());
    let long = json!({"type": "object", "properties": {"a": {"const": "x".repeat(99)}}, "required": ["a"]});
    assert!(refused(Constraint::JsonSchema(long.to_string()), 9).contains("9 tokens or fewer"));
}
