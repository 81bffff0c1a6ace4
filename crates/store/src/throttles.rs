//! Rate limits: fixed windows, counted in the database so that all nodes count together.

use crate::sql::statements;
use crate::value::params;
use crate::{StoreError, Tx};
use abide_core::Timestamp;
use std::collections::HashSet;
use std::time::Duration;

statements! {
    HIT = "INSERT INTO throttles (scope, identifier, window_start, count) VALUES ($1, $2, $3, $5)
        ON CONFLICT (scope, identifier) DO UPDATE SET
            count = CASE WHEN throttles.window_start <= $4 THEN $5 ELSE throttles.count + $5 END,
            window_start = CASE WHEN throttles.window_start <= $4 THEN excluded.window_start
                ELSE throttles.window_start END
        RETURNING count, window_start";
    LOOK = "SELECT identifier FROM throttles WHERE scope = $1 AND window_start > $3 AND count >= $4 AND identifier ",
        sqlite "IN (SELECT value FROM json_each($2))",
        postgres "= ANY (ARRAY (SELECT value FROM json_array_elements_text(CAST(CAST($2 AS TEXT) AS JSON))))";
    FORGIVE = "UPDATE throttles SET count = count - 1 WHERE scope = $1 AND identifier = $2 AND count > 0";
    CLEAR = "DELETE FROM throttles WHERE scope = $1 AND identifier = $2";
    PRUNE = "DELETE FROM throttles WHERE window_start < $1";
}

/// A rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Name of the counter.
    pub scope: &'static str,
    pub times: i64,
    pub window: Duration,
}

/// Counts one attempt; `Some(wait)` if it was over the limit.
pub async fn hit(tx: &mut Tx, limit: Limit, identifier: &str) -> Result<Option<Duration>, StoreError> {
    spend(tx, limit, identifier, 1).await
}

/// Counts several at once; `Some(wait)` if the sum is over the limit.
pub async fn spend(tx: &mut Tx, limit: Limit, identifier: &str, times: i64) -> Result<Option<Duration>, StoreError> {
    let now = tx.now();
    let row = tx.only(&HIT, params![limit.scope, identifier, now, now.minus(limit.window), times]).await?;
    if row.int("count")? <= limit.times {
        return Ok(None);
    }
    Ok(Some(row.time("window_start")?.plus(limit.window).since(now)))
}

/// Which of these have none left, without counting anything.
pub async fn spent(tx: &mut Tx, limit: Limit, identifiers: &[String]) -> Result<HashSet<String>, StoreError> {
    if identifiers.is_empty() {
        return Ok(HashSet::new());
    }
    let begin = tx.now().minus(limit.window);
    let list = serde_json::Value::from(identifiers).to_string();
    let rows = tx.all(&LOOK, params![limit.scope, list, begin, limit.times]).await?;
    rows.iter().map(|row| row.text("identifier")).collect()
}

/// Uncounts one attempt that turned out to be legitimate.
pub async fn forgive(tx: &mut Tx, scope: &str, identifier: &str) -> Result<(), StoreError> {
    tx.execute(&FORGIVE, params![scope, identifier]).await.map(drop)
}

/// Resets a counter after a success.
pub async fn clear(tx: &mut Tx, scope: &str, identifier: &str) -> Result<(), StoreError> {
    tx.execute(&CLEAR, params![scope, identifier]).await.map(drop)
}

/// Removes windows that started before an instant.
pub async fn prune(tx: &mut Tx, before: Timestamp) -> Result<u64, StoreError> {
    tx.execute(&PRUNE, params![before]).await
}
