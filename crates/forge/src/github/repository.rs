//! Repositories.

use super::{SimpleUser, Urls, or_null, time};
use crate::Forge;
use abide_core::Handle;
use abide_core::repo::Role;
use abide_store::repos::Repo;
use serde::Serialize;
use utoipa::ToSchema;

/// A repository.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Repository {
    id: i64,
    node_id: String,
    name: String,
    full_name: String,
    private: bool,
    visibility: &'static str,
    owner: SimpleUser,
    description: Option<String>,
    fork: bool,
    size: i64,
    default_branch: String,
    archived: bool,
    pushed_at: Option<String>,
    created_at: String,
    updated_at: String,
    // API only: a payload has no caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Permissions, required)]
    permissions: Option<Permissions>,
    topics: Vec<String>,
    has_issues: bool,
    /// The repository that it was forked from, if the caller can read it; lists leave it out.
    // API only: the parent may be invisible to those who read a payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(no_recursion)]
    pub parent: Option<Box<Repository>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(no_recursion)]
    pub source: Option<Box<Repository>>,
    #[serde(flatten)]
    addresses: Addresses,
    #[serde(flatten)]
    counts: Counts,
    #[serde(flatten)]
    not_offered: NotOffered,
}

/// URLs of a repository.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct Addresses {
    html_url: String,
    url: String,
    collaborators_url: String,
    branches_url: String,
    tags_url: String,
    commits_url: String,
    compare_url: String,
    contents_url: String,
    forks_url: String,
    stargazers_url: String,
    subscribers_url: String,
    subscription_url: String,
    hooks_url: String,
    issues_url: String,
    issue_comment_url: String,
    labels_url: String,
    milestones_url: String,
    assignees_url: String,
    git_refs_url: String,
    git_commits_url: String,
    git_tags_url: String,
    trees_url: String,
    blobs_url: String,
    clone_url: String,
    git_url: String,
    ssh_url: String,
    permalink: String,
}

/// Counters of a repository.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct Counts {
    stargazers_count: i64,
    watchers_count: i64,
    watchers: i64,
    subscribers_count: i64,
    forks_count: i64,
    forks: i64,
    open_issues_count: i64,
    open_issues: i64,
}

/// Fields of GitHub for features that do not exist here. Clients expect them.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
struct NotOffered {
    homepage: Option<String>,
    language: Option<String>,
    license: Option<String>,
    has_projects: bool,
    has_wiki: bool,
    has_pages: bool,
    has_downloads: bool,
    disabled: bool,
    is_template: bool,
}

/// Counters that are not in a repository's row.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    pub forks: i64,
    pub open_issues: i64,
}

impl Repository {
    /// `permissions` are those of the caller of the API; a payload has none.
    pub fn new(
        forge: &Forge,
        repo: &Repo,
        topics: Vec<String>,
        counted: Counted,
        permissions: Option<Permissions>,
    ) -> Self {
        Self {
            id: repo.id.get(),
            node_id: format!("R_{}", repo.id),
            name: repo.name.to_string(),
            full_name: repo.slug(),
            private: repo.is_private(),
            visibility: repo.visibility.as_str(),
            owner: SimpleUser::new(forge, repo.owner_id, repo.owner().as_ref().map(Handle::as_str), false),
            description: or_null(&repo.description),
            fork: repo.fork_of.is_some(),
            size: repo.size_bytes / 1024,
            default_branch: repo.default_branch.as_branch().unwrap_or_default().to_owned(),
            archived: repo.is_archived(),
            pushed_at: repo.pushed_at.map(time),
            created_at: time(repo.created_at),
            updated_at: time(repo.updated_at),
            permissions,
            topics,
            has_issues: true,
            parent: None,
            source: None,
            addresses: Addresses::of(forge, repo),
            counts: Counts {
                stargazers_count: repo.star_count,
                watchers_count: repo.star_count,
                watchers: repo.star_count,
                subscribers_count: repo.watcher_count,
                forks_count: counted.forks,
                forks: counted.forks,
                open_issues_count: counted.open_issues,
                open_issues: counted.open_issues,
            },
            not_offered: NotOffered::default(),
        }
    }

    pub fn default_branch(&self) -> &str {
        &self.default_branch
    }
}

impl Addresses {
    fn of(forge: &Forge, repo: &Repo) -> Self {
        let (urls, settings) = (Urls::of(forge, repo), forge.settings());
        Self {
            html_url: urls.page(""),
            url: urls.api(""),
            collaborators_url: urls.api("/collaborators{/collaborator}"),
            branches_url: urls.api("/branches{/branch}"),
            tags_url: urls.api("/tags"),
            commits_url: urls.api("/commits{/sha}"),
            compare_url: urls.api("/compare/{base}...{head}"),
            contents_url: urls.api("/contents/{+path}"),
            forks_url: urls.api("/forks"),
            stargazers_url: urls.api("/stargazers"),
            subscribers_url: urls.api("/subscribers"),
            subscription_url: urls.api("/subscription"),
            hooks_url: urls.api("/hooks"),
            issues_url: urls.api("/issues{/number}"),
            issue_comment_url: urls.api("/issues/comments{/number}"),
            labels_url: urls.api("/labels{/name}"),
            milestones_url: urls.api("/milestones{/number}"),
            assignees_url: urls.api("/assignees{/user}"),
            git_refs_url: urls.api("/git/refs{/sha}"),
            git_commits_url: urls.api("/git/commits{/sha}"),
            git_tags_url: urls.api("/git/tags{/sha}"),
            trees_url: urls.api("/git/trees{/sha}"),
            blobs_url: urls.api("/git/blobs{/sha}"),
            clone_url: urls.page(".git"),
            git_url: urls.page(".git"),
            ssh_url: format!("{}/{}.git", settings.ssh_url, repo.slug()),
            permalink: format!("{}/r/{}", settings.public_url, repo.id),
        }
    }
}

/// Permissions of a user.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct Permissions {
    pub admin: bool,
    pub maintain: bool,
    pub push: bool,
    pub triage: bool,
    pub pull: bool,
}

impl From<Role> for Permissions {
    fn from(role: Role) -> Self {
        Self {
            pull: true,
            triage: role >= Role::Triage,
            push: role >= Role::Write,
            maintain: role >= Role::Maintain,
            admin: role >= Role::Admin,
        }
    }
}
