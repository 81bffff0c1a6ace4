//! Rates: how often something happened in a window of time.

use crate::Timestamp;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Counts actions for each key in windows of the clock: all counts begin anew with a window. Keys beyond a number share
/// one count, which bounds memory.
#[derive(Debug)]
pub struct RateWindows<K> {
    window: i64,
    tracked: usize,
    counts: Mutex<Counts<K>>,
}

#[derive(Debug)]
struct Counts<K> {
    /// Number of the window since 1970.
    window: i64,
    by_key: HashMap<K, u64>,
    others: u64,
}

impl<K: Eq + Hash> RateWindows<K> {
    /// Windows of this length, with `tracked` keys that are counted separately.
    pub fn new(window: Duration, tracked: usize) -> Self {
        let window = i64::try_from(window.as_micros()).unwrap_or(i64::MAX).max(1);
        Self { window, tracked, counts: Mutex::new(Counts { window: 0, by_key: HashMap::new(), others: 0 }) }
    }

    /// Counts one action and returns the number of actions in this window, with this one.
    pub fn add(&self, key: K, now: Timestamp) -> u64 {
        let mut counts = self.current(now);
        let full = counts.by_key.len() >= self.tracked && !counts.by_key.contains_key(&key);
        let count = if full { &mut counts.others } else { counts.by_key.entry(key).or_default() };
        *count = count.saturating_add(1);
        *count
    }

    /// Number of actions in this window.
    pub fn used(&self, key: &K, now: Timestamp) -> u64 {
        let counts = self.current(now);
        let full = counts.by_key.len() >= self.tracked;
        counts.by_key.get(key).copied().unwrap_or(if full { counts.others } else { 0 })
    }

    /// End of the window.
    pub fn end(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_micros((now.micros().div_euclid(self.window) + 1).saturating_mul(self.window))
    }

    fn current(&self, now: Timestamp) -> std::sync::MutexGuard<'_, Counts<K>> {
        let window = now.micros().div_euclid(self.window);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.window != window {
            *counts = Counts { window, by_key: HashMap::new(), others: 0 };
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn each_key_is_counted_by_itself_and_anew_in_each_window() {
        let rate = RateWindows::new(Duration::from_secs(60), 10);
        assert_eq!([1, 1, 2].map(|key| rate.add(key, at(61))), [1, 2, 1]);
        assert_eq!((rate.used(&1, at(119)), rate.used(&3, at(119))), (2, 0), "asking does not count");
        assert_eq!(rate.end(at(61)), at(120));
        assert_eq!((rate.add(1, at(120)), rate.used(&2, at(120))), (1, 0));
    }

    #[test]
    fn keys_beyond_the_tracked_ones_share_one_count_and_tracked_ones_keep_theirs() {
        let rate = RateWindows::new(Duration::from_secs(60), 2);
        assert_eq!([1, 2].map(|key| rate.add(key, at(0))), [1, 1]);
        assert_eq!([3, 4, 5].map(|key| rate.add(key, at(0))), [1, 2, 3]);
        assert_eq!((rate.used(&6, at(0)), rate.add(1, at(0))), (3, 2));
        assert_eq!(rate.counts.lock().unwrap().by_key.len(), 2);
    }
}
