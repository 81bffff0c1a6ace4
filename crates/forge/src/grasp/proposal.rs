//! A patch, a pull request or an update of one arrives.

use super::align::{Aligned, Bringer, Objects, align};
use super::push::{Coordinate, Order};
use super::{Halt, ensure_room, entry, left};
use crate::relay::to_record;
use crate::{Fault, Forge};
use abide_core::{Oid, RepoId};
use abide_git::{Incoming, incoming, read};
use abide_nostr::git::{ObjectId, Proposal};
use abide_nostr::grasp::event::{Commit, ProposalVerdict, proposal as judge};
use abide_nostr::grasp::{Answer, Prefix, Refusal};
use abide_nostr::{Event, PublicKey};
use abide_store::purgatory_proposals::{self as proposals, Half};
use abide_store::repos::Repo;
use abide_store::{nostr_events, nostr_repos};
use std::net::IpAddr;
use std::sync::Arc;

/// A repository here that a proposal is for.
struct For {
    owner: PublicKey,
    identifier: String,
    repo: Repo,
}

impl For {
    fn coordinate(&self) -> Coordinate {
        Coordinate { owner: self.owner, identifier: self.identifier.clone() }
    }
}

/// Decides about a proposal.
pub(super) async fn admit(
    forge: &Forge,
    event: &Event,
    proposed: Proposal,
    from: Option<IpAddr>,
) -> Result<Answer, Fault> {
    loop {
        if let Some(answer) = try_admit(forge, event, &proposed, from).await? {
            return Ok(answer);
        }
    }
}

/// One try; `None` if the commit came in the same moment, so that it has to be looked at again.
async fn try_admit(
    forge: &Forge,
    event: &Event,
    proposed: &Proposal,
    from: Option<IpAddr>,
) -> Result<Option<Answer>, Fault> {
    let targets = targets(forge, proposed).await?;
    let wanted = proposed.commit.and_then(ObjectId::sha1);
    let aside = proposals::get(&mut *forge.store().read().await?, event.id.as_bytes()).await?;
    let aside = aside.filter(|half| half.json.is_none());
    let commit = match wanted {
        None => Commit::Absent,
        Some(oid) => find(forge, &targets, oid, aside.as_ref()).await?,
    };
    let relation = super::relation::of(forge, event).await?;
    match judge(proposed, relation, commit) {
        ProposalVerdict::Refuse(refusal) => Ok(Some(Answer::Refused(refusal))),
        ProposalVerdict::Wait { .. } => {
            let Some(oid) = wanted else {
                let reason = "the commit is named by a SHA-256 id; repositories here are SHA-1";
                return Ok(Some(Answer::Refused(Refusal::new(Prefix::Invalid, reason))));
            };
            wait(forge, event, oid, from).await
        }
        ProposalVerdict::Serve => serve(forge, event, wanted, &targets, None).await.map(Some),
        ProposalVerdict::ServeFromAside => serve(forge, event, wanted, &targets, aside).await.map(Some),
    }
}

/// The repositories here that a proposal names and that are served.
async fn targets(forge: &Forge, proposed: &Proposal) -> Result<Vec<For>, Fault> {
    let mut conn = forge.store().read().await?;
    let mut found = Vec::new();
    for named in &proposed.repos {
        let (owner, identifier) = (named.author, named.identifier.clone());
        let repo = nostr_repos::by_coordinate(&mut conn, owner.as_bytes(), &identifier, None).await?;
        let repo = repo.filter(|repo| repo.deleted_at.is_none() && repo.archived_at.is_none());
        found.extend(repo.map(|repo| For { owner, identifier, repo }));
    }
    found.sort_by_key(|target| target.repo.id);
    found.dedup_by_key(|target| target.repo.id);
    Ok(found)
}

/// What is here of a commit.
async fn find(forge: &Forge, targets: &[For], oid: Oid, aside: Option<&Half>) -> Result<Commit, Fault> {
    for target in targets {
        if has(forge, target.repo.id, oid).await? {
            return Ok(Commit::Here);
        }
    }
    Ok(match aside {
        Some(half) if half.commit == oid => Commit::Aside,
        Some(_) => Commit::OtherAside,
        None => Commit::Absent,
    })
}

async fn has(forge: &Forge, repo: RepoId, oid: Oid) -> Result<bool, Fault> {
    let dir = forge.layout().repo(repo);
    let looked = tokio::task::spawn_blocking(move || read::present(&dir, [oid]));
    let found =
        looked.await.map_err(|error| Fault::Internal(format!("looking for a commit was interrupted: {error}")))?;
    Ok(!found?.is_empty())
}

/// Serves a proposal: its commit becomes a ref of every repository it is for, and the first of them stores the event.
async fn serve(
    forge: &Forge,
    event: &Event,
    commit: Option<Oid>,
    targets: &[For],
    aside: Option<Half>,
) -> Result<Answer, Fault> {
    let mut source: Option<RepoId> = None;
    if let Some(oid) = commit {
        // Wherever it is now comes first, so that the others can be given it from there.
        let mut order: Vec<(&For, bool)> = Vec::new();
        for target in targets {
            order.push((target, has(forge, target.repo.id, oid).await?));
        }
        let pushed_to = aside.as_ref().and_then(|half| half.repo_id);
        order.sort_by_key(|(target, here)| (!here, Some(target.repo.id) != pushed_to));
        for (target, here) in order {
            let objects = match (here, source, aside.as_ref().and_then(|half| half.incoming.as_deref())) {
                (true, ..) => Objects::Here,
                (false, Some(source), _) => Objects::Of(source, vec![oid]),
                (false, None, Some(key)) => {
                    let dir = forge.layout().repo(target.repo.id);
                    Objects::Received(key.to_owned(), Incoming::reopen(forge.git(), forge.layout(), dir, key)?)
                }
                (false, None, None) => continue,
            };
            let order = Order::Proposal(Box::new(event.clone()), oid);
            match align(forge, &target.coordinate(), order, objects, Bringer::server()).await? {
                Aligned::Done | Aligned::Nothing => source = Some(target.repo.id),
                Aligned::Refused(reason) => tracing::info!(reason, "a repository does not take a proposal's commit"),
            }
        }
    }
    if source.is_none() {
        if aside.is_some() {
            let reason = "the commit could not be taken into the repository; push it again";
            return Ok(Answer::Refused(Refusal::new(Prefix::Error, reason)));
        }
        store(forge, event).await?;
    }
    Ok(Answer::Stored)
}

/// Stores a proposal that brings no commit of its own.
async fn store(forge: &Forge, event: &Event) -> Result<(), Fault> {
    let stored: Result<(), Fault> = forge
        .store()
        .write(event.clone(), |tx, event| {
            Box::pin(async move {
                nostr_events::insert(tx, &to_record(event)).await?;
                Ok(())
            })
        })
        .await;
    stored?;
    forge.relay().publish(&[Arc::new(event.clone())]);
    Ok(())
}

/// It waits for its commit. What was pushed under its id and is another commit goes: the event says what belongs there.
async fn wait(forge: &Forge, event: &Event, commit: Oid, from: Option<IpAddr>) -> Result<Option<Answer>, Fault> {
    let settings = forge.settings().grasp.clone();
    let input = (event.clone(), commit, from, settings);
    let written = forge
        .store()
        .write(input, |tx, (event, commit, from, settings)| {
            Box::pin(async move {
                let before = proposals::lock(tx, event.id.as_bytes()).await?;
                if before.as_ref().is_some_and(|half| half.json.is_none() && half.commit == *commit) {
                    return Ok(Wrote::Raced);
                }
                let until = settings.expiry.of_arrival(tx.now());
                let entry = entry(event, "", *from, until);
                ensure_room(tx, &settings.caps, &entry).await?;
                let half = Half {
                    event_id: entry.event_id,
                    pubkey: Some(entry.pubkey),
                    json: Some(entry.json),
                    commit: *commit,
                    repo_id: None,
                    incoming: None,
                    bytes: 0,
                    created_at: tx.now(),
                    expires_at: until,
                };
                proposals::put(tx, &half, entry.address.as_deref()).await?;
                Ok::<_, Halt>(Wrote::Waits { dropped: before.and_then(|half| half.incoming) })
            })
        })
        .await;
    match written {
        Ok(Wrote::Raced) => Ok(None),
        Ok(Wrote::Waits { dropped }) => {
            if let Some(key) = dropped {
                left("placeholder", "replacement");
                incoming::remove_incoming(forge.layout(), &key).await?;
            }
            Ok(Some(Answer::Waiting))
        }
        Err(Halt::Refused(refusal)) => Ok(Some(Answer::Refused(refusal))),
        Err(Halt::Store(error)) => Err(error.into()),
    }
}

/// What one try to let a proposal wait came to.
enum Wrote {
    /// Its commit came in the same moment.
    Raced,
    /// It waits, in place of another commit that was kept in this area.
    Waits { dropped: Option<String> },
}
