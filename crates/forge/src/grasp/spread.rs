//! A PR event's commit gets a ref in every repository that the PR event names and that accepts changes. Deleting the
//! event removes these refs. Archived repositories, and repositories of suspended owners, are left out without refusing
//! the event. A job adds it once they accept changes again.
//!
//! Three steps precede the first ref: the objects are staged beside every repository and proved complete there, each
//! repository accepts the PR event, and the quota for all is reserved. So either all repositories take the PR event, or
//! none. The event is stored with the first repository's ref. The others follow at once; a job that is queued with the
//! event finishes them after a failure.

use super::align::{Aligned, Bringer, Home, JOB_WAIT, Objects, align, client_of, writer};
use super::push::{Decision, Order, RepoCoordinate, View, decide};
use super::quota::{self, Payer, Strangers, give_back, measure};
use super::{attached, pr_event};
use crate::disk::ensure_room_for;
use crate::git::push::incoming_key;
use crate::git::snapshots;
use crate::jobs::{self, Job, JobError};
use crate::relay::{Signers, readable};
use crate::{Fault, Forge};
use abide_core::policy::can_push_by_events;
use abide_core::{Oid, RefUpdate, RepoId};
use abide_git::{Client, Connected, GitError, Incoming};
use abide_nostr::git::{Coordinate, ObjectId, PrEvent};
use abide_nostr::grasp::event::Home as Named;
use abide_nostr::grasp::push::{PushRefusal, ref_of};
use abide_nostr::grasp::{Prefix, Refusal};
use abide_nostr::{Event, EventId, PublicKey};
use abide_store::nostr::events::tag_key;
use abide_store::nostr::relations::Position;
use abide_store::nostr::{self, purgatory};
use abide_store::repos::{self, Repo};
use abide_store::{StoreError, Tx};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Earlier PR events that one run of the job examines. The next page is another job.
const PAGE: i64 = 50;

/// A repository that takes the commit of a PR event.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub coordinate: RepoCoordinate,
    pub repo: Repo,
}

impl Target {
    /// The repository as an alignment takes it.
    fn site(&self) -> (&RepoCoordinate, Home) {
        (&self.coordinate, Home::Served(Box::new(self.repo.clone())))
    }
}

/// The repositories named by a PR event that take its commit, and the state of the named repositories as a whole.
pub(crate) async fn targets(forge: &Forge, named: &[Coordinate]) -> Result<(Vec<Target>, Named), Fault> {
    let mut conn = forge.store().read().await?;
    let signers = Signers::load(&mut conn, named.iter().map(|address| address.author)).await?;
    let (mut found, mut home) = (Vec::<Target>::new(), Named::Missing);
    for address in named {
        let (owner, identifier) = (address.author.as_bytes(), &address.identifier);
        let repo = nostr::repos::by_coordinate(&mut conn, owner, identifier, None).await?;
        let repo = repo.filter(Repo::is_live);
        // An announcement that is kept beside another maintainer's never gets a repository here.
        let waits = repo.is_none()
            && purgatory::announcement(&mut conn, owner, identifier)
                .await?
                .is_some_and(|entry| entry.repo_id.is_some());
        let one = match &repo {
            None if !waits => Named::Missing,
            _ if signers.is_suspended(&address.author) => Named::Suspended,
            None => Named::Waiting,
            Some(repo) if can_push_by_events(&repo.facts()).is_allowed() => Named::Open,
            Some(_) => Named::Archived,
        };
        home = home.max(one);
        let repo = repo.filter(|_| one == Named::Open);
        found.extend(repo.map(|repo| Target { coordinate: RepoCoordinate::from(address), repo }));
    }
    found.sort_by_key(|target| target.repo.id);
    found.dedup_by_key(|target| target.repo.id);
    Ok((found, home))
}

/// Location of a PR event's commit.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Repo(RepoId),
    /// In the area with this key, which was received beside the repository with this id.
    Area(String, Option<RepoId>),
}

/// Result of releasing a PR event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Released {
    /// The PR event is served.
    Done,
    /// A repository lacks objects that the commit needs; nothing was done.
    Incomplete,
    /// A repository refuses the PR event; nothing was done.
    Refused(Refusal),
}

/// Writes the commit of a PR event to every repository that it names, and serves the event. All repositories are judged
/// before the first ref is written.
pub(crate) async fn release(
    forge: &Forge,
    event: &Event,
    commit: Oid,
    source: &Source,
    targets: Vec<Target>,
    bringer: &Bringer,
) -> Result<Released, Fault> {
    match prepare(forge, event, commit, source, targets, bringer).await? {
        Ok(ready) => ready.release(forge).await,
        Err(not) => Ok(not),
    }
}

/// Stages the objects of a PR event beside every repository that it names, judges it for each, and reserves its quota.
/// No ref is written before [`Ready::release`]. Returns the reason if it cannot be released.
pub(crate) async fn prepare(
    forge: &Forge,
    event: &Event,
    commit: Oid,
    source: &Source,
    mut targets: Vec<Target>,
    bringer: &Bringer,
) -> Result<Result<Ready, Released>, Fault> {
    if targets.is_empty() {
        let reason = PushRefusal::NoneTakes.to_string();
        return Ok(Err(Released::Refused(Refusal::new(Prefix::Restricted, reason))));
    }
    let origin = match source {
        Source::Repo(origin) => Some(*origin),
        Source::Area(_, origin) => *origin,
    };
    let repos: Vec<RepoId> = targets.iter().map(|target| target.repo.id).collect();
    let network = bringer.client.network();
    if let Err(refusal) = quota::refs(forge, event.pubkey, network, &repos).await? {
        return Ok(Err(Released::Refused(refusal)));
    }
    // The repository that was pushed to comes first, so that the pusher hears about it before the others.
    targets.sort_by_key(|target| Some(target.repo.id) != origin);
    let mut staging = Staging::new(forge, event.id, commit, bringer.client);
    let mut staged = Vec::with_capacity(targets.len());
    for target in &targets {
        match staging.stage(source, target, &targets).await? {
            Some(objects) => staged.push(objects),
            None => return Ok(Err(Released::Incomplete)),
        }
    }
    let order = Order::PrEvent(Box::new(event.clone()), commit);
    for (target, objects) in targets.iter().zip(&staged) {
        if let Some(reason) = refusal(forge, &order, target, objects).await? {
            return Ok(Err(Released::Refused(Refusal::new(Prefix::Restricted, reason))));
        }
    }
    let reservation = event.id.to_hex();
    if let Err(refusal) = reserve(forge, event, &staged, bringer, &reservation).await? {
        return Ok(Err(Released::Refused(refusal)));
    }
    let bringer = bringer.clone().paying_from(&reservation);
    Ok(Ok(Ready { id: event.id, author: event.pubkey, order, targets, staged, reservation, bringer }))
}

/// A PR event that all its repositories accept, with its objects staged beside them. The area of the push must stay
/// until it is released or abandoned.
pub(crate) struct Ready {
    id: EventId,
    author: PublicKey,
    order: Order,
    targets: Vec<Target>,
    staged: Vec<Objects>,
    reservation: String,
    bringer: Bringer,
}

impl Ready {
    /// Writes the refs and serves the event. If a write fails after the first, the job that is queued with the event
    /// finishes the others; their quota stays reserved.
    pub(crate) async fn release(self, forge: &Forge) -> Result<Released, Fault> {
        let Self { id, author, order, targets, staged, reservation, bringer } = self;
        let written = write(forge, &order, targets.iter().zip(staged), &bringer).await;
        if !matches!(written, Ok(Written::Some)) {
            give_back(forge, &reservation).await;
        }
        match written? {
            Written::All | Written::Some => {
                quota::count_refs(forge, author, bringer.client.network(), targets.len()).await;
                attached::release(forge, &id).await;
                Ok(Released::Done)
            }
            Written::None(reason) => Ok(Released::Refused(Refusal::new(Prefix::Error, reason))),
        }
    }

    /// Releases its reservation.
    pub(crate) async fn abandon(self, forge: &Forge) {
        give_back(forge, &self.reservation).await;
    }
}

/// Why a repository refuses a PR event as it is now.
async fn refusal(forge: &Forge, order: &Order, target: &Target, objects: &Objects) -> Result<Option<String>, Fault> {
    let refs = snapshots::read(forge, &target.repo).await?;
    let mut object_dirs = vec![forge.layout().repo(target.repo.id)];
    object_dirs.extend(area_of(objects).map(Path::to_owned));
    Ok(match decide(forge, &target.coordinate, order, &View::of(&refs, object_dirs)).await? {
        Decision::Refuse(reason) => Some(format!("{}: {reason}", target.coordinate.identifier)),
        Decision::Go(_) | Decision::Nothing => None,
    })
}

fn area_of(objects: &Objects) -> Option<&Path> {
    match objects {
        Objects::Received(_, objects) => objects.area(),
        Objects::Here | Objects::Of(..) => None,
    }
}

/// Reserves the git data of all repositories together in the quota of the PR event's author, and checks the free disk
/// space.
async fn reserve(
    forge: &Forge,
    event: &Event,
    staged: &[Objects],
    bringer: &Bringer,
    reservation: &str,
) -> Result<Result<(), Refusal>, Fault> {
    let mut bytes = 0_u64;
    for area in staged.iter().filter_map(area_of) {
        bytes = bytes.saturating_add(measure(area.join("objects")).await?);
    }
    if bytes == 0 {
        return Ok(Ok(()));
    }
    ensure_room_for(forge, writer(bringer.client), bytes)?;
    let payer = Payer::load(forge, Some(event.pubkey), bringer.ip).await?;
    let reserved = payer.reserve(forge, reservation, bytes).await?;
    if reserved == Ok(true) {
        Strangers::of(forge).add(bytes);
    }
    Ok(reserved.map(drop))
}

/// Number of repositories that a PR event was written to.
enum Written {
    All,
    /// At least one, so the event is served; the job continues with the others.
    Some,
    /// None, for this reason.
    None(String),
}

async fn write<'a>(
    forge: &Forge,
    order: &Order,
    targets: impl Iterator<Item = (&'a Target, Objects)>,
    bringer: &Bringer,
) -> Result<Written, Fault> {
    let (mut served, mut late) = (false, false);
    for (target, objects) in targets {
        match align(forge, target.site(), order.clone(), objects, bringer.clone()).await {
            Ok(Aligned::Done | Aligned::Nothing) => served = true,
            Ok(Aligned::Refused(reason)) if !served => return Ok(Written::None(reason)),
            Err(fault) if !served => return Err(fault),
            Ok(Aligned::Refused(reason)) => {
                late = true;
                log_delay(target, &reason);
            }
            Err(fault) => {
                late = true;
                log_delay(target, &fault.to_string());
            }
        }
    }
    Ok(if late { Written::Some } else { Written::All })
}

fn log_delay(target: &Target, reason: &str) {
    tracing::info!(
        repo = target.repo.id.get(),
        reason,
        "cannot store the commit of a pull request in a repository yet"
    );
}

/// Stages the objects of one PR event beside its repositories, within one limit for all of them.
struct Staging<'a> {
    forge: &'a Forge,
    update: [RefUpdate; 1],
    commit: Oid,
    client: Client,
    /// Bytes that may still be copied. Anyone can send a PR event, so its copies are limited like the commits that one
    /// address may keep aside.
    left: u64,
}

impl<'a> Staging<'a> {
    fn new(forge: &'a Forge, id: EventId, commit: Oid, client: Client) -> Self {
        let update = [RefUpdate { name: ref_of(&id), old: Oid::ZERO, new: commit }];
        Self { forge, update, commit, client, left: forge.settings().grasp.unsigned_per_address }
    }

    /// Stages the objects that a repository lacks and proves the commit complete there. `None`: an object is missing,
    /// or the copy would exceed the limit.
    async fn stage(&mut self, source: &Source, target: &Target, named: &[Target]) -> Result<Option<Objects>, Fault> {
        let Self { forge, client, .. } = *self;
        if holds(forge, target.repo.id, &self.update, client).await? {
            return Ok(Some(Objects::Here));
        }
        let mut object_dirs = Vec::new();
        let origin = match source {
            Source::Repo(origin) => Some(*origin),
            Source::Area(key, origin) => {
                let dir = forge.layout().repo(target.repo.id);
                let lent = Incoming::reopen(forge.git(), forge.layout(), dir, key)?.of(client);
                let (objects, refused) = lent.connect(&self.update).await?;
                if refused.is_empty() {
                    return Ok(Some(Objects::Received(incoming_key(forge), objects)));
                }
                object_dirs.push(forge.layout().incoming(key).join("objects"));
                *origin
            }
        };
        // Only a repository that the PR event names gives objects to the others.
        let is_named =
            |origin: &RepoId| *origin != target.repo.id && named.iter().any(|other| other.repo.id == *origin);
        let Some(origin) = origin.filter(is_named) else { return Ok(None) };
        object_dirs.push(forge.layout().repo(origin).join("objects"));

        let key = incoming_key(forge);
        let incoming = Incoming::create(forge.git(), forge.layout(), target.repo.id, &key).await?.of(client);
        match self.copy(&incoming, &object_dirs, target).await {
            Ok(true) => {}
            Ok(false) | Err(Fault::Git(GitError::Failed { .. } | GitError::UsedUp { .. })) => return Ok(None),
            Err(fault) => return Err(fault),
        }
        let (objects, refused) = incoming.connect(&self.update).await?;
        Ok(refused.is_empty().then_some(Objects::Received(key, objects)))
    }

    /// Copies the objects that a repository lacks; `false` if they exceed the remaining bytes.
    async fn copy(&mut self, incoming: &Incoming, object_dirs: &[PathBuf], target: &Target) -> Result<bool, Fault> {
        let refs = snapshots::read(self.forge, &target.repo).await?;
        let known: Vec<Oid> = refs.refs.iter().map(|found| found.oid).collect();
        let bytes = incoming.weigh(object_dirs, &[self.commit], &known).await?;
        let Some(left) = self.left.checked_sub(bytes) else { return Ok(false) };
        ensure_room_for(self.forge, writer(self.client), bytes)?;
        incoming.fill(object_dirs, &[self.commit], &known).await?;
        self.left = left;
        Ok(true)
    }
}

/// Whether a repository has these tips and everything reachable from them.
async fn holds(forge: &Forge, repo: RepoId, tips: &[RefUpdate], client: Client) -> Result<bool, Fault> {
    let mut here = Connected::in_place(forge.git(), forge.layout().repo(repo)).of(client);
    Ok(here.extend(tips).await?.is_empty())
}

/// The first of these repositories that has a commit and everything reachable from it.
pub(super) async fn holder(
    forge: &Forge,
    id: &EventId,
    commit: Oid,
    targets: &[Target],
    client: Client,
) -> Result<Option<RepoId>, Fault> {
    let update = [RefUpdate { name: ref_of(id), old: Oid::ZERO, new: commit }];
    for target in targets {
        if holds(forge, target.repo.id, &update, client).await? {
            return Ok(Some(target.repo.id));
        }
    }
    Ok(None)
}

/// Copies the commit of a served PR event to every repository that it names. Fails if a repository could not take it,
/// so that the job is retried.
pub(crate) async fn give(forge: &Forge, id: &EventId) -> Result<(), Fault> {
    let found = nostr::events::by_id(&mut *forge.store().read().await?, id.as_bytes()).await?;
    let Some(event) = found.and_then(|found| readable(&found.json)) else { return Ok(()) };
    let Ok(pr_event) = PrEvent::parse(&event) else { return Ok(()) };
    let Some(commit) = pr_event.commit.and_then(ObjectId::sha1) else { return Ok(()) };
    let (targets, _) = targets(forge, &pr_event.repos).await?;
    let client = client_of(forge, &event.pubkey, None).await?.waiting_at_most(JOB_WAIT);
    let Some(origin) = holder(forge, id, commit, &targets, client).await? else { return Ok(()) };
    let mut staging = Staging::new(forge, *id, commit, client);
    let (mut ready, mut staged) = (Vec::with_capacity(targets.len()), Vec::with_capacity(targets.len()));
    for target in &targets {
        match staging.stage(&Source::Repo(origin), target, &targets).await? {
            Some(objects) => {
                ready.push(target);
                staged.push(objects);
            }
            None => log_delay(target, "its commit is not complete there"),
        }
    }
    let (order, reservation) = (Order::PrEvent(Box::new(event.clone()), commit), id.to_hex());
    let bringer = Bringer::server_for(client).paying_from(&reservation);
    let reserved = reserve(forge, &event, &staged, &bringer, &reservation).await?;
    if let Err(refusal) = reserved {
        return Err(Fault::Internal(format!("a PR event has not reached all its repositories: {}", refusal.reason)));
    }
    let mut late = None;
    for (target, objects) in ready.into_iter().zip(staged) {
        let aligned = align(forge, target.site(), order.clone(), objects, bringer.clone()).await?;
        if let Aligned::Refused(reason) = aligned {
            log_delay(target, &reason);
            late = Some(reason);
        }
    }
    match late {
        None => {
            give_back(forge, &reservation).await;
            Ok(())
        }
        Some(reason) => Err(Fault::Internal(format!("a PR event has not reached all its repositories: {reason}"))),
    }
}

/// Removes the ref of a deleted PR event from the repositories that it named.
pub(super) async fn forget(forge: &Forge, id: &EventId, named: &[Coordinate]) -> Result<(), Fault> {
    for coordinate in named.iter().map(RepoCoordinate::from) {
        let (owner, identifier) = (coordinate.owner.as_bytes(), &coordinate.identifier);
        let repo = nostr::repos::by_coordinate(&mut *forge.store().read().await?, owner, identifier, None).await?;
        let Some(repo) = repo else { continue };
        let home = Home::Served(Box::new(repo));
        align(forge, (&coordinate, home), Order::Forget(*id), Objects::Here, Bringer::server()).await?;
    }
    Ok(())
}

/// Queues the job that writes or removes the refs of a PR event, in the transaction that serves or removes it, or puts
/// it into purgatory because git is busy.
pub(crate) async fn enqueue(tx: &mut Tx, event: &Event, pr_event: &PrEvent) -> Result<(), StoreError> {
    jobs::enqueue(tx, jobs::Kind::GraspSpread, &Payload::of(event, pr_event), None).await
}

/// Payload of the job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Payload {
    /// Gives a repository the PR events that it lacks, from this position of their list on.
    CatchUp {
        repo_id: RepoId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<Position>,
    },
    /// Spreads the commit of a PR event, or removes its ref if the event is deleted.
    PrEvent {
        /// Event id, in hexadecimal.
        event: String,
        /// Coordinates of the repositories that it names.
        repos: Vec<String>,
    },
}

impl Payload {
    fn of(event: &Event, pr_event: &PrEvent) -> Self {
        let repos = pr_event.repos.iter().map(Coordinate::to_string).collect();
        Self::PrEvent { event: event.id.to_hex(), repos }
    }
}

/// Queues the job that gives a repository the served PR events that name it and that it lacks. Call it in the transaction
/// after which the repository takes changes: promotion, unarchiving, restore, or readmission of its owner. Does nothing
/// for a repository that no signed state governs.
pub(crate) async fn enqueue_for(tx: &mut Tx, repo: RepoId) -> Result<(), StoreError> {
    if nostr::repos::coordinate(tx, repo).await?.is_none() {
        return Ok(());
    }
    jobs::enqueue(tx, jobs::Kind::GraspSpread, &Payload::CatchUp { repo_id: repo, before: None }, None).await
}

/// Queues the PR events of one page that name a repository and that it lacks, and the job for the next page.
async fn catch_up(forge: &Forge, id: RepoId, before: Option<Position>) -> Result<(), Fault> {
    let mut conn = forge.store().read().await?;
    let repo = repos::by_id(&mut conn, id, None).await?;
    let Some(repo) = repo.filter(|repo| can_push_by_events(&repo.facts()).is_allowed()) else { return Ok(()) };
    let Some((owner, identifier)) = nostr::repos::coordinate(&mut conn, id).await? else { return Ok(()) };
    let address = Coordinate::repo(PublicKey::from_byte_array(owner), &identifier);
    let page = nostr::relations::pr_events(&mut conn, tag_key('a', &address.to_string()), before, PAGE).await?;
    drop(conn);
    let refs = snapshots::read(forge, &repo).await?;
    let here: HashSet<&[u8]> = refs.refs.iter().map(|found| found.name.as_slice()).collect();
    let mut payloads = Vec::new();
    for (_, event) in &page {
        let event = EventId::from_byte_array(*event);
        if here.contains(ref_of(&event).as_str().as_bytes()) {
            continue;
        }
        let found = nostr::events::by_id(&mut *forge.store().read().await?, event.as_bytes()).await?;
        let Some(event) = found.and_then(|found| readable(&found.json)) else { continue };
        if let Ok(pr_event) = PrEvent::parse(&event)
            && pr_event.commit.is_some()
        {
            payloads.push(Payload::of(&event, &pr_event));
        }
    }
    if let Some((last, _)) = page.last().filter(|_| page.len() == PAGE as usize) {
        payloads.push(Payload::CatchUp { repo_id: id, before: Some(*last) });
    }
    let queued: Result<(), StoreError> = forge
        .store()
        .write(payloads, |tx, payloads| {
            Box::pin(async move {
                for payload in payloads {
                    jobs::enqueue(tx, jobs::Kind::GraspSpread, payload, None).await?;
                }
                Ok(())
            })
        })
        .await;
    Ok(queued?)
}

async fn run(forge: &Forge, id: EventId, named: &[Coordinate]) -> Result<(), Fault> {
    if nostr::events::by_id(&mut *forge.store().read().await?, id.as_bytes()).await?.is_some() {
        give(forge, &id).await?;
    } else if !pr_event::again(forge, &id).await? {
        forget(forge, &id, named).await?;
    }
    Ok(())
}

/// The job.
pub(crate) async fn work(forge: &Forge, job: &Job) -> Result<(), JobError> {
    let lacking = || JobError::Final("the payload has no PR event; this job is queued with one".into());
    match jobs::payload(job).ok_or_else(lacking)? {
        Payload::CatchUp { repo_id, before } => Ok(catch_up(forge, repo_id, before).await?),
        Payload::PrEvent { event, repos } => {
            let id = EventId::from_hex(&event).map_err(|_| lacking())?;
            let named: Vec<Coordinate> = repos.iter().filter_map(|text| text.parse().ok()).collect();
            Ok(run(forge, id, &named).await?)
        }
    }
}

#[cfg(test)]
mod payload_tests {
    use super::*;

    #[test]
    fn the_payload_is_stored_as_ever() {
        let repo_id = RepoId::new(7);
        jobs::assert_stored(&Payload::CatchUp { repo_id, before: None }, r#"{"repo_id":7}"#);
        jobs::assert_stored(&Payload::CatchUp { repo_id, before: Some((1, 2)) }, r#"{"before":[1,2],"repo_id":7}"#);
        let payload = Payload::PrEvent { event: "ab".repeat(32), repos: vec!["30617:cd:tool".into()] };
        let stored = format!(r#"{{"event":"{}","repos":["30617:cd:tool"]}}"#, "ab".repeat(32));
        jobs::assert_stored(&payload, &stored);
    }
}
