//! Follows between accounts. Suspended accounts are neither listed nor counted.

use crate::attention::lists::{Part, Person, person_columns};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError, Tx};
use abide_core::UserId;

/// Followers of $1: one predicate for list and count.
macro_rules! followers {
    () => {
        " FROM follows f JOIN users u ON u.id = f.follower_id WHERE f.followed_id = $1 AND u.suspended_at IS NULL"
    };
}

/// Accounts that $1 follows.
macro_rules! following {
    () => {
        " FROM follows f JOIN users u ON u.id = f.followed_id WHERE f.follower_id = $1 AND u.suspended_at IS NULL"
    };
}

statements! {
    ADD = "INSERT INTO follows (follower_id, followed_id, followed_at) VALUES ($1, $2, $3)
        ON CONFLICT (follower_id, followed_id) DO NOTHING";
    REMOVE = "DELETE FROM follows WHERE follower_id = $1 AND followed_id = $2";
    HAS = "SELECT follower_id FROM follows WHERE follower_id = $1 AND followed_id = $2";

    FOLLOWERS = concat!("SELECT ", person_columns!(), ", f.followed_at AS since", followers!(), "
        AND (f.followed_at, f.follower_id) < ($2, $3)
        ORDER BY f.followed_at DESC, f.follower_id DESC LIMIT $4 OFFSET $5");
    COUNT_FOLLOWERS = concat!("SELECT count(*) AS n", followers!());
    FOLLOWING = concat!("SELECT ", person_columns!(), ", f.followed_at AS since", following!(), "
        AND (f.followed_at, f.followed_id) < ($2, $3)
        ORDER BY f.followed_at DESC, f.followed_id DESC LIMIT $4 OFFSET $5");
    COUNT_FOLLOWING = concat!("SELECT count(*) AS n", following!());
}

/// Follows an account; `false` if it was followed before.
pub async fn add(tx: &mut Tx, follower: UserId, followed: UserId) -> Result<bool, StoreError> {
    let now = tx.now();
    Ok(tx.execute(&ADD, params![follower, followed, now]).await? > 0)
}

/// Unfollows an account; `false` if it was not followed.
pub async fn remove(tx: &mut Tx, follower: UserId, followed: UserId) -> Result<bool, StoreError> {
    Ok(tx.execute(&REMOVE, params![follower, followed]).await? > 0)
}

/// Whether one account follows another.
pub async fn has(conn: &mut Conn, follower: UserId, followed: UserId) -> Result<bool, StoreError> {
    Ok(conn.one(&HAS, params![follower, followed]).await?.is_some())
}

/// Followers of an account, latest first.
pub async fn followers(conn: &mut Conn, followed: UserId, part: Part) -> Result<Vec<Person>, StoreError> {
    let Part { behind, page } = part;
    let rows = conn.all(&FOLLOWERS, params![followed, behind.at, behind.id, page.limit, page.offset]).await?;
    rows.iter().map(Person::from_row).collect()
}

/// Accounts that an account follows, latest first.
pub async fn following(conn: &mut Conn, follower: UserId, part: Part) -> Result<Vec<Person>, StoreError> {
    let Part { behind, page } = part;
    let rows = conn.all(&FOLLOWING, params![follower, behind.at, behind.id, page.limit, page.offset]).await?;
    rows.iter().map(Person::from_row).collect()
}

/// Number of followers, and of followed accounts.
pub async fn counts(conn: &mut Conn, user: UserId) -> Result<(i64, i64), StoreError> {
    let followers = conn.only(&COUNT_FOLLOWERS, params![user]).await?.int("n")?;
    Ok((followers, conn.only(&COUNT_FOLLOWING, params![user]).await?.int("n")?))
}
