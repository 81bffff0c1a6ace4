//! Repositories as lists show them, each with the visitor's star.

use super::visitor::Visitor;
use crate::App;
use abide_forge::Fault;
use abide_forge::repos::Repo;
use abide_forge::social::star;

/// A repository in a list.
pub(crate) struct Listed {
    pub repo: Repo,
    /// Whether the visitor stars it.
    pub starred: bool,
}

impl Listed {
    /// A page of them, in the order given.
    pub(crate) async fn all(app: &App, visitor: &Visitor, repos: Vec<Repo>) -> Result<Vec<Self>, Fault> {
        let ids: Vec<_> = repos.iter().map(|repo| repo.id).collect();
        let starred = star::starred_among(&app.forge, &visitor.caller(), &ids).await?;
        Ok(repos.into_iter().map(|repo| Self { starred: starred.contains(&repo.id), repo }).collect())
    }
}
