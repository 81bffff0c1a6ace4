//! The event log as it is stored, which no reader of the forge sees.

use abide_core::RepoId;
use abide_store::{Sql, Store, params};

const COUNT: Sql = {
    let text = "SELECT count(*) AS n FROM domain_events WHERE repo_id = $1 AND kind = $2";
    Sql::new("test", "COUNT", text, text)
};
const STORED: Sql = {
    let text = "SELECT payload FROM domain_events WHERE seq = $1";
    Sql::new("test", "STORED", text, text)
};

/// Number of events of a kind that a repository has, numbered or not.
pub async fn count_of_kind(store: &Store, repo: RepoId, kind: &str) -> i64 {
    let mut conn = store.read().await.expect("readable");
    conn.only(&COUNT, params![repo, kind]).await.and_then(|row| row.int("n")).expect("readable")
}

/// Stored payload of the event at a position.
pub async fn stored_json(store: &Store, seq: i64) -> String {
    let mut conn = store.read().await.expect("readable");
    conn.only(&STORED, params![seq]).await.and_then(|row| row.text("payload")).expect("readable")
}
