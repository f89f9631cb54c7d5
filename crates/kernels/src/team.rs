//! Threads that share the work of one pass, with little delay between one piece of work and the next.
//!
//! A decoder that writes one token asks for a hundred small products one after the other; waking a thread for each would
//! cost more than the product. So the threads of a team look out for work for some microseconds before they sleep, and who
//! hands out work does not wait for one that sleeps: it does all of it itself, if nobody comes.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Looks at the state of the team before a thread sleeps: some 30 µs.
const LOOKS: usize = 2_000;

/// In [`Shared::state`]: work may be joined.
const OPEN: u64 = 1 << 31;
/// One piece of work after the other.
const GENERATION: u64 = 1 << 32;
/// Threads that have joined.
const INSIDE: u64 = OPEN - 1;

type Work = *const (dyn Fn(usize) + Sync);

struct Shared {
    /// Generation, [`OPEN`], and how many threads of the team are inside.
    state: AtomicU64,
    /// What is to be done. Read only by threads that are inside, written only while nobody is.
    work: std::cell::UnsafeCell<Option<Work>>,
    next: AtomicUsize,
    count: AtomicUsize,
    panicked: AtomicBool,
    over: AtomicBool,
    sleepers: Mutex<usize>,
    wake: Condvar,
}

// SAFETY: `work` is written only by the one that hands out work, while no thread is inside, and read only by those that are;
// what it points to is `Sync` and outlives the time that anybody is inside.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

/// Threads that share work. Work is handed out by one caller at a time; a second one does its own alone.
pub struct Team {
    shared: Arc<Shared>,
    handing_out: Mutex<()>,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Team {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Team").field("size", &self.size()).finish()
    }
}

impl Team {
    /// A team of `size` threads, of which the caller is one.
    #[must_use]
    pub fn new(size: usize) -> Self {
        let shared = Arc::new(Shared {
            state: AtomicU64::new(0),
            work: std::cell::UnsafeCell::new(None),
            next: AtomicUsize::new(0),
            count: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            over: AtomicBool::new(false),
            sleepers: Mutex::new(0),
            wake: Condvar::new(),
        });
        // A thread that can't be had makes the team smaller, and nothing wrong.
        let threads = (1..size)
            .map_while(|number| {
                let shared = Arc::clone(&shared);
                std::thread::Builder::new().name(format!("team-{number}")).spawn(move || shared.serve()).ok()
            })
            .collect();
        Self { shared, handing_out: Mutex::new(()), threads }
    }

    /// Threads, with the caller.
    #[must_use]
    pub fn size(&self) -> usize {
        self.threads.len() + 1
    }

    /// Calls `work` once with each number below `count`, on whichever thread comes first, and returns when all are done.
    ///
    /// # Panics
    /// If `work` panics.
    pub fn each(&self, count: usize, work: impl Fn(usize) + Sync) {
        let alone = count < 2 || self.threads.is_empty();
        let Some(_guard) = (if alone { None } else { try_lock(&self.handing_out) }) else {
            (0..count).for_each(work);
            return;
        };
        self.shared.hand_out(count, &work);
    }

    /// Calls `work` with each piece of `length` of `items` and its number.
    ///
    /// # Panics
    /// If `length` is 0, or `work` panics.
    pub fn chunks<T: Send>(&self, items: &mut [T], length: usize, work: impl Fn(usize, &mut [T]) + Sync) {
        let (start, total) = (Pointer(items.as_mut_ptr()), items.len());
        self.each(total.div_ceil(length), |number| {
            let from = number * length;
            // SAFETY: pieces are within `items`, don't overlap, and each number comes once; `items` is borrowed alone.
            let piece = unsafe { std::slice::from_raw_parts_mut(start.at(from), length.min(total - from)) };
            work(number, piece);
        });
    }
}

/// A pointer that goes along to other threads; who uses it sees to it that they don't meet.
pub(crate) struct Pointer<T>(pub(crate) *mut T);
impl<T> Clone for Pointer<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Pointer<T> {}
// SAFETY: a mere address; its uses say why they are sound.
unsafe impl<T> Sync for Pointer<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Pointer<T> {}

impl<T> Pointer<T> {
    /// # Safety
    /// As `pointer::add`.
    pub(crate) unsafe fn at(self, index: usize) -> *mut T {
        // SAFETY: the caller's contract.
        unsafe { self.0.add(index) }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        drop(self.shared.sleepers());
        self.shared.wake.notify_all();
        for thread in self.threads.drain(..) {
            // A panic of a thread was told when it happened.
            let _ = thread.join();
        }
    }
}

fn try_lock(mutex: &Mutex<()>) -> Option<MutexGuard<'_, ()>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(std::sync::TryLockError::WouldBlock) => None,
    }
}

impl Shared {
    fn sleepers(&self) -> MutexGuard<'_, usize> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hand_out(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        // SAFETY: only the lifetime is forgotten; this function does not return before everybody has left.
        let work = unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), Work>(work) };
        // SAFETY: the work before is closed and left by all, and the caller alone hands out.
        unsafe { *self.work.get() = Some(work) };
        // Left over where the caller's own part panicked as well.
        self.panicked.store(false, Ordering::Relaxed);
        self.next.store(0, Ordering::Relaxed);
        self.count.store(count, Ordering::Relaxed);
        let generation = (self.state.load(Ordering::Relaxed) & !(OPEN | INSIDE)).wrapping_add(GENERATION);
        self.state.store(generation | OPEN, Ordering::SeqCst);
        if *self.sleepers() > 0 {
            self.wake.notify_all();
        }
        let leave = Leave(self);
        self.take_part(work);
        drop(leave);
        if self.panicked.swap(false, Ordering::SeqCst) {
            panic!("a thread of the team panicked");
        }
    }

    /// Does what nobody has taken yet.
    fn take_part(&self, work: Work) {
        let count = self.count.load(Ordering::Relaxed);
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            // SAFETY: who hands out waits until all that are inside have left, and so `work` is there.
            unsafe { (*work)(number) };
        }
    }

    fn serve(&self) {
        let mut done = 0;
        while let Some(generation) = self.next_work(done) {
            done = generation;
            if !self.enter(generation) {
                continue;
            }
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                // SAFETY: this thread is inside, so nobody writes.
                if let Some(work) = unsafe { *self.work.get() } {
                    self.take_part(work);
                }
            }));
            if result.is_err() {
                self.panicked.store(true, Ordering::SeqCst);
            }
            self.state.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Joins the work of `generation` unless it is closed.
    fn enter(&self, generation: u64) -> bool {
        let mut state = self.state.load(Ordering::SeqCst);
        while state & OPEN != 0 && state & !(OPEN | INSIDE) == generation {
            match self.state.compare_exchange_weak(state, state + 1, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Waits for open work of another generation than `done`; `None` when the team is given up.
    fn next_work(&self, done: u64) -> Option<u64> {
        let waiting = || {
            let state = self.state.load(Ordering::SeqCst);
            let generation = state & !(OPEN | INSIDE);
            (state & OPEN != 0 && generation != done).then_some(generation)
        };
        loop {
            for _ in 0..LOOKS {
                if self.over.load(Ordering::Relaxed) {
                    return None;
                }
                if let Some(generation) = waiting() {
                    return Some(generation);
                }
                std::hint::spin_loop();
            }
            let mut sleepers = self.sleepers();
            // Looked at again under the lock that whoever hands out takes after opening.
            if waiting().is_none() && !self.over.load(Ordering::SeqCst) {
                *sleepers += 1;
                sleepers = self.wake.wait(sleepers).unwrap_or_else(PoisonError::into_inner);
                *sleepers -= 1;
            }
        }
    }
}

/// Closes the work and waits until all have left it, also where the caller's own part panics.
struct Leave<'a>(&'a Shared);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_and(!OPEN, Ordering::SeqCst);
        let mut looks = 0usize;
        while self.0.state.load(Ordering::SeqCst) & INSIDE != 0 {
            looks += 1;
            // The other may have lost its processor to another process; it gets this one.
            if looks.is_multiple_of(LOOKS) { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once() {
        for size in [1, 2, 5] {
            let team = Team::new(size);
            assert_eq!(team.size(), size);
            for round in 0..if cfg!(miri) { 3 } else { 2_000 } {
                let count = round % 17;
                let seen: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                team.each(count, |number| {
                    seen[number].fetch_add(1, Ordering::Relaxed);
                });
                assert!(seen.iter().all(|seen| seen.load(Ordering::Relaxed) == 1), "{size} threads, {count} numbers");
            }
        }
    }

    #[test]
    fn work_within_work_is_done_by_the_one_who_asks() {
        let team = Team::new(2);
        let total = AtomicUsize::new(0);
        team.each(4, |_| team.each(5, |number| _ = total.fetch_add(number, Ordering::Relaxed)));
        assert_eq!(total.into_inner(), 40);
    }

    #[test]
    fn pieces_are_whole_and_do_not_meet() {
        let team = Team::new(3);
        let mut items = vec![0usize; 1003];
        team.chunks(&mut items, 10, |number, piece| piece.iter_mut().for_each(|item| *item += number + 1));
        assert!(items.iter().enumerate().all(|(index, item)| *item == index / 10 + 1));
    }

    #[test]
    fn a_panic_is_told_and_the_team_goes_on() {
        let team = Team::new(2);
        for _ in 0..20 {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                team.each(8, |number| assert!(number != 5, "five"));
            }));
            assert!(result.is_err());
            let total = AtomicUsize::new(0);
            team.each(8, |number| _ = total.fetch_add(number, Ordering::Relaxed));
            assert_eq!(total.into_inner(), 28);
        }
    }

    #[test]
    fn a_team_that_slept_wakes() {
        let team = Team::new(2);
        let (first, second) = (std::sync::Barrier::new(2), AtomicUsize::new(0));
        std::thread::sleep(std::time::Duration::from_millis(20));
        // Two pieces that wait for each other need two threads.
        team.each(2, |_| {
            first.wait();
            second.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(second.into_inner(), 2);
    }
}
