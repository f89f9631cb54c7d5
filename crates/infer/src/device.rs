//! Where models compute, and on how many threads.

use std::fmt;
use std::str::FromStr;

use candle_core::Device;

use crate::error::LoadError;

/// A device as the command line names it: `cpu`, `cuda`, `cuda:1`, `metal`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The processor.
    #[default]
    Cpu,
    /// A CUDA device by number; needs the feature `cuda`.
    Cuda(usize),
    /// The Metal device; needs the feature `metal`.
    Metal,
}

impl FromStr for DeviceChoice {
    type Err = LoadError;

    fn from_str(text: &str) -> Result<Self, LoadError> {
        match text.split_once(':') {
            None if text == "cpu" => Ok(Self::Cpu),
            None if text == "cuda" => Ok(Self::Cuda(0)),
            None if text == "metal" => Ok(Self::Metal),
            Some(("cuda", number)) if number.parse::<usize>().is_ok() => Ok(Self::Cuda(number.parse().unwrap_or(0))),
            _ => Err(LoadError::Device {
                device: text.to_owned(),
                problem: "unknown; write cpu, cuda, cuda:N or metal".to_owned(),
            }),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
            Self::Metal => f.write_str("metal"),
        }
    }
}

impl DeviceChoice {
    /// Opens the device.
    ///
    /// # Errors
    /// If the program was built without it, or the machine has none.
    pub fn open(self) -> Result<Device, LoadError> {
        let opened = match self {
            Self::Cpu => return Ok(Device::Cpu),
            Self::Cuda(number) if cfg!(feature = "cuda") => Device::new_cuda(number),
            Self::Metal if cfg!(feature = "metal") => Device::new_metal(0),
            Self::Cuda(_) | Self::Metal => {
                let feature = if self == Self::Metal { "metal" } else { "cuda" };
                return Err(LoadError::Device {
                    device: self.to_string(),
                    problem: format!("this program was built without it; build with `--features {feature}`"),
                });
            }
        };
        opened.map_err(|error| LoadError::Device { device: self.to_string(), problem: error.to_string() })
    }
}

/// Sizes the one thread pool that all models share: `threads`, or [`default_threads`]. Call it once, before the first model
/// is opened; later calls leave the pool as it is.
pub fn set_threads(threads: Option<usize>) {
    let threads = threads.unwrap_or_else(default_threads).max(1);
    // An error means that the pool is in use already, and then its size is settled.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
}

/// Threads where nobody says how many: one for each physical core that this process may use. Two threads of one core share
/// the units that multiply, so that the second makes nothing faster; a quota of the control group and a restriction to some
/// processors count.
#[must_use]
pub fn default_threads() -> usize {
    let allowed = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    allowed.min(num_cpus::get_physical()).max(1)
}

/// Threads of the pool.
#[must_use]
pub fn threads() -> usize {
    rayon::current_num_threads()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_threads_than_physical_cores_and_than_allowed() {
        let threads = default_threads();
        assert!(threads >= 1 && threads <= num_cpus::get_physical());
        assert!(threads <= std::thread::available_parallelism().expect("known").get());
    }

    #[test]
    fn m01_devices_are_named_and_refused_by_name() {
        assert_eq!("cpu".parse::<DeviceChoice>().ok(), Some(DeviceChoice::Cpu));
        assert_eq!("cuda:2".parse::<DeviceChoice>().ok(), Some(DeviceChoice::Cuda(2)));
        assert_eq!(DeviceChoice::Cuda(2).to_string(), "cuda:2");
        assert!("tpu".parse::<DeviceChoice>().is_err());
        if !cfg!(feature = "cuda") {
            let error = DeviceChoice::Cuda(0).open().expect_err("built without CUDA").to_string();
            assert!(error.contains("--features cuda"), "{error}");
        }
    }
}
