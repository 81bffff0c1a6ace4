//! Feeds: parts of the log of events, newest first, as a viewer may know them now.
//!
//! Nothing is copied per reader. Each query of the log picks a bounded run of positions by an index; the outer statement
//! fills them in with the names of today and says of each whether the viewer may know of it. So a request costs the same
//! however much of the log is hidden from them.

use crate::repos::{Viewer, address, identifier};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, Sql, StoreError};
use abide_core::event::Body;
use abide_core::feed::{CommentRef, FeedEvent};
use abide_core::issues::text::excerpt;
use abide_core::{Handle, RepoId, RepoName, Timestamp, UserId};
use std::collections::HashMap;

/// So many events are looked at in one go. It stands in the statements as it is: PostgreSQL would plan a parameter as a
/// tenth of the log.
pub const RUN: usize = 50;

/// Characters of a text that feeds show.
const EXCERPT: usize = 200;

/// Reads the events at the positions that `$run` picked: $1 is the viewer, $2 whether they read everything.
///
/// Titles and texts come from the live rows, so what was removed or edited away is in no feed.
///
/// `shown` is the rule of `abide_core::attention::event_visible`; a test compares them. Events by suspended accounts,
/// and follows of them, are not shown.
macro_rules! filled {
    ($run:expr, $order:literal) => {
        concat!(
            "SELECT run.seq, e.kind, e.public, e.payload, e.created_at, a.id AS actor_id, COALESCE(a.name, a.npub) AS actor_name,
                r.id AS repo_id, r.name AS repo_name, COALESCE(o.name, o.npub) AS owner_name, r.visibility,
                COALESCE(i.title, m.title) AS title,
                CASE WHEN e.kind IN ('issue_created', 'pr_opened') THEN COALESCE(substr(i.body, 1, 2000), m.excerpt) END AS body, ",
            identifier!(),
            ",
                CASE WHEN a.suspended_at IS NULL AND t.suspended_at IS NULL
                    AND (e.source_kind <> 'nostr_thread' OR m.n IS NOT NULL) AND (
                    (e.source_kind = 'user' AND e.public)
                    OR (r.deleted_at IS NULL AND (
                        (r.visibility = 'public' AND e.public) OR r.owner_id = $1 OR c.user_id IS NOT NULL
                        OR ($2 AND r.id IS NOT NULL))))
                THEN TRUE ELSE FALSE END AS shown
            FROM (",
            $run,
            ") run
            JOIN domain_events e ON e.seq = run.seq
            LEFT JOIN users a ON a.id = e.actor_user_id
            LEFT JOIN users t ON t.id = e.source_id AND e.source_kind = 'user'
            LEFT JOIN repos r ON r.id = e.repo_id
            LEFT JOIN users o ON o.id = r.owner_id
            LEFT JOIN issues i ON i.id = e.source_id AND e.source_kind = 'issue' AND i.repo_id = e.repo_id
            LEFT JOIN nostr_news m ON m.n = e.source_id AND e.source_kind = 'nostr_thread'
            LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $1
            ORDER BY run.seq ",
            $order
        )
    };
}

/// Events of a source `x` before $3, newest first, from position `$from` on; one, so many before it left out.
macro_rules! latest {
    ($source:expr, $from:expr, $offset:literal) => {
        concat!(
            "(SELECT e.seq FROM domain_events e WHERE e.told AND ",
            $source,
            " AND e.seq < $3 AND e.seq >= ",
            $from,
            " ORDER BY e.seq DESC LIMIT 1 OFFSET ",
            $offset,
            ")"
        )
    };
}

/// Events of a repository `x`: public ones, and all for people with access.
macro_rules! in_repo {
    () => {
        "e.repo_id = x.id AND (e.public OR x.inside)"
    };
}

/// Events of a person `x`: public ones; for oneself, all.
macro_rules! by_person {
    () => {
        "e.actor_user_id = x.id AND (e.public OR x.id = $1)"
    };
}

/// Events of the chosen sources: of each its latest [`RUN`], and nothing before the end. `CROSS` makes SQLite begin
/// with the sources.
macro_rules! contributed {
    ($chosen:literal, $source:expr) => {
        concat!(
            "SELECT e.seq FROM ",
            $chosen,
            " x CROSS JOIN domain_events e WHERE e.told AND ",
            $source,
            " AND e.seq <= x.top AND e.seq >= coalesce(",
            latest!($source, "(SELECT seq FROM lowest)", "49"),
            ", (SELECT seq FROM lowest))"
        )
    };
}

/// The latest positions before $3 of the sources of $4: their repositories and those they watch, themselves and the
/// accounts they follow. Watches are private, so they are no events here.
///
/// Of the sources only those [`RUN`] matter whose latest event is the latest: any other has as many events before it. The
/// earliest of those latest events is the end (`lowest`): as many are at or before it. So the cost is one look per source
/// and a bounded number of events, however long the log is.
macro_rules! home {
    () => {
        concat!(
            "WITH kept AS (
                SELECT r.id FROM repos r WHERE r.owner_id = $4
                UNION SELECT w.repo_id FROM watches w WHERE w.user_id = $4 AND w.user_id = $1 AND w.level <> 'ignore'),
            source_repos AS (
                SELECT r.id, (coalesce(r.owner_id = $1, FALSE) OR c.user_id IS NOT NULL OR $2) AS inside
                FROM kept JOIN repos r ON r.id = kept.id
                LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $1
                WHERE r.deleted_at IS NULL),
            people AS (
                SELECT u.id FROM users u WHERE u.id = $4
                UNION SELECT f.followed_id FROM follows f WHERE f.follower_id = $4),
            chosen_repos AS (
                SELECT x.id, x.inside, ",
            latest!(in_repo!(), "0", "0"),
            " AS top
                FROM source_repos x ORDER BY top DESC NULLS LAST LIMIT 50),
            chosen_people AS (
                SELECT x.id, ",
            latest!(by_person!(), "0", "0"),
            " AS top
                FROM people x ORDER BY top DESC NULLS LAST LIMIT 50),
            lowest AS (
                SELECT coalesce(max(seq), 0) AS seq FROM (
                    SELECT CASE WHEN count(top) = 50 THEN min(top) END AS seq FROM chosen_repos
                    UNION ALL SELECT CASE WHEN count(top) = 50 THEN min(top) END FROM chosen_people) ends)
            SELECT seq FROM (",
            contributed!("chosen_repos", in_repo!()),
            " UNION ",
            contributed!("chosen_people", by_person!()),
            ") both_kinds ORDER BY seq DESC LIMIT 50"
        )
    };
}

statements! {
    PUBLIC = filled!("SELECT seq FROM domain_events WHERE told AND public AND seq < $3 ORDER BY seq DESC LIMIT 50", "DESC");
    OF_REPO = filled!("SELECT seq FROM domain_events WHERE told AND repo_id = $4 AND seq < $3 ORDER BY seq DESC LIMIT 50", "DESC");
    OF_ACTOR = filled!("SELECT seq FROM domain_events WHERE told AND actor_user_id = $4 AND seq < $3
        ORDER BY seq DESC LIMIT 50", "DESC");
    HOME = filled!(home!(), "DESC");
    /// The other way round: what came after $3.
    AFTER = filled!("SELECT seq FROM domain_events WHERE told AND seq > $3 ORDER BY seq LIMIT 50", "ASC");
    /// The beginnings of these comments that came by nostr.
    NOSTR_COMMENTS = "SELECT n AS id, excerpt AS body FROM nostr_news WHERE n ",
        sqlite "IN (SELECT value FROM json_each('[' || $1 || ']'))",
        postgres "= ANY (CAST(string_to_array($1, ',') AS BIGINT[]))";
    /// The beginnings of these comments, as they are now.
    COMMENTS = "SELECT id, substr(body, 1, 2000) AS body FROM comments WHERE id ",
        sqlite "IN (SELECT value FROM json_each('[' || $1 || ']'))",
        postgres "= ANY (CAST(string_to_array($1, ',') AS BIGINT[]))";
}

/// An event as a feed shows it.
#[derive(Debug, Clone)]
pub struct Item {
    pub seq: i64,
    /// `None`: the operator or the system.
    pub actor: Option<(UserId, Handle)>,
    /// Under its current name.
    pub repo: Option<FeedRepo>,
    /// Whether everyone may see it: it happened in public and the repository is public now.
    pub public: bool,
    pub event: FeedEvent,
    /// Current title of the issue; empty for events about no issue.
    pub title: String,
    /// Beginning of the current text of the issue or comment; empty once it is removed.
    pub excerpt: String,
    pub at: Timestamp,
}

/// A repository that something happened in.
#[derive(Debug, Clone)]
pub struct FeedRepo {
    pub id: RepoId,
    pub owner: Handle,
    pub name: RepoName,
    /// Its nostr identifier, as long as the owner has no name.
    pub identifier: Option<String>,
}

impl FeedRepo {
    /// Its name in URLs.
    pub fn slug(&self) -> String {
        address(self.owner.as_str(), self.name.as_str(), self.identifier.as_deref())
    }
}

/// The part of the log that a viewer may read.
#[derive(Debug, Clone)]
pub struct Run {
    pub items: Vec<Item>,
    /// Where the run ends, and whether there is more behind.
    pub end: Option<(i64, bool)>,
}

impl Item {
    fn from_row(row: &Row) -> Result<Option<Self>, StoreError> {
        if !row.bool("shown")? {
            return Ok(None);
        }
        let seq = row.int("seq")?;
        let event = match Body::parse(&row.text("kind")?, &row.text("payload")?) {
            Ok(body) => FeedEvent::of(body.payload),
            Err(error) => {
                tracing::warn!(seq, %error, "a feed leaves out an event that this version cannot read");
                None
            }
        };
        let Some(event) = event else { return Ok(None) };
        let actor = match (row.opt_int("actor_id")?, row.opt_text("actor_name")?) {
            (Some(id), Some(name)) => Some((UserId::new(id), Handle::from_stored(name))),
            (Some(id), None) => Some((UserId::new(id), Handle::ghost())),
            _ => None,
        };
        let repo = match (row.opt_int("repo_id")?, row.opt_text("owner_name")?, row.opt_text("repo_name")?) {
            (Some(id), Some(owner), Some(name)) => Some(FeedRepo {
                id: RepoId::new(id),
                owner: Handle::from_stored(owner),
                name: RepoName::from_stored(name),
                identifier: row.opt_text("identifier")?,
            }),
            _ => None,
        };
        let public_now = row.opt_text("visibility")?.is_none_or(|visibility| visibility == "public");
        Ok(Some(Self {
            seq,
            actor,
            repo,
            public: row.bool("public")? && public_now,
            event,
            title: row.opt_text("title")?.unwrap_or_default(),
            excerpt: excerpt(&row.opt_text("body")?.unwrap_or_default(), EXCERPT),
            at: row.time("created_at")?,
        }))
    }
}

/// Which events.
#[derive(Debug, Clone, Copy)]
pub enum Feed {
    /// Public events.
    Public,
    /// Events of a repository.
    Repo(RepoId),
    /// Events of a person.
    Actor(UserId),
    /// Events of the repositories that a person watches and of the people they follow.
    Home(UserId),
}

/// The latest [`RUN`] events of a feed before a position, as far as the viewer may know of them.
pub async fn before(conn: &mut Conn, feed: Feed, viewer: Viewer, before: i64) -> Result<Run, StoreError> {
    let Viewer { user, reads_everything } = viewer;
    match feed {
        Feed::Public => run(conn, &PUBLIC, params![user, reads_everything, before]).await,
        Feed::Repo(id) => run(conn, &OF_REPO, params![user, reads_everything, before, id]).await,
        Feed::Actor(id) => run(conn, &OF_ACTOR, params![user, reads_everything, before, id]).await,
        Feed::Home(id) => run(conn, &HOME, params![user, reads_everything, before, id]).await,
    }
}

/// The first [`RUN`] events after a position, as far as the viewer may know of them.
pub async fn after(conn: &mut Conn, viewer: Viewer, after: i64) -> Result<Run, StoreError> {
    run(conn, &AFTER, params![viewer.user, viewer.reads_everything, after]).await
}

async fn run(conn: &mut Conn, sql: &'static Sql, values: &[crate::Value]) -> Result<Run, StoreError> {
    let rows = conn.all(sql, values).await?;
    let full = rows.len() >= RUN;
    let end = rows.last().map(|row| row.int("seq")).transpose()?.map(|seq| (seq, full));
    let mut items = Vec::with_capacity(rows.len());
    for row in &rows {
        items.extend(Item::from_row(row)?);
    }
    fill_in_comments(conn, &mut items, &COMMENTS, |comment| match comment {
        CommentRef::Local(id) => Some(id.get()),
        CommentRef::Nostr(_) => None,
    })
    .await?;
    fill_in_comments(conn, &mut items, &NOSTR_COMMENTS, |comment| match comment {
        CommentRef::Local(_) => None,
        CommentRef::Nostr(n) => Some(n),
    })
    .await?;
    Ok(Run { items, end })
}

/// Reads the beginnings of the comments of a run, all at once. `id` picks those that a statement reads.
async fn fill_in_comments(
    conn: &mut Conn,
    items: &mut [Item],
    sql: &'static Sql,
    id: fn(CommentRef) -> Option<i64>,
) -> Result<(), StoreError> {
    let id = |item: &Item| item.event.comment().and_then(id);
    let ids: Vec<String> = items.iter().filter_map(id).map(|id| id.to_string()).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let mut bodies = HashMap::new();
    for row in conn.all(sql, params![ids.join(",")]).await? {
        bodies.insert(row.int("id")?, row.text("body")?);
    }
    for item in items {
        if let Some(body) = id(item).and_then(|id| bodies.get(&id)) {
            item.excerpt = excerpt(body, EXCERPT);
        }
    }
    Ok(())
}
