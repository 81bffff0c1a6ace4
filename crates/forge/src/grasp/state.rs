//! Admission of signed states.

use super::align::{Aligned, Bringer, LANE_WAIT, Objects, align, client_of};
use super::context::{Announced, GraspContext, Stage};
use super::push::{Order, RepoCoordinate, is_complete, objects_of};
use super::quota::Allowance;
use super::settle::{self, settle_after};
use super::signed::serve_state;
use super::{Halt, ensure_room, entry, notice, refusal, stop};
use crate::relay::Relay;
use crate::{Fault, Forge};
use abide_git::Client;
use abide_nostr::git::RepoState;
use abide_nostr::grasp::state::{Facts, Ruled, Verdict, judge};
use abide_nostr::grasp::{Answer, Prefix};
use abide_nostr::{Event, EventId, PublicKey, Rank, kinds};
use abide_store::nostr;
use abide_store::nostr::events::deleted;
use abide_store::nostr::purgatory;
use std::net::IpAddr;
use std::sync::Arc;

/// Decides about a state.
pub(super) async fn admit(
    forge: &Forge,
    event: &Event,
    state: RepoState,
    from: Option<IpAddr>,
    allowance: &Allowance,
) -> Result<Answer, Fault> {
    let identifier = state.identifier.as_str().to_owned();
    let client = client_of(forge, &event.pubkey, from).await?.waiting_at_most(LANE_WAIT);
    let mut conn = forge.store().read().await?;
    let context = GraspContext::load(&forge.settings().grasp, &mut conn, &identifier, event.pubkey).await?;
    let author = event.pubkey.to_bytes();
    let newest = nostr::events::in_slot(&mut conn, kinds::STATE, &author, &identifier).await?;
    let target = format!("a:{}:{}:{identifier}", kinds::STATE, event.pubkey.to_hex());
    let deleted_at = deleted::at(&mut conn, &author, &target).await?;
    drop(conn);
    let (ruled, due) = ruled(forge, &context, &state, client).await?;
    let facts = Facts {
        rank: state.rank,
        tracks: state.tracks(),
        newest_of_author: newest.map(|found| Rank {
            created_at: u64::try_from(found.created_at).unwrap_or(0),
            id: EventId::from_byte_array(found.id),
        }),
        deleted_at: deleted_at.map(|at| u64::try_from(at).unwrap_or(0)),
        announced: context.announced.iter().any(|known| known.repo_id().is_some()),
        ruled,
    };
    let sender = Sender { from, allowance, client, due };
    match judge(&facts) {
        Verdict::Refuse(refusal) => Ok(Answer::Refused(refusal)),
        Verdict::Wait { extend } => wait(forge, event, &identifier, extend, sender).await,
        Verdict::Serve { align } if align.is_empty() => keep(forge, event).await,
        Verdict::Serve { align } => serve(forge, event, &state, &context, align, &facts, sender).await,
    }
}

/// The step that a waiting state is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    /// Git data.
    Push,
    /// The job that looks again when git is less busy.
    Job,
}

/// The repositories that the author may speak for, and what is there of each. Where git is too busy to look, nothing counts as complete.
async fn ruled(
    forge: &Forge,
    context: &GraspContext,
    state: &RepoState,
    client: Client,
) -> Result<(Vec<Ruled>, Due), Fault> {
    let (mut ruled, mut due) = (Vec::new(), Due::Push);
    for known in context.ruled_by(state.author) {
        let superseded = context.candidates(known.owner(), None, |candidates| candidates.supersede(state));
        let complete = match &known.stage {
            // One wait is enough: the slots are the same for all of them.
            Stage::Served(_) if due == Due::Job => false,
            Stage::Served(repo) => match is_complete(forge, state, repo, client).await {
                Err(fault) if fault.is_busy() => {
                    due = Due::Job;
                    false
                }
                complete => complete?,
            },
            Stage::Waiting(..) | Stage::Beside => false,
        };
        ruled.push(Ruled {
            owner: known.owner(),
            waiting: matches!(known.stage, Stage::Waiting(..)),
            complete,
            superseded,
            archived: known.is_archived(),
            suspended: context.is_suspended(&known.owner()),
        });
    }
    Ok((ruled, due))
}

/// Stores a state that no repository follows: newer states govern everywhere, or it names no ref. Nothing else changes.
async fn keep(forge: &Forge, event: &Event) -> Result<Answer, Fault> {
    let served: Result<(), Fault> = forge
        .store()
        .write(event.clone(), |tx, event| Box::pin(async move { Ok(serve_state(tx, event).await?) }))
        .await;
    served?;
    Relay::of(forge).publish(&[Arc::new(event.clone())]);
    Ok(Answer::Stored)
}

/// Sender of an event, with its allowance and git client.
#[derive(Clone, Copy)]
struct Sender<'a> {
    from: Option<IpAddr>,
    allowance: &'a Allowance,
    client: Client,
    due: Due,
}

/// Stores and follows a state at once, because all its objects are present.
async fn serve(
    forge: &Forge,
    event: &Event,
    state: &RepoState,
    context: &GraspContext,
    owners: Vec<PublicKey>,
    facts: &Facts,
    sender: Sender<'_>,
) -> Result<Answer, Fault> {
    let complete = |owner: &PublicKey| facts.ruled.iter().any(|repo| repo.owner == *owner && repo.complete);
    let source = facts.ruled.iter().find(|repo| repo.complete).and_then(|repo| context.of(repo.owner)?.repo_id());
    let Some(source) = source else { return Err(Fault::Internal("a complete state has no repository".into())) };
    let mut stored = false;
    for owner in owners {
        let coordinate = RepoCoordinate { owner, identifier: state.identifier.as_str().to_owned() };
        let Some(home) = context.of(owner).and_then(Announced::home) else { continue };
        let objects = match complete(&owner) {
            true => Objects::Here,
            false => Objects::Of(source, objects_of(state).collect()),
        };
        let order = Order::State(Box::new(event.clone()));
        match align(forge, (&coordinate, home), order, objects, Bringer::server_for(sender.client)).await {
            Ok(Aligned::Done | Aligned::Nothing) => stored = true,
            Ok(Aligned::Refused(reason)) => tracing::info!(reason, "cannot align a repository to a new state"),
            // The state is stored: the job that settles the identifier tries again.
            Err(fault) if stored => tracing::warn!(error = %fault, "cannot align a repository to a stored state yet"),
            Err(fault) if fault.is_busy() => {
                let sender = Sender { due: Due::Job, ..sender };
                return wait(forge, event, state.identifier.as_str(), Vec::new(), sender).await;
            }
            Err(fault) => return Err(fault),
        }
    }
    if !stored {
        // No repository could follow the state at this moment; the next push or state examines it again.
        return wait(forge, event, state.identifier.as_str(), Vec::new(), sender).await;
    }
    settle_after(forge, state.identifier.as_str(), event.pubkey, sender.client).await;
    Ok(Answer::Stored)
}

/// Puts a state into purgatory until its git data arrives.
async fn wait(
    forge: &Forge,
    event: &Event,
    identifier: &str,
    extend: Vec<PublicKey>,
    Sender { from, allowance, due, .. }: Sender<'_>,
) -> Result<Answer, Fault> {
    let settings = forge.settings().grasp.clone();
    let delay = forge.settings().sync.delay(allowance.origin);
    let input = (event.clone(), identifier.to_owned(), (from, due, delay), extend, settings, allowance.clone());
    let written = forge
        .store()
        .write(input, |tx, (event, identifier, (from, due, delay), extend, settings, allowance)| {
            Box::pin(async move {
                let until = settings.expiry.of_arrival(tx.now());
                let entry = entry(event, identifier, *from, until);
                ensure_room(tx, &settings.caps, &entry).await?;
                allowance.event(tx, entry.json.len()).await?;
                purgatory::put_state(tx, &entry).await?;
                for owner in extend {
                    purgatory::raise_announcement(tx, &owner.to_bytes(), identifier, until).await?;
                }
                // The announcement may have expired during the decision. Then the state governs nothing, and nothing is
                // written.
                let context = GraspContext::load(settings, tx, identifier, event.pubkey).await.map_err(stop)?;
                if context.ruled_by(event.pubkey).next().is_none() {
                    let reason = "the announcement has just expired; publish it again, then the state";
                    return Err(refusal(Prefix::Restricted, reason).into());
                }
                match *due {
                    Due::Job => settle::enqueue_named(tx, &event.pubkey.to_bytes(), identifier).await?,
                    Due::Push => notice(tx, identifier, *delay).await?,
                }
                Ok::<_, Halt>(())
            })
        })
        .await;
    match written {
        Ok(()) => Ok(Answer::Waiting),
        Err(Halt::Refused(refusal)) => Ok(Answer::Refused(refusal)),
        Err(Halt::Store(error)) => Err(error.into()),
    }
}
