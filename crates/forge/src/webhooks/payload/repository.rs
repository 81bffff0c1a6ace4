//! Repositories and people, with the fields that the API gives them.

use crate::Forge;
use abide_core::event::{Body, Payload, RepoSnapshot, RepoThen, Transfer};
use abide_core::repo::{Governance, Visibility};
use abide_core::{Handle, RepoName, Timestamp, UserId, UserName};
use abide_store::events::Numbered;
use abide_store::repos::{Repo, Viewer};
use abide_store::repos::{forks, topics};
use abide_store::{StoreError, Tx, issues};
use percent_encoding::percent_decode_str;
use serde_json::{Value as Json, json};

/// Addresses of things in one repository.
pub(super) struct Urls {
    root: String,
    slug: String,
}

impl Urls {
    pub(super) fn of(forge: &Forge, repo: &Repo) -> Self {
        Self { root: forge.settings().public_url.clone(), slug: repo.slug() }
    }

    /// Below the repository in the API.
    pub(super) fn api(&self, tail: &str) -> String {
        format!("{}/api/v3/repos/{}{tail}", self.root, self.slug)
    }

    /// Below the repository's page.
    pub(super) fn page(&self, tail: &str) -> String {
        format!("{}/{}{tail}", self.root, self.slug)
    }
}

/// An account.
pub(super) fn person(forge: &Forge, id: UserId, name: Option<&Handle>, site_admin: bool) -> Json {
    let login = name.map_or_else(|| Handle::ghost().to_string(), ToString::to_string);
    let root = &forge.settings().public_url;
    let api = |tail: &str| format!("{root}/api/v3/users/{login}{tail}");
    json!({
        "login": login,
        "id": id.get(),
        "node_id": format!("U_{id}"),
        "avatar_url": "",
        "gravatar_id": "",
        "url": api(""),
        "html_url": format!("{root}/{login}"),
        "repos_url": api("/repos"),
        "starred_url": api("/starred{/owner}{/repo}"),
        "followers_url": api("/followers"),
        "following_url": api("/following{/other_user}"),
        "type": "User",
        "site_admin": site_admin,
    })
}

/// Sender of events that a background job or the operator caused.
pub(super) fn server(forge: &Forge) -> Json {
    json!({
        "login": "abide",
        "id": 0,
        "node_id": "U_0",
        "avatar_url": "",
        "gravatar_id": "",
        "url": forge.settings().public_url,
        "html_url": forge.settings().public_url,
        "type": "Bot",
        "site_admin": false,
    })
}

/// A repository. Forks are counted as strangers see them: private ones are their owners' business.
pub(super) async fn full(tx: &mut Tx, forge: &Forge, repo: &Repo) -> Result<Json, StoreError> {
    let stranger = Viewer { user: None, reads_everything: false };
    let forks = forks::counts(tx, &[repo.id], stranger).await?.remove(&repo.id).unwrap_or(0);
    let issues = issues::open_of_many(tx, &[repo.id]).await?.remove(&repo.id).unwrap_or(0);
    let topics: Vec<String> = topics::of_repo(tx, repo.id).await?.iter().map(ToString::to_string).collect();
    let mut shape = described(forge, repo);
    shape["topics"] = topics.into();
    for (name, count) in
        [("forks_count", forks), ("forks", forks), ("open_issues_count", issues), ("open_issues", issues)]
    {
        shape[name] = count.into();
    }
    if let (Json::Object(shape), Json::Object(addresses)) = (&mut shape, addresses(forge, repo)) {
        shape.extend(addresses);
    }
    Ok(shape)
}

fn described(forge: &Forge, repo: &Repo) -> Json {
    json!({
        "id": repo.id.get(),
        "node_id": format!("R_{}", repo.id),
        "name": repo.name.as_str(),
        "full_name": repo.slug(),
        "private": repo.is_private(),
        "visibility": repo.visibility.as_str(),
        "owner": person(forge, repo.owner_id, repo.owner().as_ref(), false),
        "description": (!repo.description.is_empty()).then_some(&repo.description),
        "fork": repo.fork_of.is_some(),
        "size": repo.size_bytes / 1024,
        "default_branch": repo.default_branch.as_branch().unwrap_or_default(),
        "archived": repo.is_archived(),
        "pushed_at": repo.pushed_at.map(|at| at.to_string()),
        "created_at": repo.created_at.to_string(),
        "updated_at": repo.updated_at.to_string(),
        "has_issues": true,
        "stargazers_count": repo.star_count,
        "watchers_count": repo.star_count,
        "watchers": repo.star_count,
        "subscribers_count": repo.watcher_count,
        "homepage": null,
        "language": null,
        "license": null,
        "has_projects": false,
        "has_wiki": false,
        "has_pages": false,
        "has_downloads": false,
        "disabled": false,
        "is_template": false,
    })
}

/// Where its parts are.
fn addresses(forge: &Forge, repo: &Repo) -> Json {
    let urls = Urls::of(forge, repo);
    json!({
        "html_url": urls.page(""),
        "url": urls.api(""),
        "collaborators_url": urls.api("/collaborators{/collaborator}"),
        "branches_url": urls.api("/branches{/branch}"),
        "tags_url": urls.api("/tags"),
        "commits_url": urls.api("/commits{/sha}"),
        "compare_url": urls.api("/compare/{base}...{head}"),
        "contents_url": urls.api("/contents/{+path}"),
        "forks_url": urls.api("/forks"),
        "stargazers_url": urls.api("/stargazers"),
        "subscribers_url": urls.api("/subscribers"),
        "subscription_url": urls.api("/subscription"),
        "hooks_url": urls.api("/hooks"),
        "issues_url": urls.api("/issues{/number}"),
        "issue_comment_url": urls.api("/issues/comments{/number}"),
        "labels_url": urls.api("/labels{/name}"),
        "milestones_url": urls.api("/milestones{/number}"),
        "assignees_url": urls.api("/assignees{/user}"),
        "git_refs_url": urls.api("/git/refs{/sha}"),
        "git_commits_url": urls.api("/git/commits{/sha}"),
        "git_tags_url": urls.api("/git/tags{/sha}"),
        "trees_url": urls.api("/git/trees{/sha}"),
        "blobs_url": urls.api("/git/blobs{/sha}"),
        "clone_url": urls.page(".git"),
        "git_url": urls.page(".git"),
        "ssh_url": format!("{}/{}.git", forge.settings().ssh_url, repo.slug()),
        "permalink": format!("{}/r/{}", forge.settings().public_url, repo.id),
    })
}

/// The owner before a transfer.
pub(super) fn owner_change(forge: &Forge, transfer: &Transfer) -> Json {
    let name = transfer.from.clone().map(Handle::from_stored);
    json!({ "owner": { "from": { "user": person(forge, transfer.from_id, name.as_ref(), false) } } })
}

/// A repository that is gone, as far as its event has it: the snapshot of its last event, or the names that every event
/// has.
pub(super) fn kept(event: &Numbered, body: &Body) -> Option<Repo> {
    if let Payload::RepoHardDeleted(deleted) = &body.payload
        && let Some(repo) = from_snapshot(&deleted.snapshot)
    {
        return Some(repo);
    }
    remembered(event, &body.repo)
}

fn remembered(event: &Numbered, repo: &RepoThen) -> Option<Repo> {
    let (owner, name) = repo.slug.as_deref()?.split_once('/')?;
    if owner.is_empty() {
        return None;
    }
    from_snapshot(&RepoSnapshot {
        id: repo.repo_id?,
        slug: format!("{owner}/{name}"),
        owner_id: UserId::new(0),
        name: name.to_owned(),
        visibility: if event.public { Visibility::Public } else { Visibility::Private },
        governance: Governance::Account,
        default_branch: "refs/heads/main".into(),
        fork_of: None,
        size_bytes: 0,
        star_count: 0,
        watcher_count: 0,
        created_at: None,
        updated_at: None,
        pushed_at: None,
        archived_at: None,
        deleted_at: None,
    })
}

fn from_snapshot(kept: &RepoSnapshot) -> Option<Repo> {
    let (owner, name) = kept.slug.split_once('/')?;
    let key = owner.starts_with("npub1").then(|| owner.to_owned());
    let identifier = key.as_ref().map(|_| percent_decode_str(name).decode_utf8_lossy().into_owned());
    Some(Repo {
        id: kept.id,
        owner_id: kept.owner_id,
        owner_name: (key.is_none() && !owner.starts_with('~')).then(|| UserName::from_stored(owner.to_owned())),
        owner_npub: key,
        identifier,
        name: RepoName::from_stored(kept.name.clone()),
        description: String::new(),
        visibility: kept.visibility,
        governance: kept.governance,
        default_branch: kept.default_branch.parse().ok()?,
        archived_at: kept.archived_at,
        deleted_at: kept.deleted_at,
        fork_of: kept.fork_of,
        refs_generation: 0,
        star_count: kept.star_count,
        watcher_count: kept.watcher_count,
        size_bytes: kept.size_bytes,
        pushed_at: kept.pushed_at,
        created_at: kept.created_at.unwrap_or(Timestamp::from_micros(0)),
        updated_at: kept.updated_at.or(kept.deleted_at).unwrap_or(Timestamp::from_micros(0)),
        role: None,
    })
}
