//! The lock on Linux.

mod calls;
mod files;

use std::fs;

use crate::evidence::{DescriptorKind, open_descriptors};
use crate::{Finding, Mechanism, Places, Report, SealError, State};

pub(crate) fn lock(places: &Places) -> Result<Report, SealError> {
    if let Some(report) = inherited() {
        return Ok(report);
    }
    let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        return Err(SealError::Threads { found: threads });
    }
    refuse_inherited_sockets()?;
    // Files first: the filter of calls hides the ones that Landlock is set up with from nobody, but what sets up the lock
    // should not run inside half of it.
    let mut findings = files::restrict(places)?;
    findings.push(calls::restrict()?);
    findings.push(no_new_privileges());
    findings.sort_by_key(|finding| finding.mechanism as u8);
    Ok(Report { findings, read: places.read.clone(), write: places.write.clone(), run: places.run.clone() })
}

/// The report of a process that was started by a locked one: it is locked as that one is, and can't even look at what a
/// lock of its own would begin with.
fn inherited() -> Option<Report> {
    use rustix::net::{AddressFamily, SocketType, socket};
    let is_refused = |kind: std::io::ErrorKind| kind == std::io::ErrorKind::PermissionDenied;
    // In this order, so that a process that is not locked makes no socket here.
    let locked = rustix::thread::no_new_privs().unwrap_or(false)
        && fs::read_dir("/").is_err_and(|error| is_refused(error.kind()))
        && socket(AddressFamily::UNIX, SocketType::STREAM, None).is_err_and(|error| is_refused(error.kind()));
    let mechanisms =
        [Mechanism::NoNewPrivileges, Mechanism::SystemCalls, Mechanism::Files, Mechanism::Ports, Mechanism::Processes];
    let finding = |one| Finding::new(one, State::Enforced, "inherited from the process that started this one");
    let findings = mechanisms.into_iter().map(finding).collect();
    locked.then(|| Report { findings, read: Vec::new(), write: Vec::new(), run: Vec::new() })
}

/// The kernel's own word, after both mechanisms asked for it.
fn no_new_privileges() -> Finding {
    match rustix::thread::no_new_privs() {
        Ok(true) => Finding::new(Mechanism::NoNewPrivileges, State::Enforced, "no_new_privs, inherited by every child"),
        Ok(false) => Finding::new(Mechanism::NoNewPrivileges, State::Absent, "the kernel did not set no_new_privs"),
        Err(error) => {
            Finding::new(Mechanism::NoNewPrivileges, State::Absent, format!("the kernel does not tell: {error}"))
        }
    }
}

/// Reading and writing an open socket needs none of the calls that are refused, so there must be none. Unix sockets stay:
/// services hand them out for standard output.
fn refuse_inherited_sockets() -> Result<(), SealError> {
    let open =
        open_descriptors().map_err(|error| SealError::System { mechanism: "procfs", reason: error.to_string() })?;
    match open.into_iter().find(|one| one.kind == DescriptorKind::NetworkSocket) {
        Some(one) => Err(SealError::Inherited { number: one.number, kind: one.target }),
        None => Ok(()),
    }
}
