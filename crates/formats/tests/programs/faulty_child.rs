//! A program that misbehaves as the name of the file says: what the parent makes of it is tested with this.

use std::collections::BTreeMap;
use std::time::Duration;

use anchorite_core::Document;
use anchorite_formats::Item;
use anchorite_formats::child::{Request, serve_with};

fn main() -> std::io::Result<()> {
    serve_with(Some(&mut |request, bytes, sink| misbehave(request, &bytes, sink)))
}

fn misbehave(request: &Request, bytes: &[u8], sink: &mut dyn FnMut(Item)) {
    let mut say = |source: &str, text: String| {
        let (source, title) = (source.to_owned(), String::new());
        let document = Document { source, title, text, metadata: BTreeMap::new(), outline: Vec::new() };
        sink(Item::Document { document, remarks: Vec::new() });
    };
    match request.name.split('.').next().unwrap_or_default() {
        "overflow" => say(&request.source, format!("{}", deeper(bytes.len() as u64))),
        "abort" => std::process::abort(),
        "panic" => panic!("on purpose"),
        "hang" => loop {
            std::hint::black_box(bytes);
        },
        "sleep" => std::thread::sleep(Duration::from_secs(3600)),
        "memory" => {
            let mut taken = Vec::new();
            loop {
                taken.push(vec![1u8; 16 << 20]);
                std::hint::black_box(&taken);
            }
        }
        "exit" => std::process::exit(0),
        "flood" => loop {
            say(&request.source, "again and again ".repeat(10_000));
        },
        "forge" => say("/somewhere/else.txt", "not of this file".to_owned()),
        "probe" => say(&request.source, probe()),
        _ => say(&request.source, format!("{} bytes", bytes.len())),
    }
}

#[allow(unconditional_recursion)]
fn deeper(depth: u64) -> u64 {
    let here = std::hint::black_box([depth; 64]);
    deeper(depth + 1) + here[(depth % 64) as usize]
}

/// What can be done in spite of the limits.
fn probe() -> String {
    let mut possible = vec!["nothing"];
    if std::fs::read("/etc/passwd").is_ok() {
        possible.push("read a file");
    }
    if std::fs::write(std::env::temp_dir().join("anchorite-probe"), "x").is_ok() {
        possible.push("write a file");
    }
    if std::fs::read_dir("/").is_ok() {
        possible.push("list a folder");
    }
    #[allow(clippy::disallowed_types)]
    if std::net::UdpSocket::bind("127.0.0.1:0").is_ok() {
        possible.push("open a socket");
    }
    if std::process::Command::new("/bin/true").status().is_ok() {
        possible.push("start a program");
    }
    if std::thread::Builder::new().spawn(|| {}).is_ok() {
        possible.push("start a thread");
    }
    if std::env::vars_os().next().is_some() {
        possible.push("read the environment");
    }
    possible.join(", ")
}
