//! The audit log of a repository.

use crate::{Access, Caller, Forge};
use abide_core::policy::Action;
use abide_macros::boxed;
use abide_store::audit;
use abide_store::repos::Repo;

pub use abide_store::audit::Named;

/// A page of the audit log of a repository, newest first, before the row `before`.
#[boxed]
pub async fn page(
    forge: &Forge,
    caller: &Caller,
    repo: &Repo,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<Named>, Access> {
    crate::open::judge(caller, Some(repo.clone()), Action::AuditRead)?;
    let mut conn = forge.store().read().await?;
    Ok(audit::page_of_repo(&mut conn, repo.id, before.unwrap_or(i64::MAX), limit).await?)
}
