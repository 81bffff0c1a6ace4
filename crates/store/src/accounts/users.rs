//! Accounts. Addresses are in [`crate::accounts::emails`], old names in [`crate::accounts::user_redirects`].

use crate::accounts::{emails, user_keys, user_redirects};
use crate::repos::{Page, owner};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::policy::Actor;
use abide_core::{Handle, Redacted, Timestamp, UserId, UserName};

/// Columns of [`User`], from `users u` with the primary address as `emails e`.
macro_rules! user_columns {
    () => {
        "u.id, u.name, u.display_name, u.bio, u.website, u.location, u.password_hash, u.site_admin, u.suspended_at,
            u.deleted_at, u.created_at, u.updated_at, u.npub, e.address AS email"
    };
}
pub(crate) use user_columns;

/// Matches of an operator's search: $1 is a lower-case pattern.
macro_rules! found {
    () => {
        " FROM users u
        LEFT JOIN emails e ON e.user_id = u.id AND e.is_primary
        WHERE u.deleted_at IS NULL AND (COALESCE(u.name, u.npub, '') LIKE $1 ESCAPE '\\' OR EXISTS
            (SELECT 1 FROM emails f WHERE f.user_id = u.id AND f.folded LIKE $1 ESCAPE '\\'))"
    };
}

statements! {
    INSERT = "INSERT INTO users (name, display_name, password_hash, site_admin, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $5) RETURNING id";
    BY_NAME = concat!("SELECT ", user_columns!(), " FROM users u
        LEFT JOIN emails e ON e.user_id = u.id AND e.is_primary WHERE u.name = $1");
    /// By the current name, else by an old one. One statement for every result.
    BY_ANY_NAME = concat!("SELECT ", user_columns!(), " FROM users u
        LEFT JOIN emails e ON e.user_id = u.id AND e.is_primary
        WHERE u.deleted_at IS NULL AND u.id = ", owner!());
    /// By the primary address, or a verified one.
    BY_EMAIL = concat!("SELECT ", user_columns!(), " FROM emails f
        JOIN users u ON u.id = f.user_id
        LEFT JOIN emails e ON e.user_id = u.id AND e.is_primary
        WHERE f.folded = $1 AND (f.is_primary OR f.verified_at IS NOT NULL)");
    BY_ID = concat!("SELECT ", user_columns!(), " FROM users u
        LEFT JOIN emails e ON e.user_id = u.id AND e.is_primary WHERE u.id = $1");
    /// As BY_ID, locking the row until the unit ends.
    LOCKED_BY_ID = concat!("SELECT ", user_columns!(), " FROM users u
        LEFT JOIN emails e ON e.user_id = u.id AND e.is_primary WHERE u.id = $1"), postgres " FOR UPDATE OF u";
    LIST = concat!("SELECT ", user_columns!(), " FROM users u
        LEFT JOIN emails e ON e.user_id = u.id AND e.is_primary WHERE u.id > $1 AND u.deleted_at IS NULL
        ORDER BY u.id LIMIT $2");
    SEARCH = concat!("SELECT ", user_columns!(), ",
            (SELECT count(*) FROM repos r WHERE r.owner_id = u.id AND r.deleted_at IS NULL) AS repos",
        found!(), " ORDER BY COALESCE(u.name, u.npub, ''), u.id LIMIT $2 OFFSET $3");
    COUNT_FOUND = concat!("SELECT count(*) AS n", found!());
    /// Accounts that can log in: a key that pushed or published also has an account, but without a username.
    ANY = "SELECT 1 AS n WHERE EXISTS (SELECT 1 FROM users WHERE (password_hash IS NOT NULL OR name IS NOT NULL)
        AND deleted_at IS NULL)";
    /// Admins that can log in. Accounts of other people do not set up a site.
    ANY_ADMIN = "SELECT 1 AS n WHERE EXISTS (SELECT 1 FROM users WHERE site_admin
        AND (password_hash IS NOT NULL OR name IS NOT NULL) AND deleted_at IS NULL)";
    /// Site admins, locked until the unit ends, so that two of them cannot remove each other.
    ADMINS = "SELECT id FROM users WHERE site_admin AND suspended_at IS NULL ORDER BY id", postgres " FOR UPDATE";
    SET_NAME = "UPDATE users SET name = $2, updated_at = $3 WHERE id = $1";
    SET_PROFILE = "UPDATE users SET display_name = $2, bio = $3, website = $4, location = $5, updated_at = $6
        WHERE id = $1";
    SET_ADMIN = "UPDATE users SET site_admin = $2, updated_at = $3 WHERE id = $1";
    SET_SUSPENDED = "UPDATE users SET suspended_at = $2, updated_at = $3 WHERE id = $1";
    RETIRE = "UPDATE users SET name = NULL, display_name = NULL, bio = '', website = '', location = '',
            password_hash = NULL, npub = NULL, site_admin = FALSE, deleted_at = $2, updated_at = $2 WHERE id = $1";
    SET_PASSWORD = "UPDATE users SET password_hash = $2, updated_at = $3 WHERE id = $1";
}

#[derive(Debug, Clone)]
pub struct User {
    pub id: UserId,
    /// `None` for the account of an unclaimed nostr key.
    pub name: Option<UserName>,
    pub display_name: Option<String>,
    pub bio: String,
    /// `http://…` or `https://…`, or empty.
    pub website: String,
    pub location: String,
    /// Argon2id, in PHC format.
    pub password_hash: Option<Redacted<String>>,
    /// Primary address.
    pub email: Option<String>,
    pub npub: Option<String>,
    pub site_admin: bool,
    /// Since when the account may not change anything.
    pub suspended_at: Option<Timestamp>,
    /// Since when it is deleted: nobody can log in, and nothing shows its former holder.
    pub deleted_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl User {
    /// Whether the account is deleted. Its row stays as the author of what it wrote.
    pub fn is_deleted(&self) -> bool {
        self.deleted_at.is_some()
    }

    pub(crate) fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: UserId::new(row.int("id")?),
            name: row.opt_text("name")?.map(UserName::from_stored),
            display_name: row.opt_text("display_name")?,
            bio: row.text("bio")?,
            website: row.text("website")?,
            location: row.text("location")?,
            password_hash: row.opt_text("password_hash")?.map(Redacted::new),
            email: row.opt_text("email")?,
            npub: row.opt_text("npub")?,
            site_admin: row.bool("site_admin")?,
            suspended_at: row.opt_time("suspended_at")?,
            deleted_at: row.opt_time("deleted_at")?,
            created_at: row.time("created_at")?,
            updated_at: row.time("updated_at")?,
        })
    }

    /// Name of the account in URLs and lists: its username, or else its key.
    pub fn handle(&self) -> Option<Handle> {
        let key = || self.npub.clone().map(Handle::from_stored);
        self.name.clone().map(Handle::from).or_else(key)
    }

    /// The account as an actor, for the policy.
    pub fn actor(&self) -> Actor {
        Actor::User { id: self.id, site_admin: self.site_admin, suspended: self.suspended_at.is_some() }
    }
}

/// Values of a new account.
#[derive(Debug, Clone)]
pub struct NewUser {
    pub name: UserName,
    /// Primary address, as entered.
    pub email: String,
    /// Argon2id, in PHC format.
    pub password_hash: Redacted<String>,
    pub site_admin: bool,
}

/// Adds an account with its primary address; [`StoreError::Unique`] if the name or the address is taken, or the name is
/// another account's old name.
pub async fn insert(tx: &mut Tx, new: &NewUser) -> Result<UserId, StoreError> {
    let now = tx.now();
    let values = params![new.name.as_str(), None::<&str>, new.password_hash.expose(), new.site_admin, now];
    let id = UserId::new(tx.only(&INSERT, values).await?.int("id")?);
    user_redirects::ensure_free(tx, &new.name, id).await?;
    emails::insert(tx, id, &new.email, true).await?;
    Ok(id)
}

/// The account with this name.
pub async fn by_name(conn: &mut Conn, name: &UserName) -> Result<Option<User>, StoreError> {
    conn.one(&BY_NAME, params![name.as_str()]).await?.as_ref().map(User::from_row).transpose()
}

/// The account that has or had this name.
pub async fn by_any_name(conn: &mut Conn, name: &UserName) -> Result<Option<User>, StoreError> {
    conn.one(&BY_ANY_NAME, params![name.as_str()]).await?.as_ref().map(User::from_row).transpose()
}

/// The account with this primary or verified address.
pub async fn by_email(conn: &mut Conn, address: &str) -> Result<Option<User>, StoreError> {
    conn.one(&BY_EMAIL, params![emails::fold(address)]).await?.as_ref().map(User::from_row).transpose()
}

/// The account with that id.
pub async fn by_id(conn: &mut Conn, id: UserId) -> Result<Option<User>, StoreError> {
    conn.one(&BY_ID, params![id]).await?.as_ref().map(User::from_row).transpose()
}

/// As [`by_id`], locking the row until the unit ends, so that a decision based on it still holds when written.
pub async fn lock(tx: &mut Tx, id: UserId) -> Result<Option<User>, StoreError> {
    tx.one(&LOCKED_BY_ID, params![id]).await?.as_ref().map(User::from_row).transpose()
}

/// A page of accounts by id.
pub async fn list(conn: &mut Conn, after: UserId, limit: i64) -> Result<Vec<User>, StoreError> {
    conn.all(&LIST, params![after, limit]).await?.iter().map(User::from_row).collect()
}

/// An account in an operator's search.
#[derive(Debug, Clone)]
pub struct Found {
    pub user: User,
    /// Number of live repositories.
    pub repos: i64,
}

/// Accounts with the text in their name or an address, by name, and their total number. All accounts, if the text is
/// empty.
pub async fn search(conn: &mut Conn, text: &str, page: Page) -> Result<(Vec<Found>, i64), StoreError> {
    let pattern = containing(text);
    let rows = conn.all(&SEARCH, params![pattern.as_str(), page.limit, page.offset]).await?;
    let total = conn.only(&COUNT_FOUND, params![pattern]).await?.int("n")?;
    let found = rows.iter().map(|row| Ok(Found { user: User::from_row(row)?, repos: row.int("repos")? }));
    Ok((found.collect::<Result<_, StoreError>>()?, total))
}

/// Pattern for text that contains this one, in any letter case.
fn containing(text: &str) -> String {
    let mut pattern = String::from("%");
    for c in text.trim().to_lowercase().chars() {
        if ['%', '_', '\\'].contains(&c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

/// Whether there is any account that can log in.
pub async fn any(conn: &mut Conn) -> Result<bool, StoreError> {
    Ok(conn.one(&ANY, &[]).await?.is_some())
}

/// Whether there is an admin that can log in.
pub async fn any_admin(conn: &mut Conn) -> Result<bool, StoreError> {
    Ok(conn.one(&ANY_ADMIN, &[]).await?.is_some())
}

/// Site admins, locked until the unit ends.
pub async fn lock_admins(tx: &mut Tx) -> Result<Vec<UserId>, StoreError> {
    tx.all(&ADMINS, &[]).await?.iter().map(|row| row.int("id").map(UserId::new)).collect()
}

/// Changes the name and leaves the old one as a redirect; [`StoreError::Unique`] if the new one is taken or another
/// account's old name. The account's own old name can be taken back.
pub async fn set_name(tx: &mut Tx, id: UserId, old: Option<&UserName>, new: &UserName) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&SET_NAME, params![id, new.as_str(), now]).await?;
    user_redirects::ensure_free(tx, new, id).await?;
    user_redirects::remove(tx, new).await?;
    match old {
        Some(old) => user_redirects::insert(tx, old, id).await,
        None => Ok(()),
    }
}

/// Profile of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    pub display_name: Option<String>,
    pub bio: String,
    pub website: String,
    pub location: String,
}

/// Replaces the profile of an account.
pub async fn set_profile(tx: &mut Tx, id: UserId, profile: &Profile) -> Result<(), StoreError> {
    let now = tx.now();
    let Profile { display_name, bio, website, location } = profile;
    tx.execute(&SET_PROFILE, params![id, display_name.as_deref(), bio, website, location, now]).await.map(drop)
}

/// Makes an account a site admin, or an ordinary one again.
pub async fn set_admin(tx: &mut Tx, id: UserId, admin: bool) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&SET_ADMIN, params![id, admin, now]).await.map(drop)
}

/// Suspends an account as of now, or lifts the suspension.
pub async fn set_suspended(tx: &mut Tx, id: UserId, suspended: bool) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&SET_SUSPENDED, params![id, suspended.then_some(now), now]).await.map(drop)
}

/// Removes an account's name, key, password and profile. The row stays for references to it, and so does its old name:
/// no other account can take it until an operator releases it. The key of a suspended account is barred.
pub async fn retire(tx: &mut Tx, user: &User) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&RETIRE, params![user.id, now]).await?;
    // Without its account, a key is a stranger's; the suspension must outlast the account.
    if let Some(npub) = user.npub.as_deref().filter(|_| user.suspended_at.is_some()) {
        user_keys::bar(tx, npub).await?;
    }
    match &user.name {
        Some(name) => user_redirects::insert(tx, name, user.id).await,
        None => Ok(()),
    }
}

pub async fn set_password(tx: &mut Tx, id: UserId, hash: &Redacted<String>) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&SET_PASSWORD, params![id, hash.expose(), now]).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::containing;

    #[test]
    fn what_is_searched_for_is_taken_literally() {
        assert_eq!(containing(" A_b%\\ "), "%a\\_b\\%\\\\%");
        assert_eq!(containing(""), "%%");
    }
}
