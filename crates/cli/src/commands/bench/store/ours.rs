//! Through the store, as every use case does.

use super::failed;
use super::seed::Seed;
use crate::failure::Failure;
use abide_core::{RepoId, UserId};
use abide_store::audit::Entry;
use abide_store::events::Event;
use abide_store::{Store, StoreError, Tx, audit, events, repos};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// What one unit writes.
struct Change {
    event: Event,
    entry: Entry,
    repo: RepoId,
}

impl Change {
    fn new(seed: &Seed, user: UserId, worker: usize, turn: usize) -> Self {
        let repo = seed.repo(worker, turn);
        let payload = seed.payload(repo, turn);
        Self {
            repo: repo.0,
            entry: Entry {
                actor: Some(user),
                action: "push",
                repo: Some(repo.0),
                ip: Some("127.0.0.1".to_owned()),
                meta: payload.clone(),
            },
            event: Event {
                actor: Some(user),
                kind: "push",
                repo: Some(repo.0),
                source_kind: "repo",
                source_id: repo.0.get(),
                public: true,
                payload,
            },
        }
    }

    async fn write(&self, tx: &mut Tx) -> Result<(), StoreError> {
        repos::touch_pushed(tx, self.repo).await?;
        events::append(tx, &self.event).await?;
        audit::append(tx, &self.entry).await
    }
}

/// Units per second with so many callers at once.
pub(super) async fn write(store: &Store, seed: &Arc<Seed>, writers: usize, time: Duration) -> Result<f64, Failure> {
    let work = async |store: Store, seed: Arc<Seed>, worker: usize, turn: usize| {
        let change = Change::new(&seed, seed.user, worker, turn);
        store.write(change, |tx, change| Box::pin(change.write(tx))).await
    };
    per_second(writers, time, async |worker| {
        let (store, seed) = (store.clone(), seed.clone());
        let _ = (store, seed, worker);
    })
    .await
}
