//! An event arrives that has to do with git data.

use super::{announce, deletion, proposal, state};
use crate::relay::deleted::{self, is_deleted};
use crate::{Fault, Forge};
use abide_nostr::grasp::{Answer, Parsed, Prefix, Refusal};
use abide_nostr::{Event, EventId};
use abide_store::purgatory;
use std::net::IpAddr;

/// Decides about an announcement, a state, a proposal or a deletion, and writes down what was decided.
pub(crate) async fn admit(forge: &Forge, event: &Event, parsed: Parsed, from: Option<IpAddr>) -> Result<Answer, Fault> {
    if !forge.settings().grasp.enabled && needs_git_data(&parsed) {
        let reason = "this server takes no repositories from nostr";
        return Ok(Answer::Refused(Refusal::new(Prefix::Restricted, reason)));
    }
    if matches!(parsed, Parsed::State(_) | Parsed::Proposal(_))
        && is_deleted(&mut *forge.store().read().await?, event).await?
    {
        return Ok(Answer::Refused(deleted::refusal()));
    }
    match parsed {
        Parsed::Announcement(announcement) => announce::admit(forge, event, announcement, from).await,
        Parsed::State(said) => state::admit(forge, event, said, from).await,
        Parsed::Proposal(proposed) => proposal::admit(forge, event, proposed, from).await,
        Parsed::Deletion(request) => deletion::admit(forge, event, request).await,
        Parsed::Profile | Parsed::Related => {
            Err(Fault::Internal("an event came to the wrong door: the relay decides about it".into()))
        }
    }
}

/// Whether an event asks for a repository or a commit here. Others are taken as comments are: a patch that is text, and the
/// wish to have one's own events deleted, which holds whatever is switched off.
fn needs_git_data(parsed: &Parsed) -> bool {
    match parsed {
        Parsed::Announcement(_) | Parsed::State(_) => true,
        Parsed::Proposal(proposal) => proposal.commit.is_some(),
        Parsed::Deletion(_) | Parsed::Profile | Parsed::Related => false,
    }
}

/// Whether an event waits in purgatory.
pub(crate) async fn waits(forge: &Forge, id: &EventId) -> Result<bool, Fault> {
    Ok(purgatory::waits(&mut *forge.store().read().await?, id.as_bytes()).await?)
}
