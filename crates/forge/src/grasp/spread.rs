//! A proposal's commit is a ref of every repository that the proposal is for, and of none once it is deleted.
//!
//! The event goes together with the first repository's ref; the others follow at once, and a job that is written with
//! the event makes sure of it, whatever happens in between.

use super::align::{Aligned, Bringer, Objects, align};
use super::push::{Coordinate, Order};
use crate::relay::readable;
use crate::{Fault, Forge, jobs};
use abide_core::{Oid, RepoId};
use abide_git::read;
use abide_nostr::git::{Coordinate as Address, ObjectId, Proposal};
use abide_nostr::grasp::event::Home;
use abide_nostr::{Event, EventId};
use abide_store::{StoreError, Tx, nostr_events, nostr_repos};
use serde_json::{Value as Json, json};

/// A repository that takes the commit of a proposal.
pub(super) struct Target {
    pub coordinate: Coordinate,
    pub id: RepoId,
}

/// Of the repositories that a proposal names, those that take its commit, and what that says of all of them.
pub(super) async fn targets(forge: &Forge, named: &[Address]) -> Result<(Vec<Target>, Home), Fault> {
    let mut conn = forge.store().read().await?;
    let (mut found, mut home) = (Vec::<Target>::new(), Home::Missing);
    for address in named {
        let repo = nostr_repos::by_coordinate(&mut conn, address.author.as_bytes(), &address.identifier, None).await?;
        match repo.filter(|repo| repo.deleted_at.is_none()) {
            Some(repo) if repo.archived_at.is_none() => {
                found.push(Target { coordinate: Coordinate::from(address), id: repo.id });
            }
            Some(_) => home = Home::Archived,
            None => {}
        }
    }
    found.sort_by_key(|target| target.id);
    found.dedup_by_key(|target| target.id);
    if !found.is_empty() {
        home = Home::Open;
    }
    Ok((found, home))
}

/// Whether a repository has an object.
pub(super) async fn has(forge: &Forge, repo: RepoId, oid: Oid) -> Result<bool, Fault> {
    let dir = forge.layout().repo(repo);
    let looked = tokio::task::spawn_blocking(move || read::present(&dir, [oid]));
    let found =
        looked.await.map_err(|error| Fault::Internal(format!("looking for a commit was interrupted: {error}")))?;
    Ok(!found?.is_empty())
}

/// Gives the commit of a served proposal to every repository it is for, from one that has it.
pub(crate) async fn give(forge: &Forge, id: &EventId) -> Result<(), Fault> {
    let found = nostr_events::by_id(&mut *forge.store().read().await?, id.as_bytes()).await?;
    let Some(event) = found.and_then(|found| readable(&found.json)) else { return Ok(()) };
    let Ok(proposal) = Proposal::parse(&event) else { return Ok(()) };
    let Some(oid) = proposal.commit.and_then(ObjectId::sha1) else { return Ok(()) };
    let (targets, _) = targets(forge, &proposal.repos).await?;
    let mut source = None;
    for target in &targets {
        if has(forge, target.id, oid).await? {
            source = Some(target.id);
            break;
        }
    }
    let Some(source) = source else { return Ok(()) };
    for target in &targets {
        let objects = if target.id == source { Objects::Here } else { Objects::Of(source, vec![oid]) };
        let order = Order::Proposal(Box::new(event.clone()), oid);
        if let Aligned::Refused(reason) = align(forge, &target.coordinate, order, objects, Bringer::server()).await? {
            tracing::info!(repo = target.id.get(), reason, "a repository does not take a proposal's commit");
        }
    }
    Ok(())
}

/// Takes the ref of a proposal that is no more from the repositories it was for.
pub(super) async fn forget(forge: &Forge, id: &EventId, named: &[Address]) -> Result<(), Fault> {
    for address in named {
        align(forge, &Coordinate::from(address), Order::Forget(*id), Objects::Here, Bringer::server()).await?;
    }
    Ok(())
}

/// Queues what makes sure of it, in the transaction that serves or removes a proposal.
pub(crate) async fn enqueue(tx: &mut Tx, event: &Event, proposal: &Proposal) -> Result<(), StoreError> {
    let named: Vec<String> = proposal.repos.iter().map(Address::to_string).collect();
    let payload = json!({ "event": event.id.to_hex(), "repos": named });
    jobs::enqueue(tx, jobs::Kind::GraspSpread, payload, None).await
}

/// The job: `false` if its payload is not one of ours.
pub(crate) async fn run(forge: &Forge, payload: &Json) -> Result<bool, Fault> {
    let id = payload["event"].as_str().and_then(|text| EventId::from_hex(text).ok());
    let (Some(id), Some(named)) = (id, payload["repos"].as_array()) else { return Ok(false) };
    let named: Vec<Address> = named.iter().filter_map(|text| text.as_str()?.parse().ok()).collect();
    if nostr_events::by_id(&mut *forge.store().read().await?, id.as_bytes()).await?.is_some() {
        give(forge, &id).await?;
    } else {
        forget(forge, &id, &named).await?;
    }
    Ok(true)
}
