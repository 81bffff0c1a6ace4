//! Issue lists of a repository: filtered, searched, sorted, by page.
//!
//! Each sort order has its own statement, which walks the index of that order; the filter then drops rows. A statement
//! reads a bounded number of issues, so that a search without matches ends.

use crate::issues::{Issue, issue_columns, issue_people};
use crate::repos::Page;
use crate::repos::search::escaped;
use crate::sql::statements;
use crate::{Conn, StoreError, Value};
use abide_core::issues::filter::{MAX_WORDS, Sort, Wanted};
use abide_core::issues::{Reason, State};
use abide_core::{IssueId, LabelId, MilestoneId, RepoId, Timestamp, UserId};

/// Upper bound of counts: nobody pages that deep.
pub const MAX_TOTAL: i64 = 10_000;

macro_rules! word {
    ($pattern:literal) => {
        concat!(" AND (lower(i.title) LIKE ", $pattern, " ESCAPE '!' OR lower(i.body) LIKE ", $pattern, " ESCAPE '!')")
    };
}
pub(crate) use word;

/// Issues that pass the filter, in the given order: $1 repository, $2 scan limit, $3 state or '', $4 reason or '', $5
/// author, $6 assignee condition ('any', 'none', 'some', 'is') and $7 the user, $8 and $9 the same for the milestone,
/// $10 label ids between commas and $11 their number, $12 no labels at all, $13 changed since, $14–$18 words.
/// Subqueries count instead of using EXISTS, which PostgreSQL might turn into a scan of everything.
macro_rules! listed {
    ($order:literal) => {
        concat!(
            " FROM (SELECT s.id, s.repo_id, s.number, s.author_id, s.title, s.body, s.state, s.state_reason, s.closed_by,
                s.closed_at, s.milestone_id, s.comment_count, s.created_at, s.updated_at, s.edited_at
            FROM issues s WHERE s.repo_id = $1 AND ($3 = '' OR s.state = $3) ORDER BY ",
            $order,
            " LIMIT $2) i",
            issue_people!(),
            " WHERE ($4 = '' OR i.state_reason = $4)
            AND (CAST($5 AS BIGINT) IS NULL OR i.author_id = $5)
            AND ($6 = 'any'
                OR ($6 = 'none' AND (SELECT count(*) FROM issue_assignees n WHERE n.issue_id = i.id) = 0)
                OR ($6 = 'some' AND (SELECT count(*) FROM issue_assignees n WHERE n.issue_id = i.id) > 0)
                OR ($6 = 'is' AND
                    (SELECT count(*) FROM issue_assignees n WHERE n.issue_id = i.id AND n.user_id = $7) > 0))
            AND ($8 = 'any' OR ($8 = 'none' AND i.milestone_id IS NULL)
                OR ($8 = 'some' AND i.milestone_id IS NOT NULL) OR ($8 = 'is' AND i.milestone_id = $9))
            AND (CAST($11 AS BIGINT) = 0 OR (SELECT count(*) FROM issue_labels l WHERE l.issue_id = i.id
                AND $10 LIKE '%,' || CAST(l.label_id AS TEXT) || ',%') = $11)
            AND (NOT $12 OR (SELECT count(*) FROM issue_labels l WHERE l.issue_id = i.id) = 0)
            AND i.updated_at >= $13",
            word!("$14"),
            word!("$15"),
            word!("$16"),
            word!("$17"),
            word!("$18")
        )
    };
}

macro_rules! list {
    ($inner:literal, $outer:literal) => {
        concat!("SELECT ", issue_columns!(), listed!($inner), " ORDER BY ", $outer, " LIMIT $19 OFFSET $20")
    };
}

statements! {
    NEWEST = list!("s.number DESC", "i.number DESC");
    OLDEST = list!("s.number", "i.number");
    LATEST = list!("s.updated_at DESC, s.id DESC", "i.updated_at DESC, i.id DESC");
    STALEST = list!("s.updated_at, s.id", "i.updated_at, i.id");
    LOUDEST = list!("s.comment_count DESC, s.id DESC", "i.comment_count DESC, i.id DESC");
    QUIETEST = list!("s.comment_count, s.id", "i.comment_count, i.id");
    COUNT = concat!("SELECT count(*) AS n FROM (SELECT i.id", listed!("s.number DESC"), " LIMIT 10000) AS matches");
}

/// Filter of a list, with every name resolved to an id.
#[derive(Debug, Clone)]
pub struct Query {
    pub state: Option<State>,
    /// Reason of the state.
    pub reason: Option<Reason>,
    pub author: Option<UserId>,
    pub assignee: Wanted<UserId>,
    pub milestone: Wanted<MilestoneId>,
    /// Issues must have all of these labels.
    pub labels: Vec<LabelId>,
    /// Only issues without labels.
    pub no_label: bool,
    /// Only issues changed since then.
    pub since: Option<Timestamp>,
    /// Lower-case words that must all occur in the title or the text.
    pub words: Vec<String>,
    pub sort: Sort,
    /// Ascending order: least or oldest first.
    pub ascending: bool,
    /// Most issues to read.
    pub scan: i64,
}

/// A page of a repository's issues, and the number of matches up to [`MAX_TOTAL`].
pub async fn find(conn: &mut Conn, repo: RepoId, query: &Query, page: Page) -> Result<(Vec<Issue>, i64), StoreError> {
    let list = match (query.sort, query.ascending) {
        (Sort::Created, false) => &NEWEST,
        (Sort::Created, true) => &OLDEST,
        (Sort::Updated, false) => &LATEST,
        (Sort::Updated, true) => &STALEST,
        (Sort::Comments, false) => &LOUDEST,
        (Sort::Comments, true) => &QUIETEST,
    };
    let (assignee, responsible) = spelled(&query.assignee);
    let (milestone, which) = spelled(&query.milestone);
    let ids: String = query.labels.iter().map(|id| format!("{id},")).collect();
    let mut values: Vec<Value> = vec![
        repo.into(),
        query.scan.into(),
        query.state.map_or("", State::as_str).into(),
        query.reason.map_or("", Reason::as_str).into(),
        query.author.into(),
        assignee.into(),
        responsible.copied().map(UserId::get).into(),
        milestone.into(),
        which.copied().map(MilestoneId::get).into(),
        format!(",{ids}").into(),
        (query.labels.len() as i64).into(),
        query.no_label.into(),
        query.since.map_or(i64::MIN, Timestamp::micros).into(),
    ];
    let pattern = |word: &String| format!("%{}%", escaped(word));
    values.extend((0..MAX_WORDS).map(|at| Value::from(query.words.get(at).map_or("%".into(), pattern))));
    let total = conn.only(&COUNT, &values).await?.int("n")?;
    values.extend([page.limit.into(), page.offset.into()]);
    let rows = conn.all(list, &values).await?;
    Ok((rows.iter().map(Issue::from_row).collect::<Result<_, _>>()?, total))
}

/// Ids as one parameter, for statements about many issues.
pub(crate) fn issue_ids(ids: &[IssueId]) -> String {
    ids.iter().map(IssueId::to_string).collect::<Vec<_>>().join(",")
}

/// A condition as two parameters: its kind and its value.
pub(crate) fn spelled<T>(wanted: &Wanted<T>) -> (&'static str, Option<&T>) {
    match wanted {
        Wanted::Any => ("any", None),
        Wanted::None => ("none", None),
        Wanted::Some => ("some", None),
        Wanted::Is(which) => ("is", Some(which)),
    }
}
