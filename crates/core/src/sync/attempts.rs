//! The time of the next attempt to fetch what one identifier waits for.

use crate::Timestamp;
use crate::settings::duration;
use crate::settings::value::TICK;
use std::time::Duration;

/// Pause after the first attempt that left something waiting. The sender of the missing half is probably at work.
pub const FIRST_PAUSE: Duration = Duration::from_secs(20);
/// Pause after every further attempt.
pub const PAUSE: Duration = Duration::from_secs(120);

/// How an event came here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A client published it. Its git data is probably being pushed.
    Published,
    /// It came from another relay. Such events come in bursts, and nobody is going to push here.
    Synced,
}

crate::settings! {
    /// Delays before the first attempt.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Delays in "sync" {
        /// Delay before git data is fetched for an event that a client published: its author probably pushes it.
        published as published_delay: Duration = "3m", duration(TICK..);
        /// Delay before git data is fetched for an event from another relay, so that events of one burst are fetched together.
        synced as synced_delay: Duration = "500ms", duration(TICK..);
    }
}

impl Delays {
    /// Delay of an event that came this way.
    pub fn of(&self, arrival: Origin) -> Duration {
        match arrival {
            Origin::Published => self.published,
            Origin::Synced => self.synced,
        }
    }
}

/// Attempts for one identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempts {
    pub next: Timestamp,
    /// Attempts since the last event of the identifier.
    pub made: u32,
}

impl Attempts {
    /// An event begins to wait. The count starts anew, and the next attempt moves earlier, never later: a steady stream of
    /// events must not postpone it for ever.
    pub fn noticed(before: Option<Self>, now: Timestamp, delay: Duration) -> Self {
        let wanted = now.plus(delay);
        Self { next: before.map_or(wanted, |before| before.next.min(wanted)), made: 0 }
    }

    /// An attempt ended and something still waits.
    pub fn failed(self, now: Timestamp) -> Self {
        let pause = if self.made == 0 { FIRST_PAUSE } else { PAUSE };
        Self { next: now.plus(pause), made: self.made.saturating_add(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    const USUAL: Delays = Delays { published: Duration::from_secs(180), synced: Duration::from_millis(500) };

    #[test]
    fn a_published_event_leaves_its_author_three_minutes_and_a_synced_one_half_a_second() {
        let first = |arrival| Attempts::noticed(None, at(100), USUAL.of(arrival)).next;
        assert_eq!(first(Origin::Published), at(280));
        assert_eq!(first(Origin::Synced), at(100).plus(Duration::from_millis(500)));
    }

    #[test]
    fn pauses_are_twenty_seconds_and_then_two_minutes() {
        let mut attempts = Attempts::noticed(None, at(0), Duration::ZERO);
        let mut next = Vec::new();
        for now in [0, 100, 300, 600] {
            attempts = attempts.failed(at(now));
            next.push(attempts.next);
        }
        assert_eq!(next, [at(20), at(220), at(420), at(720)]);
        assert_eq!(attempts.made, 4);
    }

    #[test]
    fn a_new_event_starts_the_count_anew_and_moves_the_attempt_earlier_only() {
        let waiting = Attempts { next: at(120), made: 5 };
        assert_eq!(
            Attempts::noticed(Some(waiting), at(0), Duration::from_secs(180)),
            Attempts { next: at(120), made: 0 }
        );
        assert_eq!(Attempts::noticed(Some(waiting), at(0), Duration::from_secs(1)), Attempts { next: at(1), made: 0 });
    }

    proptest! {
        #[test]
        fn a_stream_of_events_never_postpones_an_attempt(steps in vec((0_i64..1_000, 0_u64..300), 1..50)) {
            let (mut now, mut before) = (at(0), None::<Attempts>);
            for (step, delay) in steps {
                now = now.plus(Duration::from_secs(step.unsigned_abs()));
                let after = Attempts::noticed(before, now, Duration::from_secs(delay));
                prop_assert!(before.is_none_or(|before| after.next <= before.next));
                prop_assert!(after.next <= now.plus(Duration::from_secs(delay)));
                before = Some(after);
            }
        }
    }
}
