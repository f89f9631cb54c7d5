//! What the architecture promises, held against the workspace as it is: which crate may know which, that no network client
//! is linked, and what no source file may contain.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anchorite_seal::NETWORK_CRATES;
use serde_json::Value;

/// Every crate of the workspace, and the crates of the workspace that it may depend on.
const MAY_DEPEND_ON: &[(&str, &[&str])] = &[
    ("anchorite-core", &[]),
    ("anchorite-text", &["anchorite-core"]),
    ("anchorite-formats", &["anchorite-core"]),
    ("anchorite-models", &["anchorite-core"]),
    ("anchorite-kernels", &[]),
    ("anchorite-infer", &["anchorite-core", "anchorite-models", "anchorite-kernels"]),
    ("anchorite-store", &["anchorite-core", "anchorite-kernels"]),
    ("anchorite-graph", &["anchorite-core"]),
    ("anchorite-rag", &["anchorite-core", "anchorite-graph", "anchorite-text"]),
    ("anchorite-eval", &[]),
    ("anchorite-seal", &[]),
    ("anchorite-testkit", &["anchorite-core"]),
    (
        "anchorite",
        &[
            "anchorite-core",
            "anchorite-text",
            "anchorite-formats",
            "anchorite-models",
            "anchorite-infer",
            "anchorite-store",
            "anchorite-graph",
            "anchorite-rag",
        ],
    ),
    ("anchorite-cli", &["anchorite", "anchorite-eval", "anchorite-seal"]),
    ("xtask", &["anchorite-models"]),
];

/// The crates that an air-gapped program links, by the folder of their sources, and the program itself.
const SEALED: &[(&str, &str)] = &[
    ("anchorite-core", "crates/core"),
    ("anchorite-text", "crates/text"),
    ("anchorite-formats", "crates/formats"),
    ("anchorite-models", "crates/models"),
    ("anchorite-kernels", "crates/kernels"),
    ("anchorite-infer", "crates/infer"),
    ("anchorite-store", "crates/store"),
    ("anchorite-graph", "crates/graph"),
    ("anchorite-rag", "crates/rag"),
    ("anchorite-eval", "crates/eval"),
    ("anchorite-seal", "crates/seal"),
    ("anchorite", "src"),
    ("anchorite-cli", "crates/cli"),
];

/// The folder of the engine with unsafe code. Clippy demands a safety argument for each block there.
const UNSAFE_IS_ALLOWED_IN: &str = "crates/kernels/";

const LONGEST_SOURCE_FILE: usize = 800;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What Cargo knows of the workspace, resolved for this machine: crates for other systems need not be there.
fn metadata() -> Value {
    let host = Command::new("rustc").args(["--print", "host-tuple"]).output().expect("rustc runs");
    let host = String::from_utf8(host.stdout).expect("UTF-8");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--offline", "--locked", "--filter-platform", host.trim()])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}"))
}

fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value[field].as_array().map(Vec::as_slice).unwrap_or_else(|| panic!("no {field} in {value}"))
}

/// True for what is linked or run when the crate is built for use; false for what its tests need.
fn is_used(kind: &Value) -> bool {
    kind != "dev"
}

/// The workspace's crates, as Cargo describes them.
fn members(metadata: &Value) -> Vec<&Value> {
    let identifiers: BTreeSet<&str> = list(metadata, "workspace_members").iter().filter_map(Value::as_str).collect();
    list(metadata, "packages").iter().filter(|package| identifiers.contains(text(package, "id"))).collect()
}

/// Names and versions of all that `root` is built from on this machine, itself included.
fn closure<'m>(metadata: &'m Value, root: &str) -> BTreeSet<(&'m str, &'m str)> {
    let packages: BTreeMap<&str, &Value> =
        list(metadata, "packages").iter().map(|package| (text(package, "id"), package)).collect();
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"], "nodes").iter().map(|node| (text(node, "id"), node)).collect();
    let start = members(metadata).into_iter().find(|package| text(package, "name") == root).expect("a member");
    let mut open = vec![text(start, "id")];
    let mut seen = BTreeSet::new();
    while let Some(identifier) = open.pop() {
        if seen.insert(identifier) {
            let used = list(nodes[identifier], "deps")
                .iter()
                .filter(|dependency| list(dependency, "dep_kinds").iter().any(|kind| is_used(&kind["kind"])));
            open.extend(used.map(|dependency| text(dependency, "pkg")));
        }
    }
    seen.into_iter()
        .map(|identifier| (text(packages[identifier], "name"), text(packages[identifier], "version")))
        .collect()
}

#[test]
fn crates_depend_on_each_other_in_one_direction_only() {
    let metadata = metadata();
    let table: BTreeMap<&str, &[&str]> = MAY_DEPEND_ON.iter().copied().collect();
    let members = members(&metadata);
    let names: BTreeSet<&str> = members.iter().map(|package| text(package, "name")).collect();
    assert_eq!(names, table.keys().copied().collect(), "the table names the workspace's crates, all of them");
    let mut found = 0;
    for package in members {
        let name = text(package, "name");
        for dependency in list(package, "dependencies").iter().filter(|dependency| is_used(&dependency["kind"])) {
            let other = text(dependency, "name");
            if names.contains(other) {
                assert!(table[name].contains(&other), "{name} may not depend on {other}");
                found += 1;
            }
        }
    }
    assert!(found >= 15, "only {found} dependencies were seen");
}

#[test]
fn fakes_are_linked_into_tests_only() {
    let metadata = metadata();
    for (name, _) in MAY_DEPEND_ON.iter().filter(|(name, _)| *name != "anchorite-testkit") {
        let linked = closure(&metadata, name);
        assert!(
            linked.iter().all(|(other, _)| *other != "anchorite-testkit"),
            "{name} is built with the fakes of tests"
        );
    }
}

#[test]
fn m03_no_network_client_is_linked_into_the_engine_or_the_program() {
    let metadata = metadata();
    for (name, _) in SEALED {
        let linked = closure(&metadata, name);
        let network: Vec<_> = linked.iter().filter(|(other, _)| NETWORK_CRATES.contains(other)).collect();
        assert!(network.is_empty(), "{name} is built with {network:?}");
    }
    let program = closure(&metadata, "anchorite-cli");
    for part in ["candle-core", "tokenizers", "rusqlite", "tantivy", "usearch", "clap"] {
        assert!(program.iter().any(|(name, _)| *name == part), "the walk over the dependencies misses {part}");
    }
}

/// As above for every system and every feature of the workspace's crates: the lock file holds them all.
#[test]
fn m03_no_network_client_is_locked_for_any_system() {
    let metadata = metadata();
    let lock = fs::read_to_string(root().join("Cargo.lock")).expect("a lock file");
    let locked = locked_dependencies(&lock);
    let members: BTreeMap<&str, &Value> =
        members(&metadata).into_iter().map(|package| (text(package, "name"), package)).collect();
    let mut open: Vec<&str> = SEALED.iter().map(|(name, _)| *name).collect();
    let mut seen = BTreeSet::new();
    while let Some(name) = open.pop() {
        if !seen.insert(name) {
            continue;
        }
        assert!(!NETWORK_CRATES.contains(&name), "the engine or the program can be built with {name}");
        match members.get(name) {
            // The lock file does not tell the dependencies of a member's tests from the others.
            Some(package) => open.extend(
                list(package, "dependencies").iter().filter(|one| is_used(&one["kind"])).map(|one| text(one, "name")),
            ),
            None => open.extend(locked.get(name).unwrap_or_else(|| panic!("{name} is not locked"))),
        }
    }
    assert!(seen.len() > 200, "only {} crates were seen", seen.len());
}

/// `cargo deny` looks for the same crates; it is not on every machine, and this test is.
#[test]
fn m03_cargo_deny_forbids_the_same_network_clients() {
    let settings = fs::read_to_string(root().join("deny.toml")).expect("settings");
    let named = |name: &&&str| settings.contains(&format!("{{ crate = \"{name}\" }}"));
    let missing: Vec<&&str> = NETWORK_CRATES.iter().filter(|name| !named(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Names of the dependencies of each crate; versions of the same crate are taken together.
fn locked_dependencies(lock: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut name = "";
    for line in lock.lines() {
        if let Some(rest) = line.strip_prefix("name = \"") {
            name = rest.trim_end_matches('"');
            all.entry(name).or_default();
        } else if let Some(rest) = line.strip_prefix(" \"") {
            let dependency = rest.split([' ', '"']).next().expect("split gives one piece at least");
            all.entry(name).or_default().insert(dependency);
        }
    }
    all
}

#[test]
fn there_is_one_copy_of_candle_and_of_the_tokenizers() {
    let metadata = metadata();
    for name in ["candle-core", "candle-nn", "tokenizers", "safetensors"] {
        let versions: BTreeSet<&str> = list(&metadata, "packages")
            .iter()
            .filter(|package| text(package, "name") == name)
            .map(|package| text(package, "version"))
            .collect();
        assert_eq!(versions.len(), 1, "{name}: {versions:?}");
        assert!(closure(&metadata, "anchorite-cli").iter().any(|(other, _)| *other == name), "{name} is not linked");
    }
}

/// Every file below `folder` but build outputs, the history, knowledge bases and model weights.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if !entry.file_type().expect("a type").is_dir() {
            found.push(path);
        } else if name != "target" && name != ".git" && !name.ends_with(".kb") && folder != root().join("models") {
            files(&path, found);
        }
    }
}

fn workspace_files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(root(), &mut found);
    found
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "rs")
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

#[test]
fn no_source_file_is_longer_than_a_reader_can_hold() {
    let sources: Vec<PathBuf> = workspace_files().into_iter().filter(|path| is_rust(path)).collect();
    assert!(sources.len() > 50, "only {} source files were seen", sources.len());
    let long: Vec<String> = sources
        .iter()
        .map(|path| (path, fs::read_to_string(path).expect("UTF-8").lines().count()))
        .filter(|(_, lines)| *lines > LONGEST_SOURCE_FILE)
        .map(|(path, lines)| format!("{}: {lines} lines", relative(path)))
        .collect();
    assert!(long.is_empty(), "split these by subject: {long:#?}");
}

/// Which registry serves crates and wheels is the business of the machine's own configuration.
#[test]
fn no_file_names_a_package_registry() {
    // In two parts each, since this file is looked at too.
    const REGISTRIES: &[&str] = &[
        concat!("crates", ".io"),
        concat!("pypi", ".org"),
        concat!("python", "hosted.org"),
        concat!("npm", "js.com"),
        concat!("npm", "js.org"),
        concat!("proxy.golang", ".org"),
        concat!("ruby", "gems.org"),
        concat!("conda", ".anaconda.org"),
    ];
    let mut read = 0;
    let mut named = Vec::new();
    // Lock files are Cargo's own (the fuzzer has one too), and say where each crate came from.
    for path in workspace_files().into_iter().filter(|path| !relative(path).ends_with("Cargo.lock")) {
        let Ok(content) = fs::read_to_string(&path) else { continue };
        read += 1;
        for (index, line) in content.lines().enumerate() {
            if let Some(host) = REGISTRIES.iter().find(|host| line.to_ascii_lowercase().contains(**host)) {
                named.push(format!("{}:{}: {host}", relative(&path), index + 1));
            }
        }
    }
    assert!(read > 100, "only {read} files were read");
    assert!(named.is_empty(), "{named:#?}");
}

/// Every source file but this one, which holds the word in examples, with its content.
fn sources() -> Vec<(String, String)> {
    let sources: Vec<(String, String)> = workspace_files()
        .into_iter()
        .filter(|path| is_rust(path))
        .map(|path| (relative(&path), fs::read_to_string(&path).expect("UTF-8")))
        .filter(|(path, _)| path != "tests/architecture.rs")
        .collect();
    assert!(sources.len() > 50, "only {} source files were seen", sources.len());
    sources
}

#[test]
fn the_engine_has_unsafe_code_where_it_is_allowed_and_nowhere_else() {
    let engine: Vec<(String, String)> = sources()
        .into_iter()
        .filter(|(path, _)| SEALED.iter().any(|(_, folder)| path.starts_with(&format!("{folder}/"))))
        .collect();
    for (path, content) in &engine {
        if path.starts_with(UNSAFE_IS_ALLOWED_IN) || path == A_VFS_FOR_TESTS {
            continue;
        }
        for (index, line) in content.lines().enumerate() {
            assert!(!has_unsafe(line), "{path}:{}: {}", index + 1, line.trim());
        }
    }
    let settings = fs::read_to_string(root().join(UNSAFE_IS_ALLOWED_IN).join("Cargo.toml")).expect("settings");
    assert!(settings.contains("undocumented_unsafe_blocks = \"warn\""), "clippy demands safety arguments");
}

/// Functions that SQLite calls: one argument, at their head, holds for all of them.
const A_VFS_FOR_TESTS: &str = "crates/store/tests/store/disk.rs";

#[test]
fn unsafe_code_has_its_safety_argument_above_it() {
    let apart = |path: &str| path.starts_with(UNSAFE_IS_ALLOWED_IN) || path == A_VFS_FOR_TESTS;
    for (path, content) in sources().into_iter().filter(|(path, _)| !apart(path)) {
        let lines: Vec<&str> = content.lines().map(str::trim).collect();
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| has_word(line, "unsafe")) {
            let mut comments = lines[..index].iter().rev().take_while(|above| above.starts_with("//"));
            assert!(comments.any(|comment| comment.contains("SAFETY: ")), "{path}:{}: {line}", index + 1);
        }
    }
}

/// The keyword, or the lint's name, outside a line comment.
fn has_unsafe(line: &str) -> bool {
    has_word(line, "unsafe") || has_word(line, "unsafe_code")
}

fn has_word(line: &str, wanted: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.split(|character: char| !character.is_alphanumeric() && character != '_').any(|word| word == wanted)
}

#[test]
fn unsafe_code_is_told_from_comments_and_longer_words() {
    assert!(has_unsafe("let value = unsafe { read(pointer) };"));
    assert!(has_unsafe("#[allow(unsafe_code)]"));
    assert!(has_unsafe("unsafe impl Send for Handle {}"));
    assert!(!has_unsafe("// unsafe would be shorter"));
    assert!(!has_unsafe("fn is_unsafe_name() {}"));
}

#[test]
fn every_test_named_in_the_architecture_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).expect("the page about the architecture");
    let named: Vec<&str> = text.split('`').filter(|word| word.ends_with(".rs") && word.contains('/')).collect();
    assert!(named.len() > 10, "{named:?}");
    let missing: Vec<&&str> = named.iter().filter(|path| !root.join(path).is_file()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
