//! Consumers of the event log.
//!
//! Each [`Consumer`] reads the log in order. One transaction writes the effects of an event and moves the cursor past
//! it, so that a crash loses nothing and repeats nothing. One node at a time does so, under a lease. An event that
//! keeps failing is set aside for the operator ([`manage`]), and the log goes on.
//!
//! To add one: implement the trait, list it in `consumers.rs`. It starts at the end of the log when a server first runs it.

pub mod manage;
mod turn;

use crate::{Fault, Forge, sequencer};
use abide_core::event::{Body, Kind};
use abide_macros::boxed;
use abide_store::events::Numbered;
use abide_store::{Tx, consumers};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use turn::Reader;

/// A consumer of events.
pub trait Consumer: Send + Sync + 'static {
    /// Name in the database. Never changed: its cursor is stored under it.
    fn name(&self) -> &'static str;

    /// Whether events of a kind concern it; others are skipped.
    fn wants(&self, kind: Kind) -> bool;

    /// Writes the effects of one event, in the transaction that moves the cursor past it. May be called again after a
    /// failure, and must change nothing but `tx`.
    fn apply<'a>(&'a self, tx: &'a mut Tx, forge: &'a Forge, event: &'a Numbered) -> BoxFuture<'a, Result<(), Fault>>;
}

/// Reads an event. One that this version cannot read fails, so that it is set aside for the operator.
pub(crate) fn read(event: &Numbered) -> Result<Body, Fault> {
    event.body().map_err(|error| Fault::Internal(format!("event {} cannot be read: {error}", event.seq)))
}

/// A consumer shared by several tasks.
pub type Shared = Arc<dyn Consumer>;

/// Registers consumers in the database. They receive events from now on.
#[boxed]
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

/// Processes the log with one consumer until stopped.
pub(crate) async fn follow(forge: Forge, consumer: Shared, stop: CancellationToken) {
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
            () = tokio::time::sleep(forge.settings().jobs.poll) => {}
        }
    }
    reader.rest(&forge).await;
}

/// Numbers events and lets some consumers process the log. For commands and tests without a server.
#[boxed]
pub async fn catch_up_with(forge: &Forge, consumers: &[Shared]) -> Result<(), Fault> {
    sequencer::catch_up(forge).await?;
    for consumer in consumers {
        let mut reader = Reader::new(consumer.clone());
        while reader.turn(forge).await? {}
        reader.rest(forge).await;
    }
    Ok(())
}
