//! Who may keep a connection open.
//!
//! Connections are limited in all and for each network, and one beyond a limit is not left waiting: it gets one of a few
//! places that are kept for questions about the server's health, where everything else is refused at once. So a client
//! that opens all it can and says nothing takes no more than its share, and monitoring sees a server that is alive.
//!
//! A proxy that is trusted opens connections for many clients. It has places of its own, and its clients are counted by
//! request instead, under the address that the proxy tells.

use abide_core::admission::{Network, Slot, Slots};
use ipnet::IpNet;
use std::net::IpAddr;
use std::sync::Arc;

/// Connections for questions about health, in all and of one network.
const RESERVE: (usize, usize) = (32, 4);
/// The same for the machine that the server runs on, whatever others do.
const LOCAL_RESERVE: (usize, usize) = (8, 4);

/// The places of connections and of requests by way of proxies.
pub(super) struct Places {
    trusted: Arc<[IpNet]>,
    clients: Slots<Network>,
    proxies: Slots<()>,
    requests: Slots<Network>,
    reserve: Slots<Network>,
    local_reserve: Slots<Network>,
}

/// A place that lasts as long as something holds it.
#[derive(Clone)]
pub(crate) struct Held {
    _connection: Arc<Place>,
    _request: Option<Arc<Slot<Network>>>,
}

enum Place {
    Network { _slot: Slot<Network> },
    Proxy { _slot: Slot<()> },
}

/// What a new connection may do.
pub(super) enum Entry {
    /// Ask for anything.
    Guest(Held),
    /// Ask for anything, on behalf of others.
    Proxy(Held),
    /// Ask how the server is.
    Reserve(Held),
    /// Nothing.
    Full,
}

impl Places {
    pub(super) fn new(total: usize, per_network: usize, trusted: Arc<[IpNet]>) -> Self {
        let (total, per_network) = (total.max(1), per_network.max(1));
        Self {
            trusted,
            clients: Slots::new(total, per_network),
            proxies: Slots::new(total, total),
            requests: Slots::new(total, per_network),
            reserve: Slots::new(RESERVE.0, RESERVE.1),
            local_reserve: Slots::new(LOCAL_RESERVE.0, LOCAL_RESERVE.1),
        }
    }

    /// A place for a connection from an address.
    pub(super) fn enter(&self, ip: IpAddr) -> Entry {
        let network = Network::of(ip);
        let held = |slot| Held { _connection: Arc::new(Place::Network { _slot: slot }), _request: None };
        if self.trusted.iter().any(|net| net.contains(&ip.to_canonical())) {
            if let Ok(slot) = self.proxies.take(()) {
                return Entry::Proxy(Held { _connection: Arc::new(Place::Proxy { _slot: slot }), _request: None });
            }
        } else if let Ok(slot) = self.clients.take(network) {
            return Entry::Guest(held(slot));
        }
        let reserved = self.reserve.take(network).or_else(|full| match ip.to_canonical().is_loopback() {
            true => self.local_reserve.take(network),
            false => Err(full),
        });
        reserved.map_or(Entry::Full, |slot| Entry::Reserve(held(slot)))
    }

    /// A place for a request that a proxy passes on; `None` if its client has as many as one may have.
    pub(super) fn request(&self, connection: &Held, client: IpAddr) -> Option<Held> {
        let slot = self.requests.take(Network::of(client)).ok()?;
        Some(Held { _request: Some(Arc::new(slot)), ..connection.clone() })
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
        let places = Places::new(10, 3, Arc::new([]));
        let entries: Vec<Entry> = (0..9).map(|_| places.enter(ip("192.0.2.1"))).collect();
        let kinds: Vec<_> = entries.iter().map(kind).collect();
        assert_eq!(kinds, [["guest"; 3].as_slice(), &["reserve"; 4], &["full"; 2]].concat());
        assert_eq!(kind(&places.enter(ip("192.0.2.2"))), "guest", "another network has its own");
        drop(entries);
        assert_eq!(kind(&places.enter(ip("192.0.2.1"))), "guest", "places are given back");
    }

    #[test]
    fn when_all_places_are_taken_health_is_still_answered() {
        let places = Places::new(4, 1, Arc::new([]));
        let _taken: Vec<_> = (1..=4).map(|last| places.enter(ip(&format!("192.0.2.{last}")))).collect();
        assert_eq!(kind(&places.enter(ip("192.0.2.9"))), "reserve");
        let _reserve: Vec<_> = (0..RESERVE.0).map(|last| places.enter(ip(&format!("198.51.100.{last}")))).collect();
        assert_eq!(kind(&places.enter(ip("192.0.2.9"))), "full");
        assert_eq!(kind(&places.enter(ip("127.0.0.1"))), "reserve", "the machine itself has places of its own");
    }

    #[test]
    fn a_proxy_is_not_locked_out_and_its_clients_are_counted_each() {
        let places = Places::new(4, 1, Arc::new(["10.0.0.0/8".parse().unwrap()]));
        let _strangers: Vec<_> = (1..=4).map(|last| places.enter(ip(&format!("192.0.2.{last}")))).collect();
        let Entry::Proxy(first) = places.enter(ip("10.0.0.1")) else { panic!("a proxy gets in") };
        let Entry::Proxy(second) = places.enter(ip("10.0.0.1")) else { panic!("more than once") };
        let held = places.request(&first, ip("203.0.113.1"));
        assert!(held.is_some());
        assert!(places.request(&second, ip("203.0.113.1")).is_none(), "one client has its share");
        assert!(places.request(&second, ip("203.0.113.2")).is_some(), "another is not hindered");
        drop(held);
        assert!(places.request(&second, ip("203.0.113.1")).is_some());
    }
}
