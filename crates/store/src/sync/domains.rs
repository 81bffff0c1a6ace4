//! Domains (host and port) that git data is fetched from: requests of the last window, turns, and rest after failures.

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx, leases};
use abide_core::Timestamp;
use abide_core::sync::window::{DomainLimits, judge};
use std::time::Duration;

/// Columns of [`Domain`].
macro_rules! columns {
    () => {
        "domain, rests_from, rests_until, reason, failures, failed_at, succeeded_at, asked_at"
    };
}

statements! {
    ENSURE = "INSERT INTO sync_domains (domain, asked_at) VALUES ($1, $2)
        ON CONFLICT (domain) DO UPDATE SET asked_at = excluded.asked_at";
    LOCK = concat!("SELECT ", columns!(), " FROM sync_domains WHERE domain = $1"), postgres " FOR UPDATE";
    MADE = "SELECT made_at FROM sync_requests WHERE domain = $1 AND made_at > $2 ORDER BY made_at";
    RUNNING = "SELECT count(*) AS n FROM sync_requests WHERE domain = $1 AND ends_at IS NOT NULL AND ends_at > $2";
    REQUEST = "INSERT INTO sync_requests (domain, made_at, holder, ends_at) VALUES ($1, $2, $3, $4) RETURNING id";
    END = "UPDATE sync_requests SET ends_at = NULL, holder = NULL WHERE id = $1";
    EXPIRE_OF = "UPDATE sync_requests SET ends_at = NULL
        WHERE ends_at IS NOT NULL AND substr(holder, 1, length($1)) = $1 AND holder <> $2";
    SUCCEEDED = "UPDATE sync_domains SET rests_from = NULL, rests_until = NULL, reason = '', failures = 0, succeeded_at = $2
        WHERE domain = $1";
    FAILED = "UPDATE sync_domains SET reason = $2, failures = failures + 1, failed_at = $3 WHERE domain = $1";
    REST = "UPDATE sync_domains SET rests_from = $2, rests_until = $3, reason = $4 WHERE domain = $1";
    WAKE = "UPDATE sync_domains SET rests_from = NULL, rests_until = NULL WHERE domain = $1";

    TAKE_TURN = "DELETE FROM sync_turns WHERE domain = $1 AND queue_id = $2";
    WAIT = "INSERT INTO sync_turns (domain, queue_id, since) VALUES ($1, $2, $3) ON CONFLICT (domain, queue_id) DO NOTHING";
    SINCE = "SELECT since FROM sync_turns WHERE domain = $1 AND queue_id = $2";
    BEFORE = "SELECT count(*) AS n FROM (SELECT 1 FROM sync_turns
        WHERE domain = $1 AND (since < $2 OR (since = $2 AND queue_id < $3)) LIMIT $4) counted";
    FIRST = "SELECT queue_id FROM sync_turns WHERE domain = $1 ORDER BY since, queue_id LIMIT $2";
    NEXT_WITH_TURNS = "SELECT domain FROM sync_turns WHERE domain > $1 ORDER BY domain LIMIT 1";
    DROP_TURNS = "DELETE FROM sync_turns WHERE queue_id = $1 AND since < $2";

    BY_NAME = concat!("SELECT ", columns!(), " FROM sync_domains WHERE domain = $1");
    PAGE = concat!("SELECT ", columns!(), " FROM sync_domains WHERE domain > $1 ORDER BY domain LIMIT $2");
    PRUNE_REQUESTS = "DELETE FROM sync_requests WHERE made_at < $1 AND (ends_at IS NULL OR ends_at < $1)";
    PRUNE = "DELETE FROM sync_domains WHERE asked_at < $1 AND (rests_until IS NULL OR rests_until < $1)";
    FORGET = "DELETE FROM sync_domains WHERE domain = $1";
}

/// A domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// Host and port.
    pub name: String,
    pub rests_from: Option<Timestamp>,
    pub rests_until: Option<Timestamp>,
    /// The last failure, as a sentence; empty after a success.
    pub reason: String,
    /// Failures since the last success.
    pub failures: i64,
    pub failed_at: Option<Timestamp>,
    pub succeeded_at: Option<Timestamp>,
    pub asked_at: Timestamp,
}

impl Domain {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            name: row.text("domain")?,
            rests_from: row.opt_time("rests_from")?,
            rests_until: row.opt_time("rests_until")?,
            reason: row.text("reason")?,
            failures: row.int("failures")?,
            failed_at: row.opt_time("failed_at")?,
            succeeded_at: row.opt_time("succeeded_at")?,
            asked_at: row.time("asked_at")?,
        })
    }

    /// End of the rest, if it rests at this time. A newer announcement that names the domain ends the rest.
    fn rest(&self, now: Timestamp, named_at: Timestamp) -> Option<Timestamp> {
        let until = self.rests_until.filter(|until| *until > now)?;
        self.rests_from.is_none_or(|from| named_at <= from).then_some(until)
    }
}

/// A request for git data that is to be made.
#[derive(Debug, Clone)]
pub struct NewRequest {
    pub domain: String,
    /// Entry of the queue that it is for.
    pub queue: i64,
    /// When an event named the domain last.
    pub named_at: Timestamp,
    /// Process that makes it.
    pub holder: String,
    /// Longest duration.
    pub at_most: Duration,
}

/// Answer to [`request`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requested {
    /// It may be made, under this number.
    Made(i64),
    /// The domain rests.
    Resting(Timestamp),
    /// The domain has had its requests; the entry waits for its turn.
    Throttled,
}

/// Takes one request of a domain, or queues the entry for its turn. Entries that wait longer come first.
pub async fn request(tx: &mut Tx, new: &NewRequest, limits: &DomainLimits) -> Result<Requested, StoreError> {
    let now = tx.now();
    let name = new.domain.as_str();
    tx.execute(&ENSURE, params![name, now]).await?;
    // Requests of all nodes to this domain are judged one after another.
    let domain = Domain::from_row(&tx.only(&LOCK, params![name]).await?)?;
    if let Some(until) = domain.rest(now, new.named_at) {
        return Ok(Requested::Resting(until));
    }
    let free = free(tx, name, limits).await?;
    let since = match tx.one(&SINCE, params![name, new.queue]).await? {
        Some(row) => row.time("since")?,
        None => now,
    };
    let limit = i64::try_from(free).unwrap_or(i64::MAX);
    let before = tx.only(&BEFORE, params![name, since, new.queue, limit]).await?.int("n")?;
    if before >= limit {
        tx.execute(&WAIT, params![name, new.queue, now]).await?;
        return Ok(Requested::Throttled);
    }
    tx.execute(&TAKE_TURN, params![name, new.queue]).await?;
    let ends_at = leases::now(tx, now).await?.plus(new.at_most);
    let row = tx.only(&REQUEST, params![name, now, new.holder.as_str(), ends_at]).await?;
    Ok(Requested::Made(row.int("id")?))
}

/// Requests that a domain has left now.
async fn free(tx: &mut Tx, domain: &str, limits: &DomainLimits) -> Result<u64, StoreError> {
    let local = tx.now();
    let rows = tx.all(&MADE, params![domain, local.minus(limits.window)]).await?;
    let mut made = rows.iter().map(|row| row.time("made_at")).collect::<Result<Vec<_>, _>>()?;
    let now = leases::now(tx, local).await?;
    let running = tx.only(&RUNNING, params![domain, now]).await?.int("n")?;
    let mut running = u64::try_from(running).unwrap_or(0);
    let mut free = 0;
    while judge(&made, running, limits.requests, limits, local).is_ok() {
        made.push(local);
        running += 1;
        free += 1;
    }
    Ok(free)
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The domain answered as a git server does.
    Answered,
    /// It failed in a way that may pass soon; the reason is a sentence.
    Failed(String),
    /// Name lookup, TLS or protocol failed: it rests for so long.
    Rests(Duration, String),
}

/// Ends a request.
pub async fn end(tx: &mut Tx, request: i64, domain: &str, ended: &Ended) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&END, params![request]).await?;
    match ended {
        Ended::Answered => tx.execute(&SUCCEEDED, params![domain, now]).await?,
        Ended::Failed(reason) => tx.execute(&FAILED, params![domain, reason.as_str(), now]).await?,
        Ended::Rests(time, reason) => {
            tx.execute(&FAILED, params![domain, reason.as_str(), now]).await?;
            tx.execute(&REST, params![domain, now, now.plus(*time), reason.as_str()]).await?
        }
    };
    Ok(())
}

/// Ends the requests of every process whose name starts with `prefix`, except this one: those processes are gone.
pub async fn expire_of(tx: &mut Tx, prefix: &str, except: &str) -> Result<u64, StoreError> {
    tx.execute(&EXPIRE_OF, params![prefix, except]).await
}

/// The entries whose turn at a domain has come: as many as it has requests left.
pub async fn turns(tx: &mut Tx, domain: &str, limits: &DomainLimits) -> Result<Vec<i64>, StoreError> {
    let free = i64::try_from(free(tx, domain, limits).await?).unwrap_or(i64::MAX);
    tx.all(&FIRST, params![domain, free]).await?.iter().map(|row| row.int("queue_id")).collect()
}

/// The next domain in alphabetical order at which entries wait for their turn.
pub async fn next_with_turns(conn: &mut Conn, after: &str) -> Result<Option<String>, StoreError> {
    conn.one(&NEXT_WITH_TURNS, params![after]).await?.map(|row| row.text("domain")).transpose()
}

/// Gives up the turns that an entry waited for before an instant and did not take.
pub async fn drop_turns(tx: &mut Tx, queue: i64, before: Timestamp) -> Result<u64, StoreError> {
    tx.execute(&DROP_TURNS, params![queue, before]).await
}

/// The domain with this name.
pub async fn by_name(conn: &mut Conn, name: &str) -> Result<Option<Domain>, StoreError> {
    conn.one(&BY_NAME, params![name]).await?.as_ref().map(Domain::from_row).transpose()
}

/// Domains in alphabetical order, after the one with this name.
pub async fn page(conn: &mut Conn, after: &str, limit: i64) -> Result<Vec<Domain>, StoreError> {
    conn.all(&PAGE, params![after, limit]).await?.iter().map(Domain::from_row).collect()
}

/// Lets a domain rest, for the operator; or ends its rest.
pub async fn set_rest(tx: &mut Tx, name: &str, rest: Option<(Duration, &str)>) -> Result<bool, StoreError> {
    let now = tx.now();
    let changed = match rest {
        Some((time, reason)) => tx.execute(&REST, params![name, now, now.plus(time), reason]).await?,
        None => tx.execute(&WAKE, params![name]).await?,
    };
    Ok(changed > 0)
}

/// Forgets a domain and its failures.
pub async fn forget(tx: &mut Tx, name: &str) -> Result<bool, StoreError> {
    Ok(tx.execute(&FORGET, params![name]).await? > 0)
}

/// Removes requests and domains that were last used before an instant.
pub async fn prune(tx: &mut Tx, before: Timestamp) -> Result<u64, StoreError> {
    let requests = tx.execute(&PRUNE_REQUESTS, params![before]).await?;
    Ok(requests + tx.execute(&PRUNE, params![before]).await?)
}
