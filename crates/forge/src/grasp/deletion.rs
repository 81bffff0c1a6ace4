//! Admission of deletion requests. A request reaches only its author's own events.

use super::life::{self, Fate};
use super::quota::Allowance;
use super::{Halt, attached, id, left, seconds, spread, stop};
use crate::emit::Who;
use crate::relay::{Relay, readable, to_record};
use crate::{Fault, Forge, GraspSettings};
use abide_core::{RepoId, failpoint};
use abide_git::incoming;
use abide_nostr::deletion::Deletion;
use abide_nostr::event::slot;
use abide_nostr::git::{Coordinate, PrEvent};
use abide_nostr::grasp::Answer;
use abide_nostr::grasp::event::{Effect, Relation, Target, deletion as judge};
use abide_nostr::{Event, EventId, PublicKey, kinds, nip19};
use abide_store::Tx;
use abide_store::nostr::events::{Found, deleted};
use abide_store::nostr::purgatory::{self, prs as pr_events};
use abide_store::nostr::{self};
use abide_store::repos::purges;
use std::sync::Arc;
use std::time::Duration;

/// Directories, and refs, that are deleted while the sender of a deletion request waits for the answer: enough for a
/// pull request that names the maximum number of repositories. The sweep and queued jobs delete the others.
const AT_ONCE: usize = 20;

/// Number of PR events whose refs are deleted at once, given the number of repositories of each.
fn at_once(repos: impl Iterator<Item = usize>) -> usize {
    let sum = |refs: &mut usize, repos: usize| {
        *refs += repos;
        Some(*refs)
    };
    repos.scan(0, sum).take_while(|refs| *refs <= AT_ONCE).count()
}

struct Unit {
    event: Event,
    request: Deletion,
    relation: Relation,
    allowance: Allowance,
    settings: GraspSettings,
    grace: Duration,
}

/// Work that is left after the transaction.
#[derive(Default)]
pub(super) struct After {
    directories: Vec<RepoId>,
    areas: Vec<String>,
    /// PR events whose refs must be deleted, with the repositories that they named.
    refs: Vec<(EventId, Vec<Coordinate>)>,
    /// Number of events that the request removed.
    pub covered: usize,
}

impl After {
    /// Removes the directories, areas and refs of the removed events.
    pub(super) async fn finish(self, forge: &Forge) -> Result<(), Fault> {
        for repo in self.directories.into_iter().take(AT_ONCE) {
            life::clear_directory(forge, repo).await?;
        }
        for key in self.areas {
            incoming::remove_incoming(forge.layout(), &key).await?;
        }
        let soon = at_once(self.refs.iter().map(|(_, named)| named.len()));
        for (pr_event, named) in self.refs.into_iter().take(soon) {
            failpoint::hit(failpoint::PR_EVENT_DELETED);
            spread::forget(forge, &pr_event, &named).await?;
        }
        Ok(())
    }
}

/// Decides about a deletion request and carries it out.
pub(super) async fn admit(
    forge: &Forge,
    event: &Event,
    request: Deletion,
    allowance: Allowance,
) -> Result<Answer, Fault> {
    let unit = Unit {
        event: event.clone(),
        request,
        relation: super::relation::of(forge, event).await?.0,
        allowance,
        settings: forge.settings().grasp.clone(),
        grace: forge.settings().lifecycle.grace,
    };
    let after = match forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await {
        Ok(after) => after,
        Err(Halt::Refused(refusal)) => return Ok(Answer::Refused(refusal)),
        Err(Halt::Store(error)) => return Err(error.into()),
    };
    if let Err(fault) = after.finish(forge).await {
        // The request is stored: the sweep and the queued job do the remaining work.
        tracing::warn!(error = %fault, "cannot apply a deletion request; the sweep retries");
    }
    Relay::of(forge).publish(&[Arc::new(event.clone())]);
    Ok(Answer::Stored)
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<After, Halt> {
    let mut after = After::default();
    let before = unit.allowance.before_deletion(tx).await?;
    for target in &unit.request.ids {
        by_id(tx, unit, target, &mut after).await?;
    }
    for address in &unit.request.coordinates {
        by_address(tx, unit, address, &mut after).await?;
    }
    judge(&unit.request, after.covered, unit.relation)?;
    let (author, at, request) = (unit.event.pubkey.to_bytes(), seconds(&unit.event), id(&unit.event.id));
    for target in &unit.request.ids {
        deleted::note(tx, &author, &format!("e:{}", target.to_hex()), at, &request).await?;
    }
    for address in &unit.request.coordinates {
        let target = format!("a:{}:{}:{}", address.kind, address.author.to_hex(), address.identifier);
        deleted::note(tx, &author, &target, at, &request).await?;
    }
    let record = to_record(&unit.event);
    nostr::events::insert(tx, &record).await?;
    unit.allowance.deletion(tx, before, record.json.len()).await?;
    Ok(after)
}

/// Deletes the author's event with this id, stored or waiting.
async fn by_id(tx: &mut Tx, unit: &Unit, target: &EventId, after: &mut After) -> Result<(), Halt> {
    if let Some(found) = nostr::events::by_id(tx, target.as_bytes()).await? {
        return stored(tx, unit, &found, after).await;
    }
    waiting(tx, &unit.event.pubkey, target, after).await
}

/// Removes a waiting event of this author, whatever it waits for.
pub(super) async fn waiting(tx: &mut Tx, key: &PublicKey, target: &EventId, after: &mut After) -> Result<(), Halt> {
    let author = key.to_bytes();
    if let Some(half) = pr_events::lock(tx, target.as_bytes()).await?
        && half.pubkey == Some(author)
    {
        after.areas.extend(pr_events::take(tx, target.as_bytes()).await?.and_then(|half| half.incoming));
        after.covered += 1;
        left("proposal", "deletion");
        attached::drop_with_pr_event(tx, target.as_bytes(), "deletion").await?;
        return Ok(());
    }
    if let Some(row) = purgatory::attached::get(tx, target.as_bytes()).await?
        && row.pubkey == author
        && purgatory::attached::remove(tx, target.as_bytes()).await?
    {
        after.covered += 1;
        left("attached", "deletion");
        return Ok(());
    }
    if let Some(entry) = purgatory::announcement_by_event(tx, target.as_bytes()).await?
        && entry.pubkey == author
    {
        return waiting_announcement(tx, key, &entry, after).await;
    }
    if purgatory::author_of_state(tx, target.as_bytes()).await? == Some(author)
        && purgatory::take_state(tx, target.as_bytes()).await?
    {
        after.covered += 1;
        left("state", "deletion");
    }
    Ok(())
}

/// Deletes the author's events at this coordinate that are not newer than the request.
async fn by_address(tx: &mut Tx, unit: &Unit, address: &Coordinate, after: &mut After) -> Result<(), Halt> {
    let (author, at) = (unit.event.pubkey.to_bytes(), seconds(&unit.event));
    if address.kind == kinds::ANNOUNCEMENT
        && let Some(entry) = purgatory::lock_announcement(tx, &author, &address.identifier).await?
        && entry.event_at <= at
    {
        waiting_announcement(tx, &unit.event.pubkey, &entry, after).await?;
    }
    if address.kind == kinds::STATE {
        for (state, _) in purgatory::states_until(tx, &author, &address.identifier, at).await? {
            if purgatory::take_state(tx, &state).await? {
                after.covered += 1;
                left("state", "deletion");
            }
        }
    }
    match nostr::events::in_slot(tx, address.kind, &author, &address.identifier).await? {
        Some(found) if found.created_at <= at => stored(tx, unit, &found, after).await,
        _ => Ok(()),
    }
}

/// Removes a waiting announcement at once, with its directory.
async fn waiting_announcement(
    tx: &mut Tx,
    author: &PublicKey,
    entry: &purgatory::Announcement,
    after: &mut After,
) -> Result<(), Halt> {
    debug_assert_eq!(Target::WaitingAnnouncement.effect(), Effect::RemoveEntryAndDirectory);
    if !purgatory::take_announcement(tx, entry).await? {
        return Ok(());
    }
    after.covered += 1;
    left("announcement", "deletion");
    attached::drop_with(tx, &entry.pubkey, &entry.identifier, "deletion").await?;
    if let Some(repo) = entry.repo_id {
        let slug = format!("{}/{}", nip19::npub(author), entry.identifier);
        purges::insert(tx, repo, &slug).await?;
        after.directories.push(repo);
    }
    Ok(())
}

/// Deletes a stored event. An announcement soft-deletes its repository; every other event is removed.
async fn stored(tx: &mut Tx, unit: &Unit, found: &Found, after: &mut After) -> Result<(), Halt> {
    let Some(event) = readable(&found.json) else { return Ok(()) };
    if !unit.request.covers(&event) {
        return Ok(());
    }
    after.covered += 1;
    if found.kind == kinds::ANNOUNCEMENT
        && let Some(slot) = slot(&event)
        && let Some(repo) = nostr::repos::lock(tx, &found.pubkey, &slot.identifier).await?
    {
        if repo.is_live() {
            let who = Who { user: Some(repo.owner_id), ip: None };
            life::soft_delete(tx, &unit.settings, &who, &repo, unit.grace, Fate::Deleted).await.map_err(stop)?;
            // The request names only the id, but the coordinate must not come back either.
            let target = format!("a:{}:{}:{}", found.kind, event.pubkey.to_hex(), slot.identifier);
            deleted::note(tx, &found.pubkey, &target, seconds(&unit.event), &id(&unit.event.id)).await?;
        }
        return Ok(());
    }
    remove(tx, &event, after).await
}

/// Removes a stored event and queues the removal of its refs.
pub(super) async fn remove(tx: &mut Tx, event: &Event, after: &mut After) -> Result<(), Halt> {
    nostr::events::remove(tx, event.id.as_bytes()).await?;
    if let Ok(pr_event) = PrEvent::parse(event)
        && pr_event.commit.is_some()
    {
        spread::enqueue(tx, event, &pr_event).await?;
        after.refs.push((event.id, pr_event.repos));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deletion_request_takes_away_so_many_refs_at_once() {
        assert_eq!(at_once([].into_iter()), 0);
        assert_eq!(at_once([20, 1].into_iter()), 1, "one pull request for all that it may name");
        assert_eq!(at_once([1; 500].into_iter()), 20);
        assert_eq!(at_once([21, 1].into_iter()), 0, "the job does it");
    }
}
