//! Which instruction set a kernel runs with: found out once, at run time.

use std::fmt;
use std::sync::OnceLock;

/// An instruction set that kernels are compiled for.
///
/// A value of this type is proof that the processor has it: there is no other way to make one than [`Isa::detect`] and
/// [`Isa::available`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Isa(pub(crate) Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Isa {
    /// Plain Rust, on every processor.
    pub const PORTABLE: Self = Self(Set::Portable);

    /// The fastest that this processor has.
    #[must_use]
    pub fn detect() -> Self {
        static FASTEST: OnceLock<Isa> = OnceLock::new();
        *FASTEST.get_or_init(|| Self::available().pop().unwrap_or(Self::PORTABLE))
    }

    /// All that this processor has, the slowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), expect(unused_mut))]
        let mut found = vec![Self::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
                found.push(Self(Set::Avx2));
                if is_x86_feature_detected!("avxvnni") {
                    found.push(Self(Set::AvxVnni));
                }
            }
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vnni")
            {
                found.push(Self(Set::Avx512));
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") && std::arch::is_aarch64_feature_detected!("dotprod") {
            found.push(Self(Set::Neon));
        }
        found
    }

    /// Its name, as processors list it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Set::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Set::AvxVnni => "avx_vnni",
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "avx512_vnni",
            #[cfg(target_arch = "aarch64")]
            Set::Neon => "neon_dotprod",
        }
    }
}

impl fmt::Debug for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Makes `name(isa, …)` out of a function generic over [`Lanes`](crate::lanes::Lanes): one copy for each instruction set,
/// and the choice among them.
macro_rules! kernel {
    ($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? = $generic:ident) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        pub(crate) unsafe fn $name(isa: $crate::isa::Isa, $($argument: $type),*) $(-> $result)? {
            use $crate::isa::Set;
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c")]
            #[allow(clippy::too_many_arguments)]
            unsafe fn avx2($($argument: $type),*) $(-> $result)? {
                // SAFETY: compiled for the instruction set; the rest is the caller's contract.
                unsafe { $generic::<$crate::lanes::Avx2>($($argument),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c,avxvnni")]
            #[allow(clippy::too_many_arguments)]
            unsafe fn avx_vnni($($argument: $type),*) $(-> $result)? {
                // SAFETY: as above.
                unsafe { $generic::<$crate::lanes::AvxVnni>($($argument),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")]
            #[allow(clippy::too_many_arguments)]
            unsafe fn avx512($($argument: $type),*) $(-> $result)? {
                // SAFETY: as above.
                unsafe { $generic::<$crate::lanes::Avx512>($($argument),*) }
            }
            #[cfg(target_arch = "aarch64")]
            #[target_feature(enable = "neon,dotprod")]
            #[allow(clippy::too_many_arguments)]
            unsafe fn neon($($argument: $type),*) $(-> $result)? {
                // SAFETY: as above.
                unsafe { $generic::<$crate::lanes::Neon>($($argument),*) }
            }
            // SAFETY: an `Isa` is proof that the processor has it; the rest is the caller's contract.
            unsafe {
                match isa.0 {
                    Set::Portable => $generic::<$crate::lanes::Portable>($($argument),*),
                    #[cfg(target_arch = "x86_64")]
                    Set::Avx2 => avx2($($argument),*),
                    #[cfg(target_arch = "x86_64")]
                    Set::AvxVnni => avx_vnni($($argument),*),
                    #[cfg(target_arch = "x86_64")]
                    Set::Avx512 => avx512($($argument),*),
                    #[cfg(target_arch = "aarch64")]
                    Set::Neon => neon($($argument),*),
                }
            }
        }
    };
}
pub(crate) use kernel;

/// A constant of [`Lanes`](crate::lanes::Lanes) for an instruction set.
macro_rules! constant {
    ($isa:expr, $name:ident) => {
        match $isa.0 {
            $crate::isa::Set::Portable => <$crate::lanes::Portable as $crate::lanes::Lanes>::$name,
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Set::Avx2 => <$crate::lanes::Avx2 as $crate::lanes::Lanes>::$name,
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Set::AvxVnni => <$crate::lanes::AvxVnni as $crate::lanes::Lanes>::$name,
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Set::Avx512 => <$crate::lanes::Avx512 as $crate::lanes::Lanes>::$name,
            #[cfg(target_arch = "aarch64")]
            $crate::isa::Set::Neon => <$crate::lanes::Neon as $crate::lanes::Lanes>::$name,
        }
    };
}
pub(crate) use constant;
