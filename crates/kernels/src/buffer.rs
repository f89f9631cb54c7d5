//! Memory that starts at a cache line, so that no load of a register straddles two.

use std::ops::{Deref, DerefMut};

const LINE: usize = 64;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

/// A growable row of numbers that starts at a cache line.
///
/// `T` is a plain number for which every pattern of bits is a value.
pub struct Buffer<T> {
    lines: Vec<Line>,
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
        let mut buffer = Self { lines: Vec::new(), length: 0, number: std::marker::PhantomData };
        buffer.resize(length);
        buffer
    }

    /// Makes room for `length` numbers. What was there before is left as it is, in no promised order; new room is zero.
    pub fn resize(&mut self, length: usize) {
        let lines = (length * size_of::<T>()).div_ceil(LINE);
        if lines > self.lines.len() {
            self.lines.resize(lines, Line([0; LINE]));
        }
        self.length = length;
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lines.capacity() * LINE
    }
}

impl<T: Number> Default for Buffer<T> {
    fn default() -> Self {
        Self::zeroed(0)
    }
}

impl<T: Number> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the lines hold at least `length` numbers, aligned to a line, initialised, of any pattern of bits.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.length) }
    }
}

impl<T: Number> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.length) }
    }
}

impl<T> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buffer").field("length", &self.length).finish_non_exhaustive()
    }
}
