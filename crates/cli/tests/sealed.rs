//! Nothing leaves the machine: the program opens no socket of the internet families, and works where there is no interface.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{PROGRAM, Run, Workplace, list_at, number_at, text_at, without_settings};

const INGEST: &[&str] = &["ingest", "rivers", "--kb", "other.kb", "--json"];
const EVAL: &[&str] = &["eval", "retrieval", "--data", "set", "--cache", "cache", "--systems", "hybrid", "--json"];
const SEARCH: &[&str] = &["search", "How long is the Danube?", "--kb", "rivers.kb", "--json"];
const ASK: &[&str] = &["ask", "How long is the Danube?", "--kb", "rivers.kb", "--no-generator", "--json"];
const ASK_A_GENERATOR: &[&str] =
    &["ask", "How long is the Danube?", "--kb", "rivers.kb", "--profile", "tiny", "--max-rounds", "1", "--json"];

/// Writes every system call of the network family into a file, of all threads and children.
const TRACE: &[&str] = &["strace", "-f", "-e", "trace=network", "-o", "calls.txt"];

/// A user and a network namespace of their own: the loopback interface is down, and there is no other.
const WITHOUT_INTERFACES: &[&str] = &["unshare", "-r", "-n"];

/// `wrapper` if the machine has it and lets it work, nothing otherwise, with a printed reason.
fn permitted(wrapper: &'static [&'static str], place: &Path) -> Option<&'static [&'static str]> {
    let tried = Command::new(wrapper[0]).args(&wrapper[1..]).arg("true").current_dir(place).output();
    match tried {
        Ok(output) if output.status.success() => Some(wrapper),
        Ok(output) => {
            eprintln!("skipped: {} does not work here: {}", wrapper[0], String::from_utf8_lossy(&output.stderr).trim());
            None
        }
        Err(error) => {
            eprintln!("skipped: {} can't be started: {error}", wrapper[0]);
            None
        }
    }
}

/// Runs `program` inside `wrapper`.
fn run_inside(place: &Workplace, wrapper: &[&str], program: &str, arguments: &[&str]) -> Run {
    let mut command = Command::new(wrapper[0]);
    without_settings(&mut command);
    command.args(&wrapper[1..]).arg(program).args(arguments).current_dir(place.path()).stdin(Stdio::null());
    Run::of(arguments, &command.output().expect("it starts"))
}

/// The traced calls that name an address or a family of the internet.
fn internet_calls(place: &Workplace) -> Vec<String> {
    let calls = fs::read_to_string(place.path().join("calls.txt")).expect("the trace");
    assert!(calls.contains("+++ exited with"), "the trace is not whole:\n{calls}");
    let internet = |line: &&str| ["AF_INET", "PF_INET", "sin_addr", "sin6_addr"].iter().any(|word| line.contains(word));
    calls.lines().filter(internet).map(str::to_owned).collect()
}

/// The answer that the small knowledge base gives without a generator.
fn is_answered(run: &Run) {
    assert_eq!(run.code, 0, "{run:?}");
    let answer = run.json();
    assert_eq!(text_at(&answer, "/status"), "answered");
    assert!(text_at(&answer, "/answer").contains("2,850 km"), "{answer:#}");
}

/// What any generator must bring about, however poor its answer.
fn a_generator_was_asked(run: &Run) {
    assert!(run.code == 0 || run.code == 1, "{run:?}");
    let answer = run.json();
    assert!(number_at(&answer, "/spent/generator_calls") > 0, "{answer:#}");
    let roles: Vec<&str> = list_at(&answer, "/models").iter().map(|model| text_at(model, "/role")).collect();
    assert_eq!(roles, ["embedder", "reranker", "generator"]);
}

/// A test collection of one query.
fn write_collection(place: &Workplace) {
    place.write(
        "set/corpus.jsonl",
        "{\"_id\": \"1\", \"text\": \"The Danube is 2,850 km long.\"}\n{\"_id\": \"2\", \"text\": \"The Tiber flows through Rome.\"}\n",
    );
    place.write("set/queries.jsonl", "{\"_id\": \"q\", \"text\": \"Which river flows through Rome?\"}\n");
    place.write("set/qrels.tsv", "query-id\tcorpus-id\tscore\nq\t2\t1\n");
}

#[test]
fn m03_f38_ingest_search_ask_and_eval_open_no_internet_socket() {
    let Some(place) = Workplace::with_rivers() else { return };
    let Some(trace) = permitted(TRACE, place.path()) else { return };
    write_collection(&place);
    for arguments in [INGEST, EVAL] {
        let ran = run_inside(&place, trace, PROGRAM, arguments);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(internet_calls(&place), Vec::<String>::new(), "{arguments:?}");
    }
    let found = run_inside(&place, trace, PROGRAM, SEARCH);
    assert_eq!(found.code, 0, "{found:?}");
    assert_eq!(text_at(&found.json(), "/results/0/source"), "rivers/danube.txt");
    assert_eq!(internet_calls(&place), Vec::<String>::new(), "search");
    is_answered(&run_inside(&place, trace, PROGRAM, ASK));
    assert_eq!(internet_calls(&place), Vec::<String>::new(), "ask");
}

#[test]
fn m03_f38_a_trace_would_show_an_internet_socket() {
    let place = Workplace::new();
    let Some(trace) = permitted(TRACE, place.path()) else { return };
    if Command::new("bash").arg("-c").arg("true").status().is_err() {
        eprintln!("skipped: there is no bash to open a socket");
        return;
    }
    // The discard port of this machine: whether anybody listens makes no difference.
    run_inside(&place, trace, "bash", &["-c", "exec 3<>/dev/tcp/127.0.0.1/9"]);
    assert!(!internet_calls(&place).is_empty());
}

#[test]
fn m03_f38_ingest_search_ask_and_eval_work_without_any_interface() {
    let Some(place) = Workplace::with_rivers() else { return };
    write_collection(&place);
    let Some(sealed) = permitted(WITHOUT_INTERFACES, place.path()) else { return };
    let interfaces = run_inside(&place, sealed, "cat", &["/proc/net/route"]);
    assert_eq!(interfaces.stdout.lines().skip(1).count(), 0, "there is a way out: {interfaces:?}");
    for arguments in [INGEST, EVAL] {
        let ran = run_inside(&place, sealed, PROGRAM, arguments);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let found = run_inside(&place, sealed, PROGRAM, SEARCH);
    assert_eq!(found.code, 0, "{found:?}");
    assert_eq!(text_at(&found.json(), "/results/0/source"), "rivers/danube.txt");
    is_answered(&run_inside(&place, sealed, PROGRAM, ASK));
}

/// Both at once, since a generator takes its time: traced, in a namespace without interfaces.
#[test]
fn m03_f38_ask_with_a_generator_opens_no_internet_socket_and_needs_no_interface() {
    let Some(place) = Workplace::with_rivers() else { return };
    let sealed = permitted(WITHOUT_INTERFACES, place.path());
    let traced = permitted(TRACE, place.path());
    let wrapper = [sealed.unwrap_or_default(), traced.unwrap_or_default()].concat();
    if wrapper.is_empty() {
        return;
    }
    // A few words are enough to have written.
    place.write("anchorite.toml", "[loop]\nanswer_tokens = 16\npassages = 2\n");
    a_generator_was_asked(&run_inside(&place, &wrapper, PROGRAM, ASK_A_GENERATOR));
    if traced.is_some() {
        assert_eq!(internet_calls(&place), Vec::<String>::new());
    }
}

/// What is missing is said, and nothing is fetched: there is nothing to fetch it through, and nobody tries.
#[test]
fn f18_a_missing_model_is_named_and_not_fetched() {
    let place = Workplace::new();
    fs::create_dir(place.path().join("empty")).expect("a folder");
    fs::write(place.path().join("notes.txt"), "The lease ends in May.\n").expect("a file");
    let wrapper = [
        permitted(WITHOUT_INTERFACES, place.path()).unwrap_or_default(),
        permitted(TRACE, place.path()).unwrap_or_default(),
    ]
    .concat();
    if wrapper.is_empty() {
        return;
    }
    let run = run_inside(&place, &wrapper, PROGRAM, &["ingest", "notes.txt", "--kb", "a.kb", "--models", "empty"]);
    run.is_refused(&["empty", "holds no model"]);
    if wrapper.contains(&"strace") {
        assert_eq!(internet_calls(&place), Vec::<String>::new());
    }
}

/// However little memory there is: it is enough, or the model is refused by name before it is loaded. Never an abort.
#[test]
fn f23_a_model_larger_than_the_memory_is_refused_before_it_is_loaded() {
    let Some(place) = Workplace::with_models() else { return };
    place.write("lines.txt", "one\n");
    let Some(_) = permitted(&["prlimit", "--as=4000000000"], place.path()) else { return };
    let mut refused = 0;
    for mebibytes in (160..=480).step_by(40) {
        let limit = format!("--as={}", mebibytes << 20);
        let run = run_inside(&place, &["prlimit", &limit], PROGRAM, &["embed", "lines.txt", "--threads", "1"]);
        if run.code != 0 {
            run.is_refused(&["all-MiniLM-L6-v2", "MiB of memory", "choose a smaller model"]);
            refused += 1;
        }
    }
    assert!(refused > 0, "the smallest of these limits is too small for the model");
}
