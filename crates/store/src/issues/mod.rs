//! Issues: texts and states. Lists are in [`crate::issues::list`], assignees and subscribers in [`crate::issues::people`],
//! the timeline in [`crate::issues::timeline`].

pub mod comments;
pub mod labels;
pub mod list;
pub mod milestones;
pub mod people;
pub mod search;
pub mod timeline;

use crate::repos::id_list;
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::issues::{Reason, State};
use abide_core::{Handle, IssueId, MilestoneId, RepoId, Timestamp, UserId};
use std::collections::HashMap;

/// Columns of [`Issue`], from `issues i` with `users a` and `users z`.
macro_rules! issue_columns {
    () => {
        "i.id, i.repo_id, i.number, i.author_id, COALESCE(a.name, a.npub) AS author_name, i.title, i.body, i.state, i.state_reason,
            i.closed_by, COALESCE(z.name, z.npub) AS closer_name, i.closed_at, i.milestone_id, i.comment_count, i.created_at,
            i.updated_at, i.edited_at"
    };
}
pub(crate) use issue_columns;

/// Author and closer of an issue.
macro_rules! issue_people {
    () => {
        " LEFT JOIN users a ON a.id = i.author_id LEFT JOIN users z ON z.id = i.closed_by"
    };
}
pub(crate) use issue_people;

statements! {
    /// Takes the next number and counts one more open issue.
    COUNT_ONE_MORE = "INSERT INTO issue_counters (repo_id, last_issue, open_issues) VALUES ($1, 1, 1)
        ON CONFLICT (repo_id) DO UPDATE SET
            last_issue = issue_counters.last_issue + 1, open_issues = issue_counters.open_issues + 1
        RETURNING last_issue";
    COUNT_MOVED = "UPDATE issue_counters SET open_issues = open_issues + $2, closed_issues = closed_issues - $2
        WHERE repo_id = $1";
    COUNTS = "SELECT open_issues, closed_issues FROM issue_counters WHERE repo_id = $1";
    /// For a page of repositories at once.
    OPEN_OF_MANY = "SELECT repo_id, open_issues FROM issue_counters WHERE repo_id ",
        sqlite "IN (SELECT value FROM json_each('[' || $1 || ']'))",
        postgres "= ANY (CAST(string_to_array($1, ',') AS BIGINT[]))";
    INSERT = "INSERT INTO issues (repo_id, number, author_id, title, body, state, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, 'open', $6, $6) RETURNING id";
    BY_NUMBER = concat!("SELECT ", issue_columns!(), " FROM issues i", issue_people!(), "
        WHERE i.repo_id = $1 AND i.number = $2");
    BY_ID = concat!("SELECT ", issue_columns!(), " FROM issues i", issue_people!(), " WHERE i.id = $1");
    SET_TEXT = "UPDATE issues SET title = $2, body = $3, edited_at = $4, updated_at = $4 WHERE id = $1";
    SET_STATE = "UPDATE issues SET state = $2, state_reason = $3, closed_by = $4, closed_at = $5, updated_at = $6
        WHERE id = $1";
    SET_MILESTONE = "UPDATE issues SET milestone_id = $2, updated_at = $3 WHERE id = $1";
    TOUCH = "UPDATE issues SET updated_at = $2 WHERE id = $1";
}

/// An issue row.
#[derive(Debug, Clone)]
pub struct Issue {
    pub id: IssueId,
    pub repo_id: RepoId,
    pub number: i64,
    /// `None` if the account was deleted.
    pub author_id: Option<UserId>,
    pub author_name: Option<Handle>,
    pub title: String,
    /// Markdown.
    pub body: String,
    pub state: State,
    /// Reason of the state, if a user set it.
    pub reason: Option<Reason>,
    pub closed_by: Option<UserId>,
    pub closer_name: Option<Handle>,
    pub closed_at: Option<Timestamp>,
    pub milestone_id: Option<MilestoneId>,
    pub comment_count: i64,
    pub created_at: Timestamp,
    /// Time of the last change of any kind.
    pub updated_at: Timestamp,
    /// Last change of title or text.
    pub edited_at: Option<Timestamp>,
}

impl Issue {
    pub(crate) fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: IssueId::new(row.int("id")?),
            repo_id: RepoId::new(row.int("repo_id")?),
            number: row.int("number")?,
            author_id: row.opt_int("author_id")?.map(UserId::new),
            author_name: row.opt_text("author_name")?.map(Handle::from_stored),
            title: row.text("title")?,
            body: row.text("body")?,
            state: row.parsed("state")?,
            reason: row.opt_parsed("state_reason")?,
            closed_by: row.opt_int("closed_by")?.map(UserId::new),
            closer_name: row.opt_text("closer_name")?.map(Handle::from_stored),
            closed_at: row.opt_time("closed_at")?,
            milestone_id: row.opt_int("milestone_id")?.map(MilestoneId::new),
            comment_count: row.int("comment_count")?,
            created_at: row.time("created_at")?,
            updated_at: row.time("updated_at")?,
            edited_at: row.opt_time("edited_at")?,
        })
    }
}

/// Issue counts of a repository.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub open: i64,
    pub closed: i64,
}

/// Adds an open issue under the repository's next number.
pub async fn insert(
    tx: &mut Tx,
    repo: RepoId,
    author: UserId,
    title: &str,
    body: &str,
) -> Result<(IssueId, i64), StoreError> {
    let now = tx.now();
    let number = tx.only(&COUNT_ONE_MORE, params![repo]).await?.int("last_issue")?;
    let row = tx.only(&INSERT, params![repo, number, author, title, body, now]).await?;
    Ok((IssueId::new(row.int("id")?), number))
}

/// The issue with this number.
pub async fn by_number(conn: &mut Conn, repo: RepoId, number: i64) -> Result<Option<Issue>, StoreError> {
    conn.one(&BY_NUMBER, params![repo, number]).await?.as_ref().map(Issue::from_row).transpose()
}

/// The issue with that id.
pub async fn by_id(conn: &mut Conn, id: IssueId) -> Result<Option<Issue>, StoreError> {
    conn.one(&BY_ID, params![id]).await?.as_ref().map(Issue::from_row).transpose()
}

/// Replaces title and text of an issue.
pub async fn set_text(tx: &mut Tx, id: IssueId, title: &str, body: &str) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&SET_TEXT, params![id, title, body, now]).await.map(drop)
}

/// Sets the state of an issue; `closer` is the user who closes it.
pub async fn set_state(
    tx: &mut Tx,
    issue: &Issue,
    state: State,
    reason: Option<Reason>,
    closer: Option<UserId>,
) -> Result<(), StoreError> {
    let now = tx.now();
    let (closed_by, closed_at) = match state {
        State::Open => (None, None),
        State::Closed => (closer, Some(now)),
    };
    let values = params![issue.id, state.as_str(), reason.map(Reason::as_str), closed_by, closed_at, now];
    tx.execute(&SET_STATE, values).await?;
    let opened = match (issue.state, state) {
        (State::Open, State::Closed) => -1,
        (State::Closed, State::Open) => 1,
        _ => return Ok(()),
    };
    tx.execute(&COUNT_MOVED, params![issue.repo_id, opened]).await.map(drop)
}

/// Sets or clears the milestone of an issue.
pub async fn set_milestone(tx: &mut Tx, id: IssueId, milestone: Option<MilestoneId>) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&SET_MILESTONE, params![id, milestone, now]).await.map(drop)
}

/// Updates the change time of an issue.
pub async fn touch(tx: &mut Tx, id: IssueId) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&TOUCH, params![id, now]).await.map(drop)
}

/// Issue counts of a repository.
pub async fn counts(conn: &mut Conn, repo: RepoId) -> Result<Counts, StoreError> {
    match conn.one(&COUNTS, params![repo]).await? {
        Some(row) => Ok(Counts { open: row.int("open_issues")?, closed: row.int("closed_issues")? }),
        None => Ok(Counts::default()),
    }
}

/// Open issue counts of several repositories; repositories that never had an issue are omitted.
pub async fn open_of_many(conn: &mut Conn, repos: &[RepoId]) -> Result<HashMap<RepoId, i64>, StoreError> {
    let rows = conn.all(&OPEN_OF_MANY, params![id_list(repos)]).await?;
    rows.iter().map(|row| Ok((RepoId::new(row.int("repo_id")?), row.int("open_issues")?))).collect()
}
