//! Repositories and people, with the fields that the API gives them.

use crate::Forge;
use abide_core::repo::{Governance, Visibility};
use abide_core::{Handle, RepoId, RepoName, Timestamp, UserId, UserName, time};
use abide_store::events::Numbered;
use abide_store::repos::{Repo, Viewer};
use abide_store::{StoreError, Tx, forks, issues, topics};
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

/// What happens by itself, or by its operator's hand, is the server's doing.
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
        "private": repo.visibility == Visibility::Private,
        "visibility": repo.visibility.as_str(),
        "owner": person(forge, repo.owner_id, repo.owner().as_ref(), false),
        "description": (!repo.description.is_empty()).then_some(&repo.description),
        "fork": repo.fork_of.is_some(),
        "size": repo.size_bytes / 1024,
        "default_branch": repo.default_branch.as_branch().unwrap_or_default(),
        "archived": repo.archived_at.is_some(),
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

/// What a change of the repository changed, where GitHub says so.
pub(super) fn changes(forge: &Forge, action: Option<&str>, told: &Json) -> Option<Json> {
    match action? {
        "renamed" => Some(json!({ "repository": { "name": { "from": told["old_name"] } } })),
        "transferred" => {
            let from = UserId::new(told["from_id"].as_i64()?);
            let name = told["from"].as_str().map(|name| Handle::from_stored(name.to_owned()));
            Some(json!({ "owner": { "from": { "user": person(forge, from, name.as_ref(), false) } } }))
        }
        _ => None,
    }
}

/// A repository that went before its event was taken in: what every event keeps of it.
pub(super) fn remembered(event: &Numbered, told: &Json) -> Option<Repo> {
    let (owner, name) = told["slug"].as_str()?.split_once('/')?;
    from_snapshot(&json!({
        "id": told["repo_id"],
        "slug": told["slug"],
        "owner_id": 0,
        "name": name,
        "visibility": if event.public { Visibility::Public } else { Visibility::Private }.as_str(),
        "governance": Governance::Account.as_str(),
        "default_branch": "refs/heads/main",
    }))
    .filter(|_| !owner.is_empty())
}

/// A repository that is gone, from what its last event keeps of it.
pub(super) fn from_snapshot(kept: &Json) -> Option<Repo> {
    let time = |name: &str| kept[name].as_str().and_then(time::parse_rfc3339);
    let (owner, name) = kept["slug"].as_str()?.split_once('/')?;
    let key = owner.starts_with("npub1").then(|| owner.to_owned());
    let identifier = key.as_ref().map(|_| percent_decode_str(name).decode_utf8_lossy().into_owned());
    Some(Repo {
        id: RepoId::new(kept["id"].as_i64()?),
        owner_id: UserId::new(kept["owner_id"].as_i64()?),
        owner_name: (key.is_none() && !owner.starts_with('~')).then(|| UserName::from_stored(owner.to_owned())),
        owner_npub: key,
        identifier,
        name: RepoName::from_stored(kept["name"].as_str()?.to_owned()),
        description: kept["description"].as_str().unwrap_or_default().to_owned(),
        visibility: kept["visibility"].as_str()?.parse().ok()?,
        governance: kept["governance"].as_str()?.parse().ok()?,
        default_branch: kept["default_branch"].as_str()?.parse().ok()?,
        archived_at: time("archived_at"),
        deleted_at: time("deleted_at"),
        fork_of: kept["fork_of"].as_i64().map(RepoId::new),
        refs_generation: 0,
        star_count: kept["star_count"].as_i64().unwrap_or(0),
        watcher_count: kept["watcher_count"].as_i64().unwrap_or(0),
        size_bytes: kept["size_bytes"].as_i64().unwrap_or(0),
        pushed_at: time("pushed_at"),
        created_at: time("created_at").unwrap_or(Timestamp::from_micros(0)),
        updated_at: time("updated_at").or_else(|| time("deleted_at")).unwrap_or(Timestamp::from_micros(0)),
        role: None,
    })
}
