//! Repositories, and who may do what with them.

use super::{SimpleUser, Urls, time};
use crate::App;
use crate::error::ApiError;
use abide_core::RepoId;
use abide_core::policy::Action;
use abide_core::repo::Role;
use abide_forge::issues::show as issues;
use abide_forge::repos::collaborators::Collaborator as Member;
use abide_forge::repos::open::{self, RepoLocator};
use abide_forge::repos::{Repo, fork, topics};
use abide_forge::{Access, Caller};
use serde::Serialize;
use std::collections::HashMap;
use utoipa::ToSchema;

/// A repository as the caller sees it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Repository {
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
    permissions: Permissions,
    topics: Vec<String>,
    has_issues: bool,
    /// The repository it was forked from, where one repository is shown and the caller may read that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(no_recursion)]
    parent: Option<Box<Repository>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(no_recursion)]
    source: Option<Box<Repository>>,
    #[serde(flatten)]
    addresses: Addresses,
    #[serde(flatten)]
    counts: Counts,
    #[serde(flatten)]
    not_offered: NotOffered,
}

/// Where its parts are.
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

/// How many there are of what.
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

/// Fields that GitHub's clients expect, for what a repository does not have here.
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

/// One repository, with what it was forked from.
pub(crate) async fn one(app: &App, caller: &Caller, repo: &Repo) -> Result<Repository, ApiError> {
    let parent = match repo.fork_of {
        Some(id) => readable(app, caller, id).await?,
        None => None,
    };
    let both: Vec<Repo> = std::iter::once(repo.clone()).chain(parent).collect();
    let mut shaped = page(app, caller, &both).await?.into_iter();
    let mut shape = shaped.next().ok_or_else(ApiError::internal)?;
    shape.parent = shaped.next().map(Box::new);
    shape.source.clone_from(&shape.parent);
    Ok(shape)
}

/// The repository with that id, if the caller may read it.
async fn readable(app: &App, caller: &Caller, id: RepoId) -> Result<Option<Repo>, ApiError> {
    match open::open(&app.forge, caller, &RepoLocator::Id(id.to_string()), Action::RepoRead).await {
        Ok(repo) => Ok(Some(repo)),
        Err(Access::Fault(fault)) => Err(fault.into()),
        Err(_) => Ok(None),
    }
}

/// Several repositories. What is not in their rows is loaded for all of them at once.
pub(crate) async fn page(app: &App, caller: &Caller, repos: &[Repo]) -> Result<Vec<Repository>, ApiError> {
    if repos.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<RepoId> = repos.iter().map(|repo| repo.id).collect();
    let mut topics = topics::of_many(&app.forge, &ids).await?;
    let forks = fork::counts(&app.forge, caller, &ids).await?;
    let issues = issues::open_of_many(&app.forge, &ids).await?;
    let shape = |repo: &Repo| {
        let topics = topics.remove(&repo.id).unwrap_or_default();
        let of = |counts: &HashMap<RepoId, i64>| counts.get(&repo.id).copied().unwrap_or(0);
        let counted = Counted { forks: of(&forks), issues: of(&issues) };
        Repository::new(app, caller, repo, topics.iter().map(ToString::to_string).collect(), counted)
    };
    Ok(repos.iter().map(shape).collect())
}

/// Counters beside a repository's row.
struct Counted {
    forks: i64,
    issues: i64,
}

impl Repository {
    fn new(app: &App, caller: &Caller, repo: &Repo, topics: Vec<String>, counted: Counted) -> Self {
        let owner = repo.owner();
        let owner = owner.as_ref().map(|handle| handle.as_str());
        Self {
            id: repo.id.get(),
            node_id: format!("R_{}", repo.id),
            name: repo.name.to_string(),
            full_name: repo.slug(),
            private: repo.is_private(),
            visibility: repo.visibility.as_str(),
            owner: SimpleUser::new(app, repo.owner_id, owner, false),
            description: (!repo.description.is_empty()).then(|| repo.description.clone()),
            fork: repo.fork_of.is_some(),
            size: repo.size_bytes / 1024,
            default_branch: repo.default_branch.as_branch().unwrap_or_default().to_owned(),
            archived: repo.is_archived(),
            pushed_at: repo.pushed_at.map(time),
            created_at: time(repo.created_at),
            updated_at: time(repo.updated_at),
            permissions: permissions(caller, repo),
            topics,
            has_issues: true,
            parent: None,
            source: None,
            addresses: Addresses::of(app, repo),
            counts: Counts {
                stargazers_count: repo.star_count,
                watchers_count: repo.star_count,
                watchers: repo.star_count,
                subscribers_count: repo.watcher_count,
                forks_count: counted.forks,
                forks: counted.forks,
                open_issues_count: counted.issues,
                open_issues: counted.issues,
            },
            not_offered: NotOffered::default(),
        }
    }
}

impl Addresses {
    fn of(app: &App, repo: &Repo) -> Self {
        let urls = Urls::of(app, repo);
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
            ssh_url: format!("{}/{}.git", app.forge.settings().ssh_url, repo.slug()),
            permalink: app.url(&format!("/r/{}", repo.id)),
        }
    }
}

/// Permissions of a user.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) struct Permissions {
    admin: bool,
    maintain: bool,
    push: bool,
    triage: bool,
    pull: bool,
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

/// Permissions of the caller in a repository.
fn permissions(caller: &Caller, repo: &Repo) -> Permissions {
    let can = |action| open::may(caller, repo, action);
    Permissions {
        admin: can(Action::RepoAdmin),
        maintain: can(Action::RepoEdit),
        push: can(Action::GitPush),
        triage: can(Action::IssueTriage),
        pull: can(Action::RepoRead),
    }
}

/// Someone who works on a repository that is not theirs.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Collaborator {
    #[serde(flatten)]
    user: SimpleUser,
    permissions: Permissions,
    role_name: &'static str,
}

impl Collaborator {
    pub(crate) fn of(app: &App, member: &Member) -> Self {
        let name = member.name.as_ref().map(|name| name.as_str());
        Self {
            user: SimpleUser::new(app, member.user_id, name, member.site_admin),
            permissions: member.role.into(),
            role_name: member.role.as_str(),
        }
    }
}

/// Role of a user.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Permission {
    pub permission: &'static str,
    pub role_name: &'static str,
    pub user: SimpleUser,
}

/// GitHub's words for a role: `read`, `write` and `admin`, and the exact one beside it.
pub(crate) fn legacy_permission(role: Option<Role>) -> &'static str {
    match role {
        None => "none",
        Some(Role::Read | Role::Triage) => "read",
        Some(Role::Write | Role::Maintain) => "write",
        Some(Role::Admin) => "admin",
    }
}

/// The topics of a repository.
#[derive(Debug, Clone, Serialize, serde::Deserialize, ToSchema)]
pub(crate) struct TopicNames {
    pub names: Vec<String>,
}

/// Result of a search.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Found {
    pub total_count: i64,
    pub incomplete_results: bool,
    pub items: Vec<Match>,
}

/// A repository that a search found.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Match {
    #[serde(flatten)]
    pub repository: Repository,
    pub score: f64,
}
