//! Users, repositories and keys as JSON, with the names that GitHub gave their fields.

use crate::App;
use abide_core::policy::Action;
use abide_core::repo::{Role, Visibility};
use abide_core::{Timestamp, UserId};
use abide_forge::Caller;
use abide_forge::accounts::{SshKey, User};
use abide_forge::repos::{Repo, open};
use serde_json::{Value, json};

fn time(at: Timestamp) -> String {
    at.to_string()
}

/// A user as it stands inside other things.
pub(super) fn simple_user(app: &App, id: UserId, name: Option<&str>, site_admin: bool) -> Value {
    let login = name.map_or_else(|| format!("~{id}"), str::to_owned);
    let api = |tail: &str| app.url(&format!("/api/v3/users/{login}{tail}"));
    json!({
        "login": login,
        "id": id.get(),
        "node_id": format!("U_{id}"),
        "avatar_url": "",
        "gravatar_id": "",
        "url": api(""),
        "html_url": app.url(&format!("/{login}")),
        "repos_url": api("/repos"),
        "type": "User",
        "site_admin": site_admin,
    })
}

/// A user as everyone sees them.
pub(super) fn user(app: &App, user: &User, public_repos: i64) -> Value {
    let name = user.name.as_ref().map(|name| name.as_str());
    let mut value = simple_user(app, user.id, name, user.site_admin);
    let more = json!({
        "name": user.display_name,
        "company": null,
        "blog": "",
        "location": null,
        "email": null,
        "bio": null,
        "public_repos": public_repos,
        "followers": 0,
        "following": 0,
        "created_at": time(user.created_at),
        "updated_at": time(user.updated_at),
    });
    merge(&mut value, more);
    value
}

/// A user as they see themselves.
pub(super) fn own_user(app: &App, account: &User, public_repos: i64) -> Value {
    let mut value = user(app, account, public_repos);
    merge(&mut value, json!({ "email": account.email, "two_factor_authentication": false }));
    value
}

/// A repository as the caller sees it.
pub(super) fn repo(app: &App, caller: &Caller, repo: &Repo) -> Value {
    let slug = repo.slug();
    let api = |tail: &str| app.url(&format!("/api/v3/repos/{slug}{tail}"));
    let owner = repo.owner_name.as_ref().map(|name| name.as_str());
    let can = |action| open::may(caller, repo, action);
    let mut value = json!({
        "id": repo.id.get(),
        "node_id": format!("R_{}", repo.id),
        "name": repo.name.as_str(),
        "full_name": slug,
        "private": repo.visibility == Visibility::Private,
        "visibility": repo.visibility.as_str(),
        "owner": simple_user(app, repo.owner_id, owner, false),
        "description": (!repo.description.is_empty()).then_some(&repo.description),
        "fork": repo.fork_of.is_some(),
        "size": repo.size_bytes / 1024,
        "default_branch": repo.default_branch.as_branch(),
        "archived": repo.archived_at.is_some(),
        "pushed_at": repo.pushed_at.map(time),
        "created_at": time(repo.created_at),
        "updated_at": time(repo.updated_at),
        "permissions": {
            "admin": can(Action::RepoAdmin),
            "maintain": can(Action::RepoEdit),
            "push": can(Action::GitPush),
            "triage": can(Action::IssueTriage),
            "pull": can(Action::RepoRead),
        },
    });
    let addresses = json!({
        "html_url": app.url(&format!("/{slug}")),
        "url": api(""),
        "collaborators_url": api("/collaborators{/collaborator}"),
        "branches_url": api("/branches{/branch}"),
        "tags_url": api("/tags"),
        "commits_url": api("/commits{/sha}"),
        "contents_url": api("/contents/{+path}"),
        "clone_url": app.url(&format!("/{slug}.git")),
        "git_url": app.url(&format!("/{slug}.git")),
        "ssh_url": format!("{}/{slug}.git", app.forge.settings().ssh_url),
        "permalink": app.url(&format!("/r/{}", repo.id)),
    });
    let counts = json!({
        "stargazers_count": repo.star_count,
        "watchers_count": repo.star_count,
        "watchers": repo.star_count,
        "subscribers_count": repo.watcher_count,
        "forks_count": 0,
        "forks": 0,
        "open_issues_count": 0,
        "open_issues": 0,
    });
    merge(&mut value, addresses);
    merge(&mut value, counts);
    merge(&mut value, not_offered());
    value
}

/// Fields that GitHub's clients expect, for what a repository does not have here.
fn not_offered() -> Value {
    json!({
        "homepage": null,
        "language": null,
        "license": null,
        "topics": [],
        "has_issues": false,
        "has_projects": false,
        "has_wiki": false,
        "has_pages": false,
        "has_downloads": false,
        "disabled": false,
        "is_template": false,
    })
}

/// GitHub's words for a role: `read`, `write` and `admin`, and the exact one beside it.
pub(super) fn legacy_permission(role: Option<Role>) -> &'static str {
    match role {
        None => "none",
        Some(Role::Read | Role::Triage) => "read",
        Some(Role::Write | Role::Maintain) => "write",
        Some(Role::Admin) => "admin",
    }
}

/// What a role allows, as GitHub lists it.
pub(super) fn role_permissions(role: Role) -> Value {
    json!({
        "pull": true,
        "triage": role >= Role::Triage,
        "push": role >= Role::Write,
        "maintain": role >= Role::Maintain,
        "admin": role >= Role::Admin,
    })
}

/// A public key.
pub(super) fn key(app: &App, key: &SshKey) -> Value {
    json!({
        "id": key.id,
        "key": key.public_key,
        "title": key.title,
        "url": app.url(&format!("/api/v3/user/keys/{}", key.id)),
        "created_at": time(key.created_at),
        "last_used": key.last_used_at.map(time),
        "verified": true,
        "read_only": false,
    })
}

fn merge(value: &mut Value, more: Value) {
    if let (Value::Object(value), Value::Object(more)) = (value, more) {
        value.extend(more);
    }
}
