//! Admission of events that concern git data.

use super::quota::Allowance;
use super::{announce, deletion, pr_event, state};
use crate::relay::deleted::{self, is_deleted};
use crate::relay::signer;
use crate::{Fault, Forge};
use abide_core::sync::attempts::Origin;
use abide_nostr::event::to_json;
use abide_nostr::grasp::{Answer, Parsed, Prefix, Refusal, signer};
use abide_nostr::{Event, EventId};
use abide_store::nostr::{self, purgatory};
use std::net::IpAddr;

/// Decides about an announcement, a state, a PR event or a deletion, and stores the decision.
pub(crate) async fn admit(
    forge: &Forge,
    event: &Event,
    parsed: Parsed,
    (from, origin): (Option<IpAddr>, Origin),
) -> Result<Answer, Fault> {
    if origin == Origin::Synced && expired(forge, &event.id).await? {
        let reason = "this event expired in purgatory; its author may publish it here again";
        return Ok(Answer::Refused(Refusal::new(Prefix::Blocked, reason)));
    }
    if !forge.settings().grasp.enabled && needs_git_data(&parsed) {
        let reason = "this server does not accept repositories over nostr";
        return Ok(Answer::Refused(Refusal::new(Prefix::Restricted, reason)));
    }
    let signer = signer(&mut *forge.store().read().await?, event.pubkey).await?;
    if let Err(refusal) = signer::admit(signer) {
        return Ok(Answer::Refused(refusal));
    }
    let allowance = Allowance::load(forge, signer, event.pubkey, (from, origin)).await?;
    if matches!(parsed, Parsed::State(_) | Parsed::PrEvent(_))
        && is_deleted(&mut *forge.store().read().await?, event).await?
    {
        return Ok(Answer::Refused(deleted::refusal()));
    }
    match parsed {
        Parsed::Announcement(announcement) => announce::admit(forge, event, announcement, from, allowance).await,
        Parsed::State(said) => {
            let answer = within(forge, event, &allowance, state::admit(forge, event, said, from, &allowance));
            answer.await
        }
        Parsed::PrEvent(proposed) => {
            let answer = within(forge, event, &allowance, pr_event::admit(forge, event, proposed, from, &allowance));
            answer.await
        }
        Parsed::Deletion(request) => deletion::admit(forge, event, request, allowance).await,
        Parsed::Profile | Parsed::Related => {
            Err(Fault::Internal("an event was passed to the wrong handler: the relay judges it".into()))
        }
    }
}

/// Checks the quota before the work begins. Then counts an event that our own alignment stored; a waiting event is
/// counted where it is put into purgatory.
async fn within(
    forge: &Forge,
    event: &Event,
    allowance: &Allowance,
    deciding: impl Future<Output = Result<Answer, Fault>>,
) -> Result<Answer, Fault> {
    let bytes = to_json(event).len();
    if let Err(refusal) = allowance.ask(forge, bytes).await? {
        return Ok(Answer::Refused(refusal));
    }
    let answer = deciding.await?;
    if answer == Answer::Stored
        && let Err(fault) = allowance.count_stored(forge, bytes).await
    {
        // The event is stored, so its sender gets a positive answer.
        tracing::warn!(error = %fault, "cannot count a stored event for its network");
    }
    Ok(answer)
}

/// Whether an event asks for a repository or a commit on this server. Other events are accepted like comments: a patch
/// sent as text, and a deletion of the author's own events, which works while GRASP is switched off.
fn needs_git_data(parsed: &Parsed) -> bool {
    match parsed {
        Parsed::Announcement(_) | Parsed::State(_) => true,
        Parsed::PrEvent(pr_event) => pr_event.commit.is_some(),
        Parsed::Deletion(_) | Parsed::Profile | Parsed::Related => false,
    }
}

/// The answer for an event whose admission failed halfway: stored or waiting, if the event was written before the
/// failure. Jobs and the sweep do the remaining work.
pub(crate) async fn kept(forge: &Forge, id: &EventId) -> Result<Option<Answer>, Fault> {
    let stored = nostr::events::by_id(&mut *forge.store().read().await?, id.as_bytes()).await?;
    if stored.is_some_and(|found| !found.hidden) {
        return Ok(Some(Answer::Stored));
    }
    Ok(waits(forge, id).await?.then_some(Answer::Waiting))
}

/// Whether an event waited in purgatory for nothing, not long ago.
async fn expired(forge: &Forge, id: &EventId) -> Result<bool, Fault> {
    let until = purgatory::remembered(&mut *forge.store().read().await?, id.as_bytes()).await?;
    Ok(until.is_some_and(|until| until > forge.clock().now()))
}

/// Whether an event waits in purgatory.
pub(crate) async fn waits(forge: &Forge, id: &EventId) -> Result<bool, Fault> {
    Ok(purgatory::waits(&mut *forge.store().read().await?, id.as_bytes()).await?)
}
