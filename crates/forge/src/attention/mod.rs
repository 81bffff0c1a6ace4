//! Stars, watches and follows: [`star`], [`watch`], [`follow`].
//!
//! Each changes rows of the caller's own, so it needs a login and read access, and nothing of the repository changes but
//! its counters. A request that changes nothing emits no event, but counts against the caller's limit.

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
    /// The caller may not, or there is no such repository or account.
    #[error(transparent)]
    Access(#[from] Access),
    /// Nobody follows themselves.
    #[error("{}", FollowRefusal::Oneself)]
    Oneself,
    /// It was done too often of late.
    #[error("{}", throttle::wait(*.retry_after))]
    TooOften {
        /// How long to wait.
        retry_after: Duration,
    },
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

/// Counts one more action of an account; fails if that is one too many.
async fn count(tx: &mut Tx, scope: &'static str, rate: Rate, user: UserId) -> Result<(), AttentionError> {
    match throttles::hit(tx, throttle::limit(scope, rate), &format!("user:{user}")).await? {
        None => Ok(()),
        Some(retry_after) => Err(AttentionError::TooOften { retry_after }),
    }
}

/// Writes the audit row of what someone keeps for themselves. It belongs to the account: those who administer the
/// repository read its trail with addresses in it, and a stranger who stars it is none of theirs.
async fn audit_own(tx: &mut Tx, who: &Who, action: AuditAction, repo: &Repo, extra: Json) -> Result<(), StoreError> {
    let mut meta = json!({ "repo_id": repo.id.get(), "slug": repo.slug() });
    if let (Json::Object(meta), Json::Object(extra)) = (&mut meta, extra) {
        meta.extend(extra);
    }
    audit_account(tx, who, action, meta).await
}

/// The account that the policy has let through.
fn account(user: Option<UserId>) -> Result<UserId, AttentionError> {
    user.ok_or_else(|| Access::Denied(DenyCode::LoginRequired).into())
}
