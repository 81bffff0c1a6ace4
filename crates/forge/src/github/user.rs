//! People inside other shapes.

use crate::{Forge, attention, issues};
use abide_core::{Handle, UserId};
use abide_store::accounts::users;
use serde::Serialize;
use utoipa::ToSchema;

/// A user, as part of another object or in a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SimpleUser {
    login: String,
    id: i64,
    node_id: String,
    avatar_url: String,
    gravatar_id: String,
    url: String,
    html_url: String,
    repos_url: String,
    starred_url: String,
    followers_url: String,
    following_url: String,
    #[serde(rename = "type")]
    kind: &'static str,
    site_admin: bool,
}

impl SimpleUser {
    /// An account without a name was deleted; it appears under the name of the ghost.
    pub fn new(forge: &Forge, id: UserId, name: Option<&str>, site_admin: bool) -> Self {
        let login = name.map_or_else(|| Handle::ghost().to_string(), str::to_owned);
        let root = &forge.settings().public_url;
        let api = |tail: &str| format!("{root}/api/v3/users/{login}{tail}");
        Self {
            id: id.get(),
            node_id: format!("U_{id}"),
            avatar_url: String::new(),
            gravatar_id: String::new(),
            url: api(""),
            html_url: format!("{root}/{login}"),
            repos_url: api("/repos"),
            starred_url: api("/starred{/owner}{/repo}"),
            followers_url: api("/followers"),
            following_url: api("/following{/other_user}"),
            kind: "User",
            site_admin,
            login,
        }
    }

    pub fn of(forge: &Forge, user: &users::User) -> Self {
        Self::new(forge, user.id, user.handle().as_ref().map(Handle::as_str), user.site_admin)
    }

    /// The author of something, if it has one.
    pub fn author(forge: &Forge, id: Option<UserId>, name: Option<&Handle>) -> Option<Self> {
        id.map(|id| Self::new(forge, id, name.map(Handle::as_str), false))
    }

    /// Someone in a list of followers, stargazers or watchers.
    pub fn listed(forge: &Forge, person: &attention::Person) -> Self {
        Self::new(forge, person.id, person.name.as_ref().map(Handle::as_str), person.site_admin)
    }

    /// An assignee, or someone who can become one.
    pub fn assignee(forge: &Forge, person: &issues::Person) -> Self {
        Self::new(forge, person.id, person.name.as_ref().map(Handle::as_str), person.site_admin)
    }

    pub fn login(&self) -> &str {
        &self.login
    }
}
