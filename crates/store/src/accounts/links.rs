//! One-time links. Only a hash of the secret is stored.

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::{Handle, Redacted, Timestamp, UserId};

/// Columns of [`Link`].
macro_rules! columns {
    () => {
        "id, purpose, user_id, email_id, address, created_at, expires_at"
    };
}

statements! {
    INSERT = "INSERT INTO one_time_links
        (hash, purpose, user_id, email_id, address, created_by, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id";
    OPEN = concat!("SELECT ", columns!(), " FROM one_time_links
        WHERE hash = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > $3");
    USE_UP = concat!("UPDATE one_time_links SET used_at = $3
        WHERE hash = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > $3 RETURNING ", columns!());
    REVOKE_SETUP = "DELETE FROM one_time_links WHERE purpose = 'setup'";
    REVOKE_OF_USER = "DELETE FROM one_time_links WHERE user_id = $1 AND purpose = $2";
    REVOKE_OF_EMAIL = "DELETE FROM one_time_links WHERE email_id = $1 AND purpose = $2";
    REVOKE = "DELETE FROM one_time_links WHERE id = $1 AND purpose = $2 AND used_at IS NULL";
    INVITES = "SELECT l.id, l.address, l.created_at, l.expires_at, COALESCE(u.name, u.npub) AS created_by
        FROM one_time_links l LEFT JOIN users u ON u.id = l.created_by
        WHERE l.purpose = 'invite' AND l.expires_at > $1 AND l.used_at IS NULL ORDER BY l.id DESC LIMIT $2";
    COUNT_INVITES = "SELECT count(*) AS n FROM one_time_links
        WHERE purpose = 'invite' AND expires_at > $1 AND used_at IS NULL";
    PRUNE = "DELETE FROM one_time_links WHERE expires_at <= $1";
}

/// Purpose of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Verifies an email address.
    Verify,
    /// Sets a new password.
    Reset,
    /// Creates the first admin.
    Setup,
    /// Allows a sign-up.
    Invite,
}

impl Purpose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Verify => "verify",
            Self::Reset => "reset",
            Self::Setup => "setup",
            Self::Invite => "invite",
        }
    }
}

/// A link to store.
#[derive(Debug, Clone)]
pub struct NewLink {
    /// SHA-256 of the secret.
    pub hash: Redacted<[u8; 32]>,
    pub purpose: Purpose,
    pub user_id: Option<UserId>,
    pub email_id: Option<i64>,
    /// Address that an invitation was sent to.
    pub address: Option<String>,
    /// The user who invited.
    pub created_by: Option<UserId>,
    pub expires_at: Timestamp,
}

impl NewLink {
    /// A link without a user.
    pub fn new(hash: impl Into<Redacted<[u8; 32]>>, purpose: Purpose, expires_at: Timestamp) -> Self {
        Self { hash: hash.into(), purpose, user_id: None, email_id: None, address: None, created_by: None, expires_at }
    }
}

/// A valid link.
#[derive(Debug, Clone)]
pub struct Link {
    pub id: i64,
    pub user_id: Option<UserId>,
    pub email_id: Option<i64>,
    /// Address that an invitation was sent to.
    pub address: Option<String>,
}

impl Link {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.int("id")?,
            user_id: row.opt_int("user_id")?.map(UserId::new),
            email_id: row.opt_int("email_id")?,
            address: row.opt_text("address")?,
        })
    }
}

/// A pending invitation.
#[derive(Debug, Clone)]
pub struct Invite {
    pub id: i64,
    /// Address that it was sent to.
    pub address: Option<String>,
    /// The user who invited; `None`: the operator on the command line.
    pub created_by: Option<Handle>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// Stores a link.
pub async fn insert(tx: &mut Tx, new: &NewLink) -> Result<i64, StoreError> {
    let now = tx.now();
    let values = params![
        new.hash.expose().as_slice(),
        new.purpose.as_str(),
        new.user_id,
        new.email_id,
        new.address.as_deref(),
        new.created_by,
        now,
        new.expires_at
    ];
    tx.only(&INSERT, values).await?.int("id")
}

/// The link, if it is still valid.
pub async fn open(
    conn: &mut Conn,
    purpose: Purpose,
    hash: &[u8; 32],
    now: Timestamp,
) -> Result<Option<Link>, StoreError> {
    conn.one(&OPEN, params![hash.as_slice(), purpose.as_str(), now]).await?.as_ref().map(Link::from_row).transpose()
}

/// Uses a link up; `None` if it is not valid. Of two concurrent callers, one gets it.
pub async fn use_up(tx: &mut Tx, purpose: Purpose, hash: &[u8; 32]) -> Result<Option<Link>, StoreError> {
    let now = tx.now();
    tx.one(&USE_UP, params![hash.as_slice(), purpose.as_str(), now]).await?.as_ref().map(Link::from_row).transpose()
}

/// Revokes every link that creates the first admin.
pub async fn revoke_setup(tx: &mut Tx) -> Result<u64, StoreError> {
    tx.execute(&REVOKE_SETUP, &[]).await
}

/// Revokes a user's links for a purpose.
pub async fn revoke_of_user(tx: &mut Tx, user: UserId, purpose: Purpose) -> Result<u64, StoreError> {
    tx.execute(&REVOKE_OF_USER, params![user, purpose.as_str()]).await
}

/// Revokes the links for an address.
pub async fn revoke_of_email(tx: &mut Tx, email: i64, purpose: Purpose) -> Result<u64, StoreError> {
    tx.execute(&REVOKE_OF_EMAIL, params![email, purpose.as_str()]).await
}

/// Revokes one unused link; `false` if there is none.
pub async fn revoke(tx: &mut Tx, purpose: Purpose, id: i64) -> Result<bool, StoreError> {
    Ok(tx.execute(&REVOKE, params![id, purpose.as_str()]).await? > 0)
}

/// Pending invitations, newest first.
pub async fn invites(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<Invite>, StoreError> {
    let invite = |row: &Row| {
        Ok(Invite {
            id: row.int("id")?,
            address: row.opt_text("address")?,
            created_by: row.opt_text("created_by")?.map(Handle::from_stored),
            created_at: row.time("created_at")?,
            expires_at: row.time("expires_at")?,
        })
    };
    conn.all(&INVITES, params![now, limit]).await?.iter().map(invite).collect()
}

/// Number of pending invitations.
pub async fn count_invites(conn: &mut Conn, now: Timestamp) -> Result<i64, StoreError> {
    conn.only(&COUNT_INVITES, params![now]).await?.int("n")
}

/// Removes expired links; returns their number.
pub async fn prune(tx: &mut Tx) -> Result<u64, StoreError> {
    let now = tx.now();
    tx.execute(&PRUNE, params![now]).await
}
