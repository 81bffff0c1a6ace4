//! Users, their e-mail addresses and SSH keys.

use super::{SimpleUser, time};
use crate::App;
use abide_forge::accounts::{self, SshKey, emails};
use serde::Serialize;
use utoipa::ToSchema;

/// The public profile of a user.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct User {
    #[serde(flatten)]
    simple: SimpleUser,
    name: Option<String>,
    company: Option<String>,
    blog: String,
    location: Option<String>,
    email: Option<String>,
    bio: Option<String>,
    public_repos: i64,
    followers: i64,
    following: i64,
    created_at: String,
    updated_at: String,
}

/// Counters of a profile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    pub public_repos: i64,
    pub followers: i64,
    pub following: i64,
}

impl User {
    pub(crate) fn of(app: &App, user: &accounts::User, counts: Counts) -> Self {
        Self {
            simple: SimpleUser::of(&app.forge, user),
            name: user.display_name.clone(),
            company: None,
            blog: user.website.clone(),
            location: some(&user.location),
            email: None,
            bio: some(&user.bio),
            public_repos: counts.public_repos,
            followers: counts.followers,
            following: counts.following,
            created_at: time(user.created_at),
            updated_at: time(user.updated_at),
        }
    }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// The authenticated user.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct OwnUser {
    #[serde(flatten)]
    user: User,
    two_factor_authentication: bool,
}

impl OwnUser {
    pub(crate) fn of(app: &App, account: &accounts::User, counts: Counts) -> Self {
        let user = User { email: account.email.clone(), ..User::of(app, account, counts) };
        Self { user, two_factor_authentication: false }
    }
}

/// An e-mail address of the caller.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Email {
    email: String,
    primary: bool,
    verified: bool,
    visibility: Option<&'static str>,
}

impl Email {
    /// No e-mail address is shown to others.
    pub(crate) fn of(email: &emails::Email) -> Self {
        Self {
            email: email.address.clone(),
            primary: email.is_primary,
            verified: email.verified_at.is_some(),
            visibility: email.is_primary.then_some("private"),
        }
    }
}

/// An SSH key.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Key {
    id: i64,
    key: String,
    title: String,
    url: String,
    created_at: String,
    last_used: Option<String>,
    verified: bool,
    read_only: bool,
}

impl Key {
    pub(crate) fn of(app: &App, key: &SshKey) -> Self {
        Self {
            id: key.id,
            key: key.public_key.clone(),
            title: key.title.clone(),
            url: app.url(&format!("/api/v3/user/keys/{}", key.id)),
            created_at: time(key.created_at),
            last_used: key.last_used_at.map(time),
            verified: true,
            read_only: false,
        }
    }
}
