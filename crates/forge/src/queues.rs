//! Slots for each client network, with a queue for each: a network that uses all of its slots delays only its own
//! requests.

use abide_core::admission::Network;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

type Queues = Arc<Mutex<HashMap<Option<Network>, Weak<Semaphore>>>>;

/// A number of slots for each network. Clients without an address share one queue.
#[derive(Debug)]
pub struct NetworkQueues {
    slots: usize,
    queues: Queues,
}

/// One or more slots, until they are dropped.
#[derive(Debug)]
#[must_use = "dropping a slot gives it back"]
pub struct NetworkSlot {
    permit: Option<OwnedSemaphorePermit>,
    network: Option<Network>,
    queues: Queues,
}

impl Drop for NetworkSlot {
    fn drop(&mut self) {
        self.permit = None;
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        // The queue of a network without slots in use is forgotten.
        if queues.get(&self.network).is_some_and(|queue| queue.strong_count() == 0) {
            queues.remove(&self.network);
        }
    }
}

impl NetworkQueues {
    /// `slots` for each network.
    pub fn new(slots: usize) -> Self {
        Self { slots, queues: Queues::default() }
    }

    /// Slots for each network.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Waits for a slot of a network.
    pub async fn enter(&self, network: Option<Network>) -> NetworkSlot {
        self.enter_many(network, 1).await
    }

    /// Waits for several slots of a network, which are given back together.
    pub async fn enter_many(&self, network: Option<Network>, slots: u32) -> NetworkSlot {
        // Created before the wait, so that a cancelled wait also removes the queue of an idle network.
        let mut slot = NetworkSlot { permit: None, network, queues: self.queues.clone() };
        let queue = self.queue(network);
        slot.permit = Some(queue.acquire_many_owned(slots).await.expect("these semaphores are never closed"));
        slot
    }

    fn queue(&self, network: Option<Network>) -> Arc<Semaphore> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queues.get(&network).and_then(Weak::upgrade) {
            return queue;
        }
        let queue = Arc::new(Semaphore::new(self.slots));
        queues.insert(network, Arc::downgrade(&queue));
        queue
    }

    /// Slots of a network that are free.
    pub fn free(&self, network: Option<Network>) -> usize {
        self.queue(network).available_permits()
    }

    /// Networks with slots in use.
    pub fn networks(&self) -> usize {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(last: u8) -> Option<Network> {
        Some(Network::of([192, 0, 2, last].into()))
    }

    #[tokio::test]
    async fn a_network_waits_for_itself_and_not_for_others() {
        let queues = Arc::new(NetworkQueues::new(2));
        let (first, _second) = (queues.enter(network(1)).await, queues.enter(network(1)).await);
        let third = tokio::spawn({
            let queues = queues.clone();
            async move { drop(queues.enter(network(1)).await) }
        });
        tokio::task::yield_now().await;
        assert!(!third.is_finished());
        drop(queues.enter(network(2)).await);
        drop(first);
        third.await.unwrap();
    }

    #[tokio::test]
    async fn a_network_that_gave_up_waiting_is_forgotten_with_its_last_slot() {
        let queues = Arc::new(NetworkQueues::new(1));
        let held = queues.enter(network(1)).await;
        let waiting = tokio::spawn({
            let queues = queues.clone();
            async move { drop(queues.enter(network(1)).await) }
        });
        tokio::task::yield_now().await;
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        drop(held);
        assert_eq!(queues.networks(), 0);
    }

    #[tokio::test]
    async fn a_network_that_gives_up_after_the_last_slot_is_forgotten_too() {
        let queues = NetworkQueues::new(2);
        let held = queues.enter(network(1)).await;
        let mut waiting = Box::pin(queues.enter_many(network(1), 2));
        assert!(futures_util::poll!(waiting.as_mut()).is_pending());
        drop(held);
        assert_eq!(queues.networks(), 1, "someone waits");
        drop(waiting);
        assert_eq!(queues.networks(), 0);
    }
}
