//! Trending repositories: counted from the event log periodically, shown with the viewer's current permissions.

use crate::repos::{Repo, Viewer, columns, visible};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError, Tx};
use abide_core::Timestamp;
use abide_core::feed::{Period, WEIGHTS};

statements! {
    CLEAR = "DELETE FROM trending WHERE period = $1";
    /// Each user counts once per repository, by the balance of their actions and by the age of their account ($5 and $7
    /// are ages, $4, $6 and $8 the weights from there on). The owner and suspended accounts do not count.
    COUNT = "INSERT INTO trending (period, repo_id, score, counted_at)
        SELECT $1, repo_id, sum(way * weight), $3 FROM (
            SELECT e.repo_id, e.actor_user_id,
                CASE WHEN sum(CASE e.kind WHEN 'unstar' THEN -1 ELSE 1 END) > 0 THEN 1
                    WHEN sum(CASE e.kind WHEN 'unstar' THEN -1 ELSE 1 END) < 0 THEN -1 ELSE 0 END AS way,
                CASE WHEN min(e.created_at) - u.created_at >= $7 THEN CAST($8 AS BIGINT)
                    WHEN min(e.created_at) - u.created_at >= $5 THEN CAST($6 AS BIGINT) ELSE CAST($4 AS BIGINT) END AS weight
            FROM domain_events e
            JOIN repos r ON r.id = e.repo_id
            JOIN users u ON u.id = e.actor_user_id
            WHERE e.kind IN ('star', 'unstar', 'repo_forked') AND e.created_at >= $2 AND e.public
                AND r.deleted_at IS NULL AND r.visibility = 'public' AND u.suspended_at IS NULL AND u.id <> r.owner_id
            GROUP BY e.repo_id, e.actor_user_id, u.created_at) likings
        GROUP BY repo_id HAVING sum(way * weight) > 0
        ORDER BY sum(way * weight) DESC, repo_id DESC LIMIT $9";
    LIST = concat!("SELECT ", columns!(), ", c.role AS role
        FROM trending t
        JOIN repos r ON r.id = t.repo_id
        JOIN users u ON u.id = r.owner_id
        LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $2
        WHERE t.period = $1 AND r.visibility = 'public' AND ", visible!("$2", "$3"), "
        ORDER BY t.score DESC, t.repo_id DESC LIMIT $4");
}

/// Counts trending repositories since an instant, and stores the first `limit`.
pub async fn count(tx: &mut Tx, period: Period, since: Timestamp, limit: i64) -> Result<(), StoreError> {
    let micros = |index: usize| i64::try_from(WEIGHTS[index].0.as_micros()).unwrap_or(i64::MAX);
    let now = tx.now();
    tx.execute(&CLEAR, params![period.as_str()]).await?;
    let [(_, fresh), (_, young), (_, grown)] = WEIGHTS;
    let values = params![period.as_str(), since, now, fresh, micros(1), young, micros(2), grown, limit];
    tx.execute(&COUNT, values).await.map(drop)
}

/// Trending repositories that the viewer may read, most popular first. Only public ones count.
pub async fn list(conn: &mut Conn, period: Period, viewer: Viewer, limit: i64) -> Result<Vec<Repo>, StoreError> {
    let rows = conn.all(&LIST, params![period.as_str(), viewer.user, viewer.reads_everything, limit]).await?;
    rows.iter().map(Repo::from_row).collect()
}
