//! Subscriptions of all connections, and delivery of new events.

use super::memory::{Held, Memory};
use abide_core::admission::Network;
use abide_nostr::session::{QueryId, Wire};
use abide_nostr::{Event, EventId, Filter, SubscriptionIndex};
use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// A subscription, unique among all connections.
type Name = (u64, QueryId);

/// A new event for one subscription.
pub(crate) struct Live {
    pub query: QueryId,
    pub wire: Wire,
    /// Bytes of the text, held once for all readers of one network.
    pub held: Option<Arc<Held>>,
}

pub(crate) struct Hub {
    /// New events that may wait for one reader.
    outgoing: usize,
    inner: Mutex<Inner>,
}

/// A connection with subscriptions.
struct Reader {
    to: mpsc::Sender<Live>,
    ip: Option<IpAddr>,
}

struct Inner {
    next: u64,
    subscriptions: SubscriptionIndex<Name>,
    readers: HashMap<u64, Reader>,
    memory: Memory,
    delivered: Recent,
}

impl Hub {
    pub(crate) fn new(outgoing: usize, remembered: usize, memory: Memory) -> Self {
        let inner = Inner {
            next: 0,
            subscriptions: SubscriptionIndex::default(),
            readers: HashMap::new(),
            memory,
            delivered: Recent::new(remembered),
        };
        Self { outgoing: outgoing.max(1), inner: Mutex::new(inner) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a reader: returns its number and the channel of its events. The channel closes when the reader is too slow.
    pub(crate) fn join(&self, ip: Option<IpAddr>) -> (u64, mpsc::Receiver<Live>) {
        let (sender, receiver) = mpsc::channel(self.outgoing);
        let mut inner = self.lock();
        inner.next += 1;
        let number = inner.next;
        inner.readers.insert(number, Reader { to: sender, ip });
        (number, receiver)
    }

    /// Removes a reader and its subscriptions.
    pub(crate) fn leave(&self, number: u64, open: impl Iterator<Item = QueryId>) {
        let mut inner = self.lock();
        inner.readers.remove(&number);
        for query in open {
            inner.subscriptions.remove(&(number, query));
        }
        inner.count();
    }

    pub(crate) fn subscribe(&self, number: u64, query: QueryId, filters: Arc<[Filter]>) {
        let mut inner = self.lock();
        inner.subscriptions.insert((number, query), filters);
        inner.count();
    }

    pub(crate) fn unsubscribe(&self, number: u64, query: QueryId) {
        let mut inner = self.lock();
        inner.subscriptions.remove(&(number, query));
        inner.count();
    }

    /// The ids that were not delivered recently.
    pub(crate) fn undelivered(&self, ids: &[EventId]) -> HashSet<EventId> {
        let inner = self.lock();
        ids.iter().copied().filter(|id| !inner.delivered.contains(id)).collect()
    }

    pub(crate) fn publish(&self, events: &[Arc<Event>]) {
        let mut inner = self.lock();
        for event in events {
            if inner.delivered.insert(event.id) {
                inner.pass_on(event);
            }
        }
    }
}

impl Inner {
    fn pass_on(&mut self, event: &Event) {
        let listening = self.subscriptions.matching(event);
        if listening.is_empty() {
            return;
        }
        let wire = Wire::from(event);
        let mut held: HashMap<Option<Network>, Option<Arc<Held>>> = HashMap::new();
        for (number, query) in listening {
            let Some(Reader { to, ip }) = self.readers.get(&number) else { continue };
            let of_network = held.entry(ip.map(Network::of));
            let held = of_network.or_insert_with(|| self.memory.take(*ip, wire.json.len()).map(Arc::new)).clone();
            // A reader with a full queue is disconnected. So is a reader with unread events whose network exceeds its
            // share of unread bytes. Dropping the sender ends the channel.
            let has_read = to.capacity() == to.max_capacity();
            let passed = (held.is_some() || has_read) && to.try_send(Live { query, wire: wire.clone(), held }).is_ok();
            if !passed {
                self.readers.remove(&number);
                metrics::counter!("abide_relay_cut_total").increment(1);
            }
        }
    }

    fn count(&self) {
        metrics::gauge!("abide_relay_subscriptions").set(self.subscriptions.len() as f64);
    }
}

/// A bounded set of ids; the oldest is dropped first.
struct Recent {
    most: usize,
    ids: HashSet<EventId>,
    order: VecDeque<EventId>,
}

impl Recent {
    fn new(most: usize) -> Self {
        Self { most: most.max(1), ids: HashSet::new(), order: VecDeque::new() }
    }

    fn contains(&self, id: &EventId) -> bool {
        self.ids.contains(id)
    }

    /// Adds an id; `false` if it is present already.
    fn insert(&mut self, id: EventId) -> bool {
        if !self.ids.insert(id) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_id_is_forgotten_first() {
        let id = |n| EventId::from_byte_array([n; 32]);
        let mut recent = Recent::new(2);
        assert!(recent.insert(id(1)) && recent.insert(id(2)) && !recent.insert(id(1)));
        assert!(recent.insert(id(3)));
        assert!(!recent.contains(&id(1)) && recent.contains(&id(2)) && recent.contains(&id(3)));
        assert_eq!((recent.ids.len(), recent.order.len()), (2, 2));
    }
}
