//! Removes expired purgatory entries, with their directories and objects.

use super::{aside, attached, left, life};
use crate::jobs::JobError;
use crate::{Fault, Forge};
use abide_git::incoming;
use abide_macros::boxed;
use abide_nostr::PublicKey;
use abide_nostr::nip19;
use abide_store::leases::{self, Lease};
use abide_store::nostr::purgatory::prs as pr_events;
use abide_store::nostr::purgatory::{self, Announcement};
use abide_store::nostr::{quotas, reservations};
use abide_store::repos::{purges, pushes};
use abide_store::{StoreError, Tx};
use std::time::Duration;

/// Entries of one kind that one query reads.
const PAGE: i64 = 200;

/// Minimum age of an area without an entry before it is removed.
const AREA_AGE: Duration = Duration::from_secs(600);

/// Numbers of removed entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    pub announcements: u64,
    pub states: u64,
    /// PR events without a commit, and commits without a PR event.
    pub pr_events: u64,
}

/// Removes all expired entries.
#[boxed]
pub async fn sweep(forge: &Forge) -> Result<Swept, Fault> {
    let mut swept = Swept { announcements: announcements(forge).await?, ..Swept::default() };
    swept.states = states(forge).await?;
    swept.pr_events = proposed(forge).await?;
    attached::sweep(forge).await?;
    areas(forge).await?;
    super::measure(forge).await?;
    Ok(swept)
}

async fn announcements(forge: &Forge) -> Result<u64, Fault> {
    let mut gone = 0;
    loop {
        let now = forge.clock().now();
        let page = purgatory::announcements_over(&mut *forge.store().read().await?, now, PAGE).await?;
        let mut moved = false;
        for entry in &page {
            if expire(forge, entry).await? {
                (gone, moved) = (gone + 1, true);
            }
        }
        if !moved || page.len() < PAGE as usize {
            return Ok(gone);
        }
    }
}

/// Expires one announcement; `false` if a push is running, or if it was promoted or extended in the meantime.
async fn expire(forge: &Forge, entry: &Announcement) -> Result<bool, Fault> {
    let remembered = forge.settings().grasp.expiry.remembered;
    let input = (entry.clone(), forge.node().holder().to_owned(), forge.settings().git.lease_ttl, remembered);
    let taken: Result<bool, StoreError> = forge
        .store()
        .write(input, |tx, (entry, holder, ttl, remembered)| Box::pin(take(tx, entry, holder, *ttl, *remembered)))
        .await;
    if !taken? {
        return Ok(false);
    }
    left("announcement", "expiry");
    if let Some(repo) = entry.repo_id {
        life::clear_directory(forge, repo).await?;
    }
    Ok(true)
}

async fn take(
    tx: &mut Tx,
    entry: &Announcement,
    holder: &str,
    ttl: Duration,
    remembered: Duration,
) -> Result<bool, StoreError> {
    let mut lease: Option<Lease> = None;
    if let Some(repo) = entry.repo_id {
        // A running push holds this lease; then the announcement does not expire.
        match leases::take(tx, &pushes::lease_name(repo), holder, ttl).await? {
            Some(taken) => lease = Some(taken),
            None => return Ok(false),
        }
    }
    let gone = purgatory::take_announcement_over(tx, entry).await?;
    if gone {
        let until = tx.now().plus(remembered);
        purgatory::remember(tx, &entry.event_id, until).await?;
        attached::drop_with(tx, &entry.pubkey, &entry.identifier, "expiry").await?;
        if let Some(repo) = entry.repo_id {
            let owner = nip19::npub(&PublicKey::from_byte_array(entry.pubkey));
            purges::insert(tx, repo, &format!("{owner}/{}", entry.identifier)).await?;
        }
    }
    if let Some(lease) = lease {
        leases::release(tx, &lease).await?;
    }
    Ok(gone)
}

async fn states(forge: &Forge) -> Result<u64, Fault> {
    let remembered = forge.settings().grasp.expiry.remembered;
    let gone: Result<u64, StoreError> = forge
        .store()
        .write(remembered, |tx, remembered| {
            Box::pin(async move {
                let until = tx.now().plus(*remembered);
                let gone = purgatory::take_states_over(tx).await?;
                for id in &gone {
                    purgatory::remember(tx, id, until).await?;
                }
                purgatory::forget(tx).await?;
                quotas::forget(tx).await?;
                reservations::forget(tx).await?;
                Ok(gone.len() as u64)
            })
        })
        .await;
    let gone = gone?;
    (0..gone).for_each(|_| left("state", "expiry"));
    Ok(gone)
}

async fn proposed(forge: &Forge) -> Result<u64, Fault> {
    let mut gone = 0;
    loop {
        let now = forge.clock().now();
        let page = pr_events::over(&mut *forge.store().read().await?, now, PAGE).await?;
        let full = page.len() == PAGE as usize;
        let moved = expire_pr_events(forge, page).await?;
        gone += moved;
        if moved == 0 || !full {
            return Ok(gone);
        }
    }
}

async fn expire_pr_events(forge: &Forge, page: Vec<pr_events::Half>) -> Result<u64, Fault> {
    let mut gone = 0;
    for half in page {
        let remembered = forge.settings().grasp.expiry.remembered;
        let taken: Result<Option<pr_events::Half>, StoreError> = forge
            .store()
            .write((half.event_id, remembered), |tx, (id, remembered)| {
                Box::pin(async move {
                    let now = tx.now();
                    match pr_events::lock(tx, id).await? {
                        Some(half) if half.expires_at <= now => {
                            if half.json.is_some() {
                                purgatory::remember(tx, id, now.plus(*remembered)).await?;
                                attached::drop_with_pr_event(tx, id, "expiry").await?;
                            }
                            pr_events::take(tx, id).await
                        }
                        _ => Ok(None),
                    }
                })
            })
            .await;
        let Some(half) = taken? else { continue };
        left(if half.json.is_some() { "proposal" } else { "placeholder" }, "expiry");
        gone += 1;
        if let Some(key) = half.incoming {
            incoming::remove_incoming(forge.layout(), &key).await?;
        }
    }
    Ok(gone)
}

/// Removes areas whose entry was never written, or was removed before its area.
async fn areas(forge: &Forge) -> Result<(), Fault> {
    for key in incoming::list_incoming(forge.layout())?.iter().filter(|key| aside::is_aside(key)) {
        let path = forge.layout().incoming(key);
        let age = path.metadata().and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok());
        let old = age.is_some_and(|age| age > AREA_AGE);
        if old && !pr_events::holds_area(&mut *forge.store().read().await?, key).await? {
            incoming::remove_incoming(forge.layout(), key).await?;
        }
    }
    Ok(())
}

/// The job.
pub(crate) async fn work(forge: &Forge) -> Result<(), JobError> {
    let swept = sweep(forge).await?;
    if swept != Swept::default() {
        tracing::info!(?swept, "dropped expired purgatory entries");
    }
    Ok(())
}
