//! A patch, a pull request or an update of one arrives.

use super::align::{Bringer, client_of};
use super::push::Coordinate;
use super::quota::Allowance;
use super::spread::{self, Released, Source, Target, targets};
use super::{Halt, aside, attached, ensure_room, entry, left};
use crate::relay::to_record;
use crate::{Fault, Forge, threads};
use abide_core::Oid;
use abide_git::Client;
use abide_nostr::Event;
use abide_nostr::git::{ObjectId, Proposal};
use abide_nostr::grasp::event::{Commit, ProposalVerdict, distance, own_steps, proposal as judge};
use abide_nostr::grasp::{Answer, Prefix, Refusal};
use abide_store::nostr_events::Kept;
use abide_store::purgatory_attached::{self, Home};
use abide_store::purgatory_proposals::{self as proposals, Half};
use abide_store::{nostr_events, nostr_relations};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

/// Decides about a proposal.
pub(super) async fn admit(
    forge: &Forge,
    event: &Event,
    proposed: Proposal,
    from: Option<IpAddr>,
    allowance: &Allowance,
) -> Result<Answer, Fault> {
    let mut incomplete = None;
    loop {
        match try_admit(forge, event, &proposed, from, allowance, incomplete.as_deref()).await? {
            Tried::Answered(answer) => return Ok(answer),
            Tried::Raced => {}
            Tried::Incomplete(key) => incomplete = Some(key),
        }
    }
}

/// What one try came to.
enum Tried {
    Answered(Answer),
    /// The commit came in the same moment, so it has to be looked at again.
    Raced,
    /// The objects in this area are not all that the commit needs where it is for: as good as another commit.
    Incomplete(String),
}

async fn try_admit(
    forge: &Forge,
    event: &Event,
    proposed: &Proposal,
    from: Option<IpAddr>,
    allowance: &Allowance,
    incomplete: Option<&str>,
) -> Result<Tried, Fault> {
    let (targets, home) = targets(forge, &proposed.repos).await?;
    let client = client_of(forge, &event.pubkey, from).await?;
    let wanted = proposed.commit.and_then(ObjectId::sha1);
    let half = proposals::get(&mut *forge.store().read().await?, event.id.as_bytes()).await?;
    let half = half.filter(|half| half.json.is_none());
    let found = match wanted {
        None => Found::Nothing,
        Some(oid) => find(forge, event, &targets, (oid, client), half.as_ref(), incomplete).await?,
    };
    let (relation, steps) = super::relation::of(forge, event).await?;
    match judge(proposed, relation, home, found.commit()) {
        ProposalVerdict::Refuse(refusal) => Ok(Tried::Answered(Answer::Refused(refusal))),
        ProposalVerdict::WaitForRepository => attached::wait(forge, event, from, allowance).await.map(Tried::Answered),
        ProposalVerdict::Wait { .. } => {
            let Some(oid) = wanted else {
                let reason = "the commit is named by a SHA-256 id; repositories here are SHA-1";
                return Ok(Tried::Answered(Answer::Refused(Refusal::new(Prefix::Invalid, reason))));
            };
            wait(forge, event, (proposed, oid), &targets, from, allowance, incomplete).await
        }
        ProposalVerdict::Serve | ProposalVerdict::ServeFromAside => match (wanted, found) {
            (Some(oid), Found::In(source)) => serve(forge, event, oid, targets, source, client).await,
            _ => store(forge, event, steps, allowance).await.map(Tried::Answered),
        },
    }
}

/// What is here of a commit.
enum Found {
    Nothing,
    In(Source),
    /// Another commit is kept aside, or this one without all that it needs.
    Other,
}

impl Found {
    fn commit(&self) -> Commit {
        match self {
            Self::Nothing => Commit::Absent,
            Self::In(Source::Repo(_)) => Commit::Here,
            Self::In(Source::Area(..)) => Commit::Aside,
            Self::Other => Commit::OtherAside,
        }
    }
}

async fn find(
    forge: &Forge,
    event: &Event,
    targets: &[Target],
    (oid, client): (Oid, Client),
    kept: Option<&Half>,
    incomplete: Option<&str>,
) -> Result<Found, Fault> {
    if let Some(repo) = spread::holder(forge, &event.id, oid, targets, client).await? {
        return Ok(Found::In(Source::Repo(repo)));
    }
    Ok(match kept.map(|half| (half, half.incoming.as_ref())) {
        None => Found::Nothing,
        Some((half, Some(key))) if half.commit == oid && Some(key.as_str()) != incomplete => {
            Found::In(Source::Area(key.clone(), half.repo_id))
        }
        Some(_) => Found::Other,
    })
}

/// Serves a proposal: every repository that it is for takes its commit in, and the event is stored.
async fn serve(
    forge: &Forge,
    event: &Event,
    oid: Oid,
    targets: Vec<Target>,
    source: Source,
    client: Client,
) -> Result<Tried, Fault> {
    match (spread::release(forge, event, oid, &source, targets, &Bringer::server_for(client)).await?, source) {
        (Released::Done, Source::Area(key, _)) => {
            aside::remove(forge, &key).await;
            Ok(Tried::Answered(Answer::Stored))
        }
        (Released::Done, Source::Repo(_)) => Ok(Tried::Answered(Answer::Stored)),
        (Released::Incomplete, Source::Area(key, _)) => Ok(Tried::Incomplete(key)),
        (Released::Incomplete, Source::Repo(_)) => {
            let reason = "a repository that it is for lacks too much of the commit's history; push it there";
            Ok(Tried::Answered(Answer::Refused(Refusal::new(Prefix::Error, reason))))
        }
        (Released::Refused(refusal), _) => Ok(Tried::Answered(Answer::Refused(refusal))),
    }
}

/// Stores a proposal that brings no commit of its own.
async fn store(forge: &Forge, event: &Event, steps: i64, allowance: &Allowance) -> Result<Answer, Fault> {
    let stored = forge
        .store()
        .write((event.clone(), steps, allowance.clone()), |tx, (event, steps, allowance)| {
            Box::pin(async move {
                allowance.ensure(tx, to_record(event).json.len()).await?;
                distance(*steps, nostr_relations::far(tx, event.pubkey.as_bytes()).await?)?;
                if nostr_events::insert(tx, &to_record(event)).await? == Kept::New {
                    threads::tell::served(tx, None, [event]).await?;
                }
                if *steps != own_steps(event.kind.as_u16()) {
                    nostr_relations::note_steps(tx, event.id.as_bytes(), *steps).await?;
                }
                Ok::<_, Halt>(())
            })
        })
        .await;
    match stored {
        Ok(()) => {}
        Err(Halt::Refused(refusal)) => return Ok(Answer::Refused(refusal)),
        Err(Halt::Store(error)) => return Err(error.into()),
    }
    forge.relay().publish(&[Arc::new(event.clone())]);
    Ok(Answer::Stored)
}

/// It waits for its commit. What was pushed under its id and is another commit goes: the event says what belongs there.
async fn wait(
    forge: &Forge,
    event: &Event,
    (proposed, commit): (&Proposal, Oid),
    targets: &[Target],
    from: Option<IpAddr>,
    allowance: &Allowance,
    incomplete: Option<&str>,
) -> Result<Tried, Fault> {
    let settings = forge.settings().grasp.clone();
    let repos: Vec<_> = targets.iter().map(|target| target.coordinate.stored()).collect();
    let named: Vec<_> = proposed.repos.iter().map(|repo| Coordinate::from(repo).stored()).collect();
    let input =
        (event.clone(), commit, (repos, named), from, settings, allowance.clone(), incomplete.map(str::to_owned));
    let written = forge
        .store()
        .write(input, |tx, (event, commit, (repos, named), from, settings, allowance, incomplete)| {
            Box::pin(async move {
                let before = proposals::lock(tx, event.id.as_bytes()).await?;
                let is_fresh = |half: &Half| half.incoming != *incomplete;
                if before.as_ref().is_some_and(|half| half.json.is_none() && half.commit == *commit && is_fresh(half)) {
                    return Ok(Wrote::Raced);
                }
                let until = settings.expiry.of_arrival(tx.now());
                let entry = entry(event, "", *from, until);
                ensure_room(tx, &settings.caps, &entry).await?;
                allowance.event(tx, entry.json.len()).await?;
                // Also for those that wait: their first push may bring the commit.
                let waiting = purgatory_attached::waiting_repos(tx, named).await?.into_iter();
                let waiting = waiting.filter_map(|home| match home {
                    Home::Repo(owner, identifier) => Some((owner, identifier)),
                    Home::Proposal(_) => None,
                });
                let waiting: BTreeSet<_> = waiting.collect();
                let repos: Vec<_> = repos.iter().cloned().chain(waiting).collect();
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
                proposals::put(tx, &half, &repos, entry.address.as_deref()).await?;
                Ok::<_, Halt>(Wrote::Waits { dropped: before.and_then(|half| half.incoming) })
            })
        })
        .await;
    match written {
        Ok(Wrote::Raced) => Ok(Tried::Raced),
        Ok(Wrote::Waits { dropped }) => {
            if let Some(key) = dropped {
                left("placeholder", "replacement");
                aside::remove(forge, &key).await;
            }
            Ok(Tried::Answered(Answer::Waiting))
        }
        Err(Halt::Refused(refusal)) => Ok(Tried::Answered(Answer::Refused(refusal))),
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
