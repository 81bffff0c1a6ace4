//! Through the store, as every use case does.

use super::seed::Seed;
use super::{failed, per_second};
use crate::Failure;
use abide_core::RepoId;
use abide_core::audit::Action;
use abide_core::event::{Publicity, SubjectKind};
use abide_store::audit::Entry;
use abide_store::events::NewEvent;
use abide_store::{Store, StoreError, Tx, audit, events, repos};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rows of one unit of work.
struct Change {
    event: NewEvent,
    entry: Entry,
    repo: RepoId,
}

impl Change {
    fn new(seed: &Seed, worker: usize, turn: usize) -> Self {
        let repo = seed.repo(worker, turn);
        let body = seed.body(repo, turn);
        Self {
            repo: repo.0,
            entry: Entry {
                actor: Some(seed.user),
                action: Action::Push,
                repo: Some(repo.0),
                ip: Some("127.0.0.1".to_owned()),
                meta: body.to_json(),
            },
            event: NewEvent {
                actor: Some(seed.user),
                repo: Some(repo.0),
                subject_kind: SubjectKind::Repo,
                subject_id: repo.0.get(),
                publicity: Publicity::Public,
                body,
            },
        }
    }

    async fn write(&self, tx: &mut Tx) -> Result<(), StoreError> {
        repos::touch_pushed(tx, self.repo).await?;
        events::append(tx, &self.event).await?;
        audit::append(tx, &self.entry).await
    }
}

/// Units per second with `writers` concurrent callers.
pub(crate) async fn write(store: &Store, seed: &Arc<Seed>, writers: usize, time: Duration) -> Result<f64, Failure> {
    per_second(writers, time, |worker, end| {
        let (store, seed) = (store.clone(), seed.clone());
        async move {
            let mut turn = 0;
            while Instant::now() < end {
                let change = Change::new(&seed, worker, turn);
                let written: Result<(), StoreError> =
                    store.write(change, |tx, change| Box::pin(change.write(tx))).await;
                written.map_err(failed)?;
                turn += 1;
            }
            Ok(turn)
        }
    })
    .await
}

/// Repositories found by slug per second, with concurrent readers.
pub(crate) async fn read(store: &Store, seed: &Arc<Seed>, readers: usize, time: Duration) -> Result<f64, Failure> {
    per_second(readers, time, |worker, end| {
        let (store, seed) = (store.clone(), seed.clone());
        async move {
            let mut turn = 0;
            while Instant::now() < end {
                let (_, name) = seed.repo(worker, turn);
                let mut conn = store.read().await.map_err(failed)?;
                let found = repos::by_slug(&mut conn, &seed.owner, name, Some(seed.user)).await.map_err(failed)?;
                found.ok_or_else(|| failed("a repository is gone"))?;
                turn += 1;
            }
            Ok(turn)
        }
    })
    .await
}
