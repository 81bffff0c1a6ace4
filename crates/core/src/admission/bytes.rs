//! Bytes in use, bounded in all and for each key.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// Counts bytes in use. Clones share the count.
#[derive(Debug)]
pub struct ByteBudget<K: Eq + Hash> {
    used: Arc<Mutex<Used<K>>>,
    total: u64,
    per_key: u64,
}

#[derive(Debug)]
struct Used<K> {
    total: u64,
    by_key: HashMap<K, u64>,
}

/// Bytes of a budget, until they are dropped.
#[derive(Debug)]
#[must_use = "dropping the bytes gives them back"]
pub struct Bytes<K: Eq + Hash> {
    used: Arc<Mutex<Used<K>>>,
    key: K,
    bytes: u64,
}

impl<K: Eq + Hash> Clone for ByteBudget<K> {
    fn clone(&self) -> Self {
        Self { used: self.used.clone(), total: self.total, per_key: self.per_key }
    }
}

impl<K: Eq + Hash + Clone> ByteBudget<K> {
    /// `total` bytes in all, at most `per_key` of them for one key.
    pub fn new(total: u64, per_key: u64) -> Self {
        Self { used: Arc::new(Mutex::new(Used { total: 0, by_key: HashMap::new() })), total, per_key }
    }

    /// Takes bytes for a key; `None` if a limit leaves too few. A key without bytes in use may take more than its limit,
    /// and more than the total if nobody else uses any: otherwise a large answer could never be sent. The last quarter of
    /// the total is kept for keys without bytes in use, so that few keys cannot take all of it and keep it.
    pub fn take(&self, key: K, bytes: u64) -> Option<Bytes<K>> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let own = used.by_key.get(&key).copied().unwrap_or(0);
        let room = if own == 0 { self.total } else { self.total - self.total / 4 };
        let fits_total = used.total == 0 || used.total.saturating_add(bytes) <= room;
        let fits_key = own == 0 || own.saturating_add(bytes) <= self.per_key;
        if !fits_total || !fits_key {
            return None;
        }
        used.total = used.total.saturating_add(bytes);
        used.by_key.insert(key.clone(), own.saturating_add(bytes));
        drop(used);
        Some(Bytes { used: self.used.clone(), key, bytes })
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).total
    }
}

impl<K: Eq + Hash> Bytes<K> {
    /// Gives back all but so many: they were taken before it was known how many are needed.
    pub fn shrink_to(&mut self, bytes: u64) {
        let more = self.bytes.saturating_sub(bytes);
        self.give_back(more);
        self.bytes -= more;
    }

    fn give_back(&self, bytes: u64) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.total = used.total.saturating_sub(bytes);
        match used.by_key.get_mut(&self.key) {
            Some(own) if *own > bytes => *own -= bytes,
            _ => {
                used.by_key.remove(&self.key);
            }
        }
    }
}

impl<K: Eq + Hash> Drop for Bytes<K> {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_share_and_its_first_bytes_may_be_more() {
        let budget = ByteBudget::new(100, 10);
        let large = budget.take("a", 50).expect("the first bytes of a key");
        assert!(budget.take("a", 1).is_none(), "it has had its share");
        let other = budget.take("b", 6).expect("another key has a share of its own");
        assert!(budget.take("b", 6).is_none());
        drop((large, other));
        assert_eq!(budget.used(), 0);
        assert!(budget.used.lock().unwrap().by_key.is_empty());
    }

    #[test]
    fn the_last_quarter_is_kept_for_keys_that_have_nothing() {
        let budget = ByteBudget::new(100, 50);
        let taken: Vec<_> = (0..10).flat_map(|_| ["a", "b"].map(|key| budget.take(key, 10))).flatten().collect();
        assert_eq!(budget.used(), 70, "two keys have no more than three quarters");
        let _other = budget.take("c", 10).expect("a key that has nothing");
        assert!(budget.take("c", 10).is_none(), "and then it has something");
        drop(taken);
    }

    #[test]
    fn bytes_that_are_not_needed_are_given_back_and_the_rest_later() {
        let budget = ByteBudget::new(100, 50);
        let mut taken = budget.take("a", 40).unwrap();
        taken.shrink_to(60);
        assert_eq!(budget.used(), 40, "they never become more");
        taken.shrink_to(15);
        assert_eq!(budget.used(), 15);
        let rest = budget.take("a", 35).expect("the share has room again");
        drop((taken, rest));
        assert!(budget.used.lock().unwrap().by_key.is_empty());
    }

    #[test]
    fn all_keys_together_have_no_more_than_the_total() {
        let budget = ByteBudget::new(25, 10);
        let taken: Vec<_> = (0..5).map(|key| budget.take(key, 10)).collect();
        assert_eq!(taken.iter().flatten().count(), 2);
        drop(taken);
        assert!(budget.take(1, 1_000).is_some(), "more than the total is given to a key that is alone");
    }
}
