//! Every fuzz target over its seeds, over thousands of seeded mutations of them, and over every input that once failed: on
//! the stable compiler, on every build. Long runs are `cargo +nightly fuzz run NAME`.

use std::fs;
use std::path::{Path, PathBuf};

#[allow(unreachable_pub, reason = "public for the fuzzer, which is a crate of its own")]
#[path = "../fuzz/src/seeds.rs"]
mod seeds;
#[allow(unreachable_pub, reason = "public for the fuzzer, which is a crate of its own")]
#[path = "../fuzz/src/targets.rs"]
mod targets;

use seeds::seeds;
use targets::{TARGETS, Target};

/// Mutations of each target's seeds. Fixed, as their seed is: the same inputs on every machine.
const MUTATIONS: usize = 3_000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most.max(1) as u64) as usize
    }
}

/// Numbers and words at which parsers go wrong.
const TROUBLE: &[&[u8]] = &[
    &[0; 8],
    &[0xFF; 8],
    &[0xFF, 0xFF, 0xFF, 0x7F],
    &[0, 0, 0, 0x80],
    b"-1",
    b"1e999",
    b"18446744073709551616",
    b"null",
    b"[[[[[[[[",
    b"\"\"",
    b"\\u0000",
    &[0xF0, 0x9F, 0x99, 0x82],
    &[0xC3],
];

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(7) {
            0 if !bytes.is_empty() => bytes[at] = random.next() as u8,
            1 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            2 => bytes.truncate(at),
            3 => {
                let trouble = TROUBLE[random.below(TROUBLE.len())];
                bytes.splice(at..at, trouble.iter().copied());
            }
            4 => {
                let trouble = TROUBLE[random.below(TROUBLE.len())];
                let end = (at + trouble.len()).min(bytes.len());
                bytes.splice(at..end, trouble.iter().copied());
            }
            5 => {
                let end = (at + random.below(64)).min(bytes.len());
                bytes.drain(at..end);
            }
            _ => {
                let end = (at + random.below(64)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, piece);
            }
        }
    }
}

fn target(name: &str) -> Target {
    TARGETS.iter().find(|(known, _)| *known == name).expect("a target").1
}

fn holds(name: &str) {
    let scratch = tempfile::tempdir().expect("a folder");
    let run = target(name);
    let seeds = seeds(name);
    seeds.iter().for_each(|seed| run(scratch.path(), seed));
    let failed = folder().join("regressions").join(name);
    for entry in fs::read_dir(&failed).into_iter().flatten() {
        run(scratch.path(), &fs::read(entry.expect("an entry").path()).expect("a file"));
    }
    let mut random = Random(name.bytes().fold(7, |sum, byte| sum * 31 + u64::from(byte)));
    for _ in 0..MUTATIONS {
        let mut bytes = seeds[random.below(seeds.len())].clone();
        mutate(&mut bytes, &mut random);
        run(scratch.path(), &bytes);
    }
}

#[test]
fn f14_hostile_gguf_headers_are_refused_or_true() {
    holds("gguf");
}

#[test]
fn f15_hostile_safetensors_headers_are_refused_or_true() {
    holds("safetensors");
}

#[test]
fn f16_a_tokenizer_that_is_believed_makes_the_library_fail_on_no_text() {
    holds("tokenizer");
}

#[test]
fn f14_hostile_onnx_files_are_refused() {
    holds("onnx");
}

#[test]
fn f14_hostile_configurations_are_refused_or_true() {
    holds("config");
}

#[test]
fn f14_hostile_chat_templates_end() {
    holds("template");
}

#[test]
fn f26_hostile_lines_of_json_are_read_or_refused() {
    holds("jsonl");
}

#[test]
fn f26_hostile_pdf_files_are_read_or_refused() {
    holds("pdf");
}

#[test]
fn f26_hostile_office_files_are_read_or_refused() {
    holds("office");
}

#[test]
fn f26_hostile_pages_are_read() {
    holds("page");
}

#[test]
fn f26_hostile_books_are_read_or_refused() {
    holds("book");
}

#[test]
fn f26_hostile_mail_is_read_or_refused() {
    holds("mail");
}

#[test]
fn f26_hostile_tables_are_read_or_refused() {
    holds("table");
}

#[test]
fn f29_hostile_archives_are_read_or_refused() {
    holds("archive");
}

#[test]
fn f10_hostile_graphs_are_refused_or_searched_within_bounds() {
    holds("graph");
}

#[test]
fn every_target_is_run_here_and_by_the_fuzzer() {
    for (name, _) in TARGETS {
        let path = folder().join("fuzz_targets").join(format!("{name}.rs"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(text.contains(&format!("run(\"{name}\"")), "{name}");
        let own = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file!())).expect("this file");
        assert!(own.contains(&format!("holds(\"{name}\")")), "{name}");
    }
}

/// Writes the seeds where the fuzzer looks for them.
#[test]
#[ignore = "run by hand before fuzzing"]
fn seeds_are_written_for_the_fuzzer() {
    for (name, _) in TARGETS {
        let corpus = folder().join("corpus").join(name);
        fs::create_dir_all(&corpus).expect("a folder");
        for (number, seed) in seeds(name).iter().enumerate() {
            fs::write(corpus.join(format!("seed-{number}")), seed).expect("a file");
        }
    }
}
