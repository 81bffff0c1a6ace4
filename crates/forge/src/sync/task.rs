//! One run for one identifier: its missing objects are looked for at one URL after another.

use super::HOLD;
use super::attempt::{self, Attempt};
use super::throttle;
use crate::grasp::needs::{self, Need};
use crate::{Fault, Forge, hold};
use abide_core::sync::attempts::Attempts;
use abide_core::sync::sources::{Listed, in_turn};
use abide_core::{Timestamp, failpoint};
use abide_store::StoreError;
use abide_store::sync::queue::{self, Entry};
use abide_store::sync::{domains, sources};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Time after which a URL that broke the protocol is tried again.
const URL_REST: Duration = Duration::from_secs(12 * 3_600);

/// Pause of an identifier that found no slot.
const CROWDED: Duration = Duration::from_secs(5);

/// URLs of an identifier whose outcome is kept: those of its last run.
const KEPT: i64 = abide_core::sync::sources::PER_RUN as i64;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// Nothing waits.
    Complete,
    Incomplete,
    /// All slots for repositories of strangers are taken.
    Postponed,
    /// The server stops.
    Interrupted,
}

/// Runs a claimed identifier and ends its claim.
pub(super) async fn run(forge: Forge, entry: Entry, stop: CancellationToken) {
    let work = tokio::time::timeout(forge.settings().sync.run, fetch(&forge, &entry));
    let ended = tokio::select! {
        ended = work => match ended {
            Ok(Ok(ended)) => ended,
            Ok(Err(fault)) => {
                tracing::warn!(error = %fault, identifier = entry.identifier, "cannot fetch git data; trying again later");
                Ended::Incomplete
            }
            Err(_) => Ended::Incomplete,
        },
        () = keep(&forge, &entry) => {
            tracing::warn!(identifier = entry.identifier, "an identifier was taken over by another node");
            return;
        }
        () = stop.cancelled() => Ended::Interrupted,
    };
    if let Err(error) = end(&forge, &entry, ended).await {
        tracing::warn!(%error, identifier = entry.identifier, "cannot store the end of a fetch; its hold expires");
    }
}

/// Renews the hold; returns only if it was lost.
async fn keep(forge: &Forge, entry: &Entry) {
    hold::keep(HOLD, || forge.store().write(entry.clone(), |tx, entry| Box::pin(queue::renew(tx, entry, HOLD)))).await;
}

async fn end(forge: &Forge, entry: &Entry, ended: Ended) -> Result<(), StoreError> {
    let begun = entry.ran_at.unwrap_or(entry.created_at);
    forge
        .store()
        .write((entry.clone(), ended, begun), |tx, (entry, ended, begun)| {
            Box::pin(async move {
                let now = tx.now();
                domains::drop_turns(tx, entry.id, *begun).await?;
                let next = Attempts { next: now, made: entry.attempts }.failed(now);
                match ended {
                    Ended::Complete => queue::done(tx, entry, now).await,
                    Ended::Incomplete => queue::again(tx, entry, next.next, next.made).await.map(drop),
                    Ended::Postponed => queue::again(tx, entry, now.plus(CROWDED), entry.attempts).await.map(drop),
                    Ended::Interrupted => queue::again(tx, entry, now, entry.attempts).await.map(drop),
                }
            })
        })
        .await
}

async fn fetch(forge: &Forge, entry: &Entry) -> Result<Ended, Fault> {
    let mut needs = needs::of(forge, &entry.identifier).await?;
    // Servers of strangers can be as slow as the limits allow, so one place is kept for the repositories of accounts.
    let is_strange = !needs.is_empty() && needs.iter().all(|need| !need.account);
    let slot = if is_strange { throttle::Running::of(forge).stranger() } else { None };
    if is_strange && slot.is_none() {
        return Ok(Ended::Postponed);
    }
    let known = sources::of(&mut *forge.store().read().await?, entry.id, KEPT).await?;
    let mut attempt = Attempt::new(forge, entry, known);
    for url in in_turn(needs.iter().map(listed).collect()) {
        if needs.is_empty() {
            break;
        }
        if attempt.rests(&url, URL_REST) {
            continue;
        }
        let wanted: Vec<Need> = needs.iter().filter(|need| need.urls.contains(&url)).cloned().collect();
        let Some(payer) = wanted.first().map(|need| need.payer) else { continue };
        let named_at = wanted.iter().map(|need| need.named_at).max().unwrap_or(Timestamp::from_micros(0));
        let turn = match throttle::take(forge, entry, &url, payer, named_at).await? {
            Ok(turn) => turn,
            Err(not) => {
                attempt.postponed(&url, &not).await?;
                continue;
            }
        };
        failpoint::hit(failpoint::SYNC_REQUESTED);
        let outcome = attempt.at(&url, &turn, wanted).await;
        throttle::end(forge, &turn, payer, outcome.as_ref().ok()).await?;
        if attempt::changed(&outcome?) {
            failpoint::hit(failpoint::SYNC_TAKEN);
            needs = needs::of(forge, &entry.identifier).await?;
        }
    }
    Ok(if needs.is_empty() { Ended::Complete } else { Ended::Incomplete })
}

fn listed(need: &Need) -> Listed {
    Listed { urls: need.urls.clone(), account: need.account }
}
