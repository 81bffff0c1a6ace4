//! Follows other relays: those that announcements name, and those that the operator names.
//!
//! * [`run`] claims due relays (`store::sync::relays`), one task for each in the cluster.
//! * `task.rs`: one connection, from its claim to its end. `conversation.rs`: what happens on it. `outcome.rs`: answers of the
//!   admission to its events. `interest.rs`: the events that are asked for, as filters.
//!
//! [`abide_nostr::client::ClientSession`] decides what is sent. Events enter the same admission as published ones. Rounds find
//! everything that a relay has; live subscriptions only bring it sooner.

mod conversation;
mod interest;
mod outcome;
mod task;

use crate::{Fault, Forge};
use abide_macros::boxed;
use abide_nostr::client::ClientSession;
use abide_store::StoreError;
use abide_store::sync::relays::{self, Relay};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Hold of a followed relay.
const HOLD: Duration = Duration::from_secs(30);

/// Interval of counting relays and of removing old refusals.
const TIDYING: Duration = Duration::from_secs(30);

/// Refused events that are remembered, and for how long.
const REMEMBERED: i64 = 100_000;
const REMEMBERED_FOR: Duration = Duration::from_secs(7 * 86_400);

/// Sessions that are kept between two connections.
const KEPT: usize = 256;

/// State that the tasks of this node share.
#[derive(Default)]
struct Shared {
    /// Sessions of relays without a connection: they know the relay's budget.
    sessions: Mutex<HashMap<String, ClientSession>>,
    lanes: AtomicU64,
}

impl Shared {
    fn take(&self, url: &str) -> Option<ClientSession> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(url)
    }

    fn keep(&self, url: &str, session: ClientSession) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() < KEPT {
            sessions.insert(url.to_owned(), session);
        }
    }

    /// A number that no connection to our own relay has.
    fn lane(&self) -> u64 {
        (1 << 63) | self.lanes.fetch_add(1, Ordering::Relaxed)
    }
}

/// Follows relays until stopped.
#[boxed]
pub async fn run(forge: Forge, stop: CancellationToken) {
    if !forge.settings().sync.follows() {
        return;
    }
    let shared = Arc::new(Shared::default());
    let mut tasks = JoinSet::new();
    let (mut tidied, mut named) = (None::<Instant>, false);
    while !stop.is_cancelled() {
        if !named {
            named = logged(name_bootstrap(&forge).await, "cannot store the relays of sync.relays; retrying").is_some();
        }
        if tidied.is_none_or(|at| at.elapsed() >= TIDYING) {
            logged(tidy(&forge, !tasks.is_empty()).await, "cannot count the followed relays; retrying");
            tidied = Some(Instant::now());
        }
        while tasks.len() < forge.settings().sync.relays_at_once {
            match logged(claim(&forge).await, "cannot read the relays to follow; retrying").flatten() {
                Some(relay) => {
                    tasks.spawn(task::run(forge.clone(), relay, shared.clone(), stop.clone()));
                }
                None => break,
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(forge.settings().sync.tick) => {}
            Some(ended) = tasks.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "following a relay ended early");
                }
            }
        }
    }
    while tasks.join_next().await.is_some() {}
}

fn logged<T>(done: Result<T, Fault>, message: &str) -> Option<T> {
    done.inspect_err(|fault| tracing::warn!(error = %fault, "{message}")).ok()
}

/// Stores the relays of the settings if they changed.
async fn name_bootstrap(forge: &Forge) -> Result<(), Fault> {
    let mut urls: Vec<String> = forge.settings().sync.relays.iter().map(ToString::to_string).collect();
    urls.sort_unstable();
    urls.dedup();
    if relays::bootstrap(&mut *forge.store().read().await?).await? == urls {
        return Ok(());
    }
    let named: Result<(), StoreError> =
        forge.store().write(urls, |tx, urls| Box::pin(relays::set_bootstrap(tx, urls))).await;
    Ok(named?)
}

/// Checks without the write lock first, so that an idle server writes nothing.
async fn claim(forge: &Forge) -> Result<Option<Relay>, Fault> {
    let now = forge.clock().now();
    if !relays::anything_to_do(&mut *forge.store().read().await?, now).await? {
        return Ok(None);
    }
    let input = (forge.node().holder().to_owned(), forge.settings().sync.max_relays);
    let claimed: Result<Option<Relay>, StoreError> =
        forge.store().write(input, |tx, (holder, at_most)| Box::pin(relays::claim(tx, holder, HOLD, *at_most))).await;
    Ok(claimed?)
}

/// Sets the metrics; removes old refusals while relays are followed.
async fn tidy(forge: &Forge, follows: bool) -> Result<(), Fault> {
    if follows {
        let removed: Result<u64, StoreError> = forge
            .store()
            .write((), |tx, ()| {
                Box::pin(async move {
                    let before = tx.now().minus(REMEMBERED_FOR);
                    relays::prune_refused(tx, before, REMEMBERED).await
                })
            })
            .await;
        removed?;
    }
    let counted = relays::counts(&mut *forge.store().read().await?).await?;
    for state in ["connected", "connecting", "resting", "failing", "idle"] {
        let count = counted.iter().find(|(name, _)| name == state).map_or(0, |(_, count)| *count);
        metrics::gauge!("abide_sync_relays", "state" => state).set(count as f64);
    }
    Ok(())
}
