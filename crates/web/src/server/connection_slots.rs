//! Limits on open connections.
//!
//! Connections are limited in total and per network. A connection over a limit does not wait: it gets a slot of a small
//! reserve, where only health checks are answered and everything else is refused at once. Networks that hold many
//! connections have a reserve of their own, so they cannot take the one that monitoring needs.
//!
//! A trusted proxy opens connections for many clients. It has its own slots, and its clients are counted per request,
//! under the address that the proxy reports.

use abide_core::admission::{Full, Network, Slot, Slots};
use ipnet::IpNet;
use std::net::IpAddr;
use std::sync::Arc;

/// Connections for health checks: total, and per network.
const RESERVE: (usize, usize) = (32, 4);
/// The same for the server's own machine; other clients cannot use them up.
const LOCAL_RESERVE: (usize, usize) = (8, 4);
/// The same for networks that hold all of their connections, or more than [`FEW`].
const CROWD_RESERVE: (usize, usize) = (32, 4);
/// Open connections of a network that only monitors the server.
const FEW: usize = 4;

/// Slots of connections, and of requests that proxies forward.
pub(super) struct ConnectionSlots {
    trusted: Arc<[IpNet]>,
    clients: Slots<Network>,
    proxies: Slots<()>,
    requests: Slots<Network>,
    reserve: Slots<Network>,
    local_reserve: Slots<Network>,
    crowd_reserve: Slots<Network>,
}

/// Slot of a connection and of its forwarded request; free when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct ConnectionSlot {
    _connection: Arc<Counted>,
    _request: Option<Arc<Slot<Network>>>,
}

enum Counted {
    Network { _slot: Slot<Network> },
    Proxy { _slot: Slot<()> },
}

/// Admission of a new connection.
pub(super) enum Entry {
    /// All requests are served.
    Guest(ConnectionSlot),
    /// All requests are served; each is counted for the client that the proxy reports.
    Proxy(ConnectionSlot),
    /// Only health checks are served.
    Reserve(ConnectionSlot),
    Full,
}

impl ConnectionSlots {
    pub(super) fn new(total: usize, per_network: usize, trusted: Arc<[IpNet]>) -> Self {
        let (total, per_network) = (total.max(1), per_network.max(1));
        Self {
            trusted,
            clients: Slots::new(total, per_network),
            proxies: Slots::new(total, total),
            requests: Slots::new(total, per_network),
            reserve: Slots::new(RESERVE.0, RESERVE.1),
            local_reserve: Slots::new(LOCAL_RESERVE.0, LOCAL_RESERVE.1),
            crowd_reserve: Slots::new(CROWD_RESERVE.0, CROWD_RESERVE.1),
        }
    }

    pub(super) fn enter(&self, ip: IpAddr) -> Entry {
        let network = Network::of(ip);
        let held = |slot| ConnectionSlot { _connection: Arc::new(Counted::Network { _slot: slot }), _request: None };
        let mut is_crowd = false;
        if self.trusted.iter().any(|net| net.contains(&ip.to_canonical())) {
            if let Ok(slot) = self.proxies.take(()) {
                return Entry::Proxy(ConnectionSlot {
                    _connection: Arc::new(Counted::Proxy { _slot: slot }),
                    _request: None,
                });
            }
        } else {
            match self.clients.take(network) {
                Ok(slot) => return Entry::Guest(held(slot)),
                Err(full) => is_crowd = full == Full::ForKey || self.clients.used_by(&network) > FEW,
            }
        }
        let reserved = if is_crowd {
            self.crowd_reserve.take(network)
        } else {
            self.reserve.take(network).or_else(|full| match ip.to_canonical().is_loopback() {
                true => self.local_reserve.take(network),
                false => Err(full),
            })
        };
        reserved.map_or(Entry::Full, |slot| Entry::Reserve(held(slot)))
    }

    /// Takes a slot for a request that a proxy forwards; `None` if its client has reached `server.connections_per_ip`.
    pub(super) fn request(&self, connection: &ConnectionSlot, client: IpAddr) -> Option<ConnectionSlot> {
        let slot = self.requests.take(Network::of(client)).ok()?;
        Some(ConnectionSlot { _request: Some(Arc::new(slot)), ..connection.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn kind(entry: &Entry) -> &'static str {
        match entry {
            Entry::Guest(_) => "guest",
            Entry::Proxy(_) => "proxy",
            Entry::Reserve(_) => "reserve",
            Entry::Full => "full",
        }
    }

    #[test]
    fn a_network_has_its_share_then_a_few_of_the_reserve_then_nothing() {
        let slots = ConnectionSlots::new(10, 3, Arc::new([]));
        let entries: Vec<Entry> = (0..9).map(|_| slots.enter(ip("192.0.2.1"))).collect();
        let kinds: Vec<_> = entries.iter().map(kind).collect();
        assert_eq!(kinds, [["guest"; 3].as_slice(), &["reserve"; 4], &["full"; 2]].concat());
        assert_eq!(kind(&slots.enter(ip("192.0.2.2"))), "guest", "another network has its own");
        drop(entries);
        assert_eq!(kind(&slots.enter(ip("192.0.2.1"))), "guest", "slots are given back");
    }

    #[test]
    fn when_all_slots_are_taken_health_is_still_answered() {
        let slots = ConnectionSlots::new(4, 1, Arc::new([]));
        let _taken: Vec<_> = (1..=4).map(|last| slots.enter(ip(&format!("192.0.2.{last}")))).collect();
        assert_eq!(kind(&slots.enter(ip("192.0.2.9"))), "reserve");
        let _reserve: Vec<_> = (0..RESERVE.0).map(|last| slots.enter(ip(&format!("198.51.100.{last}")))).collect();
        assert_eq!(kind(&slots.enter(ip("192.0.2.9"))), "full");
        assert_eq!(kind(&slots.enter(ip("127.0.0.1"))), "reserve", "the machine itself has slots of its own");
    }

    #[test]
    fn networks_that_took_every_connection_do_not_take_the_reserve_of_health_checks_too() {
        let slots = ConnectionSlots::new(100, 10, Arc::new([]));
        let attackers: Vec<IpAddr> = (1..=10).map(|last| ip(&format!("192.0.2.{last}"))).collect();
        let mut taken = Vec::new();
        for _ in 0..10 {
            taken.extend(attackers.iter().map(|from| slots.enter(*from)));
        }
        for _ in 0..10 {
            taken.extend(attackers.iter().map(|from| slots.enter(*from)));
        }
        assert_eq!(kind(&slots.enter(attackers[0])), "full");
        assert_eq!(kind(&slots.enter(ip("198.51.100.1"))), "reserve", "monitoring from elsewhere");
        assert_eq!(kind(&slots.enter(ip("127.0.0.1"))), "reserve", "and from the machine itself");
    }

    #[test]
    fn a_proxy_is_not_locked_out_and_its_clients_are_counted_each() {
        let slots = ConnectionSlots::new(4, 1, Arc::new(["10.0.0.0/8".parse().unwrap()]));
        let _strangers: Vec<_> = (1..=4).map(|last| slots.enter(ip(&format!("192.0.2.{last}")))).collect();
        let Entry::Proxy(first) = slots.enter(ip("10.0.0.1")) else { panic!("a proxy gets in") };
        let Entry::Proxy(second) = slots.enter(ip("10.0.0.1")) else { panic!("more than once") };
        let held = slots.request(&first, ip("203.0.113.1"));
        assert!(held.is_some());
        assert!(slots.request(&second, ip("203.0.113.1")).is_none(), "one client has its share");
        assert!(slots.request(&second, ip("203.0.113.2")).is_some(), "another is not hindered");
        drop(held);
        assert!(slots.request(&second, ip("203.0.113.1")).is_some());
    }
}
