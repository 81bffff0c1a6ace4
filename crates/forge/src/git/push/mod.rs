//! Pushing: we are receive-pack; git does the heavy steps.
//!
//! 1. [`admit`] asks the policy before a byte is read, [`receive`] reads the commands and judges them.
//! 2. The pack arrives in an area of its own, without any lock: a slow or hostile client holds nothing.
//! 3. `commit.rs`: lease, intent row, objects, one ref transaction, finish row with event and audit. This runs in a task
//!    of its own that shutdown waits for; a client that goes away does not stop it.
//! 4. After a crash, [`super::reconcile`] finishes or aborts what was running.

mod commit;
mod conversation;
mod own;

use super::{ProtocolVersion, Transport, fetch, moved_hint};
use crate::repos::open::{Door, open};
use crate::{Access, Caller, Fault, Forge};
use abide_core::policy::Action;
use abide_core::scope::Scope;
use abide_store::repos::Repo;
use bytes::Bytes;

pub(crate) use commit::finish;
pub use conversation::receive;
pub(crate) use own::own;

/// A push that the policy allows.
#[derive(Debug, Clone)]
pub struct Ticket {
    /// Where to.
    pub repo: Repo,
    /// What to tell the person at the other end.
    pub hint: Option<String>,
    caller: Caller,
    transport: Transport,
}

/// Opens a repository for pushing.
pub async fn admit(forge: &Forge, caller: &Caller, door: &Door, transport: Transport) -> Result<Ticket, Access> {
    caller.ensure_scope(Scope::Repo)?;
    let repo = open(forge, caller, door, Action::GitPush).await?;
    Ok(Ticket { hint: moved_hint(forge, door, &repo, transport), repo, caller: caller.clone(), transport })
}

/// What the client hears first.
pub async fn advertisement(forge: &Forge, ticket: &Ticket, version: ProtocolVersion) -> Result<Bytes, Fault> {
    fetch::push_advertisement(forge, &ticket.repo, version).await
}

/// A name for an incoming area that no other has, and that tells whose it is.
pub(crate) fn incoming_key(forge: &Forge) -> String {
    let mut random = [0; 12];
    forge.random().fill(&mut random);
    format!("{}{}", forge.node().incoming_prefix(), hex::encode(random))
}
