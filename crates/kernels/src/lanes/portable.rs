//! Plain Rust: what every other instruction set is tested against, and what runs where there is none.

use super::Lanes;
use crate::block_format::half_to_float;

#[derive(Clone, Copy)]
pub(crate) struct Portable;

type Floats = [f32; 8];
type Ints = [i32; 8];

macro_rules! each {
    ($lane:ident => $value:expr) => {{
        let mut out = [Default::default(); 8];
        let mut $lane = 0;
        while $lane < 8 {
            out[$lane] = $value;
            $lane += 1;
        }
        out
    }};
}

// SAFETY: plain Rust runs everywhere; what a method reads or writes through a pointer is what the trait says.
unsafe impl Lanes for Portable {
    type Float = Floats;
    type Int = Ints;
    const WIDTH: usize = 8;
    const FLOAT_ROWS: usize = 4;
    const BYTE_VECTORS: usize = 2;
    const BYTE_ROWS: usize = 4;
    const BLOCK_ROWS: usize = 4;
    const UNPACKS: bool = false;
    const SIGNED_BYTES: bool = true;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Floats {
        [x; 8]
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Floats {
        // SAFETY: the caller's pointer is valid for eight numbers.
        unsafe { from.cast::<Floats>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const f32, count: usize) -> Floats {
        // SAFETY: the caller's pointer is valid for `count` numbers.
        each!(lane => if lane < count { unsafe { *from.add(lane) } } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, x: Floats) {
        // SAFETY: the caller's pointer is valid for eight numbers.
        unsafe { to.cast::<Floats>().write_unaligned(x) }
    }
    #[inline(always)]
    unsafe fn store_part(to: *mut f32, count: usize, x: Floats) {
        for (lane, x) in x.iter().enumerate().take(count) {
            // SAFETY: the caller's pointer is valid for `count` numbers.
            unsafe { *to.add(lane) = *x }
        }
    }
    #[inline(always)]
    unsafe fn add(a: Floats, b: Floats) -> Floats {
        each!(lane => a[lane] + b[lane])
    }
    #[inline(always)]
    unsafe fn sub(a: Floats, b: Floats) -> Floats {
        each!(lane => a[lane] - b[lane])
    }
    #[inline(always)]
    unsafe fn mul(a: Floats, b: Floats) -> Floats {
        each!(lane => a[lane] * b[lane])
    }
    #[inline(always)]
    unsafe fn div(a: Floats, b: Floats) -> Floats {
        each!(lane => a[lane] / b[lane])
    }
    #[inline(always)]
    unsafe fn min(a: Floats, b: Floats) -> Floats {
        each!(lane => if a[lane] < b[lane] { a[lane] } else { b[lane] })
    }
    #[inline(always)]
    unsafe fn max(a: Floats, b: Floats) -> Floats {
        each!(lane => if a[lane] > b[lane] { a[lane] } else { b[lane] })
    }
    /// In two roundings: a fused one is a call of a function where the processor has none.
    #[inline(always)]
    unsafe fn mul_add(a: Floats, b: Floats, c: Floats) -> Floats {
        each!(lane => a[lane] * b[lane] + c[lane])
    }
    #[inline(always)]
    unsafe fn sum(x: Floats) -> f32 {
        let half: [f32; 4] = [x[0] + x[4], x[1] + x[5], x[2] + x[6], x[3] + x[7]];
        (half[0] + half[2]) + (half[1] + half[3])
    }
    #[inline(always)]
    unsafe fn largest(x: Floats) -> f32 {
        x.iter().fold(f32::NEG_INFINITY, |a, &b| if a > b { a } else { b })
    }
    #[inline(always)]
    unsafe fn smallest(x: Floats) -> f32 {
        x.iter().fold(f32::INFINITY, |a, &b| if a < b { a } else { b })
    }
    #[inline(always)]
    unsafe fn round(x: Floats) -> Ints {
        each!(lane => x[lane].round_ties_even() as i32)
    }
    #[inline(always)]
    unsafe fn to_float(x: Ints) -> Floats {
        each!(lane => x[lane] as f32)
    }
    #[inline(always)]
    unsafe fn scale(x: Floats, power: Ints) -> Floats {
        each!(lane => f32::from_bits(x[lane].to_bits().wrapping_add((power[lane] << 23) as u32)))
    }
    #[inline(always)]
    unsafe fn int_zero() -> Ints {
        [0; 8]
    }
    #[inline(always)]
    unsafe fn store_bytes(to: *mut u8, x: Ints) {
        // SAFETY: the caller's pointer is valid for eight bytes.
        unsafe { to.cast::<[u8; 8]>().write_unaligned(each!(lane => x[lane] as u8)) }
    }

    #[inline(always)]
    unsafe fn load_half(from: *const u16) -> Floats {
        // SAFETY: the caller's pointer is valid for eight 16-bit floats.
        unsafe { from.cast::<[u16; 8]>().read_unaligned() }.map(half_to_float)
    }
    #[inline(always)]
    unsafe fn load_unsigned(from: *const u8) -> Floats {
        // SAFETY: the caller's pointer is valid for eight bytes.
        unsafe { from.cast::<[u8; 8]>().read_unaligned() }.map(f32::from)
    }
    #[inline(always)]
    unsafe fn load_signed(from: *const i8) -> Floats {
        // SAFETY: the caller's pointer is valid for eight bytes.
        unsafe { from.cast::<[i8; 8]>().read_unaligned() }.map(f32::from)
    }
    #[inline(always)]
    unsafe fn load_int(from: *const u8) -> Ints {
        // SAFETY: the caller's pointer is valid for 32 bytes.
        unsafe { from.cast::<[[u8; 4]; 8]>().read_unaligned() }.map(i32::from_le_bytes)
    }
    #[inline(always)]
    fn prefetch(_: *const u8) {}
    #[inline(always)]
    unsafe fn store_int(to: *mut u8, x: Ints) {
        // SAFETY: the caller's pointer is valid for 32 bytes.
        unsafe { to.cast::<[[u8; 4]; 8]>().write_unaligned(x.map(i32::to_le_bytes)) }
    }
    #[inline(always)]
    unsafe fn splat_byte(x: u8) -> Ints {
        [i32::from_le_bytes([x; 4]); 8]
    }
    #[inline(always)]
    unsafe fn and(a: Ints, b: Ints) -> Ints {
        each!(lane => a[lane] & b[lane])
    }
    #[inline(always)]
    unsafe fn or(a: Ints, b: Ints) -> Ints {
        each!(lane => a[lane] | b[lane])
    }
    #[inline(always)]
    unsafe fn shift_left(x: Ints, bits: usize) -> Ints {
        each!(lane => x[lane] << bits)
    }
    #[inline(always)]
    unsafe fn shift_right(x: Ints, bits: usize) -> Ints {
        each!(lane => (x[lane] as u32 >> bits) as i32)
    }
    #[inline(always)]
    unsafe fn dots<const BITS: usize, const R: usize>(
        sums: &mut [Ints; R],
        fours: &[Ints; 8],
        from: usize,
        a: *const i8,
        row: usize,
    ) {
        for (r, sums) in sums.iter_mut().enumerate() {
            for four in 0..4 {
                // SAFETY: the caller's rows are valid for sixteen bytes.
                let x = unsafe { a.add(r * row + four * 4).cast::<[i8; 4]>().read_unaligned() };
                for (sum, weights) in sums.iter_mut().zip(&fours[from + four]) {
                    // Weights of fewer than 8 bits are below 128, so that they are the same as signed bytes.
                    for (x, weight) in x.iter().zip(weights.to_le_bytes()) {
                        *sum += i32::from(*x) * i32::from(weight as i8);
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn byte_tile<const R: usize, const C: usize>(
        a: *const u8,
        row: usize,
        panel: *const i8,
        fours: usize,
        sums: &mut [[Ints; C]; R],
    ) {
        for four in 0..fours {
            for (r, sums) in sums.iter_mut().enumerate() {
                // SAFETY: rows hold `4 × fours` bytes.
                let x = unsafe { a.add(r * row + four * 4).cast::<[u8; 4]>().read_unaligned() };
                for (c, sums) in sums.iter_mut().enumerate() {
                    for (lane, sum) in sums.iter_mut().enumerate() {
                        // SAFETY: the panel holds as many bytes for each column.
                        let w =
                            unsafe { panel.add(((four * C + c) * 8 + lane) * 4).cast::<[i8; 4]>().read_unaligned() };
                        for (x, w) in x.iter().zip(w) {
                            *sum += i32::from(*x) * i32::from(w);
                        }
                    }
                }
            }
        }
    }
}
