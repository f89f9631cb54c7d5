//! NEON with 8-bit dot products, as 64-bit ARM processors have had since 2018.

use std::arch::aarch64::*;
use std::arch::asm;

use super::Lanes;

#[derive(Clone, Copy)]
pub(crate) struct Neon;

// SAFETY: every method uses NEON and the dot products alone.
unsafe impl Lanes for Neon {
    type Float = float32x4_t;
    type Int = int32x4_t;
    const WIDTH: usize = 4;
    const FLOAT_ROWS: usize = 8;
    const BYTE_VECTORS: usize = 4;
    const BYTE_ROWS: usize = 6;
    const BLOCK_ROWS: usize = 8;
    const UNPACKS: bool = false;
    const SIGNED_BYTES: bool = true;

    #[inline(always)]
    unsafe fn splat(x: f32) -> float32x4_t {
        // SAFETY: NEON by the contract of `Lanes`, as in every method below.
        unsafe { vdupq_n_f32(x) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> float32x4_t {
        // SAFETY: the caller's pointer is valid for four numbers.
        unsafe { vld1q_f32(from) }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const f32, count: usize) -> float32x4_t {
        let mut all = [0.0f32; 4];
        // SAFETY: the caller's pointer is valid for `count` numbers, fewer than four.
        unsafe {
            std::ptr::copy_nonoverlapping(from, all.as_mut_ptr(), count);
            vld1q_f32(all.as_ptr())
        }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, x: float32x4_t) {
        // SAFETY: the caller's pointer is valid for four numbers.
        unsafe { vst1q_f32(to, x) }
    }
    #[inline(always)]
    unsafe fn store_part(to: *mut f32, count: usize, x: float32x4_t) {
        let mut all = [0.0f32; 4];
        // SAFETY: the caller's pointer is valid for `count` numbers, fewer than four.
        unsafe {
            vst1q_f32(all.as_mut_ptr(), x);
            std::ptr::copy_nonoverlapping(all.as_ptr(), to, count);
        }
    }
    #[inline(always)]
    unsafe fn add(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: NEON.
        unsafe { vaddq_f32(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: NEON.
        unsafe { vsubq_f32(a, b) }
    }
    #[inline(always)]
    unsafe fn mul(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: NEON.
        unsafe { vmulq_f32(a, b) }
    }
    #[inline(always)]
    unsafe fn div(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: NEON.
        unsafe { vdivq_f32(a, b) }
    }
    #[inline(always)]
    unsafe fn min(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: NEON.
        unsafe { vminq_f32(a, b) }
    }
    #[inline(always)]
    unsafe fn max(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: NEON.
        unsafe { vmaxq_f32(a, b) }
    }
    #[inline(always)]
    unsafe fn mul_add(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
        // SAFETY: NEON.
        unsafe { vfmaq_f32(c, a, b) }
    }
    #[inline(always)]
    unsafe fn sum(x: float32x4_t) -> f32 {
        // SAFETY: NEON.
        unsafe { vaddvq_f32(x) }
    }
    #[inline(always)]
    unsafe fn largest(x: float32x4_t) -> f32 {
        // SAFETY: NEON.
        unsafe { vmaxvq_f32(x) }
    }
    #[inline(always)]
    unsafe fn smallest(x: float32x4_t) -> f32 {
        // SAFETY: NEON.
        unsafe { vminvq_f32(x) }
    }
    #[inline(always)]
    unsafe fn round(x: float32x4_t) -> int32x4_t {
        // SAFETY: NEON; to nearest, ties to even.
        unsafe { vcvtnq_s32_f32(x) }
    }
    #[inline(always)]
    unsafe fn to_float(x: int32x4_t) -> float32x4_t {
        // SAFETY: NEON.
        unsafe { vcvtq_f32_s32(x) }
    }
    #[inline(always)]
    unsafe fn scale(x: float32x4_t, power: int32x4_t) -> float32x4_t {
        // SAFETY: NEON.
        unsafe { vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(x), vshlq_n_s32::<23>(power))) }
    }
    #[inline(always)]
    unsafe fn int_zero() -> int32x4_t {
        // SAFETY: NEON.
        unsafe { vdupq_n_s32(0) }
    }
    #[inline(always)]
    unsafe fn store_bytes(to: *mut u8, x: int32x4_t) {
        // SAFETY: NEON; four bytes are written, for which the caller's pointer is valid.
        unsafe {
            let words = vmovn_s32(x);
            let bytes = vmovn_s16(vcombine_s16(words, words));
            to.cast::<i32>().write_unaligned(vget_lane_s32::<0>(vreinterpret_s32_s8(bytes)));
        }
    }

    /// The intrinsic for it is not stable yet, so the exponent is moved by a multiplication.
    #[inline(always)]
    unsafe fn load_half(from: *const u16) -> float32x4_t {
        // SAFETY: NEON; the caller's pointer is valid for four 16-bit floats.
        unsafe {
            let half = vmovl_u16(vld1_u16(from));
            let magnitude = vshlq_n_u32::<13>(vandq_u32(half, vdupq_n_u32(0x7FFF)));
            let sign = vshlq_n_u32::<16>(vandq_u32(half, vdupq_n_u32(0x8000)));
            let infinite = vandq_u32(vcgeq_u32(magnitude, vdupq_n_u32(0x7C00 << 13)), vdupq_n_u32(0x7F80_0000));
            let float = vmulq_f32(vreinterpretq_f32_u32(magnitude), vdupq_n_f32(f32::from_bits((127 + 112) << 23)));
            vreinterpretq_f32_u32(vorrq_u32(vorrq_u32(vreinterpretq_u32_f32(float), infinite), sign))
        }
    }
    #[inline(always)]
    unsafe fn load_unsigned(from: *const u8) -> float32x4_t {
        // SAFETY: NEON; the caller's pointer is valid for four bytes.
        unsafe {
            let bytes = vcreate_u8(u64::from(from.cast::<u32>().read_unaligned()));
            vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8(bytes))))
        }
    }
    #[inline(always)]
    unsafe fn load_signed(from: *const i8) -> float32x4_t {
        // SAFETY: NEON; the caller's pointer is valid for four bytes.
        unsafe {
            let bytes = vcreate_s8(u64::from(from.cast::<u32>().read_unaligned()));
            vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(bytes))))
        }
    }
    #[inline(always)]
    unsafe fn load_int(from: *const u8) -> int32x4_t {
        // SAFETY: NEON; the caller's pointer is valid for sixteen bytes.
        unsafe { vreinterpretq_s32_u8(vld1q_u8(from)) }
    }
    #[inline(always)]
    unsafe fn store_int(to: *mut u8, x: int32x4_t) {
        // SAFETY: NEON; the caller's pointer is valid for sixteen bytes.
        unsafe { vst1q_u8(to, vreinterpretq_u8_s32(x)) }
    }
    #[inline(always)]
    fn prefetch(from: *const u8) {
        // SAFETY: a hint, which faults at no address.
        unsafe { asm!("prfm pldl1keep, [{from}]", from = in(reg) from, options(readonly, nostack, preserves_flags)) };
    }
    #[inline(always)]
    unsafe fn splat_byte(x: u8) -> int32x4_t {
        // SAFETY: NEON.
        unsafe { vreinterpretq_s32_u8(vdupq_n_u8(x)) }
    }
    #[inline(always)]
    unsafe fn and(a: int32x4_t, b: int32x4_t) -> int32x4_t {
        // SAFETY: NEON.
        unsafe { vandq_s32(a, b) }
    }
    #[inline(always)]
    unsafe fn or(a: int32x4_t, b: int32x4_t) -> int32x4_t {
        // SAFETY: NEON.
        unsafe { vorrq_s32(a, b) }
    }
    #[inline(always)]
    unsafe fn shift_left(x: int32x4_t, bits: usize) -> int32x4_t {
        // SAFETY: NEON.
        unsafe { vreinterpretq_s32_u8(vshlq_u8(vreinterpretq_u8_s32(x), vdupq_n_s8(bits as i8))) }
    }
    #[inline(always)]
    unsafe fn shift_right(x: int32x4_t, bits: usize) -> int32x4_t {
        // SAFETY: NEON.
        unsafe { vreinterpretq_s32_u8(vshlq_u8(vreinterpretq_u8_s32(x), vdupq_n_s8(-(bits as i8)))) }
    }
    #[inline(always)]
    unsafe fn dots<const BITS: usize, const R: usize>(
        sums: &mut [int32x4_t; R],
        fours: &[int32x4_t; 8],
        from: usize,
        a: *const i8,
        row: usize,
    ) {
        for four in 0..4 {
            for r in 0..R {
                // SAFETY: NEON; the caller's rows are valid for sixteen bytes. Weights of fewer than 8 bits are below 128, so
                // that signed products read them rightly.
                unsafe {
                    let x = vdupq_n_s32(a.add(r * row + four * 4).cast::<i32>().read_unaligned());
                    sums[r] = dot(sums[r], vreinterpretq_s8_s32(fours[from + four]), vreinterpretq_s8_s32(x));
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
        sums: &mut [[int32x4_t; C]; R],
    ) {
        // SAFETY: NEON; rows hold `4 × fours` bytes, and the panel as many for each column. The bytes of a row are at
        // most 127, so that signed products read them rightly.
        unsafe {
            let (mut panel, mut a) = (panel, a);
            for _ in 0..fours {
                let mut weights = [vdupq_n_s8(0); C];
                for c in 0..C {
                    weights[c] = vld1q_s8(panel.add(c * 16));
                }
                for r in 0..R {
                    let four = vdupq_n_s32(a.add(r * row).cast::<i32>().read_unaligned());
                    for c in 0..C {
                        sums[r][c] = dot(sums[r][c], vreinterpretq_s8_s32(four), weights[c]);
                    }
                }
                panel = panel.add(C * 16);
                a = a.add(4);
            }
        }
    }
}

/// Adds to each lane the products of its four bytes. The intrinsic for it is not stable yet.
#[inline(always)]
unsafe fn dot(sum: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    let mut sum = sum;
    // SAFETY: the instruction reads and writes registers only, and the processor has it by the contract of `Lanes`.
    unsafe {
        asm!(
            ".arch_extension dotprod",
            "sdot {sum:v}.4s, {a:v}.16b, {b:v}.16b",
            sum = inout(vreg) sum,
            a = in(vreg) a,
            b = in(vreg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sum
}
