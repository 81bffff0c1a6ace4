//! Stars, watches and follows: [`star`], [`watch`], [`follow`].
//!
//! Each changes only rows of the caller, and the counters of the repository, so it needs a login and read access. A request
//! that changes nothing emits no event, but counts against the caller's limit.

pub mod follow;
pub mod star;
pub mod watch;

use crate::emit::{AuditAction, Who, audit_account};
use crate::throttle;
use crate::{Access, Fault, Rate};
use abide_core::UserId;
use abide_core::attention::FollowRefusal;
use abide_core::policy::DenyCode;
use abide_store::repos::Repo;
use abide_store::{StoreError, Tx, throttles};
use serde_json::{Value as Json, json};
use std::time::Duration;

pub use abide_store::attention::lists::{Kept, Part, Person, SortKey};

/// Why nothing changed.
#[derive(Debug, thiserror::Error)]
pub enum AttentionError {
    /// The caller lacks permission, or the repository or account does not exist.
    #[error(transparent)]
    Access(#[from] Access),
    /// The caller tried to follow their own account.
    #[error("{}", FollowRefusal::Oneself)]
    Oneself,
    /// The account has reached its rate limit.
    #[error("{}", throttle::wait(*.retry_after))]
    TooOften { retry_after: Duration },
}

impl From<StoreError> for AttentionError {
    fn from(error: StoreError) -> Self {
        Self::Access(error.into())
    }
}

impl From<Fault> for AttentionError {
    fn from(fault: Fault) -> Self {
        Self::Access(fault.into())
    }
}

impl From<FollowRefusal> for AttentionError {
    fn from(refusal: FollowRefusal) -> Self {
        match refusal {
            FollowRefusal::LoginRequired => Access::Denied(DenyCode::LoginRequired).into(),
            FollowRefusal::Suspended => Access::Denied(DenyCode::Suspended).into(),
            FollowRefusal::Oneself => Self::Oneself,
        }
    }
}

/// Counts an action of an account against its rate limit.
async fn count(tx: &mut Tx, scope: &'static str, rate: Rate, user: UserId) -> Result<(), AttentionError> {
    match throttles::hit(tx, throttle::limit(scope, rate), &format!("user:{user}")).await? {
        None => Ok(()),
        Some(retry_after) => Err(AttentionError::TooOften { retry_after }),
    }
}

/// Writes the audit row of a star, watch or follow. It belongs to the account, because the audit trail of a repository
/// shows IP addresses to its admins, and they need not know those of people who star it.
async fn audit_own(tx: &mut Tx, who: &Who, action: AuditAction, repo: &Repo, extra: Json) -> Result<(), StoreError> {
    let mut meta = json!({ "repo_id": repo.id.get(), "slug": repo.slug() });
    if let (Json::Object(meta), Json::Object(extra)) = (&mut meta, extra) {
        meta.extend(extra);
    }
    audit_account(tx, who, action, meta).await
}

/// Account of a caller that the policy has admitted.
fn account(user: Option<UserId>) -> Result<UserId, AttentionError> {
    user.ok_or_else(|| Access::Denied(DenyCode::LoginRequired).into())
}
