//! Writing notifications: candidates of an event, and the row of each recipient.
//!
//! Nothing here decides: facts are read page by page, the rule (`abide_core::notify`) judges each candidate, and the
//! recipients are written together. Lists for the user are in [`crate::attention::inbox`].

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::notify::{Hearing, Reason, Subject};
use abide_core::policy::Actor;
use abide_core::repo::Role;
use abide_core::{IssueId, RepoId, ThreadId, UserId, WatchLevel};
use std::time::Duration;

/// Facts about `users u` that the rule needs, for repository $1, issue $2 and thread $3.
macro_rules! facts {
    () => {
        "u.id, u.site_admin, u.suspended_at, w.level, s.subscribed, s.reason AS via, c.role, n.state, n.reason, n.muted_at"
    };
}

macro_rules! joined {
    () => {
        " LEFT JOIN watches w ON w.user_id = u.id AND w.repo_id = $1
        LEFT JOIN issue_subscriptions s ON s.user_id = u.id AND s.issue_id = $2
        LEFT JOIN repo_collaborators c ON c.user_id = u.id AND c.repo_id = $1
        LEFT JOIN notifications n ON n.user_id = u.id AND n.thread_id = $3"
    };
}

/// A user who was notified of the same or a later event is not notified again. A mail is due at once, or at the end of
/// the window that the last one opened; a mail that is already due keeps its time and covers more events.
macro_rules! once {
    () => {
        " ON CONFLICT (user_id, thread_id) DO UPDATE SET title = excluded.title, reason = excluded.reason, state = excluded.state,
            private = excluded.private, last_seq = excluded.last_seq, updated_at = excluded.updated_at,
            mail_due_at = CASE WHEN excluded.mail_due_at IS NULL THEN notifications.mail_due_at
                WHEN notifications.mail_due_at IS NOT NULL THEN notifications.mail_due_at
                WHEN notifications.mailed_at + CAST($8 AS BIGINT) > excluded.updated_at
                    THEN notifications.mailed_at + CAST($8 AS BIGINT)
                ELSE excluded.updated_at END,
            mail_events = notifications.mail_events + excluded.mail_events
        WHERE notifications.last_seq < excluded.last_seq"
    };
}

statements! {
    THREAD = "INSERT INTO notification_threads (repo_id, subject_kind, subject_id, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $4)
        ON CONFLICT (repo_id, subject_kind, subject_id) DO UPDATE SET updated_at = excluded.updated_at
        RETURNING id";
    /// Watchers of everything and subscribers of the issue with ids after $4, up to $5.
    CROWD = concat!("SELECT ", facts!(), " FROM (
            SELECT watching.user_id FROM (SELECT user_id FROM watches WHERE repo_id = $1 AND level = 'all' AND user_id > $4
                ORDER BY user_id LIMIT $5) watching
            UNION
            SELECT hearing.user_id FROM (SELECT user_id FROM issue_subscriptions
                WHERE issue_id = $2 AND subscribed AND user_id > $4 ORDER BY user_id LIMIT $5) hearing
        ) who JOIN users u ON u.id = who.user_id", joined!(), " ORDER BY u.id LIMIT $5");
    /// The users with these ids.
    PEOPLE = concat!("SELECT ", facts!(), " FROM users u", joined!(), " WHERE u.id "),
        sqlite "IN (SELECT value FROM json_each('[' || $4 || ']')) ORDER BY u.id",
        postgres "= ANY (CAST(string_to_array($4, ',') AS BIGINT[])) ORDER BY u.id";
    ADMINS = "SELECT user_id FROM repo_collaborators WHERE repo_id = $1 AND role = 'admin' ORDER BY user_id LIMIT $2";
    /// Notifies users $1 of the event at $5 in thread $2.
    NOTIFY = "INSERT INTO notifications
            (user_id, thread_id, title, reason, state, private, last_seq, updated_at, mail_due_at, mail_events)
        SELECT u.id, CAST($2 AS BIGINT), CAST($9 AS TEXT), CAST($3 AS TEXT), 'unread', CAST($4 AS BOOLEAN), CAST($5 AS BIGINT),
            CAST($6 AS BIGINT), CASE WHEN CAST($7 AS BOOLEAN) THEN CAST($6 AS BIGINT) END,
            CASE WHEN CAST($7 AS BOOLEAN) THEN 1 ELSE 0 END
        FROM users u WHERE u.id ",
        sqlite concat!("IN (SELECT value FROM json_each('[' || $1 || ']'))", once!()),
        postgres concat!("= ANY (CAST(string_to_array($1, ',') AS BIGINT[]))", once!());
}

/// Subject of a notification.
#[derive(Debug, Clone, Copy)]
pub struct About {
    pub repo: RepoId,
    /// Kind of the subject.
    pub subject: Subject,
    pub subject_id: i64,
}

/// A possible recipient, with the facts that the rule needs.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The user as an actor, for the policy.
    pub actor: Actor,
    pub id: UserId,
    pub suspended: bool,
    /// Role in the repository.
    pub role: Option<Role>,
    /// Watch level for the repository.
    pub level: WatchLevel,
    /// Subscription to the thread.
    pub hearing: Hearing,
    /// Reason of the last notification, if it is unread.
    pub unread: Option<Reason>,
}

impl Candidate {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let (id, suspended) = (UserId::new(row.int("id")?), row.opt_int("suspended_at")?.is_some());
        let hearing = match row.opt_bool("subscribed")? {
            _ if row.opt_int("muted_at")?.is_some() => Hearing::Muted,
            None => Hearing::Unsaid,
            Some(false) => Hearing::Muted,
            Some(true) => Hearing::Subscribed(row.parsed("via")?),
        };
        let unread = row.opt_text("state")?.is_some_and(|state| state == "unread");
        Ok(Self {
            actor: Actor::User { id, site_admin: row.bool("site_admin")?, suspended },
            id,
            suspended,
            role: row.opt_parsed("role")?,
            level: WatchLevel::current(row.opt_parsed("level")?),
            hearing,
            unread: if unread { row.opt_parsed("reason")? } else { None },
        })
    }
}

/// An event to notify of.
#[derive(Debug, Clone)]
pub struct News {
    pub thread: ThreadId,
    /// Title in the inbox.
    pub title: String,
    /// Position in the event log.
    pub seq: i64,
    /// The event was not public.
    pub private: bool,
    /// At most one mail per thread and user in this time.
    pub window: Duration,
}

/// Finds or creates the thread of a subject.
pub async fn thread(tx: &mut Tx, about: &About) -> Result<ThreadId, StoreError> {
    let now = tx.now();
    let values = params![about.repo, about.subject.as_str(), about.subject_id, now];
    tx.only(&THREAD, values).await?.int("id").map(ThreadId::new)
}

/// Watchers of everything in a repository and subscribers of an issue, by id after one of them.
pub async fn crowd(
    conn: &mut Conn,
    repo: RepoId,
    issue: Option<IssueId>,
    thread: ThreadId,
    after: UserId,
    limit: i64,
) -> Result<Vec<Candidate>, StoreError> {
    let issue = issue.map_or(0, IssueId::get);
    let rows = conn.all(&CROWD, params![repo, issue, thread, after, limit]).await?;
    rows.iter().map(Candidate::from_row).collect()
}

/// Facts about some users that the rule needs.
pub async fn people(
    conn: &mut Conn,
    repo: RepoId,
    issue: Option<IssueId>,
    thread: ThreadId,
    people: &[UserId],
) -> Result<Vec<Candidate>, StoreError> {
    let issue = issue.map_or(0, IssueId::get);
    let rows = conn.all(&PEOPLE, params![repo, issue, thread, id_list(people)]).await?;
    rows.iter().map(Candidate::from_row).collect()
}

/// Admins of a repository besides its owner, up to a limit.
pub async fn admins(conn: &mut Conn, repo: RepoId, limit: i64) -> Result<Vec<UserId>, StoreError> {
    conn.all(&ADMINS, params![repo, limit]).await?.iter().map(|row| row.int("user_id").map(UserId::new)).collect()
}

/// Notifies users of an event for one reason; returns how many had not been notified of it. `mailed`: also by mail.
pub async fn notify(
    tx: &mut Tx,
    news: &News,
    reason: Reason,
    mailed: bool,
    people: &[UserId],
) -> Result<u64, StoreError> {
    let now = tx.now();
    let window = i64::try_from(news.window.as_micros()).unwrap_or(i64::MAX);
    let (ids, reason) = (id_list(people), reason.as_str());
    let values = params![ids, news.thread, reason, news.private, news.seq, now, mailed, window, news.title.as_str()];
    tx.execute(&NOTIFY, values).await
}

fn id_list(people: &[UserId]) -> String {
    people.iter().map(UserId::to_string).collect::<Vec<_>>().join(",")
}
