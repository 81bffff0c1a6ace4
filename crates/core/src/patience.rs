//! Minimum rate of slow clients; an idle limit is the special case of rate zero.
//!
//! Patience is a time budget that waiting uses up and bytes refill, up to its initial value. A silent client exhausts
//! it in exactly that time. So does a client that sends a byte now and then, because a byte refills only its share at
//! the minimum rate. A client at the minimum rate never exhausts it.

use std::time::Duration;

/// Time budget for one direction of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    full: Duration,
    left: Duration,
    bytes_per_second: u64,
}

impl Patience {
    /// A budget of `full` without a byte, and endless at this rate. With a rate of zero, any byte refills it.
    pub fn new(full: Duration, bytes_per_second: u64) -> Self {
        Self { full, left: full, bytes_per_second }
    }

    /// Longest allowed duration of the next wait.
    pub fn left(&self) -> Duration {
        self.left
    }

    /// How long the next wait may take that brings so many bytes at once: the time that they take at the rate counts too.
    pub fn left_for(&self, bytes: u64) -> Duration {
        self.left.saturating_add(self.earned(bytes))
    }

    fn earned(&self, bytes: u64) -> Duration {
        match (bytes, self.bytes_per_second) {
            (0, _) => Duration::ZERO,
            (_, 0) => self.full,
            (bytes, rate) => Duration::from_secs_f64(bytes as f64 / rate as f64),
        }
    }

    /// Counts a wait and the bytes that it brought.
    pub fn waited(&mut self, time: Duration, bytes: u64) {
        self.left = self.left_for(bytes).saturating_sub(time).min(self.full);
    }

    /// Minimum rate in bytes per second.
    pub fn bytes_per_second(&self) -> u64 {
        self.bytes_per_second
    }

    /// Initial budget.
    pub fn full(&self) -> Duration {
        self.full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn silence_uses_it_up() {
        let mut patience = Patience::new(MINUTE, 1024);
        patience.waited(59 * SECOND, 0);
        assert_eq!(patience.left(), SECOND);
        patience.waited(2 * SECOND, 0);
        assert_eq!(patience.left(), Duration::ZERO);
    }

    #[test]
    fn a_client_that_keeps_the_rate_is_waited_for_forever() {
        let mut patience = Patience::new(MINUTE, 1024);
        for _ in 0..10_000 {
            patience.waited(30 * SECOND, 30 * 1024);
        }
        assert_eq!(patience.left(), MINUTE);
    }

    #[test]
    fn one_byte_every_half_minute_is_hardly_better_than_silence() {
        let mut patience = Patience::new(MINUTE, 1024);
        let waits = (1..).find(|_| {
            patience.waited(30 * SECOND, 1);
            patience.left() < SECOND
        });
        assert_eq!(waits, Some(2));
    }

    #[test]
    fn a_burst_pays_for_a_pause_but_not_for_more_than_was_granted_at_first() {
        let mut patience = Patience::new(MINUTE, 1024);
        patience.waited(SECOND, 1 << 30);
        assert_eq!(patience.left(), MINUTE);
        patience.waited(61 * SECOND, 0);
        assert_eq!(patience.left(), Duration::ZERO);
    }

    #[test]
    fn many_bytes_at_once_may_take_as_long_as_at_the_rate_and_patience_pays_for_the_rest() {
        let mut patience = Patience::new(MINUTE, 1024);
        assert_eq!(patience.left_for(0), MINUTE);
        assert_eq!(patience.left_for(100 * 1024), 160 * SECOND);
        patience.waited(130 * SECOND, 100 * 1024);
        assert_eq!(patience.left(), 30 * SECOND, "they took half a minute too long");
        patience.waited(110 * SECOND, 100 * 1024);
        assert_eq!(patience.left_for(1024), 21 * SECOND, "dripping uses it up, a frame at a time");
    }

    #[test]
    fn without_a_rate_any_byte_restores_it() {
        let mut patience = Patience::new(MINUTE, 0);
        patience.waited(59 * SECOND, 1);
        assert_eq!(patience.left(), MINUTE);
    }
}
