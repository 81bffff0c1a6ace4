//! Queries for events: subscriptions, counts and reconciliations. Hidden and expired events never match.
//!
//! A query starts from its most selective condition: ids, tags, authors, kinds, else time. A short list is queried
//! value by value, because then an index has the rows in order and the search ends at the limit; the results are merged
//! here. Queries return only positions; [`json_of`] reads the events, so that the caller can proceed in steps.

use crate::nostr::events::{fixed, hexadecimal_list};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Sql, StoreError, Value};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// Result size up to which statements walk an index in order.
const FEW: i64 = 500;

/// Length of a list up to which its values are queried one by one.
const ONE_BY_ONE: usize = 16;

/// Number of kinds up to which they are queried one by one; a longer list is searched by time.
const KINDS_ONE_BY_ONE: usize = 64;

/// Length of a tag list up to which it is compared with every event that the query meets. Each comparison reads the list.
const COMPARED: usize = 200;

macro_rules! positions {
    () => {
        "SELECT e.n, e.event_id, e.created_at, CAST(octet_length(e.json) AS BIGINT) AS bytes "
    };
}

/// Conditions on every event besides the one that the query starts from.
macro_rules! rest {
    (sqlite) => {
        " AND ($4 IS NULL OR e.kind IN (SELECT value FROM json_each('[' || $4 || ']')))
            AND ($5 IS NULL OR e.pubkey IN (SELECT unhex(value) FROM json_each($5)))
            AND NOT EXISTS (SELECT 1 FROM json_each($6) need WHERE NOT EXISTS (SELECT 1 FROM nostr_tags o
                WHERE o.n = e.n AND o.key IN (SELECT value FROM json_each(need.value))))
            AND NOT e.hidden AND (e.expires_at IS NULL OR e.expires_at > $7)"
    };
    (postgres) => {
        " AND (CAST($4 AS TEXT) IS NULL OR e.kind = ANY (CAST(string_to_array($4, ',') AS BIGINT[])))
            AND (CAST($5 AS TEXT) IS NULL OR e.pubkey = ANY (ARRAY (
                SELECT decode(value, 'hex') FROM json_array_elements_text(CAST(CAST($5 AS TEXT) AS JSON)))))
            AND ($6 = '[]' OR NOT EXISTS (SELECT 1 FROM json_array_elements(CAST(CAST($6 AS TEXT) AS JSON)) AS need (list)
                WHERE NOT EXISTS (SELECT 1 FROM nostr_tags o WHERE o.n = e.n
                    AND o.key = ANY (ARRAY (SELECT CAST(k AS BIGINT) FROM json_array_elements_text(need.list) k)))))
            AND NOT e.hidden AND (e.expires_at IS NULL OR e.expires_at > $7)"
    };
}

macro_rules! within {
    () => {
        " AND e.created_at BETWEEN $2 AND $3"
    };
}

/// As [`within`], written so that PostgreSQL does not assume a narrow window, which it would sort instead of walking.
macro_rules! from_to {
    () => {
        " AND (e.created_at, e.n) >= ($2, 0) AND e.created_at <= $3"
    };
}

macro_rules! newest {
    () => {
        " ORDER BY e.created_at DESC, e.event_id LIMIT $8"
    };
}

/// For at most [`FEW`] events, in index order: ids within one second are unordered, which [`newest`] corrects.
/// PostgreSQL plans a `LIMIT` parameter as a tenth of the table and prefers to sort all rows; a constant makes it walk
/// and stop.
macro_rules! walk {
    (sqlite) => {
        " ORDER BY e.created_at DESC LIMIT $8"
    };
    (postgres) => {
        " ORDER BY e.created_at DESC LIMIT 500) newest LIMIT $8"
    };
}

macro_rules! few {
    () => {
        "SELECT n, event_id, created_at, bytes FROM (SELECT e.n, e.event_id, e.created_at,
            CAST(octet_length(e.json) AS BIGINT) AS bytes "
    };
}

/// Events of a narrow condition only: `OFFSET 0` keeps PostgreSQL from starting from another condition. With stale
/// statistics it assumes that all events of a kind, or of all times, are few.
macro_rules! only_events {
    ($condition:literal) => {
        concat!(
            "(SELECT n, event_id, pubkey, kind, created_at, expires_at, hidden, json FROM nostr_events WHERE ",
            $condition,
            " OFFSET 0) e"
        )
    };
}

macro_rules! one_of_ids {
    (sqlite) => {
        " FROM nostr_events e WHERE e.event_id IN (SELECT unhex(value) FROM json_each($1))"
    };
    (postgres) => {
        concat!(
            " FROM ",
            only_events!(
                "event_id = ANY (ARRAY (
            SELECT decode(value, 'hex') FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON))))"
            ),
            " WHERE TRUE"
        )
    };
}

/// On PostgreSQL, the key is written as the bounds of a walk. PostgreSQL estimates that a third of the table lies above
/// each bound; for a plain key it would expect a handful of rows and sort them.
macro_rules! one_tag {
    (sqlite) => {
        " FROM nostr_tags t CROSS JOIN nostr_events e
            WHERE t.key = $1 AND t.created_at BETWEEN $2 AND $3 AND e.n = t.n"
    };
    (postgres) => {
        concat!(
            " FROM nostr_tags t CROSS JOIN LATERAL ",
            only_events!("n = t.n"),
            " WHERE (t.key, t.created_at) >= ($1, $2) AND (t.key, t.created_at) <= ($1, $3)"
        )
    };
}

macro_rules! one_of_tags {
    (sqlite) => {
        " FROM nostr_events e WHERE e.n IN (SELECT t.n FROM nostr_tags t
            WHERE t.key IN (SELECT value FROM json_each('[' || $1 || ']')) AND t.created_at BETWEEN $2 AND $3)"
    };
    (postgres) => {
        concat!(
            " FROM (SELECT DISTINCT n FROM nostr_tags
                WHERE key = ANY (CAST(string_to_array($1, ',') AS BIGINT[])) AND created_at BETWEEN $2 AND $3) t
            CROSS JOIN LATERAL ",
            only_events!("n = t.n"),
            " WHERE TRUE"
        )
    };
}

macro_rules! one_of_authors {
    (sqlite) => {
        " FROM nostr_events e WHERE e.pubkey IN (SELECT unhex(value) FROM json_each($1))"
    };
    (postgres) => {
        " FROM nostr_events e WHERE e.pubkey = ANY (ARRAY (
            SELECT decode(value, 'hex') FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON))))"
    };
}

macro_rules! one_of_kinds {
    (sqlite) => {
        " FROM nostr_events e WHERE e.kind IN (SELECT value FROM json_each('[' || $1 || ']'))"
    };
    (postgres) => {
        " FROM nostr_events e WHERE e.kind = ANY (CAST(string_to_array($1, ',') AS BIGINT[]))"
    };
}

/// All events. The first parameter exists so that all statements take the same ones.
macro_rules! all_times {
    () => {
        " FROM nostr_events e WHERE $1 = ''"
    };
}

macro_rules! count {
    () => {
        "SELECT count(*) AS found FROM (SELECT e.n "
    };
}

/// Upper bound of the count.
macro_rules! at_most {
    () => {
        " LIMIT $8) counted"
    };
}

statements! {
    BY_IDS = positions!(),
        sqlite concat!(one_of_ids!(sqlite), within!(), rest!(sqlite), newest!()),
        postgres concat!(one_of_ids!(postgres), within!(), rest!(postgres), newest!());
    BY_TAG = "",
        sqlite concat!(positions!(), one_tag!(sqlite), rest!(sqlite), " ORDER BY t.created_at DESC LIMIT $8"),
        postgres concat!(few!(), one_tag!(postgres), rest!(postgres),
            " ORDER BY t.key DESC, t.created_at DESC LIMIT 500) newest LIMIT $8");
    BY_TAGS = positions!(),
        sqlite concat!(one_of_tags!(sqlite), rest!(sqlite), newest!()),
        postgres concat!(one_of_tags!(postgres), rest!(postgres), newest!());
    BY_AUTHOR = "",
        sqlite concat!(positions!(), " FROM nostr_events e WHERE e.pubkey = $1", within!(), rest!(sqlite), walk!(sqlite)),
        postgres concat!(few!(), " FROM nostr_events e WHERE e.pubkey = $1", from_to!(), rest!(postgres), walk!(postgres));
    BY_AUTHORS = positions!(),
        sqlite concat!(one_of_authors!(sqlite), within!(), rest!(sqlite), newest!()),
        postgres concat!(one_of_authors!(postgres), within!(), rest!(postgres), newest!());
    BY_KIND = "",
        sqlite concat!(positions!(), " FROM nostr_events e WHERE e.kind = $1", within!(), rest!(sqlite), walk!(sqlite)),
        postgres concat!(few!(), " FROM nostr_events e WHERE e.kind = $1", from_to!(), rest!(postgres), walk!(postgres));
    BY_KINDS = positions!(),
        sqlite concat!(one_of_kinds!(sqlite), within!(), rest!(sqlite), newest!()),
        postgres concat!(one_of_kinds!(postgres), within!(), rest!(postgres), newest!());
    BY_TIME = "",
        sqlite concat!(positions!(), all_times!(), within!(), rest!(sqlite), walk!(sqlite)),
        postgres concat!(few!(), all_times!(), from_to!(), rest!(postgres), walk!(postgres));
    ALL_TIMES = concat!(positions!(), all_times!(), within!()),
        sqlite concat!(rest!(sqlite), newest!()), postgres concat!(rest!(postgres), newest!());

    COUNT_BY_IDS = count!(),
        sqlite concat!(one_of_ids!(sqlite), within!(), rest!(sqlite), at_most!()),
        postgres concat!(one_of_ids!(postgres), within!(), rest!(postgres), at_most!());
    COUNT_BY_TAGS = count!(),
        sqlite concat!(one_of_tags!(sqlite), rest!(sqlite), at_most!()),
        postgres concat!(one_of_tags!(postgres), rest!(postgres), at_most!());
    COUNT_BY_AUTHORS = count!(),
        sqlite concat!(one_of_authors!(sqlite), within!(), rest!(sqlite), at_most!()),
        postgres concat!(one_of_authors!(postgres), within!(), rest!(postgres), at_most!());
    COUNT_BY_KINDS = count!(),
        sqlite concat!(one_of_kinds!(sqlite), within!(), rest!(sqlite), at_most!()),
        postgres concat!(one_of_kinds!(postgres), within!(), rest!(postgres), at_most!());
    COUNT_BY_TIME = concat!(count!(), all_times!(), within!()),
        sqlite concat!(rest!(sqlite), at_most!()), postgres concat!(rest!(postgres), at_most!());

    JSON_OF = "SELECT n, json FROM nostr_events WHERE NOT hidden AND n ",
        sqlite "IN (SELECT value FROM json_each('[' || $1 || ']'))",
        postgres "= ANY (CAST(string_to_array($1, ',') AS BIGINT[]))";
    /// Events after a row, in order of arrival. On PostgreSQL a lower number may be committed later.
    AFTER = "SELECT n, event_id, CAST(octet_length(json) AS BIGINT) AS bytes, created_at FROM nostr_events
        WHERE n > $1 AND NOT hidden ORDER BY n LIMIT $2";
    AMONG = "SELECT n, event_id, CAST(octet_length(json) AS BIGINT) AS bytes, created_at FROM nostr_events
        WHERE NOT hidden AND n ",
        sqlite "IN (SELECT value FROM json_each('[' || $1 || ']'))",
        postgres "= ANY (CAST(string_to_array($1, ',') AS BIGINT[]))";
    LAST = "SELECT coalesce(max(n), 0) AS n FROM nostr_events";
}

/// A query. Every present condition must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    pub ids: Option<Vec<[u8; 32]>>,
    pub authors: Option<Vec<[u8; 32]>>,
    pub kinds: Option<Vec<u16>>,
    /// For each requested letter, the [`crate::nostr::events::tag_key`]s of which the event must have one.
    pub tags: Vec<Vec<i64>>,
    /// Earliest `created_at`, in seconds.
    pub since: Option<i64>,
    /// Latest `created_at`, in seconds.
    pub until: Option<i64>,
    /// Most events to return, newest first.
    pub limit: i64,
}

/// Location of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventPosition {
    /// Row number.
    pub n: i64,
    pub id: [u8; 32],
    /// The author's time, in seconds.
    pub created_at: i64,
    /// Length of its JSON.
    pub bytes: i64,
}

/// The condition that a query starts from.
enum Entry<'a> {
    Ids(&'a [[u8; 32]]),
    Tags(&'a [i64]),
    Authors(&'a [[u8; 32]]),
    Kinds(&'a [u16]),
    Time,
}

impl Query {
    fn is_impossible(&self) -> bool {
        self.ids.as_ref().is_some_and(Vec::is_empty)
            || self.authors.as_ref().is_some_and(Vec::is_empty)
            || self.kinds.as_ref().is_some_and(Vec::is_empty)
            || self.tags.iter().any(Vec::is_empty)
    }

    fn entry(&self) -> Entry<'_> {
        if let Some(ids) = &self.ids {
            return Entry::Ids(ids);
        }
        if let Some(first) = self.first_tags() {
            return Entry::Tags(&self.tags[first]);
        }
        if let Some(authors) = &self.authors {
            return Entry::Authors(authors);
        }
        match &self.kinds {
            Some(kinds) if kinds.len() <= KINDS_ONE_BY_ONE => Entry::Kinds(kinds),
            _ => Entry::Time,
        }
    }

    /// The tag list that the query starts from: the shortest, or one that is too long to be compared with every event.
    fn first_tags(&self) -> Option<usize> {
        let lists = || self.tags.iter().enumerate();
        let (longest, keys) = lists().max_by_key(|(_, keys)| keys.len())?;
        if keys.len() > COMPARED {
            return Some(longest);
        }
        lists().min_by_key(|(_, keys)| keys.len()).map(|(shortest, _)| shortest)
    }

    /// Parameters: the value of the starting condition, the time range, and the other conditions.
    fn values(&self, first: Value, now: i64) -> Vec<Value> {
        let kinds = self.kinds.as_ref().map(|kinds| joined(kinds));
        let authors = self.authors.as_ref().map(|authors| hexadecimal_list(authors));
        // The list that is the starting condition itself is not compared again.
        let starting = if self.ids.is_some() { None } else { self.first_tags() };
        let others = self.tags.iter().enumerate().filter(|(list, _)| Some(*list) != starting);
        let needs = serde_json::Value::from(others.map(|(_, keys)| keys.clone()).collect::<Vec<_>>()).to_string();
        vec![
            first,
            self.since.unwrap_or(0).into(),
            self.until.unwrap_or(i64::MAX).into(),
            kinds.into(),
            authors.into(),
            needs.into(),
            now.into(),
        ]
    }
}

fn joined<T: ToString>(list: &[T]) -> String {
    list.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

/// The newest matches, in order; within one second the lowest id first. `now` is in seconds.
pub async fn positions(conn: &mut Conn, query: &Query, now: i64) -> Result<Vec<EventPosition>, StoreError> {
    if query.is_impossible() || query.limit <= 0 {
        return Ok(Vec::new());
    }
    let few = |values: usize| query.limit <= FEW && values <= ONE_BY_ONE;
    let mut found = Vec::new();
    match query.entry() {
        Entry::Ids(ids) => found = search(conn, &BY_IDS, hexadecimal_list(ids).into(), query, now).await?,
        Entry::Tags(keys) if few(keys.len()) => {
            for key in keys {
                found.extend(
                    newest(conn, [&BY_TAG, &BY_TAGS], [(*key).into(), joined(&[*key]).into()], query, now).await?,
                );
            }
        }
        Entry::Tags(keys) => found = search(conn, &BY_TAGS, joined(keys).into(), query, now).await?,
        Entry::Authors(authors) if few(authors.len()) => {
            for author in authors {
                let firsts = [(&author[..]).into(), hexadecimal_list(&[*author]).into()];
                found.extend(newest(conn, [&BY_AUTHOR, &BY_AUTHORS], firsts, query, now).await?);
            }
        }
        Entry::Authors(authors) => {
            found = search(conn, &BY_AUTHORS, hexadecimal_list(authors).into(), query, now).await?;
        }
        Entry::Kinds(kinds) if query.limit <= FEW => {
            for kind in kinds {
                let firsts = [i64::from(*kind).into(), kind.to_string().into()];
                found.extend(newest(conn, [&BY_KIND, &BY_KINDS], firsts, query, now).await?);
            }
        }
        Entry::Kinds(kinds) => found = search(conn, &BY_KINDS, joined(kinds).into(), query, now).await?,
        Entry::Time if query.limit <= FEW => {
            found = newest(conn, [&BY_TIME, &ALL_TIMES], ["".into(), "".into()], query, now).await?;
        }
        Entry::Time => found = search(conn, &ALL_TIMES, "".into(), query, now).await?,
    }
    found.sort_unstable_by_key(|position| (Reverse(position.created_at), position.id));
    found.dedup_by_key(|position| position.n);
    found.truncate(usize::try_from(query.limit).unwrap_or(usize::MAX));
    Ok(found)
}

/// Result of a walk along an index. If the limit falls within a second, the walk may have met the wrong events of that
/// second, so the second is searched as a whole.
async fn newest(
    conn: &mut Conn,
    [walk, all]: [&Sql; 2],
    [one, list]: [Value; 2],
    query: &Query,
    now: i64,
) -> Result<Vec<EventPosition>, StoreError> {
    let mut found = search(conn, walk, one, query, now).await?;
    let full = found.len() as i64 >= query.limit;
    if let Some(last) = found.last().map(|position| position.created_at).filter(|_| full) {
        found.retain(|position| position.created_at > last);
        let limit = query.limit - found.len() as i64;
        let second = Query { since: Some(last), until: Some(last), limit, ..query.clone() };
        found.extend(search(conn, all, list, &second, now).await?);
    }
    Ok(found)
}

async fn search(
    conn: &mut Conn,
    sql: &Sql,
    first: Value,
    query: &Query,
    now: i64,
) -> Result<Vec<EventPosition>, StoreError> {
    let mut values = query.values(first, now);
    values.push(query.limit.into());
    conn.each(sql, &values, |row| position(&row)).await
}

fn position(row: &crate::Row) -> Result<EventPosition, StoreError> {
    Ok(EventPosition {
        n: row.int("n")?,
        id: fixed(row, "event_id")?,
        created_at: row.int("created_at")?,
        bytes: row.int("bytes")?,
    })
}

/// Number of matches, as far as counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    pub found: u64,
    /// Whether there are more.
    pub more: bool,
}

/// Number of distinct events that match any query, ignoring their limits, up to `most`. Several queries are counted by
/// the row numbers of their matches: at most twice `most` of these, and the positions of one query, are in memory.
pub async fn count(conn: &mut Conn, queries: &[Query], most: i64, now: i64) -> Result<Counted, StoreError> {
    if let [query] = queries {
        let found = count_one(conn, query, most.saturating_add(1), now).await?;
        return Ok(Counted { found: found.min(most).unsigned_abs(), more: found > most });
    }
    let (mut found, mut more) = (HashSet::new(), false);
    for query in queries {
        let query = Query { limit: most.saturating_add(1), ..query.clone() };
        let positions = positions(conn, &query, now).await?;
        found.extend(positions.into_iter().map(|position| position.n));
        more = found.len() as i64 > most;
        if more {
            break;
        }
    }
    Ok(Counted { found: (found.len() as u64).min(most.unsigned_abs()), more })
}

async fn count_one(conn: &mut Conn, query: &Query, most: i64, now: i64) -> Result<i64, StoreError> {
    if query.is_impossible() {
        return Ok(0);
    }
    let (sql, first): (&Sql, Value) = match query.entry() {
        Entry::Ids(ids) => (&COUNT_BY_IDS, hexadecimal_list(ids).into()),
        Entry::Tags(keys) => (&COUNT_BY_TAGS, joined(keys).into()),
        Entry::Authors(authors) => (&COUNT_BY_AUTHORS, hexadecimal_list(authors).into()),
        Entry::Kinds(kinds) => (&COUNT_BY_KINDS, joined(kinds).into()),
        Entry::Time => (&COUNT_BY_TIME, "".into()),
    };
    let mut values = query.values(first, now);
    values.push(most.into());
    conn.only(sql, &values).await?.int("found")
}

/// JSON of these rows; omits rows that were removed or hidden meanwhile.
pub async fn json_of(conn: &mut Conn, rows: &[i64]) -> Result<HashMap<i64, String>, StoreError> {
    let rows = conn.all(&JSON_OF, params![joined(rows)]).await?;
    rows.iter().map(|row| Ok((row.int("n")?, row.text("json")?))).collect()
}

/// How many of these positions, from the first, have no more than so many bytes of JSON together.
pub fn within(positions: &[EventPosition], bytes: i64) -> usize {
    let mut left = bytes;
    let fits = |position: &&EventPosition| {
        left = left.saturating_sub(position.bytes);
        left >= 0
    };
    positions.iter().take_while(fits).count()
}

/// The JSON of the first of these positions that have no more than so many bytes together, in their order. Only those are read.
pub async fn json_within(
    conn: &mut Conn,
    positions: &[EventPosition],
    bytes: i64,
) -> Result<Vec<(EventPosition, String)>, StoreError> {
    let positions = &positions[..within(positions, bytes)];
    if positions.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<i64> = positions.iter().map(|position| position.n).collect();
    let mut json = json_of(conn, &rows).await?;
    Ok(positions.iter().filter_map(|position| Some((*position, json.remove(&position.n)?))).collect())
}

/// Up to `limit` events that arrived after row `after`, in order of arrival.
pub async fn after(conn: &mut Conn, after: i64, limit: i64) -> Result<Vec<EventPosition>, StoreError> {
    conn.all(&AFTER, params![after, limit]).await?.iter().map(position).collect()
}

/// Which of these rows exist and are visible.
pub async fn among(conn: &mut Conn, rows: &[i64]) -> Result<Vec<EventPosition>, StoreError> {
    conn.all(&AMONG, params![joined(rows)]).await?.iter().map(position).collect()
}

/// The latest row; 0 if there is none.
pub async fn last(conn: &mut Conn) -> Result<i64, StoreError> {
    conn.only(&LAST, &[]).await?.int("n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_before_anything_is_read() {
        let position = |bytes| EventPosition { n: 0, id: [0; 32], created_at: 0, bytes };
        let positions = [300, 500, 200, 1].map(position);
        let counted = [0, 299, 300, 799, 800, 1000, 1001, i64::MAX].map(|bytes| within(&positions, bytes));
        assert_eq!(counted, [0, 0, 1, 1, 2, 3, 4, 4]);
        assert_eq!(within(&positions, -1), 0);
        assert_eq!(within(&[position(i64::MAX), position(i64::MAX)], i64::MAX), 1);
        assert_eq!(within(&[], 5), 0);
    }
}
