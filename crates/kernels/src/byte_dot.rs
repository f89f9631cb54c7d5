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

/// The products of `query` with rows of a matrix of signed bytes, each as long as `query`, in the order that `chosen` names
/// them. Rows that lie far apart are fetched ahead.
///
/// # Panics
/// If a row is not there, or the query is longer than 131,072, where a sum might not fit.
pub fn byte_dots(isa: Isa, query: &[i8], rows: &[u8], chosen: &[u32], products: &mut Vec<i32>) {
    let dim = query.len();
    assert!(dim > 0 && dim <= 1 << 17, "a vector of {dim} bytes");
    let count = rows.len() / dim;
    assert!(chosen.iter().all(|&row| (row as usize) < count), "a row beyond the {count} there are");
    products.clear();
    products.reserve(chosen.len());
    // SAFETY: every chosen row is there, which is all that the kernel asks for.
    unsafe { dots(isa, query, rows, chosen, products) }
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

kernel! {
    fn dots(query: &[i8], rows: &[u8], chosen: &[u32], products: &mut Vec<i32>) -> () = generic_dots
}

/// Rows whose bytes are asked for before they are needed.
const AHEAD: usize = 4;
const CACHE_LINE: usize = 64;

#[inline(always)]
unsafe fn generic_dots<L: Lanes>(query: &[i8], rows: &[u8], chosen: &[u32], products: &mut Vec<i32>) {
    let dim = query.len();
    let row = |at: usize| rows.as_ptr().wrapping_add(chosen[at] as usize * dim);
    let fetch = |at: usize| {
        for line in 0..dim.div_ceil(CACHE_LINE) {
            L::prefetch(row(at).wrapping_add(line * CACHE_LINE));
        }
    };
    (0..chosen.len().min(AHEAD)).for_each(fetch);
    for at in 0..chosen.len() {
        if at + AHEAD < chosen.len() {
            fetch(at + AHEAD);
        }
        // SAFETY: the row lies within the matrix, as the caller promises; a signed byte may have any bits.
        let row = unsafe { std::slice::from_raw_parts(row(at).cast::<i8>(), dim) };
        // SAFETY: the lengths are equal.
        products.push(unsafe { generic_dot::<L>(query, row) });
    }
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

        #[test]
        fn chosen_rows_give_the_products_that_they_give_alone(
            (dim, rows, chosen) in (1usize..70, 1usize..9).prop_flat_map(|(dim, count)| (
                Just(dim),
                prop::collection::vec(any::<i8>(), dim * count),
                prop::collection::vec(0..count as u32, 0..20),
            )),
        ) {
            let bytes: Vec<u8> = rows.iter().map(|x| x.cast_unsigned()).collect();
            let row = |at: u32| &rows[at as usize * dim..(at as usize + 1) * dim];
            let alone: Vec<i32> = chosen.iter().map(|&at| byte_dot(Isa::PORTABLE, row(0), row(at))).collect();
            for isa in Isa::available() {
                let mut products = vec![7];
                byte_dots(isa, row(0), &bytes, &chosen, &mut products);
                prop_assert_eq!(&products, &alone, "{}", isa);
            }
        }
    }

    #[test]
    #[should_panic(expected = "a row beyond the 2 there are")]
    fn a_row_that_is_not_there_is_refused() {
        byte_dots(Isa::detect(), &[1, 2], &[1, 2, 3, 4, 5], &[2], &mut Vec::new());
    }
}
