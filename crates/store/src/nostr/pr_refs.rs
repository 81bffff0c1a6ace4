//! Refs of PR events (`refs/nostr/…`) that strangers made. A row goes with its event and with its repository.

use crate::nostr::purgatory::Bytes32;
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError, Tx};
use abide_core::RepoId;

statements! {
    ADD = "INSERT INTO nostr_proposal_refs (repo_id, event_id, pubkey) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    OF_REPO = "SELECT count(*) AS n FROM nostr_proposal_refs WHERE repo_id = $1";
    OF_KEY = "SELECT count(*) AS n FROM nostr_proposal_refs WHERE pubkey = $1";
}

/// Counts the ref of a stored PR event in a repository.
pub async fn add(tx: &mut Tx, repo: RepoId, event: &Bytes32, author: &Bytes32) -> Result<(), StoreError> {
    tx.execute(&ADD, params![repo, &event[..], &author[..]]).await.map(drop)
}

/// Refs in a repository.
pub async fn of_repo(conn: &mut Conn, repo: RepoId) -> Result<i64, StoreError> {
    conn.only(&OF_REPO, params![repo]).await?.int("n")
}

/// Refs of a key, in all repositories together.
pub async fn of_key(conn: &mut Conn, key: &Bytes32) -> Result<i64, StoreError> {
    conn.only(&OF_KEY, params![&key[..]]).await?.int("n")
}
