//! Lists of repositories. One predicate decides what the viewer may see, for the list and for its count.

use crate::open::viewer;
use crate::{Caller, Fault, Forge};
use abide_core::{RepoId, UserId};
use abide_macros::boxed;
use abide_store::repos::{self, Page, Repo};

/// An owner's repositories that the caller may read, and their total number.
#[boxed]
pub async fn of_owner(forge: &Forge, caller: &Caller, owner: UserId, page: Page) -> Result<(Vec<Repo>, i64), Fault> {
    Ok(repos::of_owner(&mut *forge.store().read().await?, owner, viewer(caller), page).await?)
}

/// Repositories that a user owns or collaborates on, and their total number.
#[boxed]
pub async fn of_member(forge: &Forge, user: UserId, page: Page) -> Result<(Vec<Repo>, i64), Fault> {
    Ok(repos::of_member(&mut *forge.store().read().await?, user, page).await?)
}

/// A page of all repositories by id, for the operator.
#[boxed]
pub async fn everything(forge: &Forge, after: RepoId, limit: i64) -> Result<Vec<Repo>, Fault> {
    Ok(repos::page(&mut *forge.store().read().await?, after, limit).await?)
}

/// Path of the bare repository, for the operator.
pub fn path(forge: &Forge, repo: &Repo) -> std::path::PathBuf {
    forge.layout().repo(repo.id)
}
