//! How many connections and events one address may have.

use super::RelaySettings;
use crate::Rate;
use abide_core::Timestamp;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// Why a connection is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooMany {
    /// The server has as many as it may.
    #[error("the relay has as many connections as it may ({0}); try again later")]
    Connections(usize),
    /// This address has.
    #[error("one address may have {0} connections to the relay; close one first")]
    OfAddress(usize),
}

pub(super) struct Door {
    connections: usize,
    per_ip: usize,
    rate: Rate,
    tracked: usize,
    open: Arc<Mutex<Open>>,
    events: Mutex<Window>,
}

#[derive(Default)]
struct Open {
    all: usize,
    of: HashMap<Option<IpAddr>, usize>,
}

/// Events by address since the window began. Of addresses beyond the bound, all share one count.
#[derive(Default)]
struct Window {
    number: i64,
    used: HashMap<Option<IpAddr>, i64>,
    others: i64,
}

/// A connection's place; given back when dropped.
pub(super) struct Place {
    open: Arc<Mutex<Open>>,
    address: Option<IpAddr>,
}

impl Door {
    pub(super) fn new(settings: &RelaySettings) -> Self {
        Self {
            connections: settings.connections,
            per_ip: settings.connections_per_ip,
            rate: settings.events_per_ip,
            tracked: settings.tracked,
            open: Arc::default(),
            events: Mutex::default(),
        }
    }

    pub(super) fn enter(&self, ip: Option<IpAddr>) -> Result<Place, TooMany> {
        let address = ip.map(network);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.all >= self.connections {
            return Err(TooMany::Connections(self.connections));
        }
        let own = open.of.entry(address).or_default();
        if *own >= self.per_ip {
            return Err(TooMany::OfAddress(self.per_ip));
        }
        *own += 1;
        open.all += 1;
        metrics::gauge!("abide_relay_connections").set(open.all as f64);
        Ok(Place { open: self.open.clone(), address })
    }

    /// Counts an event; `false` if the address has sent as many as it may for now.
    pub(super) fn event(&self, ip: Option<IpAddr>, now: Timestamp) -> bool {
        let window = i64::try_from(self.rate.window.as_micros()).unwrap_or(i64::MAX).max(1);
        let number = now.micros().div_euclid(window);
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.number != number {
            *events = Window { number, ..Window::default() };
        }
        let address = ip.map(network);
        let full = events.used.len() >= self.tracked && !events.used.contains_key(&address);
        let used = if full { &mut events.others } else { events.used.entry(address).or_default() };
        *used += 1;
        *used <= self.rate.times
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all = open.all.saturating_sub(1);
        metrics::gauge!("abide_relay_connections").set(open.all as f64);
        if let Some(own) = open.of.get_mut(&self.address) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                open.of.remove(&self.address);
            }
        }
    }
}

/// Whoever has one IPv6 address has the network around it.
fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn door() -> Door {
        Door::new(&RelaySettings {
            connections: 3,
            connections_per_ip: 2,
            events_per_ip: Rate { times: 2, window: Duration::from_secs(60) },
            tracked: 2,
            ..RelaySettings::default()
        })
    }

    fn ip(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn places_are_bounded_for_each_address_and_in_all_and_come_back() {
        let door = door();
        let (first, _second) = (door.enter(ip(1)).unwrap(), door.enter(ip(1)).unwrap());
        assert_eq!(door.enter(ip(1)).err(), Some(TooMany::OfAddress(2)));
        let _third = door.enter(ip(2)).unwrap();
        assert_eq!(door.enter(ip(3)).err(), Some(TooMany::Connections(3)));
        drop(first);
        assert!(door.enter(ip(1)).is_ok());
    }

    #[test]
    fn addresses_of_one_network_are_one() {
        let door = door();
        let v6 = |text: &str| Some(text.parse().unwrap());
        let _one = door.enter(v6("2001:db8::1")).unwrap();
        let _two = door.enter(v6("2001:db8::2")).unwrap();
        assert!(door.enter(v6("2001:db8::3")).is_err());
        assert!(door.enter(v6("2001:db8:0:1::1")).is_ok());
    }

    #[test]
    fn events_are_counted_by_address_and_window_within_a_bound() {
        let door = door();
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        assert_eq!([1, 1, 1].map(|last| door.event(ip(last), at(0))), [true, true, false]);
        assert!(door.event(ip(2), at(0)), "another address");
        assert_eq!([3, 4, 5].map(|last| door.event(ip(last), at(0))), [true, true, false], "they share one count");
        assert!(door.event(ip(1), at(60)), "another minute");
    }
}
