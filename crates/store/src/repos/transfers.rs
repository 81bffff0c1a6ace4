//! Transfer offers. At most one offer per repository is pending.

use crate::repos::Page;
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::transfer::Status;
use abide_core::{Handle, RepoId, Timestamp, TransferId, UserId};

/// Columns of [`Transfer`].
macro_rules! columns {
    () => {
        "t.id, t.repo_id, t.slug, t.from_owner_id, COALESCE(g.name, g.npub) AS from_name, t.recipient_id, COALESCE(k.name, k.npub) AS recipient_name,
            t.created_by, t.status, t.created_at, t.expires_at, t.decided_at"
    };
}

/// Tables of those columns.
macro_rules! tables {
    () => {
        " FROM repo_transfers t JOIN users g ON g.id = t.from_owner_id JOIN users k ON k.id = t.recipient_id "
    };
}

statements! {
    INSERT = "INSERT INTO repo_transfers
        (repo_id, slug, from_owner_id, recipient_id, created_by, status, created_at, expires_at, decided_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id";
    BY_ID = concat!("SELECT ", columns!(), tables!(), "WHERE t.id = $1");
    LOCKED_BY_ID = concat!("SELECT ", columns!(), tables!(), "WHERE t.id = $1"), postgres " FOR UPDATE OF t";
    PENDING_OF_REPO = concat!("SELECT ", columns!(), tables!(), "WHERE t.repo_id = $1 AND t.status = 'pending'");
    /// Pending offers that wait for this user's answer, or for someone else's answer to this user.
    PENDING_OF_USER = concat!("SELECT ", columns!(), tables!(), "
        WHERE t.status = 'pending' AND t.id IN (SELECT id FROM repo_transfers WHERE recipient_id = $1
            UNION SELECT id FROM repo_transfers WHERE from_owner_id = $1)
        ORDER BY t.id DESC LIMIT $2 OFFSET $3");
    COUNT_PENDING_OF_USER = "SELECT count(*) AS n FROM repo_transfers t
        WHERE t.status = 'pending' AND t.id IN (SELECT id FROM repo_transfers WHERE recipient_id = $1
            UNION SELECT id FROM repo_transfers WHERE from_owner_id = $1)";
    /// Offers that still wait for this user's answer at the time $2.
    COUNT_TO_ANSWER = "SELECT count(*) AS n FROM repo_transfers
        WHERE recipient_id = $1 AND status = 'pending' AND expires_at > $2";
    DECIDE = "UPDATE repo_transfers SET status = $2, decided_at = $3 WHERE id = $1 AND status = 'pending'";
    CANCEL_OF_REPO = "UPDATE repo_transfers SET status = 'canceled', decided_at = $2
        WHERE repo_id = $1 AND status = 'pending' RETURNING id";
    DUE = concat!("SELECT ", columns!(), tables!(), "
        WHERE t.status = 'pending' AND t.expires_at <= $1 ORDER BY t.expires_at, t.id LIMIT $2");
    /// Offers of deleted repositories: there should be none.
    OF_DELETED = "SELECT t.id FROM repo_transfers t JOIN repos r ON r.id = t.repo_id
        WHERE t.status = 'pending' AND r.deleted_at IS NOT NULL ORDER BY t.id LIMIT $1";
}

#[derive(Debug, Clone)]
pub struct Transfer {
    pub id: TransferId,
    pub repo_id: RepoId,
    /// Slug at the time of the offer.
    pub slug: String,
    /// Owner at the time of the offer.
    pub from_owner: UserId,
    pub from_name: Option<Handle>,
    pub recipient: UserId,
    pub recipient_name: Option<Handle>,
    /// `None`: the operator.
    pub created_by: Option<UserId>,
    pub status: Status,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub decided_at: Option<Timestamp>,
}

impl Transfer {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: TransferId::new(row.int("id")?),
            repo_id: RepoId::new(row.int("repo_id")?),
            slug: row.text("slug")?,
            from_owner: UserId::new(row.int("from_owner_id")?),
            from_name: row.opt_text("from_name")?.map(Handle::from_stored),
            recipient: UserId::new(row.int("recipient_id")?),
            recipient_name: row.opt_text("recipient_name")?.map(Handle::from_stored),
            created_by: row.opt_int("created_by")?.map(UserId::new),
            status: row.parsed("status")?,
            created_at: row.time("created_at")?,
            expires_at: row.time("expires_at")?,
            decided_at: row.opt_time("decided_at")?,
        })
    }
}

/// Values of a new offer.
#[derive(Debug, Clone)]
pub struct NewTransfer {
    pub repo_id: RepoId,
    pub slug: String,
    pub from_owner: UserId,
    pub recipient: UserId,
    pub created_by: Option<UserId>,
    /// Pending, or accepted if no answer is needed.
    pub status: Status,
    pub expires_at: Timestamp,
}

/// Adds an offer; [`StoreError::Unique`] if another one of the repository is pending.
pub async fn insert(tx: &mut Tx, new: &NewTransfer) -> Result<TransferId, StoreError> {
    let now = tx.now();
    let decided = (new.status != Status::Pending).then_some(now);
    let values = params![
        new.repo_id,
        new.slug.as_str(),
        new.from_owner,
        new.recipient,
        new.created_by,
        new.status.as_str(),
        now,
        new.expires_at,
        decided
    ];
    tx.only(&INSERT, values).await?.int("id").map(TransferId::new)
}

pub async fn by_id(conn: &mut Conn, id: TransferId) -> Result<Option<Transfer>, StoreError> {
    conn.one(&BY_ID, params![id]).await?.as_ref().map(Transfer::from_row).transpose()
}

/// As [`by_id`], locking the row until the unit ends. The repository's row is always locked first.
pub async fn lock(tx: &mut Tx, id: TransferId) -> Result<Option<Transfer>, StoreError> {
    tx.one(&LOCKED_BY_ID, params![id]).await?.as_ref().map(Transfer::from_row).transpose()
}

/// Pending offer of a repository.
pub async fn pending_of(conn: &mut Conn, repo: RepoId) -> Result<Option<Transfer>, StoreError> {
    conn.one(&PENDING_OF_REPO, params![repo]).await?.as_ref().map(Transfer::from_row).transpose()
}

/// A page of the pending offers to and from a user, latest first, and their total number.
pub async fn pending_of_user(conn: &mut Conn, user: UserId, page: Page) -> Result<(Vec<Transfer>, i64), StoreError> {
    let rows = conn.all(&PENDING_OF_USER, params![user, page.limit, page.offset]).await?;
    let total = conn.only(&COUNT_PENDING_OF_USER, params![user]).await?.int("n")?;
    Ok((rows.iter().map(Transfer::from_row).collect::<Result<_, _>>()?, total))
}

/// Number of offers that wait for a user's answer.
pub async fn count_to_answer(conn: &mut Conn, user: UserId, now: Timestamp) -> Result<i64, StoreError> {
    conn.only(&COUNT_TO_ANSWER, params![user, now]).await?.int("n")
}

/// Ends a pending offer; `false` if it had ended before.
pub async fn decide(tx: &mut Tx, id: TransferId, status: Status) -> Result<bool, StoreError> {
    let now = tx.now();
    Ok(tx.execute(&DECIDE, params![id, status.as_str(), now]).await? > 0)
}

/// Cancels the pending offer of a repository, if there is one. The caller holds the repository's row.
pub async fn cancel_of(tx: &mut Tx, repo: RepoId) -> Result<Option<TransferId>, StoreError> {
    let now = tx.now();
    let canceled = tx.one(&CANCEL_OF_REPO, params![repo, now]).await?;
    canceled.map(|row| row.int("id").map(TransferId::new)).transpose()
}

/// Pending offers past their expiry, oldest first.
pub async fn due(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<Transfer>, StoreError> {
    conn.all(&DUE, params![now, limit]).await?.iter().map(Transfer::from_row).collect()
}

/// Pending offers of deleted repositories, which should not exist.
pub async fn of_deleted(conn: &mut Conn, limit: i64) -> Result<Vec<TransferId>, StoreError> {
    let rows = conn.all(&OF_DELETED, params![limit]).await?;
    rows.iter().map(|row| row.int("id").map(TransferId::new)).collect()
}
