//! The sequencer: numbers committed rows of both logs.
//!
//! Ids are assigned before commit, so on PostgreSQL a row with a small id can appear late; a reader that goes by id
//! would miss it. The position (`seq`) is assigned afterwards by the lease holder, and only grows.

use crate::leases::{self, Lease};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError, Tx, audit, events};

statements! {
    HEAD = "SELECT seq, hash FROM log_heads WHERE name = $1";
    LOCKED_HEAD = "SELECT seq, hash FROM log_heads WHERE name = $1", postgres " FOR UPDATE";
    ANYTHING = "SELECT 1 AS n WHERE EXISTS (SELECT 1 FROM domain_events WHERE seq IS NULL)
        OR EXISTS (SELECT 1 FROM audit_log WHERE seq IS NULL)";
    ADVANCE = "UPDATE log_heads SET seq = $2, hash = $3 WHERE name = $1";
}

/// Name of the sequencer's lease.
pub const LEASE: &str = "sequencer";

/// Number of rows numbered in one step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    pub events: u64,
    pub audit: u64,
}

/// Numbers up to `limit` rows of each log, if the lease is still held.
pub async fn step(tx: &mut Tx, lease: &Lease, key: &[u8], limit: i64) -> Result<Step, StoreError> {
    leases::check(tx, lease).await?;
    let (seq, _) = read(tx.one(&LOCKED_HEAD, params!["events"]).await?)?;
    let numbered = events::number(tx, seq, limit).await?;
    if numbered > 0 {
        tx.execute(&ADVANCE, params!["events", seq + numbered as i64, Vec::new()]).await?;
    }
    let head = read(tx.one(&LOCKED_HEAD, params!["audit"]).await?)?;
    let (head, sealed) = audit::seal(tx, key, head, limit).await?;
    if sealed > 0 {
        tx.execute(&ADVANCE, params!["audit", head.0, head.1]).await?;
    }
    Ok(Step { events: numbered, audit: sealed })
}

/// Whether any row of either log is unnumbered.
pub async fn anything_waits(conn: &mut Conn) -> Result<bool, StoreError> {
    Ok(conn.one(&ANYTHING, &[]).await?.is_some())
}

/// Head of a log: its last position and, for the audit log, that row's seal.
pub async fn head(conn: &mut Conn, log: &str) -> Result<(i64, Vec<u8>), StoreError> {
    read(conn.one(&HEAD, params![log]).await?)
}

fn read(row: Option<crate::Row>) -> Result<(i64, Vec<u8>), StoreError> {
    let row = row.ok_or_else(|| StoreError::Schema("log_heads lacks a row; the schema was tampered with".into()))?;
    Ok((row.int("seq")?, row.bytes("hash")?))
}
