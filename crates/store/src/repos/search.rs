//! Repository search by name, owner, description and topic, with the same visibility predicate as every list.
//!
//! No index helps with words anywhere in a text, so a search reads a bounded number of repositories: those with the
//! topic, those of the owner, or else the most recently changed.

use crate::repos::{Page, Repo, Viewer, columns, visible};
use crate::sql::statements;
use crate::{Conn, StoreError, Value};
use abide_core::search::{MAX_WORDS, Sort};
use abide_core::{Topic, UserId};

/// Upper bound of counts: nobody pages that deep.
pub const MAX_TOTAL: i64 = 10_000;

/// One required word. Topics are counted instead of tested with EXISTS, which PostgreSQL might turn into a scan of all
/// topics.
macro_rules! word {
    ($pattern:literal) => {
        concat!(
            " AND (r.name LIKE ",
            $pattern,
            " ESCAPE '!' OR COALESCE(u.name, u.npub) LIKE ",
            $pattern,
            " ESCAPE '!' OR lower(r.description) LIKE ",
            $pattern,
            " ESCAPE '!' OR (SELECT count(*) FROM repo_topics t WHERE t.repo_id = r.id AND t.topic LIKE ",
            $pattern,
            " ESCAPE '!') > 0)"
        )
    };
}

/// Matches in a source: $1 viewer, $2 whether they read everything, $3–$7 words, $8 owner or NULL, $9 scan limit of the
/// source.
macro_rules! found_in {
    ($source:expr) => {
        concat!(
            " FROM (",
            $source,
            ") r
        JOIN users u ON u.id = r.owner_id
        LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $1
        WHERE ",
            visible!("$1", "$2"),
            word!("$3"),
            word!("$4"),
            word!("$5"),
            word!("$6"),
            word!("$7"),
            " AND (CAST($8 AS BIGINT) IS NULL OR r.owner_id = $8)"
        )
    };
}

macro_rules! count_in {
    ($source:expr) => {
        concat!("SELECT count(*) AS n FROM (SELECT r.id", found_in!($source), " LIMIT 10000) AS matches")
    };
}

/// $10 order, $11 the first word, $12 the same as a prefix pattern, $13 limit, $14 offset.
macro_rules! list_in {
    ($source:expr) => {
        concat!(
            "SELECT ",
            columns!(),
            ", c.role AS role",
            found_in!($source),
            "
        ORDER BY
            CASE WHEN $10 <> 'best' OR r.name = $11 THEN 0 WHEN r.name LIKE $12 ESCAPE '!' THEN 1
                WHEN r.name LIKE $3 ESCAPE '!' THEN 2 ELSE 3 END,
            CASE WHEN $10 = 'name' THEN r.name ELSE '' END,
            CASE WHEN $10 = 'updated' THEN 0 ELSE r.star_count END DESC,
            r.updated_at DESC, r.id DESC
        LIMIT $13 OFFSET $14"
        )
    };
}

/// Columns of a source.
macro_rules! source_columns {
    () => {
        "s.id, s.owner_id, s.name, s.description, s.visibility, s.governance, s.default_branch, s.archived_at,
            s.deleted_at, s.fork_of_repo_id, s.refs_generation, s.star_count, s.watcher_count, s.size_bytes,
            s.pushed_at, s.created_at, s.updated_at"
    };
}

macro_rules! recent {
    () => {
        concat!(
            "SELECT ",
            source_columns!(),
            " FROM repos s WHERE s.deleted_at IS NULL ORDER BY s.updated_at DESC, s.id DESC LIMIT $9"
        )
    };
}

macro_rules! owned {
    () => {
        concat!("SELECT ", source_columns!(), " FROM repos s WHERE s.owner_id = $8 LIMIT $9")
    };
}

macro_rules! tagged {
    ($topic:literal) => {
        concat!(
            "SELECT ",
            source_columns!(),
            " FROM repo_topics b JOIN repos s ON s.id = b.repo_id WHERE b.topic = ",
            $topic,
            " ORDER BY b.repo_id DESC LIMIT $9"
        )
    };
}

statements! {
    LIST_RECENT = list_in!(recent!());
    COUNT_RECENT = count_in!(recent!());
    LIST_OWNED = list_in!(owned!());
    COUNT_OWNED = count_in!(owned!());
    LIST_TAGGED = list_in!(tagged!("$15"));
    COUNT_TAGGED = count_in!(tagged!("$10"));
}

/// Conditions and scan limit of a search.
#[derive(Debug, Clone)]
pub struct Search {
    /// Lower-case words; all must match.
    pub words: Vec<String>,
    pub topic: Option<Topic>,
    pub owner: Option<UserId>,
    pub sort: Sort,
    /// Most repositories to read.
    pub scan: i64,
}

/// A page of the matches that a viewer may read, and their number up to [`MAX_TOTAL`].
pub async fn find(
    conn: &mut Conn,
    search: &Search,
    viewer: Viewer,
    page: Page,
) -> Result<(Vec<Repo>, i64), StoreError> {
    let (list, count) = match (&search.topic, search.owner) {
        (Some(_), _) => (&LIST_TAGGED, &COUNT_TAGGED),
        (None, Some(_)) => (&LIST_OWNED, &COUNT_OWNED),
        (None, None) => (&LIST_RECENT, &COUNT_RECENT),
    };
    let topic: Option<Value> = search.topic.as_ref().map(|topic| topic.as_str().into());
    let mut common: Vec<Value> = vec![viewer.user.into(), viewer.reads_everything.into()];
    common.extend((0..MAX_WORDS).map(|index| Value::from(search.words.get(index).map_or("%".into(), |w| anywhere(w)))));
    common.extend([search.owner.into(), search.scan.into()]);

    let first = search.words.first().map_or("", String::as_str);
    let order: [Value; 5] =
        [search.sort.as_str().into(), first.into(), beginning(first).into(), page.limit.into(), page.offset.into()];
    let listed: Vec<Value> = common.iter().cloned().chain(order).chain(topic.clone()).collect();
    let counted: Vec<Value> = common.into_iter().chain(topic).collect();
    let rows = conn.all(list, &listed).await?;
    let total = conn.only(count, &counted).await?.int("n")?;
    Ok((rows.iter().map(Repo::from_row).collect::<Result<_, _>>()?, total))
}

pub(crate) fn anywhere(word: &str) -> String {
    format!("%{}", beginning(word))
}

fn beginning(word: &str) -> String {
    format!("{}%", escaped(word))
}

/// Escapes the wildcards in a word.
pub(crate) fn escaped(word: &str) -> String {
    let mut pattern = String::with_capacity(word.len());
    for c in word.chars() {
        if matches!(c, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(c);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_themselves() {
        assert_eq!(anywhere("100%_!"), "%100!%!_!!%");
        assert_eq!(MAX_WORDS, 5, "the statements have five parameters");
    }
}
