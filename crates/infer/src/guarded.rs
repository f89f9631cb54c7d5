//! Calls into libraries that may panic on hostile files and texts: the panic becomes a value, and nothing is printed.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// True while a panic of this thread is somebody's expected answer.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `call`; `None` if it panics. What it may have left half-done must not be used afterwards.
///
/// The message of such a panic is meant for the library's authors. So the process's hook is replaced, once, by one that
/// says nothing for panics in here, and passes all others on to the hook that was there.
pub(crate) fn guarded<T>(call: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            if !EXPECTED.get() {
                others(panic);
            }
        }));
    });
    let before = EXPECTED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call)).ok();
    EXPECTED.set(before);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f16_a_panic_becomes_nothing_and_later_ones_are_panics_again() {
        assert_eq!(guarded(|| 7), Some(7));
        assert_eq!(guarded(|| -> u8 { panic!("hostile") }), None);
        assert_eq!(guarded(|| guarded(|| -> u8 { panic!("inner") })), Some(None));
        assert!(!EXPECTED.get());
    }
}
