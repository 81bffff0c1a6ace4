//! Timeline of an issue: comments, changes, and references from elsewhere.
//!
//! Rows are written under the lock of the issue's repository, so the id order is the time order. A reference from
//! another repository is shown to viewers who may read that one: list and count use the same predicate as every other
//! list.

use crate::repos::{Page, Viewer, address, identifier, visible};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, Sql, StoreError, Tx};
use abide_core::issues::State;
use abide_core::{CommentId, Handle, IssueId, RepoId, Timestamp, UserId};
use serde_json::Value as Json;

/// Rows of issue $1 that viewer $2 may see; $3: the viewer reads everything.
macro_rules! seen {
    () => {
        concat!(
            " FROM issue_events e
        LEFT JOIN repos r ON r.id = e.source_repo_id
        LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $2
        LEFT JOIN users o ON o.id = r.owner_id
        LEFT JOIN users a ON a.id = e.actor_id
        LEFT JOIN issues s ON s.id = e.source_issue_id
        LEFT JOIN comments k ON k.id = e.comment_id
        WHERE e.issue_id = $1 AND (e.source_repo_id IS NULL OR (",
            visible!("$2", "$3"),
            "))"
        )
    };
}

/// A page of these rows, with an additional condition.
macro_rules! page {
    ($condition:expr) => {
        concat!(
            "SELECT e.id, e.actor_id, COALESCE(a.name, a.npub) AS actor_name, e.kind, e.detail, e.commit_id, e.created_at,
            e.source_repo_id, COALESCE(o.name, o.npub) AS source_owner, r.name AS source_name, ",
            identifier!(),
            ", s.id AS source_issue_id,
            s.number AS source_number, s.title AS source_title, s.state AS source_state,
            k.id AS comment_id, k.body AS comment_body, k.updated_at AS comment_updated_at,
            k.edited_at AS comment_edited_at",
            seen!(),
            $condition,
            " ORDER BY e.id LIMIT $4 OFFSET $5"
        )
    };
}

/// Changes of the issue itself, without comments and references.
macro_rules! changes {
    () => {
        " AND e.kind NOT IN ('commented', 'cross-referenced')"
    };
}

statements! {
    APPEND = "INSERT INTO issue_events
        (issue_id, actor_id, kind, detail, comment_id, source_repo_id, source_issue_id, commit_id, once, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (issue_id, once) DO NOTHING";
    PAGE = page!("");
    COUNT = concat!("SELECT count(*) AS n", seen!());
    CHANGES = page!(changes!());
    COUNT_CHANGES = concat!("SELECT count(*) AS n", seen!(), changes!());
    RENAMED_AT = "SELECT detail FROM issue_events WHERE issue_id = $1 AND kind = 'renamed' AND created_at = $2
        ORDER BY id DESC LIMIT 1";
}

/// An entry to append.
#[derive(Debug, Clone, Default)]
pub struct NewEntry {
    /// Kind, named as in GitHub's timeline.
    pub kind: &'static str,
    /// Names at the time, and similar details.
    pub detail: Json,
    pub comment: Option<CommentId>,
    /// Repository of the reference or commit, if it comes from outside the issue.
    pub source_repo: Option<RepoId>,
    pub source_issue: Option<IssueId>,
    pub commit: Option<String>,
    /// Deduplication key: an entry with the same key is not appended again.
    pub once: Option<String>,
}

/// Title of an issue before it was renamed at an instant.
pub async fn title_before(conn: &mut Conn, issue: IssueId, at: Timestamp) -> Result<Option<String>, StoreError> {
    let Some(row) = conn.one(&RENAMED_AT, params![issue, at]).await? else { return Ok(None) };
    let detail: Json = serde_json::from_str(&row.text("detail")?).unwrap_or_default();
    Ok(detail["from"].as_str().map(str::to_owned))
}

/// A timeline entry.
#[derive(Debug, Clone)]
pub struct Entry {
    pub id: i64,
    pub actor_id: Option<UserId>,
    pub actor_name: Option<Handle>,
    pub kind: String,
    /// Names at the time, and similar details.
    pub detail: Json,
    pub commit: Option<String>,
    /// Current `owner/name` of the repository of the commit or the other issue.
    pub source_slug: Option<String>,
    /// The issue that refers to this one.
    pub source: Option<Source>,
    pub comment: Option<Said>,
    pub created_at: Timestamp,
}

/// A referring issue, as it is now.
#[derive(Debug, Clone)]
pub struct Source {
    pub id: IssueId,
    pub number: i64,
    pub title: String,
    pub state: State,
}

/// A comment in the timeline.
#[derive(Debug, Clone)]
pub struct Said {
    pub id: CommentId,
    /// Markdown.
    pub body: String,
    pub updated_at: Timestamp,
    /// Last change of the text, if any.
    pub edited_at: Option<Timestamp>,
}

impl Entry {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let source = match row.opt_int("source_issue_id")? {
            None => None,
            Some(id) => Some(Source {
                id: IssueId::new(id),
                number: row.int("source_number")?,
                title: row.text("source_title")?,
                state: row.parsed("source_state")?,
            }),
        };
        let comment = match row.opt_int("comment_id")? {
            None => None,
            Some(id) => Some(Said {
                id: CommentId::new(id),
                body: row.text("comment_body")?,
                updated_at: row.time("comment_updated_at")?,
                edited_at: row.opt_time("comment_edited_at")?,
            }),
        };
        let source_slug = match (row.opt_int("source_repo_id")?, row.opt_text("source_owner")?) {
            (Some(_), Some(owner)) => {
                Some(address(&owner, &row.text("source_name")?, row.opt_text("identifier")?.as_deref()))
            }
            _ => None,
        };
        Ok(Self {
            id: row.int("id")?,
            actor_id: row.opt_int("actor_id")?.map(UserId::new),
            actor_name: row.opt_text("actor_name")?.map(Handle::from_stored),
            kind: row.text("kind")?,
            detail: serde_json::from_str(&row.text("detail")?).unwrap_or_default(),
            commit: row.opt_text("commit_id")?,
            source_slug,
            source,
            comment,
            created_at: row.time("created_at")?,
        })
    }
}

/// Appends an entry; `false` if an entry with the same key exists.
pub async fn append(tx: &mut Tx, issue: IssueId, actor: Option<UserId>, entry: &NewEntry) -> Result<bool, StoreError> {
    let now = tx.now();
    let values = params![
        issue,
        actor,
        entry.kind,
        entry.detail.to_string(),
        entry.comment,
        entry.source_repo,
        entry.source_issue,
        entry.commit.as_deref(),
        entry.once.as_deref(),
        now
    ];
    Ok(tx.execute(&APPEND, values).await? > 0)
}

/// A page of timeline entries that the viewer may see, oldest first, and their total number.
pub async fn page(
    conn: &mut Conn,
    issue: IssueId,
    viewer: Viewer,
    page: Page,
) -> Result<(Vec<Entry>, i64), StoreError> {
    listed(conn, [&PAGE, &COUNT], issue, viewer, page).await
}

/// As [`page`], without comments and references.
pub async fn changes(
    conn: &mut Conn,
    issue: IssueId,
    viewer: Viewer,
    page: Page,
) -> Result<(Vec<Entry>, i64), StoreError> {
    listed(conn, [&CHANGES, &COUNT_CHANGES], issue, viewer, page).await
}

async fn listed(
    conn: &mut Conn,
    [list, count]: [&Sql; 2],
    issue: IssueId,
    viewer: Viewer,
    page: Page,
) -> Result<(Vec<Entry>, i64), StoreError> {
    let Viewer { user, reads_everything } = viewer;
    let rows = conn.all(list, params![issue, user, reads_everything, page.limit, page.offset]).await?;
    let total = conn.only(count, params![issue, user, reads_everything]).await?.int("n")?;
    Ok((rows.iter().map(Entry::from_row).collect::<Result<_, _>>()?, total))
}
