//! Locks the process: no sockets, and files only where allowed; and evidence that the lock holds.
//!
//! [`lock`] takes rights away from the calling process for good, from all of its threads and from every child. It uses what
//! the system has: on Linux, seccomp refuses the calls that make sockets, namespaces, mounts and kernel queues, or that look
//! into other processes; Landlock lets files be opened only below [`Places`], and knows of networks too; no_new_privs keeps
//! a started program from gaining what was taken. What the system lacks is in the [`Report`], never passed over:
//! [`Report::demand`] turns a lack of what sealing rests on into an error. On other systems nothing is enforced, and the
//! report says so.
//!
//! Architecture invariant: this crate takes rights away and looks; it never sends. The one place that makes a socket is
//! [`evidence`], to show that it can't.

mod error;
pub mod evidence;
mod network_crates;
mod places;
mod report;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

pub use error::SealError;
pub use network_crates::NETWORK_CRATES;
pub use places::Places;
pub use report::{Finding, Mechanism, Report, State};

#[cfg(not(target_os = "linux"))]
use elsewhere as system;
#[cfg(target_os = "linux")]
use linux as system;

/// Takes from this process, for good, every right to open sockets, and to open files outside `places`.
///
/// Call it before threads are started: Landlock binds the calling thread and those it starts afterwards.
///
/// # Errors
/// [`SealError::Threads`] if other threads run already, [`SealError::Inherited`] if the caller left a socket of a network
/// open, [`SealError::Place`] if a place can't be opened, [`SealError::System`] if the system refuses for a reason other
/// than not having a mechanism. A mechanism that is not there is no error here: see [`Report::demand`].
pub fn lock(places: &Places) -> Result<Report, SealError> {
    system::lock(places)
}
