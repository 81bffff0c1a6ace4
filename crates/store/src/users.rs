//! Accounts and their e-mail addresses.

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::policy::Actor;
use abide_core::{Timestamp, UserId, UserName};

/// The columns of [`User`].
macro_rules! columns {
    () => {
        "u.id, u.name, u.display_name, u.password_hash, u.site_admin, u.suspended_at, u.created_at, u.updated_at,
            e.address AS email"
    };
}

statements! {
    INSERT = "INSERT INTO users (name, display_name, password_hash, site_admin, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $5) RETURNING id";
    INSERT_EMAIL = "INSERT INTO emails (user_id, address, folded, is_primary, created_at)
        VALUES ($1, $2, $3, TRUE, $4)";
    BY_NAME = concat!("SELECT ", columns!(), " FROM users u
        LEFT JOIN emails e ON e.user_id = u.id AND e.is_primary WHERE u.name = $1");
    BY_ID = concat!("SELECT ", columns!(), " FROM users u
        LEFT JOIN emails e ON e.user_id = u.id AND e.is_primary WHERE u.id = $1");
    LIST = concat!("SELECT ", columns!(), " FROM users u
        LEFT JOIN emails e ON e.user_id = u.id AND e.is_primary WHERE u.id > $1 ORDER BY u.id LIMIT $2");
    SET_SUSPENDED = "UPDATE users SET suspended_at = $2, updated_at = $3 WHERE id = $1";
    SET_PASSWORD = "UPDATE users SET password_hash = $2, updated_at = $3 WHERE id = $1";
}

/// An account.
#[derive(Debug, Clone)]
pub struct User {
    /// For life.
    pub id: UserId,
    /// `None` for the account of a nostr key that nobody has claimed yet.
    pub name: Option<UserName>,
    /// What the person calls themselves.
    pub display_name: Option<String>,
    /// Argon2id, in PHC format.
    pub password_hash: Option<String>,
    /// The primary address.
    pub email: Option<String>,
    /// May administer the site.
    pub site_admin: bool,
    /// Since when the account may not change anything.
    pub suspended_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl User {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: UserId::new(row.int("id")?),
            name: row.opt_text("name")?.map(UserName::from_stored),
            display_name: row.opt_text("display_name")?,
            password_hash: row.opt_text("password_hash")?,
            email: row.opt_text("email")?,
            site_admin: row.bool("site_admin")?,
            suspended_at: row.opt_time("suspended_at")?,
            created_at: row.time("created_at")?,
            updated_at: row.time("updated_at")?,
        })
    }

    /// This account as someone who asks for things.
    pub fn actor(&self) -> Actor {
        Actor::User { id: self.id, site_admin: self.site_admin, suspended: self.suspended_at.is_some() }
    }
}

/// What a new account starts with.
#[derive(Debug, Clone)]
pub struct NewUser {
    /// Its name.
    pub name: UserName,
    /// Its primary address, as typed.
    pub email: String,
    /// Argon2id, in PHC format.
    pub password_hash: String,
    /// May administer the site.
    pub site_admin: bool,
}

/// Adds an account with its primary address; [`StoreError::Unique`] if the name or the address is taken.
pub async fn insert(tx: &mut Tx, new: &NewUser) -> Result<UserId, StoreError> {
    let now = tx.now();
    let values = params![new.name.as_str(), None::<&str>, new.password_hash.as_str(), new.site_admin, now];
    let id = UserId::new(tx.only(&INSERT, values).await?.int("id")?);
    tx.execute(&INSERT_EMAIL, params![id, new.email.as_str(), new.email.to_lowercase(), now]).await?;
    Ok(id)
}

/// The account of that name.
pub async fn by_name(conn: &mut Conn, name: &UserName) -> Result<Option<User>, StoreError> {
    conn.one(&BY_NAME, params![name.as_str()]).await?.as_ref().map(User::from_row).transpose()
}

/// The account with that id.
pub async fn by_id(conn: &mut Conn, id: UserId) -> Result<Option<User>, StoreError> {
    conn.one(&BY_ID, params![id]).await?.as_ref().map(User::from_row).transpose()
}

/// A page of accounts by id.
pub async fn list(conn: &mut Conn, after: UserId, limit: i64) -> Result<Vec<User>, StoreError> {
    conn.all(&LIST, params![after, limit]).await?.iter().map(User::from_row).collect()
}

/// Marks an account as suspended since now, or lifts the mark.
pub async fn set_suspended(tx: &mut Tx, id: UserId, suspended: bool) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&SET_SUSPENDED, params![id, suspended.then_some(now), now]).await.map(drop)
}

/// Replaces the password.
pub async fn set_password(tx: &mut Tx, id: UserId, hash: &str) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&SET_PASSWORD, params![id, hash, now]).await.map(drop)
}
