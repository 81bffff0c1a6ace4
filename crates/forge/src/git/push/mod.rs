//! Pushes: we implement receive-pack; git does the heavy steps.
//!
//! 1. [`admit`] asks the policy before a byte is read, [`receive`] reads the commands and judges them.
//! 2. The pack arrives in its own area, without any lock: a slow or hostile client holds nothing.
//! 3. `apply.rs`: lease, intent row, objects, one ref transaction, finish row with event and audit. This runs in its
//!    own task that shutdown waits for; a client that disconnects does not stop it.
//! 4. After a crash, [`super::reconcile`] finishes or aborts the running pushes.
//!
//! `authority.rs`: who decides about a push. The caller's role does so here; for repositories that signed events govern,
//! [`crate::grasp`] implements the same traits.

pub(crate) mod apply;
pub(crate) mod authority;
pub(crate) mod conversation;
mod details;
mod own;
mod verdicts;

use super::{ProtocolVersion, RefList, Transport, fetch, moved_hint};
use crate::open::{RepoCoordinate, RepoLocator, judge, judge_decision, open};
use crate::{Access, Caller, Fault, Forge};
use abide_core::RepoId;
use abide_core::policy::{Action, Actor, DenyCode, can_push_by_events};
use abide_core::repo::Governance;
use abide_core::scope::Scope;
use abide_macros::boxed;
use abide_nostr::PublicKey;
use abide_store::nostr::{self, purgatory};
use abide_store::repos::Repo;

pub(crate) use apply::{KeywordSearch, finish, first_default};
pub use authority::Input;
pub use conversation::{receive, refuse};
pub(crate) use details::{Brought, brought};
pub(crate) use own::own;
pub(crate) use verdicts::Verdicts;

/// A push that the policy allows, or that signed events may allow.
#[derive(Debug, Clone)]
pub struct PushAdmission {
    target: Target,
    /// Message for the user.
    pub hint: Option<String>,
    caller: Caller,
    transport: Transport,
}

/// Target of a push, and its authority.
#[derive(Debug, Clone)]
enum Target {
    /// The caller's role.
    Account(Repo),
    /// Signed events.
    Signed {
        coordinate: RepoCoordinate,
        /// Id of the repository, or the id reserved for it.
        id: RepoId,
        /// `None` until it leaves purgatory.
        repo: Option<Repo>,
    },
}

/// Opens a repository for pushing. Where signed events govern, they decide for every caller and transport.
#[boxed]
pub async fn admit(
    forge: &Forge,
    caller: &Caller,
    locator: &RepoLocator,
    transport: Transport,
) -> Result<PushAdmission, Access> {
    caller.ensure_scope(Scope::Repo)?;
    let admission = |target, hint| PushAdmission { target, hint, caller: caller.clone(), transport };
    if let RepoLocator::Nostr { owner, identifier } = locator {
        let coordinate = RepoCoordinate { owner: *owner, identifier: identifier.clone() };
        let mut conn = forge.store().read().await?;
        let found = nostr::repos::by_coordinate(&mut conn, owner.as_bytes(), identifier, None).await?;
        drop(conn);
        let target = match found {
            Some(repo) => signed_target(coordinate, repo)?,
            None => waiting_target(forge, coordinate).await?,
        };
        return Ok(admission(target, None));
    }
    let repo = open(forge, caller, locator, Action::RepoRead).await?;
    let hint = moved_hint(forge, locator, &repo, transport);
    if repo.governance == Governance::Nostr {
        if let Actor::User { suspended: true, .. } = caller.actor {
            return Err(Access::Denied(DenyCode::Suspended));
        }
        let found = nostr::repos::coordinate(&mut *forge.store().read().await?, repo.id).await?;
        let (owner, identifier) = found.ok_or(Access::NotFound)?;
        let coordinate = RepoCoordinate { owner: PublicKey::from_byte_array(owner), identifier };
        return Ok(admission(signed_target(coordinate, repo)?, hint));
    }
    judge(caller, Some(repo.clone()), Action::GitPush)?;
    Ok(admission(Target::Account(repo), hint))
}

/// A served repository that signed events govern.
fn signed_target(coordinate: RepoCoordinate, repo: Repo) -> Result<Target, Access> {
    judge_decision(can_push_by_events(&repo.facts()))?;
    Ok(Target::Signed { coordinate, id: repo.id, repo: Some(repo) })
}

/// A repository in purgatory.
async fn waiting_target(forge: &Forge, coordinate: RepoCoordinate) -> Result<Target, Access> {
    let mut conn = forge.store().read().await?;
    let waiting = purgatory::announcement(&mut conn, coordinate.owner.as_bytes(), &coordinate.identifier).await?;
    let id = waiting.and_then(|entry| entry.repo_id).ok_or(Access::NotFound)?;
    Ok(Target::Signed { coordinate, id, repo: None })
}

/// First response to the client.
#[boxed]
pub async fn advertisement(
    forge: &Forge,
    admission: &PushAdmission,
    version: ProtocolVersion,
) -> Result<RefList, Fault> {
    match &admission.target {
        Target::Account(repo) | Target::Signed { repo: Some(repo), .. } => {
            fetch::push_advertisement(forge, repo, version).await
        }
        Target::Signed { repo: None, .. } => Ok(fetch::empty_push_advertisement(version)),
    }
}

/// A unique key for an incoming area, with this node's prefix.
pub(crate) fn incoming_key(forge: &Forge) -> String {
    let mut random = [0; 12];
    forge.random().fill(&mut random);
    format!("{}{}", forge.node().incoming_prefix(), hex::encode(random))
}
