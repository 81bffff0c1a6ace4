//! What acts on the log of events.
//!
//! Each [`Consumer`] reads the log in its order and writes what an event brings about in the transaction that moves its
//! cursor past the event, so that a crash loses nothing and repeats nothing. One node at a time does so, under a lease.
//! An event that fails again and again is set aside where the operator sees it ([`manage`]), and the log goes on.
//!
//! To add one: implement the trait, name it in [`all`]. It begins at the end of the log when a server first starts with it.

pub mod manage;
mod turn;

use crate::notify::Notifications;
use crate::webhooks::Webhooks;
use crate::{Fault, Forge, sequencer};
use abide_store::events::Numbered;
use abide_store::{Tx, consumers};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use turn::Reader;

/// Something that acts on events.
pub trait Consumer: Send + Sync + 'static {
    /// What it is called in the database. Never changed: its place in the log goes by it.
    fn name(&self) -> &'static str;

    /// Whether events of a kind concern it; others are passed over.
    fn wants(&self, kind: &str) -> bool;

    /// Writes what one event brings about, in the transaction that moves the cursor past it. May be called again after a
    /// failure, and must change nothing but `tx`.
    fn apply<'a>(&'a self, tx: &'a mut Tx, forge: &'a Forge, event: &'a Numbered) -> BoxFuture<'a, Result<(), Fault>>;
}

/// A consumer that several tasks share.
pub type Shared = Arc<dyn Consumer>;

/// Every consumer of this version.
pub fn all() -> Vec<Shared> {
    vec![Arc::new(Notifications), Arc::new(Webhooks)]
}

/// Makes consumers known to the database. What happens from now on reaches them.
pub async fn register(forge: &Forge, consumers: &[Shared]) -> Result<(), Fault> {
    let names: Vec<_> = consumers.iter().map(|consumer| consumer.name()).collect();
    forge
        .store()
        .write(names, |tx, names| {
            Box::pin(async move {
                for name in names {
                    consumers::register(tx, name).await?;
                }
                Ok(())
            })
        })
        .await
}

/// Runs every consumer until told to stop.
pub async fn run(forge: Forge, stop: CancellationToken) {
    let mut tasks = JoinSet::new();
    for consumer in all() {
        tasks.spawn(follow(forge.clone(), consumer, stop.clone()));
    }
    while tasks.join_next().await.is_some() {}
}

async fn follow(forge: Forge, consumer: Shared, stop: CancellationToken) {
    let mut numbered = forge.numbered().subscribe();
    let mut reader = Reader::new(consumer);
    while !stop.is_cancelled() {
        numbered.mark_unchanged();
        match reader.turn(&forge).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, consumer = reader.name(), "a consumer failed; retrying");
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            _ = numbered.changed() => {}
            () = tokio::time::sleep(forge.settings().poll_interval) => {}
        }
    }
    reader.rest(&forge).await;
}

/// Gives events their place and lets every consumer take in what is there now. For commands and tests without a server.
pub async fn catch_up(forge: &Forge) -> Result<(), Fault> {
    catch_up_with(forge, &all()).await
}

/// The same for some consumers.
pub async fn catch_up_with(forge: &Forge, consumers: &[Shared]) -> Result<(), Fault> {
    sequencer::catch_up(forge).await?;
    for consumer in consumers {
        let mut reader = Reader::new(consumer.clone());
        while reader.turn(forge).await? {}
        reader.rest(forge).await;
    }
    Ok(())
}
