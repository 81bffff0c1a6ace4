//! Limits of connections and events per IP address.

use crate::RelaySettings;
use abide_core::Timestamp;
use abide_core::admission::{Full, Network, RateWindows, Slot, Slots};
use std::net::IpAddr;

/// Why a connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooMany {
    /// The server has reached its limit.
    #[error("the relay has reached its limit of {0} connections; try again later")]
    Connections(usize),
    /// The address has reached its limit.
    #[error("your IP address has reached the limit of {0} relay connections; close one first")]
    OfAddress(usize),
}

pub(crate) struct RelayAdmission {
    connections: usize,
    per_ip: usize,
    events_per_ip: u64,
    open: Slots<Option<Network>>,
    events: RateWindows<Option<Network>>,
}

/// A connection's slot; released when dropped.
pub(crate) struct RelaySlot {
    open: Slots<Option<Network>>,
    slot: Option<Slot<Option<Network>>>,
}

impl RelayAdmission {
    pub(crate) fn new(settings: &RelaySettings) -> Self {
        let rate = settings.publishing();
        Self {
            connections: settings.connections,
            per_ip: settings.connections_per_ip,
            events_per_ip: u64::try_from(rate.times).unwrap_or(0),
            open: Slots::new(settings.connections, settings.connections_per_ip),
            events: RateWindows::new(rate.window, settings.tracked),
        }
    }

    pub(crate) fn enter(&self, ip: Option<IpAddr>) -> Result<RelaySlot, TooMany> {
        let slot = self.open.take(ip.map(Network::of)).map_err(|full| match full {
            Full::InAll => TooMany::Connections(self.connections),
            Full::ForKey => TooMany::OfAddress(self.per_ip),
        })?;
        metrics::gauge!("abide_relay_connections").set(self.open.used() as f64);
        Ok(RelaySlot { open: self.open.clone(), slot: Some(slot) })
    }

    /// Counts an event; `false` if the address has reached its rate limit.
    pub(crate) fn event(&self, ip: Option<IpAddr>, now: Timestamp) -> bool {
        self.events.add(ip.map(Network::of), now) <= self.events_per_ip
    }
}

impl Drop for RelaySlot {
    fn drop(&mut self) {
        drop(self.slot.take());
        metrics::gauge!("abide_relay_connections").set(self.open.used() as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn admission() -> RelayAdmission {
        RelayAdmission::new(&RelaySettings {
            connections: 3,
            connections_per_ip: 2,
            events_per_ip: 2,
            window: Duration::from_secs(60),
            tracked: 2,
            ..RelaySettings::default()
        })
    }

    fn ip(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn places_are_bounded_for_each_address_and_in_all_and_come_back() {
        let admission = admission();
        let (first, _second) = (admission.enter(ip(1)).unwrap(), admission.enter(ip(1)).unwrap());
        assert_eq!(admission.enter(ip(1)).err(), Some(TooMany::OfAddress(2)));
        let _third = admission.enter(ip(2)).unwrap();
        assert_eq!(admission.enter(ip(3)).err(), Some(TooMany::Connections(3)));
        drop(first);
        assert!(admission.enter(ip(1)).is_ok());
    }

    #[test]
    fn addresses_of_one_network_are_one() {
        let admission = admission();
        let v6 = |text: &str| Some(text.parse().unwrap());
        let _one = admission.enter(v6("2001:db8::1")).unwrap();
        let _two = admission.enter(v6("2001:db8::2")).unwrap();
        assert!(admission.enter(v6("2001:db8::3")).is_err());
        assert!(admission.enter(v6("2001:db8:0:1::1")).is_ok());
    }

    #[test]
    fn events_are_counted_by_address_and_window_within_a_bound() {
        let admission = admission();
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        assert_eq!([1, 1, 1].map(|last| admission.event(ip(last), at(0))), [true, true, false]);
        assert!(admission.event(ip(2), at(0)), "another address");
        assert_eq!([3, 4, 5].map(|last| admission.event(ip(last), at(0))), [true, true, false], "they share one count");
        assert!(admission.event(ip(1), at(60)), "another minute");
    }
}
