//! Topics of repositories.

use crate::repos::id_list;
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError, Tx};
use abide_core::{RepoId, Topic};
use std::collections::HashMap;

statements! {
    OF_REPO = "SELECT topic FROM repo_topics WHERE repo_id = $1 ORDER BY position";
    /// For a page of repositories at once.
    OF_MANY = "SELECT repo_id, topic FROM repo_topics WHERE repo_id ",
        sqlite "IN (SELECT value FROM json_each('[' || $1 || ']')) ORDER BY repo_id, position",
        postgres "= ANY (CAST(string_to_array($1, ',') AS BIGINT[])) ORDER BY repo_id, position";
    CLEAR = "DELETE FROM repo_topics WHERE repo_id = $1";
    INSERT = "INSERT INTO repo_topics (repo_id, topic, position) VALUES ($1, $2, $3)";
    TOUCH = "UPDATE repos SET updated_at = $2 WHERE id = $1";
}

/// Topics of a repository, in order.
pub async fn of_repo(conn: &mut Conn, repo: RepoId) -> Result<Vec<Topic>, StoreError> {
    let rows = conn.all(&OF_REPO, params![repo]).await?;
    rows.iter().map(|row| row.text("topic").map(Topic::from_stored)).collect()
}

/// Topics of several repositories; repositories without topics are omitted.
pub async fn of_many(conn: &mut Conn, repos: &[RepoId]) -> Result<HashMap<RepoId, Vec<Topic>>, StoreError> {
    let mut topics: HashMap<RepoId, Vec<Topic>> = HashMap::new();
    for row in conn.all(&OF_MANY, params![id_list(repos)]).await? {
        topics.entry(RepoId::new(row.int("repo_id")?)).or_default().push(Topic::from_stored(row.text("topic")?));
    }
    Ok(topics)
}

/// Replaces the topics of a repository, whose row the unit has locked.
pub async fn replace(tx: &mut Tx, repo: RepoId, topics: &[Topic]) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&CLEAR, params![repo]).await?;
    for (position, topic) in (0_i64..).zip(topics) {
        tx.execute(&INSERT, params![repo, topic.as_str(), position]).await?;
    }
    tx.execute(&TOUCH, params![repo, now]).await.map(drop)
}
