//! Calls that are refused: seccomp filters, set for all threads at once.
//!
//! A filter that names what is refused leaves the rest of the kernel as it is, so that no library breaks in a corner; what
//! is named is every way that we know of to reach a network, another process, or files behind Landlock's back.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use crate::{Finding, Mechanism, SealError, State};

/// Refused whatever their arguments, with what they would be good for.
const REFUSED: &[(&str, &[i64])] = &[
    (
        "sockets",
        &[libc::SYS_socket, libc::SYS_connect, libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4],
    ),
    // What a caller's Unix socket could be used for beyond a stream of bytes: handing over open files.
    (
        "passing descriptors",
        &[libc::SYS_sendmsg, libc::SYS_sendmmsg, libc::SYS_recvmsg, libc::SYS_recvmmsg, libc::SYS_pidfd_getfd],
    ),
    // Its operations, sockets among them, pass by every filter of calls.
    ("io_uring", &[libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register]),
    (
        "other processes",
        &[
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
            libc::SYS_process_madvise,
            libc::SYS_kcmp,
        ],
    ),
    // A key of the kind dns_resolver makes the kernel ask a name server.
    ("kernel keys", &[libc::SYS_add_key, libc::SYS_request_key, libc::SYS_keyctl]),
    ("namespaces", &[libc::SYS_unshare, libc::SYS_setns]),
    (
        "mounts",
        &[
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_move_mount,
            libc::SYS_open_tree,
            libc::SYS_fsopen,
            libc::SYS_fsconfig,
            libc::SYS_fsmount,
            libc::SYS_fspick,
            libc::SYS_pivot_root,
            libc::SYS_chroot,
            libc::SYS_open_by_handle_at,
        ],
    ),
    (
        "the kernel itself",
        &[
            libc::SYS_bpf,
            libc::SYS_perf_event_open,
            libc::SYS_userfaultfd,
            libc::SYS_kexec_load,
            libc::SYS_kexec_file_load,
            libc::SYS_init_module,
            libc::SYS_finit_module,
            libc::SYS_delete_module,
            libc::SYS_reboot,
        ],
    ),
    ("queues to other processes", &[libc::SYS_mq_open, libc::SYS_msgget, libc::SYS_shmget, libc::SYS_semget]),
];

/// Namespaces that `clone` could make: mount, cgroup, UTS, IPC, user, process and network.
const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Controls of terminals that type into them as if the user had: into the shell that runs when this program has ended.
const TYPING: &[u64] = &[0x5412, 0x541C];

/// On x86-64 every call has a second number, for programs with short pointers (x32).
#[cfg(target_arch = "x86_64")]
const SHORT_POINTERS: i64 = 0x4000_0000;
/// Those that have another number there altogether: ioctl, recvfrom, sendmsg, recvmsg, ptrace, kexec_load, recvmmsg,
/// sendmmsg, process_vm_readv, process_vm_writev.
#[cfg(target_arch = "x86_64")]
const RENUMBERED: &[i64] = &[514, 517, 518, 519, 521, 528, 537, 538, 539, 540];

pub(super) fn restrict() -> Result<Finding, SealError> {
    let filters = match filters() {
        Ok(filters) => filters,
        Err(reason) => return Ok(Finding::new(Mechanism::SystemCalls, State::Absent, reason)),
    };
    for filter in &filters {
        match seccompiler::apply_filter_all_threads(filter) {
            Ok(()) => {}
            Err(Error::Seccomp(error))
                if error.raw_os_error() == Some(libc::ENOSYS) || error.raw_os_error() == Some(libc::EINVAL) =>
            {
                let reason = format!("the kernel has no seccomp filters ({error})");
                return Ok(Finding::new(Mechanism::SystemCalls, State::Absent, reason));
            }
            Err(error) => return Err(SealError::System { mechanism: "seccomp", reason: error.to_string() }),
        }
    }
    let names: Vec<&str> = REFUSED.iter().map(|(what, _)| *what).collect();
    let detail = format!("seccomp refuses, in all threads and children: {}", names.join(", "));
    Ok(Finding::new(Mechanism::SystemCalls, State::Enforced, detail))
}

/// The programs for the kernel: one that forbids, and one that hides `clone3`, whose flags a filter can't read; libraries
/// then use `clone`.
fn filters() -> Result<Vec<BpfProgram>, String> {
    let architecture = std::env::consts::ARCH;
    let target = architecture.try_into().map_err(|_| format!("no filter is known for {architecture}"))?;
    let program = |rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32| -> Result<BpfProgram, String> {
        let action = SeccompAction::Errno(errno.unsigned_abs());
        let filter =
            SeccompFilter::new(rules, SeccompAction::Allow, action, target).map_err(|error| error.to_string())?;
        filter.try_into().map_err(|error: seccompiler::BackendError| error.to_string())
    };
    let hidden = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    Ok(vec![program(refused()?, libc::EPERM)?, program(hidden, libc::ENOSYS)?])
}

fn refused() -> Result<BTreeMap<i64, Vec<SeccompRule>>, String> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().flat_map(|(_, calls)| *calls).map(|call| (*call, Vec::new())).collect();
    // A pair of connected sockets reaches nobody else, as long as it is of the local family.
    rules.insert(libc::SYS_socketpair, vec![when(0, SeccompCmpOp::Ne, libc::AF_UNIX.unsigned_abs().into())?]);
    // With an address; without one it writes to a stream that is connected already.
    rules.insert(libc::SYS_sendto, vec![when(4, SeccompCmpOp::Ne, 0)?]);
    let flags = NAMESPACES.iter().map(|flag| {
        let flag = u64::from(flag.cast_unsigned());
        when(0, SeccompCmpOp::MaskedEq(flag), flag)
    });
    rules.insert(libc::SYS_clone, flags.collect::<Result<_, _>>()?);
    let typing = TYPING.iter().map(|control| when(1, SeccompCmpOp::Eq, *control));
    rules.insert(libc::SYS_ioctl, typing.collect::<Result<_, _>>()?);
    #[cfg(target_arch = "x86_64")]
    {
        let second: Vec<i64> = rules.keys().map(|call| call | SHORT_POINTERS).collect();
        let alone = RENUMBERED.iter().map(|call| call | SHORT_POINTERS);
        // Nobody builds such programs for this machine, so their calls are refused without looking at arguments.
        rules.extend(second.into_iter().chain(alone).map(|call| (call, Vec::new())));
    }
    Ok(rules)
}

fn when(argument: u8, operation: SeccompCmpOp, value: u64) -> Result<SeccompRule, String> {
    let width = match operation {
        SeccompCmpOp::Ne if argument == 4 => SeccompCmpArgLen::Qword,
        _ => SeccompCmpArgLen::Dword,
    };
    SeccompCondition::new(argument, width, operation, value)
        .and_then(|condition| SeccompRule::new(vec![condition]))
        .map_err(|error| error.to_string())
}
