//! Slots among concurrent work: bounded in all and for each key, such as a client's network or an account.
//!
//! [`Slots`] counts pieces of work, [`ByteBudget`] the memory they hold, [`RateWindows`] how often something happens.
//! They serve every road, so that "per address" means the same everywhere. Slots and bytes are taken without waiting and
//! given back when they are dropped.

mod bytes;
mod rate;

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

pub use bytes::{ByteBudget, Bytes};
pub use rate::RateWindows;

/// The part of a client's address that limits count: an IPv4 address, or the /64 network of an IPv6 address, because
/// one customer of a provider has all 2^64 addresses of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Network(IpAddr);

impl Network {
    /// The network that an address belongs to.
    pub fn of(ip: IpAddr) -> Self {
        Self(match ip.to_canonical() {
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64)).into(),
            v4 @ IpAddr::V4(_) => v4,
        })
    }

    /// Its first address.
    pub fn address(self) -> IpAddr {
        self.0
    }
}

/// How many of `all` slots one client may have that is to have at most `wanted`: a quarter is left to others, however few
/// there are.
pub fn share_of_one(all: usize, wanted: usize) -> usize {
    wanted.min(all - all.div_ceil(4)).max(1)
}

/// The limit that left no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// All slots are taken.
    InAll,
    /// This key has as many as one key may have.
    ForKey,
}

/// Counts slots in use. Clones share the count.
#[derive(Debug)]
pub struct Slots<K: Eq + Hash> {
    used: Arc<Mutex<Used<K>>>,
    total: usize,
    per_key: usize,
}

#[derive(Debug)]
struct Used<K> {
    total: usize,
    by_key: HashMap<K, usize>,
}

/// One slot, until it is dropped.
#[derive(Debug)]
#[must_use = "dropping a slot gives it back"]
pub struct Slot<K: Eq + Hash> {
    used: Arc<Mutex<Used<K>>>,
    key: K,
}

impl<K: Eq + Hash> Clone for Slots<K> {
    fn clone(&self) -> Self {
        Self { used: self.used.clone(), total: self.total, per_key: self.per_key }
    }
}

impl<K: Eq + Hash + Clone> Slots<K> {
    /// `total` slots in all, at most `per_key` of them for one key.
    pub fn new(total: usize, per_key: usize) -> Self {
        let used = Used { total: 0, by_key: HashMap::new() };
        Self { used: Arc::new(Mutex::new(used)), total, per_key }
    }

    /// Takes a slot if both limits leave one. The key's own limit is named first: its holder can do something about it.
    pub fn take(&self, key: K) -> Result<Slot<K>, Full> {
        self.count(std::slice::from_ref(&key))?;
        Ok(Slot { used: self.used.clone(), key })
    }

    /// Takes a slot for each of several different keys, or none at all. Nobody sees a slot as taken that is given back
    /// because another one was not to be had.
    pub fn take_all(&self, keys: Vec<K>) -> Result<Vec<Slot<K>>, Full> {
        self.count(&keys)?;
        Ok(keys.into_iter().map(|key| Slot { used: self.used.clone(), key }).collect())
    }

    fn count(&self, keys: &[K]) -> Result<(), Full> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |key: &K| used.by_key.get(key).copied().unwrap_or(0) >= self.per_key;
        if keys.iter().any(is_full) {
            return Err(Full::ForKey);
        }
        if self.total.saturating_sub(used.total) < keys.len() {
            return Err(Full::InAll);
        }
        used.total += keys.len();
        for key in keys {
            *used.by_key.entry(key.clone()).or_insert(0) += 1;
        }
        Ok(())
    }

    /// Slots in use.
    pub fn used(&self) -> usize {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).total
    }

    /// Slots in use by one key.
    pub fn used_by(&self, key: &K) -> usize {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).by_key.get(key).copied().unwrap_or(0)
    }
}

impl<K: Eq + Hash> Drop for Slot<K> {
    fn drop(&mut self) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.total -= 1;
        match used.by_key.get_mut(&self.key) {
            Some(own) if *own > 1 => *own -= 1,
            _ => {
                used.by_key.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        Network::of(text.parse().unwrap())
    }

    #[test]
    fn slots_are_limited_in_all_and_given_back() {
        let slots = Slots::new(2, 2);
        let first = slots.take("a").unwrap();
        let _second = slots.take("b").unwrap();
        assert_eq!(slots.take("c").err(), Some(Full::InAll));
        drop(first);
        assert!(slots.take("c").is_ok());
    }

    #[test]
    fn slots_are_limited_for_each_key_and_the_key_is_forgotten_with_its_last_slot() {
        let slots = Slots::new(10, 2);
        let (first, second) = (slots.take("a").unwrap(), slots.take("a").unwrap());
        assert_eq!(slots.take("a").err(), Some(Full::ForKey));
        let other = slots.take("b").unwrap();
        assert_eq!(slots.used(), 3);
        drop((first, second, other));
        assert!(slots.used.lock().unwrap().by_key.is_empty());
        assert_eq!(slots.used(), 0);
    }

    #[test]
    fn slots_for_several_keys_are_taken_together_or_not_at_all() {
        let slots = Slots::new(4, 1);
        let first = slots.take("account").unwrap();
        assert_eq!(slots.take_all(vec!["address", "account"]).err(), Some(Full::ForKey));
        assert_eq!(slots.used(), 1, "the slot of the address was never taken");
        drop(first);
        let _both = slots.take_all(vec!["address", "account"]).unwrap();
        assert_eq!(slots.take_all(vec!["x", "y", "z"]).err(), Some(Full::InAll));
        assert_eq!(slots.used(), 2);
    }

    #[test]
    fn a_quarter_of_the_slots_is_left_to_others() {
        for all in 1..200 {
            for wanted in 0..200 {
                let share = share_of_one(all, wanted);
                assert!(share >= 1 && share <= wanted.max(1), "{all} {wanted}");
                assert!(all == 1 || 4 * (all - share) >= all, "{all} {wanted}");
            }
            assert!(share_of_one(all, usize::MAX) + all.div_ceil(4) >= all, "and no more than a quarter");
        }
        assert_eq!([1, 2, 3, 4, 8].map(|all| share_of_one(all, usize::MAX)), [1, 1, 2, 3, 6]);
    }

    #[test]
    fn the_limit_of_the_key_is_named_before_the_limit_of_all() {
        let slots = Slots::new(1, 1);
        let _only = slots.take("a").unwrap();
        assert_eq!(slots.take("a").err(), Some(Full::ForKey));
        assert_eq!(slots.take("b").err(), Some(Full::InAll));
    }

    #[test]
    fn an_ipv6_network_counts_as_one_and_a_mapped_address_is_its_ipv4_one() {
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:2"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
    }
}
