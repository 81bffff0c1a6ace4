//! Memory that clients can keep occupied: unread pages of stored events, unread new events, our side of
//! reconciliations, filters. Bytes are taken from one budget, with a share for each network, before the memory is
//! allocated.

use abide_core::admission::{ByteBudget, Bytes, Network};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Bytes of all connections: a sixth of the memory that server and git may use under attack.
const ALL: u64 = 96 << 20;

/// Bytes per network: a dozen unread pages, or six reconciliations of the largest size.
const OF_ONE: u64 = 24 << 20;

/// Wait of a response until others of its network are read.
const WAIT: Duration = Duration::from_secs(10);

/// The budget. Clones share it.
#[derive(Clone)]
pub(crate) struct Memory {
    budget: ByteBudget<Option<Network>>,
    freed: Arc<Notify>,
}

/// Bytes of the budget, until they are dropped.
pub(crate) struct Held {
    bytes: Option<Bytes<Option<Network>>>,
    memory: Memory,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self::of(ALL, OF_ONE)
    }

    fn of(all: u64, one: u64) -> Self {
        Self { budget: ByteBudget::new(all, one), freed: Arc::default() }
    }

    /// Takes bytes for a connection from this address, if the budget and the network's share have that many.
    pub(crate) fn take(&self, ip: Option<IpAddr>, bytes: usize) -> Option<Held> {
        let taken = self.budget.take(ip.map(Network::of), bytes as u64)?;
        self.report_used();
        Some(Held { bytes: Some(taken), memory: self.clone() })
    }

    fn report_used(&self) {
        metrics::gauge!("abide_relay_held_bytes").set(self.budget.used() as f64);
    }

    /// Wakes waiting callers after bytes were released.
    fn is_freed(&self) {
        self.report_used();
        self.freed.notify_waiters();
    }

    /// As [`Memory::take`], but waits up to [`WAIT`] for released bytes.
    pub(crate) async fn wait(&self, ip: Option<IpAddr>, bytes: usize) -> Option<Held> {
        let taking = async {
            loop {
                let mut freed = std::pin::pin!(self.freed.notified());
                // Registered before the check, so that bytes released in between are not missed.
                freed.as_mut().enable();
                if let Some(held) = self.take(ip, bytes) {
                    return held;
                }
                freed.await;
            }
        };
        tokio::time::timeout(WAIT, taking).await.ok()
    }
}

impl Held {
    /// Releases all but `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        if let Some(held) = &mut self.bytes {
            held.shrink_to(bytes as u64);
        }
        self.memory.is_freed();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.bytes = None;
        self.memory.is_freed();
    }
}

/// The text of a refusal, with what to do about it.
pub(crate) fn full() -> String {
    format!(
        "rate-limited: unread responses, reconciliations and filters may take {} MiB per IP address and {} MiB in all; \
         read the responses or close subscriptions, then ask again",
        OF_ONE >> 20,
        ALL >> 20
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> Option<IpAddr> {
        Some([192, 0, 2, last].into())
    }

    #[test]
    fn one_network_has_a_share_and_all_together_have_the_budget() {
        let memory = Memory::of(100, 40);
        let (first, second) = (memory.take(ip(1), 20).unwrap(), memory.take(ip(1), 20).unwrap());
        assert!(memory.take(ip(1), 1).is_none());
        let _others: Vec<_> = [2, 3].map(|last| memory.take(ip(last), 30).unwrap()).into();
        assert!(memory.take(ip(4), 10).is_none(), "the budget of all");
        drop(first);
        assert!(memory.take(ip(4), 10).is_some());
        drop(second);
    }

    #[tokio::test]
    async fn an_answer_waits_until_others_are_read() {
        let memory = Memory::of(100, 40);
        let mut side = memory.take(ip(1), 40).unwrap();
        let waiting = tokio::spawn({
            let memory = memory.clone();
            async move { memory.wait(ip(1), 30).await.is_some() }
        });
        tokio::task::yield_now().await;
        side.shrink_to(10);
        assert!(waiting.await.unwrap());
    }
}
