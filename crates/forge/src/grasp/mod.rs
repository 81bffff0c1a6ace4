//! Repositories that are governed by signed events.

use crate::{Fault, Forge};
use abide_nostr::grasp::{Answer, Parsed, Prefix, Refusal};
use abide_nostr::{Event, EventId};
use std::net::IpAddr;

/// Whether an event is kept without being served.
pub(crate) async fn waits(_forge: &Forge, _id: &EventId) -> Result<bool, Fault> {
    Ok(false)
}

/// Decides about announcements, states, proposals and deletions, and does what follows.
pub(crate) async fn admit(
    _forge: &Forge,
    _event: &Event,
    _parsed: Parsed,
    _from: Option<IpAddr>,
) -> Result<Answer, Fault> {
    Ok(Answer::Refused(Refusal::new(Prefix::Restricted, "this server takes no repositories over nostr yet")))
}
