//! Waits for a condition instead of sleeping.

use std::thread;
use std::time::{Duration, Instant};

/// Shortest and longest pause. Polling slows down over time, because it takes CPU time from the work it waits for.
const PAUSES: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(50)];

/// Waits until the condition holds. Checks it at least once.
///
/// # Panics
/// If it does not hold within the deadline; the message names the caller.
#[track_caller]
pub fn eventually(deadline: Duration, condition: impl FnMut() -> bool) {
    assert!(holds_within(deadline, condition), "the condition did not hold within {deadline:?}");
}

/// Like [`eventually`], for callers with their own failure message.
pub(crate) fn holds_within(deadline: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if condition() {
            return true;
        }
        let elapsed = start.elapsed();
        if elapsed >= deadline {
            return false;
        }
        thread::sleep((elapsed / 8).clamp(PAUSES[0], PAUSES[1]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_asked_until_it_holds() {
        let mut asked = 0;
        eventually(Duration::from_secs(30), || {
            asked += 1;
            asked == 3
        });
        assert_eq!(asked, 3);
    }

    #[test]
    #[should_panic(expected = "did not hold within")]
    fn a_condition_that_never_holds_fails_the_test() {
        eventually(Duration::ZERO, || false);
    }
}
