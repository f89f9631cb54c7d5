//! Functions of one number, on whole registers: power of two, error function, GELU, SiLU.

use crate::lanes::Lanes;

/// 2 to the power of `x`, for −126 ≤ x ≤ 127; below, 2⁻¹²⁶. The whole part goes into the exponent; the power of the rest is
/// a minimax polynomial on ±½, right to 1e-7 of the result.
#[inline(always)]
pub(crate) unsafe fn power_of_two<L: Lanes>(x: L::Float) -> L::Float {
    const SERIES: [f32; 6] = [1.0, 0.693_147_06, 0.240_222_35, 0.055_506_79, 0.009_671_963, 0.001_327_456_4];
    // SAFETY: the caller's contract.
    unsafe {
        let x = L::max(x, L::splat(-126.0));
        let whole = L::round(x);
        let rest = L::sub(x, L::to_float(whole));
        let mut sum = L::splat(SERIES[5]);
        for index in (0..5).rev() {
            sum = L::mul_add(sum, rest, L::splat(SERIES[index]));
        }
        L::scale(sum, whole)
    }
}

/// The error function: a minimax quotient of an odd polynomial over an even one on −4 … 4, right to about 5e-7; beyond, it
/// is ±1 in `f32`.
#[inline(always)]
pub(crate) unsafe fn error_function<L: Lanes>(x: L::Float) -> L::Float {
    const ODD: [f32; 7] = [
        -1.609_603_3e-2,
        -2.954_6e-3,
        -7.349_906_3e-4,
        -5.692_506_4e-5,
        -2.101_024e-6,
        2.770_681_4e-8,
        -2.726_142_3e-10,
    ];
    const EVEN: [f32; 5] = [-1.426_473_9e-2, -7.373_329_2e-3, -1.682_827e-3, -2.133_740_6e-4, -1.456_607_2e-5];
    // SAFETY: the caller's contract.
    unsafe {
        let x = L::max(L::min(x, L::splat(4.0)), L::splat(-4.0));
        let square = L::mul(x, x);
        let mut odd = L::splat(ODD[6]);
        for index in (0..6).rev() {
            odd = L::mul_add(odd, square, L::splat(ODD[index]));
        }
        let mut even = L::splat(EVEN[4]);
        for index in (0..4).rev() {
            even = L::mul_add(even, square, L::splat(EVEN[index]));
        }
        L::div(L::mul(x, odd), even)
    }
}

/// GELU (Hendrycks and Gimpel 2016) by the error function.
#[inline(always)]
pub(crate) unsafe fn gelu<L: Lanes>(x: L::Float) -> L::Float {
    // SAFETY: the caller's contract.
    unsafe {
        let half = L::mul(x, L::splat(0.5));
        let erf = error_function::<L>(L::mul(x, L::splat(std::f32::consts::FRAC_1_SQRT_2)));
        L::mul_add(half, erf, half)
    }
}

/// GELU for outputs that become bytes: x times a minimax polynomial for the share of a normal distribution below x, right to
/// 1.1e-4 on ±3.8 and to 5e-5 of x beyond, without a division.
#[inline(always)]
pub(crate) unsafe fn gelu_near<L: Lanes>(x: L::Float) -> L::Float {
    const SERIES: [f32; 7] =
        [0.398_256_57, -0.065_132_61, 0.009_045_718, -8.744_244_7e-4, 5.462_198_5e-5, -1.956_949_3e-6, 3.025_354_5e-8];
    // SAFETY: the caller's contract.
    unsafe {
        let near = L::max(L::min(x, L::splat(3.8)), L::splat(-3.8));
        let square = L::mul(near, near);
        let mut sum = L::splat(SERIES[6]);
        for index in (0..6).rev() {
            sum = L::mul_add(sum, square, L::splat(SERIES[index]));
        }
        L::mul(x, L::mul_add(sum, near, L::splat(0.5)))
    }
}

/// The approximation of GELU by the hyperbolic tangent, written with the exponential: `x / (1 + e^(−2z))`.
#[inline(always)]
pub(crate) unsafe fn gelu_tanh<L: Lanes>(x: L::Float) -> L::Float {
    // 2 × √(2 ÷ π) × log₂ e.
    const FACTOR: f32 = 2.302_208_2;
    // SAFETY: the caller's contract.
    unsafe {
        let cubed = L::mul(L::mul(x, x), x);
        let power = L::mul(L::mul_add(cubed, L::splat(0.044_715), x), L::splat(-FACTOR));
        let power = L::min(power, L::splat(120.0));
        L::div(x, L::add(L::splat(1.0), power_of_two::<L>(power)))
    }
}

/// SiLU (Elfwing et al. 2018): `x / (1 + e^(−x))`.
#[inline(always)]
pub(crate) unsafe fn silu<L: Lanes>(x: L::Float) -> L::Float {
    // SAFETY: the caller's contract.
    unsafe {
        let power = L::min(L::mul(x, L::splat(-std::f32::consts::LOG2_E)), L::splat(120.0));
        L::div(x, L::add(L::splat(1.0), power_of_two::<L>(power)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::{Isa, kernel};

    #[inline(always)]
    unsafe fn map<L: Lanes>(which: u8, values: &mut [f32]) {
        let mut start = 0;
        while start < values.len() {
            let count = (values.len() - start).min(L::WIDTH);
            // SAFETY: `count` numbers from `start` are in the slice.
            unsafe {
                let at = values.as_mut_ptr().add(start);
                let x = if count == L::WIDTH { L::load(at) } else { L::load_part(at, count) };
                let y = match which {
                    0 => power_of_two::<L>(x),
                    1 => error_function::<L>(x),
                    2 => gelu::<L>(x),
                    3 => gelu_tanh::<L>(x),
                    5 => silu::<L>(x),
                    _ => gelu_near::<L>(x),
                };
                if count == L::WIDTH { L::store(at, y) } else { L::store_part(at, count, y) }
            }
            start += count;
        }
    }
    kernel!(fn map_on(which: u8, values: &mut [f32]) = map);

    /// erf by its Taylor series in f64: converges everywhere, and is exact to 1e-9 on −4 … 4.
    fn series(x: f64) -> f64 {
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            let n = f64::from(n);
            term *= -x * x / n;
            sum += term / (2.0 * n + 1.0);
        }
        sum * 2.0 / std::f64::consts::PI.sqrt()
    }

    fn check(which: u8, from: f32, to: f32, exact: impl Fn(f64) -> f64, allowed: impl Fn(f64) -> f64) {
        let steps = if cfg!(miri) { 41 } else { 4001 };
        let inputs: Vec<f32> = (0..steps).map(|i| from + (to - from) * i as f32 / (steps - 1) as f32).collect();
        for isa in Isa::available() {
            let mut values = inputs.clone();
            // SAFETY: the kernel reads and writes the slice alone.
            unsafe { map_on(isa, which, &mut values) };
            for (x, y) in inputs.iter().zip(&values) {
                let want = exact(f64::from(*x));
                let error = (f64::from(*y) - want).abs();
                assert!(error <= allowed(want), "{isa}: f({x}) is {y}, not {want}");
            }
        }
    }

    #[test]
    fn the_power_of_two_is_right_to_three_units_in_the_last_place() {
        check(0, -126.0, 20.0, f64::exp2, |y| y * 2.5e-7);
        check(0, -1000.0, -126.0, |_| 126f64.exp2().recip(), |_| 1e-44);
    }

    #[test]
    fn the_error_function_is_right_to_a_millionth() {
        check(1, -4.0, 4.0, series, |_| 1e-6);
        check(1, -30.0, -4.0, |_| -1.0, |_| 1e-6);
    }

    #[test]
    fn gelu_is_x_times_the_share_of_a_normal_distribution_below_x() {
        check(2, -5.5, 5.5, |x| x * 0.5 * (1.0 + series(x * std::f64::consts::FRAC_1_SQRT_2)), |_| 3e-6);
        let exact = |x: f64| x * 0.5 * (1.0 + series((x * std::f64::consts::FRAC_1_SQRT_2).clamp(-5.0, 5.0)));
        check(4, -3.8, 3.8, exact, |_| 1.2e-4);
        check(4, -30.0, 30.0, exact, |y| 2e-4 + y.abs() * 5e-5 + 1.5e-3);
        let tanh =
            |x: f64| 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x)).tanh());
        check(3, -20.0, 20.0, tanh, |y| 2e-6 + y.abs() * 1e-6);
    }

    #[test]
    fn silu_is_x_times_the_logistic_function() {
        check(5, -80.0, 80.0, |x| x / (1.0 + (-x).exp()), |y| 1e-7 + y.abs() * 1e-6);
        check(5, -1e4, -80.0, |_| 0.0, |_| 1e-30);
    }
}
