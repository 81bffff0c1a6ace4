//! Webhooks of repositories, and the holds of their senders.
//!
//! A hook sends one delivery at a time, oldest first, under a hold like a job's: with a holder, an expiry and a fencing
//! token, so that two nodes never send for the same hook. Deliveries are in [`crate::webhooks::deliveries`].

pub mod deliveries;

use crate::holds::{self, expire_holds};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx, leases};
use abide_core::webhooks::{Breaker, ContentType, Kinds};
use abide_core::{HookId, Redacted, RepoId, Timestamp, UserId};
use deliveries::Delivery;
use std::time::Duration;

/// Columns of [`Hook`].
macro_rules! columns {
    () => {
        "id, repo_id, url, content_type, secret, events, active, created_by, created_at, updated_at,
            failures, open_since, probe_at, next_at"
    };
}

statements! {
    INSERT = "INSERT INTO webhooks (repo_id, url, content_type, secret, events, active, created_by, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8) RETURNING id";
    /// A changed hook starts without failures.
    UPDATE = "UPDATE webhooks SET url = $2, content_type = $3, secret = $4, events = $5, active = $6, updated_at = $7,
            failures = 0, open_since = NULL, probe_at = NULL,
            next_at = CASE WHEN next_at IS NULL THEN NULL ELSE CAST($7 AS BIGINT) END
        WHERE id = $1";
    DELETE = "DELETE FROM webhooks WHERE id = $1";
    BY_ID = concat!("SELECT ", columns!(), " FROM webhooks WHERE repo_id = $1 AND id = $2 AND gone_at IS NULL");
    LOCKED_BY_ID = concat!("SELECT ", columns!(), " FROM webhooks
        WHERE repo_id = $1 AND id = $2 AND gone_at IS NULL"), postgres " FOR UPDATE";
    OF_REPO = concat!("SELECT ", columns!(), " FROM webhooks WHERE repo_id = $1 AND gone_at IS NULL
        ORDER BY id LIMIT $2 OFFSET $3");
    COUNT_OF_REPO = "SELECT count(*) AS n FROM webhooks WHERE repo_id = $1 AND gone_at IS NULL";
    /// Hooks for an event of the time $2: later hooks do not receive it.
    LISTENING = concat!("SELECT ", columns!(), " FROM webhooks
        WHERE repo_id = $1 AND active AND created_at <= $2 AND gone_at IS NULL ORDER BY id");
    GONE = "UPDATE webhooks SET gone_at = $2 WHERE repo_id = $1 AND gone_at IS NULL";
    PRUNE_GONE = "DELETE FROM webhooks WHERE gone_at < $1";

    /// A delivery was enqueued: the hook is due at once, unless it already waits for a later time.
    WAKE = "UPDATE webhooks SET next_at = CASE
            WHEN next_at IS NOT NULL THEN next_at
            WHEN probe_at > $2 THEN probe_at
            ELSE CAST($2 AS BIGINT) END
        WHERE id = $1";
    /// A manual request does not wait for the next probe.
    HURRY = "UPDATE webhooks SET next_at = $2, probe_at = NULL WHERE id = $1 AND open_since IS NOT NULL";

    /// A check without a write lock.
    ANYTHING = "SELECT id FROM webhooks WHERE next_at <= $1 AND active AND (expires_at IS NULL OR expires_at <= $2)
        ORDER BY next_at, id LIMIT 1";
    /// The hook that has waited longest. Skips hooks that another sender is claiming right now.
    PICK = "SELECT id FROM webhooks WHERE next_at <= $1 AND active AND (expires_at IS NULL OR expires_at <= $2)
        ORDER BY next_at, id LIMIT 1", postgres " FOR UPDATE SKIP LOCKED";
    HOLD = concat!("UPDATE webhooks SET holder = $2, token = token + 1, expires_at = $3
        WHERE id = $1 RETURNING token, ", columns!());
    IDLE = "UPDATE webhooks SET next_at = NULL, holder = NULL, expires_at = NULL WHERE id = $1";
    /// Whether this hold is still valid, locked until the unit ends.
    HELD = "SELECT failures, open_since FROM webhooks WHERE id = $1 AND token = $2 AND expires_at IS NOT NULL", postgres " FOR UPDATE";
    /// Writes the result of an attempt and releases the hook.
    SETTLE = "UPDATE webhooks SET failures = $2, open_since = $3, probe_at = $4, holder = NULL, expires_at = NULL,
            next_at = CASE WHEN EXISTS (SELECT 1 FROM webhook_deliveries
                WHERE hook_id = $1 AND state IN ('queued', 'sending')) THEN CAST($5 AS BIGINT) END
        WHERE id = $1";
    EXPIRE_OF = expire_holds!("webhooks", "expires_at IS NOT NULL");
}

/// A webhook row.
#[derive(Debug, Clone)]
pub struct Hook {
    pub id: HookId,
    pub repo_id: RepoId,
    pub url: String,
    pub content_type: ContentType,
    /// Signing secret, sealed.
    pub secret: Option<Redacted<Vec<u8>>>,
    pub events: Kinds,
    pub active: bool,
    pub created_by: Option<UserId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Circuit breaker of the receiver.
    pub breaker: Breaker,
    /// Time of the next probe, while it is suspended.
    pub probe_at: Option<Timestamp>,
    /// Time of the next attempt; `None` if no delivery waits.
    pub next_at: Option<Timestamp>,
}

impl Hook {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let unreadable = |reason: String| StoreError::Unreadable { column: "events", reason };
        let words: Vec<String> = serde_json::from_str(&row.text("events")?).map_err(|e| unreadable(e.to_string()))?;
        Ok(Self {
            id: HookId::new(row.int("id")?),
            repo_id: RepoId::new(row.int("repo_id")?),
            url: row.text("url")?,
            content_type: row.parsed("content_type")?,
            secret: row.opt_bytes("secret")?.map(Redacted::new),
            events: Kinds::parse(&words).map_err(|e| unreadable(e.to_string()))?,
            active: row.bool("active")?,
            created_by: row.opt_int("created_by")?.map(UserId::new),
            created_at: row.time("created_at")?,
            updated_at: row.time("updated_at")?,
            breaker: Breaker { failures: row.int("failures")?, open_since: row.opt_time("open_since")? },
            probe_at: row.opt_time("probe_at")?,
            next_at: row.opt_time("next_at")?,
        })
    }
}

/// Settings of a hook.
#[derive(Debug, Clone)]
pub struct Choice {
    pub url: String,
    pub content_type: ContentType,
    /// Signing secret, sealed.
    pub secret: Option<Redacted<Vec<u8>>>,
    pub events: Kinds,
    pub active: bool,
}

fn words(kinds: &Kinds) -> String {
    serde_json::Value::from(kinds.words()).to_string()
}

/// Adds a hook.
pub async fn insert(tx: &mut Tx, repo: RepoId, choice: &Choice, by: Option<UserId>) -> Result<HookId, StoreError> {
    let now = tx.now();
    let values = params![
        repo,
        choice.url.as_str(),
        choice.content_type.as_str(),
        choice.secret.clone().map(Redacted::into_inner),
        words(&choice.events),
        choice.active,
        by,
        now
    ];
    tx.only(&INSERT, values).await?.int("id").map(HookId::new)
}

/// Changes a hook. Waiting deliveries are attempted at once, as if nothing had failed before.
pub async fn update(tx: &mut Tx, id: HookId, choice: &Choice) -> Result<(), StoreError> {
    let now = tx.now();
    let values = params![
        id,
        choice.url.as_str(),
        choice.content_type.as_str(),
        choice.secret.clone().map(Redacted::into_inner),
        words(&choice.events),
        choice.active,
        now
    ];
    tx.execute(&UPDATE, values).await?;
    tx.wake_deliveries();
    Ok(())
}

/// Removes a hook with its deliveries.
pub async fn delete(tx: &mut Tx, id: HookId) -> Result<(), StoreError> {
    tx.execute(&DELETE, params![id]).await.map(drop)
}

/// A hook of a repository.
pub async fn by_id(conn: &mut Conn, repo: RepoId, id: HookId) -> Result<Option<Hook>, StoreError> {
    conn.one(&BY_ID, params![repo, id]).await?.as_ref().map(Hook::from_row).transpose()
}

/// As [`by_id`], locking the row until the unit ends.
pub async fn lock(tx: &mut Tx, repo: RepoId, id: HookId) -> Result<Option<Hook>, StoreError> {
    tx.one(&LOCKED_BY_ID, params![repo, id]).await?.as_ref().map(Hook::from_row).transpose()
}

/// A page of a repository's hooks, oldest first.
pub async fn of_repo(conn: &mut Conn, repo: RepoId, page: crate::repos::Page) -> Result<Vec<Hook>, StoreError> {
    conn.all(&OF_REPO, params![repo, page.limit, page.offset]).await?.iter().map(Hook::from_row).collect()
}

/// Number of hooks of a repository.
pub async fn count_of_repo(conn: &mut Conn, repo: RepoId) -> Result<i64, StoreError> {
    conn.only(&COUNT_OF_REPO, params![repo]).await?.int("n")
}

/// Hooks that receive an event of a repository. Bounded by the number of hooks a repository may have.
pub async fn listening(conn: &mut Conn, repo: RepoId, at: Timestamp) -> Result<Vec<Hook>, StoreError> {
    conn.all(&LISTENING, params![repo, at]).await?.iter().map(Hook::from_row).collect()
}

/// The repository was purged: its hooks send only the deliveries that wait already.
pub async fn gone(tx: &mut Tx, repo: RepoId) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&GONE, params![repo, now]).await.map(drop)
}

/// Removes the hooks of repositories purged before an instant.
pub async fn prune_gone(tx: &mut Tx, before: Timestamp) -> Result<u64, StoreError> {
    tx.execute(&PRUNE_GONE, params![before]).await
}

/// Schedules a hook for a new delivery.
pub(crate) async fn wake(tx: &mut Tx, id: HookId) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&WAKE, params![id, now]).await?;
    tx.wake_deliveries();
    Ok(())
}

/// Probes a suspended hook now instead of later.
pub async fn hurry(tx: &mut Tx, id: HookId) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&HURRY, params![id, now]).await.map(drop)
}

/// A claimed hook and its current delivery.
#[derive(Debug, Clone)]
pub struct Claim {
    pub hook: Hook,
    /// Its oldest waiting delivery.
    pub delivery: Delivery,
    /// Fencing token of this hold.
    pub token: i64,
}

/// Whether a sender would find work.
pub async fn anything_to_do(conn: &mut Conn, local: Timestamp) -> Result<bool, StoreError> {
    let now = leases::now(conn, local).await?;
    Ok(conn.one(&ANYTHING, params![local, now]).await?.is_some())
}

/// Claims the hook that has been due for longest and starts its oldest delivery, if any. The attempt is recorded here,
/// before anything is sent.
pub async fn claim(tx: &mut Tx, holder: &str, ttl: Duration) -> Result<Option<Claim>, StoreError> {
    let local = tx.now();
    let now = leases::now(tx, local).await?;
    loop {
        let Some(row) = tx.one(&PICK, params![local, now]).await? else { return Ok(None) };
        // The due deliveries of a hook may have been pruned: then the hook becomes idle and the next one is tried.
        if let Some(claim) = begin(tx, HookId::new(row.int("id")?), holder, ttl).await? {
            return Ok(Some(claim));
        }
    }
}

async fn begin(tx: &mut Tx, id: HookId, holder: &str, ttl: Duration) -> Result<Option<Claim>, StoreError> {
    let Some(delivery) = deliveries::begin_oldest(tx, id).await? else {
        tx.execute(&IDLE, params![id]).await?;
        return Ok(None);
    };
    let expires_at = holds::end(tx, ttl).await?;
    let row = tx.only(&HOLD, params![id, holder, expires_at]).await?;
    Ok(Some(Claim { hook: Hook::from_row(&row)?, delivery, token: row.int("token")? }))
}

/// Fails unless the claim is still valid, and locks it until the unit ends. Returns the current breaker: the hook may
/// have been changed since.
pub async fn check(tx: &mut Tx, claim: &Claim) -> Result<Breaker, StoreError> {
    match tx.one(&HELD, params![claim.hook.id, claim.token]).await? {
        Some(row) => Ok(Breaker { failures: row.int("failures")?, open_since: row.opt_time("open_since")? }),
        None => Err(StoreError::LeaseLost(format!("webhook {}", claim.hook.id))),
    }
}

/// Writes the result of an attempt to its hook and releases it. The delivery's own result is written before.
pub async fn settle(tx: &mut Tx, claim: &Claim, breaker: Breaker, next: Timestamp) -> Result<(), StoreError> {
    let probe = breaker.open_since.map(|_| next);
    let values = params![claim.hook.id, breaker.failures, breaker.open_since, probe, next];
    tx.execute(&SETTLE, values).await?;
    tx.wake_deliveries();
    Ok(())
}

/// Continues with the same hook, if it is still active and a delivery is due.
pub async fn go_on(tx: &mut Tx, claim: &Claim, holder: &str, ttl: Duration) -> Result<Option<Claim>, StoreError> {
    let now = tx.now();
    match by_id(tx, claim.hook.repo_id, claim.hook.id).await? {
        Some(hook) if hook.active && hook.next_at.is_some_and(|at| at <= now) => {
            begin(tx, claim.hook.id, holder, ttl).await
        }
        _ => Ok(None),
    }
}

/// Expires the hold of every sender whose name starts with `prefix`, except this one: those processes are gone.
pub async fn expire_of(tx: &mut Tx, prefix: &str, except: &str) -> Result<u64, StoreError> {
    holds::expire_of(tx, &EXPIRE_OF, prefix, except).await
}
