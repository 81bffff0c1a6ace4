//! The audit log: who did what, append-only, sealed into a chain by the [`crate::sequencer`].

use crate::repos::{address, identifier};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::audit::Action;
use abide_core::{Handle, RepoId, Timestamp, UserId};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value as Json;
use sha2::Sha256;

/// The columns of [`Record`].
macro_rules! columns {
    () => {
        "id, seq, prev_hash, hash, actor_user_id, action, repo_id, ip, meta, created_at"
    };
}

/// The columns and tables of [`Named`].
macro_rules! named {
    () => {
        concat!(
            "SELECT a.id, a.seq, a.prev_hash, a.hash, a.actor_user_id, a.action, a.repo_id, a.ip, a.meta, a.created_at,
            COALESCE(u.name, u.npub) AS actor_name, COALESCE(o.name, o.npub) AS owner_name, r.name AS repo_name, ",
            identifier!(),
            " FROM audit_log a
        LEFT JOIN users u ON u.id = a.actor_user_id
        LEFT JOIN repos r ON r.id = a.repo_id
        LEFT JOIN users o ON o.id = r.owner_id "
        )
    };
}

statements! {
    INSERT = "INSERT INTO audit_log (actor_user_id, action, repo_id, ip, meta, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)";
    UNSEALED = concat!("SELECT ", columns!(), " FROM audit_log WHERE seq IS NULL ORDER BY id LIMIT $1");
    COUNT_UNSEALED = "SELECT count(*) AS n FROM audit_log WHERE seq IS NULL";
    SEAL = "UPDATE audit_log SET seq = $2, prev_hash = $3, hash = $4 WHERE id = $1 AND seq IS NULL";
    SEALED = concat!("SELECT ", columns!(), " FROM audit_log WHERE seq > $1 ORDER BY seq LIMIT $2");
    /// Newest first behind $2.
    PAGE_OF_REPO = concat!(named!(), "WHERE a.repo_id = $1 AND a.id < $2 ORDER BY a.id DESC LIMIT $3");
    RENAMES = "SELECT created_at FROM audit_log
        WHERE action = 'repo_renamed' AND repo_id = $1 AND created_at > $2 ORDER BY created_at DESC LIMIT $3";
    /// Newest first behind $1; $2, $3 and $4 choose an action, an actor and a repository, each if it is given.
    PAGE = concat!(named!(), "
        WHERE a.id < $1 AND ($2 = '' OR a.action = $2) AND (CAST($3 AS BIGINT) IS NULL OR a.actor_user_id = $3)
          AND (CAST($4 AS BIGINT) IS NULL OR a.repo_id = $4)
        ORDER BY a.id DESC LIMIT $5");
}

/// A row to append.
#[derive(Debug, Clone)]
pub struct Entry {
    /// `None`: the system or the operator at the command line.
    pub actor: Option<UserId>,
    pub action: Action,
    pub repo: Option<RepoId>,
    pub ip: Option<String>,
    /// Details of the action, such as values before and after.
    pub meta: Json,
}

/// Appends a row. The only way to write here; call it in the transaction of the change.
pub async fn append(tx: &mut Tx, entry: &Entry) -> Result<(), StoreError> {
    let now = tx.now();
    let (action, meta) = (entry.action.as_str(), entry.meta.to_string());
    let values = params![entry.actor, action, entry.repo, entry.ip.as_deref(), meta, now];
    tx.execute(&INSERT, values).await?;
    tx.wake_log();
    Ok(())
}

/// A row as it was written, with its number in the chain once it is sealed.
#[derive(Debug, Clone)]
pub struct Record {
    pub id: i64,
    /// Number in the chain.
    pub seq: Option<i64>,
    prev_hash: Option<Vec<u8>>,
    hash: Option<Vec<u8>>,
    pub actor: Option<UserId>,
    /// As stored: the seal covers these bytes, and a newer version may have written an unknown action.
    pub action: String,
    pub repo: Option<RepoId>,
    pub ip: Option<String>,
    /// JSON.
    pub meta: String,
    pub created_at: Timestamp,
}

impl Record {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.int("id")?,
            seq: row.opt_int("seq")?,
            prev_hash: row.opt_bytes("prev_hash")?,
            hash: row.opt_bytes("hash")?,
            actor: row.opt_int("actor_user_id")?.map(UserId::new),
            action: row.text("action")?,
            repo: row.opt_int("repo_id")?.map(RepoId::new),
            ip: row.opt_text("ip")?,
            meta: row.text("meta")?,
            created_at: row.time("created_at")?,
        })
    }

    /// The seal of this row as number `seq` behind a row with the seal `previous`.
    ///
    /// Every field goes in with its length, so that no two different rows read the same.
    fn seal(&self, key: &[u8], seq: i64, previous: &[u8]) -> Vec<u8> {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
        let number = |value: Option<i64>| value.map(|value| value.to_be_bytes().to_vec());
        let fields = [
            Some(previous.to_vec()),
            number(Some(seq)),
            number(Some(self.id)),
            number(self.actor.map(UserId::get)),
            Some(self.action.clone().into_bytes()),
            number(self.repo.map(RepoId::get)),
            self.ip.clone().map(String::into_bytes),
            Some(self.meta.clone().into_bytes()),
            number(Some(self.created_at.micros())),
        ];
        for field in fields {
            mac.update(&field.as_ref().map_or(-1, |bytes| bytes.len() as i64).to_be_bytes());
            mac.update(&field.unwrap_or_default());
        }
        mac.finalize().into_bytes().to_vec()
    }
}

/// Seals up to `limit` rows behind the head `(seq, hash)`. Returns the new head and how many rows were sealed.
pub(crate) async fn seal(
    tx: &mut Tx,
    key: &[u8],
    mut head: (i64, Vec<u8>),
    limit: i64,
) -> Result<((i64, Vec<u8>), u64), StoreError> {
    let rows = tx.all(&UNSEALED, params![limit]).await?;
    let sealed = rows.len() as u64;
    for row in &rows {
        let record = Record::from_row(row)?;
        let seq = head.0 + 1;
        let hash = record.seal(key, seq, &head.1);
        tx.execute(&SEAL, params![record.id, seq, head.1.as_slice(), hash.as_slice()]).await?;
        head = (seq, hash);
    }
    Ok((head, sealed))
}

/// Result of checking the whole chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainReport {
    /// Rows with a valid seal.
    pub sealed: i64,
    /// Rows that the sequencer has not come to.
    pub unsealed: i64,
    /// The first row whose seal does not match, or the position of a missing one.
    pub broken_at: Option<i64>,
}

/// Walks the chain from its start to the head that the sequencer remembers.
pub async fn verify(conn: &mut Conn, key: &[u8]) -> Result<ChainReport, StoreError> {
    const PAGE: i64 = 1000;
    // The head first: rows sealed while we walk lie behind it and are checked too, but not required.
    let (last, last_hash) = crate::sequencer::head(conn, "audit").await?;
    let (mut seq, mut previous) = (0, Vec::new());
    let mut broken_at = None;
    'pages: loop {
        let rows = conn.all(&SEALED, params![seq, PAGE]).await?;
        for row in &rows {
            let record = Record::from_row(row)?;
            let expected = record.seal(key, seq + 1, &previous);
            let fits = record.seq == Some(seq + 1)
                && record.prev_hash.as_deref() == Some(&previous)
                && record.hash.as_deref() == Some(&expected);
            if !fits {
                broken_at = Some(seq + 1);
                break 'pages;
            }
            seq += 1;
            previous = expected;
            if seq == last && previous != last_hash {
                broken_at = Some(seq);
                break 'pages;
            }
        }
        if rows.len() < PAGE as usize {
            break;
        }
    }
    if broken_at.is_none() && seq < last {
        broken_at = Some(seq + 1);
    }
    let unsealed = conn.only(&COUNT_UNSEALED, &[]).await?.int("n")?;
    Ok(ChainReport { sealed: seq, unsealed, broken_at })
}

/// Which rows of the log to show.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub action: Option<Action>,
    pub actor: Option<UserId>,
    pub repo: Option<RepoId>,
}

/// A row with the names that its ids have now.
#[derive(Debug, Clone)]
pub struct Named {
    /// The row.
    pub record: Record,
    /// Name of the actor.
    pub actor: Option<Handle>,
    /// `owner/name` of the repository, if it is there.
    pub repo: Option<String>,
}

impl Named {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let repo = match (row.opt_text("owner_name")?, row.opt_text("repo_name")?) {
            (Some(owner), Some(name)) => Some(address(&owner, &name, row.opt_text("identifier")?.as_deref())),
            _ => None,
        };
        let actor = row.opt_text("actor_name")?.map(Handle::from_stored);
        Ok(Self { record: Record::from_row(row)?, actor, repo })
    }
}

/// A page of the log, newest first, behind a row.
pub async fn page(conn: &mut Conn, filter: &Filter, before: i64, limit: i64) -> Result<Vec<Named>, StoreError> {
    let action = filter.action.map_or("", Action::as_str);
    let rows = conn.all(&PAGE, params![before, action, filter.actor, filter.repo, limit]).await?;
    rows.iter().map(Named::from_row).collect()
}

/// A page of what was done to a repository, newest first, behind a row.
pub async fn page_of_repo(conn: &mut Conn, repo: RepoId, before: i64, limit: i64) -> Result<Vec<Named>, StoreError> {
    conn.all(&PAGE_OF_REPO, params![repo, before, limit]).await?.iter().map(Named::from_row).collect()
}

/// When a repository was renamed since then, the latest first.
pub async fn renames(
    conn: &mut Conn,
    repo: RepoId,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<Timestamp>, StoreError> {
    conn.all(&RENAMES, params![repo, since, limit]).await?.iter().map(|row| row.time("created_at")).collect()
}
