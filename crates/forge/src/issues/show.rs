//! An issue with its details and its timeline. The caller has opened the repository.

use super::IssueError;
use crate::open::viewer;
use crate::{Caller, Fault, Forge};
use abide_core::issues as rule;
use abide_core::policy::{self, IssueAction};
use abide_core::{IssueId, RepoId, Timestamp, UserId};
use abide_macros::boxed;
use abide_store::accounts::users;
use abide_store::issues::comments::{self, Comment, Order};
use abide_store::issues::labels::{self, Label};
use abide_store::issues::milestones::{self, Milestone};
use abide_store::issues::people::Person;
use abide_store::issues::timeline::Entry;
use abide_store::issues::{self, Counts, Issue};
use abide_store::repos::{Page, Repo, collaborators};
use abide_store::{Conn, StoreError};
use std::collections::HashMap;

/// An issue with its details.
#[derive(Debug, Clone)]
pub struct Detailed {
    pub issue: Issue,
    pub labels: Vec<Label>,
    pub assignees: Vec<Person>,
    pub milestone: Option<Milestone>,
}

/// The issue with a number from a URL; an invalid number is an unknown issue.
#[boxed]
pub async fn show(forge: &Forge, repo: &Repo, number: &str) -> Result<Issue, IssueError> {
    let found = match number_of(number) {
        Some(number) => issues::by_number(&mut *forge.store().read().await?, repo.id, number).await?,
        None => None,
    };
    found.ok_or(IssueError::NotFound("issue"))
}

/// Parses the number of an issue or a milestone.
pub fn number_of(text: &str) -> Option<i64> {
    text.parse::<IssueId>().ok().map(IssueId::get)
}

/// Details of several issues.
#[boxed]
pub async fn detailed(forge: &Forge, issues: Vec<Issue>) -> Result<Vec<Detailed>, Fault> {
    Ok(detailed_in(&mut *forge.store().read().await?, issues).await?)
}

/// As [`detailed`], on a connection.
pub(crate) async fn detailed_in(conn: &mut Conn, issues: Vec<Issue>) -> Result<Vec<Detailed>, StoreError> {
    let ids: Vec<_> = issues.iter().map(|issue| issue.id).collect();
    let mut labels = labels::of_many(conn, &ids).await?;
    let mut assignees = issues::people::assignees_of_many(conn, &ids).await?;
    let mut wanted: Vec<_> = issues.iter().filter_map(|issue| issue.milestone_id).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let milestones = milestones::by_ids(conn, &wanted).await?;
    let with = |issue: Issue| Detailed {
        labels: labels.remove(&issue.id).unwrap_or_default(),
        assignees: assignees.remove(&issue.id).unwrap_or_default(),
        milestone: milestones.iter().find(|found| Some(found.id) == issue.milestone_id).cloned(),
        issue,
    };
    Ok(issues.into_iter().map(with).collect())
}

/// Details of one issue.
#[boxed]
pub async fn detail(forge: &Forge, issue: Issue) -> Result<Detailed, Fault> {
    let mut one = detailed(forge, vec![issue]).await?;
    one.pop().ok_or_else(|| Fault::Internal("an issue was asked for and none came back".into()))
}

/// A page of an issue's timeline that the caller may see, and its total length.
#[boxed]
pub async fn timeline(forge: &Forge, caller: &Caller, issue: &Issue, page: Page) -> Result<(Vec<Entry>, i64), Fault> {
    Ok(issues::timeline::page(&mut *forge.store().read().await?, issue.id, viewer(caller), page).await?)
}

/// As [`timeline`], without comments and references.
#[boxed]
pub async fn changes(forge: &Forge, caller: &Caller, issue: &Issue, page: Page) -> Result<(Vec<Entry>, i64), Fault> {
    Ok(issues::timeline::changes(&mut *forge.store().read().await?, issue.id, viewer(caller), page).await?)
}

/// A page of an issue's comments, oldest first, and their total number.
#[boxed]
pub async fn comments(
    forge: &Forge,
    issue: &Issue,
    since: Option<Timestamp>,
    page: Page,
) -> Result<(Vec<Comment>, i64), Fault> {
    Ok(comments::of_issue(&mut *forge.store().read().await?, issue.id, since, page).await?)
}

/// A page of the comments on all issues of a repository, and their number (counted up to
/// [`MAX_TOTAL`](super::list::MAX_TOTAL)).
#[boxed]
pub async fn comments_of_repo(
    forge: &Forge,
    repo: &Repo,
    since: Option<Timestamp>,
    (order, ascending): (Order, bool),
    page: Page,
) -> Result<(Vec<Comment>, i64), Fault> {
    Ok(comments::of_repo(&mut *forge.store().read().await?, repo.id, since, (order, ascending), page).await?)
}

/// Whether the account with this name can be an assignee in a repository.
#[boxed]
pub async fn is_assignable(forge: &Forge, repo: &Repo, name: &str) -> Result<bool, Fault> {
    let Ok(name) = name.parse() else { return Ok(false) };
    let mut conn = forge.store().read().await?;
    let Some(user) = users::by_name(&mut conn, &name).await? else { return Ok(false) };
    let role = collaborators::role(&mut conn, repo.id, user.id).await?;
    Ok(rule::assignable(user.id, repo.owner_id, role, user.suspended_at.is_some()))
}

/// A page of the possible assignees of a repository, and their total number.
#[boxed]
pub async fn assignable(forge: &Forge, repo: &Repo, page: Page) -> Result<(Vec<Person>, i64), Fault> {
    Ok(issues::people::assignable(&mut *forge.store().read().await?, repo.id, page).await?)
}

/// Number of issues of a repository.
#[boxed]
pub async fn counts(forge: &Forge, repo: &Repo) -> Result<Counts, Fault> {
    Ok(issues::counts(&mut *forge.store().read().await?, repo.id).await?)
}

/// Number of open issues of several repositories; repositories that never had one are absent.
#[boxed]
pub async fn open_of_many(forge: &Forge, repos: &[RepoId]) -> Result<HashMap<RepoId, i64>, Fault> {
    Ok(issues::open_of_many(&mut *forge.store().read().await?, repos).await?)
}

/// Whether the caller may do an action to an issue or comment of `author`.
pub fn may(caller: &Caller, repo: &Repo, action: IssueAction, author: Option<UserId>) -> bool {
    policy::can_issue(&caller.actor, action, author, &repo.facts(), repo.role).is_allowed()
}
