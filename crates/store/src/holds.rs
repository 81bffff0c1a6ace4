//! Holds: a claimed row (a job, a webhook) belongs to one runner until the hold expires.
//!
//! The row has the columns `holder`, `token` and `expires_at`. Each claim raises the token, and the runner's writes name
//! it, so a runner that was presumed dead can do no harm. `expires_at` is NULL while nobody holds the row. As for
//! leases, the time is the database's on PostgreSQL.

use crate::value::params;
use crate::{Sql, StoreError, Tx, leases};
use abide_core::Timestamp;
use std::time::Duration;

/// Expires the holds of processes known to be gone. $1: prefix of their names, $2: holder to leave out. `$held` selects the
/// held rows, through an index.
macro_rules! expire_holds {
    ($table:literal, $held:literal) => {
        concat!(
            "UPDATE ",
            $table,
            " SET expires_at = 0 WHERE ",
            $held,
            " AND substr(holder, 1, length($1)) = $1 AND holder <> $2"
        )
    };
}
pub(crate) use expire_holds;

/// Extends a hold to $3, unless it was lost. $1: id, $2: token.
macro_rules! renew_hold {
    ($table:literal) => {
        concat!("UPDATE ", $table, " SET expires_at = $3 WHERE id = $1 AND token = $2 AND expires_at IS NOT NULL")
    };
}
pub(crate) use renew_hold;

/// End of a hold that begins now.
pub(crate) async fn end(tx: &mut Tx, ttl: Duration) -> Result<Timestamp, StoreError> {
    let local = tx.now();
    Ok(leases::now(tx, local).await?.plus(ttl))
}

/// Expires every hold whose holder's name starts with `prefix`, except this one's: those processes are gone.
pub(crate) async fn expire_of(tx: &mut Tx, sql: &Sql, prefix: &str, except: &str) -> Result<u64, StoreError> {
    tx.execute(sql, params![prefix, except]).await
}
