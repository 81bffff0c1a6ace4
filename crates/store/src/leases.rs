//! Leases: locks as rows with a holder, a fencing token and an expiry, so that they survive no crash for long.
//!
//! A lease can be taken when it is free or expired, and each taking raises the token. A writer checks the token in the
//! transaction of its write, so a holder that was presumed dead can do no harm. The time is the database's on
//! PostgreSQL, because the clocks of nodes differ, and the injected clock's on SQLite.

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Engine, StoreError, Tx};
use abide_core::Timestamp;
use std::time::Duration;

statements! {
    /// SQLite returns the given time; PostgreSQL adds its own.
    NOW = "SELECT CAST($1 AS BIGINT) AS local_now", postgres
        ", CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT) AS database_now";
    TAKE = "INSERT INTO leases (name, holder, token, expires_at) VALUES ($1, $2, 1, $4)
        ON CONFLICT (name) DO UPDATE
        SET holder = excluded.holder, token = leases.token + 1, expires_at = excluded.expires_at
        WHERE leases.expires_at <= $3
        RETURNING token";
    RENEW = "UPDATE leases SET expires_at = $3 WHERE name = $1 AND token = $2 AND expires_at > $4";
    RELEASE = "UPDATE leases SET expires_at = 0 WHERE name = $1 AND token = $2";
    HELD = "SELECT token FROM leases WHERE name = $1 AND token = $2 AND expires_at > $3", postgres " FOR UPDATE";
    /// Expires leases of processes known to be gone.
    EXPIRE_OF = "UPDATE leases SET expires_at = 0 WHERE expires_at > 0 AND substr(holder, 1, length($1)) = $1
        AND holder <> $2";
    CURRENT = "SELECT holder, token, expires_at FROM leases WHERE name = $1 AND expires_at > $2";
}

/// A held lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Name of the guarded resource.
    pub name: String,
    /// Fencing token; greater than every earlier one.
    pub token: i64,
}

/// Current time for leases.
pub async fn now(conn: &mut Conn, local: Timestamp) -> Result<Timestamp, StoreError> {
    match conn.engine() {
        Engine::Sqlite => Ok(local),
        Engine::Postgres => conn.only(&NOW, params![local]).await?.time("database_now"),
    }
}

/// Takes a lease if nobody holds it.
pub async fn take(tx: &mut Tx, name: &str, holder: &str, ttl: Duration) -> Result<Option<Lease>, StoreError> {
    let local = tx.now();
    let now = now(tx, local).await?;
    let row = tx.one(&TAKE, params![name, holder, now, now.plus(ttl)]).await?;
    row.map(|row| Ok(Lease { name: name.to_owned(), token: row.int("token")? })).transpose()
}

/// Extends a held lease; an error if it was lost.
pub async fn renew(tx: &mut Tx, lease: &Lease, ttl: Duration) -> Result<(), StoreError> {
    let local = tx.now();
    let now = now(tx, local).await?;
    let renewed = tx.execute(&RENEW, params![lease.name.as_str(), lease.token, now.plus(ttl), now]).await?;
    if renewed > 0 { Ok(()) } else { Err(StoreError::LeaseLost(lease.name.clone())) }
}

/// Extends a held lease, or takes it again; `None` if another holder has it.
pub async fn hold(
    tx: &mut Tx,
    held: Option<&Lease>,
    name: &str,
    holder: &str,
    ttl: Duration,
) -> Result<Option<Lease>, StoreError> {
    if let Some(lease) = held
        && renew(tx, lease, ttl).await.is_ok()
    {
        return Ok(Some(lease.clone()));
    }
    take(tx, name, holder, ttl).await
}

/// Releases a lease. Harmless if it was lost.
pub async fn release(tx: &mut Tx, lease: &Lease) -> Result<(), StoreError> {
    tx.execute(&RELEASE, params![lease.name.as_str(), lease.token]).await.map(drop)
}

/// Fails unless the lease is held now, and locks it until the unit ends.
pub async fn check(tx: &mut Tx, lease: &Lease) -> Result<(), StoreError> {
    let local = tx.now();
    let now = now(tx, local).await?;
    match tx.one(&HELD, params![lease.name.as_str(), lease.token, now]).await? {
        Some(_) => Ok(()),
        None => Err(StoreError::LeaseLost(lease.name.clone())),
    }
}

/// Expires every lease whose holder's name starts with `prefix`, except this one's: those processes are gone.
pub async fn expire_of(tx: &mut Tx, prefix: &str, except: &str) -> Result<u64, StoreError> {
    tx.execute(&EXPIRE_OF, params![prefix, except]).await
}

/// Current holder of a lease.
pub async fn holder(conn: &mut Conn, name: &str, local: Timestamp) -> Result<Option<String>, StoreError> {
    let now = now(conn, local).await?;
    conn.one(&CURRENT, params![name, now]).await?.map(|row| row.text("holder")).transpose()
}
