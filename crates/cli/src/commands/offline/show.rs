//! The evidence, for whoever reads it without knowing the program.

use std::io;

use anchorite_seal::State;
use anchorite_seal::evidence::{Attempt, Descriptor, Outcome};

use super::Evidence;
use crate::commands::search::excerpt;
use crate::output::Output;

pub(super) fn all(evidence: &Evidence, output: &Output) -> io::Result<()> {
    let say = |line: String| output.line(line);
    let program = &evidence.program;
    say(format!("anchorite {} on {}, {}", program.version, program.system, program.time))?;
    say(format!("{}\nSHA-256 {}", program.file.display(), program.sha256))?;

    say("\n1. Before the lock".to_owned())?;
    let interfaces: Vec<String> =
        evidence.before.interfaces.iter().map(|one| format!("{} ({})", one.name, one.state)).collect();
    say(format!("   network interfaces: {}", listed(&interfaces)))?;
    descriptors(&evidence.before.descriptors, output)?;
    evidence.before.sockets.iter().try_for_each(|attempt| say(tried(attempt)))?;

    say("\n2. The lock, which this process can't take off again".to_owned())?;
    for finding in &evidence.lock.findings {
        let state = match finding.state {
            State::Enforced => "enforced",
            State::Partly => "partly",
            State::Absent => "ABSENT",
        };
        say(format!("   {state:<9} {}: {}", finding.mechanism, finding.detail))?;
    }
    for (what, places) in [
        ("read", &evidence.lock.read),
        ("read and write", &evidence.lock.write),
        ("start, inside the same lock", &evidence.lock.run),
    ] {
        let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
        say(format!("   may {what}: {}", listed(&places)))?;
    }

    let inside = &evidence.inside;
    say("\n3. Inside the lock: what is forbidden was tried".to_owned())?;
    inside.network.iter().chain(&inside.files).try_for_each(|attempt| say(tried(attempt)))?;

    say("\n4. Inside the lock: a search".to_owned())?;
    let search = &inside.search;
    match &search.problem {
        Some(problem) => say(format!("   did not run: {problem}"))?,
        None => {
            let made = if search.made_for_this { "made for this and removed again" } else { "given" };
            say(format!(
                "   {} documents in a knowledge base, {made}; models: {}",
                search.documents,
                listed(&search.models)
            ))?;
            say(format!("   {:?}: {} results in {:.2} s, the best:", search.query, search.results, search.seconds))?;
            say(format!("   {}: {}", search.best_source, excerpt(&search.best_text, 160)))?;
        }
    }
    let kernel: Vec<String> =
        inside.kernel.iter().map(|one| format!("{} ({} threads)", one.record, one.threads)).collect();
    say(format!("   the kernel's record afterwards: {}", listed(&kernel)))?;
    descriptors(&inside.descriptors, output)?;

    say("\n5. What the program is made of".to_owned())?;
    let linked = &evidence.linked;
    say(format!(
        "   {} crates in the lock file of this build; of {} crates that make connections: {}",
        linked.crates,
        linked.looked_for,
        if linked.network_crates.is_empty() { "none".to_owned() } else { linked.network_crates.join(", ") }
    ))?;
    let libraries: Vec<String> = linked.libraries.iter().map(|path| path.display().to_string()).collect();
    say(format!("   libraries loaded: {}", listed(&libraries)))?;
    say(
        "   The C library has functions for sockets, as in every program; part 3 shows that they fail here.".to_owned()
    )?;

    if evidence.proved {
        return say("\nProved: this process can reach no network, and no file but those above.".to_owned());
    }
    say("\nNOT PROVED:".to_owned())?;
    evidence.lacking.iter().try_for_each(|reason| say(format!("   {reason}")))
}

fn tried(attempt: &Attempt) -> String {
    match &attempt.outcome {
        Outcome::Refused { error, .. } => format!("   refused   {}: {error}", attempt.what),
        Outcome::Allowed => format!("   allowed   {}", attempt.what),
        Outcome::NotTried { reason } => format!("   not tried {}: {reason}", attempt.what),
    }
}

fn descriptors(open: &[Descriptor], output: &Output) -> io::Result<()> {
    let open: Vec<String> = open.iter().map(|one| format!("{} {}", one.number, one.target)).collect();
    output.line(format!("   open descriptors: {}", listed(&open)))
}

fn listed(items: &[String]) -> String {
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}
