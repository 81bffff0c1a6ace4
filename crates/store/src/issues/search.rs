//! Issue search across repositories, and a user's issues. Uses the same visibility predicate as every list.
//!
//! No index helps with words anywhere in a text, so each search reads a bounded number of issues: those that a user
//! wrote, is assigned to, is mentioned in or is subscribed to, those of one repository, or else the most recently
//! changed.

use crate::issues::list::{MAX_TOTAL, spelled, word};
use crate::issues::{Issue, issue_columns, issue_people};
use crate::repos::search::anywhere;
use crate::repos::{Page, Repo, Viewer, columns, id_list, visible};
use crate::sql::statements;
use crate::{Conn, Sql, StoreError, Value};
use abide_core::issues::filter::{Filter, MAX_WORDS, Sort, Wanted};
use abide_core::issues::{Reason, State};
use abide_core::{RepoId, Timestamp, UserId};

/// Issues to read, with their repositories: a source yields at most $3 issues.
macro_rules! looked_at {
    ($source:expr) => {
        concat!(
            " FROM (SELECT s.id, s.repo_id, s.number, s.author_id, s.title, s.body, s.state, s.state_reason, s.closed_by,
                s.closed_at, s.milestone_id, s.comment_count, s.created_at, s.updated_at, s.edited_at",
            $source,
            " LIMIT $3) i
            JOIN repos r ON r.id = i.repo_id
            LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $1"
        )
    };
}

/// Conditions: $1 viewer, $2 whether they read everything, $4 state or '', $5 reason or '', $6 author, $7 assignee
/// condition ('any', 'none', 'some', 'is') and $8 the user, $9 mentioned user, $10 subscriber, $11 milestone condition
/// and $12 its title, $13 labels between line feeds and $14 their number, $15 no labels at all, $16 changed since, $17
/// repository, $18 owner, $19 scope ('any', 'theirs', 'concern'), $20–$24 words. Subqueries count instead of using
/// EXISTS, which PostgreSQL might turn into a scan of everything.
macro_rules! found {
    () => {
        concat!(
            visible!("$1", "$2"),
            " AND ($4 = '' OR i.state = $4) AND ($5 = '' OR i.state_reason = $5)
            AND (CAST($6 AS BIGINT) IS NULL OR i.author_id = $6)
            AND ($7 = 'any'
                OR ($7 = 'none' AND (SELECT count(*) FROM issue_assignees n WHERE n.issue_id = i.id) = 0)
                OR ($7 = 'some' AND (SELECT count(*) FROM issue_assignees n WHERE n.issue_id = i.id) > 0)
                OR ($7 = 'is' AND
                    (SELECT count(*) FROM issue_assignees n WHERE n.issue_id = i.id AND n.user_id = $8) > 0))
            AND (CAST($9 AS BIGINT) IS NULL
                OR (SELECT count(*) FROM issue_mentions n WHERE n.issue_id = i.id AND n.user_id = $9) > 0)
            AND (CAST($10 AS BIGINT) IS NULL OR (SELECT count(*) FROM issue_subscriptions n
                WHERE n.issue_id = i.id AND n.user_id = $10 AND n.subscribed) > 0)
            AND ($11 = 'any' OR ($11 = 'none' AND i.milestone_id IS NULL)
                OR ($11 = 'some' AND i.milestone_id IS NOT NULL)
                OR ($11 = 'is' AND
                    (SELECT count(*) FROM milestones m WHERE m.id = i.milestone_id AND m.folded = $12) > 0))
            AND (CAST($14 AS BIGINT) = 0 OR (SELECT count(*) FROM issue_labels l JOIN labels k ON k.id = l.label_id
                WHERE l.issue_id = i.id AND replace($13, '\n' || k.folded || '\n', '') <> $13) = $14)
            AND (NOT $15 OR (SELECT count(*) FROM issue_labels l WHERE l.issue_id = i.id) = 0)
            AND i.updated_at >= $16
            AND (CAST($17 AS BIGINT) IS NULL OR i.repo_id = $17)
            AND (CAST($18 AS BIGINT) IS NULL OR r.owner_id = $18)
            AND ($19 = 'any' OR r.owner_id = $1 OR c.user_id IS NOT NULL OR ($19 = 'concern' AND
                (SELECT count(*) FROM issue_subscriptions n
                    WHERE n.issue_id = i.id AND n.user_id = $1 AND n.subscribed) > 0))",
            word!("$20"),
            word!("$21"),
            word!("$22"),
            word!("$23"),
            word!("$24")
        )
    };
}

/// $25 sort key, $26 direction, $27 limit, $28 offset.
macro_rules! list {
    ($source:expr) => {
        concat!(
            "SELECT ",
            issue_columns!(),
            looked_at!($source),
            issue_people!(),
            " WHERE ",
            found!(),
            " ORDER BY $26 * CASE WHEN $25 = 'created' THEN i.created_at WHEN $25 = 'updated' THEN i.updated_at
                ELSE i.comment_count END, $26 * i.id LIMIT $27 OFFSET $28"
        )
    };
}

macro_rules! count {
    ($source:expr) => {
        concat!(
            "SELECT count(*) AS looked, COALESCE(sum(CASE WHEN ",
            found!(),
            " THEN 1 ELSE 0 END), 0) AS n",
            looked_at!($source)
        )
    };
}

macro_rules! written {
    () => {
        " FROM issues s WHERE s.author_id = $6 ORDER BY s.updated_at DESC, s.id DESC"
    };
}

macro_rules! assigned {
    () => {
        " FROM issue_assignees b JOIN issues s ON s.id = b.issue_id WHERE b.user_id = $8 ORDER BY b.issue_id DESC"
    };
}

macro_rules! naming {
    () => {
        " FROM issue_mentions b JOIN issues s ON s.id = b.issue_id WHERE b.user_id = $9 ORDER BY b.issue_id DESC"
    };
}

macro_rules! heard {
    () => {
        " FROM issue_subscriptions b JOIN issues s ON s.id = b.issue_id
            WHERE b.user_id = $10 AND b.subscribed ORDER BY b.issue_id DESC"
    };
}

macro_rules! in_repo {
    () => {
        " FROM issues s WHERE s.repo_id = $17 ORDER BY s.updated_at DESC, s.id DESC"
    };
}

macro_rules! recent {
    () => {
        " FROM issues s ORDER BY s.updated_at DESC, s.id DESC"
    };
}

statements! {
    LIST_WRITTEN = list!(written!());
    COUNT_WRITTEN = count!(written!());
    LIST_ASSIGNED = list!(assigned!());
    COUNT_ASSIGNED = count!(assigned!());
    LIST_NAMING = list!(naming!());
    COUNT_NAMING = count!(naming!());
    LIST_HEARD = list!(heard!());
    COUNT_HEARD = count!(heard!());
    LIST_IN_REPO = list!(in_repo!());
    COUNT_IN_REPO = count!(in_repo!());
    LIST_RECENT = list!(recent!());
    COUNT_RECENT = count!(recent!());
    /// Repositories of a page of issues. Checks visibility again, because this is another statement at another moment.
    REPOS = concat!("SELECT ", columns!(), ", c.role AS role
        FROM repos r
        JOIN users u ON u.id = r.owner_id
        LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $1
        WHERE ", visible!("$1", "$2"), " AND r.id "),
        sqlite "IN (SELECT value FROM json_each('[' || $3 || ']'))",
        postgres "= ANY (CAST(string_to_array($3, ',') AS BIGINT[]))";
}

/// Repositories to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    Anyones,
    /// Repositories that the viewer owns or collaborates on.
    Theirs,
    /// As `Theirs`, and repositories where the viewer is subscribed to the issue.
    Concern,
}

impl Whose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Anyones => "any",
            Self::Theirs => "theirs",
            Self::Concern => "concern",
        }
    }
}

/// Conditions of a search. Labels and milestones belong to one repository, so here they are matched by name.
#[derive(Debug, Clone)]
pub struct Search {
    /// Conditions that a list within one repository also has. Its user names are resolved in the fields below.
    pub filter: Filter,
    pub author: Option<UserId>,
    pub assignee: Wanted<UserId>,
    /// A mentioned user.
    pub mentions: Option<UserId>,
    /// A subscriber.
    pub hears: Option<UserId>,
    /// Only issues changed since then.
    pub since: Option<Timestamp>,
    pub repo: Option<RepoId>,
    /// Owner of the repositories.
    pub owner: Option<UserId>,
    pub whose: Whose,
    /// Most issues to read.
    pub scan: i64,
}

impl Search {
    /// Statements of the narrowest source.
    fn source(&self) -> (&'static Sql, &'static Sql) {
        match self {
            Self { author: Some(_), .. } => (&LIST_WRITTEN, &COUNT_WRITTEN),
            Self { assignee: Wanted::Is(_), .. } => (&LIST_ASSIGNED, &COUNT_ASSIGNED),
            Self { mentions: Some(_), .. } => (&LIST_NAMING, &COUNT_NAMING),
            Self { hears: Some(_), .. } => (&LIST_HEARD, &COUNT_HEARD),
            Self { repo: Some(_), .. } => (&LIST_IN_REPO, &COUNT_IN_REPO),
            _ => (&LIST_RECENT, &COUNT_RECENT),
        }
    }
}

/// Result of a search.
#[derive(Debug, Clone)]
pub struct Found {
    pub issues: Vec<Issue>,
    /// Repositories of the issues, each once.
    pub repos: Vec<Repo>,
    /// Number of matches, up to [`MAX_TOTAL`].
    pub total: i64,
    /// Whether every issue that could match was read.
    pub complete: bool,
}

/// A page of the matches that a viewer may read.
pub async fn find(conn: &mut Conn, search: &Search, viewer: Viewer, page: Page) -> Result<Found, StoreError> {
    let (list, count) = search.source();
    let mut values = values(search, viewer);
    let counted = conn.only(count, &values).await?;
    let way: i64 = if search.filter.ascending { 1 } else { -1 };
    let sort = Sort::as_str(search.filter.sort);
    values.extend([sort.into(), way.into(), page.limit.into(), page.offset.into()]);
    let rows = conn.all(list, &values).await?;
    let mut issues = rows.iter().map(Issue::from_row).collect::<Result<Vec<_>, _>>()?;
    let mut ids: Vec<RepoId> = issues.iter().map(|issue| issue.repo_id).collect();
    ids.sort_unstable();
    ids.dedup();
    let here: [Value; 3] = [viewer.user.into(), viewer.reads_everything.into(), id_list(&ids).into()];
    let repos = conn.all(&REPOS, &here).await?.iter().map(Repo::from_row).collect::<Result<Vec<_>, _>>()?;
    issues.retain(|issue| repos.iter().any(|repo| repo.id == issue.repo_id));
    let complete = counted.int("looked")? < search.scan;
    Ok(Found { issues, repos, total: counted.int("n")?.min(MAX_TOTAL), complete })
}

fn values(search: &Search, viewer: Viewer) -> Vec<Value> {
    let filter = &search.filter;
    let (assignee, responsible) = spelled(&search.assignee);
    let (milestone, title) = spelled(&filter.milestone);
    let labels: String = filter.labels.iter().map(|label| format!("{label}\n")).collect();
    let mut values: Vec<Value> = vec![
        viewer.user.into(),
        viewer.reads_everything.into(),
        search.scan.into(),
        filter.state.map_or("", State::as_str).into(),
        filter.reason.map_or("", Reason::as_str).into(),
        search.author.into(),
        assignee.into(),
        responsible.copied().map(UserId::get).into(),
        search.mentions.into(),
        search.hears.into(),
        milestone.into(),
        title.map_or("", String::as_str).into(),
        format!("\n{labels}").into(),
        (filter.labels.len() as i64).into(),
        filter.no_label.into(),
        search.since.map_or(i64::MIN, Timestamp::micros).into(),
        search.repo.map(RepoId::get).into(),
        search.owner.into(),
        search.whose.as_str().into(),
    ];
    values.extend((0..MAX_WORDS).map(|at| Value::from(filter.words.get(at).map_or("%".into(), |word| anywhere(word)))));
    values
}
