//! What is done to the outputs of a product while they are still in registers.

use crate::functions::{gelu, gelu_near, gelu_tanh};
use crate::lanes::Lanes;

/// What happens to `y = x·Wᵀ + b` on its way to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It is stored.
    Store,
    /// It is added to what is there: the residual.
    Add,
    /// GELU by the error function; from 8-bit products, which are not as exact as it, by a polynomial near it.
    Gelu,
    /// GELU by its approximation with the hyperbolic tangent.
    GeluTanh,
    /// Zero where negative.
    Relu,
}

impl Finish {
    /// Finishes one register and writes its first `count` lanes to `to`. `EXACT` is for products that are.
    ///
    /// # Safety
    /// `to` is valid for `count` numbers, `count ≤ WIDTH`.
    #[inline(always)]
    pub(crate) unsafe fn write<L: Lanes, const EXACT: bool>(self, to: *mut f32, count: usize, y: L::Float) {
        // SAFETY: the caller's contract.
        unsafe {
            let whole = count >= L::WIDTH;
            let y = match self {
                Self::Store => y,
                Self::Add => L::add(y, if whole { L::load(to) } else { L::load_part(to, count) }),
                Self::Gelu if EXACT => gelu::<L>(y),
                Self::Gelu => gelu_near::<L>(y),
                Self::GeluTanh => gelu_tanh::<L>(y),
                Self::Relu => L::max(y, L::splat(0.0)),
            };
            if whole { L::store(to, y) } else { L::store_part(to, count, y) }
        }
    }
}
