//! F06: limits on the size and number of files are errors that say so, and what was finished is kept.
#![cfg(unix)]

mod common;

use std::process::Command;

use common::{PROGRAM, Run, Workplace, list_at, number_at, text_at, without_settings};

/// Runs the program in a shell that sets `limit` first.
fn limited(place: &Workplace, limit: &str, arguments: &str) -> Run {
    let mut command = Command::new("sh");
    let line = format!("ulimit {limit} && exec '{PROGRAM}' {arguments}");
    let output = without_settings(command.args(["-c", &line]).current_dir(place.path())).output().expect("a shell");
    Run::of(&[arguments], &output)
}

#[test]
fn f06_a_limit_on_the_size_of_files_is_told_and_nothing_is_lost() {
    let Some(place) = Workplace::with_rivers() else { return };
    for number in 0..150 {
        place.write(&format!("long/{number}.txt"), format!("Shipment {number} weighs {number} kg. ").repeat(60));
    }
    // In units of 512 bytes or of 1,024, as the shell likes it.
    let refused = limited(&place, "-f 800", "ingest long --kb rivers.kb");
    refused.is_refused(&["rivers.kb", "ulimit -f"]);
    assert_eq!(place.run(&["kb", "verify", "--kb", "rivers.kb"]).code, 0);
    let kept = place.json(&["search", "How long is the Danube?", "--kb", "rivers.kb"], 0);
    assert_eq!(text_at(&kept, "/results/0/source"), "rivers/danube.txt");
    let all = place.json(&["ingest", "long", "--kb", "rivers.kb"], 0);
    assert_eq!(number_at(&all, "/added") + number_at(&all, "/unchanged"), 150, "{all:#}");
}

#[test]
fn f06_a_limit_on_open_files_is_told() {
    let Some(place) = Workplace::with_rivers() else { return };
    place.write("more/oder.txt", "The Oder is 840 km long.\n");
    let mut refused = 0;
    for most in [5, 6, 7, 8, 9, 10, 12, 14, 17, 20] {
        let run = limited(&place, &format!("-n {most}"), "ingest more --kb rivers.kb --json");
        if run.code != 0 {
            refused += 1;
            assert_eq!((run.code, run.stderr.trim().lines().count()), (2, 1), "{most}: {run:?}");
            assert!(
                run.stderr.to_lowercase().contains("open files") || run.stderr.contains("files are open"),
                "{run:?}"
            );
        }
    }
    assert!(refused > 0, "no limit was too low");
    assert_eq!(place.run(&["kb", "verify", "--kb", "rivers.kb"]).code, 0);
    assert_eq!(place.run(&["ingest", "more", "--kb", "rivers.kb"]).code, 0);
    let found = place.json(&["search", "How long is the Oder?", "--kb", "rivers.kb"], 0);
    assert_eq!(
        list_at(&found, "/results").iter().filter(|found| text_at(found, "/source") == "more/oder.txt").count(),
        1
    );
}
