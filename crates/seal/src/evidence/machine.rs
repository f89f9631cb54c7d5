//! What the machine and the build say: interfaces, the kernel's own record of the lock, libraries, and crates.

use std::fs;
use std::path::PathBuf;

use serde::Serialize;

use crate::NETWORK_CRATES;

/// A network interface of this process's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// "up", "down", "unknown" (which loopback is), as the kernel says; empty if it does not.
    pub state: String,
}

/// The network interfaces that this process sees: being sealed is a matter of the process, not of the machine.
#[must_use]
pub fn interfaces() -> Vec<Interface> {
    // Two lines of headings, then "name: figures".
    let table = fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
    let names = table.lines().skip(2).filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim().to_owned());
    let state = |name: &str| fs::read_to_string(format!("/sys/class/net/{name}/operstate")).unwrap_or_default();
    names.map(|name| Interface { state: state(&name).trim().to_owned(), name }).collect()
}

/// What the kernel records of the lock for each thread, as `field: value`, counted: all threads have to say the same.
#[must_use]
pub fn kernel_status() -> Vec<(String, usize)> {
    let mut found: Vec<(String, usize)> = Vec::new();
    for task in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        for line in status.lines().filter(|line| line.starts_with("NoNewPrivs:") || line.starts_with("Seccomp")) {
            let line = line.split_whitespace().collect::<Vec<&str>>().join(" ");
            match found.iter_mut().find(|(known, _)| *known == line) {
                Some((_, threads)) => *threads += 1,
                None => found.push((line, 1)),
            }
        }
    }
    found
}

/// The libraries that this process has loaded.
#[must_use]
pub fn libraries() -> Vec<PathBuf> {
    crate::places::libraries()
}

/// How many crates a lock file of Cargo holds, and which of them make connections.
#[must_use]
pub fn network_crates_in(lock: &str) -> (usize, Vec<&'static str>) {
    let names = || lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    let found = NETWORK_CRATES.iter().filter(|network| names().any(|name| name == **network));
    (names().count(), found.copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m03_a_network_client_in_a_lock_file_is_seen() {
        let lock = "[[package]]\nname = \"serde\"\nversion = \"1\"\n\n[[package]]\nname = \"reqwest\"\n";
        assert_eq!(network_crates_in(lock), (2, vec!["reqwest"]));
        assert_eq!(network_crates_in("name = \"serde\"\n"), (1, Vec::new()));
    }
}
