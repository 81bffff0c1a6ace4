//! What was done to a repository, as the audit log tells it.

use crate::{Access, Caller, Forge};
use abide_core::policy::Action;
use abide_store::audit;
use abide_store::repos::Repo;

pub use abide_store::audit::Named;

/// A page of what was done to a repository, newest first, behind a row.
pub async fn page(
    forge: &Forge,
    caller: &Caller,
    repo: &Repo,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<Named>, Access> {
    super::open::judge(caller, Some(repo.clone()), Action::AuditRead)?;
    let mut conn = forge.store().read().await?;
    Ok(audit::page_of_repo(&mut conn, repo.id, before.unwrap_or(i64::MAX), limit).await?)
}
