//! Memory that starts at a cache line, so that no load of a register straddles two.

use std::ops::{Deref, DerefMut};

const LINE: usize = 64;

/// From this size on the system is asked for large pages: weights are read from beginning to end for every token, and
/// there are fewer pages to be found.
#[cfg(target_os = "linux")]
const LARGE: usize = 4 << 20;

/// A growable row of numbers that starts at a cache line.
///
/// `T` is a plain number for which every pattern of bits is a value.
pub struct Buffer<T> {
    /// Zeroed by the system, page by page when it is first touched, by whichever thread does.
    memory: Vec<u8>,
    /// Where the first line starts in it.
    start: usize,
    length: usize,
    number: std::marker::PhantomData<T>,
}

/// Plain numbers: no padding, no pattern of bits that is not a value, alignment no more than a cache line's.
///
/// # Safety
/// Implementors are what the line above says.
pub unsafe trait Number: Copy {}
// SAFETY: a plain number.
unsafe impl Number for f32 {}
// SAFETY: a plain number.
unsafe impl Number for u8 {}
// SAFETY: a plain number.
unsafe impl Number for i8 {}
// SAFETY: a plain number.
unsafe impl Number for u16 {}

impl<T: Number> Buffer<T> {
    /// Zeros.
    #[must_use]
    pub fn zeroed(length: usize) -> Self {
        let memory = vec![0u8; length * size_of::<T>() + LINE];
        let start = memory.as_ptr().align_offset(LINE);
        large_pages(&memory);
        Self { memory, start, length, number: std::marker::PhantomData }
    }

    /// Makes room for `length` numbers. What was there before is left as it is, in no promised order; new room is zero.
    pub fn resize(&mut self, length: usize) {
        let bytes = length * size_of::<T>();
        if self.start + bytes > self.memory.len() {
            let mut grown = Self::zeroed(length);
            let kept = self.memory.len() - self.start;
            grown.memory[grown.start..][..kept.min(bytes)]
                .copy_from_slice(&self.memory[self.start..][..kept.min(bytes)]);
            *self = grown;
        }
        self.length = length;
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.memory.capacity()
    }
}

/// Asks for large pages where the system gives them to those that ask; without them all is as right, and slower.
#[cfg(all(target_os = "linux", not(miri)))]
fn large_pages(memory: &[u8]) {
    if memory.len() >= LARGE {
        let page = 4096;
        let skipped = memory.as_ptr().align_offset(page);
        // SAFETY: the range lies within the slice and starts at a page; the advice changes no byte of it.
        unsafe {
            libc::madvise(memory.as_ptr().add(skipped).cast_mut().cast(), memory.len() - skipped, libc::MADV_HUGEPAGE);
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn large_pages(_: &[u8]) {}

impl<T: Number> Default for Buffer<T> {
    fn default() -> Self {
        Self::zeroed(0)
    }
}

impl<T: Number> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: from `start` on there is memory for `length` numbers, aligned to a line, initialised, of any pattern of
        // bits.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(self.start).cast(), self.length) }
    }
}

impl<T: Number> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr().add(self.start).cast(), self.length) }
    }
}

impl<T> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buffer").field("length", &self.length).finish_non_exhaustive()
    }
}
