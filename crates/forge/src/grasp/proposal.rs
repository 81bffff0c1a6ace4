//! A patch, a pull request or an update of one arrives.

use super::align::{Aligned, Bringer, Objects, align};
use super::push::Order;
use super::spread::{self, Target, targets};
use super::{Halt, ensure_room, entry, left};
use crate::relay::to_record;
use crate::{Fault, Forge};
use abide_core::Oid;
use abide_git::{Incoming, incoming};
use abide_nostr::Event;
use abide_nostr::git::{ObjectId, Proposal};
use abide_nostr::grasp::event::{Commit, ProposalVerdict, proposal as judge};
use abide_nostr::grasp::{Answer, Prefix, Refusal};
use abide_store::nostr_events;
use abide_store::purgatory_proposals::{self as proposals, Half};
use std::net::IpAddr;
use std::sync::Arc;

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
    let (targets, home) = targets(forge, &proposed.repos).await?;
    let wanted = proposed.commit.and_then(ObjectId::sha1);
    let aside = proposals::get(&mut *forge.store().read().await?, event.id.as_bytes()).await?;
    let aside = aside.filter(|half| half.json.is_none());
    let commit = match wanted {
        None => Commit::Absent,
        Some(oid) => find(forge, &targets, oid, aside.as_ref()).await?,
    };
    let relation = super::relation::of(forge, event).await?;
    match judge(proposed, relation, home, commit) {
        ProposalVerdict::Refuse(refusal) => Ok(Some(Answer::Refused(refusal))),
        ProposalVerdict::Wait { .. } => {
            let Some(oid) = wanted else {
                let reason = "the commit is named by a SHA-256 id; repositories here are SHA-1";
                return Ok(Some(Answer::Refused(Refusal::new(Prefix::Invalid, reason))));
            };
            wait(forge, event, oid, &targets, from).await
        }
        ProposalVerdict::Serve => serve(forge, event, wanted, &targets, None).await.map(Some),
        ProposalVerdict::ServeFromAside => serve(forge, event, wanted, &targets, aside).await.map(Some),
    }
}

/// What is here of a commit.
async fn find(forge: &Forge, targets: &[Target], oid: Oid, aside: Option<&Half>) -> Result<Commit, Fault> {
    for target in targets {
        if spread::has(forge, target.id, oid).await? {
            return Ok(Commit::Here);
        }
    }
    Ok(match aside {
        Some(half) if half.commit == oid => Commit::Aside,
        Some(_) => Commit::OtherAside,
        None => Commit::Absent,
    })
}

/// Serves a proposal: one repository takes its commit in and stores the event, the others are given it from there.
async fn serve(
    forge: &Forge,
    event: &Event,
    commit: Option<Oid>,
    targets: &[Target],
    aside: Option<Half>,
) -> Result<Answer, Fault> {
    let Some(oid) = commit else {
        store(forge, event).await?;
        return Ok(Answer::Stored);
    };
    let Some((target, objects)) = first(forge, targets, oid, aside).await? else {
        let reason = "the commit is gone again; push it again";
        return Ok(Answer::Refused(Refusal::new(Prefix::Error, reason)));
    };
    let order = Order::Proposal(Box::new(event.clone()), oid);
    match align(forge, &target.coordinate, order, objects, Bringer::server()).await? {
        Aligned::Done | Aligned::Nothing => {
            spread::give(forge, &event.id).await?;
            Ok(Answer::Stored)
        }
        Aligned::Refused(reason) => Ok(Answer::Refused(Refusal::new(Prefix::Error, reason))),
    }
}

/// The repository that takes the commit in, and where it has it from: one that has it, else the one it was pushed to.
async fn first<'a>(
    forge: &Forge,
    targets: &'a [Target],
    oid: Oid,
    aside: Option<Half>,
) -> Result<Option<(&'a Target, Objects)>, Fault> {
    for target in targets {
        if spread::has(forge, target.id, oid).await? {
            return Ok(Some((target, Objects::Here)));
        }
    }
    let Some((pushed_to, key)) = aside.and_then(|half| Some((half.repo_id, half.incoming?))) else { return Ok(None) };
    let target = targets.iter().find(|target| Some(target.id) == pushed_to).or(targets.first());
    let Some(target) = target else { return Ok(None) };
    let incoming = Incoming::reopen(forge.git(), forge.layout(), forge.layout().repo(target.id), &key)?;
    Ok(Some((target, Objects::Received(key, incoming))))
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
async fn wait(
    forge: &Forge,
    event: &Event,
    commit: Oid,
    targets: &[Target],
    from: Option<IpAddr>,
) -> Result<Option<Answer>, Fault> {
    let settings = forge.settings().grasp.clone();
    let repos: Vec<_> = targets.iter().map(|target| target.coordinate.stored()).collect();
    let input = (event.clone(), commit, repos, from, settings);
    let written = forge
        .store()
        .write(input, |tx, (event, commit, repos, from, settings)| {
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
                proposals::put(tx, &half, repos, entry.address.as_deref()).await?;
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
