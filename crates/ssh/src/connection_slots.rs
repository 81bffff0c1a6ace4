//! Connection limits: in total and per address, and new connections per minute and address.

use abide_core::Timestamp;
use abide_core::admission::{self, Network, RateWindows, Slot, Slots};
use std::net::IpAddr;
use std::time::Duration;

/// Window for counting new connections.
const WINDOW: Duration = Duration::from_secs(60);
/// Addresses counted separately per window; all others share one count, which bounds memory.
const MOST_NETWORKS: usize = 100_000;

/// Counts open and new connections.
pub(crate) struct ConnectionSlots {
    open: Slots<Network>,
    arrivals: RateWindows<Network>,
    per_minute: u64,
}

/// Reason for refusing a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// All slots are taken.
    Everywhere,
    /// This address has the maximum number of connections.
    ForThisAddress,
    /// This address opened too many connections in this minute.
    TooOften,
}

/// A connection slot, released on drop.
pub(crate) struct ConnectionSlot {
    open: Slots<Network>,
    slot: Option<Slot<Network>>,
}

impl ConnectionSlots {
    pub(crate) fn new(total: usize, per_ip: usize, per_minute: usize) -> Self {
        let per_minute = u64::try_from(per_minute).unwrap_or(u64::MAX);
        Self { open: Slots::new(total, per_ip), arrivals: RateWindows::new(WINDOW, MOST_NETWORKS), per_minute }
    }

    pub(crate) fn enter(&self, ip: IpAddr, now: Timestamp) -> Result<ConnectionSlot, Full> {
        let network = Network::of(ip);
        if self.arrivals.add(network, now) > self.per_minute {
            return Err(Full::TooOften);
        }
        let slot = self.open.take(network).map_err(|full| match full {
            admission::Full::InAll => Full::Everywhere,
            admission::Full::ForKey => Full::ForThisAddress,
        })?;
        metrics::gauge!("abide_ssh_connections").set(self.open.used() as f64);
        Ok(ConnectionSlot { open: self.open.clone(), slot: Some(slot) })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        drop(self.slot.take());
        metrics::gauge!("abide_ssh_connections").set(self.open.used() as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(0);

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn slots_are_limited_in_all_and_given_back() {
        let slots = ConnectionSlots::new(2, 2, 100);
        let first = slots.enter(ip("192.0.2.1"), NOW).ok().unwrap();
        let _second = slots.enter(ip("192.0.2.2"), NOW).ok().unwrap();
        assert_eq!(slots.enter(ip("192.0.2.3"), NOW).err(), Some(Full::Everywhere));
        drop(first);
        assert!(slots.enter(ip("192.0.2.3"), NOW).is_ok());
    }

    #[test]
    fn slots_are_limited_per_address_in_any_form_and_given_back() {
        let slots = ConnectionSlots::new(10, 2, 100);
        let first = slots.enter(ip("192.0.2.1"), NOW).ok().unwrap();
        let _second = slots.enter(ip("::ffff:192.0.2.1"), NOW).ok().unwrap();
        assert_eq!(slots.enter(ip("192.0.2.1"), NOW).err(), Some(Full::ForThisAddress));
        assert!(slots.enter(ip("192.0.2.2"), NOW).is_ok());
        drop(first);
        assert!(slots.enter(ip("192.0.2.1"), NOW).is_ok());
    }

    #[test]
    fn one_ipv6_network_counts_as_one_address() {
        let slots = ConnectionSlots::new(10, 1, 100);
        let _first = slots.enter(ip("2001:db8::1"), NOW).ok().unwrap();
        assert_eq!(slots.enter(ip("2001:db8::ffff:2"), NOW).err(), Some(Full::ForThisAddress));
        assert!(slots.enter(ip("2001:db8:0:1::1"), NOW).is_ok());
    }

    #[test]
    fn an_address_that_comes_too_often_waits_for_the_next_minute() {
        let slots = ConnectionSlots::new(10, 10, 3);
        for _ in 0..3 {
            drop(slots.enter(ip("192.0.2.1"), NOW).ok().unwrap());
        }
        assert_eq!(slots.enter(ip("192.0.2.1"), NOW).err(), Some(Full::TooOften));
        assert!(slots.enter(ip("192.0.2.2"), NOW).is_ok(), "others are not kept out");
        assert!(slots.enter(ip("192.0.2.1"), NOW.plus(WINDOW)).is_ok());
    }
}
