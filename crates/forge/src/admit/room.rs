//! Room of the queue: bytes of events that are being admitted, for one network and in all.
//!
//! An event without room waits for a while. The events of one network wait for each other, outside the queue of all, so a
//! network that sends more than its share keeps nobody else waiting.

use crate::queues::{NetworkQueues, NetworkSlot};
use abide_core::admission::{Network, share_of_one};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Unit of room, and the overhead of an event beside its text.
const UNIT: usize = 1024;

/// Maximum wait of an event for room. Its connection is not read meanwhile, so at most one event of a connection waits.
const PARKED: Duration = Duration::from_secs(5);

pub(super) struct Room {
    all: Arc<Semaphore>,
    units: usize,
    of_one: usize,
    networks: NetworkQueues,
}

/// Room of one event, until it is dropped.
pub(super) struct Held {
    _all: OwnedSemaphorePermit,
    _own: NetworkSlot,
}

impl Room {
    /// `bytes` in total, a quarter of them for one network.
    pub(super) fn new(bytes: usize) -> Self {
        let units = (bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS);
        let of_one = share_of_one(units, units / 4);
        Self { all: Arc::new(Semaphore::new(units)), units, of_one, networks: NetworkQueues::new(of_one) }
    }

    /// Waits for room for an event of `bytes` bytes. An event larger than the share of its network takes the whole
    /// share. `None`: timeout.
    pub(super) async fn take(&self, network: Option<Network>, bytes: usize) -> Option<Held> {
        self.take_within(network, bytes, PARKED).await
    }

    async fn take_within(&self, network: Option<Network>, bytes: usize, wait: Duration) -> Option<Held> {
        let units = u32::try_from((1 + bytes / UNIT).min(self.of_one)).unwrap_or(u32::MAX);
        let taking = async {
            let own = self.networks.enter_many(network, units).await;
            let all = self.all.clone().acquire_many_owned(units).await.ok()?;
            Some(Held { _all: all, _own: own })
        };
        tokio::time::timeout(wait, taking).await.ok().flatten()
    }

    /// Bytes in use.
    pub(super) fn used(&self) -> usize {
        self.units.saturating_sub(self.all.available_permits()) * UNIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(last: u8) -> Option<Network> {
        Some(Network::of([192, 0, 2, last].into()))
    }

    #[tokio::test]
    async fn a_network_that_fills_its_share_waits_for_itself_and_leaves_room_to_others() {
        let room = Room::new(16 * UNIT);
        let now = Duration::ZERO;
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(room.take_within(network(1), 0, now).await.expect("a share is a quarter"));
        }
        assert!(room.take_within(network(1), 0, now).await.is_none());
        assert_eq!(room.used(), 4 * UNIT);
        let large =
            room.take_within(network(2), 100 * UNIT, now).await.expect("one event may be larger than the share");
        assert!(room.take_within(network(2), 0, now).await.is_none());
        held.pop();
        assert!(room.take_within(network(1), 0, now).await.is_some(), "room is given back");
        drop((held, large));
        assert_eq!(room.used(), 0);
        drop(room.take_within(network(3), 0, now).await);
        assert_eq!(room.networks.networks(), 0, "networks without events are forgotten");
    }

    #[tokio::test]
    async fn all_networks_together_have_so_much() {
        let room = Room::new(8 * UNIT);
        let mut held = Vec::new();
        for last in 0..4 {
            held.extend(room.take_within(network(last), UNIT, Duration::ZERO).await);
        }
        assert_eq!(held.len(), 4);
        assert!(room.take_within(network(9), UNIT, Duration::ZERO).await.is_none());
        drop(held);
        assert!(room.take_within(network(9), UNIT, Duration::ZERO).await.is_some());
    }
}
