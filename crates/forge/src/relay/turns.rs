//! Concurrent database queries of the relay: few in total, and fewer per network, so that expensive queries of one
//! client do not block others.

use crate::queues::{NetworkQueues, NetworkSlot};
use abide_core::admission::Network;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// One network may run this fraction (1/n) of all queries.
const SHARE: usize = 3;

pub(super) struct Turns {
    all: Arc<Semaphore>,
    networks: NetworkQueues,
}

/// The right to run one query, until it is dropped.
#[must_use = "dropping a turn gives it back"]
pub(super) struct Turn {
    _all: OwnedSemaphorePermit,
    _network: NetworkSlot,
}

impl Turns {
    pub(super) fn new(all: usize) -> Self {
        let all = all.max(1);
        Self { all: Arc::new(Semaphore::new(all)), networks: NetworkQueues::new(all.div_ceil(SHARE)) }
    }

    /// Waits behind other queries of the same network first, then behind those of everyone.
    pub(super) async fn take(&self, ip: Option<IpAddr>) -> Turn {
        let network = self.networks.enter(ip.map(Network::of)).await;
        let all = self.all.clone().acquire_owned().await.expect("this semaphore is never closed");
        Turn { _all: all, _network: network }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_network_has_a_third_of_the_turns_and_others_do_not_wait_for_it() {
        let turns = Arc::new(Turns::new(6));
        let (one, other) = (Some([192, 0, 2, 1].into()), Some([192, 0, 2, 2].into()));
        let held = [turns.take(one).await, turns.take(one).await];
        let third = tokio::spawn({
            let turns = turns.clone();
            async move { drop(turns.take(one).await) }
        });
        tokio::task::yield_now().await;
        assert!(!third.is_finished());
        drop([turns.take(other).await, turns.take(other).await]);
        drop(held);
        third.await.unwrap();
    }
}
