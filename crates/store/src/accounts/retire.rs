//! Data removed with a deleted account, and the author's texts if they want that.

use crate::sql::statements;
use crate::value::params;
use crate::{Sql, StoreError, Tx};
use abide_core::UserId;

statements! {
    SESSIONS = "DELETE FROM sessions WHERE user_id = $1";
    TOKENS = "DELETE FROM tokens WHERE user_id = $1";
    SSH_KEYS = "DELETE FROM ssh_keys WHERE user_id = $1";
    LINKS = "DELETE FROM one_time_links WHERE user_id = $1";
    EMAILS = "DELETE FROM emails WHERE user_id = $1";
    RECOVERY_CODES = "DELETE FROM recovery_codes WHERE user_id = $1";
    TOTP = "DELETE FROM totp WHERE user_id = $1";
    ROLES = "DELETE FROM repo_collaborators WHERE user_id = $1";
    STARS = "DELETE FROM stars WHERE user_id = $1";
    WATCHES = "DELETE FROM watches WHERE user_id = $1";
    FOLLOWS = "DELETE FROM follows WHERE follower_id = $1 OR followed_id = $1";
    ASSIGNEES = "DELETE FROM issue_assignees WHERE user_id = $1";
    SUBSCRIPTIONS = "DELETE FROM issue_subscriptions WHERE user_id = $1";
    MENTIONS = "DELETE FROM issue_mentions WHERE user_id = $1";
    NOTIFICATIONS = "DELETE FROM notifications WHERE user_id = $1";
    OPT_OUTS = "DELETE FROM mail_opt_outs WHERE user_id = $1";

    /// Adjusts the counts of issues that lose comments by the next statement.
    FEWER_COMMENTS = "UPDATE issues SET comment_count = comment_count - (
            SELECT count(*) FROM comments c WHERE c.issue_id = issues.id AND c.author_id = $1 AND c.id <= $2)
        WHERE id IN (SELECT issue_id FROM comments WHERE author_id = $1 AND id <= $2)";
    REMOVE_COMMENTS = "DELETE FROM comments WHERE author_id = $1 AND id <= $2";
    NEXT_COMMENT = "SELECT max(id) AS id FROM (SELECT id FROM comments WHERE author_id = $1 ORDER BY id LIMIT $2) AS batch";
    BLANK_ISSUES = "UPDATE issues SET title = 'Removed', body = '', edited_at = $2 WHERE id IN (
        SELECT id FROM issues WHERE author_id = $1 AND (title <> 'Removed' OR body <> '') ORDER BY id LIMIT $3)";
    /// Titles that the user gave to issues, in their timelines.
    FORGET_TITLES = "DELETE FROM issue_events WHERE kind = 'renamed' AND id IN (
        SELECT e.id FROM issue_events e WHERE e.actor_id = $1
        UNION SELECT e.id FROM issues s JOIN issue_events e ON e.issue_id = s.id WHERE s.author_id = $1)";
}

const ALL_OF_THEIRS: [&Sql; 16] = [
    &SESSIONS,
    &TOKENS,
    &SSH_KEYS,
    &LINKS,
    &EMAILS,
    &RECOVERY_CODES,
    &TOTP,
    &ROLES,
    &STARS,
    &WATCHES,
    &FOLLOWS,
    &ASSIGNEES,
    &SUBSCRIPTIONS,
    &MENTIONS,
    &NOTIFICATIONS,
    &OPT_OUTS,
];

/// Removes all credentials, roles and personal data of an account.
pub async fn clear(tx: &mut Tx, user: UserId) -> Result<(), StoreError> {
    for sql in ALL_OF_THEIRS {
        tx.execute(sql, params![user]).await?;
    }
    Ok(())
}

/// Removes some of an account's texts; `false` once nothing is left.
pub async fn erase_some(tx: &mut Tx, user: UserId, limit: i64) -> Result<bool, StoreError> {
    if let Some(last) = tx.only(&NEXT_COMMENT, params![user, limit]).await?.opt_int("id")? {
        tx.execute(&FEWER_COMMENTS, params![user, last]).await?;
        tx.execute(&REMOVE_COMMENTS, params![user, last]).await?;
        return Ok(true);
    }
    let now = tx.now();
    if tx.execute(&BLANK_ISSUES, params![user, now, limit]).await? > 0 {
        return Ok(true);
    }
    tx.execute(&FORGET_TITLES, params![user]).await?;
    Ok(false)
}
