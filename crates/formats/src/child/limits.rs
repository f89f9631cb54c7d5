//! What the child may not do any more, once it has said so.

use anchorite_core::Limits;

/// Limits this process for good. What could not be limited is returned, in words; on systems other than Linux that is more.
#[cfg(target_os = "linux")]
pub(super) fn limit_this_process(limits: &Limits) -> Vec<String> {
    // Landlock's rules are made through a file descriptor: they come before the limit on those.
    let landlock = linux::no_files_and_no_network();
    let mut unlimited = resources(limits);
    // Either of the two keeps it from files and from the network; not every kernel has both.
    if let (Err(first), Err(second)) = (&landlock, &linux::few_system_calls()) {
        unlimited.push(format!("access to files and network ({first}; {second})"));
    }
    unlimited
}

/// As on Linux, without what only Linux has.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn limit_this_process(limits: &Limits) -> Vec<String> {
    let mut unlimited = resources(limits);
    unlimited.push("access to files and network (this system has no way that needs no privileges)".to_owned());
    unlimited
}

/// Nothing is limited but time, by the parent.
#[cfg(not(unix))]
pub(super) fn limit_this_process(_: &Limits) -> Vec<String> {
    vec!["memory, processor time, access to files and network (not known how on this system)".to_owned()]
}

/// A process is given up by its parent long before: this is for one whose parent has died.
#[cfg(unix)]
const FILES_WORTH_OF_TIME: u64 = 20;

/// Memory, processor time, and no new files, not even of a crash.
#[cfg(unix)]
fn resources(limits: &Limits) -> Vec<String> {
    use rustix::process::{Resource, Rlimit, setrlimit};

    let seconds = limits.extraction_seconds.saturating_mul(FILES_WORTH_OF_TIME);
    let wanted = [
        ("memory", Resource::As, limits.extraction_memory_bytes),
        ("processor time", Resource::Cpu, seconds),
        ("size of files", Resource::Fsize, 0),
        ("open files", Resource::Nofile, 3),
        ("memory dumps", Resource::Core, 0),
    ];
    let mut unlimited = Vec::new();
    for (name, resource, most) in wanted {
        if setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).is_err() {
            unlimited.push(name.to_owned());
        }
    }
    unlimited
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;

    use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetStatus};
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

    /// No path can be opened, made or removed, and no port bound or connected to.
    pub(super) fn no_files_and_no_network() -> Result<(), String> {
        let abi = ABI::V4;
        let rules = Ruleset::default()
            .handle_access(AccessFs::from_all(abi))
            .and_then(|rules| rules.handle_access(AccessNet::from_all(abi)))
            .and_then(Ruleset::create)
            .map_err(|error| error.to_string())?;
        let status = rules.restrict_self().map_err(|error| error.to_string())?;
        match status.ruleset {
            RulesetStatus::NotEnforced => Err("the kernel has no Landlock".to_owned()),
            // Older kernels know less of networks; seccomp forbids sockets altogether.
            RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
        }
    }

    /// What reading, computing, writing and dying need. Everything else fails with "not permitted".
    const CALLS: &[libc::c_long] = &[
        libc::SYS_brk,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_close,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_fstat,
        libc::SYS_futex,
        libc::SYS_getpid,
        libc::SYS_getrandom,
        libc::SYS_gettid,
        libc::SYS_madvise,
        libc::SYS_mmap,
        libc::SYS_mprotect,
        libc::SYS_mremap,
        libc::SYS_munmap,
        libc::SYS_nanosleep,
        libc::SYS_read,
        libc::SYS_restart_syscall,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sched_yield,
        libc::SYS_sigaltstack,
        libc::SYS_tgkill,
        libc::SYS_write,
        libc::SYS_writev,
    ];

    pub(super) fn few_system_calls() -> Result<(), String> {
        let calls: BTreeMap<i64, Vec<seccompiler::SeccompRule>> =
            CALLS.iter().map(|call| (*call, Vec::new())).collect();
        let not_permitted = u32::try_from(libc::EPERM).unwrap_or(1);
        let machine = std::env::consts::ARCH.try_into().map_err(|error| format!("{error}"))?;
        let filter = SeccompFilter::new(calls, SeccompAction::Errno(not_permitted), SeccompAction::Allow, machine)
            .map_err(|error| error.to_string())?;
        let program: BpfProgram = filter.try_into().map_err(|error: seccompiler::BackendError| error.to_string())?;
        seccompiler::apply_filter(&program).map_err(|error| error.to_string())
    }
}
