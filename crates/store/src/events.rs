//! The log of domain events. Consumers and feeds read it in the order of `seq`.

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::event::{Body, Kind, Publicity, SubjectKind, Unreadable};
use abide_core::{RepoId, Timestamp, UserId, feed};
use serde_json::Value as Json;

/// The columns of [`Numbered`].
macro_rules! columns {
    () => {
        "seq, id, actor_user_id, kind, repo_id, source_kind, source_id, public, payload, created_at"
    };
}

statements! {
    INSERT = "INSERT INTO domain_events
        (actor_user_id, kind, repo_id, source_kind, source_id, public, payload, created_at, told)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    /// Numbers committed rows in the order of their ids, behind $1.
    NUMBER = "UPDATE domain_events SET seq = $1 + fresh.ordinal
        FROM (SELECT id, row_number() OVER (ORDER BY id) AS ordinal
              FROM domain_events WHERE seq IS NULL ORDER BY id LIMIT $2) AS fresh
        WHERE domain_events.id = fresh.id";
    AFTER = concat!("SELECT ", columns!(), " FROM domain_events WHERE seq > $1 ORDER BY seq LIMIT $2");
    AT = concat!("SELECT ", columns!(), " FROM domain_events WHERE seq = $1");
    /// Old events that every consumer has passed and none has set aside.
    PRUNE = "DELETE FROM domain_events WHERE id IN (
        SELECT e.id FROM domain_events e
        WHERE e.seq <= (SELECT coalesce(min(cursor), 0) FROM event_consumers) AND e.created_at < $1
            AND NOT EXISTS (SELECT 1 FROM event_failures f WHERE f.seq = e.seq)
        ORDER BY e.seq LIMIT 2000)";
    /// Commits of a repository's pushes, as far as every consumer has read them.
    FORGET_COMMITS = "UPDATE domain_events SET payload = $2 WHERE repo_id = $1 AND kind = 'push'
        AND seq <= (SELECT coalesce(min(cursor), 0) FROM event_consumers)";
    COUNT_UNNUMBERED = "SELECT count(*) AS n FROM domain_events WHERE seq IS NULL";
}

/// An event to append.
#[derive(Debug, Clone)]
pub struct NewEvent {
    pub actor: Option<UserId>,
    pub repo: Option<RepoId>,
    pub subject_kind: SubjectKind,
    pub subject_id: i64,
    pub publicity: Publicity,
    /// Stored as JSON of less than [`MAX_PAYLOAD`] bytes.
    pub body: Body,
}

/// The largest payload that readers have to expect.
pub const MAX_PAYLOAD: usize = 4096;

/// Appends an event, in the transaction of the change. Use cases call `emit` in `abide-forge`, the only caller.
pub async fn append(tx: &mut Tx, event: &NewEvent) -> Result<(), StoreError> {
    let now = tx.now();
    let kind = event.body.payload.kind();
    let payload = fitted(&event.body.to_json());
    let in_feeds = feed::is_in_feeds(kind);
    let values = params![
        event.actor,
        kind.as_str(),
        event.repo,
        event.subject_kind.as_str(),
        event.subject_id,
        event.publicity.is_public(),
        payload,
        now,
        in_feeds
    ];
    tx.execute(&INSERT, values).await?;
    tx.wake_log();
    Ok(())
}

/// The payload as text, its longest parts cut as far as it takes: names that strangers choose may be long, and longer
/// still where they stand in addresses.
fn fitted(payload: &Json) -> String {
    let mut text = payload.to_string();
    let (mut cut, mut longest) = (payload.clone(), MAX_PAYLOAD / 4);
    while text.len() >= MAX_PAYLOAD && longest > 0 {
        shorten(&mut cut, longest);
        text = cut.to_string();
        longest /= 2;
    }
    text
}

fn shorten(value: &mut Json, longest: usize) {
    match value {
        Json::String(text) => text.truncate(text.floor_char_boundary(longest)),
        Json::Array(list) => {
            list.truncate(longest);
            list.iter_mut().for_each(|value| shorten(value, longest));
        }
        Json::Object(map) => map.values_mut().for_each(|value| shorten(value, longest)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// An event with its number in the log.
#[derive(Debug, Clone)]
pub struct Numbered {
    /// Number in the log, the cursor of consumers.
    pub seq: i64,
    pub id: i64,
    pub actor: Option<UserId>,
    /// As stored: a newer version may have written a kind that this one does not know.
    pub kind: String,
    /// `None` once the repository is removed.
    pub repo: Option<RepoId>,
    /// `None` for a kind of subject that this version does not know.
    pub subject_kind: Option<SubjectKind>,
    pub subject_id: i64,
    /// Whether everyone could see it when it happened. A hint: readers check again.
    pub public: bool,
    payload: String,
    pub created_at: Timestamp,
}

impl Numbered {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            seq: row.int("seq")?,
            id: row.int("id")?,
            actor: row.opt_int("actor_user_id")?.map(UserId::new),
            kind: row.text("kind")?,
            repo: row.opt_int("repo_id")?.map(RepoId::new),
            subject_kind: row.text("source_kind")?.parse().ok(),
            subject_id: row.int("source_id")?,
            public: row.bool("public")?,
            payload: row.text("payload")?,
            created_at: row.time("created_at")?,
        })
    }

    /// The kind; `None` if this version does not know it.
    pub fn known_kind(&self) -> Option<Kind> {
        self.kind.parse().ok()
    }

    /// Reads the payload.
    pub fn body(&self) -> Result<Body, Unreadable> {
        Body::parse(&self.kind, &self.payload)
    }
}

/// Events behind a cursor, in order.
pub async fn after(conn: &mut Conn, seq: i64, limit: i64) -> Result<Vec<Numbered>, StoreError> {
    conn.all(&AFTER, params![seq, limit]).await?.iter().map(Numbered::from_row).collect()
}

/// The event at a position.
pub async fn at(conn: &mut Conn, seq: i64) -> Result<Option<Numbered>, StoreError> {
    conn.one(&AT, params![seq]).await?.map(|row| Numbered::from_row(&row)).transpose()
}

/// Forgets some events from before an instant that no consumer needs any more; `false` once none are left.
pub async fn prune(tx: &mut Tx, before: Timestamp) -> Result<bool, StoreError> {
    Ok(tx.execute(&PRUNE, params![before]).await? > 0)
}

/// Removes refs, commits, messages and authors from the pushes of a repository that is removed permanently. Events that a
/// consumer has not read yet stay whole.
pub async fn forget_commits(tx: &mut Tx, repo: RepoId, slug: String) -> Result<(), StoreError> {
    let left = Body::forgotten_push(repo, slug).to_json().to_string();
    tx.execute(&FORGET_COMMITS, params![repo, left]).await.map(drop)
}

/// How many events the sequencer has not come to.
pub async fn count_unnumbered(conn: &mut Conn) -> Result<i64, StoreError> {
    conn.only(&COUNT_UNNUMBERED, &[]).await?.int("n")
}

/// Numbers up to `limit` events behind `seq`; returns how many.
pub(crate) async fn number(tx: &mut Tx, seq: i64, limit: i64) -> Result<u64, StoreError> {
    tx.execute(&NUMBER, params![seq, limit]).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide_core::PushId;
    use abide_core::event::{NameChange, Payload, Push, PushedRef, RepoThen, TopicsChanged};
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn only_what_does_not_fit_is_cut_and_the_longest_first() {
        let small = json!({ "slug": "a".repeat(3000), "refs": ["b"] });
        assert_eq!(fitted(&small), small.to_string());
        let large =
            json!({ "slug": "é".repeat(2000), "before": "1".repeat(40), "refs": [{ "name": "refs/heads/main" }] });
        let cut: Json = serde_json::from_str(&fitted(&large)).unwrap();
        assert_eq!(cut["slug"], "é".repeat(512));
        assert_eq!((&cut["before"], &cut["refs"]), (&large["before"], &large["refs"]));
    }

    #[test]
    fn a_body_that_was_cut_is_still_read() {
        let refs = (0..20).map(|n| PushedRef {
            name: format!("refs/heads/{n}"),
            before: "1".repeat(40),
            after: "2".repeat(40),
            commits: Vec::new(),
        });
        let push = Push { push_id: Some(PushId::new(5)), ref_count: Some(20), refs: Some(refs.collect()) };
        let bodies = [
            Payload::Push(push),
            Payload::RepoRenamed(NameChange { old_name: "o".repeat(3000), new_name: "n".repeat(3000) }),
            Payload::RepoTopicsChanged(TopicsChanged { topics: vec!["t".repeat(50); 200] }),
        ];
        for payload in bodies {
            let repo = RepoThen { repo_id: Some(RepoId::new(1)), slug: Some("s".repeat(4000)), owner_id: None };
            let kind = payload.kind();
            let stored = fitted(&Body { repo, payload }.to_json());
            assert!(stored.len() < MAX_PAYLOAD, "{kind}");
            let read = Body::parse(kind.as_str(), &stored).unwrap_or_else(|error| panic!("{kind}: {error}"));
            assert_eq!((read.payload.kind(), read.repo.repo_id), (kind, Some(RepoId::new(1))));
        }
    }

    fn payload() -> impl Strategy<Value = Json> {
        // Long by repeating: every character made up by itself would take most of the time of this crate's tests.
        let text = ("\\PC{0,40}", any::<char>(), 0_usize..3000)
            .prop_map(|(start, char, times)| Json::from(start + &char.to_string().repeat(times)));
        let leaf = prop_oneof![any::<i64>().prop_map(Json::from), text];
        let value = leaf.prop_recursive(3, 64, 16, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..16).prop_map(Json::from),
                prop::collection::btree_map("[a-z]{1,8}", inner, 0..6).prop_map(|map| json!(map)),
            ]
        });
        prop::collection::btree_map("[a-z]{1,8}", value, 0..6).prop_map(|map| json!(map))
    }

    proptest! {
        #[test]
        fn every_payload_fits_and_stays_json(payload in payload()) {
            let text = fitted(&payload);
            prop_assert!(text.len() < MAX_PAYLOAD, "{}", text.len());
            prop_assert!(serde_json::from_str::<Json>(&text).is_ok());
        }
    }
}
