//! The vector registers of a processor behind one trait, so that every kernel is written once.
//!
//! A kernel is a generic function over [`Lanes`] marked `#[inline(always)]`; [`kernel!`](crate::isa::kernel) wraps it, once
//! for each instruction set, in a function with the target features of that set, into which everything is inlined.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

#[cfg(target_arch = "x86_64")]
pub(crate) use self::avx2::{Avx2, AvxVnni};
#[cfg(target_arch = "x86_64")]
pub(crate) use self::avx512::Avx512;
#[cfg(target_arch = "aarch64")]
pub(crate) use self::neon::Neon;
pub(crate) use self::portable::Portable;

/// Vectors side by side in the tile of a product: a panel of weights is `PANEL_VECTORS × WIDTH` columns wide.
pub(crate) const FLOAT_VECTORS: usize = 2;

/// Registers of one instruction set.
///
/// # Safety
/// Every method, and every function generic over an implementation, may be called only on a processor that has the
/// instruction set, and from a function compiled for it. Pointers must be valid for what the method says it reads or
/// writes; none needs alignment.
pub(crate) unsafe trait Lanes: Copy + 'static {
    /// `WIDTH` single-precision numbers.
    type Float: Copy;
    /// `WIDTH` 32-bit integers.
    type Int: Copy;
    /// Numbers in a register.
    const WIDTH: usize;
    /// Rows of the tile of an `f32` product that fit the registers beside `FLOAT_VECTORS` vectors of weights.
    const FLOAT_ROWS: usize;
    /// Vectors side by side in the tile of an 8-bit product.
    const BYTE_VECTORS: usize;
    /// Rows of the tile of an 8-bit product.
    const BYTE_ROWS: usize;
    /// Rows of the tile of a product with blocks: 4 or 8.
    const BLOCK_ROWS: usize;
    /// Weights of blocks are unpacked to memory, two panels at a time, where many rows pass by: worth it where a product of
    /// bytes takes several instructions, so that those that fetch activations count.
    const UNPACKS: bool;
    /// Eight-bit weights of blocks are signed; otherwise 128 is added to them, for products of unsigned by signed bytes.
    const SIGNED_BYTES: bool;

    unsafe fn splat(x: f32) -> Self::Float;
    /// Reads `WIDTH` numbers.
    unsafe fn load(from: *const f32) -> Self::Float;
    /// Reads the first `count < WIDTH` numbers; the other lanes are zero.
    unsafe fn load_part(from: *const f32, count: usize) -> Self::Float;
    /// Writes `WIDTH` numbers.
    unsafe fn store(to: *mut f32, x: Self::Float);
    /// Writes the first `count < WIDTH` lanes.
    unsafe fn store_part(to: *mut f32, count: usize, x: Self::Float);
    unsafe fn add(a: Self::Float, b: Self::Float) -> Self::Float;
    unsafe fn sub(a: Self::Float, b: Self::Float) -> Self::Float;
    unsafe fn mul(a: Self::Float, b: Self::Float) -> Self::Float;
    unsafe fn div(a: Self::Float, b: Self::Float) -> Self::Float;
    unsafe fn min(a: Self::Float, b: Self::Float) -> Self::Float;
    unsafe fn max(a: Self::Float, b: Self::Float) -> Self::Float;
    /// `a × b + c`.
    unsafe fn mul_add(a: Self::Float, b: Self::Float, c: Self::Float) -> Self::Float;
    unsafe fn sum(x: Self::Float) -> f32;
    unsafe fn largest(x: Self::Float) -> f32;
    unsafe fn smallest(x: Self::Float) -> f32;
    /// To the nearest integer, ties to even.
    unsafe fn round(x: Self::Float) -> Self::Int;
    unsafe fn to_float(x: Self::Int) -> Self::Float;
    /// `x × 2^power`, lane by lane, where neither `x` nor the result is zero, subnormal or infinite.
    unsafe fn scale(x: Self::Float, power: Self::Int) -> Self::Float;
    unsafe fn int_zero() -> Self::Int;
    /// Writes each lane, −128 … 127, as one byte: `WIDTH` bytes.
    unsafe fn store_bytes(to: *mut u8, x: Self::Int);
    /// Reads `WIDTH` 16-bit floats.
    unsafe fn load_half(from: *const u16) -> Self::Float;
    /// Reads `WIDTH` unsigned bytes, as numbers.
    unsafe fn load_unsigned(from: *const u8) -> Self::Float;
    /// Reads `WIDTH` signed bytes, as numbers.
    unsafe fn load_signed(from: *const i8) -> Self::Float;
    /// Reads `4 × WIDTH` bytes, four to a lane.
    unsafe fn load_int(from: *const u8) -> Self::Int;
    /// Says that the bytes at `from` will be read soon, or says nothing. Any address will do.
    fn prefetch(from: *const u8);
    /// Writes `4 × WIDTH` bytes.
    unsafe fn store_int(to: *mut u8, x: Self::Int);
    /// The same byte everywhere.
    unsafe fn splat_byte(x: u8) -> Self::Int;
    unsafe fn and(a: Self::Int, b: Self::Int) -> Self::Int;
    unsafe fn or(a: Self::Int, b: Self::Int) -> Self::Int;
    /// Shifts by up to seven bits to higher ones, within bytes or over their borders.
    unsafe fn shift_left(x: Self::Int, bits: usize) -> Self::Int;
    /// Shifts by up to seven bits to lower ones, within bytes or over their borders.
    unsafe fn shift_right(x: Self::Int, bits: usize) -> Self::Int;
    /// Adds to each lane of `sums` the products of sixteen bytes of a row, at `a`, `a + row`, …, with those of its column: of
    /// the `fours` from number `from` on. Weights of 8 bits are as `SIGNED_BYTES` says, those of fewer `BITS` are below
    /// `2^BITS`; bytes at `a` are −127 … 127.
    unsafe fn dots<const BITS: usize, const R: usize>(
        sums: &mut [Self::Int; R],
        fours: &[Self::Int; 8],
        from: usize,
        a: *const i8,
        row: usize,
    );
    /// The products of `4 × FOURS` bytes of each row, at `a`, `a + row`, …, with those of `C` registers of columns: `weights`
    /// holds a register for each four and each `C`, bytes as in [`Lanes::dots`]. There are four fours, or eight.
    #[inline(always)]
    unsafe fn wide_dots<const BITS: usize, const FOURS: usize, const R: usize, const C: usize>(
        weights: *const u8,
        a: *const i8,
        row: usize,
    ) -> [[Self::Int; C]; R] {
        // SAFETY: the caller's pointers are valid for what is read.
        unsafe {
            let mut sums = [[Self::int_zero(); C]; R];
            for c in 0..C {
                let mut column = [Self::int_zero(); R];
                for from in (0..FOURS).step_by(4) {
                    let mut registers = [Self::int_zero(); 8];
                    for four in 0..4 {
                        registers[four] = Self::load_int(weights.add(((from + four) * C + c) * 4 * Self::WIDTH));
                    }
                    Self::dots::<BITS, R>(&mut column, &registers, 0, a.add(4 * from), row);
                }
                for r in 0..R {
                    sums[r][c] = column[r];
                }
            }
            sums
        }
    }
    /// Adds the products of one tile to `sums`: `R` rows of bytes at `a`, `a + row`, … with one panel of weights.
    ///
    /// A panel holds, for each four inputs, `BYTE_VECTORS × WIDTH` columns of four signed bytes. `fours` counts the fours
    /// of inputs and is a multiple of four. No 16-bit sum of eight products overflows: see [`crate::byte_linear`].
    unsafe fn byte_tile<const R: usize, const C: usize>(
        a: *const u8,
        row: usize,
        panel: *const i8,
        fours: usize,
        sums: &mut [[Self::Int; C]; R],
    );
}
