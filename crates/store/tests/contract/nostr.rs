//! Signed events: kept once, replaced by newer ones, found as a naive filter over a list would find them.

use crate::support::{World, unit, user};
use abide_store::accounts::user_keys;
use abide_store::nostr::events::{Kept, NewEvent, deleted, tag_key};
use abide_store::nostr::query::Query;
use abide_store::nostr::relations::Link;
use abide_store::{Store, nostr};
use abide_testkit::Engine;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use rstest::rstest;
use std::cmp::Reverse;
use std::collections::HashSet;

fn event(id: u8, pubkey: u8, kind: u16, at: i64, slot: Option<&str>, tags: &[(char, &str)]) -> NewEvent {
    NewEvent {
        id: [id; 32],
        pubkey: [pubkey; 32],
        kind,
        created_at: at,
        slot: slot.map(str::to_owned),
        expires_at: None,
        json: format!("{{\"number\":{id},\"text\":\"\\u0000'\\\"\"}}"),
        tags: tags.iter().map(|(letter, value)| tag_key(*letter, value)).collect(),
        status_of: None,
    }
}

async fn insert(store: &Store, event: NewEvent) -> Kept {
    unit!(store, event, |tx, event| nostr::events::insert(tx, event).await).await.unwrap()
}

async fn insert_many(store: &Store, events: Vec<NewEvent>) -> Vec<Kept> {
    unit!(store, events, |tx, events| nostr::events::insert_many(tx, events).await).await.unwrap()
}

async fn hide(store: &Store, id: u8, hidden: bool) -> bool {
    unit!(store, (id, hidden), |tx, (id, hidden)| nostr::events::set_hidden(tx, &[*id; 32], *hidden).await)
        .await
        .unwrap()
}

async fn found(store: &Store, query: &Query) -> Vec<u8> {
    let mut conn = store.read().await.unwrap();
    nostr::query::positions(&mut conn, query, 1000).await.unwrap().iter().map(|position| position.id[0]).collect()
}

fn all() -> Query {
    Query { limit: 500, ..Query::default() }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_kept_once_and_as_it_was_sent(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let World { store, .. } = &World::new(engine).await;
    let first = event(1, 1, 1621, 5, None, &[('a', "x")]);
    assert_eq!(insert(store, first.clone()).await, Kept::New);
    assert_eq!(insert(store, first.clone()).await, Kept::Duplicate);
    let second = event(2, 1, 1621, 6, None, &[]);
    let profile = event(3, 1, 0, 6, Some(""), &[]);
    let many = vec![first.clone(), second.clone(), second, profile.clone(), profile];
    let kept = insert_many(store, many).await;
    assert_eq!(kept, [Kept::Duplicate, Kept::New, Kept::Duplicate, Kept::New, Kept::Duplicate]);

    let mut conn = store.read().await.unwrap();
    let kept = nostr::events::by_id(&mut conn, &[1; 32]).await.unwrap().unwrap();
    assert_eq!((kept.kind, kept.created_at, kept.hidden, kept.json), (1621, 5, false, first.json));
    assert_eq!(found(store, &all()).await, [2, 3, 1]);
    let tagged = Query { tags: vec![vec![tag_key('a', "x")]], ..all() };
    assert_eq!(found(store, &tagged).await, [1]);
    let known = nostr::events::known(&mut conn, &[[1; 32], [9; 32]]).await.unwrap();
    assert_eq!(known, HashSet::from([[1; 32]]));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_holds_the_newest_and_in_one_second_the_lowest_id(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values("repo", "", "a\0b", "\u{1}", "\u{1F600}", &"long".repeat(3000))] slot: &str,
) {
    let World { store, .. } = &World::new(engine).await;
    let version = |id, at| event(id, 1, 30_617, at, Some(slot), &[('d', slot)]);
    assert_eq!(insert(store, version(5, 10)).await, Kept::New);
    assert_eq!(insert(store, version(4, 9)).await, Kept::Older);
    assert_eq!(insert(store, version(6, 10)).await, Kept::Older, "the lowest id stays");
    assert_eq!(insert_many(store, vec![version(3, 10)]).await, [Kept::New]);
    let other = event(7, 2, 30_617, 1, Some(slot), &[]);
    assert_eq!(insert(store, other).await, Kept::New, "another author's");

    let mut conn = store.read().await.unwrap();
    assert_eq!(nostr::events::in_slot(&mut conn, 30_617, &[1; 32], slot).await.unwrap().unwrap().id, [3; 32]);
    let of_all = nostr::events::of_slot(&mut conn, 30_617, slot, 10, i64::MAX).await.unwrap();
    assert_eq!(of_all.iter().map(|found| found.id[0]).collect::<Vec<_>>(), [3, 7]);
    let by_tag = Query { tags: vec![vec![tag_key('d', slot)]], ..all() };
    assert_eq!(found(store, &by_tag).await, [3], "the tags of those that were replaced are gone");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_many_that_write_a_slot_at_once_the_winner_holds_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let World { store, .. } = &World::new(engine).await;
    let writes = (1..=24).map(|id| insert(store, event(id, 1, 30_617, i64::from(id % 6), Some("x"), &[('d', "x")])));
    futures_util::future::join_all(writes).await;
    assert_eq!(found(store, &all()).await, [5], "the latest second is 5, and 5 its lowest id");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_hidden_is_kept_and_not_found(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let World { store, .. } = &World::new(engine).await;
    insert(store, event(5, 1, 30_617, 10, Some("x"), &[('d', "x")])).await;
    assert!(hide(store, 5, true).await);
    assert!(!hide(store, 5, true).await, "it is hidden already");
    assert_eq!(found(store, &all()).await, [0; 0]);
    assert_eq!(insert(store, event(5, 1, 30_617, 10, Some("x"), &[])).await, Kept::Duplicate);
    assert_eq!(insert(store, event(6, 1, 30_617, 11, Some("x"), &[])).await, Kept::New);

    let mut conn = store.read().await.unwrap();
    let holder = nostr::events::in_slot(&mut conn, 30_617, &[1; 32], "x").await.unwrap().unwrap();
    assert!(holder.hidden, "a newer one in a hidden slot is hidden too");
    assert!(hide(store, 6, false).await);
    assert_eq!(found(store, &all()).await, [6]);
    assert!(
        unit!(store, (), |tx, ()| nostr::events::remove(tx, &[6; 32]).await).await.unwrap()
            && !unit!(store, (), |tx, ()| nostr::events::remove(tx, &[6; 32]).await).await.unwrap()
    );
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_has_expired_is_not_found_and_then_goes(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let World { store, .. } = &World::new(engine).await;
    for (id, expires_at) in [(1, Some(999)), (2, Some(1000)), (3, Some(1001)), (4, None)] {
        insert(store, NewEvent { expires_at, ..event(id, 1, 1, 1, None, &[('t', "x")]) }).await;
    }
    assert_eq!(found(store, &all()).await, [3, 4]);
    let expire = || unit!(store, (), |tx, ()| nostr::events::expire(tx, 1000, 1).await);
    assert_eq!((expire().await.unwrap().0, expire().await.unwrap().0, expire().await.unwrap().0), (1, 1, 0));
    assert_eq!(found(store, &all()).await, [3, 4]);

    let pr_event = NewEvent { expires_at: Some(999), ..event(5, 1, 1618, 1, None, &[]) };
    insert(store, pr_event.clone()).await;
    insert(store, NewEvent { expires_at: Some(999), ..event(6, 1, 30_617, 1, Some("x"), &[]) }).await;
    assert_eq!(expire().await.unwrap(), (1, vec![pr_event.json]));
    assert_eq!(expire().await.unwrap(), (0, Vec::new()), "repositories hang on announcements");
    assert_eq!(found(store, &all()).await, [3, 4]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_latest_deletion_counts(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let World { store, .. } = &World::new(engine).await;
    let long = format!("a:30617:{}:{}\0", "ab".repeat(32), "x".repeat(5000));
    for (target, at) in [("e:aa".to_owned(), 5), ("e:aa".to_owned(), 7), ("e:aa".to_owned(), 6), (long.clone(), 1)] {
        let noted =
            unit!(store, (target, at), |tx, (target, at)| deleted::note(tx, &[1; 32], target, *at, &[9; 32]).await);
        noted.await.unwrap();
    }
    let mut conn = store.read().await.unwrap();
    assert_eq!(deleted::at(&mut conn, &[1; 32], "e:aa").await.unwrap(), Some(7));
    assert_eq!(deleted::at(&mut conn, &[2; 32], "e:aa").await.unwrap(), None, "another author's word does not count");
    let asked = [([1; 32], "e:bb".to_owned()), ([1; 32], "e:aa".to_owned()), ([2; 32], long.clone()), ([1; 32], long)];
    let found = deleted::at_many(&mut conn, &asked).await.unwrap();
    assert_eq!(found, [(1, 7), (3, 1)].into());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn relations_are_to_what_is_served_and_count_their_steps(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let World { store, .. } = &World::new(engine).await;
    insert(store, event(1, 1, 30_617, 1, Some("x"), &[('e', "tagged"), ('a', "coordinate")])).await;
    insert(store, event(2, 2, 1621, 1, None, &[('q', "by an issue")])).await;
    insert(store, event(3, 3, 1111, 1, None, &[('e', "by a comment")])).await;
    insert(store, event(6, 3, 1, 1, None, &[('e', "by a reply")])).await;
    unit!(store, (), |tx, _unit| nostr::relations::note_steps(tx, &[6; 32], 2).await).await.unwrap();
    insert(store, event(7, 7, 0, 1, Some(""), &[('e', "by a profile")])).await;
    insert(store, event(8, 8, 5, 1, None, &[('e', "by a deletion")])).await;
    insert(store, event(9, 9, 30_023, 1, Some("z"), &[])).await;
    insert(store, event(4, 4, 30_617, 1, Some("y"), &[('e', "by a hidden one")])).await;
    hide(store, 4, true).await;
    let fifth = user(store, "fifth").await;
    unit!(store, fifth, |tx, user| user_keys::set(tx, *user, Some("npub of 5")).await).await.unwrap();

    let mut conn = store.read().await.unwrap();
    let ids = [1, 2, 3, 4, 5, 6, 7, 8].map(|id| [id; 32]);
    let link = |steps, is_repo| Link { steps, is_repo };
    let found = nostr::relations::events(&mut conn, &ids).await.unwrap();
    let expected =
        [([1; 32], link(0, true)), ([2; 32], link(0, false)), ([3; 32], link(1, false)), ([6; 32], link(2, false))];
    assert_eq!(found, expected.into());
    let address = |(kind, author, name): (u16, u8, &str)| (kind, [author; 32], name.to_owned());
    let asked = [(30_617, 1, "x"), (30_617, 1, "y"), (30_617, 2, "x"), (30_617, 4, "y"), (30_023, 9, "z"), (0, 7, "")];
    let served = nostr::relations::addresses(&mut conn, &asked.map(address)).await.unwrap();
    assert_eq!(served, [(address(asked[0]), link(0, true)), (address(asked[4]), link(1, false))].into());
    let keys = [('e', "tagged"), ('a', "coordinate"), ('q', "by an issue"), ('e', "by a comment"), ('e', "by a reply")];
    let none = [('E', "tagged"), ('e', "by a hidden one"), ('e', "by a profile"), ('e', "by a deletion")];
    let keys: Vec<i64> = keys.iter().chain(&none).map(|(letter, value)| tag_key(*letter, value)).collect();
    let tagged = nostr::relations::tagged(&mut conn, &keys).await.unwrap();
    assert_eq!(tagged, keys.iter().copied().zip([0, 0, 0, 1, 2]).collect());
    assert_eq!(nostr::relations::far(&mut conn, &[3; 32]).await.unwrap(), 1);
    assert_eq!(nostr::relations::far(&mut conn, &[1; 32]).await.unwrap(), 0);
    let keys = [1, 2, 3, 4, 5, 6].map(|key| ([key; 32], format!("npub of {key}")));
    let authors = nostr::relations::authors(&mut conn, &keys).await.unwrap();
    assert_eq!(authors, HashSet::from([[1; 32], [2; 32], [3; 32], [5; 32]]), "the fifth has an account");
}

const KINDS: [u16; 4] = [1, 1111, 1621, 30_617];
const LETTERS: [char; 3] = ['a', 'e', 'E'];
const VALUES: [&str; 4] = ["x", "y", "z", ""];

/// An event as a test draws it: author, kind, time, slot, tags, whether it is hidden, when it expires.
type Drawn = (u8, u16, i64, Vec<(char, &'static str)>, bool, Option<i64>);

fn drawn() -> impl Strategy<Value = Drawn> {
    let tags = vec((select(&LETTERS[..]), select(&VALUES[..])), 0..4);
    (0..4_u8, select(&KINDS[..]), 0..6_i64, tags, prop::bool::weighted(0.1), of(select(&[999_i64, 1001][..])))
}

/// Enough values that each way into the tables is taken: one by one, as a list, by time.
fn asked() -> impl Strategy<Value = Query> {
    let some = |range| vec(0..4_u8, range);
    let bytes = |list: Vec<u8>| list.into_iter().map(|byte| [byte; 32]).collect::<Vec<_>>();
    let padded = move |list: Option<Vec<u8>>, long: bool| {
        list.map(|list| {
            let more = if long { 100..120 } else { 0..0 };
            bytes(list).into_iter().chain(more.map(|byte| [byte; 32])).collect::<Vec<_>>()
        })
    };
    let tags = vec((select(&LETTERS[..]), vec(select(&VALUES[..]), 0..3)), 0..3);
    let kinds = vec(select(&KINDS[..]), 0..3);
    let ids = vec(0..40_u8, 0..6);
    let limit = prop_oneof![Just(500_i64), Just(501), 0..6_i64];
    (of(ids), of(some(0..3)), of(kinds), tags, of(0..6_i64), of(0..6_i64), limit, any::<bool>()).prop_map(
        move |(ids, authors, kinds, tags, since, until, limit, long)| {
            let key = |(letter, values): (char, Vec<&str>)| {
                let more = if long { (0..20).map(|n| tag_key(letter, &format!("more {n}"))).collect() } else { vec![] };
                values.into_iter().map(|value| tag_key(letter, value)).chain(more).collect()
            };
            let more = if long { 100..170_u16 } else { 0..0 };
            Query {
                ids: ids.map(bytes),
                authors: padded(authors, long),
                kinds: kinds.map(|kinds| kinds.into_iter().chain(more).collect()),
                tags: tags.into_iter().map(key).collect(),
                since,
                until,
                limit,
            }
        },
    )
}

fn matches(query: &Query, event: &NewEvent) -> bool {
    query.ids.as_ref().is_none_or(|ids| ids.contains(&event.id))
        && query.authors.as_ref().is_none_or(|authors| authors.contains(&event.pubkey))
        && query.kinds.as_ref().is_none_or(|kinds| kinds.contains(&event.kind))
        && query.tags.iter().all(|keys| keys.iter().any(|key| event.tags.contains(key)))
        && query.since.is_none_or(|since| event.created_at >= since)
        && query.until.is_none_or(|until| event.created_at <= until)
        && event.expires_at.is_none_or(|at| at > 1000)
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_store_finds_what_a_naive_filter_finds(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let World { store, .. } = &World::new(engine).await;
    let mut runner = TestRunner::default();
    let mut served = Vec::new();
    for id in 0..40_u8 {
        let (author, kind, at, mut tags, hidden, expires_at) = drawn().new_tree(&mut runner).unwrap().current();
        tags.sort_unstable();
        tags.dedup();
        let slot = (kind == 30_617).then(|| format!("slot {id}"));
        let event = NewEvent { expires_at, ..event(id, author, kind, at, slot.as_deref(), &tags) };
        assert_eq!(insert_many(store, vec![event.clone()]).await, [Kept::New]);
        if hidden {
            hide(store, id, true).await;
        } else {
            served.push(event);
        }
    }
    served.sort_unstable_by_key(|event| (Reverse(event.created_at), event.id));
    let cases = runner.config().cases;
    for _ in 0..cases {
        let query = asked().new_tree(&mut runner).unwrap().current();
        let naive: Vec<u8> = served.iter().filter(|event| matches(&query, event)).map(|event| event.id[0]).collect();
        let limited = &naive[..naive.len().min(usize::try_from(query.limit).unwrap())];
        assert_eq!(found(store, &query).await, limited, "{query:?}");
        let other = asked().new_tree(&mut runner).unwrap().current();
        let either = served.iter().filter(|event| matches(&query, event) || matches(&other, event)).count();
        let counted = async |queries: &[Query], most| {
            let mut conn = store.read().await.unwrap();
            let counted = nostr::query::count(&mut conn, queries, most, 1000).await.unwrap();
            (counted.found, counted.more)
        };
        let all = naive.len() as u64;
        assert_eq!(counted(std::slice::from_ref(&query), 1_000_000).await, (all, false), "{query:?}");
        assert_eq!(counted(std::slice::from_ref(&query), 3).await, (all.min(3), all > 3), "{query:?}");
        let both = [query, other];
        assert_eq!(counted(&both, 1_000_000).await, (either as u64, false));
        assert_eq!(counted(&both, 3).await, ((either as u64).min(3), either > 3), "the limit is that of all together");
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn newcomers_are_read_in_the_order_they_arrived(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let World { store, .. } = &World::new(engine).await;
    insert(store, event(9, 1, 1, 9, None, &[])).await;
    let mut conn = store.read().await.unwrap();
    let start = nostr::query::last(&mut conn).await.unwrap();
    insert_many(store, vec![event(1, 1, 1, 9, None, &[])]).await;
    insert(store, event(2, 1, 1, 1, None, &[])).await;
    let positions = nostr::query::after(&mut conn, start, 10).await.unwrap();
    assert_eq!(positions.iter().map(|position| position.id[0]).collect::<Vec<_>>(), [1, 2]);
    let texts = nostr::query::json_of(&mut conn, &[positions[1].n, i64::MAX]).await.unwrap();
    let text = &texts[&positions[1].n];
    assert_eq!((texts.len(), text.len() as i64), (1, positions[1].bytes));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_a_thread_with_large_comments_the_newest_mebibyte_is_read(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    const LARGE: usize = 255 << 10;
    let World { store, .. } = &World::new(engine).await;
    for page in 0..10_u8 {
        let comment = |n: u8| {
            let id = page * 20 + n;
            let said = event(id, 1, 1111, i64::from(id), None, &[('E', "thread")]);
            NewEvent { json: format!("{id:03}{}", "x".repeat(LARGE - 3)), ..said }
        };
        insert_many(store, (0..20).map(comment).collect()).await;
    }
    let mut conn = store.read().await.unwrap();
    let query = Query { kinds: Some(vec![1111]), tags: vec![vec![tag_key('E', "thread")]], ..all() };
    let positions = nostr::query::positions(&mut conn, &query, 1000).await.unwrap();
    assert_eq!(positions.len(), 200);
    let read = nostr::query::json_within(&mut conn, &positions, 1 << 20).await.unwrap();
    let texts: Vec<&str> = read.iter().map(|(_, json)| &json[..3]).collect();
    assert_eq!(texts, ["199", "198", "197", "196"], "the newest first");
    assert!(read.iter().map(|(_, json)| json.len()).sum::<usize>() <= 1 << 20);
    assert!(nostr::query::json_within(&mut conn, &positions, 100).await.unwrap().is_empty());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn how_far_a_thread_is_comes_from_columns(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let World { store, .. } = &World::new(engine).await;
    let status = |id, author, kind, at, root: u8| NewEvent {
        status_of: Some([root; 32]),
        ..event(id, author, kind, at, None, &[('e', "x")])
    };
    insert(store, status(1, 1, 1630, 10, 9)).await;
    let forgotten = NewEvent { expires_at: Some(500), ..status(6, 2, 1632, 60, 9) };
    let many = vec![
        status(2, 1, 1632, 20, 9),
        // Of one second the lowest id holds.
        status(4, 1, 1631, 30, 9),
        status(3, 1, 1633, 30, 9),
        status(5, 2, 1632, 40, 9),
        forgotten,
        status(7, 2, 1632, 50, 9),
        status(8, 3, 1632, 99, 8),
        event(20, 1, 1621, 99, None, &[('e', "x")]),
    ];
    insert_many(store, many).await;
    assert!(hide(store, 7, true).await);

    let mut conn = store.read().await.unwrap();
    let mut words = async |pairs: &[(u8, u8)], but: &[i64], each| -> Vec<(u8, u8, u16)> {
        let pairs: Vec<_> = pairs.iter().map(|(root, author)| ([*root; 32], [*author; 32])).collect();
        let found = nostr::statuses::newest(&mut conn, &pairs, but, each, 1000).await.unwrap();
        let mut found: Vec<_> = found.iter().map(|word| (word.root[0], word.id[0], word.kind)).collect();
        found.sort_unstable();
        found
    };
    assert_eq!(words(&[(9, 1)], &[], 1).await, [(9, 3, 1633)]);
    assert_eq!(
        words(&[(9, 1), (9, 2), (9, 3), (8, 3), (7, 1)], &[], 1).await,
        [(8, 8, 1632), (9, 3, 1633), (9, 5, 1632)]
    );
    assert_eq!(words(&[(9, 1)], &[], 3).await, [(9, 2, 1632), (9, 3, 1633), (9, 4, 1631)]);
    assert_eq!(words(&[], &[], 1).await, []);
    let all_of_one = found(store, &Query { authors: Some(vec![[1; 32]]), ..all() }).await;
    assert_eq!(all_of_one.len(), 5);
    let rows = nostr::query::positions(&mut store.read().await.unwrap(), &all(), 1000).await.unwrap();
    let but: Vec<i64> =
        rows.iter().filter(|position| [3, 4].contains(&position.id[0])).map(|position| position.n).collect();
    assert_eq!(words(&[(9, 1)], &but, 1).await, [(9, 2, 1632)], "those that just came are passed over");
}
