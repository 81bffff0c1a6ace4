//! Email addresses of accounts. An address belongs to one account, in any letter case.

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::{Timestamp, UserId};

/// Columns of [`Email`].
macro_rules! columns {
    () => {
        "e.id, e.user_id, e.address, e.is_primary, e.verified_at, e.created_at"
    };
}

statements! {
    INSERT = "INSERT INTO emails (user_id, address, folded, is_primary, created_at)
        VALUES ($1, $2, $3, $4, $5) RETURNING id";
    BY_ID = concat!("SELECT ", columns!(), " FROM emails e WHERE e.id = $1 AND e.user_id = $2");
    /// With the number of addresses of its account.
    BY_ADDRESS = concat!("SELECT ", columns!(), ",
            (SELECT count(*) FROM emails o WHERE o.user_id = e.user_id) AS of_account
        FROM emails e WHERE e.folded = $1");
    LIST = concat!("SELECT ", columns!(), " FROM emails e WHERE e.user_id = $1 ORDER BY e.id LIMIT $2");
    COUNT = "SELECT count(*) AS n FROM emails WHERE user_id = $1";
    REMOVE = "DELETE FROM emails WHERE id = $1 AND user_id = $2 AND NOT is_primary";
    NO_PRIMARY = "UPDATE emails SET is_primary = FALSE WHERE user_id = $1 AND is_primary";
    SET_PRIMARY = "UPDATE emails SET is_primary = TRUE WHERE id = $1 AND user_id = $2";
    VERIFY = "UPDATE emails SET verified_at = $2 WHERE id = $1 AND verified_at IS NULL";
}

/// Most addresses listed.
const MAX: i64 = 1000;

#[derive(Debug, Clone)]
pub struct Email {
    pub id: i64,
    pub user_id: UserId,
    /// As entered.
    pub address: String,
    /// Whether mail for the account goes here.
    pub is_primary: bool,
    /// Time when the owner verified it.
    pub verified_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

impl Email {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.int("id")?,
            user_id: UserId::new(row.int("user_id")?),
            address: row.text("address")?,
            is_primary: row.bool("is_primary")?,
            verified_at: row.opt_time("verified_at")?,
            created_at: row.time("created_at")?,
        })
    }
}

/// Form used for comparison.
pub fn fold(address: &str) -> String {
    address.to_lowercase()
}

/// Adds an address; [`StoreError::Unique`] if an account has it, or this account has another primary address.
pub async fn insert(tx: &mut Tx, user: UserId, address: &str, primary: bool) -> Result<i64, StoreError> {
    let now = tx.now();
    tx.only(&INSERT, params![user, address, fold(address), primary, now]).await?.int("id")
}

/// The user's address with this id.
pub async fn by_id(conn: &mut Conn, user: UserId, id: i64) -> Result<Option<Email>, StoreError> {
    conn.one(&BY_ID, params![id, user]).await?.as_ref().map(Email::from_row).transpose()
}

/// An address of any account, and the number of addresses of its account.
pub async fn by_address(conn: &mut Conn, address: &str) -> Result<Option<(Email, i64)>, StoreError> {
    let Some(row) = conn.one(&BY_ADDRESS, params![fold(address)]).await? else { return Ok(None) };
    Ok(Some((Email::from_row(&row)?, row.int("of_account")?)))
}

/// A user's addresses.
pub async fn list(conn: &mut Conn, user: UserId) -> Result<Vec<Email>, StoreError> {
    conn.all(&LIST, params![user, MAX]).await?.iter().map(Email::from_row).collect()
}

/// Number of addresses of a user.
pub async fn count(conn: &mut Conn, user: UserId) -> Result<i64, StoreError> {
    conn.only(&COUNT, params![user]).await?.int("n")
}

/// Removes the user's address; `false` if it does not exist or is the primary one.
pub async fn remove(tx: &mut Tx, user: UserId, id: i64) -> Result<bool, StoreError> {
    Ok(tx.execute(&REMOVE, params![id, user]).await? > 0)
}

/// Makes the user's address the primary one; `false` if it does not exist.
pub async fn set_primary(tx: &mut Tx, user: UserId, id: i64) -> Result<bool, StoreError> {
    tx.execute(&NO_PRIMARY, params![user]).await?;
    Ok(tx.execute(&SET_PRIMARY, params![id, user]).await? > 0)
}

/// Marks an address as verified; `false` if it already was, or is gone.
pub async fn verify(tx: &mut Tx, id: i64) -> Result<bool, StoreError> {
    let now = tx.now();
    Ok(tx.execute(&VERIFY, params![id, now]).await? > 0)
}
