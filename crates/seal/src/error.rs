//! Why a process could not be locked.

use std::path::PathBuf;

use thiserror::Error;

const WITHOUT: &str = "or run it without --sealed where there is no network, for example with `unshare -rn`";

/// Why a process could not be locked.
#[derive(Debug, Error)]
pub enum SealError {
    /// The system lacks what sealing rests on.
    #[error(
        "this system can't seal a process: {lacking}; use Linux 5.13 or newer with seccomp and `landlock` in the kernel's `lsm=` list, {WITHOUT}"
    )]
    Lacking {
        /// What is not enforced, and why.
        lacking: String,
    },
    /// Threads that would stay outside the lock.
    #[error(
        "the process has {found} threads, and those already running would stay outside the lock; seal it before it starts any"
    )]
    Threads {
        /// How many there are.
        found: usize,
    },
    /// A socket that the caller left open would still work inside the lock.
    #[error(
        "descriptor {number} is {kind} that the caller left open, and it would work inside the lock; start the program with that descriptor closed"
    )]
    Inherited {
        /// Its number.
        number: u32,
        /// What it is.
        kind: String,
    },
    /// A place that should be allowed can't be opened.
    #[error("{path} can't be opened to allow access to it: {reason}; check the path and its permissions")]
    Place {
        /// The place.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The system has the mechanism and refused to set it up.
    #[error(
        "{mechanism} could not be set up: {reason}; the limits of this container or service may forbid it, {WITHOUT}"
    )]
    System {
        /// The mechanism.
        mechanism: &'static str,
        /// What the system said.
        reason: String,
    },
}
