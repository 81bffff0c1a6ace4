//! Finding a repository for the operator, whatever its state.

use crate::{Fault, Forge};
use abide_core::{RepoId, RepoName, UserName};
use abide_store::repos::{self, Repo};

/// The repository with that id, or the live one of that slug.
pub async fn for_operator(forge: &Forge, text: &str) -> Result<Option<Repo>, Fault> {
    let mut conn = forge.store().read().await?;
    if let Ok(id) = text.parse::<RepoId>() {
        return Ok(repos::by_id(&mut conn, id, None).await?);
    }
    let Some((owner, name)) = text.split_once('/') else { return Ok(None) };
    match (owner.parse::<UserName>(), name.parse::<RepoName>()) {
        (Ok(owner), Ok(name)) => Ok(repos::by_slug(&mut conn, &owner, &name, None).await?),
        _ => Ok(None),
    }
}
