//! How fast files are read: `rate [--program PROGRAM] PATH…` prints one line of JSON with files, bytes, characters and
//! seconds. `--show` prints what is read instead.
#![allow(clippy::print_stdout)]

use std::path::PathBuf;
use std::time::Instant;

use anchorite_core::Limits;
use anchorite_formats::child::Program;
use anchorite_formats::{Item, files, read};

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    let show = arguments.next_if_eq("--show").is_some();
    let program = arguments.next_if_eq("--program").and_then(|_| arguments.next());
    let program = program.map(|path| Program { path: path.into(), arguments: Vec::new() });
    let paths: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    let files = files(&paths);
    let bytes: u64 = files.iter().map(|file| file.length).sum();
    let started = Instant::now();
    let (mut documents, mut characters, mut left_out) = (0u64, 0u64, 0u64);
    for item in read(&paths, &Limits::default()).with_password(std::env::var("PASSWORD").ok()).with_program(program) {
        if show {
            print(&item);
        }
        match item {
            Item::Document { document, .. } => {
                documents += 1;
                characters += document.text.chars().count() as u64;
            }
            _ => left_out += 1,
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    if !show {
        println!(
            "{}",
            serde_json::json!({
                "files": files.len(), "bytes": bytes, "documents": documents, "left_out": left_out,
                "characters": characters, "seconds": seconds,
            })
        );
    }
}

fn print(item: &Item) {
    match item {
        Item::Document { document, remarks } => {
            println!("== {} | {} | {:?} {remarks:?}", document.source, document.title, document.metadata);
            println!("{}", document.text);
        }
        Item::Skipped { source, reason } => println!("== {source} skipped: {reason}"),
        Item::Error(error) => println!("== error: {error}"),
    }
}
