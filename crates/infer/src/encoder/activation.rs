//! Bias and GELU (Hendrycks and Gimpel 2016) in one pass over memory.
//!
//! The error function is a rational approximation in odd powers, right to about 5e-7, made of multiplications and
//! additions only, so that the compiler turns it into vector instructions on every machine; calling the exact function
//! once per number costs as much as the matrix products around it.

use anchorite_models::Activation;
use candle_core::{CpuStorage, InplaceOp1, Layout, Result, Tensor};
use rayon::prelude::*;

/// Adds `bias` `[n]` to each row of `x` `[m, n]` and applies the activation.
pub(crate) fn bias_activation(x: Tensor, bias: &Tensor, activation: Activation) -> Result<Tensor> {
    match activation {
        Activation::Gelu if x.device().is_cpu() => {
            x.inplace_op1(&BiasGelu { bias: bias.to_vec1()? })?;
            Ok(x)
        }
        Activation::Gelu => x.broadcast_add(bias)?.gelu_erf(),
        Activation::GeluTanh => x.broadcast_add(bias)?.gelu(),
        Activation::Relu => x.broadcast_add(bias)?.relu(),
    }
}

struct BiasGelu {
    bias: Vec<f32>,
}

impl InplaceOp1 for BiasGelu {
    fn name(&self) -> &'static str {
        "bias-gelu"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let (CpuStorage::F32(values), Some((start, end))) = (storage, layout.contiguous_offsets()) else {
            candle_core::bail!("bias and GELU in one pass need contiguous f32 values");
        };
        let rows = self.bias.len();
        // Every number depends on its own place alone, so how rows are shared among threads can't change a bit.
        values[start..end].par_chunks_mut(rows * 16).for_each(|block| {
            for row in block.chunks_mut(rows) {
                for (x, bias) in row.iter_mut().zip(&self.bias) {
                    *x = gelu(*x + bias);
                }
            }
        });
        Ok(())
    }
}

#[inline(always)]
fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// Coefficients of the minimax quotient of odd over even powers on −4 … 4; beyond, erf is ±1 in `f32`.
#[inline(always)]
fn erf(x: f32) -> f32 {
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
    let x = x.clamp(-4.0, 4.0);
    let square = x * x;
    let odd = ODD.iter().rev().fold(0.0, |sum, c| sum * square + c);
    let even = EVEN.iter().rev().fold(0.0, |sum, c| sum * square + c);
    x * odd / even
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn the_approximation_of_erf_is_right_to_a_millionth() {
        for step in -4000..=4000 {
            let x = step as f32 / 1000.0;
            let error = (f64::from(erf(x)) - series(f64::from(x))).abs();
            assert!(error < 1e-6, "erf({x}) is off by {error}");
        }
        assert!((erf(30.0) - 1.0).abs() < 1e-6 && (erf(-30.0) + 1.0).abs() < 1e-6);
    }
}
