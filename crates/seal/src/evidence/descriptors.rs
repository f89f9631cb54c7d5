//! Open descriptors, by what they are.

use std::fs;
use std::io;

use serde::Serialize;

/// What a descriptor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DescriptorKind {
    /// A file or folder.
    File,
    /// A terminal or another device.
    Device,
    /// A pipe.
    Pipe,
    /// A socket between processes of this machine.
    UnixSocket,
    /// A socket of a network, or one of which the system does not tell the family.
    NetworkSocket,
    /// Something of the kernel's: an event counter, a poll set.
    Kernel,
}

/// An open descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Descriptor {
    /// Its number.
    pub number: u32,
    /// What it is.
    pub kind: DescriptorKind,
    /// What it is open to.
    pub target: String,
}

const DESCRIPTORS: &str = "/proc/self/fd";

/// The descriptors of this process, but for the one that lists them.
///
/// # Errors
/// If the system has no procfs, or does not let it be read.
pub fn open_descriptors() -> io::Result<Vec<Descriptor>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(DESCRIPTORS)? {
        let path = entry?.path();
        // The listing's own descriptor is closed, or another one, when it is looked at afterwards.
        let Ok(target) = fs::read_link(&path) else { continue };
        let target = target.to_string_lossy().into_owned();
        if target.starts_with("/proc/") && target.ends_with("/fd") {
            continue;
        }
        let Some(number) = path.file_name().and_then(|name| name.to_str()?.parse().ok()) else { continue };
        let (kind, target) = told(target);
        found.push(Descriptor { number, kind, target });
    }
    found.sort_by_key(|one| one.number);
    Ok(found)
}

fn told(target: String) -> (DescriptorKind, String) {
    if let Some(inode) = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')) {
        return match family(inode) {
            Some("unix") => (DescriptorKind::UnixSocket, format!("a Unix socket ({target})")),
            Some(family) => (DescriptorKind::NetworkSocket, format!("a socket of the family {family} ({target})")),
            None => (DescriptorKind::NetworkSocket, format!("a socket of unknown family ({target})")),
        };
    }
    let kind = match target.as_str() {
        text if text.starts_with("/dev/") => DescriptorKind::Device,
        text if text.starts_with('/') => DescriptorKind::File,
        text if text.starts_with("pipe:") => DescriptorKind::Pipe,
        _ => DescriptorKind::Kernel,
    };
    (kind, target)
}

/// The lists of sockets, and the column of each with the inode.
const LISTS: &[(&str, usize)] = &[
    ("unix", 6),
    ("tcp", 9),
    ("tcp6", 9),
    ("udp", 9),
    ("udp6", 9),
    ("udplite", 9),
    ("raw", 9),
    ("raw6", 9),
    ("icmp", 9),
    ("icmp6", 9),
    ("packet", 8),
    ("netlink", 9),
];

/// The list that a socket stands in. One that is neither bound nor connected stands in none.
fn family(inode: &str) -> Option<&'static str> {
    LISTS.iter().find_map(|(family, column)| {
        let list = fs::read_to_string(format!("/proc/self/net/{family}")).ok()?;
        list.lines().any(|line| line.split_whitespace().nth(*column) == Some(inode)).then_some(*family)
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn m44_sockets_are_told_from_files_and_unix_sockets_from_others() {
        let file = tempfile::tempfile().expect("a file");
        let (pair, _other) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let internet = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None);
        let internet = internet.expect("a socket");
        let number =
            |descriptor: &dyn std::os::fd::AsRawFd| u32::try_from(descriptor.as_raw_fd()).expect("not negative");
        let open = open_descriptors().expect("a list");
        let kind = |wanted: u32| open.iter().find(|one| one.number == wanted).expect("listed").kind;
        assert_eq!(kind(number(&file)), DescriptorKind::File);
        assert_eq!(kind(number(&pair)), DescriptorKind::UnixSocket);
        assert_eq!(kind(number(&internet)), DescriptorKind::NetworkSocket);
    }
}
