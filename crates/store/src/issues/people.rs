//! Assignees, subscribers and mentioned users of issues.

use crate::issues::list::issue_ids;
use crate::repos::Page;
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::{Handle, IssueId, RepoId, UserId};
use std::collections::HashMap;

/// Assignable users of repository $1: its owner and collaborators, without suspended ones.
macro_rules! with_a_part {
    () => {
        " FROM users u WHERE u.suspended_at IS NULL AND u.name IS NOT NULL AND u.id IN
            (SELECT owner_id FROM repos WHERE id = $1 UNION SELECT user_id FROM repo_collaborators WHERE repo_id = $1)"
    };
}

statements! {
    ASSIGN = "INSERT INTO issue_assignees (issue_id, user_id, created_at) VALUES ($1, $2, $3)
        ON CONFLICT (issue_id, user_id) DO NOTHING";
    UNASSIGN = "DELETE FROM issue_assignees WHERE issue_id = $1 AND user_id = $2";
    ASSIGNEES_OF_MANY = "SELECT n.issue_id, u.id, COALESCE(u.name, u.npub) AS name, u.site_admin FROM issue_assignees n
        JOIN users u ON u.id = n.user_id WHERE n.issue_id ",
        sqlite "IN (SELECT value FROM json_each('[' || $1 || ']')) ORDER BY n.issue_id, n.created_at, u.id",
        postgres "= ANY (CAST(string_to_array($1, ',') AS BIGINT[])) ORDER BY n.issue_id, n.created_at, u.id";
    ASSIGNABLE = concat!("SELECT u.id, COALESCE(u.name, u.npub) AS name, u.site_admin", with_a_part!(), " ORDER BY u.name LIMIT $2 OFFSET $3");
    COUNT_ASSIGNABLE = concat!("SELECT count(*) AS n", with_a_part!());
    /// Keeps an explicit choice of the user.
    INVOLVE = "INSERT INTO issue_subscriptions (issue_id, user_id, subscribed, reason, updated_at)
        VALUES ($1, $2, TRUE, $3, $4) ON CONFLICT (issue_id, user_id) DO NOTHING";
    /// One row per user: whether they were mentioned, not how often.
    MENTION = "INSERT INTO issue_mentions (issue_id, user_id, created_at) VALUES ($1, $2, $3)
        ON CONFLICT (issue_id, user_id) DO NOTHING";
    SUBSCRIBE = "INSERT INTO issue_subscriptions (issue_id, user_id, subscribed, reason, updated_at)
        VALUES ($1, $2, $3, 'manual', $4)
        ON CONFLICT (issue_id, user_id) DO UPDATE SET subscribed = excluded.subscribed, updated_at = excluded.updated_at";
    SUBSCRIPTION = "SELECT subscribed, reason FROM issue_subscriptions WHERE issue_id = $1 AND user_id = $2";
    /// Subscribers with ids after $2.
    SUBSCRIBERS = "SELECT user_id, reason FROM issue_subscriptions WHERE issue_id = $1 AND user_id > $2 AND subscribed
        ORDER BY user_id LIMIT $3";
}

/// A user, as shown in lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub id: UserId,
    pub name: Option<Handle>,
    pub site_admin: bool,
}

impl Person {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: UserId::new(row.int("id")?),
            name: row.opt_text("name")?.map(Handle::from_stored),
            site_admin: row.bool("site_admin")?,
        })
    }
}

/// Reason why a user is subscribed to an issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    Author,
    Comment,
    Mention,
    Assign,
    ReviewRequested,
}

impl Why {
    /// Stored form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Author => "author",
            Self::Comment => "comment",
            Self::Mention => "mention",
            Self::Assign => "assign",
            Self::ReviewRequested => "review_requested",
        }
    }
}

/// A user's subscription to an issue, chosen or implied by an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    pub subscribed: bool,
    /// `author`, `comment`, `mention`, `assign`, `review_requested` or `manual`.
    pub reason: String,
}

/// Assigns a user; `false` if they are assigned already.
pub async fn assign(tx: &mut Tx, issue: IssueId, user: UserId) -> Result<bool, StoreError> {
    let now = tx.now();
    Ok(tx.execute(&ASSIGN, params![issue, user, now]).await? > 0)
}

/// Unassigns a user; `false` if they are not assigned.
pub async fn unassign(tx: &mut Tx, issue: IssueId, user: UserId) -> Result<bool, StoreError> {
    Ok(tx.execute(&UNASSIGN, params![issue, user]).await? > 0)
}

/// Assignees of several issues; issues without assignees are omitted.
pub async fn assignees_of_many(
    conn: &mut Conn,
    issues: &[IssueId],
) -> Result<HashMap<IssueId, Vec<Person>>, StoreError> {
    let mut people: HashMap<IssueId, Vec<Person>> = HashMap::new();
    for row in conn.all(&ASSIGNEES_OF_MANY, params![issue_ids(issues)]).await? {
        people.entry(IssueId::new(row.int("issue_id")?)).or_default().push(Person::from_row(&row)?);
    }
    Ok(people)
}

/// A page of assignable users by name, and their total number.
pub async fn assignable(conn: &mut Conn, repo: RepoId, page: Page) -> Result<(Vec<Person>, i64), StoreError> {
    let rows = conn.all(&ASSIGNABLE, params![repo, page.limit, page.offset]).await?;
    let total = conn.only(&COUNT_ASSIGNABLE, params![repo]).await?.int("n")?;
    Ok((rows.iter().map(Person::from_row).collect::<Result<_, _>>()?, total))
}

/// Subscribes a user to an issue, unless they chose otherwise.
pub async fn involve(tx: &mut Tx, issue: IssueId, user: UserId, why: Why) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&INVOLVE, params![issue, user, why.as_str(), now]).await.map(drop)
}

/// Records that a user was mentioned in an issue.
pub async fn mention(tx: &mut Tx, issue: IssueId, user: UserId) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&MENTION, params![issue, user, now]).await.map(drop)
}

/// Sets a user's own choice about an issue.
pub async fn subscribe(tx: &mut Tx, issue: IssueId, user: UserId, wanted: bool) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&SUBSCRIBE, params![issue, user, wanted, now]).await.map(drop)
}

/// A user's subscription, if any.
pub async fn subscription(conn: &mut Conn, issue: IssueId, user: UserId) -> Result<Option<Subscription>, StoreError> {
    let row = conn.one(&SUBSCRIPTION, params![issue, user]).await?;
    row.map(|row| Ok(Subscription { subscribed: row.bool("subscribed")?, reason: row.text("reason")? })).transpose()
}

/// A page of subscribers with their reasons, by id after one of them.
pub async fn subscribers(
    conn: &mut Conn,
    issue: IssueId,
    after: UserId,
    limit: i64,
) -> Result<Vec<(UserId, String)>, StoreError> {
    let rows = conn.all(&SUBSCRIBERS, params![issue, after, limit]).await?;
    rows.iter().map(|row| Ok((UserId::new(row.int("user_id")?), row.text("reason")?))).collect()
}
