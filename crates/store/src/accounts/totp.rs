//! Second factor: a sealed secret per account, and recovery codes for a lost device.

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError, Tx};
use abide_core::{Redacted, Timestamp, UserId};

statements! {
    /// Replaces a secret that was never confirmed, but not one in use.
    BEGIN = "INSERT INTO totp (user_id, secret) VALUES ($1, $2)
        ON CONFLICT (user_id) DO UPDATE SET secret = excluded.secret, last_step = 0 WHERE totp.confirmed_at IS NULL";
    GET = "SELECT secret, confirmed_at, last_step FROM totp WHERE user_id = $1";
    LOCKED = "SELECT secret, confirmed_at, last_step FROM totp WHERE user_id = $1", postgres " FOR UPDATE";
    CONFIRM = "UPDATE totp SET confirmed_at = $2, last_step = $3 WHERE user_id = $1 AND confirmed_at IS NULL";
    ADVANCE = "UPDATE totp SET last_step = $2 WHERE user_id = $1 AND last_step < $2";
    REMOVE = "DELETE FROM totp WHERE user_id = $1";
    ADD_CODE = "INSERT INTO recovery_codes (user_id, hash) VALUES ($1, $2)";
    USE_CODE = "UPDATE recovery_codes SET used_at = $3 WHERE user_id = $1 AND hash = $2 AND used_at IS NULL";
    COUNT_CODES = "SELECT count(*) AS n FROM recovery_codes WHERE user_id = $1 AND used_at IS NULL";
    REMOVE_CODES = "DELETE FROM recovery_codes WHERE user_id = $1";
}

/// Second factor of an account.
#[derive(Debug, Clone)]
pub struct Totp {
    /// Sealed.
    pub secret: Redacted<Vec<u8>>,
    /// Since when it is required; `None`: set up but not confirmed.
    pub confirmed_at: Option<Timestamp>,
    /// Time step of the last accepted code.
    pub last_step: i64,
}

fn from_row(row: &crate::Row) -> Result<Totp, StoreError> {
    Ok(Totp {
        secret: row.bytes("secret")?.into(),
        confirmed_at: row.opt_time("confirmed_at")?,
        last_step: row.int("last_step")?,
    })
}

/// Stores a secret that waits for confirmation; `false` if the second factor is on.
pub async fn begin(tx: &mut Tx, user: UserId, secret: &[u8]) -> Result<bool, StoreError> {
    Ok(tx.execute(&BEGIN, params![user, secret]).await? > 0)
}

/// Second factor of an account.
pub async fn get(conn: &mut Conn, user: UserId) -> Result<Option<Totp>, StoreError> {
    conn.one(&GET, params![user]).await?.as_ref().map(from_row).transpose()
}

/// As [`get`], locking the row until the unit ends.
pub async fn lock(tx: &mut Tx, user: UserId) -> Result<Option<Totp>, StoreError> {
    tx.one(&LOCKED, params![user]).await?.as_ref().map(from_row).transpose()
}

/// Turns it on; `false` if it is on or was never set up.
pub async fn confirm(tx: &mut Tx, user: UserId, step: i64) -> Result<bool, StoreError> {
    let now = tx.now();
    Ok(tx.execute(&CONFIRM, params![user, now, step]).await? > 0)
}

/// Uses up the code of a time step; `false` if this or a later one was used.
pub async fn advance(tx: &mut Tx, user: UserId, step: i64) -> Result<bool, StoreError> {
    Ok(tx.execute(&ADVANCE, params![user, step]).await? > 0)
}

/// Turns it off and removes the recovery codes; `false` if there was nothing.
pub async fn remove(tx: &mut Tx, user: UserId) -> Result<bool, StoreError> {
    tx.execute(&REMOVE_CODES, params![user]).await?;
    Ok(tx.execute(&REMOVE, params![user]).await? > 0)
}

/// Replaces the recovery codes.
pub async fn set_codes(tx: &mut Tx, user: UserId, hashes: &[[u8; 32]]) -> Result<(), StoreError> {
    tx.execute(&REMOVE_CODES, params![user]).await?;
    for hash in hashes {
        tx.execute(&ADD_CODE, params![user, hash.as_slice()]).await?;
    }
    Ok(())
}

/// Uses up a recovery code; `false` if there is no such code.
pub async fn use_code(tx: &mut Tx, user: UserId, hash: &[u8; 32]) -> Result<bool, StoreError> {
    let now = tx.now();
    Ok(tx.execute(&USE_CODE, params![user, hash.as_slice(), now]).await? > 0)
}

/// Number of unused recovery codes.
pub async fn count_codes(conn: &mut Conn, user: UserId) -> Result<i64, StoreError> {
    conn.only(&COUNT_CODES, params![user]).await?.int("n")
}
