//! Moves all data of one account to another, when a key whose account has no username is linked to an account.
//!
//! The caller moves repositories one by one, because their names may conflict.

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Sql, StoreError, Tx};
use abide_core::{RepoId, UserId};

statements! {
    REPOS = "SELECT id FROM repos WHERE owner_id = $1 ORDER BY id";
    STARS = "INSERT INTO stars (user_id, repo_id, starred_at)
        SELECT CAST($2 AS BIGINT), repo_id, starred_at FROM stars WHERE user_id = $1 ON CONFLICT DO NOTHING";
    WATCHES = "INSERT INTO watches (user_id, repo_id, level, updated_at)
        SELECT CAST($2 AS BIGINT), repo_id, level, updated_at FROM watches WHERE user_id = $1 ON CONFLICT DO NOTHING";
    FOLLOWING = "INSERT INTO follows (follower_id, followed_id, followed_at)
        SELECT CAST($2 AS BIGINT), followed_id, followed_at FROM follows WHERE follower_id = $1 AND followed_id <> $2
        ON CONFLICT DO NOTHING";
    FOLLOWERS = "INSERT INTO follows (follower_id, followed_id, followed_at)
        SELECT follower_id, CAST($2 AS BIGINT), followed_at FROM follows WHERE followed_id = $1 AND follower_id <> $2
        ON CONFLICT DO NOTHING";
    SUBSCRIPTIONS = "INSERT INTO issue_subscriptions (issue_id, user_id, subscribed, reason, updated_at)
        SELECT issue_id, CAST($2 AS BIGINT), subscribed, reason, updated_at FROM issue_subscriptions WHERE user_id = $1
        ON CONFLICT DO NOTHING";
    MENTIONS = "INSERT INTO issue_mentions (issue_id, user_id, created_at)
        SELECT issue_id, CAST($2 AS BIGINT), created_at FROM issue_mentions WHERE user_id = $1 ON CONFLICT DO NOTHING";
    ASSIGNEES = "INSERT INTO issue_assignees (issue_id, user_id, created_at)
        SELECT issue_id, CAST($2 AS BIGINT), created_at FROM issue_assignees WHERE user_id = $1 ON CONFLICT DO NOTHING";
    COLLABORATIONS = "INSERT INTO repo_collaborators (repo_id, user_id, role, created_at)
        SELECT c.repo_id, CAST($2 AS BIGINT), c.role, c.created_at FROM repo_collaborators c
        JOIN repos r ON r.id = c.repo_id WHERE c.user_id = $1 AND r.owner_id <> $2 ON CONFLICT DO NOTHING";
    /// An owner of a repository is not also its collaborator.
    OWNED = "DELETE FROM repo_collaborators WHERE user_id = $2 AND repo_id IN (SELECT id FROM repos WHERE owner_id = $1)";
    REDIRECTS = "INSERT INTO repo_redirects (old_owner_id, old_name, repo_id, left_at, last_used_at)
        SELECT CAST($2 AS BIGINT), old_name, repo_id, left_at, last_used_at FROM repo_redirects WHERE old_owner_id = $1
        ON CONFLICT DO NOTHING";
    ISSUES = "UPDATE issues SET author_id = $2 WHERE author_id = $1";
    CLOSED = "UPDATE issues SET closed_by = $2 WHERE closed_by = $1";
    COMMENTS = "UPDATE comments SET author_id = $2 WHERE author_id = $1";
    CHANGES = "UPDATE issue_events SET actor_id = $2 WHERE actor_id = $1";
    MILESTONES = "UPDATE milestones SET creator_id = $2 WHERE creator_id = $1";
    OFFERS = "UPDATE repo_transfers SET recipient_id = $2 WHERE recipient_id = $1";
    NOSTR_NEWS = "UPDATE nostr_news SET user_id = $2 WHERE user_id = $1";
    FEEDS = "UPDATE domain_events SET actor_user_id = $2 WHERE actor_user_id = $1 AND told";
    REMOVE = "DELETE FROM users WHERE id = $1 AND name IS NULL";
}

/// Repositories of an account, including deleted ones.
pub async fn repos(conn: &mut Conn, owner: UserId) -> Result<Vec<RepoId>, StoreError> {
    conn.all(&REPOS, params![owner]).await?.iter().map(|row| row.int("id").map(RepoId::new)).collect()
}

/// Moves stars, watches, follows and threads of an account to another. If both have an entry, the other account's
/// stays.
pub async fn attention(tx: &mut Tx, from: UserId, to: UserId) -> Result<(), StoreError> {
    let moves: &[&Sql] = &[
        &OWNED,
        &STARS,
        &WATCHES,
        &FOLLOWING,
        &FOLLOWERS,
        &SUBSCRIPTIONS,
        &MENTIONS,
        &ASSIGNEES,
        &COLLABORATIONS,
        &REDIRECTS,
        &ISSUES,
        &CLOSED,
        &COMMENTS,
        &CHANGES,
        &MILESTONES,
        &OFFERS,
        &NOSTR_NEWS,
        &FEEDS,
    ];
    for sql in moves {
        tx.execute(sql, params![from, to]).await?;
    }
    Ok(())
}

/// Removes an account without a username that owns nothing any more.
pub async fn remove(tx: &mut Tx, user: UserId) -> Result<(), StoreError> {
    tx.execute(&REMOVE, params![user]).await.map(drop)
}
