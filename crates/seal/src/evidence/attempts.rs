//! Trying what the lock forbids.

use std::fs;
use std::io;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Serialize;

/// Something that was tried, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// What was tried.
    pub what: String,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The system refused it.
    Refused {
        /// The error in words.
        error: String,
        /// The system's number of the error, where it has one.
        errno: Option<i32>,
    },
    /// It worked.
    Allowed,
    /// It was not tried, since trying could have sent something.
    NotTried {
        /// Why.
        reason: String,
    },
}

impl Attempt {
    fn of<T>(what: impl Into<String>, tried: io::Result<T>) -> Self {
        let outcome = match tried {
            Ok(_) => Outcome::Allowed,
            Err(error) => Outcome::Refused { errno: error.raw_os_error(), error: error.to_string() },
        };
        Self { what: what.into(), outcome }
    }

    /// True if the system refused it.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self.outcome, Outcome::Refused { .. })
    }
}

/// An address that is kept for documentation: nobody has it (RFC 5737).
const NOBODY: ([u8; 4], u16) = ([192, 0, 2, 1], 443);
const NOBODY_6: &str = "[2001:db8::1]:443";
const NAME: &str = "example.com:443";

/// Tries to make a socket of each family, and then, only if none of the internet's could be made, to connect and to resolve
/// a name: with working sockets these would send packets. A socket that could be made is closed at once, unused.
#[must_use]
pub fn network_attempts() -> Vec<Attempt> {
    let mut attempts = sockets();
    let closed = attempts.iter().filter(|attempt| attempt.what.contains("IPv")).all(Attempt::is_refused);
    let name = || format!("resolve the name {NAME}");
    let connect = |address: &str| format!("connect to {address} over TCP");
    let (address, port) = NOBODY;
    let address = std::net::SocketAddr::from((address, port));
    if closed && !attempts.is_empty() {
        attempts.push(Attempt::of(connect(&address.to_string()), connected(&address)));
        if let Ok(address) = NOBODY_6.parse() {
            attempts.push(Attempt::of(connect(NOBODY_6), connected(&address)));
        }
        attempts.push(Attempt::of(name(), NAME.to_socket_addrs()));
    } else {
        let outcome =
            Outcome::NotTried { reason: "sockets are not refused, so it could have sent something".to_owned() };
        let all = [connect(&address.to_string()), connect(NOBODY_6), name()];
        attempts.extend(all.map(|what| Attempt { what, outcome: outcome.clone() }));
    }
    attempts
}

#[allow(clippy::disallowed_types, reason = "the one connection that is tried, to show that it fails")]
fn connected(address: &std::net::SocketAddr) -> io::Result<()> {
    std::net::TcpStream::connect_timeout(address, std::time::Duration::from_secs(1)).map(drop)
}

#[cfg(target_os = "linux")]
fn sockets() -> Vec<Attempt> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    let kinds = [
        ("IPv4, TCP", AddressFamily::INET, SocketType::STREAM),
        ("IPv4, UDP", AddressFamily::INET, SocketType::DGRAM),
        ("IPv6, TCP", AddressFamily::INET6, SocketType::STREAM),
        ("IPv6, UDP", AddressFamily::INET6, SocketType::DGRAM),
        ("raw packets", AddressFamily::PACKET, SocketType::RAW),
        ("netlink", AddressFamily::NETLINK, SocketType::RAW),
        ("to a virtual machine's host", AddressFamily::VSOCK, SocketType::STREAM),
        ("Bluetooth", AddressFamily::BLUETOOTH, SocketType::RAW),
        ("Unix", AddressFamily::UNIX, SocketType::STREAM),
    ];
    let make = |(name, family, kind)| {
        let made = socket_with(family, kind, SocketFlags::CLOEXEC, None);
        Attempt::of(format!("make a socket ({name})"), made.map_err(io::Error::from))
    };
    kinds.into_iter().map(make).collect()
}

#[cfg(not(target_os = "linux"))]
fn sockets() -> Vec<Attempt> {
    Vec::new()
}

/// Tries to read `outside`, to write a file into the folder `beside`, and to start a program of the system.
#[must_use]
pub fn file_attempts(outside: &Path, beside: &Path) -> Vec<Attempt> {
    let file = beside.join(format!("anchorite-must-not-be-{}", std::process::id()));
    let written = fs::write(&file, "x");
    if written.is_ok() {
        // Nothing is left behind where the lock does not hold.
        let _ = fs::remove_file(&file);
    }
    let program = "/bin/true";
    let started = Command::new(program).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    vec![
        Attempt::of(format!("read {}", outside.display()), fs::read(outside)),
        Attempt::of("list the folder /", fs::read_dir("/")),
        Attempt::of(format!("write {}", file.display()), written),
        Attempt::of(format!("start {program}"), started),
    ]
}
