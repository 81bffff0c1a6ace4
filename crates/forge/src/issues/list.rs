//! Lists of a repository's issues.

use super::IssueError;
use crate::Forge;
use abide_core::Timestamp;
use abide_core::issues::filter::{Filter, Wanted};
use abide_macros::boxed;
use abide_store::accounts::users;
use abide_store::issues;
use abide_store::issues::Issue;
use abide_store::issues::list::Query;
use abide_store::issues::{labels, milestones};
use abide_store::repos::{Page, Repo};
use abide_store::{Conn, StoreError};

pub use abide_core::issues::filter::Sort;
pub use abide_store::issues::list::MAX_TOTAL;

/// Filter of a list.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    pub filter: Filter,
    /// Only issues of this milestone; overrides the filter.
    pub milestone: Option<i64>,
    /// Only issues that changed since this time.
    pub since: Option<Timestamp>,
}

/// A page of a repository's issues, and their number (counted up to [`MAX_TOTAL`]). An unknown name in the filter gives
/// no issues.
#[boxed]
pub async fn list(forge: &Forge, repo: &Repo, wish: &Wish, page: Page) -> Result<(Vec<Issue>, i64), IssueError> {
    let mut conn = forge.store().read().await?;
    match resolve(&mut conn, repo, wish, forge.settings().issues.scan).await? {
        Some(query) => Ok(issues::list::find(&mut conn, repo.id, &query, page).await?),
        None => Ok((Vec::new(), 0)),
    }
}

/// Resolves names to ids; `None` if one is unknown.
async fn resolve(conn: &mut Conn, repo: &Repo, wish: &Wish, scan: i64) -> Result<Option<Query>, StoreError> {
    let filter = &wish.filter;
    if filter.impossible {
        return Ok(None);
    }
    let author = match &filter.author {
        None => None,
        Some(name) => match users::by_any_name(conn, name).await? {
            Some(user) => Some(user.id),
            None => return Ok(None),
        },
    };
    let assignee = match &filter.assignee {
        Wanted::Is(name) => match users::by_any_name(conn, name).await? {
            Some(user) => Wanted::Is(user.id),
            None => return Ok(None),
        },
        Wanted::Any => Wanted::Any,
        Wanted::None => Wanted::None,
        Wanted::Some => Wanted::Some,
    };
    let found = match (wish.milestone, &filter.milestone) {
        (Some(number), _) => milestones::by_number(conn, repo.id, number).await?.map(|found| Wanted::Is(found.id)),
        (None, Wanted::Is(title)) => {
            milestones::by_title(conn, repo.id, title).await?.map(|found| Wanted::Is(found.id))
        }
        (None, Wanted::Any) => Some(Wanted::Any),
        (None, Wanted::None) => Some(Wanted::None),
        (None, Wanted::Some) => Some(Wanted::Some),
    };
    let Some(milestone) = found else { return Ok(None) };
    let mut labelled = Vec::new();
    for name in &filter.labels {
        match labels::by_name(conn, repo.id, name).await? {
            Some(label) => labelled.push(label.id),
            None => return Ok(None),
        }
    }
    Ok(Some(Query {
        state: filter.state,
        reason: filter.reason,
        author,
        assignee,
        milestone,
        labels: labelled,
        no_label: filter.no_label,
        since: wish.since,
        words: filter.words.clone(),
        sort: filter.sort,
        ascending: filter.ascending,
        scan,
    }))
}
