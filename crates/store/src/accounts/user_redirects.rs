//! Old names of accounts. A name leads to its previous holder, and no other account may take it until an operator
//! releases it.

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError, Tx};
use abide_core::{Timestamp, UserId, UserName};

statements! {
    INSERT = "INSERT INTO user_redirects (old_name, user_id, created_at) VALUES ($1, $2, $3)";
    HELD_BY_OTHER = "SELECT 1 AS n FROM user_redirects WHERE old_name = $1 AND user_id <> $2";
    LIST = "SELECT old_name, created_at FROM user_redirects WHERE user_id = $1 ORDER BY created_at LIMIT $2";
    COUNT = "SELECT count(*) AS n FROM user_redirects WHERE user_id = $1";
    REMOVE = "DELETE FROM user_redirects WHERE old_name = $1";
}

/// Most old names listed.
const MAX: i64 = 1000;

#[derive(Debug, Clone)]
pub struct OldName {
    pub name: UserName,
    pub since: Timestamp,
}

/// Records an old name.
pub async fn insert(tx: &mut Tx, old: &UserName, user: UserId) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&INSERT, params![old.as_str(), user, now]).await.map(drop)
}

/// [`StoreError::Unique`] if the name is another account's old name. Checked after the name was written: an account
/// that gave it up meanwhile has committed by then, so the result includes it.
pub(crate) async fn ensure_free(tx: &mut Tx, name: &UserName, user: UserId) -> Result<(), StoreError> {
    match tx.one(&HELD_BY_OTHER, params![name.as_str(), user]).await? {
        Some(_) => Err(StoreError::Unique),
        None => Ok(()),
    }
}

/// A user's old names, oldest first.
pub async fn list(conn: &mut Conn, user: UserId) -> Result<Vec<OldName>, StoreError> {
    let rows = conn.all(&LIST, params![user, MAX]).await?;
    let old = |row: &crate::Row| {
        Ok(OldName { name: UserName::from_stored(row.text("old_name")?), since: row.time("created_at")? })
    };
    rows.iter().map(old).collect()
}

/// Number of old names of a user.
pub async fn count(conn: &mut Conn, user: UserId) -> Result<i64, StoreError> {
    conn.only(&COUNT, params![user]).await?.int("n")
}

/// Releases an old name: it leads nowhere, and any account may take it. `false` if there was none.
pub async fn remove(tx: &mut Tx, old: &UserName) -> Result<bool, StoreError> {
    Ok(tx.execute(&REMOVE, params![old.as_str()]).await? > 0)
}
