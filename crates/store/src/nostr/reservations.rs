//! Reservations: quota for git data that strangers' pushes are about to store, taken before the data is written. A
//! reservation ends when the data is charged, when it is released, or at its expiry.

use crate::nostr::purgatory::Bytes32;
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError, Tx};
use abide_core::Timestamp;

macro_rules! sum_of {
    ($of:literal) => {
        concat!(
            "(SELECT CAST(COALESCE(sum(bytes), 0) AS BIGINT) FROM quota_reservations WHERE ",
            $of,
            "id <> $3 AND expires_at > $4)"
        )
    };
}

statements! {
    LOCK = "SELECT name FROM quota_locks WHERE name = 'git data'", postgres " FOR UPDATE";
    SUMS = concat!("SELECT ", sum_of!("pubkey = $1 AND "), " AS of_key, ", sum_of!("address = $2 AND "),
        " AS of_address, ", sum_of!(""), " AS total");
    PUT = "INSERT INTO quota_reservations (id, pubkey, address, bytes, holder, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (id) DO UPDATE SET pubkey = excluded.pubkey, address = excluded.address, bytes = excluded.bytes,
            holder = excluded.holder, expires_at = excluded.expires_at";
    SPEND = "UPDATE quota_reservations SET bytes = CASE WHEN bytes > $2 THEN bytes - $2 ELSE 0 END WHERE id = $1";
    SPENT = "DELETE FROM quota_reservations WHERE id = $1 AND bytes <= 0";
    RELEASE = "DELETE FROM quota_reservations WHERE id = $1";
    FORGET = "DELETE FROM quota_reservations WHERE expires_at <= $1";
    /// Reservations of earlier processes of a node.
    EXPIRE_OF = "DELETE FROM quota_reservations WHERE substr(holder, 1, length($1)) = $1 AND holder <> $2";
}

/// Reserved bytes, without the reservation in question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reserved {
    pub of_key: i64,
    pub of_address: i64,
    pub total: i64,
}

#[derive(Debug, Clone)]
pub struct Reservation {
    /// Unique id.
    pub id: String,
    /// The key that is charged.
    pub pubkey: Option<Bytes32>,
    /// The network that is charged.
    pub address: Option<String>,
    /// Bytes of git data.
    pub bytes: i64,
    /// Name of the reserving process.
    pub holder: String,
    pub expires_at: Timestamp,
}

/// Serialises quota decisions about git data until the unit ends.
pub async fn lock(tx: &mut Tx) -> Result<(), StoreError> {
    tx.only(&LOCK, &[]).await.map(drop)
}

/// Bytes reserved at an instant for a key, for a network and in total, without the reservation with this id.
pub async fn sums(
    conn: &mut Conn,
    key: Option<&Bytes32>,
    address: Option<&str>,
    except: &str,
    now: Timestamp,
) -> Result<Reserved, StoreError> {
    let row = conn.only(&SUMS, params![key.map(|key| &key[..]), address, except, now]).await?;
    Ok(Reserved { of_key: row.int("of_key")?, of_address: row.int("of_address")?, total: row.int("total")? })
}

/// Writes a reservation, replacing an earlier one with its id.
pub async fn put(tx: &mut Tx, reservation: &Reservation) -> Result<(), StoreError> {
    let Reservation { id, pubkey, address, bytes, holder, expires_at } = reservation;
    let key = pubkey.as_ref().map(|key| &key[..]);
    let values = params![id.as_str(), key, address.as_deref(), *bytes, holder.as_str(), *expires_at];
    tx.execute(&PUT, values).await.map(drop)
}

/// Deducts bytes from a reservation that are charged elsewhere.
pub async fn spend(tx: &mut Tx, id: &str, bytes: i64) -> Result<(), StoreError> {
    tx.execute(&SPEND, params![id, bytes]).await?;
    tx.execute(&SPENT, params![id]).await.map(drop)
}

/// Releases the rest of a reservation.
pub async fn release(tx: &mut Tx, id: &str) -> Result<(), StoreError> {
    tx.execute(&RELEASE, params![id]).await.map(drop)
}

/// Removes expired reservations.
pub async fn forget(tx: &mut Tx) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&FORGET, params![now]).await.map(drop)
}

/// Removes the reservations of earlier processes of a node.
pub async fn expire_of(tx: &mut Tx, prefix: &str, except: &str) -> Result<u64, StoreError> {
    tx.execute(&EXPIRE_OF, params![prefix, except]).await
}
