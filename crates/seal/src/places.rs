//! What a locked process may still open.

use std::path::{Path, PathBuf};

/// Files and folders that stay open to a locked process. A folder stands for all that lies below it, now and later. What
/// is not there when the lock is set is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// May be read.
    pub read: Vec<PathBuf>,
    /// May be read, written to, added to and removed from.
    pub write: Vec<PathBuf>,
    /// May be started.
    pub run: Vec<PathBuf>,
}

/// What the C library, the standard library and our own crates read of the machine: its processors, memory and clock.
/// Nothing here says anything about a person or another process.
const MACHINE: &[&str] = &[
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/sys/vm/overcommit_memory",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
    "/dev/urandom",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/usr/share/zoneinfo",
];

/// A place to throw things, for children whose output nobody wants.
const NOWHERE: &str = "/dev/null";

impl Places {
    /// What any program needs of the machine: [`MACHINE`], itself and the libraries it is made of. It may start itself
    /// again, which is how documents are read in a process of their own.
    #[must_use]
    pub fn of_this_program() -> Self {
        let mut places = Self { write: vec![NOWHERE.into()], ..Self::default() };
        places.read.extend(MACHINE.iter().map(PathBuf::from));
        places.read.extend(mapped_files());
        places.run.extend(std::env::current_exe());
        // The loader is started by the kernel on behalf of a program, so it has to be allowed as one.
        let is_loader = |path: &&PathBuf| file_name(path).is_some_and(|name| name.starts_with("ld-"));
        let loaders: Vec<PathBuf> = places.read.iter().filter(is_loader).cloned().collect();
        places.run.extend(loaders);
        places
    }

    /// Lets `path` be read.
    pub fn read(&mut self, path: impl Into<PathBuf>) {
        self.read.push(path.into());
    }

    /// Lets `path` be read and written to.
    pub fn write(&mut self, path: impl Into<PathBuf>) {
        self.write.push(path.into());
    }
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// The files that this process is made of: its program and libraries.
fn mapped_files() -> Vec<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    // The path is the sixth column, and may hold spaces.
    let mut files: Vec<PathBuf> =
        maps.lines().filter_map(|line| line.find('/').map(|at| PathBuf::from(&line[at..]))).collect();
    files.sort();
    files.dedup();
    files
}

/// The libraries that this process has loaded: its mapped files but for the program itself.
pub(crate) fn libraries() -> Vec<PathBuf> {
    let own = std::env::current_exe().ok();
    let is_library = |path: &PathBuf| file_name(path).is_some_and(|name| name.contains(".so"));
    mapped_files().into_iter().filter(|path| Some(path) != own.as_ref() && is_library(path)).collect()
}
