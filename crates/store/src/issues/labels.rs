//! Labels of a repository and of its issues.

use crate::issues::list::issue_ids;
use crate::repos::Page;
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::issues::text::{Colour, LabelName};
use abide_core::{IssueId, LabelId, RepoId};
use std::collections::HashMap;

/// Columns of [`Label`], from `labels l`.
macro_rules! columns {
    () => {
        "l.id, l.name, l.color, l.description"
    };
}

statements! {
    INSERT = "INSERT INTO labels (repo_id, name, folded, color, description, created_at) VALUES ($1, $2, $3, $4, $5, $6)
        RETURNING id";
    UPDATE = "UPDATE labels SET name = $2, folded = $3, color = $4, description = $5 WHERE id = $1";
    REMOVE = "DELETE FROM labels WHERE id = $1";
    BY_NAME = concat!("SELECT ", columns!(), " FROM labels l WHERE l.repo_id = $1 AND l.folded = $2");
    /// Restricted to the repository: an id alone must not give access.
    BY_ID = concat!("SELECT ", columns!(), " FROM labels l WHERE l.repo_id = $1 AND l.id = $2");
    LIST = concat!("SELECT ", columns!(), " FROM labels l WHERE l.repo_id = $1 ORDER BY l.folded LIMIT $2 OFFSET $3");
    COUNT = "SELECT count(*) AS n FROM labels WHERE repo_id = $1";
    /// For a page of issues at once.
    OF_MANY = concat!("SELECT t.issue_id, ", columns!(), " FROM issue_labels t JOIN labels l ON l.id = t.label_id
        WHERE t.issue_id "),
        sqlite "IN (SELECT value FROM json_each('[' || $1 || ']')) ORDER BY t.issue_id, l.folded",
        postgres "= ANY (CAST(string_to_array($1, ',') AS BIGINT[])) ORDER BY t.issue_id, l.folded";
    ATTACH = "INSERT INTO issue_labels (issue_id, label_id) VALUES ($1, $2) ON CONFLICT (issue_id, label_id) DO NOTHING";
    DETACH = "DELETE FROM issue_labels WHERE issue_id = $1 AND label_id = $2";
}

/// A label row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub id: LabelId,
    pub name: LabelName,
    pub color: Colour,
    pub description: String,
}

impl Label {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: LabelId::new(row.int("id")?),
            name: row.parsed("name")?,
            color: row.parsed("color")?,
            description: row.text("description")?,
        })
    }
}

/// Name, colour and description of a label to write.
#[derive(Debug, Clone)]
pub struct Look {
    pub name: LabelName,
    pub color: Colour,
    pub description: String,
}

/// Adds a label; [`StoreError::Unique`] if the repository has one with this name.
pub async fn insert(tx: &mut Tx, repo: RepoId, look: &Look) -> Result<Label, StoreError> {
    let now = tx.now();
    let Look { name, color, description } = look.clone();
    let values = params![repo, name.as_str(), name.folded(), color.as_str(), description.as_str(), now];
    let id = LabelId::new(tx.only(&INSERT, values).await?.int("id")?);
    Ok(Label { id, name, color, description })
}

/// Changes a label; [`StoreError::Unique`] if the repository has another one with this name.
pub async fn update(tx: &mut Tx, id: LabelId, look: &Look) -> Result<(), StoreError> {
    let Look { name, color, description } = look;
    tx.execute(&UPDATE, params![id, name.as_str(), name.folded(), color.as_str(), description]).await.map(drop)
}

/// Removes a label from its repository and from every issue.
pub async fn remove(tx: &mut Tx, id: LabelId) -> Result<(), StoreError> {
    tx.execute(&REMOVE, params![id]).await.map(drop)
}

/// The label with this folded name.
pub async fn by_name(conn: &mut Conn, repo: RepoId, folded: &str) -> Result<Option<Label>, StoreError> {
    conn.one(&BY_NAME, params![repo, folded]).await?.as_ref().map(Label::from_row).transpose()
}

/// A label of a repository by its id.
pub async fn by_id(conn: &mut Conn, repo: RepoId, id: LabelId) -> Result<Option<Label>, StoreError> {
    conn.one(&BY_ID, params![repo, id]).await?.as_ref().map(Label::from_row).transpose()
}

/// A page of a repository's labels by name, and their total number.
pub async fn list(conn: &mut Conn, repo: RepoId, page: Page) -> Result<(Vec<Label>, i64), StoreError> {
    let rows = conn.all(&LIST, params![repo, page.limit, page.offset]).await?;
    let total = conn.only(&COUNT, params![repo]).await?.int("n")?;
    Ok((rows.iter().map(Label::from_row).collect::<Result<_, _>>()?, total))
}

/// Labels of several issues; issues without labels are omitted.
pub async fn of_many(conn: &mut Conn, issues: &[IssueId]) -> Result<HashMap<IssueId, Vec<Label>>, StoreError> {
    let mut labels: HashMap<IssueId, Vec<Label>> = HashMap::new();
    for row in conn.all(&OF_MANY, params![issue_ids(issues)]).await? {
        labels.entry(IssueId::new(row.int("issue_id")?)).or_default().push(Label::from_row(&row)?);
    }
    Ok(labels)
}

/// Adds a label to an issue; `false` if it has it already.
pub async fn attach(tx: &mut Tx, issue: IssueId, label: LabelId) -> Result<bool, StoreError> {
    Ok(tx.execute(&ATTACH, params![issue, label]).await? > 0)
}

/// Removes a label from an issue; `false` if it did not have it.
pub async fn detach(tx: &mut Tx, issue: IssueId, label: LabelId) -> Result<bool, StoreError> {
    Ok(tx.execute(&DETACH, params![issue, label]).await? > 0)
}
