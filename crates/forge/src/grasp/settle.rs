//! Rechecks all waiting states of one identifier: git data that arrived in one repository can complete a state that
//! governs another.

use super::align::{Aligned, Bringer, Home, JOB_WAIT, Objects, align, client_of};
use super::arrived;
use super::context::{Announced, GraspContext, Stage};
use super::push::{Order, RepoCoordinate, is_complete, objects_of};
use crate::git::snapshots;
use crate::jobs::{self, Job, JobError};
use crate::{Fault, Forge};
use abide_core::RepoId;
use abide_git::Client;
use abide_nostr::git::RepoState;
use abide_nostr::grasp::align::plan;
use abide_nostr::{EventId, PublicKey};
use abide_store::nostr::events::tag_key;
use abide_store::nostr::purgatory::{self, prs as pr_events};
use abide_store::nostr::{self};
use abide_store::{Conn, StoreError, Tx};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Maximum number of steps of one run. Each step moves one repository to one state.
const AT_MOST: usize = 1_000;

/// Steps of a run for which the sender of an event waits; the job continues with the others.
const AT_ONCE: usize = 20;

/// Moves every repository of an identifier to the newest state whose objects are present, on behalf of `client`.
pub(crate) async fn settle(forge: &Forge, identifier: &str, key: PublicKey, client: Client) -> Result<(), Fault> {
    settle_some(forge, identifier, key, client, AT_MOST).await
}

async fn settle_some(
    forge: &Forge,
    identifier: &str,
    key: PublicKey,
    client: Client,
    steps: usize,
) -> Result<(), Fault> {
    let mut tried: HashSet<(RepoId, EventId)> = HashSet::new();
    for _ in 0..steps {
        let mut conn = forge.store().read().await?;
        let context = GraspContext::load(&forge.settings().grasp, &mut conn, identifier, key).await?;
        drop(conn);
        let Some(step) = next(forge, &context, &tried, client).await? else { return Ok(()) };
        tried.insert((step.repo, step.state.rank.id));
        let Some(event) = context.event_of(&step.state).cloned() else { continue };
        let coordinate = RepoCoordinate { owner: step.owner, identifier: identifier.to_owned() };
        let objects = Objects::Of(step.source, objects_of(&step.state).collect());
        let (order, bringer) = (Order::State(Box::new(event)), Bringer::server_for(client));
        let aligned = align(forge, (&coordinate, step.home), order, objects, bringer).await?;
        if let Aligned::Refused(reason) = aligned {
            tracing::info!(identifier, repo = step.repo.get(), reason, "cannot align a repository to a state");
        }
    }
    Ok(())
}

/// Settles the other repositories of the identifier after a push. Does nothing if there is only one repository and no
/// state waits.
pub(crate) async fn settle_others(
    forge: &Forge,
    identifier: &str,
    key: PublicKey,
    client: Client,
) -> Result<(), Fault> {
    let wanted = is_wanted(&mut *forge.store().read().await?, identifier).await?;
    if wanted { settle(forge, identifier, key, client).await } else { Ok(()) }
}

/// Whether there is anything to settle: another repository of this identifier, or a waiting state.
async fn is_wanted(conn: &mut Conn, identifier: &str) -> Result<bool, StoreError> {
    Ok(is_shared(conn, identifier).await? || !purgatory::states(conn, identifier, 1, i64::MAX).await?.is_empty())
}

/// As [`settle`], after an event was stored and before its sender is answered. The job that was queued with the event
/// retries failures, and continues if there are many repositories.
pub(crate) async fn settle_after(forge: &Forge, identifier: &str, key: PublicKey, client: Client) {
    if let Err(fault) = settle_some(forge, identifier, key, client, AT_ONCE).await {
        tracing::warn!(error = %fault, identifier, "cannot settle repositories of an identifier; their job retries");
    }
}

/// Whether more than one repository, served or waiting, has this identifier.
async fn is_shared(conn: &mut Conn, identifier: &str) -> Result<bool, StoreError> {
    let served = nostr::repos::of_identifier(conn, identifier, 2).await?.len();
    Ok(served + purgatory::announcements(conn, identifier, 2, i64::MAX).await?.len() > 1)
}

/// Queues the settling job in the transaction that ends a push, if there is anything to settle. So a crash right after
/// it leaves no other repository and no pull request unaligned.
pub(super) async fn enqueue(tx: &mut Tx, repo: RepoId) -> Result<(), StoreError> {
    match nostr::repos::coordinate(tx, repo).await? {
        Some((owner, identifier)) => enqueue_named(tx, &owner, &identifier).await,
        None => Ok(()),
    }
}

/// As [`enqueue`], for a key and an identifier, in the transaction that stores an announcement or a state.
pub(super) async fn enqueue_named(tx: &mut Tx, key: &[u8; 32], identifier: &str) -> Result<(), StoreError> {
    let is_proposed = async |tx: &mut Tx| pr_events::of_repo(tx, key, identifier, 1).await.map(|(_, count)| count > 0);
    if !is_wanted(tx, identifier).await? && !is_proposed(tx).await? {
        return Ok(());
    }
    let owner = hex::encode(key);
    let payload = Payload { owner: owner.clone(), identifier: identifier.to_owned() };
    jobs::enqueue(tx, jobs::Kind::GraspSettle, &payload, Some(format!("{owner}:{}", tag_key('d', identifier)))).await
}

/// Payload of the job.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Payload {
    /// Public key, in hexadecimal.
    owner: String,
    identifier: String,
}

async fn run(forge: &Forge, owner: PublicKey, identifier: String) -> Result<(), Fault> {
    let client = client_of(forge, &owner, None).await?.waiting_at_most(JOB_WAIT);
    settle(forge, &identifier, owner, client).await?;
    arrived::release(forge, &RepoCoordinate { owner, identifier }).await
}

struct Step {
    repo: RepoId,
    home: Home,
    owner: PublicKey,
    state: RepoState,
    source: RepoId,
}

/// The next repository that is not aligned.
async fn next(
    forge: &Forge,
    context: &GraspContext,
    tried: &HashSet<(RepoId, EventId)>,
    client: Client,
) -> Result<Option<Step>, Fault> {
    for known in context.announced.iter().filter(|known| !known.is_archived()) {
        let (Some(repo), Some(home)) = (known.repo_id(), known.home()) else { continue };
        for state in in_order(context, known.owner()) {
            let Some(source) = source(forge, context, known, &state, client).await? else { continue };
            if !tried.contains(&(repo, state.rank.id)) && !is_there(forge, context, known, &state).await? {
                return Ok(Some(Step { repo, home, owner: known.owner(), state, source }));
            }
            // This is the newest state that can be followed; it supersedes the older ones.
            break;
        }
    }
    Ok(None)
}

/// The states that may govern a key's repository, newest first. The stored authoritative state comes last.
fn in_order(context: &GraspContext, owner: PublicKey) -> Vec<RepoState> {
    context.candidates(owner, None, |candidates| {
        candidates.waiting_in_order().into_iter().chain(candidates.followed()).cloned().collect()
    })
}

/// A repository that has all objects of a state and that its author may sign for; `known` itself is checked first.
async fn source(
    forge: &Forge,
    context: &GraspContext,
    known: &Announced,
    state: &RepoState,
    client: Client,
) -> Result<Option<RepoId>, Fault> {
    let others = context.ruled_by(state.author).filter(|other| other.owner() != known.owner());
    for candidate in std::iter::once(known).chain(others) {
        if let Stage::Served(repo) = &candidate.stage
            && is_complete(forge, state, repo, client).await?
        {
            return Ok(Some(repo.id));
        }
    }
    Ok(None)
}

/// Whether a repository is aligned with a state and the state is served.
async fn is_there(forge: &Forge, context: &GraspContext, known: &Announced, state: &RepoState) -> Result<bool, Fault> {
    let Stage::Served(repo) = &known.stage else { return Ok(false) };
    let served = context.stored.iter().any(|said| said.state.rank == state.rank);
    let refs = snapshots::read(forge, repo).await?;
    let view = super::push::View::of(&refs, Vec::new());
    Ok(served && plan(&view.refs, view.head.as_ref(), state).is_ok_and(|plan| plan.is_empty()))
}

/// The job.
pub(crate) async fn work(forge: &Forge, job: &Job) -> Result<(), JobError> {
    let lacking = || JobError::Final("the payload lacks whose repository; this job is queued by a push".into());
    let Payload { owner, identifier } = jobs::payload(job).ok_or_else(lacking)?;
    let owner = PublicKey::from_hex(&owner).map_err(|_| lacking())?;
    Ok(run(forge, owner, identifier).await?)
}

#[cfg(test)]
mod payload_tests {
    use super::*;

    #[test]
    fn the_payload_is_stored_as_ever() {
        let payload = Payload { owner: "ab".repeat(32), identifier: "tool".into() };
        let stored = format!(r#"{{"identifier":"tool","owner":"{}"}}"#, "ab".repeat(32));
        jobs::assert_stored(&payload, &stored);
    }
}
