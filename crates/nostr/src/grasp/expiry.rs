//! Expiry of purgatory entries.

use abide_core::Timestamp;
use abide_core::settings::duration;
use abide_core::settings::value::TICK;
use std::time::Duration;

abide_core::settings! {
    /// Purgatory lifetimes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Expiry in "grasp" {
        /// Expiry in purgatory, where signed events wait for their git data and pushed commits for their event.
        entry as purgatory_expiry: Duration = "30m", duration(TICK..);
        /// Minimum lifetime left to a signed state in purgatory after a push it authorises.
        after_push: Duration = "15m", duration(TICK..);
        /// Time that the ids of entries that expired in purgatory are remembered.
        remembered as expired_memory: Duration = "7d", duration(TICK..);
    }
}

impl Expiry {
    /// Expiry of a new entry, and of one replaced by a newer version.
    pub fn of_arrival(&self, now: Timestamp) -> Timestamp {
        now.plus(self.entry)
    }

    /// Interval for extending entries during a push: several times within the shortest lifetime.
    pub fn raise_every(&self) -> Duration {
        (self.after_push / 3).clamp(Duration::from_secs(1), Duration::from_secs(60))
    }

    /// New expiry of a state and its announcement after a push that the state allowed. Never earlier than `ends`.
    pub fn after_push(&self, ends: Timestamp, now: Timestamp) -> Timestamp {
        ends.max(now.plus(self.after_push))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_raised_several_times_before_they_could_expire() {
        for seconds in [3, 10, 60, 900, 86_400] {
            let expiry = Expiry { after_push: Duration::from_secs(seconds), ..Expiry::default() };
            assert!(expiry.raise_every() * 3 <= expiry.after_push, "{seconds}");
            assert!((Duration::from_secs(1)..=Duration::from_secs(60)).contains(&expiry.raise_every()), "{seconds}");
        }
    }
    use proptest::prelude::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_micros(minutes * 60_000_000)
    }

    #[test]
    fn thirty_minutes_and_fifteen_after_a_push() {
        let expiry = Expiry::default();
        assert_eq!(expiry.of_arrival(at(0)), at(30));
        assert_eq!(expiry.after_push(at(30), at(5)), at(30), "enough is left");
        assert_eq!(expiry.after_push(at(30), at(20)), at(35));
    }

    proptest! {
        #[test]
        fn no_event_shortens_the_time(ends in 0_i64..100, now in 0_i64..100) {
            let expiry = Expiry::default();
            let later = expiry.after_push(at(ends), at(now));
            prop_assert!(later >= at(ends) && later > at(now));
        }
    }
}
