//! Pushes: the intent row written before refs move, and its outcome.

use crate::leases::{self, Lease};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::{Oid, PushId, RefName, RefUpdate, RepoId, Timestamp, UserId};

/// Columns of [`Push`].
macro_rules! columns {
    () => {
        "p.id, p.repo_id, p.actor_user_id, p.transport, p.incoming, p.updates, p.lease_token, p.generation,
            p.started_at, p.signed"
    };
}

statements! {
    INSERT = "INSERT INTO pushes
        (repo_id, actor_user_id, state, transport, incoming, updates, lease_token, generation, started_at, signed)
        VALUES ($1, $2, 'running', $3, $4, $5, $6, $7, $8, $9) RETURNING id";
    END = "UPDATE pushes SET state = $2, finished_at = $3 WHERE id = $1 AND state = 'running'";
    RUNNING_OF_REPO = concat!("SELECT ", columns!(), " FROM pushes p
        WHERE p.repo_id = $1 AND p.state = 'running' ORDER BY p.id");
    /// Running pushes that no longer hold their lease: their process is gone.
    ORPHANED = concat!("SELECT ", columns!(), " FROM pushes p
        LEFT JOIN leases l ON l.name = 'repo:' || CAST(p.repo_id AS TEXT)
            AND l.token = p.lease_token AND l.expires_at > $1
        WHERE p.state = 'running' AND p.id > $2 AND l.name IS NULL
        ORDER BY p.id LIMIT $3");
    UPDATES = "SELECT updates FROM pushes WHERE id = $1";
    LATEST_DONE = concat!("SELECT ", columns!(), " FROM pushes p
        WHERE p.repo_id = $1 AND p.state = 'done' ORDER BY p.id DESC LIMIT 1");
    RUNNING = "SELECT count(*) AS n FROM pushes WHERE state = 'running'";
    PRUNE = "DELETE FROM pushes WHERE state <> 'running' AND finished_at < $1";
}

/// Name of the lease for moving refs of a repository.
pub fn lease_name(repo: RepoId) -> String {
    format!("repo:{repo}")
}

/// Outcome of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Its refs moved.
    Done,
    /// Its refs did not move.
    Aborted,
}

/// A push whose refs may be moving.
#[derive(Debug, Clone)]
pub struct Push {
    pub id: PushId,
    pub repo_id: RepoId,
    pub actor: Option<UserId>,
    /// `http`, `ssh` or `server`.
    pub transport: String,
    /// Key of the incoming area with its objects.
    pub incoming: String,
    /// Requested ref updates.
    pub updates: Vec<RefUpdate>,
    /// The odd generation that it set.
    pub generation: i64,
    /// Token of the lease that it started under.
    pub lease_token: i64,
    pub started_at: Timestamp,
    /// Data of the signed events that authorise it; `None` if a role does.
    pub signed: Option<String>,
}

impl Push {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: PushId::new(row.int("id")?),
            repo_id: RepoId::new(row.int("repo_id")?),
            actor: row.opt_int("actor_user_id")?.map(UserId::new),
            transport: row.text("transport")?,
            incoming: row.text("incoming")?,
            updates: decode(&row.text("updates")?)?,
            generation: row.int("generation")?,
            lease_token: row.int("lease_token")?,
            started_at: row.time("started_at")?,
            signed: row.opt_text("signed")?,
        })
    }
}

/// One line per update: `old new ref`, as on the wire.
fn encode(updates: &[RefUpdate]) -> String {
    updates.iter().map(|update| format!("{} {} {}\n", update.old, update.new, update.name)).collect()
}

fn decode(text: &str) -> Result<Vec<RefUpdate>, StoreError> {
    text.lines()
        .map(|line| {
            let mut parts = line.splitn(3, ' ');
            let mut oid = || parts.next().and_then(|hex| hex.parse::<Oid>().ok());
            let (old, new) = (oid()?, oid()?);
            let name = parts.next()?.parse::<RefName>().ok()?;
            Some(RefUpdate { name, old, new })
        })
        .collect::<Option<_>>()
        .ok_or_else(|| StoreError::Unreadable { column: "updates", reason: "not a list of ref updates".into() })
}

/// Data of a push before its refs move.
#[derive(Debug, Clone)]
pub struct Intent {
    pub repo_id: RepoId,
    pub actor: Option<UserId>,
    /// `http`, `ssh` or `server`.
    pub transport: &'static str,
    /// Key of the incoming area with the objects.
    pub incoming: String,
    /// Requested ref updates.
    pub updates: Vec<RefUpdate>,
    /// Data of the signed events that authorise it; `None` if a role does.
    pub signed: Option<String>,
}

/// Writes the intent and makes the generation odd.
pub async fn begin(tx: &mut Tx, intent: &Intent, lease: &Lease) -> Result<Push, StoreError> {
    let generation = crate::repos::begin_refs(tx, intent.repo_id).await?;
    let started_at = tx.now();
    let values = params![
        intent.repo_id,
        intent.actor,
        intent.transport,
        intent.incoming.as_str(),
        encode(&intent.updates),
        lease.token,
        generation,
        started_at,
        intent.signed.as_deref()
    ];
    Ok(Push {
        id: PushId::new(tx.only(&INSERT, values).await?.int("id")?),
        repo_id: intent.repo_id,
        actor: intent.actor,
        transport: intent.transport.to_owned(),
        incoming: intent.incoming.clone(),
        updates: intent.updates.clone(),
        generation,
        lease_token: lease.token,
        started_at,
        signed: intent.signed.clone(),
    })
}

/// Writes the outcome and makes the generation even; `false` if another writer did already.
pub async fn end(tx: &mut Tx, push: &Push, outcome: Outcome) -> Result<bool, StoreError> {
    let now = tx.now();
    let state = match outcome {
        Outcome::Done => "done",
        Outcome::Aborted => "aborted",
    };
    let mine = tx.execute(&END, params![push.id, state, now]).await? > 0;
    if mine {
        crate::repos::end_refs(tx, push.repo_id, push.generation).await?;
    }
    Ok(mine)
}

/// Unfinished pushes of a repository. More than one means that several processes died.
pub async fn running_of(conn: &mut Conn, repo: RepoId) -> Result<Vec<Push>, StoreError> {
    conn.all(&RUNNING_OF_REPO, params![repo]).await?.iter().map(Push::from_row).collect()
}

/// A page of running pushes whose process is gone, by id.
pub async fn orphaned(conn: &mut Conn, local: Timestamp, after: PushId, limit: i64) -> Result<Vec<Push>, StoreError> {
    let now = leases::now(conn, local).await?;
    conn.all(&ORPHANED, params![now, after, limit]).await?.iter().map(Push::from_row).collect()
}

/// Latest push that moved refs of a repository, unless it is pruned.
pub async fn latest_of(conn: &mut Conn, repo: RepoId) -> Result<Option<Push>, StoreError> {
    conn.one(&LATEST_DONE, params![repo]).await?.as_ref().map(Push::from_row).transpose()
}

/// Ref updates of a push; empty once it is pruned.
pub async fn updates(conn: &mut Conn, id: PushId) -> Result<Vec<RefUpdate>, StoreError> {
    match conn.one(&UPDATES, params![id]).await? {
        Some(row) => decode(&row.text("updates")?),
        None => Ok(Vec::new()),
    }
}

/// Number of unfinished pushes.
pub async fn count_running(conn: &mut Conn) -> Result<i64, StoreError> {
    conn.only(&RUNNING, &[]).await?.int("n")
}

/// Removes pushes that finished before an instant; their events stay.
pub async fn prune(tx: &mut Tx, before: Timestamp) -> Result<u64, StoreError> {
    tx.execute(&PRUNE, params![before]).await
}
