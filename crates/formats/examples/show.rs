//! Shows what is read of files: `cargo run -p anchorite-formats --example show -- FILE…`.
#![allow(clippy::print_stdout)]

use anchorite_core::Limits;
use anchorite_formats::{Item, read};

fn main() {
    let paths: Vec<std::path::PathBuf> = std::env::args_os().skip(1).map(Into::into).collect();
    for item in read(&paths, &Limits::default()).with_password(std::env::var("PASSWORD").ok()) {
        match item {
            Item::Document { document, remarks } => {
                println!("== {} | {} | {:?} {remarks:?}", document.source, document.title, document.metadata);
                println!("{}", document.text);
            }
            Item::Skipped { source, reason } => println!("== {source} skipped: {reason}"),
            Item::Error(error) => println!("== error: {error}"),
        }
    }
}
