//! The budget of a relay: how much it may cost in an hour.

use super::Lie;
use abide_core::Timestamp;
use std::time::Duration;

/// The time that a budget covers, and the rest of a relay that exceeded it.
pub const HOUR: Duration = Duration::from_secs(3600);

/// Cost of a frame beside its bytes, so that many small frames exhaust a budget too.
const FRAME: u64 = 64;

/// Limits of one relay per hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Events, including duplicates and events that arrive after their subscription was closed.
    pub events: u64,
    /// Bytes of frames, plus 64 per frame.
    pub bytes: u64,
    /// Frames that an honest relay does not send; see [`Lie`].
    pub lies: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { events: 100_000, bytes: 256 << 20, lies: 200 }
    }
}

/// The limit that a relay exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RestReason {
    Events,
    Bytes,
    /// Too many lies; the last one is named.
    Lies(Lie),
}

/// Spending of one relay since the hour began. The hour begins with the first frame after the previous hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    began: Option<Timestamp>,
    pub events: u64,
    pub bytes: u64,
    pub lies: u64,
    /// Frames without effect: notices, unknown messages, late messages to closed subscriptions.
    pub chatter: u64,
    last_lie: Option<Lie>,
}

impl Spending {
    /// Counts a frame, and begins an hour if the previous one is over.
    pub fn frame(&mut self, bytes: usize, now: Timestamp) {
        if self.began.is_none_or(|began| now.since(began) >= HOUR) {
            *self = Self { began: Some(now), ..Self::default() };
        }
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_add(FRAME);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Counts an event.
    pub fn event(&mut self) {
        self.events += 1;
    }

    /// Counts a lie.
    pub fn lie(&mut self, lie: Lie) {
        self.lies += 1;
        self.last_lie = Some(lie);
    }

    /// The limit that is exceeded, if any.
    pub fn exceeds(&self, budget: &Budget) -> Option<RestReason> {
        match self.last_lie {
            Some(lie) if self.lies > budget.lies => Some(RestReason::Lies(lie)),
            _ if self.events > budget.events => Some(RestReason::Events),
            _ if self.bytes > budget.bytes => Some(RestReason::Bytes),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::NOW;

    const SMALL: Budget = Budget { events: 2, bytes: 300, lies: 1 };

    #[test]
    fn each_limit_may_be_reached_but_not_exceeded() {
        let mut spent = Spending::default();
        spent.frame(300 - 64, NOW);
        spent.event();
        spent.event();
        spent.lie(Lie::Unasked);
        assert_eq!(spent.exceeds(&SMALL), None);
        let over = |step: fn(&mut Spending)| {
            let mut more = spent;
            step(&mut more);
            more.exceeds(&SMALL)
        };
        assert_eq!(over(|spent| spent.frame(0, NOW)), Some(RestReason::Bytes), "an empty frame costs too");
        assert_eq!(over(Spending::event), Some(RestReason::Events));
        assert_eq!(over(|spent| spent.lie(Lie::Oversized)), Some(RestReason::Lies(Lie::Oversized)));
    }

    #[test]
    fn an_hour_begins_with_its_first_frame() {
        let mut spent = Spending::default();
        spent.frame(10, NOW);
        spent.frame(10, NOW.plus(HOUR).minus(Duration::from_secs(1)));
        assert_eq!(spent.bytes, 148);
        spent.lie(Lie::Unasked);
        spent.frame(10, NOW.plus(HOUR));
        assert_eq!((spent.bytes, spent.lies), (74, 0));
    }
}
