//! AVX2 with FMA, and the same with 8-bit dot products (AVX-VNNI).

use std::arch::x86_64::*;

use super::Lanes;

#[derive(Clone, Copy)]
pub(crate) struct Avx2;

#[derive(Clone, Copy)]
pub(crate) struct AvxVnni;

/// Lanes below `count`.
#[inline(always)]
unsafe fn mask(count: usize) -> __m256i {
    // SAFETY: AVX2 by the contract of `Lanes`.
    unsafe { _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)) }
}

/// Products of four bytes with weights of so many bits that can be added in 16 bits and not overflow them: 2 × 127 × 15 × 8
/// fits, and so do 2 × 127 × 31 × 4, 2 × 127 × 63 × 2 and 2 × 127 × 128.
const fn together(bits: usize) -> usize {
    match bits {
        4 => 8,
        5 => 4,
        6 => 2,
        _ => 1,
    }
}

/// The products of weights with bytes, two added up in each half of a lane. Weights of 8 bits are signed, others are not.
#[inline(always)]
unsafe fn products<const BITS: usize>(weights: __m256i, x: __m256i) -> __m256i {
    // SAFETY: AVX2.
    unsafe {
        if BITS == 8 {
            // Unsigned by signed: the sign of the weight goes over to the other.
            _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(x, weights))
        } else {
            _mm256_maddubs_epi16(weights, x)
        }
    }
}

/// A number that the compiler does not know. It would unroll a loop that runs so often and add up one column of a tile after
/// the other, with all that it fetched for the first kept in memory; saturated sums, which it does not reorder, run at half
/// the rate of plain ones.
#[inline(always)]
fn hidden(number: usize) -> usize {
    std::hint::black_box(number)
}

/// The products of sixteen bytes at `a` with four fours, summed in each lane.
#[inline(always)]
unsafe fn sixteen<const BITS: usize>(fours: &[__m256i; 8], from: usize, a: *const i8) -> __m256i {
    // SAFETY: AVX2; the caller's pointer is valid for sixteen bytes.
    unsafe {
        let ones = _mm256_set1_epi16(1);
        let twos = |four: usize| {
            let x = _mm256_set1_epi32(a.add(four * 4).cast::<i32>().read_unaligned());
            products::<BITS>(fours[from + four], x)
        };
        let wide = |x: __m256i| _mm256_madd_epi16(x, ones);
        let pair = |first: usize| {
            if together(BITS) == 1 {
                _mm256_add_epi32(wide(twos(first)), wide(twos(first + 1)))
            } else {
                _mm256_add_epi16(twos(first), twos(first + 1))
            }
        };
        match together(BITS) {
            1 => _mm256_add_epi32(pair(0), pair(2)),
            2 => _mm256_add_epi32(wide(pair(0)), wide(pair(2))),
            _ => wide(_mm256_add_epi16(pair(0), pair(2))),
        }
    }
}

macro_rules! floats {
    () => {
        type Float = __m256;
        type Int = __m256i;
        const WIDTH: usize = 8;
        const FLOAT_ROWS: usize = 6;
        const BLOCK_ROWS: usize = 4;

        #[inline(always)]
        unsafe fn splat(x: f32) -> __m256 {
            // SAFETY: AVX2 by the contract of `Lanes`, as in every method below.
            unsafe { _mm256_set1_ps(x) }
        }
        #[inline(always)]
        unsafe fn load(from: *const f32) -> __m256 {
            // SAFETY: the caller's pointer is valid for eight numbers.
            unsafe { _mm256_loadu_ps(from) }
        }
        #[inline(always)]
        unsafe fn load_part(from: *const f32, count: usize) -> __m256 {
            // SAFETY: lanes that the mask leaves out are not touched.
            unsafe { _mm256_maskload_ps(from, mask(count)) }
        }
        #[inline(always)]
        unsafe fn store(to: *mut f32, x: __m256) {
            // SAFETY: the caller's pointer is valid for eight numbers.
            unsafe { _mm256_storeu_ps(to, x) }
        }
        #[inline(always)]
        unsafe fn store_part(to: *mut f32, count: usize, x: __m256) {
            // SAFETY: lanes that the mask leaves out are not touched.
            unsafe { _mm256_maskstore_ps(to, mask(count), x) }
        }
        #[inline(always)]
        unsafe fn add(a: __m256, b: __m256) -> __m256 {
            // SAFETY: AVX2.
            unsafe { _mm256_add_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn sub(a: __m256, b: __m256) -> __m256 {
            // SAFETY: AVX2.
            unsafe { _mm256_sub_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn mul(a: __m256, b: __m256) -> __m256 {
            // SAFETY: AVX2.
            unsafe { _mm256_mul_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn div(a: __m256, b: __m256) -> __m256 {
            // SAFETY: AVX2.
            unsafe { _mm256_div_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn min(a: __m256, b: __m256) -> __m256 {
            // SAFETY: AVX2.
            unsafe { _mm256_min_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn max(a: __m256, b: __m256) -> __m256 {
            // SAFETY: AVX2.
            unsafe { _mm256_max_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 {
            // SAFETY: FMA.
            unsafe { _mm256_fmadd_ps(a, b, c) }
        }
        #[inline(always)]
        unsafe fn sum(x: __m256) -> f32 {
            // SAFETY: AVX2.
            unsafe {
                let x = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
                let x = _mm_add_ps(x, _mm_movehl_ps(x, x));
                _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps::<1>(x, x)))
            }
        }
        #[inline(always)]
        unsafe fn largest(x: __m256) -> f32 {
            // SAFETY: AVX2.
            unsafe {
                let x = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
                let x = _mm_max_ps(x, _mm_movehl_ps(x, x));
                _mm_cvtss_f32(_mm_max_ss(x, _mm_shuffle_ps::<1>(x, x)))
            }
        }
        #[inline(always)]
        unsafe fn smallest(x: __m256) -> f32 {
            // SAFETY: AVX2.
            unsafe {
                let x = _mm_min_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
                let x = _mm_min_ps(x, _mm_movehl_ps(x, x));
                _mm_cvtss_f32(_mm_min_ss(x, _mm_shuffle_ps::<1>(x, x)))
            }
        }
        #[inline(always)]
        unsafe fn round(x: __m256) -> __m256i {
            // SAFETY: AVX2; the rounding mode of a Rust program is to nearest, ties to even.
            unsafe { _mm256_cvtps_epi32(x) }
        }
        #[inline(always)]
        unsafe fn to_float(x: __m256i) -> __m256 {
            // SAFETY: AVX2.
            unsafe { _mm256_cvtepi32_ps(x) }
        }
        #[inline(always)]
        unsafe fn scale(x: __m256, power: __m256i) -> __m256 {
            // SAFETY: AVX2.
            unsafe { _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), _mm256_slli_epi32::<23>(power))) }
        }
        #[inline(always)]
        unsafe fn int_zero() -> __m256i {
            // SAFETY: AVX2.
            unsafe { _mm256_setzero_si256() }
        }
        #[inline(always)]
        unsafe fn store_bytes(to: *mut u8, x: __m256i) {
            // SAFETY: AVX2; eight bytes are written, for which the caller's pointer is valid.
            unsafe {
                let words = _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
                _mm_storel_epi64(to.cast(), _mm_packs_epi16(words, words));
            }
        }
        #[inline(always)]
        unsafe fn load_half(from: *const u16) -> __m256 {
            // SAFETY: F16C; the caller's pointer is valid for eight 16-bit floats.
            unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) }
        }
        #[inline(always)]
        unsafe fn load_unsigned(from: *const u8) -> __m256 {
            // SAFETY: the caller's pointer is valid for eight bytes.
            unsafe { _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast()))) }
        }
        #[inline(always)]
        unsafe fn load_signed(from: *const i8) -> __m256 {
            // SAFETY: the caller's pointer is valid for eight bytes.
            unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(from.cast()))) }
        }
        #[inline(always)]
        unsafe fn load_int(from: *const u8) -> __m256i {
            // SAFETY: the caller's pointer is valid for 32 bytes.
            unsafe { _mm256_loadu_si256(from.cast()) }
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
        unsafe fn store_int(to: *mut u8, x: __m256i) {
            // SAFETY: the caller's pointer is valid for 32 bytes.
            unsafe { _mm256_storeu_si256(to.cast(), x) }
        }
        #[inline(always)]
        unsafe fn splat_byte(x: u8) -> __m256i {
            // SAFETY: AVX2.
            unsafe { _mm256_set1_epi8(x as i8) }
        }
        #[inline(always)]
        unsafe fn and(a: __m256i, b: __m256i) -> __m256i {
            // SAFETY: AVX2.
            unsafe { _mm256_and_si256(a, b) }
        }
        #[inline(always)]
        unsafe fn or(a: __m256i, b: __m256i) -> __m256i {
            // SAFETY: AVX2.
            unsafe { _mm256_or_si256(a, b) }
        }
        #[inline(always)]
        unsafe fn shift_left(x: __m256i, bits: usize) -> __m256i {
            // SAFETY: AVX2.
            unsafe { _mm256_sll_epi32(x, _mm_cvtsi32_si128(bits as i32)) }
        }
        #[inline(always)]
        unsafe fn shift_right(x: __m256i, bits: usize) -> __m256i {
            // SAFETY: AVX2.
            unsafe { _mm256_srl_epi32(x, _mm_cvtsi32_si128(bits as i32)) }
        }
    };
}

// SAFETY: every method uses AVX2, FMA and F16C alone.
unsafe impl Lanes for Avx2 {
    floats!();

    const BYTE_VECTORS: usize = 2;
    const BYTE_ROWS: usize = 3;
    const SIGNED_BYTES: bool = true;
    const UNPACKS: bool = true;

    #[inline(always)]
    unsafe fn dots<const BITS: usize, const R: usize>(
        sums: &mut [__m256i; R],
        fours: &[__m256i; 8],
        from: usize,
        a: *const i8,
        row: usize,
    ) {
        for (r, sum) in sums.iter_mut().enumerate() {
            // SAFETY: AVX2; the caller's rows are valid for sixteen bytes.
            *sum = unsafe { _mm256_add_epi32(*sum, sixteen::<BITS>(fours, from, a.add(r * row))) };
        }
    }

    /// As many products are added in 16 bits as can't overflow them, before they are widened.
    #[inline(always)]
    unsafe fn wide_dots<const BITS: usize, const FOURS: usize, const R: usize, const C: usize>(
        weights: *const u8,
        a: *const i8,
        row: usize,
    ) -> [[__m256i; C]; R] {
        // SAFETY: AVX2; the caller's pointers are valid for what is read.
        unsafe {
            let ones = _mm256_set1_epi16(1);
            let (mut weights, mut a) = (weights, a);
            let mut sums = [[_mm256_setzero_si256(); C]; R];
            for _ in 0..FOURS / together(BITS) {
                let mut narrow = [[_mm256_setzero_si256(); C]; R];
                for _ in 0..hidden(together(BITS)) {
                    let mut columns = [_mm256_setzero_si256(); C];
                    for c in 0..C {
                        columns[c] = _mm256_loadu_si256(weights.add(c * 32).cast());
                    }
                    for r in 0..R {
                        let x = _mm256_set1_epi32(a.add(r * row).cast::<i32>().read_unaligned());
                        for c in 0..C {
                            narrow[r][c] = _mm256_add_epi16(narrow[r][c], products::<BITS>(columns[c], x));
                        }
                    }
                    weights = weights.add(C * 32);
                    a = a.add(4);
                }
                for r in 0..R {
                    for c in 0..C {
                        sums[r][c] = _mm256_add_epi32(sums[r][c], _mm256_madd_epi16(narrow[r][c], ones));
                    }
                }
            }
            sums
        }
    }

    /// Without dot products the multiplication gives 16-bit sums of two; four of those are added before they are widened,
    /// which saves three of eight multiplications.
    #[inline(always)]
    unsafe fn byte_tile<const R: usize, const C: usize>(
        a: *const u8,
        row: usize,
        panel: *const i8,
        fours: usize,
        sums: &mut [[__m256i; C]; R],
    ) {
        // SAFETY: AVX2; `fours` is a multiple of four, rows hold `4 × fours` bytes, and the panel as many for each column.
        unsafe {
            let ones = _mm256_set1_epi16(1);
            let (mut panel, mut a) = (panel, a);
            for _ in 0..fours / 4 {
                let mut eights = [[_mm256_setzero_si256(); C]; R];
                for four in 0..4 {
                    let mut weights = [_mm256_setzero_si256(); C];
                    for c in 0..C {
                        weights[c] = _mm256_loadu_si256(panel.add((four * C + c) * 32).cast());
                    }
                    for r in 0..R {
                        let x = _mm256_set1_epi32(a.add(r * row + four * 4).cast::<i32>().read_unaligned());
                        for c in 0..C {
                            let twos = _mm256_maddubs_epi16(x, weights[c]);
                            // Nothing saturates; but sums that are all plain the compiler would reorder, and run out of
                            // registers, and a processor that adds them at half the rate is the slower for each saturated one.
                            eights[r][c] = match four {
                                0 => twos,
                                2 => _mm256_adds_epi16(eights[r][c], twos),
                                _ => _mm256_add_epi16(eights[r][c], twos),
                            };
                        }
                    }
                }
                for r in 0..R {
                    for c in 0..C {
                        sums[r][c] = _mm256_add_epi32(sums[r][c], _mm256_madd_epi16(eights[r][c], ones));
                    }
                }
                panel = panel.add(C * 128);
                a = a.add(16);
            }
        }
    }
}

// SAFETY: every method uses AVX2, FMA, F16C and AVX-VNNI alone.
unsafe impl Lanes for AvxVnni {
    floats!();

    const BYTE_VECTORS: usize = 2;
    const BYTE_ROWS: usize = 6;
    const SIGNED_BYTES: bool = false;
    const UNPACKS: bool = false;

    #[inline(always)]
    unsafe fn dots<const BITS: usize, const R: usize>(
        sums: &mut [__m256i; R],
        fours: &[__m256i; 8],
        from: usize,
        a: *const i8,
        row: usize,
    ) {
        // Row by row within a four: as many sums run beside each other as there are rows.
        for four in 0..4 {
            for r in 0..R {
                // SAFETY: AVX-VNNI; the caller's rows are valid for sixteen bytes.
                unsafe {
                    let x = _mm256_set1_epi32(a.add(r * row + four * 4).cast::<i32>().read_unaligned());
                    sums[r] = _mm256_dpbusd_avx_epi32(sums[r], fours[from + four], x);
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
        sums: &mut [[__m256i; C]; R],
    ) {
        // SAFETY: AVX-VNNI; rows hold `4 × fours` bytes, and the panel as many for each column.
        unsafe {
            let (mut panel, mut a) = (panel, a);
            for _ in 0..fours {
                let mut weights = [_mm256_setzero_si256(); C];
                for c in 0..C {
                    weights[c] = _mm256_loadu_si256(panel.add(c * 32).cast());
                }
                for r in 0..R {
                    let four = _mm256_set1_epi32(a.add(r * row).cast::<i32>().read_unaligned());
                    for c in 0..C {
                        sums[r][c] = _mm256_dpbusd_avx_epi32(sums[r][c], four, weights[c]);
                    }
                }
                panel = panel.add(C * 32);
                a = a.add(4);
            }
        }
    }
}
