//! AVX-512 (F, BW, VL, DQ) with 8-bit dot products (VNNI).

use std::arch::x86_64::*;

use super::Lanes;

#[derive(Clone, Copy)]
pub(crate) struct Avx512;

// SAFETY: every method uses AVX-512 F, BW, VL, DQ and VNNI alone.
unsafe impl Lanes for Avx512 {
    type Float = __m512;
    type Int = __m512i;
    const WIDTH: usize = 16;
    const FLOAT_ROWS: usize = 12;
    const BYTE_VECTORS: usize = 4;
    const BYTE_ROWS: usize = 6;
    const BLOCK_ROWS: usize = 8;
    const UNPACKS: bool = false;
    const SIGNED_BYTES: bool = false;

    #[inline(always)]
    unsafe fn splat(x: f32) -> __m512 {
        // SAFETY: AVX-512 by the contract of `Lanes`, as in every method below.
        unsafe { _mm512_set1_ps(x) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m512 {
        // SAFETY: the caller's pointer is valid for sixteen numbers.
        unsafe { _mm512_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const f32, count: usize) -> __m512 {
        // SAFETY: lanes that the mask leaves out are not touched.
        unsafe { _mm512_maskz_loadu_ps(((1u32 << count) - 1) as __mmask16, from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, x: __m512) {
        // SAFETY: the caller's pointer is valid for sixteen numbers.
        unsafe { _mm512_storeu_ps(to, x) }
    }
    #[inline(always)]
    unsafe fn store_part(to: *mut f32, count: usize, x: __m512) {
        // SAFETY: lanes that the mask leaves out are not touched.
        unsafe { _mm512_mask_storeu_ps(to, ((1u32 << count) - 1) as __mmask16, x) }
    }
    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        // SAFETY: AVX-512.
        unsafe { _mm512_add_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: __m512, b: __m512) -> __m512 {
        // SAFETY: AVX-512.
        unsafe { _mm512_sub_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn mul(a: __m512, b: __m512) -> __m512 {
        // SAFETY: AVX-512.
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn div(a: __m512, b: __m512) -> __m512 {
        // SAFETY: AVX-512.
        unsafe { _mm512_div_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn min(a: __m512, b: __m512) -> __m512 {
        #[cfg(miri)]
        return lanewise(a, b, |a, b| if a < b { a } else { b });
        // SAFETY: AVX-512.
        #[cfg(not(miri))]
        unsafe {
            _mm512_min_ps(a, b)
        }
    }
    #[inline(always)]
    unsafe fn max(a: __m512, b: __m512) -> __m512 {
        #[cfg(miri)]
        return lanewise(a, b, |a, b| if a > b { a } else { b });
        // SAFETY: AVX-512.
        #[cfg(not(miri))]
        unsafe {
            _mm512_max_ps(a, b)
        }
    }
    #[inline(always)]
    unsafe fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: AVX-512.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn sum(x: __m512) -> f32 {
        // SAFETY: AVX-512.
        unsafe { _mm512_reduce_add_ps(x) }
    }
    #[inline(always)]
    unsafe fn largest(x: __m512) -> f32 {
        // SAFETY: AVX-512.
        unsafe { _mm512_reduce_max_ps(x) }
    }
    #[inline(always)]
    unsafe fn smallest(x: __m512) -> f32 {
        // SAFETY: AVX-512.
        unsafe { _mm512_reduce_min_ps(x) }
    }
    #[inline(always)]
    unsafe fn round(x: __m512) -> __m512i {
        // SAFETY: two arrays of sixteen four-byte numbers are what the registers hold.
        #[cfg(miri)]
        return unsafe {
            let x: [f32; 16] = std::mem::transmute(x);
            std::mem::transmute::<[i32; 16], __m512i>(x.map(|x| x.round_ties_even() as i32))
        };
        // SAFETY: AVX-512; the rounding mode of a Rust program is to nearest, ties to even.
        #[cfg(not(miri))]
        unsafe {
            _mm512_cvtps_epi32(x)
        }
    }
    #[inline(always)]
    unsafe fn to_float(x: __m512i) -> __m512 {
        // SAFETY: AVX-512.
        unsafe { _mm512_cvtepi32_ps(x) }
    }
    #[inline(always)]
    unsafe fn scale(x: __m512, power: __m512i) -> __m512 {
        // SAFETY: AVX-512.
        unsafe { _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(x), _mm512_slli_epi32::<23>(power))) }
    }
    #[inline(always)]
    unsafe fn int_zero() -> __m512i {
        // SAFETY: AVX-512.
        unsafe { _mm512_setzero_si512() }
    }
    #[inline(always)]
    unsafe fn store_bytes(to: *mut u8, x: __m512i) {
        // SAFETY: AVX-512; sixteen bytes are written, for which the caller's pointer is valid.
        unsafe { _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(x)) }
    }

    #[inline(always)]
    unsafe fn load_half(from: *const u16) -> __m512 {
        // SAFETY: the caller's pointer is valid for sixteen 16-bit floats.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) }
    }
    #[inline(always)]
    unsafe fn load_unsigned(from: *const u8) -> __m512 {
        // SAFETY: the caller's pointer is valid for sixteen bytes.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast()))) }
    }
    #[inline(always)]
    unsafe fn load_signed(from: *const i8) -> __m512 {
        // SAFETY: the caller's pointer is valid for sixteen bytes.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast()))) }
    }
    #[inline(always)]
    unsafe fn load_int(from: *const u8) -> __m512i {
        // SAFETY: the caller's pointer is valid for 64 bytes.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }
    #[inline(always)]
    fn prefetch(from: *const u8) {
        // SAFETY: a hint, which faults at no address; every processor of this kind has it.
        #[cfg(not(miri))]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(from.cast());
        }
        #[cfg(miri)]
        let _ = from;
    }
    #[inline(always)]
    unsafe fn store_int(to: *mut u8, x: __m512i) {
        // SAFETY: the caller's pointer is valid for 64 bytes.
        unsafe { _mm512_storeu_si512(to.cast(), x) }
    }
    #[inline(always)]
    unsafe fn splat_byte(x: u8) -> __m512i {
        // SAFETY: AVX-512.
        unsafe { _mm512_set1_epi8(x as i8) }
    }
    #[inline(always)]
    unsafe fn and(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: AVX-512.
        unsafe { _mm512_and_si512(a, b) }
    }
    #[inline(always)]
    unsafe fn or(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: AVX-512.
        unsafe { _mm512_or_si512(a, b) }
    }
    #[inline(always)]
    unsafe fn shift_left(x: __m512i, bits: usize) -> __m512i {
        // SAFETY: AVX-512.
        unsafe { _mm512_sll_epi32(x, _mm_cvtsi32_si128(bits as i32)) }
    }
    #[inline(always)]
    unsafe fn shift_right(x: __m512i, bits: usize) -> __m512i {
        // SAFETY: AVX-512.
        unsafe { _mm512_srl_epi32(x, _mm_cvtsi32_si128(bits as i32)) }
    }
    #[inline(always)]
    unsafe fn dots<const BITS: usize, const R: usize>(
        sums: &mut [__m512i; R],
        fours: &[__m512i; 8],
        from: usize,
        a: *const i8,
        row: usize,
    ) {
        // Row by row within a four: as many sums run beside each other as there are rows.
        for four in 0..4 {
            for r in 0..R {
                // SAFETY: VNNI; the caller's rows are valid for sixteen bytes.
                unsafe {
                    let x = _mm512_set1_epi32(a.add(r * row + four * 4).cast::<i32>().read_unaligned());
                    sums[r] = _mm512_dpbusd_epi32(sums[r], fours[from + four], x);
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
        sums: &mut [[__m512i; C]; R],
    ) {
        // SAFETY: VNNI; rows hold `4 × fours` bytes, and the panel as many for each column.
        unsafe {
            let (mut panel, mut a) = (panel, a);
            for _ in 0..fours {
                let mut weights = [_mm512_setzero_si512(); C];
                for c in 0..C {
                    weights[c] = _mm512_loadu_si512(panel.add(c * 64).cast());
                }
                for r in 0..R {
                    let four = _mm512_set1_epi32(a.add(r * row).cast::<i32>().read_unaligned());
                    for c in 0..C {
                        sums[r][c] = _mm512_dpbusd_epi32(sums[r][c], four, weights[c]);
                    }
                }
                panel = panel.add(C * 64);
                a = a.add(4);
            }
        }
    }
}

/// What Miri, which has no 512-bit minimum and maximum, does in their place.
#[cfg(miri)]
fn lanewise(a: __m512, b: __m512, pick: impl Fn(f32, f32) -> f32) -> __m512 {
    // SAFETY: an array of sixteen four-byte numbers is what the register holds.
    unsafe {
        let (a, b): ([f32; 16], [f32; 16]) = (std::mem::transmute(a), std::mem::transmute(b));
        std::mem::transmute::<[f32; 16], __m512>(std::array::from_fn(|lane| pick(a[lane], b[lane])))
    }
}
