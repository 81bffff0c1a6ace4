//! A proposal's commit is a ref of every repository that the proposal is for, and of none once it is deleted.
//!
//! Before the first ref is made, the objects are beside every one of these repositories and proved complete there: the
//! proposal is released in all of them or in none. The event is stored with the first repository's ref; the others
//! follow at once, and a job that is written with the event makes sure of it, whatever happens in between.

use super::align::{Aligned, Bringer, Objects, align};
use super::push::{Coordinate, Order};
use crate::git::push::incoming_key;
use crate::git::snapshots;
use crate::relay::readable;
use crate::{Fault, Forge, jobs};
use abide_core::{Oid, RefUpdate, RepoId};
use abide_git::{Connected, GitError, Incoming};
use abide_nostr::git::{Coordinate as Address, ObjectId, Proposal};
use abide_nostr::grasp::event::Home;
use abide_nostr::grasp::push::ref_of;
use abide_nostr::{Event, EventId};
use abide_store::nostr_events::tag_key;
use abide_store::repos::Repo;
use abide_store::{StoreError, Tx, nostr_events, nostr_relations, nostr_repos, purgatory};
use serde_json::{Value as Json, json};

/// Proposals that a repository is given when it begins to be served.
const EARLIER: i64 = 200;

/// A repository that takes the commit of a proposal.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub coordinate: Coordinate,
    pub repo: Repo,
}

/// Of the repositories that a proposal names, those that take its commit, and what that says of all of them.
pub(crate) async fn targets(forge: &Forge, named: &[Address]) -> Result<(Vec<Target>, Home), Fault> {
    let mut conn = forge.store().read().await?;
    let (mut found, mut home) = (Vec::<Target>::new(), Home::Missing);
    for address in named {
        let (owner, identifier) = (address.author.as_bytes(), &address.identifier);
        let repo = nostr_repos::by_coordinate(&mut conn, owner, identifier, None).await?;
        match repo.filter(|repo| repo.deleted_at.is_none()) {
            Some(repo) if repo.archived_at.is_none() => {
                found.push(Target { coordinate: Coordinate::from(address), repo });
            }
            Some(_) => home = Home::Archived,
            None => {
                let waits = purgatory::announcement(&mut conn, owner, identifier).await?.is_some();
                if waits && home == Home::Missing {
                    home = Home::Waiting;
                }
            }
        }
    }
    found.sort_by_key(|target| target.repo.id);
    found.dedup_by_key(|target| target.repo.id);
    if !found.is_empty() {
        home = Home::Open;
    }
    Ok((found, home))
}

/// Where the commit of a proposal is.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// In this repository.
    Repo(RepoId),
    /// In the area of this key, which was received beside the repository of this id.
    Area(String, Option<RepoId>),
}

/// What came of releasing a proposal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Released {
    /// It is served.
    Done,
    /// One of its repositories lacks something that the commit needs: nothing was done.
    Incomplete,
    /// The first of its repositories does not take it: nothing was done.
    Refused(String),
}

/// Takes the commit of a proposal into every repository that it is for, and serves the event.
pub(crate) async fn release(
    forge: &Forge,
    event: &Event,
    commit: Oid,
    source: &Source,
    mut targets: Vec<Target>,
    bringer: &Bringer,
) -> Result<Released, Fault> {
    let origin = match source {
        Source::Repo(origin) => Some(*origin),
        Source::Area(_, origin) => *origin,
    };
    // Whoever pushes hears first of the repository that was pushed to.
    targets.sort_by_key(|target| Some(target.repo.id) != origin);
    let mut staged = Vec::with_capacity(targets.len());
    for target in &targets {
        match stage(forge, &event.id, commit, source, target, &targets).await? {
            Some(objects) => staged.push(objects),
            None => return Ok(Released::Incomplete),
        }
    }
    let mut served = false;
    for (target, objects) in targets.iter().zip(staged) {
        let order = Order::Proposal(Box::new(event.clone()), commit);
        match align(forge, &target.coordinate, order, objects, bringer.clone()).await {
            Ok(Aligned::Done | Aligned::Nothing) => served = true,
            Ok(Aligned::Refused(reason)) if !served => return Ok(Released::Refused(reason)),
            Err(fault) if !served => return Err(fault),
            // The event is served: the job that came with it tries again.
            Ok(Aligned::Refused(reason)) => tell_of_delay(target, &reason),
            Err(fault) => tell_of_delay(target, &fault.to_string()),
        }
    }
    Ok(if served { Released::Done } else { Released::Incomplete })
}

fn tell_of_delay(target: &Target, reason: &str) {
    tracing::info!(repo = target.repo.id.get(), reason, "a repository does not take a proposal's commit yet");
}

/// Puts what a repository lacks of a commit beside it and proves the commit complete there. `None`: something is missing.
async fn stage(
    forge: &Forge,
    id: &EventId,
    commit: Oid,
    source: &Source,
    target: &Target,
    named: &[Target],
) -> Result<Option<Objects>, Fault> {
    let update = [RefUpdate { name: ref_of(id), old: Oid::ZERO, new: commit }];
    if holds(forge, target.repo.id, &update).await? {
        return Ok(Some(Objects::Here));
    }
    let mut places = Vec::new();
    let origin = match source {
        Source::Repo(origin) => Some(*origin),
        Source::Area(key, origin) => {
            let dir = forge.layout().repo(target.repo.id);
            let (objects, refused) = Incoming::reopen(forge.git(), forge.layout(), dir, key)?.connect(&update).await?;
            if refused.is_empty() {
                return Ok(Some(Objects::Received(incoming_key(forge), objects)));
            }
            places.push(forge.layout().incoming(key).join("objects"));
            *origin
        }
    };
    // Only a repository that the proposal names gives anything to the others.
    let is_named = |origin: &RepoId| *origin != target.repo.id && named.iter().any(|other| other.repo.id == *origin);
    let Some(origin) = origin.filter(is_named) else { return Ok(None) };
    places.push(forge.layout().repo(origin).join("objects"));

    let key = incoming_key(forge);
    let refs = snapshots::read(forge, &target.repo).await?;
    let known: Vec<Oid> = refs.refs.iter().map(|found| found.oid).collect();
    let incoming = Incoming::create(forge.git(), forge.layout(), target.repo.id, &key).await?;
    let copied = async {
        // Anyone can propose: what one event makes the server copy is bounded like what one address may leave here.
        if incoming.weigh(&places, &[commit], &known).await? > forge.settings().grasp.unsigned_per_address {
            return Ok(false);
        }
        incoming.fill(&places, &[commit], &known).await.map(|()| true)
    };
    match copied.await {
        Ok(true) => {}
        Ok(false) | Err(GitError::Failed { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let (objects, refused) = incoming.connect(&update).await?;
    Ok(refused.is_empty().then_some(Objects::Received(key, objects)))
}

/// Whether a repository has these tips and all that they reach.
pub(super) async fn holds(forge: &Forge, repo: RepoId, tips: &[RefUpdate]) -> Result<bool, Fault> {
    let mut here = Connected::in_place(forge.git(), forge.layout().repo(repo));
    Ok(here.extend(tips).await?.is_empty())
}

/// The first of these repositories that has a commit and all that it reaches.
pub(super) async fn holder(
    forge: &Forge,
    id: &EventId,
    commit: Oid,
    targets: &[Target],
) -> Result<Option<RepoId>, Fault> {
    let update = [RefUpdate { name: ref_of(id), old: Oid::ZERO, new: commit }];
    for target in targets {
        if holds(forge, target.repo.id, &update).await? {
            return Ok(Some(target.repo.id));
        }
    }
    Ok(None)
}

/// Gives the commit of a served proposal to every repository it is for, from one that has it. Fails if one of them
/// could not take it, so that whoever asked tries again.
pub(crate) async fn give(forge: &Forge, id: &EventId) -> Result<(), Fault> {
    let found = nostr_events::by_id(&mut *forge.store().read().await?, id.as_bytes()).await?;
    let Some(event) = found.and_then(|found| readable(&found.json)) else { return Ok(()) };
    let Ok(proposal) = Proposal::parse(&event) else { return Ok(()) };
    let Some(commit) = proposal.commit.and_then(ObjectId::sha1) else { return Ok(()) };
    let (targets, _) = targets(forge, &proposal.repos).await?;
    let Some(origin) = holder(forge, id, commit, &targets).await? else { return Ok(()) };
    let mut late = None;
    for target in &targets {
        let staged = stage(forge, id, commit, &Source::Repo(origin), target, &targets).await?;
        let Some(objects) = staged else {
            tell_of_delay(target, "its commit is not complete there");
            continue;
        };
        let order = Order::Proposal(Box::new(event.clone()), commit);
        if let Aligned::Refused(reason) = align(forge, &target.coordinate, order, objects, Bringer::server()).await? {
            tell_of_delay(target, &reason);
            late = Some(reason);
        }
    }
    match late {
        None => Ok(()),
        Some(reason) => Err(Fault::Internal(format!("a proposal has not reached all its repositories: {reason}"))),
    }
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

/// Queues the proposals that are served by other repositories and name one that begins to be served, in its transaction.
pub(super) async fn enqueue_for(tx: &mut Tx, repo: &Address) -> Result<(), StoreError> {
    for json in nostr_relations::proposals(tx, tag_key('a', &repo.to_string()), EARLIER).await? {
        let Some(event) = readable(&json) else { continue };
        if let Ok(proposal) = Proposal::parse(&event)
            && proposal.commit.is_some()
        {
            enqueue(tx, &event, &proposal).await?;
        }
    }
    Ok(())
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
