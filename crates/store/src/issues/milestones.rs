//! Milestones of a repository.

use crate::repos::Page;
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::issues::State;
use abide_core::{Handle, MilestoneId, RepoId, Timestamp, UserId};

/// Columns of [`Milestone`], from `milestones m` with `users a`.
macro_rules! columns {
    () => {
        "m.id, m.repo_id, m.number, m.title, m.description, m.state, m.due_on, m.creator_id, COALESCE(a.name, a.npub) AS creator_name,
            m.created_at, m.updated_at, m.closed_at,
            (SELECT count(*) FROM issues i WHERE i.milestone_id = m.id AND i.state = 'open') AS open_issues,
            (SELECT count(*) FROM issues i WHERE i.milestone_id = m.id AND i.state = 'closed') AS closed_issues
        FROM milestones m LEFT JOIN users a ON a.id = m.creator_id"
    };
}

statements! {
    NEXT = "INSERT INTO issue_counters (repo_id, last_milestone) VALUES ($1, 1)
        ON CONFLICT (repo_id) DO UPDATE SET last_milestone = issue_counters.last_milestone + 1
        RETURNING last_milestone";
    INSERT = "INSERT INTO milestones
        (repo_id, number, title, folded, description, state, due_on, creator_id, created_at, updated_at, closed_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10)";
    UPDATE = "UPDATE milestones SET title = $2, folded = $3, description = $4, state = $5, due_on = $6, closed_at = $7,
        updated_at = $8 WHERE id = $1";
    REMOVE = "DELETE FROM milestones WHERE id = $1";
    BY_NUMBER = concat!("SELECT ", columns!(), " WHERE m.repo_id = $1 AND m.number = $2");
    BY_TITLE = concat!("SELECT ", columns!(), " WHERE m.repo_id = $1 AND m.folded = $2");
    /// For a page of issues at once.
    BY_IDS = concat!("SELECT ", columns!(), " WHERE m.id "),
        sqlite "IN (SELECT value FROM json_each('[' || $1 || ']'))",
        postgres "= ANY (CAST(string_to_array($1, ',') AS BIGINT[]))";
    /// Soonest due date first, those without one last.
    LIST = concat!("SELECT ", columns!(), " WHERE m.repo_id = $1 AND ($2 = '' OR m.state = $2)
        ORDER BY CASE WHEN m.due_on IS NULL THEN 1 ELSE 0 END, m.due_on, m.number LIMIT $3 OFFSET $4");
    COUNT = "SELECT count(*) AS n FROM milestones WHERE repo_id = $1 AND ($2 = '' OR state = $2)";
}

/// A milestone row.
#[derive(Debug, Clone)]
pub struct Milestone {
    pub id: MilestoneId,
    pub repo_id: RepoId,
    /// Number in URLs.
    pub number: i64,
    pub title: String,
    pub description: String,
    pub state: State,
    pub due_on: Option<Timestamp>,
    pub creator_id: Option<UserId>,
    pub creator_name: Option<Handle>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub closed_at: Option<Timestamp>,
    pub open_issues: i64,
    pub closed_issues: i64,
}

impl Milestone {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: MilestoneId::new(row.int("id")?),
            repo_id: RepoId::new(row.int("repo_id")?),
            number: row.int("number")?,
            title: row.text("title")?,
            description: row.text("description")?,
            state: row.parsed("state")?,
            due_on: row.opt_time("due_on")?,
            creator_id: row.opt_int("creator_id")?.map(UserId::new),
            creator_name: row.opt_text("creator_name")?.map(Handle::from_stored),
            created_at: row.time("created_at")?,
            updated_at: row.time("updated_at")?,
            closed_at: row.opt_time("closed_at")?,
            open_issues: row.int("open_issues")?,
            closed_issues: row.int("closed_issues")?,
        })
    }
}

/// Content of a milestone to write.
#[derive(Debug, Clone)]
pub struct Plan {
    pub title: String,
    pub description: String,
    pub state: State,
    pub due_on: Option<Timestamp>,
}

/// Adds a milestone under the next number; [`StoreError::Unique`] if the repository has one with this title.
pub async fn insert(tx: &mut Tx, repo: RepoId, creator: Option<UserId>, plan: &Plan) -> Result<i64, StoreError> {
    let now = tx.now();
    let number = tx.only(&NEXT, params![repo]).await?.int("last_milestone")?;
    let closed_at = (plan.state == State::Closed).then_some(now);
    let values = params![
        repo,
        number,
        plan.title.as_str(),
        plan.title.to_lowercase(),
        plan.description.as_str(),
        plan.state.as_str(),
        plan.due_on,
        creator,
        now,
        closed_at
    ];
    tx.execute(&INSERT, values).await?;
    Ok(number)
}

/// Changes a milestone; [`StoreError::Unique`] if the repository has another one with this title.
pub async fn update(tx: &mut Tx, before: &Milestone, plan: &Plan) -> Result<(), StoreError> {
    let now = tx.now();
    let closed_at = (plan.state == State::Closed).then(|| before.closed_at.unwrap_or(now));
    let values = params![
        before.id,
        plan.title.as_str(),
        plan.title.to_lowercase(),
        plan.description.as_str(),
        plan.state.as_str(),
        plan.due_on,
        closed_at,
        now
    ];
    tx.execute(&UPDATE, values).await.map(drop)
}

/// Removes a milestone; its issues stay.
pub async fn remove(tx: &mut Tx, id: MilestoneId) -> Result<(), StoreError> {
    tx.execute(&REMOVE, params![id]).await.map(drop)
}

/// The milestone with this number.
pub async fn by_number(conn: &mut Conn, repo: RepoId, number: i64) -> Result<Option<Milestone>, StoreError> {
    conn.one(&BY_NUMBER, params![repo, number]).await?.as_ref().map(Milestone::from_row).transpose()
}

/// The milestone with this folded title.
pub async fn by_title(conn: &mut Conn, repo: RepoId, folded: &str) -> Result<Option<Milestone>, StoreError> {
    conn.one(&BY_TITLE, params![repo, folded]).await?.as_ref().map(Milestone::from_row).transpose()
}

/// The milestones with these ids.
pub async fn by_ids(conn: &mut Conn, ids: &[MilestoneId]) -> Result<Vec<Milestone>, StoreError> {
    let ids = ids.iter().map(MilestoneId::to_string).collect::<Vec<_>>().join(",");
    conn.all(&BY_IDS, params![ids]).await?.iter().map(Milestone::from_row).collect()
}

/// A page of a repository's milestones, soonest first, and their total number.
pub async fn list(
    conn: &mut Conn,
    repo: RepoId,
    state: Option<State>,
    page: Page,
) -> Result<(Vec<Milestone>, i64), StoreError> {
    let state = state.map_or("", State::as_str);
    let rows = conn.all(&LIST, params![repo, state, page.limit, page.offset]).await?;
    let total = conn.only(&COUNT, params![repo, state]).await?.int("n")?;
    Ok((rows.iter().map(Milestone::from_row).collect::<Result<_, _>>()?, total))
}
