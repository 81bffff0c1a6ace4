//! Repositories with the caller's permissions, and collaborators.

use super::{Permissions, Repository, SimpleUser};
use crate::App;
use crate::error::ApiError;
use abide_core::RepoId;
use abide_core::policy::Action;
use abide_core::repo::Role;
use abide_forge::github::Counted;
use abide_forge::issues::show as issues;
use abide_forge::repos::collaborators::Collaborator as Member;
use abide_forge::repos::open::{self, RepoLocator};
use abide_forge::repos::{Repo, fork, topics};
use abide_forge::{Access, Caller};
use serde::Serialize;
use std::collections::HashMap;
use utoipa::ToSchema;

/// One repository, with its parent if it is a fork.
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

/// Several repositories. Topics and counters are loaded with one statement for all of them.
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
        let counted = Counted { forks: of(&forks), open_issues: of(&issues) };
        let topics = topics.iter().map(ToString::to_string).collect();
        Repository::new(&app.forge, repo, topics, counted, Some(permissions(caller, repo)))
    };
    Ok(repos.iter().map(shape).collect())
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

/// A collaborator of a repository.
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
            user: SimpleUser::new(&app.forge, member.user_id, name, member.site_admin),
            permissions: member.role.into(),
            role_name: member.role.as_str(),
        }
    }
}

/// Role of a user in a repository.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Permission {
    pub permission: &'static str,
    pub role_name: &'static str,
    pub user: SimpleUser,
}

/// GitHub's three legacy permissions for a role.
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

/// Result of a search for repositories.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Found {
    pub total_count: i64,
    pub incomplete_results: bool,
    pub items: Vec<Match>,
}

/// A repository in the result of a search.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Match {
    #[serde(flatten)]
    pub repository: Repository,
    pub score: f64,
}
