//! `--sealed` and `doctor --prove-offline`: the process takes its own rights away, and works without them.
#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::process::{Command, Stdio};

use common::{Run, Workplace, at, list_at, number_at, text_at};

/// True where this machine can seal; where it can't, the reason is printed.
fn can_seal(place: &Workplace) -> bool {
    let tried = place.run(&["graph", "simple", "--sealed"]);
    let lacks = tried.stderr.contains("can't seal a process") || tried.stderr.contains("could not be set up");
    if lacks {
        assert_eq!(tried.code, 2, "what can't be sealed must not run: {tried:?}");
        eprintln!("skipped: {}", tried.stderr.trim());
    }
    !lacks
}

fn succeeds(place: &Workplace, arguments: &[&str]) -> Run {
    let run = place.run(arguments);
    assert_eq!(run.code, 0, "{run:?}");
    run
}

#[test]
fn m03_sealed_commands_work() {
    let Some(place) = Workplace::with_rivers() else { return };
    if !can_seal(&place) {
        return;
    }
    let ingest = succeeds(&place, &["ingest", "rivers", "--kb", "sealed.kb", "--sealed", "--json"]);
    assert_eq!(number_at(&ingest.json(), "/added"), 4);
    let search = succeeds(&place, &["--sealed", "search", "How long is the Danube?", "--kb", "sealed.kb", "--json"]);
    assert_eq!(text_at(&search.json(), "/results/0/source"), "rivers/danube.txt");
    let ask = ["ask", "How long is the Danube?", "--kb", "sealed.kb", "--no-generator", "--sealed", "--json"];
    assert!(text_at(&succeeds(&place, &ask).json(), "/answer").contains("2,850 km"));
    succeeds(&place, &["kb", "delete", "rivers/elbe.txt", "--kb", "sealed.kb", "--sealed"]);
    succeeds(&place, &["kb", "verify", "--kb", "sealed.kb", "--sealed"]);
    place.write("lines.txt", "one\ntwo\n");
    assert_eq!(succeeds(&place, &["embed", "lines.txt", "--sealed"]).records().len(), 2);
    let input = place.run_with_input(&["embed", "--sealed"], "one\n");
    assert_eq!((input.code, input.records().len()), (0, 1), "{input:?}");
}

#[test]
fn m03_a_generator_writes_inside_the_lock() {
    let Some(place) = Workplace::with_rivers() else { return };
    if !can_seal(&place) {
        return;
    }
    place.write("anchorite.toml", "sealed = true\nprofile = \"tiny\"\n[loop]\nanswer_tokens = 16\npassages = 2\n");
    let ask = ["ask", "How long is the Danube?", "--kb", "rivers.kb", "--max-rounds", "1", "--thread", "t", "--json"];
    let run = place.run(&ask);
    assert!(run.code == 0 || run.code == 1, "{run:?}");
    assert!(number_at(&run.json(), "/spent/generator_calls") > 0, "{run:?}");
    succeeds(&place, &["kb", "thread", "t", "--kb", "rivers.kb"]);
}

#[test]
fn m03_what_a_sealed_command_was_not_given_it_can_not_read() {
    let Some(place) = Workplace::with_models() else { return };
    if !can_seal(&place) {
        return;
    }
    place.write("outside/secret.txt", "The launch code is swordfish. It is kept in the outer folder.\n");
    place.write("notes/open.txt", "The notes say that the garden is watered on Mondays.\n");
    std::os::unix::fs::symlink(place.path().join("outside/secret.txt"), place.path().join("notes/link.txt"))
        .expect("a link");
    let unsealed = place.run(&["ingest", "notes/open.txt", "notes/link.txt", "--kb", "unsealed.kb", "--json"]);
    assert_eq!(number_at(&unsealed.json(), "/added"), 2, "without the lock the link is followed: {unsealed:?}");
    // The folder is given, and a link in it leads out.
    let sealed = place.run(&["ingest", "notes", "--kb", "sealed.kb", "--sealed", "--json"]);
    assert_eq!(sealed.code, 0, "{sealed:?}");
    assert_eq!(number_at(&sealed.json(), "/added"), 1, "{sealed:?}");
    let found = place.run(&["search", "launch code swordfish", "--kb", "sealed.kb", "--json"]);
    assert!(!found.stdout.contains("swordfish is") && !found.stdout.contains("secret"), "{found:?}");
}

/// One page with one line of text.
fn small_pdf(line: &str) -> Vec<u8> {
    let content = format!("BT /F1 12 Tf 72 700 Td ({line}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R /Resources << /Font << /F1 4 0 R >> >> >>"
            .to_owned(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
    ];
    let (mut file, mut table) = ("%PDF-1.4\n".to_owned(), String::new());
    for (index, object) in objects.iter().enumerate() {
        table.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", index + 1));
    }
    let start = file.len();
    file.push_str(&format!("xref\n0 6\n0000000000 65535 f \n{table}trailer\n<< /Size 6 /Root 1 0 R >>\n"));
    file.push_str(&format!("startxref\n{start}\n%%EOF\n"));
    file.into_bytes()
}

#[test]
fn m03_a_sealed_process_has_files_taken_apart_by_a_child_inside_the_lock() {
    let Some(place) = Workplace::with_models() else { return };
    if !can_seal(&place) {
        return;
    }
    place.write("papers/bridge.pdf", small_pdf("The Wenlow bridge is 418 metres long."));
    place.write("papers/damaged.pdf", "%PDF-1.7 and no more");
    let ingest = place.json(&["ingest", "papers", "--kb", "papers.kb", "--sealed"], 0);
    assert_eq!(number_at(&ingest, "/added"), 1, "{ingest:#}");
    assert_eq!(text_at(&ingest, "/failed/0/source"), "papers/damaged.pdf", "{ingest:#}");
    let found = place.json(&["search", "How long is the bridge?", "--kb", "papers.kb", "--sealed"], 0);
    assert!(text_at(&found, "/results/0/text").contains("418 metres"), "{found:#}");
}

/// Every thread of a sealed command is filtered, and no call of it names a family of the internet.
#[test]
fn m03_f38_a_sealed_command_makes_no_socket_at_all() {
    let Some(place) = Workplace::with_rivers() else { return };
    let traced = |arguments: &[&str]| {
        let mut command = Command::new("strace");
        common::without_settings(&mut command);
        command.args(["-f", "-e", "trace=network,io_uring_setup", "-o", "calls.txt", common::PROGRAM]).args(arguments);
        command.current_dir(place.path()).stdin(Stdio::null()).output()
    };
    match traced(&["graph", "simple"]) {
        Ok(output) if output.status.success() => {}
        _ => return eprintln!("skipped: strace does not work here"),
    }
    if !can_seal(&place) {
        return;
    }
    let output = traced(&["search", "How long is the Danube?", "--kb", "rivers.kb", "--sealed"]).expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let calls = fs::read_to_string(place.path().join("calls.txt")).expect("the trace");
    assert!(calls.contains("+++ exited with 0 +++"), "{calls}");
    let network: Vec<&str> =
        calls.lines().filter(|line| line.contains("socket(") || line.contains("io_uring")).collect();
    assert_eq!(network, Vec::<&str>::new());
}

#[test]
fn m44_the_proof_shows_what_is_refused_and_a_search_inside_the_lock() {
    let Some(place) = Workplace::with_rivers() else { return };
    if !can_seal(&place) {
        return;
    }
    let proof = place.json(&["doctor", "--prove-offline"], 0);
    assert_eq!(at(&proof, "/proved"), true, "{proof:#}");
    let network = list_at(&proof, "/inside/network");
    for what in ["IPv4, TCP", "IPv6, UDP", "netlink", "connect to 192.0.2.1:443", "resolve the name"] {
        let attempt = network.iter().find(|attempt| text_at(attempt, "/what").contains(what));
        assert!(attempt.is_some_and(|attempt| attempt.pointer("/outcome/refused").is_some()), "{what}: {proof:#}");
    }
    assert_eq!(number_at(&network[0], "/outcome/refused/errno"), 1);
    for attempt in list_at(&proof, "/inside/files") {
        assert!(attempt.pointer("/outcome/refused").is_some(), "{attempt:#}");
    }
    assert_eq!(text_at(&proof, "/before/sockets/0/outcome"), "allowed", "the lock is what refuses");
    assert!(number_at(&proof, "/inside/search/results") > 0);
    assert!(text_at(&proof, "/inside/search/best_text").contains("two on Saturdays"), "{proof:#}");
    assert!(number_at(&proof, "/linked/crates") > 200);
    assert_eq!(list_at(&proof, "/linked/network_crates").len(), 0);
    assert_eq!(text_at(&proof, "/program/sha256").len(), 64);

    let given = place.json(&["doctor", "--prove-offline", "--kb", "rivers.kb", "--query", "Where is Rome?"], 0);
    assert_eq!(text_at(&given, "/inside/search/best_source"), "rivers/tiber.md");

    let text = succeeds(&place, &["doctor", "--prove-offline"]).stdout;
    for line in ["refused   connect to", "Operation not permitted", "Proved: this process can reach no network"] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn m44_without_models_nothing_is_proved_and_the_reason_is_given() {
    let place = Workplace::new();
    if !can_seal(&place) {
        return;
    }
    fs::create_dir(place.path().join("empty")).expect("a folder");
    let run = place.run(&["doctor", "--prove-offline", "--models", "empty", "--json"]);
    assert_eq!(run.code, 1, "{run:?}");
    let proof = run.json();
    assert_eq!(at(&proof, "/proved"), false);
    assert!(text_at(&proof, "/lacking/0").contains("no search ran"), "{proof:#}");
}

#[test]
fn m03_an_open_network_socket_of_the_caller_stops_a_sealed_command() {
    let place = Workplace::new();
    if !can_seal(&place) || Command::new("bash").arg("-c").arg("true").status().is_err() {
        return;
    }
    // The discard port of this machine over UDP: the socket is made, and nothing is sent.
    let mut command = Command::new("bash");
    common::without_settings(&mut command);
    let line = format!("exec 7<>/dev/udp/127.0.0.1/9; exec {} graph simple --sealed", common::PROGRAM);
    let output =
        command.arg("-c").arg(line).current_dir(place.path()).stdin(Stdio::null()).output().expect("it starts");
    Run::of(&["graph"], &output).is_refused(&["descriptor 7", "left open", "closed"]);
}
