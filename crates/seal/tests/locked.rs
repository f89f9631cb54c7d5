//! What a locked process can and can't do. A lock is for good, so that each test runs in a process of its own: this binary
//! has no harness, and starts itself again for each case.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anchorite_seal::evidence::{file_attempts, interfaces, kernel_status, network_attempts};
use anchorite_seal::{Mechanism, Places, Report, SealError, State, lock};

/// Names the case that a started process runs, and the folder that it works in.
const CASE: &str = "ANCHORITE_SEAL_CASE";
const FOLDER: &str = "ANCHORITE_SEAL_FOLDER";

/// No case of its own: what the child of a locked process runs. Started by itself, it locks itself and passes too.
const IS_LOCKED: &str = "m03_a_lock_may_be_asked_for_twice";

/// What a case tries inside the lock, by name.
type Case = (&'static str, fn(&Places));

const CASES: &[Case] = &[
    ("m03_no_socket_can_be_made", no_socket_can_be_made),
    ("m03_files_open_only_where_allowed", files_open_only_where_allowed),
    ("m03_threads_and_children_are_locked_too", threads_and_children_are_locked_too),
    ("m03_a_child_of_a_locked_process_knows_that_it_is_locked", a_child_knows_that_it_is_locked),
    ("m03_running_threads_forbid_the_lock", running_threads_forbid_the_lock),
    ("m03_an_open_socket_forbids_the_lock", an_open_socket_forbids_the_lock),
    (IS_LOCKED, is_locked),
    ("m03_an_unlocked_process_would_be_told_from_a_locked_one", an_unlocked_process_is_told),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let Ok(case) = std::env::var(CASE) {
        let folder = PathBuf::from(std::env::var(FOLDER).expect("a folder"));
        let mut places = Places::of_this_program();
        places.read(folder.join("readable"));
        places.write(folder.join("writable"));
        let (_, run) = CASES.iter().find(|(name, _)| *name == case).expect("a case");
        run(&places);
        return ExitCode::SUCCESS;
    }
    // What nextest asks of a binary without a harness.
    if arguments.iter().any(|argument| argument == "--list") {
        if !arguments.iter().any(|argument| argument == "--ignored") {
            CASES.iter().for_each(|(name, _)| say(&format!("{name}: test")));
        }
        return ExitCode::SUCCESS;
    }
    let named: Vec<&str> =
        CASES.iter().map(|(name, _)| *name).filter(|name| arguments.iter().any(|argument| argument == name)).collect();
    let chosen = if named.is_empty() { CASES.iter().map(|(name, _)| *name).collect() } else { named };
    let failed: Vec<&str> = chosen.into_iter().filter(|case| !passes(case)).collect();
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[allow(clippy::print_stdout, reason = "the list of tests is read from there")]
fn say(line: &str) {
    println!("{line}");
}

fn passes(case: &str) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["readable", "writable", "secret"] {
        fs::create_dir(folder.path().join(name)).expect("a folder");
        fs::write(folder.path().join(name).join("file.txt"), name).expect("a file");
    }
    let program = std::env::current_exe().expect("this program");
    let status = Command::new(program).env(CASE, case).env(FOLDER, folder.path()).status().expect("it starts");
    say(&format!("test {case} ... {}", if status.success() { "ok" } else { "FAILED" }));
    status.success()
}

fn folder() -> PathBuf {
    PathBuf::from(std::env::var(FOLDER).expect("a folder"))
}

/// Locks the process; where the machine can't, says so and ends the case.
fn locked(places: &Places) -> Report {
    match lock(places).expect("no failure").demand() {
        Ok(report) => report,
        Err(lacking) => {
            eprintln!("skipped: {lacking}");
            std::process::exit(0);
        }
    }
}

fn no_socket_can_be_made(places: &Places) {
    let report = locked(places);
    let calls = report.findings.iter().find(|one| one.mechanism == Mechanism::SystemCalls).expect("reported");
    assert_eq!(calls.state, State::Enforced);
    for attempt in network_attempts() {
        assert!(attempt.is_refused(), "{attempt:?}");
    }
    let pair = std::os::unix::net::UnixStream::pair();
    assert!(pair.is_ok(), "a pair of local sockets reaches nobody: {pair:?}");
}

fn files_open_only_where_allowed(places: &Places) {
    locked(places);
    let folder = folder();
    assert_eq!(fs::read_to_string(folder.join("readable/file.txt")).expect("allowed"), "readable");
    assert_eq!(fs::read_to_string(folder.join("writable/file.txt")).expect("allowed"), "writable");
    assert!(fs::write(folder.join("readable/file.txt"), "x").is_err());
    assert!(fs::write(folder.join("readable/new.txt"), "x").is_err());
    assert!(fs::remove_file(folder.join("readable/file.txt")).is_err());
    fs::create_dir(folder.join("writable/inner")).expect("allowed");
    fs::write(folder.join("writable/inner/new.txt"), "x").expect("allowed");
    fs::rename(folder.join("writable/inner/new.txt"), folder.join("writable/file.txt")).expect("allowed");
    fs::remove_dir(folder.join("writable/inner")).expect("allowed");
    assert!(fs::rename(folder.join("writable/file.txt"), folder.join("secret/file.txt")).is_err(), "it would leave");
    assert!(fs::hard_link(folder.join("secret/file.txt"), folder.join("writable/link.txt")).is_err());
    for attempt in file_attempts(&folder.join("secret/file.txt"), &folder) {
        assert!(attempt.is_refused(), "{attempt:?}");
    }
    assert!(!interfaces().is_empty(), "the namespace of the process can still be described");
    let again = Command::new(std::env::current_exe().expect("this program"))
        .arg("--list")
        .env_remove(CASE)
        .stdout(Stdio::null())
        .status();
    assert!(again.expect("this program may be started again").success());
}

fn threads_and_children_are_locked_too(places: &Places) {
    locked(places);
    let attempts = std::thread::spawn(network_attempts).join().expect("no panic");
    assert!(attempts.iter().all(|attempt| attempt.is_refused()), "{attempts:?}");
    let (stop, wait) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || wait.recv());
    let status = kernel_status();
    assert!(status.contains(&("Seccomp: 2".to_owned(), 2)), "{status:?}");
    assert!(status.contains(&("NoNewPrivs: 1".to_owned(), 2)), "{status:?}");
    drop(stop);
    assert!(other.join().expect("no panic").is_err());
    // The child runs the case of an unlocked process, which must fail there.
    let program = std::env::current_exe().expect("this program");
    let child =
        Command::new(program).env(CASE, CASES[CASES.len() - 1].0).stderr(Stdio::null()).status().expect("it starts");
    assert!(!child.success(), "a child could make a socket");
}

fn a_child_knows_that_it_is_locked(places: &Places) {
    locked(places);
    let child = Command::new(std::env::current_exe().expect("this program")).env(CASE, IS_LOCKED).status();
    assert!(child.expect("it starts").success());
}

fn is_locked(places: &Places) {
    assert!(locked(places).is_sealed());
}

fn running_threads_forbid_the_lock(places: &Places) {
    let (stop, wait) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || wait.recv());
    assert!(matches!(lock(places), Err(SealError::Threads { found: 2 })));
    drop(stop);
    assert!(other.join().expect("no panic").is_err());
}

fn an_open_socket_forbids_the_lock(places: &Places) {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None);
    let error = lock(places).expect_err("refused");
    assert!(matches!(error, SealError::Inherited { .. }), "{error}");
    assert!(error.to_string().contains("descriptor"), "{error}");
    drop(socket);
}

fn an_unlocked_process_is_told(_: &Places) {
    let attempts = network_attempts();
    assert!(attempts.iter().any(|attempt| !attempt.is_refused()), "{attempts:?}");
    let attempts = file_attempts(&folder().join("secret/file.txt"), &folder());
    assert!(attempts.iter().all(|attempt| !attempt.is_refused()), "{attempts:?}");
}
