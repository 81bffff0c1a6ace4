//! Slots for git processes: a total, and a limit per address, account and signing key.
//!
//! The client's own limit is checked first. A client over its limit waits outside the shared queue, so frequent
//! requests cannot hold up other clients.

use crate::GitError;
use abide_core::UserId;
use abide_core::admission::{Full, Network, Slot, Slots, share_of_one};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The client that git works for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    network: Option<Network>,
    account: Option<UserId>,
    /// Public key of the nostr event that git works for.
    key: Option<[u8; 32]>,
    /// The longest that it waits for a slot of those that unpack and check.
    patience: Option<Duration>,
}

impl Client {
    /// The server itself, which has no per-client limit.
    pub const SERVER: Self = Self { network: None, account: None, key: None, patience: None };

    /// A client at an address, with or without an account. All clients without an address share one.
    pub fn new(ip: Option<IpAddr>, account: Option<UserId>) -> Self {
        let ip = ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        Self { network: Some(Network::of(ip)), account, key: None, patience: None }
    }

    /// The signer of an event, with or without an account, and the source address of the event. Deferred work has no
    /// address.
    pub fn signer(ip: Option<IpAddr>, account: Option<UserId>, key: [u8; 32]) -> Self {
        Self { network: ip.map(Network::of), account, key: Some(key), patience: None }
    }

    /// The same client, which waits no longer than this for a slot of those that unpack and check, and then hears that git
    /// is busy. Work that others queue behind does not wait for as long as a push that has arrived.
    pub fn waiting_at_most(self, patience: Duration) -> Self {
        Self { patience: Some(patience), ..self }
    }

    /// The network that it comes from.
    pub fn network(&self) -> Option<Network> {
        self.network
    }

    /// How long it waits for a slot, where others wait for `usual`.
    pub(crate) fn patience(&self, usual: Duration) -> Duration {
        self.patience.map_or(usual, |patience| patience.min(usual))
    }

    /// Whether the client has no account.
    pub fn is_stranger(&self) -> bool {
        self.account.is_none() && (self.network.is_some() || self.key.is_some())
    }

    /// Takes one slot each for the address, the account and the signing key, where present.
    fn take(&self, from: &Slots<Key>) -> Result<Vec<Slot<Key>>, Full> {
        let people = self.account.map(Key::Account).into_iter().chain(self.key.map(Key::Signer));
        from.take_all(self.network.map(Key::Address).into_iter().chain(people).collect())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Address(Network),
    Account(UserId),
    Signer([u8; 32]),
}

/// Slots for one kind of work.
#[derive(Debug)]
pub struct Pool {
    what: &'static str,
    all: Arc<Semaphore>,
    own: Slots<Key>,
    freed: Arc<Notify>,
}

/// A slot, released on drop.
#[derive(Debug)]
#[must_use = "dropping a slot gives it back"]
pub struct PoolSlot {
    // Dropped first: the shared slot is released a moment after waiters of this client wake up.
    _own: Own,
    _all: OwnedSemaphorePermit,
}

/// The slots of one client. Dropping them wakes waiting tasks, also when the client gave up while it waited for a
/// shared
/// slot.
#[derive(Debug)]
struct Own {
    slots: Vec<Slot<Key>>,
    freed: Arc<Notify>,
}

impl Pool {
    /// A pool of `all` slots, at most `each` per address or account, so that a quarter stays free for others. `what`
    /// names the
    /// work in the "busy" error.
    pub fn new(what: &'static str, all: usize, each: usize) -> Self {
        let all = all.clamp(1, Semaphore::MAX_PERMITS);
        let own = Slots::new(usize::MAX, share_of_one(all, each));
        Self { what, all: Arc::new(Semaphore::new(all)), own, freed: Arc::default() }
    }

    /// Waits at most this long for a slot.
    pub async fn enter(&self, client: Client, wait: Duration) -> Result<PoolSlot, GitError> {
        let entering = async {
            let own = self.own(client).await;
            let all = self.all.clone().acquire_owned().await.expect("these semaphores are never closed");
            PoolSlot { _own: own, _all: all }
        };
        tokio::time::timeout(wait, entering).await.map_err(|_| GitError::Busy { what: self.what })
    }

    async fn own(&self, client: Client) -> Own {
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            // Register before checking, so that a slot released in between is not missed.
            freed.as_mut().enable();
            if let Ok(slots) = client.take(&self.own) {
                return Own { slots, freed: self.freed.clone() };
            }
            freed.await;
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.slots.clear();
        self.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(1);

    fn at(last: u8) -> Client {
        Client::new(Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))), None)
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_cannot_take_all_slots_nor_the_queue() {
        let pool = Arc::new(Pool::new("tests", 3, 2));
        let _held = [pool.enter(at(1), SOON).await.unwrap(), pool.enter(at(1), SOON).await.unwrap()];
        let waiting: Vec<_> = (0..100)
            .map(|_| {
                let pool = pool.clone();
                tokio::spawn(async move { pool.enter(at(1), Duration::from_secs(60)).await })
            })
            .collect();
        tokio::task::yield_now().await;
        let other = pool.enter(at(2), SOON).await.unwrap();
        drop(other);
        drop(pool.enter(at(2), SOON).await.unwrap());
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_is_counted_wherever_it_comes_from() {
        let pool = Pool::new("tests", 10, 1);
        let account = Some(UserId::new(7));
        let first = pool.enter(Client::new(Some([192, 0, 2, 1].into()), account), SOON).await.unwrap();
        let second = pool.enter(Client::new(Some([192, 0, 2, 2].into()), account), SOON).await;
        assert!(matches!(second, Err(GitError::Busy { what: "tests" })));
        drop(first);
        drop(pool.enter(Client::new(Some([192, 0, 2, 2].into()), account), SOON).await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_gets_the_slot_that_is_given_back() {
        let pool = Arc::new(Pool::new("tests", 10, 1));
        let first = pool.enter(at(1), SOON).await.unwrap();
        let waiting = tokio::spawn({
            let pool = pool.clone();
            async move { pool.enter(at(1), SOON).await.map(drop) }
        });
        tokio::task::yield_now().await;
        drop(first);
        waiting.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_gives_up_hands_its_own_slot_to_whoever_waits() {
        let pool = Arc::new(Pool::new("tests", 1, 1));
        let _held = pool.enter(at(1), SOON).await.unwrap();
        let waits = |wait| {
            let pool = pool.clone();
            tokio::spawn(async move { pool.enter(at(2), wait).await.map(drop) })
        };
        // The first task holds the client's own slot and waits for a shared one; the others wait for the client's own
        // slot.
        let impatient = waits(SOON);
        tokio::task::yield_now().await;
        let gone = waits(Duration::from_secs(60));
        let patient = waits(Duration::from_secs(60));
        tokio::task::yield_now().await;
        assert_eq!(pool.own.used(), 2);
        assert!(impatient.await.unwrap().is_err(), "its time is over");
        settle().await;
        assert_eq!(pool.own.used(), 2, "the next one has the slot, and no slot of all was given back meanwhile");
        gone.abort();
        settle().await;
        assert_eq!(pool.own.used(), 2, "nor when a client goes away");
        patient.abort();
        settle().await;
        assert_eq!(pool.own.used(), 1);
    }

    /// Lets all tasks run until they are blocked.
    async fn settle() {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_never_has_all_slots_whatever_the_settings_say() {
        let pool = Pool::new("tests", 2, 2);
        let _one = pool.enter(at(1), SOON).await.unwrap();
        assert!(pool.enter(at(1), SOON).await.is_err());
        drop(pool.enter(at(2), SOON).await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn the_server_itself_is_limited_only_in_all() {
        let pool = Pool::new("tests", 2, 1);
        let _both = [pool.enter(Client::SERVER, SOON).await.unwrap(), pool.enter(Client::SERVER, SOON).await.unwrap()];
        assert!(pool.enter(Client::SERVER, SOON).await.is_err());
        assert!(!Client::SERVER.is_stranger() && at(1).is_stranger());
    }

    #[tokio::test(start_paused = true)]
    async fn a_signer_is_counted_by_key_and_is_a_stranger_without_an_account() {
        let pool = Pool::new("tests", 10, 1);
        let later = Client::signer(None, None, [1; 32]);
        assert!(later.is_stranger() && !Client::signer(None, Some(UserId::new(7)), [1; 32]).is_stranger());
        let first = pool.enter(later, SOON).await.unwrap();
        let again = Client::signer(Some([192, 0, 2, 1].into()), None, [1; 32]);
        assert!(matches!(pool.enter(again, SOON).await, Err(GitError::Busy { what: "tests" })));
        drop(pool.enter(Client::signer(None, None, [2; 32]), SOON).await.unwrap());
        drop(first);
        drop(pool.enter(again, SOON).await.unwrap());
    }
}
