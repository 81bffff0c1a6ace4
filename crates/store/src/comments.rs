//! Comments on issues. Each has its place in the issue's timeline too.

use crate::repos::Page;
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::{CommentId, Handle, IssueId, RepoId, Timestamp, UserId};

/// The columns of [`Comment`], of `comments c` with `issues i` and `users a`.
macro_rules! comment_columns {
    () => {
        "c.id, c.repo_id, c.issue_id, i.number, c.author_id, COALESCE(a.name, a.npub) AS author_name, c.body, c.created_at, c.updated_at,
            c.edited_at FROM comments c JOIN issues i ON i.id = c.issue_id LEFT JOIN users a ON a.id = c.author_id"
    };
}

statements! {
    INSERT = "INSERT INTO comments (repo_id, issue_id, author_id, body, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $5) RETURNING id";
    ONE_MORE = "UPDATE issues SET comment_count = comment_count + $2, updated_at = $3 WHERE id = $1";
    /// In that repository: an id alone opens nothing.
    BY_ID = concat!("SELECT ", comment_columns!(), " WHERE c.id = $1 AND c.repo_id = $2");
    OF_ISSUE = concat!("SELECT ", comment_columns!(), " WHERE c.issue_id = $1 AND c.updated_at >= $2
        ORDER BY c.id LIMIT $3 OFFSET $4");
    COUNT_OF_ISSUE = "SELECT count(*) AS n FROM comments WHERE issue_id = $1 AND updated_at >= $2";
    SET_BODY = "UPDATE comments SET body = $2, edited_at = $3, updated_at = $3 WHERE id = $1";
    REMOVE = "DELETE FROM comments WHERE id = $1";
}

/// A comment as its row tells it.
#[derive(Debug, Clone)]
pub struct Comment {
    /// For life.
    pub id: CommentId,
    /// Where it is.
    pub repo_id: RepoId,
    /// On which issue.
    pub issue_id: IssueId,
    /// What people call that one.
    pub number: i64,
    /// Who wrote it; `None` once they are gone.
    pub author_id: Option<UserId>,
    /// What they are called.
    pub author_name: Option<Handle>,
    /// Markdown.
    pub body: String,
    /// When it was written.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When its text last changed, if it did.
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

/// The comment with that id, if it is one of that repository.
pub async fn by_id(conn: &mut Conn, repo: RepoId, id: CommentId) -> Result<Option<Comment>, StoreError> {
    conn.one(&BY_ID, params![id, repo]).await?.as_ref().map(Comment::from_row).transpose()
}

/// A page of an issue's comments that changed since then, the oldest first, and how many there are in all.
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

/// Replaces what a comment says.
pub async fn set_body(tx: &mut Tx, id: CommentId, body: &str) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&SET_BODY, params![id, body, now]).await.map(drop)
}

/// Removes a comment, its place in the timeline included.
pub async fn remove(tx: &mut Tx, comment: &Comment) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&REMOVE, params![comment.id]).await?;
    tx.execute(&ONE_MORE, params![comment.issue_id, -1_i64, now]).await.map(drop)
}
