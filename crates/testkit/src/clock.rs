//! A clock controlled by the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use abide_core::{Clock, Timestamp};

/// A clock that stands still until the test moves it. Clones share the same time.
#[derive(Clone, Debug)]
pub struct TestClock {
    micros: Arc<AtomicI64>,
}

impl TestClock {
    /// Start time of every test clock: 2026-01-01T00:00:00Z.
    pub const START: Timestamp = Timestamp::from_micros(1_767_225_600_000_000);

    /// A clock at [`TestClock::START`].
    pub fn new() -> Self {
        Self { micros: Arc::new(AtomicI64::new(Self::START.micros())) }
    }

    /// Moves the clock forward and returns the new time.
    pub fn advance(&self, by: Duration) -> Timestamp {
        let turn = |micros| Some(Timestamp::from_micros(micros).plus(by).micros());
        self.micros
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, turn)
            .expect("turning the clock always yields a time");
        self.now()
    }

    /// Sets the clock, forward or back.
    pub fn set(&self, to: Timestamp) {
        self.micros.store(to.micros(), Ordering::SeqCst);
    }
}

impl Default for TestClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.micros.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_of_a_clock_show_the_same_time() {
        let clock = TestClock::new();
        let clone = clock.clone();
        assert_eq!(clone.now().to_string(), "2026-01-01T00:00:00Z");

        clock.advance(Duration::from_secs(90));
        assert_eq!(clone.now().to_string(), "2026-01-01T00:01:30Z");

        clone.set(Timestamp::from_micros(0));
        assert_eq!(clock.now().to_string(), "1970-01-01T00:00:00Z");
    }
}
