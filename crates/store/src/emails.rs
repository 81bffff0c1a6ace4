//! The addresses of accounts. An address belongs to one account, whatever its case.

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::{Timestamp, UserId};

/// The columns of [`Email`].
macro_rules! columns {
    () => {
        "e.id, e.user_id, e.address, e.is_primary, e.verified_at, e.created_at"
    };
}

statements! {
    INSERT = "INSERT INTO emails (user_id, address, folded, is_primary, created_at)
        VALUES ($1, $2, $3, $4, $5) RETURNING id";
    BY_ID = concat!("SELECT ", columns!(), " FROM emails e WHERE e.id = $1 AND e.user_id = $2");
    /// With how many addresses its account has.
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

/// How many addresses are listed at most.
const MAX: i64 = 1000;

/// An address.
#[derive(Debug, Clone)]
pub struct Email {
    /// Its row.
    pub id: i64,
    /// Whose it is.
    pub user_id: UserId,
    /// As typed.
    pub address: String,
    /// Where mail for the account goes.
    pub is_primary: bool,
    /// When its holder proved that they read it.
    pub verified_at: Option<Timestamp>,
    /// When it was added.
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

/// How an address is compared.
pub fn fold(address: &str) -> String {
    address.to_lowercase()
}

/// Adds an address; [`StoreError::Unique`] if an account has it, or this one has another primary one.
pub async fn insert(tx: &mut Tx, user: UserId, address: &str, primary: bool) -> Result<i64, StoreError> {
    let now = tx.now();
    tx.only(&INSERT, params![user, address, fold(address), primary, now]).await?.int("id")
}

/// This user's address with that id.
pub async fn by_id(conn: &mut Conn, user: UserId, id: i64) -> Result<Option<Email>, StoreError> {
    conn.one(&BY_ID, params![id, user]).await?.as_ref().map(Email::from_row).transpose()
}

/// An address, whoever has it, and how many its account has.
pub async fn by_address(conn: &mut Conn, address: &str) -> Result<Option<(Email, i64)>, StoreError> {
    let Some(row) = conn.one(&BY_ADDRESS, params![fold(address)]).await? else { return Ok(None) };
    Ok(Some((Email::from_row(&row)?, row.int("of_account")?)))
}

/// A user's addresses.
pub async fn list(conn: &mut Conn, user: UserId) -> Result<Vec<Email>, StoreError> {
    conn.all(&LIST, params![user, MAX]).await?.iter().map(Email::from_row).collect()
}

/// How many addresses a user has.
pub async fn count(conn: &mut Conn, user: UserId) -> Result<i64, StoreError> {
    conn.only(&COUNT, params![user]).await?.int("n")
}

/// Removes this user's address; `false` if they have no such address or it is the primary one.
pub async fn remove(tx: &mut Tx, user: UserId, id: i64) -> Result<bool, StoreError> {
    Ok(tx.execute(&REMOVE, params![id, user]).await? > 0)
}

/// Makes this user's address the primary one; `false` if they have no such address.
pub async fn set_primary(tx: &mut Tx, user: UserId, id: i64) -> Result<bool, StoreError> {
    tx.execute(&NO_PRIMARY, params![user]).await?;
    Ok(tx.execute(&SET_PRIMARY, params![id, user]).await? > 0)
}

/// Notes that its holder reads it; `false` if that was known, or the address is gone.
pub async fn verify(tx: &mut Tx, id: i64) -> Result<bool, StoreError> {
    let now = tx.now();
    Ok(tx.execute(&VERIFY, params![id, now]).await? > 0)
}
