//! The inner product of two vectors of bytes, for comparing quantised embeddings.

use crate::isa::{Isa, kernel};
use crate::lanes::Lanes;

/// Σ aᵢ·bᵢ of two vectors of the same length, exactly.
///
/// # Panics
/// If the lengths differ, or are beyond 131,072, where the sum might not fit.
#[must_use]
pub fn byte_dot(isa: Isa, a: &[i8], b: &[i8]) -> i32 {
    assert!(a.len() == b.len() && a.len() <= 1 << 17, "vectors of {} and {} bytes", a.len(), b.len());
    // SAFETY: the lengths are equal, which is all that the kernel asks for.
    unsafe { dot(isa, a, b) }
}

/// How a library that hands over addresses compares vectors of `dim` bytes: the larger their product, the smaller the number.
///
/// What it returns must be called with the addresses of two vectors of `dim` bytes each that stay where they are for as long as
/// the call takes, and with nothing else. It is handed to usearch as its metric, which promises that; the type that usearch
/// asks for has no way to say so.
#[must_use]
pub fn byte_metric(isa: Isa, dim: usize) -> Box<dyn Fn(*const i8, *const i8) -> f32 + Send + Sync> {
    assert!(dim <= 1 << 17, "vectors of {dim} bytes");
    Box::new(move |a, b| {
        // SAFETY: both are vectors of `dim` bytes, as the caller promises.
        let (a, b) = unsafe { (std::slice::from_raw_parts(a, dim), std::slice::from_raw_parts(b, dim)) };
        -(byte_dot(isa, a, b) as f32)
    })
}

kernel! {
    fn dot(a: &[i8], b: &[i8]) -> i32 = generic_dot
}

/// The compiler makes widening products of pairs of it, as wide as the instruction set allows: the order of a sum of
/// integers is of no account.
#[inline(always)]
unsafe fn generic_dot<L: Lanes>(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(&a, &b)| i32::from(a) * i32::from(b)).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn products_of_bytes_are_exact_on_every_processor(pairs in prop::collection::vec(any::<(i8, i8)>(), 0..500)) {
            let (a, b): (Vec<i8>, Vec<i8>) = pairs.into_iter().unzip();
            let exact: i64 = a.iter().zip(&b).map(|(&a, &b)| i64::from(a) * i64::from(b)).sum();
            for isa in Isa::available() {
                prop_assert_eq!(i64::from(byte_dot(isa, &a, &b)), exact, "{}", isa);
            }
        }
    }
}
