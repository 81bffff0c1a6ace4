//! Connection limits: in total and per address, and new connections per minute and address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Window for counting new connections.
const WINDOW: Duration = Duration::from_secs(60);
/// Addresses counted per window. Beyond this, new addresses are refused until the window ends, which bounds memory.
const MOST_NETWORKS: usize = 100_000;

/// Counts open connections. Clones share the counts.
#[derive(Clone)]
pub(crate) struct ConnectionSlots {
    inside: Arc<Mutex<Inside>>,
    total: usize,
    per_ip: usize,
    per_minute: usize,
}

#[derive(Default)]
struct Inside {
    total: usize,
    by_network: HashMap<IpAddr, usize>,
    /// Start of the window, and new connections per network since then.
    arrivals: Option<(Instant, HashMap<IpAddr, usize>)>,
}

/// Reason for refusing a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// All slots are taken.
    Everywhere,
    /// This address has the maximum number of connections.
    ForThisAddress,
    /// This address opened too many connections in the last minute.
    TooOften,
}

/// A connection slot, released on drop.
pub(crate) struct ConnectionSlot {
    slots: ConnectionSlots,
    network: IpAddr,
}

impl ConnectionSlots {
    pub(crate) fn new(total: usize, per_ip: usize, per_minute: usize) -> Self {
        Self { inside: Arc::default(), total, per_ip, per_minute }
    }

    pub(crate) fn enter(&self, ip: IpAddr) -> Result<ConnectionSlot, Full> {
        let network = network(ip);
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        if !inside.arrive(network, self.per_minute) {
            return Err(Full::TooOften);
        }
        if inside.total >= self.total {
            return Err(Full::Everywhere);
        }
        let here = inside.by_network.get(&network).copied().unwrap_or(0);
        if here >= self.per_ip {
            return Err(Full::ForThisAddress);
        }
        inside.by_network.insert(network, here + 1);
        inside.total += 1;
        metrics::gauge!("abide_ssh_connections").set(inside.total as f64);
        Ok(ConnectionSlot { slots: self.clone(), network })
    }
}

impl Inside {
    /// Counts a new connection; `false` if over the limit.
    fn arrive(&mut self, network: IpAddr, per_minute: usize) -> bool {
        let now = Instant::now();
        let (since, counts) = self.arrivals.get_or_insert_with(|| (now, HashMap::new()));
        if now.duration_since(*since) >= WINDOW {
            *since = now;
            counts.clear();
        }
        if counts.len() >= MOST_NETWORKS && !counts.contains_key(&network) {
            return false;
        }
        let count = counts.entry(network).or_insert(0);
        *count += 1;
        *count <= per_minute
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut inside = self.slots.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.total -= 1;
        metrics::gauge!("abide_ssh_connections").set(inside.total as f64);
        match inside.by_network.get_mut(&self.network) {
            Some(here) if *here > 1 => *here -= 1,
            _ => {
                inside.by_network.remove(&self.network);
            }
        }
    }
}

/// A holder of one IPv6 address has 2^64 of them, so IPv6 is counted per /64 network.
fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << 64)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn places_are_limited_over_all_and_given_back() {
        let slots = ConnectionSlots::new(2, 2, 100);
        let first = slots.enter(ip("192.0.2.1")).ok().unwrap();
        let _second = slots.enter(ip("192.0.2.2")).ok().unwrap();
        assert_eq!(slots.enter(ip("192.0.2.3")).err(), Some(Full::Everywhere));
        drop(first);
        assert!(slots.enter(ip("192.0.2.3")).is_ok());
    }

    #[test]
    fn places_are_limited_per_address_and_forgotten_when_given_back() {
        let slots = ConnectionSlots::new(10, 2, 100);
        let first = slots.enter(ip("192.0.2.1")).ok().unwrap();
        let second = slots.enter(ip("::ffff:192.0.2.1")).ok().unwrap();
        assert_eq!(slots.enter(ip("192.0.2.1")).err(), Some(Full::ForThisAddress));
        assert!(slots.enter(ip("192.0.2.2")).is_ok());
        drop(first);
        let third = slots.enter(ip("192.0.2.1")).ok().unwrap();
        drop((second, third));
        assert!(slots.inside.lock().unwrap().by_network.is_empty());
    }

    #[test]
    fn one_ipv6_network_counts_as_one_address() {
        let slots = ConnectionSlots::new(10, 1, 100);
        let _first = slots.enter(ip("2001:db8::1")).ok().unwrap();
        assert_eq!(slots.enter(ip("2001:db8::ffff:2")).err(), Some(Full::ForThisAddress));
        assert!(slots.enter(ip("2001:db8:0:1::1")).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_comes_too_often_waits_for_the_next_minute() {
        let slots = ConnectionSlots::new(10, 10, 3);
        for _ in 0..3 {
            drop(slots.enter(ip("192.0.2.1")).ok().unwrap());
        }
        assert_eq!(slots.enter(ip("192.0.2.1")).err(), Some(Full::TooOften));
        assert!(slots.enter(ip("192.0.2.2")).is_ok(), "others are not kept out");
        tokio::time::advance(WINDOW).await;
        assert!(slots.enter(ip("192.0.2.1")).is_ok());
    }
}
