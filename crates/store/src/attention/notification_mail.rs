//! Notification mails: due mails, their preconditions, and opt-outs.

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::event::Body;
use abide_core::notify::{Reason, Subject};
use abide_core::policy::Actor;
use abide_core::repo::Role;
use abide_core::{RepoId, ThreadId, Timestamp, UserId};

/// A pending mail with its recipient and the recipient's preferences. Mail goes only to verified addresses. Only watchers
/// have a pending mail with the reason `lifecycle`: one that an earlier notification left.
macro_rules! mail {
    () => {
        "SELECT n.user_id, n.thread_id, n.reason, n.private, n.last_seq, n.updated_at, n.mail_events,
            t.repo_id, t.subject_kind, t.subject_id, n.title,
            u.site_admin, u.suspended_at, e.address, c.role,
            COALESCE(n.muted_at, CASE WHEN NOT s.subscribed THEN s.updated_at END) AS muted_at,
            CASE WHEN w.level = 'ignore' THEN w.updated_at END AS ignored_at,
            o.reason AS unwanted
        FROM notifications n
        JOIN notification_threads t ON t.id = n.thread_id
        JOIN users u ON u.id = n.user_id
        LEFT JOIN emails e ON e.user_id = n.user_id AND e.is_primary AND e.verified_at IS NOT NULL
        LEFT JOIN repo_collaborators c ON c.repo_id = t.repo_id AND c.user_id = n.user_id
        LEFT JOIN watches w ON w.repo_id = t.repo_id AND w.user_id = n.user_id
        LEFT JOIN issue_subscriptions s
            ON t.subject_kind = 'issue' AND s.issue_id = t.subject_id AND s.user_id = n.user_id
        LEFT JOIN mail_opt_outs o ON o.user_id = n.user_id
            AND o.reason = CASE n.reason WHEN 'lifecycle' THEN 'subscribed' ELSE n.reason END"
    };
}

statements! {
    ANY_DUE = "SELECT 1 AS n FROM notifications WHERE mail_due_at IS NOT NULL AND mail_due_at <= $1 LIMIT 1";
    /// Locked until the unit ends; rows that another node has locked are skipped, because it sends them.
    DUE = concat!(mail!(), " WHERE n.mail_due_at IS NOT NULL AND n.mail_due_at <= $1 ORDER BY n.mail_due_at LIMIT $2"),
        postgres " FOR UPDATE OF n SKIP LOCKED";
    OF = concat!(mail!(), " WHERE n.user_id = $1 AND n.thread_id = $2");
    SENT = "UPDATE notifications SET mail_due_at = NULL, mail_events = 0, mailed_at = $3
        WHERE user_id = $1 AND thread_id = $2";
    DROPPED = "UPDATE notifications SET mail_due_at = NULL, mail_events = 0 WHERE user_id = $1 AND thread_id = $2";
    ADDRESSES = "SELECT u.id, e.address FROM users u
        JOIN emails e ON e.user_id = u.id AND e.is_primary AND e.verified_at IS NOT NULL
        WHERE u.suspended_at IS NULL AND u.id ",
        sqlite "IN (SELECT value FROM json_each('[' || $1 || ']')) ORDER BY u.id",
        postgres "= ANY (CAST(string_to_array($1, ',') AS BIGINT[])) ORDER BY u.id";
    /// The last event, and its actor.
    EVENT = "SELECT e.kind, e.payload, e.actor_user_id, COALESCE(u.name, u.npub) AS name FROM domain_events e
        LEFT JOIN users u ON u.id = e.actor_user_id WHERE e.seq = $1";
    OPTED_OUT = "SELECT reason FROM mail_opt_outs WHERE user_id = $1 ORDER BY reason";
    OPT_OUT = "INSERT INTO mail_opt_outs (user_id, reason, created_at) VALUES ($1, $2, $3)
        ON CONFLICT (user_id, reason) DO NOTHING";
    OPT_IN = "DELETE FROM mail_opt_outs WHERE user_id = $1 AND reason = $2";
}

/// A mail to a user about a thread.
#[derive(Debug, Clone)]
pub struct Pending {
    /// Recipient.
    pub user: UserId,
    /// The recipient as an actor, for the policy.
    pub actor: Actor,
    /// The recipient's role in the repository.
    pub role: Option<Role>,
    pub thread: ThreadId,
    pub repo: RepoId,
    /// Kind of the subject.
    pub subject: Subject,
    pub subject_id: i64,
    /// Title at the time of the notification.
    pub title: String,
    pub reason: Reason,
    /// The event was not public.
    pub private: bool,
    /// The last event of the notification.
    pub seq: i64,
    /// Time of the last notification.
    pub notified_at: Timestamp,
    /// Number of events that this mail covers.
    pub events: i64,
    /// The recipient's primary address, if it is verified and the account is not suspended.
    pub address: Option<String>,
    /// Since when the recipient has muted the thread.
    pub muted_at: Option<Timestamp>,
    /// Since when the recipient ignores the repository.
    pub ignored_at: Option<Timestamp>,
    /// Whether the recipient wants mail for this reason.
    pub wanted: bool,
}

impl Pending {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let (user, suspended) = (UserId::new(row.int("user_id")?), row.opt_int("suspended_at")?.is_some());
        Ok(Self {
            user,
            actor: Actor::User { id: user, site_admin: row.bool("site_admin")?, suspended },
            role: row.opt_parsed("role")?,
            thread: ThreadId::new(row.int("thread_id")?),
            repo: RepoId::new(row.int("repo_id")?),
            subject: row.parsed("subject_kind")?,
            subject_id: row.int("subject_id")?,
            title: row.text("title")?,
            reason: row.parsed("reason")?,
            private: row.bool("private")?,
            seq: row.int("last_seq")?,
            notified_at: row.time("updated_at")?,
            events: row.int("mail_events")?,
            address: row.opt_text("address")?.filter(|_| !suspended),
            muted_at: row.opt_time("muted_at")?,
            ignored_at: row.opt_time("ignored_at")?,
            wanted: row.opt_text("unwanted")?.is_none(),
        })
    }
}

/// Whether a mail is due; a check without a write lock.
pub async fn any_due(conn: &mut Conn, now: Timestamp) -> Result<bool, StoreError> {
    Ok(conn.one(&ANY_DUE, params![now]).await?.is_some())
}

/// Due mails, locked until the unit ends.
pub async fn due(tx: &mut Tx, limit: i64) -> Result<Vec<Pending>, StoreError> {
    let now = tx.now();
    tx.all(&DUE, params![now, limit]).await?.iter().map(Pending::from_row).collect()
}

/// A user's notification of a thread, as for a mail.
pub async fn of(conn: &mut Conn, user: UserId, thread: ThreadId) -> Result<Option<Pending>, StoreError> {
    conn.one(&OF, params![user, thread]).await?.as_ref().map(Pending::from_row).transpose()
}

/// Records that a mail was queued; the next one waits for the end of the window.
pub async fn sent(tx: &mut Tx, mail: &Pending) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&SENT, params![mail.user, mail.thread, now]).await.map(drop)
}

/// Records that a mail is not sent.
pub async fn dropped(tx: &mut Tx, mail: &Pending) -> Result<(), StoreError> {
    tx.execute(&DROPPED, params![mail.user, mail.thread]).await.map(drop)
}

/// An event that a mail reports.
#[derive(Debug, Clone, Default)]
pub struct Reported {
    /// `None` if the event is pruned, or if this version cannot read it.
    pub body: Option<Body>,
    /// Name of the actor.
    pub actor: Option<String>,
    pub actor_id: Option<UserId>,
}

/// The event with a number in the log, for a mail.
pub async fn event(conn: &mut Conn, seq: i64) -> Result<Reported, StoreError> {
    let Some(row) = conn.one(&EVENT, params![seq]).await? else { return Ok(Reported::default()) };
    let body = Body::parse(&row.text("kind")?, &row.text("payload")?);
    let body = body.inspect_err(|error| tracing::warn!(seq, %error, "a mail leaves out an event that cannot be read"));
    let actor_id = row.opt_int("actor_user_id")?.map(UserId::new);
    Ok(Reported { body: body.ok(), actor: row.opt_text("name")?, actor_id })
}

/// Verified primary addresses of users who are not suspended.
pub async fn addresses(conn: &mut Conn, people: &[UserId]) -> Result<Vec<(UserId, String)>, StoreError> {
    let ids = people.iter().map(UserId::to_string).collect::<Vec<_>>().join(",");
    let rows = conn.all(&ADDRESSES, params![ids]).await?;
    rows.iter().map(|row| Ok((UserId::new(row.int("id")?), row.text("address")?))).collect()
}

/// Reasons for which a user wants no mail.
pub async fn opted_out(conn: &mut Conn, user: UserId) -> Result<Vec<Reason>, StoreError> {
    conn.all(&OPTED_OUT, params![user]).await?.iter().map(|row| row.parsed("reason")).collect()
}

/// Opts a user in to or out of mail for a reason; `false` if nothing changed.
pub async fn set_wanted(tx: &mut Tx, user: UserId, reason: Reason, wanted: bool) -> Result<bool, StoreError> {
    let now = tx.now();
    let changed = match wanted {
        true => tx.execute(&OPT_IN, params![user, reason.as_str()]).await?,
        false => tx.execute(&OPT_OUT, params![user, reason.as_str(), now]).await?,
    };
    Ok(changed > 0)
}
