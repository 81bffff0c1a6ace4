//! Events that belong to an announcement or a pull request in purgatory. They wait with it, are served when it is
//! served, and are dropped when it is dropped.

use super::quota::Allowance;
use super::{Halt, address, ensure_room, entry, left, pr_event, refusal};
use crate::relay::deleted::is_deleted;
use crate::relay::{Relay, Signers, readable, to_record};
use crate::{Fault, Forge, GraspSettings, threads};
use abide_nostr::event::to_json;
use abide_nostr::git::{PrEvent, References};
use abide_nostr::grasp::caps::{self, judge_attached};
use abide_nostr::grasp::event::{distance, own_steps, steps_beyond};
use abide_nostr::grasp::{Answer, Prefix};
use abide_nostr::{Event, EventId, PublicKey};
use abide_store::nostr::events::Kept;
use abide_store::nostr::purgatory::attached::{self, Attached, Home};
use abide_store::nostr::purgatory::{self, prs as pr_events};
use abide_store::nostr::relations::Link;
use abide_store::nostr::{self};
use abide_store::{Conn, StoreError, Tx};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Rows of one announcement that one pass handles. The caps keep the number of waiting events below this.
const PAGE: i64 = 500;

/// The waiting announcements and pull requests that an event belongs to: the event tags one of them, or tags an event
/// that waits with one.
pub(crate) async fn homes(conn: &mut Conn, references: &References) -> Result<Vec<Home>, StoreError> {
    let repos: Vec<_> = references.repos().map(|repo| (repo.author.to_bytes(), repo.identifier.clone())).collect();
    let ids: Vec<[u8; 32]> = references.ids.iter().map(|id| id.to_bytes()).collect();
    let mut found: BTreeSet<Home> = attached::waiting_repos(conn, &repos).await?.into_iter().collect();
    found.extend(attached::waiting_ids(conn, &ids).await?.into_iter().map(|(_, home)| home));
    Ok(found.into_iter().collect())
}

/// Stores an event in purgatory with the announcements and pull requests that it belongs to.
pub(super) async fn wait(
    forge: &Forge,
    event: &Event,
    from: Option<IpAddr>,
    allowance: &Allowance,
) -> Result<Answer, Fault> {
    let input = (event.clone(), from, forge.settings().grasp.clone(), allowance.clone());
    let written = forge
        .store()
        .write(input, |tx, (event, from, settings, allowance)| {
            Box::pin(async move {
                allowance.event(tx, to_json(event).len()).await?;
                let homes = homes(tx, &References::of(event)).await?;
                put(tx, settings, event, &homes, *from).await
            })
        })
        .await;
    match written {
        Ok(answer) => Ok(answer),
        Err(Halt::Refused(refusal)) => Ok(Answer::Refused(refusal)),
        Err(Halt::Store(error)) => Err(error.into()),
    }
}

/// As [`wait`], inside a unit that has already loaded the homes.
pub(crate) async fn put(
    tx: &mut Tx,
    settings: &GraspSettings,
    event: &Event,
    homes: &[Home],
    from: Option<IpAddr>,
) -> Result<Answer, Halt> {
    if homes.is_empty() {
        let reason = "the parent event has just expired; publish it again, then this event";
        return Err(refusal(Prefix::Restricted, reason).into());
    }
    let entry = entry(event, "", from, tx.now());
    ensure_room(tx, &settings.caps, &entry).await?;
    for home in homes {
        let counts = attached::counts(tx, &entry.pubkey, home).await?;
        let count = |n: i64| u64::try_from(n).unwrap_or(0);
        let counts = caps::Attached {
            key_bytes: count(counts.key_bytes),
            of_repo: count(counts.of_repo),
            repo_bytes: count(counts.repo_bytes),
        };
        judge_attached(&counts, entry.json.len() as u64)?;
    }
    let steps = steps(tx, event).await?;
    let far = nostr::relations::far(tx, &entry.pubkey).await? + attached::far(tx, &entry.pubkey).await?;
    distance(steps, far)?;
    let row = Attached { event_id: entry.event_id, pubkey: entry.pubkey, json: entry.json, steps };
    let is_new = attached::put(tx, &row, homes, address(from).as_deref()).await?;
    Ok(if is_new { Answer::Waiting } else { Answer::DuplicateWaiting })
}

/// How far a waiting event is from a repository: through the repositories that it tags, and the events that wait.
async fn steps(conn: &mut Conn, event: &Event) -> Result<i64, StoreError> {
    let (kind, references) = (event.kind.as_u16(), References::of(event));
    let repos: Vec<_> = references.repos().map(|repo| (repo.author.to_bytes(), repo.identifier.clone())).collect();
    let ids: Vec<[u8; 32]> = references.ids.iter().map(|id| id.to_bytes()).collect();
    let named = attached::waiting_repos(conn, &repos).await?.into_iter().map(|_| Link { steps: 0, is_repo: true });
    let links: Vec<Link> = named.chain(attached::links(conn, &ids).await?).collect();
    Ok(links.iter().map(|link| steps_beyond(kind, link.steps, link.is_repo)).min().unwrap_or(own_steps(kind)))
}

/// Notes the distance of an event that is served from now on, where its kind alone does not decide.
async fn note_steps(tx: &mut Tx, event: &Event, steps: i64) -> Result<(), StoreError> {
    if steps > own_steps(event.kind.as_u16()) {
        nostr::relations::note_steps(tx, event.id.as_bytes(), steps).await?;
    }
    Ok(())
}

/// Serves the events that waited with an announcement, in the transaction that promotes it. PR events with a commit
/// stay: [`readmit`] admits them once the repository exists. Returns the events that are served now.
pub(super) async fn promote(
    tx: &mut Tx,
    settings: &GraspSettings,
    owner: &[u8; 32],
    identifier: &str,
) -> Result<Vec<Event>, StoreError> {
    let mut served = Vec::new();
    let rows = attached::of_repo(tx, owner, identifier, PAGE).await?;
    let signers = Signers::load(tx, rows.iter().map(|row| PublicKey::from_byte_array(row.pubkey))).await?;
    for row in rows {
        let event = readable(&row.json).filter(|event| !signers.is_suspended(&event.pubkey));
        if event.as_ref().is_some_and(brings_commit) {
            continue;
        }
        attached::remove(tx, &row.event_id).await?;
        if let Some(event) = event
            && !is_deleted(tx, &event).await?
        {
            nostr::events::insert(tx, &to_record(&event)).await?;
            note_steps(tx, &event, row.steps).await?;
            left("attached", "promotion");
            served.push(event);
        }
    }
    threads::emit::served(tx, settings, &served).await?;
    Ok(served)
}

fn brings_commit(event: &Event) -> bool {
    PrEvent::parse(event).is_ok_and(|pr_event| pr_event.commit.is_some())
}

/// Removes the events that waited with an announcement, because the announcement ended without its git data.
pub(super) async fn drop_with(
    tx: &mut Tx,
    owner: &[u8; 32],
    identifier: &str,
    reason: &'static str,
) -> Result<(), StoreError> {
    let gone = attached::drop_with(tx, owner, identifier).await?;
    (0..gone).for_each(|_| left("attached", reason));
    Ok(())
}

/// As [`drop_with`], for a pull request that ended without its commit.
pub(super) async fn drop_with_pr_event(
    tx: &mut Tx,
    pr_event: &[u8; 32],
    reason: &'static str,
) -> Result<(), StoreError> {
    let gone = attached::drop_with_pr_event(tx, pr_event).await?;
    (0..gone).for_each(|_| left("attached", reason));
    Ok(())
}

/// Serves the events that waited with a pull request that is served now. If that fails, the sweep repeats it.
pub(super) async fn release(forge: &Forge, pr_event: &EventId) {
    if let Err(fault) = release_all(forge, pr_event.as_bytes()).await {
        tracing::warn!(error = %fault, "cannot serve events that waited with a pull request; the sweep retries");
    }
}

/// Serves the events that waited with a pull request; drops them if the pull request is neither served nor waiting.
async fn release_all(forge: &Forge, pr_event: &[u8; 32]) -> Result<(), Fault> {
    let mut conn = forge.store().read().await?;
    let rows = attached::of_pr_event(&mut conn, pr_event, PAGE).await?;
    if rows.is_empty() || pr_events::get(&mut conn, pr_event).await?.is_some_and(|half| half.json.is_some()) {
        return Ok(());
    }
    let is_served = nostr::events::by_id(&mut conn, pr_event).await?.is_some();
    let signers = Signers::load(&mut conn, rows.iter().map(|row| PublicKey::from_byte_array(row.pubkey))).await?;
    drop(conn);
    if !is_served {
        let dropped: Result<(), StoreError> =
            forge.store().write(*pr_event, |tx, pr_event| Box::pin(drop_with_pr_event(tx, pr_event, "expiry"))).await;
        return Ok(dropped?);
    }
    for row in rows {
        if let Some(event) = readable(&row.json).filter(|event| !signers.is_suspended(&event.pubkey)) {
            store(forge, &event, row.steps).await?;
        }
        forget(forge, &row.event_id).await?;
    }
    Ok(())
}

/// Admits the PR events that waited for a repository that is served now, for at most `time`: the push that promoted the
/// repository waits for this, and each PR event may wait for a git slot of its author. The sweep admits the others.
/// Does nothing while the repository waits.
///
/// Boxed, because aligning a repository calls this, and admitting a PR event aligns a repository in turn.
pub(crate) fn readmit<'a>(
    forge: &'a Forge,
    owner: &'a [u8; 32],
    identifier: &'a str,
    time: Duration,
) -> Pin<Box<dyn Future<Output = Result<(), Fault>> + Send + 'a>> {
    Box::pin(readmit_all(forge, owner, identifier, time))
}

async fn readmit_all(forge: &Forge, owner: &[u8; 32], identifier: &str, time: Duration) -> Result<(), Fault> {
    let begun = Instant::now();
    let mut conn = forge.store().read().await?;
    let rows = attached::of_repo(&mut conn, owner, identifier, PAGE).await?;
    if rows.is_empty() || purgatory::announcement(&mut conn, owner, identifier).await?.is_some() {
        return Ok(());
    }
    let repo = nostr::repos::by_coordinate(&mut conn, owner, identifier, None).await?;
    drop(conn);
    if repo.is_none_or(|repo| !repo.is_live()) {
        let input = (*owner, identifier.to_owned());
        let dropped: Result<(), StoreError> = forge
            .store()
            .write(input, |tx, (owner, identifier)| Box::pin(drop_with(tx, owner, identifier, "expiry")))
            .await;
        return Ok(dropped?);
    }
    for row in rows {
        if begun.elapsed() > time {
            break;
        }
        readmit_one(forge, row).await?;
    }
    Ok(())
}

/// The event is stored, or waits for its commit, before its row is removed. A crash in between admits it twice, which
/// changes nothing.
async fn readmit_one(forge: &Forge, row: Attached) -> Result<(), Fault> {
    if let Some(event) = readable(&row.json) {
        match PrEvent::parse(&event) {
            Ok(proposed) if proposed.commit.is_some() => {
                if !is_deleted(&mut *forge.store().read().await?, &event).await? {
                    // The event was judged on arrival, and its bytes are counted where it waits.
                    let allowance = Allowance::unlimited(event.pubkey);
                    let answer = pr_event::admit(forge, &event, proposed, None, &allowance).await?;
                    if matches!(&answer, Answer::Refused(refusal) if refusal.prefix == Prefix::RateLimited) {
                        // Purgatory has no room for the PR event, but its sender got a positive answer: the next sweep
                        // tries again.
                        return Ok(());
                    }
                }
            }
            // The event arrived while the announcement was being promoted.
            _ => store(forge, &event, row.steps).await?,
        }
    }
    forget(forge, &row.event_id).await
}

/// Removes the row of an event that is stored or waits elsewhere.
async fn forget(forge: &Forge, id: &[u8; 32]) -> Result<(), Fault> {
    let removed: Result<bool, StoreError> = forge.store().write(*id, |tx, id| Box::pin(attached::remove(tx, id))).await;
    if removed? {
        left("attached", "promotion");
    }
    Ok(())
}

async fn store(forge: &Forge, event: &Event, steps: i64) -> Result<(), Fault> {
    let stored: Result<bool, StoreError> = forge
        .store()
        .write((event.clone(), steps, forge.settings().grasp.clone()), |tx, (event, steps, settings)| {
            Box::pin(async move {
                if is_deleted(tx, event).await? {
                    return Ok(false);
                }
                if nostr::events::insert(tx, &to_record(event)).await? == Kept::New {
                    threads::emit::served(tx, settings, [event]).await?;
                }
                note_steps(tx, event, *steps).await?;
                Ok(true)
            })
        })
        .await;
    if stored? {
        Relay::of(forge).publish(&[Arc::new(event.clone())]);
    }
    Ok(())
}

/// Handles events whose announcement or pull request no longer waits: left by a crash, or attached at the moment when
/// it ended.
pub(super) async fn sweep(forge: &Forge) -> Result<(), Fault> {
    let homeless = attached::homeless(&mut *forge.store().read().await?, PAGE).await?;
    for (owner, identifier) in homeless {
        readmit(forge, &owner, &identifier, Duration::MAX).await?;
    }
    let homeless = attached::homeless_pr_events(&mut *forge.store().read().await?, PAGE).await?;
    for pr_event in homeless {
        release_all(forge, &pr_event).await?;
    }
    Ok(())
}
