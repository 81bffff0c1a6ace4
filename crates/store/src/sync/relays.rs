//! Other relays that are followed. One row per relay, held by one task in the cluster at a time.

use crate::holds::{self, expire_holds};
use crate::nostr::purgatory::Bytes32;
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx, leases};
use abide_core::Timestamp;
use abide_core::sync::attempts::{FIRST_PAUSE, PAUSE};
use std::time::Duration;

/// Columns of [`Relay`].
macro_rules! columns {
    () => {
        "url, bootstrap, capability, learned_at, next_attempt, failures, failing_from, reason, rests_until, connected_at,
            seen_at, reconciled_at, events, refused, token, expires_at"
    };
}

/// `next_attempt` of a held row that no announcement has asked for yet.
const NEVER: Timestamp = Timestamp::from_micros(i64::MAX);

statements! {
    /// A relay that fails or rests is not asked earlier because it is announced again.
    NAME = "INSERT INTO sync_relays (url, bootstrap, next_attempt, created_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (url) DO UPDATE SET bootstrap = (sync_relays.bootstrap OR excluded.bootstrap),
            next_attempt = CASE WHEN sync_relays.failures = 0 AND sync_relays.rests_until IS NULL
                    AND sync_relays.next_attempt > excluded.next_attempt THEN excluded.next_attempt
                ELSE sync_relays.next_attempt END";
    NOT_BOOTSTRAP = "UPDATE sync_relays SET bootstrap = FALSE WHERE bootstrap AND url = $1";
    BOOTSTRAP = "SELECT url FROM sync_relays WHERE bootstrap ORDER BY url";
    CLEAR_REPO = "DELETE FROM sync_relay_repos WHERE identifier = $1 AND pubkey = $2";
    NAME_REPO = "INSERT INTO sync_relay_repos (identifier, pubkey, url, from_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (identifier, pubkey, url) DO NOTHING";
    RELAYS_OF = "SELECT url FROM sync_relay_repos WHERE identifier = $1 AND pubkey = $2 ORDER BY url";
    ACCEPTABLE = "DELETE FROM sync_refused WHERE url = $1 AND class = 'restricted'";
    COMPARE_AGAIN = "UPDATE sync_relays SET reconciled_at = NULL WHERE url = $1";

    /// A check without a write lock: a relay is due, or a hold has expired.
    ANYTHING = "SELECT 1 AS n WHERE
        (SELECT next_attempt FROM sync_relays WHERE expires_at IS NULL ORDER BY next_attempt LIMIT 1) <= $1
        OR (SELECT expires_at FROM sync_relays WHERE expires_at IS NOT NULL ORDER BY expires_at LIMIT 1) <= $2";
    /// Relays of accounts' repositories come first. The OFFSET keeps PostgreSQL from reading all repositories for it.
    PICK = "SELECT r.url FROM sync_relays r WHERE r.expires_at IS NULL AND r.next_attempt <= $1
        ORDER BY CASE WHEN r.bootstrap OR EXISTS (SELECT 1 FROM sync_relay_repos s
                JOIN nostr_repos n ON n.identifier = s.identifier AND n.pubkey = s.pubkey
                JOIN repos p ON p.id = n.repo_id
                JOIN users u ON u.id = p.owner_id
                WHERE s.url = r.url AND p.deleted_at IS NULL AND u.name IS NOT NULL LIMIT 1 OFFSET 0) THEN 0 ELSE 1 END,
            r.next_attempt, r.url LIMIT 1", postgres " FOR UPDATE OF r SKIP LOCKED";
    HELD = "SELECT count(*) AS n FROM sync_relays WHERE expires_at IS NOT NULL";
    START = concat!("UPDATE sync_relays SET token = token + 1, holder = $2, expires_at = $3, next_attempt = $4,
            rests_until = NULL
        WHERE url = $1 AND expires_at IS NULL RETURNING ", columns!());
    /// A task that is gone: its relay is due at once.
    REAP = "UPDATE sync_relays SET holder = NULL, expires_at = NULL, connected_at = NULL, next_attempt = $2
        WHERE expires_at IS NOT NULL AND expires_at <= $1";
    EXPIRE_OF = expire_holds!("sync_relays", "expires_at IS NOT NULL");
    RENEW = "UPDATE sync_relays SET expires_at = $3, events = events + $4, refused = refused + $5,
            seen_at = CASE WHEN connected_at IS NULL THEN seen_at ELSE $6 END
        WHERE url = $1 AND token = $2 AND expires_at IS NOT NULL";
    CONNECTED = "UPDATE sync_relays SET connected_at = $3, seen_at = $3 WHERE url = $1 AND token = $2
        AND expires_at IS NOT NULL";
    STEADY = "UPDATE sync_relays SET failures = 0, failing_from = NULL, reason = '' WHERE url = $1 AND token = $2
        AND expires_at IS NOT NULL";
    LEARNED = "UPDATE sync_relays SET capability = $2, learned_at = $3 WHERE url = $1";
    RECONCILED = "UPDATE sync_relays SET reconciled_at = $2 WHERE url = $1";
    END = "UPDATE sync_relays SET holder = NULL, expires_at = NULL, connected_at = NULL,
            next_attempt = CASE WHEN next_attempt < $3 THEN next_attempt ELSE $3 END
        WHERE url = $1 AND token = $2 AND expires_at IS NOT NULL";
    END_FAILED = "UPDATE sync_relays SET holder = NULL, expires_at = NULL, connected_at = NULL, next_attempt = $3,
            failures = failures + 1, failing_from = COALESCE(failing_from, $4), reason = $5, rests_until = $6
        WHERE url = $1 AND token = $2 AND expires_at IS NOT NULL";

    /// Repositories that are served and name this relay.
    SERVED = "SELECT s.pubkey, s.identifier FROM sync_relay_repos s
        JOIN nostr_repos n ON n.identifier = s.identifier AND n.pubkey = s.pubkey
        JOIN repos r ON r.id = n.repo_id
        WHERE s.url = $1 AND r.deleted_at IS NULL ORDER BY n.repo_id LIMIT $2";
    ALL_SERVED = "SELECT n.pubkey, n.identifier FROM nostr_repos n JOIN repos r ON r.id = n.repo_id
        WHERE r.deleted_at IS NULL ORDER BY n.repo_id LIMIT $1";
    /// Waiting announcements that name this relay.
    WAITING = "SELECT s.pubkey, s.identifier, s.from_at, s.asked, p.json FROM sync_relay_repos s
        JOIN purgatory_announcements p ON p.identifier = s.identifier AND p.pubkey = s.pubkey
        WHERE s.url = $1 ORDER BY s.from_at LIMIT $2";
    ASKED = "UPDATE sync_relay_repos SET asked = asked + 1,
            from_at = CASE WHEN asked = 0 THEN CAST($4 AS BIGINT) ELSE CAST($5 AS BIGINT) END
        WHERE identifier = $1 AND pubkey = $2 AND url = $3";

    REFUSE = "INSERT INTO sync_refused (url, event_id, created_at, class, at) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (url, event_id) DO NOTHING";
    REFUSED = "SELECT event_id, created_at FROM sync_refused WHERE url = $1 AND created_at BETWEEN $2 AND $3
        ORDER BY created_at DESC, event_id LIMIT $4";
    PRUNE_REFUSED = "DELETE FROM sync_refused WHERE at < $1";
    BOUND_REFUSED = "DELETE FROM sync_refused WHERE at <= (SELECT at FROM sync_refused ORDER BY at DESC LIMIT 1 OFFSET $1)";

    REPLICA = "INSERT INTO sync_replicas (identifier, pubkey, url, state_id, state_at, seen_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (identifier, pubkey, url) DO UPDATE SET state_id = excluded.state_id, state_at = excluded.state_at,
            seen_at = excluded.seen_at
        WHERE sync_replicas.state_at <= excluded.state_at";
    REPLICAS = "SELECT pubkey, url, state_id, state_at, seen_at FROM sync_replicas WHERE identifier = $1
        ORDER BY state_at DESC, url, pubkey LIMIT $2";

    PRUNE_REPOS = "DELETE FROM sync_relay_repos WHERE NOT EXISTS (SELECT 1 FROM nostr_repos n
            WHERE n.identifier = sync_relay_repos.identifier AND n.pubkey = sync_relay_repos.pubkey)
        AND NOT EXISTS (SELECT 1 FROM purgatory_announcements p
            WHERE p.identifier = sync_relay_repos.identifier AND p.pubkey = sync_relay_repos.pubkey)";
    PRUNE = "DELETE FROM sync_relays WHERE expires_at IS NULL AND NOT bootstrap AND created_at < $1
        AND NOT EXISTS (SELECT 1 FROM sync_relay_repos s WHERE s.url = sync_relays.url)";
    PRUNE_REPLICAS = "DELETE FROM sync_replicas WHERE seen_at < $1";

    BY_URL = concat!("SELECT ", columns!(), " FROM sync_relays WHERE url = $1");
    PAGE = concat!("SELECT ", columns!(), " FROM sync_relays WHERE url > $1 ORDER BY url LIMIT $2");
    COUNTS = "SELECT CASE WHEN connected_at IS NOT NULL THEN 'connected' WHEN expires_at IS NOT NULL THEN 'connecting'
            WHEN rests_until IS NOT NULL THEN 'resting' WHEN failures > 0 THEN 'failing' ELSE 'idle' END AS state,
            count(*) AS n
        FROM sync_relays GROUP BY 1";
    TRY = "UPDATE sync_relays SET next_attempt = $2, rests_until = NULL WHERE url = $1 AND expires_at IS NULL";
    REST = "UPDATE sync_relays SET next_attempt = $2, rests_until = $2, reason = $3, token = token + 1, holder = NULL,
            expires_at = NULL, connected_at = NULL
        WHERE url = $1";
    FORGET = "DELETE FROM sync_relays WHERE url = $1 AND expires_at IS NULL";
    FORGET_REFUSED = "DELETE FROM sync_refused WHERE url = $1";
}

/// A relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relay {
    /// In its normal spelling.
    pub url: String,
    /// The operator named it.
    pub bootstrap: bool,
    /// How its events are listed, as a word.
    pub capability: String,
    pub learned_at: Option<Timestamp>,
    /// Time of the next connection; `None` while a task follows the relay.
    pub next_attempt: Option<Timestamp>,
    /// Connections that failed since the last steady one.
    pub failures: u32,
    pub failing_from: Option<Timestamp>,
    /// The last failure, as a sentence; empty after a steady connection.
    pub reason: String,
    pub rests_until: Option<Timestamp>,
    /// Begin of the open connection.
    pub connected_at: Option<Timestamp>,
    /// Last time at which a connection was open.
    pub seen_at: Option<Timestamp>,
    /// Last time at which all its events of interest were compared.
    pub reconciled_at: Option<Timestamp>,
    /// Events that it sent, and those of them that were refused.
    pub events: i64,
    pub refused: i64,
    /// Fencing token of the task.
    pub token: i64,
    /// A task follows it.
    pub held: bool,
}

impl Relay {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            url: row.text("url")?,
            bootstrap: row.bool("bootstrap")?,
            capability: row.text("capability")?,
            learned_at: row.opt_time("learned_at")?,
            next_attempt: Some(row.time("next_attempt")?).filter(|at| *at != NEVER),
            failures: u32::try_from(row.int("failures")?).unwrap_or(u32::MAX),
            failing_from: row.opt_time("failing_from")?,
            reason: row.text("reason")?,
            rests_until: row.opt_time("rests_until")?,
            connected_at: row.opt_time("connected_at")?,
            seen_at: row.opt_time("seen_at")?,
            reconciled_at: row.opt_time("reconciled_at")?,
            events: row.int("events")?,
            refused: row.int("refused")?,
            token: row.int("token")?,
            held: row.opt_time("expires_at")?.is_some(),
        })
    }

    /// State of the connection, as a word.
    pub fn state(&self) -> &'static str {
        match self {
            Self { connected_at: Some(_), .. } => "connected",
            Self { held: true, .. } => "connecting",
            Self { rests_until: Some(_), .. } => "resting",
            Self { failures: 1.., .. } => "failing",
            _ => "idle",
        }
    }
}

/// Sets the relays of an announcement, each once. Events of these relays that were refused for the lack of an announcement
/// are tried again.
pub async fn name(
    tx: &mut Tx,
    pubkey: &Bytes32,
    identifier: &str,
    urls: &[String],
    from_at: Timestamp,
) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&CLEAR_REPO, params![identifier, &pubkey[..]]).await?;
    // In order, because other announcements lock the same rows.
    let mut urls = urls.to_vec();
    urls.sort_unstable();
    for url in &urls {
        tx.execute(&NAME, params![url, false, from_at, now]).await?;
        tx.execute(&NAME_REPO, params![identifier, &pubkey[..], url, from_at]).await?;
    }
    urls.extend(bootstrap(tx).await?);
    for url in &urls {
        accept_again(tx, url).await?;
    }
    Ok(())
}

/// Forgets which events of a relay were refused for the lack of an announcement. If there are any, its events are compared
/// again.
async fn accept_again(tx: &mut Tx, url: &str) -> Result<(), StoreError> {
    if tx.execute(&ACCEPTABLE, params![url]).await? > 0 {
        tx.execute(&COMPARE_AGAIN, params![url]).await?;
    }
    Ok(())
}

/// Makes the relays of an announcement due, because its repository is served from now on.
pub async fn promoted(tx: &mut Tx, pubkey: &Bytes32, identifier: &str) -> Result<(), StoreError> {
    let now = tx.now();
    for row in tx.all(&RELAYS_OF, params![identifier, &pubkey[..]]).await? {
        let url = row.text("url")?;
        tx.execute(&NAME, params![&url, false, now, now]).await?;
        accept_again(tx, &url).await?;
    }
    Ok(())
}

/// Sets the relays that the operator names.
pub async fn set_bootstrap(tx: &mut Tx, urls: &[String]) -> Result<(), StoreError> {
    let now = tx.now();
    for former in bootstrap(tx).await?.into_iter().filter(|url| !urls.contains(url)) {
        tx.execute(&NOT_BOOTSTRAP, params![former]).await?;
    }
    for url in urls {
        tx.execute(&NAME, params![url, true, now, now]).await?;
    }
    Ok(())
}

/// The relays that the operator names.
pub async fn bootstrap(conn: &mut Conn) -> Result<Vec<String>, StoreError> {
    conn.all(&BOOTSTRAP, &[]).await?.iter().map(|row| row.text("url")).collect()
}

/// Whether a task would find work.
pub async fn anything_to_do(conn: &mut Conn, local: Timestamp) -> Result<bool, StoreError> {
    let now = leases::now(conn, local).await?;
    Ok(conn.one(&ANYTHING, params![local, now]).await?.is_some())
}

/// Claims a due relay, unless so many are held. Relays of tasks that are gone are due again.
pub async fn claim(tx: &mut Tx, holder: &str, ttl: Duration, at_most: i64) -> Result<Option<Relay>, StoreError> {
    let local = tx.now();
    let now = leases::now(tx, local).await?;
    tx.execute(&REAP, params![now, local]).await?;
    if tx.only(&HELD, &[]).await?.int("n")? >= at_most {
        return Ok(None);
    }
    let Some(row) = tx.one(&PICK, params![local]).await? else { return Ok(None) };
    let expires_at = holds::end(tx, ttl).await?;
    let row = tx.only(&START, params![row.text("url")?, holder, expires_at, NEVER]).await?;
    Relay::from_row(&row).map(Some)
}

/// Extends the hold of a task and adds to the counts of events and refusals; `false` if it was lost.
pub async fn renew(tx: &mut Tx, relay: &Relay, ttl: Duration, counts: (i64, i64)) -> Result<bool, StoreError> {
    let (local, expires_at) = (tx.now(), holds::end(tx, ttl).await?);
    let values = params![&relay.url, relay.token, expires_at, counts.0, counts.1, local];
    Ok(tx.execute(&RENEW, values).await? > 0)
}

/// Expires the holds of every process whose name starts with `prefix`, except this one: those processes are gone.
pub async fn expire_of(tx: &mut Tx, prefix: &str, except: &str) -> Result<u64, StoreError> {
    holds::expire_of(tx, &EXPIRE_OF, prefix, except).await
}

/// Stores that a connection is open.
pub async fn connected(tx: &mut Tx, relay: &Relay) -> Result<bool, StoreError> {
    let now = tx.now();
    Ok(tx.execute(&CONNECTED, params![&relay.url, relay.token, now]).await? > 0)
}

/// Forgets the failures of a relay whose connection lasts.
pub async fn steady(tx: &mut Tx, relay: &Relay) -> Result<(), StoreError> {
    tx.execute(&STEADY, params![&relay.url, relay.token]).await.map(drop)
}

/// Stores how the events of a relay are listed.
pub async fn learned(tx: &mut Tx, url: &str, capability: &str) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&LEARNED, params![url, capability, now]).await.map(drop)
}

/// Stores that all events of interest were compared, beginning at this time.
pub async fn reconciled(tx: &mut Tx, url: &str, at: Timestamp) -> Result<(), StoreError> {
    tx.execute(&RECONCILED, params![url, at]).await.map(drop)
}

/// How following a relay ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Without a failure. It is due at this time.
    Idle(Timestamp),
    /// With a failure, as a sentence.
    Failed(Timestamp, String),
    /// It exceeded its budget, and rests until this time.
    Rests(Timestamp, String),
}

/// Ends a hold.
pub async fn end(tx: &mut Tx, relay: &Relay, ended: &Ended) -> Result<bool, StoreError> {
    let now = tx.now();
    let (url, token) = (&relay.url, relay.token);
    let rows = match ended {
        Ended::Idle(next) => tx.execute(&END, params![url, token, *next]).await?,
        Ended::Failed(next, reason) => {
            let values = params![url, token, *next, now, reason.as_str(), None::<Timestamp>];
            tx.execute(&END_FAILED, values).await?
        }
        Ended::Rests(until, reason) => {
            tx.execute(&END_FAILED, params![url, token, *until, now, reason.as_str(), *until]).await?
        }
    };
    Ok(rows > 0)
}

/// Key and identifier of a repository.
pub type Coordinate = (Bytes32, String);

/// Served repositories that name a relay; for one of the operator, all of them.
pub async fn served(conn: &mut Conn, relay: &Relay, limit: i64) -> Result<Vec<Coordinate>, StoreError> {
    let rows = match relay.bootstrap {
        true => conn.all(&ALL_SERVED, params![limit]).await?,
        false => conn.all(&SERVED, params![&relay.url, limit]).await?,
    };
    rows.iter().map(|row| Ok((row.bytes32("pubkey")?, row.text("identifier")?))).collect()
}

/// A waiting announcement whose states are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub pubkey: Bytes32,
    pub identifier: String,
    pub from_at: Timestamp,
    /// Number of times that the relay was asked.
    pub asked: u32,
    /// The announcement.
    pub json: String,
}

/// Waiting announcements that name a relay, by the time at which it is asked for their states.
pub async fn waiting(conn: &mut Conn, url: &str, limit: i64) -> Result<Vec<Waiting>, StoreError> {
    let rows = conn.all(&WAITING, params![url, limit]).await?;
    let read = |row: &Row| {
        Ok(Waiting {
            pubkey: row.bytes32("pubkey")?,
            identifier: row.text("identifier")?,
            from_at: row.time("from_at")?,
            asked: u32::try_from(row.int("asked")?).unwrap_or(u32::MAX),
            json: row.text("json")?,
        })
    };
    rows.iter().map(read).collect()
}

/// Stores that a relay was asked for the states of a waiting announcement. The pauses before it is asked again are those of
/// git data.
pub async fn asked(tx: &mut Tx, url: &str, of: &Coordinate) -> Result<(), StoreError> {
    let now = tx.now();
    let values = params![of.1.as_str(), &of.0[..], url, now.plus(FIRST_PAUSE), now.plus(PAUSE)];
    tx.execute(&ASKED, values).await.map(drop)
}

/// An event that was refused here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub id: Bytes32,
    /// The author's time, in seconds.
    pub created_at: i64,
    /// The kind of refusal.
    pub class: &'static str,
}

/// Records refused events of a relay.
pub async fn refuse(tx: &mut Tx, url: &str, refused: &[Refused]) -> Result<(), StoreError> {
    let now = tx.now();
    for event in refused {
        tx.execute(&REFUSE, params![url, &event.id[..], event.created_at, event.class, now]).await?;
    }
    Ok(())
}

/// Times and ids of the newest refused events of a relay within these seconds.
pub async fn refused(
    conn: &mut Conn,
    url: &str,
    (since, until): (i64, i64),
    limit: i64,
) -> Result<Vec<(i64, Bytes32)>, StoreError> {
    let rows = conn.all(&REFUSED, params![url, since, until, limit]).await?;
    rows.iter().map(|row| Ok((row.int("created_at")?, row.bytes32("event_id")?))).collect()
}

/// Removes refusals that are older than an instant, and the oldest beyond so many.
pub async fn prune_refused(tx: &mut Tx, before: Timestamp, at_most: i64) -> Result<u64, StoreError> {
    let old = tx.execute(&PRUNE_REFUSED, params![before]).await?;
    Ok(old + tx.execute(&BOUND_REFUSED, params![at_most]).await?)
}

/// A state that a relay holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// The state's author.
    pub pubkey: Bytes32,
    pub url: String,
    pub state: Bytes32,
    /// The author's time, in seconds.
    pub state_at: i64,
    pub seen_at: Timestamp,
}

/// Stores that a relay holds a state. An older one of the same author does not replace a newer one.
pub async fn seen(
    tx: &mut Tx,
    url: &str,
    (pubkey, identifier): &Coordinate,
    (state, state_at): &(Bytes32, i64),
) -> Result<(), StoreError> {
    let now = tx.now();
    let values = params![identifier.as_str(), &pubkey[..], url, &state[..], *state_at, now];
    tx.execute(&REPLICA, values).await.map(drop)
}

/// The states of an identifier that other relays hold, newest first.
pub async fn replicas(conn: &mut Conn, identifier: &str, limit: i64) -> Result<Vec<Replica>, StoreError> {
    let rows = conn.all(&REPLICAS, params![identifier, limit]).await?;
    let read = |row: &Row| {
        Ok(Replica {
            pubkey: row.bytes32("pubkey")?,
            url: row.text("url")?,
            state: row.bytes32("state_id")?,
            state_at: row.int("state_at")?,
            seen_at: row.time("seen_at")?,
        })
    };
    rows.iter().map(read).collect()
}

/// Removes relays and states that nothing names any more and that are older than an instant.
pub async fn prune(tx: &mut Tx, before: Timestamp) -> Result<u64, StoreError> {
    let repos = tx.execute(&PRUNE_REPOS, &[]).await?;
    let relays = tx.execute(&PRUNE, params![before]).await?;
    Ok(repos + relays + tx.execute(&PRUNE_REPLICAS, params![before]).await?)
}

/// The relay with this URL.
pub async fn by_url(conn: &mut Conn, url: &str) -> Result<Option<Relay>, StoreError> {
    conn.one(&BY_URL, params![url]).await?.as_ref().map(Relay::from_row).transpose()
}

/// Relays in alphabetical order, after the one with this URL.
pub async fn page(conn: &mut Conn, after: &str, limit: i64) -> Result<Vec<Relay>, StoreError> {
    conn.all(&PAGE, params![after, limit]).await?.iter().map(Relay::from_row).collect()
}

/// Number of relays in each state of [`Relay::state`].
pub async fn counts(conn: &mut Conn) -> Result<Vec<(String, i64)>, StoreError> {
    conn.all(&COUNTS, &[]).await?.iter().map(|row| Ok((row.text("state")?, row.int("n")?))).collect()
}

/// Makes a relay due now, unless a task follows it.
pub async fn hurry(tx: &mut Tx, url: &str) -> Result<bool, StoreError> {
    let now = tx.now();
    Ok(tx.execute(&TRY, params![url, now]).await? > 0)
}

/// Lets a relay rest, for the operator. A task that follows it notices that it lost its hold.
pub async fn rest(tx: &mut Tx, url: &str, time: Duration, reason: &str) -> Result<bool, StoreError> {
    let until = tx.now().plus(time);
    Ok(tx.execute(&REST, params![url, until, reason]).await? > 0)
}

/// Forgets a relay that no task follows, with its failures and refusals; the next announcement names it anew.
pub async fn forget(tx: &mut Tx, url: &str) -> Result<bool, StoreError> {
    tx.execute(&FORGET_REFUSED, params![url]).await?;
    Ok(tx.execute(&FORGET, params![url]).await? > 0)
}
