//! Repositories in lists, with the visitor's star and watch level.

use super::visitor::Visitor;
use crate::App;
use abide_core::WatchLevel;
use abide_forge::Fault;
use abide_forge::attention::{star, watch};
use abide_forge::repos::Repo;

/// A repository in a list.
pub(crate) struct Listed {
    pub repo: Repo,
    /// Whether the visitor stars it.
    pub starred: bool,
    pub level: WatchLevel,
}

impl Listed {
    /// Loads stars and watch levels for a page of repositories, keeping their order.
    pub(crate) async fn all(app: &App, visitor: &Visitor, repos: Vec<Repo>) -> Result<Vec<Self>, Fault> {
        let ids: Vec<_> = repos.iter().map(|repo| repo.id).collect();
        let caller = visitor.caller();
        let starred = star::starred_among(&app.forge, &caller, &ids).await?;
        let levels = watch::choices_among(&app.forge, &caller, &ids).await?;
        let listed = repos.into_iter().map(|repo| Self {
            starred: starred.contains(&repo.id),
            level: WatchLevel::current(levels.get(&repo.id).copied()),
            repo,
        });
        Ok(listed.collect())
    }

    /// Watch level that the button sets: all activity, or participating. Other levels are on the repository's page.
    pub(crate) fn other_level(&self) -> WatchLevel {
        match self.level {
            WatchLevel::Participating => WatchLevel::All,
            WatchLevel::All | WatchLevel::Ignore => WatchLevel::Participating,
        }
    }
}

/// Label of a watch level on buttons.
pub(crate) fn label(level: &WatchLevel) -> &'static str {
    match level {
        WatchLevel::All => "Watching",
        WatchLevel::Participating => "Watch",
        WatchLevel::Ignore => "Ignoring",
    }
}
