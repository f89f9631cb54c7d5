//! A disk whose power can be cut at any call: what was not waited for may then be there, be missing, or be torn, in any order.
//!
//! Files lie in a real folder. SQLite reaches them through a VFS that hands every call on to the system's own and takes
//! notes; the caches through [`Storage`]. Notes are kept of what was written since the last wait. [`CrashDisk::restart`]
//! makes one of the states that a power cut could have left, drawn by a seed:
//! - of the writes to a database file since it was last synced any part is there, each whole or cut at a sector;
//! - a cache file that was never synced is cut, or holds anything;
//! - of what was done to folders since they were synced (files removed, folders renamed) the last part did not happen.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, HashSet};
use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use anchorite_store::{Disk, Storage};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rusqlite::ffi::{self, sqlite3_file, sqlite3_io_methods, sqlite3_vfs};

const SECTOR: usize = 512;

/// What happens at a call of the given number, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// From then on nothing works: the power is gone.
    PowerCut(usize),
    /// This call alone fails.
    Once(usize, Kind),
    /// This and every later call fails.
    Forever(usize, Kind),
}

/// What the system says to a call that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The medium can't be read or written.
    Medium,
    /// There is no space.
    Full,
}

#[derive(Debug)]
enum Write {
    Bytes(usize, Vec<u8>),
    Length(usize),
    Removed,
}

/// A database file: its bytes when it was last synced (`None`: it was not there), and what was written since.
#[derive(Debug, Default)]
struct Tracked {
    durable: Option<Vec<u8>>,
    since: Vec<Write>,
}

/// Something done to a folder that can be undone.
#[derive(Debug)]
enum Move {
    Renamed { from: PathBuf, to: PathBuf },
    Removed { path: PathBuf, kept: PathBuf },
}

#[derive(Debug, Default)]
struct State {
    calls: usize,
    fault: Option<Fault>,
    dead: bool,
    files: BTreeMap<PathBuf, Tracked>,
    moves: Vec<Move>,
    synced: HashSet<u64>,
    removed: usize,
}

impl State {
    /// Counts a call that changes something, and fails it if it is to fail.
    fn call(&mut self) -> Result<(), Kind> {
        let at = self.calls;
        self.calls += 1;
        if self.dead {
            return Err(Kind::Medium);
        }
        match self.fault {
            Some(Fault::PowerCut(when)) if at >= when => {
                self.dead = true;
                Err(Kind::Medium)
            }
            Some(Fault::Once(when, kind)) if at == when => Err(kind),
            Some(Fault::Forever(when, kind)) if at >= when => Err(kind),
            _ => Ok(()),
        }
    }
}

/// See the head of this file.
#[derive(Clone, Debug)]
pub(crate) struct CrashDisk {
    state: Arc<Mutex<State>>,
    vfs: Arc<str>,
    limbo: Arc<tempfile::TempDir>,
}

impl CrashDisk {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("crash-disk-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let state = Arc::new(Mutex::new(State::default()));
        register(&name, &state);
        Self { state, vfs: name.into(), limbo: Arc::new(folder_in_memory()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Sets what goes wrong, counting calls from here.
    pub(crate) fn fail(&self, fault: Option<Fault>) {
        let mut state = self.state();
        (state.calls, state.fault) = (0, fault);
    }

    /// Calls since the last [`CrashDisk::fail`].
    pub(crate) fn calls(&self) -> usize {
        self.state().calls
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state().dead
    }

    /// After a power cut: leaves in `folder` what the medium may hold, and works again. Nothing may be open.
    pub(crate) fn restart(&self, folder: &Path, seed: u64) {
        let mut random = StdRng::seed_from_u64(seed);
        let mut state = self.state();
        let kept = random.random_range(0..=state.moves.len());
        for undone in state.moves.split_off(kept).into_iter().rev() {
            let (now, before) = match &undone {
                Move::Renamed { from, to } => (to, from),
                Move::Removed { path, kept } => (kept, path),
            };
            if now.exists() && !before.exists() {
                fs::rename(now, before).expect("undone");
            }
        }
        state.moves.clear();
        for (path, tracked) in std::mem::take(&mut state.files) {
            match tracked.left(&mut random) {
                Some(bytes) => fs::write(&path, bytes).expect("left"),
                None => Disk.remove(&path).expect("left"),
            }
        }
        scramble(folder, &state.synced, &mut random);
        Disk.remove(&folder.join("anchorite.db-shm")).expect("memory does not outlive the power");
        *state = State { removed: state.removed, ..State::default() };
    }
}

impl Tracked {
    /// The file as it may be after a power cut.
    fn left(self, random: &mut StdRng) -> Option<Vec<u8>> {
        if self.durable.is_none() && random.random_bool(0.3) {
            return None;
        }
        let removed = matches!(self.since.last(), Some(Write::Removed));
        let mut bytes = self.durable.unwrap_or_default();
        let likely = [0.0, 0.5, 0.9, 1.0][random.random_range(0..4)];
        for write in self.since {
            if !random.random_bool(likely) {
                continue;
            }
            match write {
                Write::Length(length) => bytes.resize(length.min(bytes.len()), 0),
                Write::Removed => bytes.clear(),
                Write::Bytes(at, mut written) => {
                    if random.random_bool(0.2) {
                        let sectors = written.len() / SECTOR;
                        written.truncate(random.random_range(0..=sectors) * SECTOR);
                    }
                    let end = at + written.len();
                    if bytes.len() < end {
                        bytes.resize(end, 0);
                    }
                    bytes[at..end].copy_from_slice(&written);
                }
            }
        }
        // An empty file in place of a removed one is possible too: its end was cut before its name was taken away.
        if removed && bytes.is_empty() && random.random_bool(0.5) { None } else { Some(bytes) }
    }

    /// From here on the folder's entry for it is as it is now.
    fn entry_synced(&mut self) {
        if let Some(at) = self.since.iter().rposition(|write| matches!(write, Write::Removed)) {
            self.since.drain(..=at);
            self.durable = None;
        }
        if self.durable.is_none() && !self.since.is_empty() {
            self.durable = Some(Vec::new());
        }
    }
}

/// Spoils every file of the caches that was never waited for.
fn scramble(folder: &Path, synced: &HashSet<u64>, random: &mut StdRng) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        let metadata = fs::symlink_metadata(&path).expect("metadata");
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if metadata.is_dir() {
            scramble(&path, synced, random);
        } else if !name.starts_with("anchorite.db") && name != "writer.lock" && !synced.contains(&metadata.ino()) {
            let mut bytes = fs::read(&path).expect("read");
            match random.random_range(0..3) {
                0 => bytes.truncate(random.random_range(0..=bytes.len())),
                1 => bytes.iter_mut().for_each(|byte| *byte = random.random()),
                _ => {}
            }
            fs::write(&path, bytes).expect("spoilt");
        }
    }
}

/// A folder in memory where the system has one: nothing here waits for a real disk.
pub(crate) fn folder_in_memory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a folder")
}

fn error(kind: Kind) -> io::Error {
    io::Error::from_raw_os_error(if kind == Kind::Full { libc_code::ENOSPC } else { libc_code::EIO })
}

/// Numbers of errors on the systems that these tests run on.
mod libc_code {
    pub(super) const EIO: i32 = 5;
    pub(super) const ENOSPC: i32 = 28;
}

impl Storage for CrashDisk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if self.is_dead() { Err(error(Kind::Medium)) } else { Disk.read(path) }
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        // Between the two calls the file is there and nobody has waited for it.
        self.state().call().map_err(error)?;
        fs::write(path, bytes)?;
        self.sync_file(path)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call().map_err(error)?;
        state.synced.insert(fs::metadata(path)?.ino());
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call().map_err(error)?;
        let within = |moved: &Move| match moved {
            Move::Renamed { to, .. } => to.parent() == Some(path),
            Move::Removed { path: removed, .. } => removed.parent() == Some(path),
        };
        state.moves.retain(|moved| !within(moved));
        let inside = state.files.iter_mut().filter(|(file, _)| file.parent() == Some(path));
        inside.for_each(|(_, tracked)| tracked.entry_synced());
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call().map_err(error)?;
        fs::rename(from, to)?;
        state.moves.push(Move::Renamed { from: from.to_owned(), to: to.to_owned() });
        Ok(())
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.state().call().map_err(error)?;
        Disk.create_dir_all(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call().map_err(error)?;
        if path.exists() {
            let kept = self.limbo.path().join(state.removed.to_string());
            state.removed += 1;
            fs::rename(path, &kept)?;
            state.moves.push(Move::Removed { path: path.to_owned(), kept });
        }
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        if self.is_dead() { Err(error(Kind::Medium)) } else { Disk.list(path) }
    }

    fn sqlite_vfs(&self) -> Option<&str> {
        Some(&self.vfs)
    }
}

/// A file as SQLite holds it; the system's own file follows it in memory.
#[repr(C)]
struct File {
    base: sqlite3_file,
    state: *const Mutex<State>,
    /// Owned; null for files without a name.
    path: *mut PathBuf,
}

/// Where the system's own file begins.
const OWN: usize = size_of::<File>().next_multiple_of(16);

/// Makes SQLite know a VFS called `name` that works on `state`. It stays for as long as the program runs.
fn register(name: &str, state: &Arc<Mutex<State>>) {
    // SAFETY: the system's VFS is a static of SQLite's. Ours is a copy of it with two functions of our own, leaked like its
    // name and its state, so that all three outlive every connection.
    unsafe {
        ffi::sqlite3_initialize();
        let system = ffi::sqlite3_vfs_find(std::ptr::null());
        let mut own = *system;
        own.szOsFile = (OWN as c_int) + (*system).szOsFile;
        own.pNext = std::ptr::null_mut();
        own.zName = CString::new(name).expect("no zero inside").into_raw();
        own.pAppData = Arc::into_raw(state.clone()).cast_mut().cast();
        own.xOpen = Some(open);
        own.xDelete = Some(delete);
        let registered = ffi::sqlite3_vfs_register(Box::leak(Box::new(own)), 0);
        assert_eq!(registered, ffi::SQLITE_OK);
    }
}

unsafe fn system() -> *mut sqlite3_vfs {
    // SAFETY: looks up a static; ours is never made the default.
    unsafe { ffi::sqlite3_vfs_find(std::ptr::null()) }
}

/// SAFETY for all of these: SQLite hands in the file that `open` filled, whose own part follows at `OWN`.
unsafe fn own(file: *mut sqlite3_file) -> *mut sqlite3_file {
    unsafe { file.cast::<u8>().add(OWN).cast() }
}

unsafe fn own_methods(file: *mut sqlite3_file) -> &'static sqlite3_io_methods {
    unsafe { &*(*own(file)).pMethods }
}

/// Runs `change` on what is noted of the file, unless the call is to fail; the result code otherwise.
unsafe fn noted(file: *mut sqlite3_file, change: impl FnOnce(&mut Tracked, &Path)) -> c_int {
    let (state, path) = unsafe {
        let file = file.cast::<File>();
        (&*(*file).state, (*file).path.as_ref())
    };
    let mut state = state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match state.call() {
        Ok(()) => {}
        Err(Kind::Full) => return ffi::SQLITE_FULL,
        Err(Kind::Medium) => return ffi::SQLITE_IOERR,
    }
    if let Some(path) = path {
        let path = path.clone();
        change(state.files.entry(path.clone()).or_default(), &path);
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    unsafe {
        let header = file.cast::<File>();
        (*header).base.pMethods = std::ptr::null();
        (*header).state = (*vfs).pAppData.cast::<Mutex<State>>().cast_const();
        (*header).path = std::ptr::null_mut();
        let state = &*(*header).state;
        if state.lock().unwrap_or_else(std::sync::PoisonError::into_inner).dead {
            return ffi::SQLITE_CANTOPEN;
        }
        if !name.is_null() && flags & ffi::SQLITE_OPEN_READWRITE != 0 {
            let path = PathBuf::from(CStr::from_ptr(name).to_string_lossy().into_owned());
            let durable = fs::read(&path).ok();
            let mut state = state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            state.files.entry(path.clone()).or_insert_with(|| Tracked { durable, since: Vec::new() });
            (*header).path = Box::into_raw(Box::new(path));
        }
        let system = system();
        let opened = (*system).xOpen.expect("there")(system, name, own(file), flags, out);
        if opened == ffi::SQLITE_OK {
            (*header).base.pMethods = &METHODS;
        } else if !(*header).path.is_null() {
            drop(Box::from_raw((*header).path));
        }
        opened
    }
}

unsafe extern "C" fn delete(vfs: *mut sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    unsafe {
        let state = &*(*vfs).pAppData.cast::<Mutex<State>>();
        let mut state = state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if state.call().is_err() {
            return ffi::SQLITE_IOERR_DELETE;
        }
        let path = PathBuf::from(CStr::from_ptr(name).to_string_lossy().into_owned());
        // Removing is lost or not with the power, and what was written before as well, until somebody waits for the folder.
        let tracked = state.files.entry(path).or_default();
        tracked.since.push(Write::Removed);
        if sync != 0 {
            tracked.entry_synced();
        }
        let system = system();
        (*system).xDelete.expect("there")(system, name, sync)
    }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    unsafe {
        let closed = own_methods(file).xClose.expect("there")(own(file));
        let path = (*file.cast::<File>()).path;
        if !path.is_null() {
            drop(Box::from_raw(path));
        }
        closed
    }
}

unsafe extern "C" fn read(file: *mut sqlite3_file, into: *mut c_void, count: c_int, at: i64) -> c_int {
    unsafe {
        let state = &*(*file.cast::<File>()).state;
        if state.lock().unwrap_or_else(std::sync::PoisonError::into_inner).dead {
            return ffi::SQLITE_IOERR_READ;
        }
        own_methods(file).xRead.expect("there")(own(file), into, count, at)
    }
}

unsafe extern "C" fn write(file: *mut sqlite3_file, from: *const c_void, count: c_int, at: i64) -> c_int {
    unsafe {
        let bytes = std::slice::from_raw_parts(from.cast::<u8>(), count as usize).to_vec();
        match noted(file, |tracked, _| tracked.since.push(Write::Bytes(at as usize, bytes))) {
            ffi::SQLITE_OK => own_methods(file).xWrite.expect("there")(own(file), from, count, at),
            failed => failed,
        }
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, length: i64) -> c_int {
    unsafe {
        match noted(file, |tracked, _| tracked.since.push(Write::Length(length as usize))) {
            ffi::SQLITE_OK => own_methods(file).xTruncate.expect("there")(own(file), length),
            failed => failed,
        }
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, _flags: c_int) -> c_int {
    unsafe {
        // The system itself is not asked to wait: the notes stand for it, and the test takes less long.
        noted(file, |tracked, path| {
            *tracked = Tracked { durable: Some(fs::read(path).unwrap_or_default()), since: Vec::new() };
        })
    }
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, size: *mut i64) -> c_int {
    unsafe { own_methods(file).xFileSize.expect("there")(own(file), size) }
}

unsafe extern "C" fn lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    unsafe { own_methods(file).xLock.expect("there")(own(file), level) }
}

unsafe extern "C" fn unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    unsafe { own_methods(file).xUnlock.expect("there")(own(file), level) }
}

unsafe extern "C" fn check_reserved(file: *mut sqlite3_file, reserved: *mut c_int) -> c_int {
    unsafe { own_methods(file).xCheckReservedLock.expect("there")(own(file), reserved) }
}

unsafe extern "C" fn file_control(file: *mut sqlite3_file, operation: c_int, argument: *mut c_void) -> c_int {
    unsafe { own_methods(file).xFileControl.expect("there")(own(file), operation, argument) }
}

unsafe extern "C" fn sector_size(file: *mut sqlite3_file) -> c_int {
    unsafe { own_methods(file).xSectorSize.expect("there")(own(file)) }
}

/// No promise at all: writes may be torn and reordered.
unsafe extern "C" fn characteristics(_: *mut sqlite3_file) -> c_int {
    0
}

unsafe extern "C" fn shm_map(
    file: *mut sqlite3_file,
    page: c_int,
    size: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    unsafe { own_methods(file).xShmMap.expect("there")(own(file), page, size, extend, out) }
}

unsafe extern "C" fn shm_lock(file: *mut sqlite3_file, offset: c_int, count: c_int, flags: c_int) -> c_int {
    unsafe { own_methods(file).xShmLock.expect("there")(own(file), offset, count, flags) }
}

unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    unsafe { own_methods(file).xShmBarrier.expect("there")(own(file)) }
}

unsafe extern "C" fn shm_unmap(file: *mut sqlite3_file, remove: c_int) -> c_int {
    unsafe { own_methods(file).xShmUnmap.expect("there")(own(file), remove) }
}

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};
