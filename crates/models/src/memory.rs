//! How much memory this process may still take, so that a model that does not fit is refused before it is loaded.

use crate::ModelError;

/// Bytes this process may still take, or `None` where the system does not tell. On Linux it is the least of the free
/// memory, what is left of the control group's limit, and what is left of the address space limit.
#[must_use]
pub fn available_memory() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let free = read("/proc/meminfo").and_then(|text| kilobytes(&text, "MemAvailable:"));
    let group =
        read("/sys/fs/cgroup/memory.max").zip(read("/sys/fs/cgroup/memory.current")).and_then(|(most, used)| {
            // "max" means without a limit.
            Some(most.trim().parse::<u64>().ok()?.saturating_sub(used.trim().parse().ok()?))
        });
    let space = read("/proc/self/limits")
        .zip(read("/proc/self/status"))
        .and_then(|(limits, status)| Some(address_space(&limits)?.saturating_sub(kilobytes(&status, "VmSize:")?)));
    [free, group, space].into_iter().flatten().min()
}

fn kilobytes(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    number.checked_mul(1024)
}

fn address_space(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Refuses a model that does not fit.
///
/// # Errors
/// [`ModelError::TooLarge`] if `needed` bytes are more than the system says are free; never if it does not say.
pub fn check_memory(model: &str, needed: u64) -> Result<(), ModelError> {
    check(model, needed, available_memory())
}

fn check(model: &str, needed: u64, available: Option<u64>) -> Result<(), ModelError> {
    match available {
        Some(available) if needed > available => {
            Err(ModelError::TooLarge { model: model.to_owned(), needed, available })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f23_a_model_larger_than_memory_is_refused() {
        let message = check("big", 3 << 30, Some(2 << 30)).expect_err("does not fit").to_string();
        assert!(
            message.contains("3072 MiB") && message.contains("2048 MiB") && message.contains("smaller model"),
            "{message}"
        );
        assert!(check("big", 2 << 30, Some(2 << 30)).is_ok());
        assert!(check("big", u64::MAX, None).is_ok());
    }

    #[test]
    fn the_systems_files_are_understood() {
        assert_eq!(kilobytes("MemTotal: 9 kB\nMemAvailable:   12 kB\n", "MemAvailable:"), Some(12 << 10));
        assert_eq!(kilobytes("MemTotal: 9 kB\n", "MemAvailable:"), None);
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax address space  1048576  unlimited  bytes\n";
        assert_eq!(address_space(limits), Some(1 << 20));
        assert_eq!(address_space("Max address space  unlimited  unlimited  bytes\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_system_tells() {
        assert!(available_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
