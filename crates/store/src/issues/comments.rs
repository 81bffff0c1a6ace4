//! Comments on issues. Each also has an entry in the issue's timeline.

use crate::repos::Page;
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::{CommentId, Handle, IssueId, RepoId, Timestamp, UserId};

/// Columns of [`Comment`], from `comments c` with `issues i` and `users a`.
macro_rules! comment_columns {
    () => {
        "c.id, c.repo_id, c.issue_id, i.number, c.author_id, COALESCE(a.name, a.npub) AS author_name, c.body, c.created_at, c.updated_at,
            c.edited_at FROM comments c JOIN issues i ON i.id = c.issue_id LEFT JOIN users a ON a.id = c.author_id"
    };
}

/// Comments of repository $1 changed since $2, read along the index of the sort order. For other orders than by change
/// time, `+ 0` keeps SQLite from using the index on changes and sorting everything it finds there.
macro_rules! of_repo {
    ($changed:literal, $order:literal) => {
        concat!(
            "SELECT ",
            comment_columns!(),
            " WHERE c.repo_id = $1 AND ",
            $changed,
            " >= $2 ORDER BY ",
            $order,
            " LIMIT $3 OFFSET $4"
        )
    };
}

statements! {
    INSERT = "INSERT INTO comments (repo_id, issue_id, author_id, body, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $5) RETURNING id";
    ONE_MORE = "UPDATE issues SET comment_count = comment_count + $2, updated_at = $3 WHERE id = $1";
    /// Restricted to the repository: an id alone must not give access.
    BY_ID = concat!("SELECT ", comment_columns!(), " WHERE c.id = $1 AND c.repo_id = $2");
    OF_ISSUE = concat!("SELECT ", comment_columns!(), " WHERE c.issue_id = $1 AND c.updated_at >= $2
        ORDER BY c.id LIMIT $3 OFFSET $4");
    COUNT_OF_ISSUE = "SELECT count(*) AS n FROM comments WHERE issue_id = $1 AND updated_at >= $2";
    OLDEST_OF_REPO = of_repo!("c.updated_at + 0", "c.id");
    NEWEST_OF_REPO = of_repo!("c.updated_at + 0", "c.id DESC");
    STALEST_OF_REPO = of_repo!("c.updated_at", "c.updated_at, c.id");
    LATEST_OF_REPO = of_repo!("c.updated_at", "c.updated_at DESC, c.id DESC");
    COUNT_OF_REPO = "SELECT count(*) AS n FROM
        (SELECT id FROM comments WHERE repo_id = $1 AND updated_at >= $2 LIMIT 10000) AS x";
    SET_BODY = "UPDATE comments SET body = $2, edited_at = $3, updated_at = $3 WHERE id = $1";
    REMOVE = "DELETE FROM comments WHERE id = $1";
}

/// A comment row.
#[derive(Debug, Clone)]
pub struct Comment {
    pub id: CommentId,
    pub repo_id: RepoId,
    pub issue_id: IssueId,
    /// Number of the issue.
    pub number: i64,
    /// `None` if the account was deleted.
    pub author_id: Option<UserId>,
    pub author_name: Option<Handle>,
    /// Markdown.
    pub body: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Last change of the text, if any.
    pub edited_at: Option<Timestamp>,
}

impl Comment {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: CommentId::new(row.int("id")?),
            repo_id: RepoId::new(row.int("repo_id")?),
            issue_id: IssueId::new(row.int("issue_id")?),
            number: row.int("number")?,
            author_id: row.opt_int("author_id")?.map(UserId::new),
            author_name: row.opt_text("author_name")?.map(Handle::from_stored),
            body: row.text("body")?,
            created_at: row.time("created_at")?,
            updated_at: row.time("updated_at")?,
            edited_at: row.opt_time("edited_at")?,
        })
    }
}

/// Adds a comment to an issue.
pub async fn insert(
    tx: &mut Tx,
    repo: RepoId,
    issue: IssueId,
    author: UserId,
    body: &str,
) -> Result<CommentId, StoreError> {
    let now = tx.now();
    let id = tx.only(&INSERT, params![repo, issue, author, body, now]).await?.int("id")?;
    tx.execute(&ONE_MORE, params![issue, 1_i64, now]).await?;
    Ok(CommentId::new(id))
}

/// The comment with this id, if it belongs to that repository.
pub async fn by_id(conn: &mut Conn, repo: RepoId, id: CommentId) -> Result<Option<Comment>, StoreError> {
    conn.one(&BY_ID, params![id, repo]).await?.as_ref().map(Comment::from_row).transpose()
}

/// A page of an issue's comments changed since an instant, oldest first, and their total number.
pub async fn of_issue(
    conn: &mut Conn,
    issue: IssueId,
    since: Option<Timestamp>,
    page: Page,
) -> Result<(Vec<Comment>, i64), StoreError> {
    let since = since.map_or(i64::MIN, Timestamp::micros);
    let rows = conn.all(&OF_ISSUE, params![issue, since, page.limit, page.offset]).await?;
    let total = conn.only(&COUNT_OF_ISSUE, params![issue, since]).await?.int("n")?;
    Ok((rows.iter().map(Comment::from_row).collect::<Result<_, _>>()?, total))
}

/// Sort key of a comment list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Created,
    Updated,
}

/// A page of the comments in a repository changed since an instant, and their number up to
/// [`MAX_TOTAL`](crate::issues::list::MAX_TOTAL).
pub async fn of_repo(
    conn: &mut Conn,
    repo: RepoId,
    since: Option<Timestamp>,
    (order, ascending): (Order, bool),
    page: Page,
) -> Result<(Vec<Comment>, i64), StoreError> {
    let list = match (order, ascending) {
        (Order::Created, true) => &OLDEST_OF_REPO,
        (Order::Created, false) => &NEWEST_OF_REPO,
        (Order::Updated, true) => &STALEST_OF_REPO,
        (Order::Updated, false) => &LATEST_OF_REPO,
    };
    let since = since.map_or(i64::MIN, Timestamp::micros);
    let rows = conn.all(list, params![repo, since, page.limit, page.offset]).await?;
    let total = conn.only(&COUNT_OF_REPO, params![repo, since]).await?.int("n")?;
    Ok((rows.iter().map(Comment::from_row).collect::<Result<_, _>>()?, total))
}

/// Replaces the text of a comment.
pub async fn set_body(tx: &mut Tx, id: CommentId, body: &str) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&SET_BODY, params![id, body, now]).await.map(drop)
}

/// Removes a comment and its timeline entry.
pub async fn remove(tx: &mut Tx, comment: &Comment) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&REMOVE, params![comment.id]).await?;
    tx.execute(&ONE_MORE, params![comment.issue_id, -1_i64, now]).await.map(drop)
}
