//! Stars, watches and follows.

use super::{Repository, SimpleUser, Urls, time};
use crate::App;
use abide_core::WatchLevel;
use abide_forge::attention::Person;
use abide_forge::attention::watch::Choice;
use abide_forge::repos::Repo;
use serde::Serialize;
use utoipa::ToSchema;

/// A user who starred a repository.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Stargazer {
    starred_at: String,
    user: SimpleUser,
}

impl Stargazer {
    pub(crate) fn of(app: &App, person: &Person) -> Self {
        Self { starred_at: time(person.since), user: SimpleUser::listed(&app.forge, person) }
    }
}

/// A starred repository with the time of the star.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Starred {
    pub starred_at: String,
    pub repo: Repository,
}

/// The caller's subscription to a repository. `level` is the exact watch level; `subscribed` and `ignored` are GitHub's
/// fields for it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Subscription {
    subscribed: bool,
    ignored: bool,
    level: &'static str,
    reason: Option<String>,
    created_at: String,
    url: String,
    repository_url: String,
}

impl Subscription {
    pub(crate) fn of(app: &App, repo: &Repo, choice: Choice) -> Self {
        let urls = Urls::of(&app.forge, repo);
        Self {
            subscribed: choice.level.watches(),
            ignored: choice.level == WatchLevel::Ignore,
            level: choice.level.as_str(),
            reason: None,
            created_at: time(choice.at),
            url: urls.api("/subscription"),
            repository_url: urls.api(""),
        }
    }
}
