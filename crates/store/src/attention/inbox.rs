//! A user's notifications as visible now: those that the user may no longer read are neither listed nor counted.

use crate::attention::lists::{Part, SortKey};
use crate::nostr::events::fixed;
use crate::repos::{Repo, Viewer, address, columns, visible};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::issues::State as IssueState;
use abide_core::notify::{Reason, State, Subject};
use abide_core::{IssueId, RepoId, ThreadId, Timestamp, UserId};

/// Notifications of $1 that they may still see ($2: they read everything). An event that was not public stays
/// restricted to the owner and collaborators, even if more users can read the repository now. `$public`: only
/// notifications of public repositories about public events.
macro_rules! seen {
    ($public:literal) => {
        concat!(
            " FROM notifications n
        JOIN notification_threads t ON t.id = n.thread_id
        JOIN repos r ON r.id = t.repo_id
        JOIN users u ON u.id = r.owner_id
        LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $1
        LEFT JOIN issues i ON t.subject_kind = 'issue' AND i.id = t.subject_id
        LEFT JOIN issue_subscriptions s
            ON t.subject_kind = 'issue' AND s.issue_id = t.subject_id AND s.user_id = $1
        LEFT JOIN nostr_news m ON t.subject_kind = 'nostr_thread' AND m.n = t.subject_id
        WHERE n.user_id = $1 AND ",
            visible!("$1", "$2"),
            " AND (t.subject_kind <> 'nostr_thread' OR m.n IS NOT NULL)
            AND (NOT n.private OR r.owner_id = $1 OR c.user_id IS NOT NULL OR $2)
            AND (NOT CAST(",
            $public,
            " AS BOOLEAN) OR (r.visibility = 'public' AND NOT n.private))"
        )
    };
}

/// Filter: repository $3 (0: any), participation only ($4), notified after $5 and before $6.
macro_rules! asked {
    () => {
        " AND (t.repo_id = $3 OR $3 = 0) AND (NOT $4 OR n.reason <> 'subscribed')
            AND n.updated_at > $5 AND n.updated_at < $6"
    };
}

/// Columns of [`Item`].
macro_rules! item {
    () => {
        concat!(
            "SELECT ",
            columns!(),
            ", c.role AS role, n.thread_id, n.reason, n.state, n.updated_at AS notified_at, n.read_at,
            t.subject_kind, t.subject_id, COALESCE(i.title, m.title, n.title) AS title, i.number, i.state AS issue_state,
            (SELECT e.event_id FROM nostr_events e WHERE e.n = m.n) AS event_id,
            (SELECT e.kind FROM nostr_events e WHERE e.n = m.n) AS event_kind,
            CAST(CASE WHEN n.muted_at IS NOT NULL OR NOT s.subscribed THEN 1 ELSE 0 END AS BIGINT) AS muted"
        )
    };
}

macro_rules! part {
    () => {
        " AND (n.updated_at, n.thread_id) < ($7, $8) ORDER BY n.updated_at DESC, n.thread_id DESC LIMIT $9 OFFSET $10"
    };
}

statements! {
    UNREAD = concat!(item!(), seen!("$11"), " AND n.state = 'unread'", asked!(), part!());
    KEPT = concat!(item!(), seen!("$11"), " AND n.state <> 'done'", asked!(), part!());
    COUNT_UNREAD = concat!("SELECT count(*) AS n", seen!("$7"), " AND n.state = 'unread'", asked!());
    COUNT_KEPT = concat!("SELECT count(*) AS n", seen!("$7"), " AND n.state <> 'done'", asked!());
    /// Counts up to $3 only: this number is on every page.
    COUNT_SOME = concat!("SELECT count(*) AS n FROM (SELECT n.thread_id", seen!("FALSE"), " AND n.state = 'unread' LIMIT $3) kept");
    ONE = concat!(item!(), seen!("$4"), " AND n.thread_id = $3");
    OF_SUBJECT = concat!(item!(), seen!("FALSE"), " AND t.repo_id = $3 AND t.subject_kind = $4 AND t.subject_id = $5");
    SET_STATE = "UPDATE notifications SET state = $3, read_at = $4
        WHERE user_id = $1 AND thread_id = $2 AND state <> $3 AND updated_at <= $5";
    READ_ALL = "UPDATE notifications SET state = 'read', read_at = $4
        WHERE user_id = $1 AND state = 'unread' AND updated_at <= $2
            AND (thread_id IN (SELECT t.id FROM notification_threads t WHERE t.repo_id = $3) OR $3 = 0)
            AND (NOT CAST($5 AS BOOLEAN) OR (NOT private AND EXISTS (SELECT 1 FROM notification_threads t
                JOIN repos r ON r.id = t.repo_id WHERE t.id = notifications.thread_id AND r.visibility = 'public')))";
    READ_SUBJECT = "UPDATE notifications SET state = 'read', read_at = $5 WHERE user_id = $1 AND state = 'unread'
        AND thread_id IN (SELECT t.id FROM notification_threads t
            WHERE t.repo_id = $2 AND t.subject_kind = $3 AND t.subject_id = $4)";
    MUTE = "UPDATE notifications SET muted_at = $3 WHERE user_id = $1 AND thread_id = $2";
    /// Repositories with unread notifications, and their counts.
    REPOS = concat!("SELECT r.id AS repo_id, COALESCE(u.name, u.npub) AS owner_name, r.name AS repo_name,
            CASE WHEN u.name IS NULL THEN (SELECT d.identifier FROM nostr_repos d WHERE d.repo_id = r.id) END AS identifier,
            count(*) AS waiting", seen!("FALSE"), "
        AND n.state = 'unread' GROUP BY r.id, u.name, u.npub, r.name ORDER BY waiting DESC, repo_id LIMIT $3");
}

/// A notification.
#[derive(Debug, Clone)]
pub struct Item {
    pub thread: ThreadId,
    pub repo: Repo,
    /// Kind of the subject.
    pub subject: Subject,
    pub subject_id: i64,
    /// Current title of the subject, as long as it exists.
    pub title: String,
    /// Number and state of the issue, if the subject is one.
    pub issue: Option<(i64, IssueState)>,
    /// Hexadecimal id and kind of the root event, if the subject is a nostr thread.
    pub event: Option<(String, i64)>,
    pub reason: Reason,
    pub state: State,
    /// The user muted the thread.
    pub muted: bool,
    /// Time of the last notification.
    pub notified_at: Timestamp,
    /// Time when the user last read it.
    pub read_at: Option<Timestamp>,
}

impl Item {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let number = row.opt_int("number")?;
        Ok(Self {
            thread: ThreadId::new(row.int("thread_id")?),
            repo: Repo::from_row(row)?,
            subject: row.parsed("subject_kind")?,
            subject_id: row.int("subject_id")?,
            title: row.text("title")?,
            issue: number.map(|number| Ok::<_, StoreError>((number, row.parsed("issue_state")?))).transpose()?,
            event: event(row)?,
            reason: row.parsed("reason")?,
            state: row.parsed("state")?,
            muted: row.int("muted")? != 0,
            notified_at: row.time("notified_at")?,
            read_at: row.opt_time("read_at")?,
        })
    }

    /// The issue, if the subject is one.
    pub fn issue_id(&self) -> Option<IssueId> {
        (self.subject == Subject::Issue).then(|| IssueId::new(self.subject_id))
    }

    /// Position in the list.
    pub fn sort_key(&self) -> SortKey {
        SortKey { at: self.notified_at, id: self.thread.get() }
    }
}

fn event(row: &Row) -> Result<Option<(String, i64)>, StoreError> {
    match row.opt_int("event_kind")? {
        Some(kind) => Ok(Some((hex::encode(fixed(row, "event_id")?), kind))),
        None => Ok(None),
    }
}

/// Filter of an inbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filter {
    /// Include read notifications.
    pub all: bool,
    pub repo: Option<RepoId>,
    /// Only threads that the user takes part in.
    pub taking_part: bool,
    /// Notified after this instant.
    pub since: Option<Timestamp>,
    /// Notified before this instant.
    pub before: Option<Timestamp>,
    /// Only public repositories and public events.
    pub public: bool,
}

/// Part of a user's inbox, latest first.
pub async fn list(conn: &mut Conn, viewer: Viewer, filter: Filter, part: Part) -> Result<Vec<Item>, StoreError> {
    let Filter { all, repo, taking_part, since, before, public } = filter;
    let (since, before) = (since.map_or(i64::MIN, Timestamp::micros), before.map_or(i64::MAX, Timestamp::micros));
    let (repo, sort_key) = (repo.map_or(0, RepoId::get), part.behind);
    let values = params![
        viewer.user,
        viewer.reads_everything,
        repo,
        taking_part,
        since,
        before,
        sort_key.at,
        sort_key.id,
        part.page.limit,
        part.page.offset,
        public
    ];
    let rows = conn.all(if all { &KEPT } else { &UNREAD }, values).await?;
    rows.iter().map(Item::from_row).collect()
}

/// Number of notifications that match a filter.
pub async fn count(conn: &mut Conn, viewer: Viewer, filter: Filter) -> Result<i64, StoreError> {
    let Filter { all, repo, taking_part, since, before, public } = filter;
    let (since, before) = (since.map_or(i64::MIN, Timestamp::micros), before.map_or(i64::MAX, Timestamp::micros));
    let repo = repo.map_or(0, RepoId::get);
    let values = params![viewer.user, viewer.reads_everything, repo, taking_part, since, before, public];
    conn.only(if all { &COUNT_KEPT } else { &COUNT_UNREAD }, values).await?.int("n")
}

/// Number of unread notifications, counted up to a limit.
pub async fn count_some(conn: &mut Conn, viewer: Viewer, limit: i64) -> Result<i64, StoreError> {
    conn.only(&COUNT_SOME, params![viewer.user, viewer.reads_everything, limit]).await?.int("n")
}

/// One thread of a user's inbox. With `public`, only if the repository and the event are public.
pub async fn one(conn: &mut Conn, viewer: Viewer, thread: ThreadId, public: bool) -> Result<Option<Item>, StoreError> {
    let row = conn.one(&ONE, params![viewer.user, viewer.reads_everything, thread, public]).await?;
    row.as_ref().map(Item::from_row).transpose()
}

/// A user's notification about a subject of a repository.
pub async fn of_subject(
    conn: &mut Conn,
    viewer: Viewer,
    repo: RepoId,
    (subject, id): (Subject, i64),
) -> Result<Option<Item>, StoreError> {
    let kind = subject.as_str();
    let row = conn.one(&OF_SUBJECT, params![viewer.user, viewer.reads_everything, repo, kind, id]).await?;
    row.as_ref().map(Item::from_row).transpose()
}

/// Unread notifications of one repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub repo: RepoId,
    pub slug: String,
    pub count: i64,
}

/// The repositories with the most unread notifications of a user.
pub async fn waiting(conn: &mut Conn, viewer: Viewer, limit: i64) -> Result<Vec<Waiting>, StoreError> {
    let rows = conn.all(&REPOS, params![viewer.user, viewer.reads_everything, limit]).await?;
    let read = |row: &Row| {
        let owner = row.opt_text("owner_name")?.unwrap_or_default();
        Ok(Waiting {
            repo: RepoId::new(row.int("repo_id")?),
            slug: address(&owner, &row.text("repo_name")?, row.opt_text("identifier")?.as_deref()),
            count: row.int("waiting")?,
        })
    };
    rows.iter().map(read).collect()
}

/// Sets the state of a thread, unless a notification came after `seen`; `false` if nothing changed.
pub async fn set_state(
    tx: &mut Tx,
    user: UserId,
    thread: ThreadId,
    state: State,
    seen: Timestamp,
) -> Result<bool, StoreError> {
    let now = tx.now();
    let read_at = (state != State::Unread).then_some(now);
    Ok(tx.execute(&SET_STATE, params![user, thread, state.as_str(), read_at, seen]).await? > 0)
}

/// Marks notifications up to an instant as read, in one repository or all; returns their number. `public`: only those
/// of public repositories about public events.
pub async fn read_all(
    tx: &mut Tx,
    user: UserId,
    repo: Option<RepoId>,
    until: Timestamp,
    public: bool,
) -> Result<u64, StoreError> {
    let now = tx.now();
    tx.execute(&READ_ALL, params![user, until, repo.map_or(0, RepoId::get), now, public]).await
}

/// Marks a user's notification about a subject of a repository as read.
pub async fn read_subject(
    tx: &mut Tx,
    user: UserId,
    repo: RepoId,
    (subject, id): (Subject, i64),
) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&READ_SUBJECT, params![user, repo, subject.as_str(), id, now]).await.map(drop)
}

/// Mutes or unmutes a thread that is no issue.
pub async fn set_muted(tx: &mut Tx, user: UserId, thread: ThreadId, muted: bool) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&MUTE, params![user, thread, muted.then_some(now)]).await.map(drop)
}
