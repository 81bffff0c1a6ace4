//! Logging in, and what keeps strangers out: sessions, links, counts, second factors.

use crate::support::{World, joined, unit, user};
use abide_core::{Timestamp, UserId, UserName};
use abide_store::StoreError;
use abide_store::accounts::links::{self, NewLink, Purpose};
use abide_store::accounts::sessions::{self, NewSession};
use abide_store::accounts::{emails, totp, users};
use abide_store::throttles::{self, Limit};
use abide_testkit::{Engine, TestClock};
use rstest::rstest;
use std::collections::HashSet;
use std::time::Duration;

pub const MINUTE: Duration = Duration::from_secs(60);

fn name(text: &str) -> UserName {
    text.parse().unwrap()
}

pub fn session(user_id: UserId, byte: u8, ends: Timestamp) -> NewSession {
    NewSession {
        hash: [byte; 32].into(),
        user_id,
        ip: Some("192.0.2.1".into()),
        agent: "a browser".into(),
        expires_at: ends,
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_login_opens_until_it_ends_and_brings_its_user(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let store = &world.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let soon = TestClock::START.plus(MINUTE);
    let begin = |new: NewSession| unit!(store, new, |tx, new| sessions::insert(tx, new, 3).await);
    let open = async |byte: u8, now| sessions::open(&mut store.read().await.unwrap(), &[byte; 32], now).await.unwrap();
    begin(session(alice, 1, soon)).await.unwrap();
    begin(session(bob, 9, soon)).await.unwrap();

    let (found, who) = open(1, TestClock::START).await.unwrap();
    assert_eq!((who.id, who.email.as_deref()), (alice, Some("alice@example.org")));
    assert_eq!((found.hash.expose().as_slice(), found.agent.as_str()), ([1; 32].as_slice(), "a browser"));
    assert!(open(2, TestClock::START).await.is_none());
    assert!(open(1, soon).await.is_none(), "it has ended");

    // Used, it lives longer. What is noted late counts from when it happened, and does not undo what came after it.
    let touch = |seen, ip: &'static str| {
        unit!(store, (seen, ip), |tx, &(seen, ip)| sessions::touch(tx, &[1; 32], Some(ip), seen, MINUTE).await)
    };
    let later = TestClock::START.plus(MINUTE / 2);
    world.clock.advance(4 * MINUTE);
    touch(later, "::1").await.unwrap();
    touch(TestClock::START.plus(MINUTE / 4), "::2").await.unwrap();
    let (touched, _) = open(1, soon).await.unwrap();
    assert_eq!((touched.last_seen_at, touched.ip.as_deref()), (later, Some("::1")));
    assert!(open(1, later.plus(MINUTE)).await.is_none(), "a minute from its use, not from the note of it");

    // A suspended account has none.
    let suspend = |on: bool| unit!(store, (alice, on), |tx, &(id, on)| users::set_suspended(tx, id, on).await);
    suspend(true).await.unwrap();
    assert!(open(1, later).await.is_none());
    suspend(false).await.unwrap();

    let end = |user: UserId| unit!(store, user, |tx, &user| sessions::end(tx, user, &[1; 32]).await);
    assert!(!end(bob).await.unwrap(), "not his");
    assert!(end(alice).await.unwrap());
    assert!(open(1, later).await.is_none());
    touch(soon, "::1").await.unwrap();
    assert!(open(1, later).await.is_none(), "what has ended stays ended");
    let out = || unit!(store, (), |tx, ()| sessions::end_by_hash(tx, &[9; 32]).await);
    assert_eq!(out().await.unwrap(), Some(bob));
    assert_eq!(out().await.unwrap(), None);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_too_many_logins_the_one_unused_for_longest_ends(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let ends = TestClock::START.plus(MINUTE * 60);
    for (who, byte) in [(bob, 99), (alice, 1), (alice, 2), (alice, 3), (alice, 4)] {
        world.clock.advance(Duration::from_secs(1));
        let new = session(who, byte, ends);
        unit!(store, new, |tx, new| sessions::insert(tx, new, 3).await).await.unwrap();
    }
    let list = async |user| -> Vec<u8> {
        let all = sessions::of_user(&mut store.read().await.unwrap(), user, TestClock::START, 10).await.unwrap();
        all.iter().map(|session| session.hash.expose()[0]).collect()
    };
    assert_eq!(list(alice).await, [4, 3, 2]);
    assert_eq!(list(bob).await, [99]);

    let others = unit!(store, alice, |tx, &user| sessions::end_others(tx, user, &[3; 32]).await).await.unwrap();
    assert_eq!((others, list(alice).await), (2, vec![3]));
    assert_eq!(unit!(store, alice, |tx, &user| sessions::end_all(tx, user).await).await.unwrap(), 1);
    assert_eq!(list(bob).await, [99]);
    world.clock.set(ends);
    assert_eq!(unit!(store, (), |tx, ()| sessions::prune(tx).await).await.unwrap(), 1);
}

pub fn link(byte: u8, purpose: Purpose, user_id: Option<UserId>, email_id: Option<i64>) -> NewLink {
    let ends = TestClock::START.plus(MINUTE);
    NewLink { user_id, email_id, created_by: user_id, ..NewLink::new([byte; 32], purpose, ends) }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_good_once_for_its_purpose_and_for_a_while(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let alice = user(store, "alice").await;
    let add = |new: NewLink| unit!(store, new, |tx, new| links::insert(tx, new).await);
    let open = async |byte: u8, purpose, now| {
        links::open(&mut store.read().await.unwrap(), purpose, &[byte; 32], now).await.unwrap().is_some()
    };
    let use_up = |byte: u8, purpose: Purpose| {
        unit!(store, (byte, purpose), |tx, &(byte, purpose)| links::use_up(tx, purpose, &[byte; 32]).await)
    };
    add(link(1, Purpose::Reset, Some(alice), None)).await.unwrap();
    assert!(matches!(add(link(1, Purpose::Verify, None, None)).await, Err(StoreError::Unique)));
    let end = TestClock::START.plus(MINUTE);

    assert!(open(1, Purpose::Reset, TestClock::START).await);
    assert!(!open(1, Purpose::Verify, TestClock::START).await, "another purpose");
    assert!(!open(1, Purpose::Reset, end).await, "too late");
    assert!(!open(2, Purpose::Reset, TestClock::START).await);
    assert!(use_up(1, Purpose::Setup).await.unwrap().is_none());
    assert_eq!(use_up(1, Purpose::Reset).await.unwrap().unwrap().user_id, Some(alice));
    assert!(use_up(1, Purpose::Reset).await.unwrap().is_none(), "once");
    assert!(!open(1, Purpose::Reset, TestClock::START).await);

    // Taken back, one by one or together.
    let email = emails::list(&mut store.read().await.unwrap(), alice).await.unwrap()[0].id;
    add(link(3, Purpose::Setup, None, None)).await.unwrap();
    add(link(4, Purpose::Reset, Some(alice), None)).await.unwrap();
    add(link(5, Purpose::Verify, Some(alice), Some(email))).await.unwrap();
    unit!(store, (), |tx, ()| links::revoke_setup(tx).await).await.unwrap();
    assert!(!open(3, Purpose::Setup, TestClock::START).await);
    unit!(store, alice, |tx, &user| links::revoke_of_user(tx, user, Purpose::Reset).await).await.unwrap();
    assert!(!open(4, Purpose::Reset, TestClock::START).await);
    assert!(open(5, Purpose::Verify, TestClock::START).await);
    unit!(store, email, |tx, &email| links::revoke_of_email(tx, email, Purpose::Verify).await).await.unwrap();
    assert!(!open(5, Purpose::Verify, TestClock::START).await);

    let invited = NewLink { address: Some("x@example.org".into()), ..link(6, Purpose::Invite, Some(alice), None) };
    let id = add(invited).await.unwrap();
    let waiting = async || links::invites(&mut store.read().await.unwrap(), TestClock::START, 10).await.unwrap();
    let shown = waiting().await;
    assert_eq!((shown[0].id, shown[0].address.as_deref()), (id, Some("x@example.org")));
    assert_eq!(shown[0].created_by, Some(name("alice").into()));
    let count = async |now| links::count_invites(&mut store.read().await.unwrap(), now).await.unwrap();
    assert_eq!((count(TestClock::START).await, count(end).await), (1, 0));
    let revoke = |purpose: Purpose| unit!(store, (id, purpose), |tx, &(id, of)| links::revoke(tx, of, id).await);
    assert!(!revoke(Purpose::Setup).await.unwrap(), "another purpose");
    assert!(revoke(Purpose::Invite).await.unwrap());
    assert!(waiting().await.is_empty());

    add(link(7, Purpose::Reset, Some(alice), None)).await.unwrap();
    world.clock.set(end);
    unit!(store, (), |tx, ()| links::prune(tx).await).await.unwrap();
    assert_eq!(world.raw().await.number("SELECT count(*) FROM one_time_links").await, 0);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_use_a_link_at_once_one_gets_it(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let new = link(1, Purpose::Setup, None, None);
    unit!(world.store, new, |tx, new| links::insert(tx, new).await).await.unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let store = world.store.clone();
            tokio::spawn(async move {
                unit!(store, (), |tx, ()| links::use_up(tx, Purpose::Setup, &[1; 32]).await).await.unwrap().is_some()
            })
        })
        .collect();
    let mut winners = 0;
    for task in tasks {
        winners += usize::from(joined(task).await);
    }
    assert_eq!(winners, 1);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn tries_are_counted_in_a_window_and_together(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let limit = Limit { scope: "login", times: 3, window: MINUTE };
    let hit = async |identifier: &'static str| {
        unit!(world.store, (limit, identifier), |tx, &(limit, who)| throttles::hit(tx, limit, who).await).await.unwrap()
    };
    for _ in 0..3 {
        assert_eq!(hit("a").await, None);
    }
    world.clock.advance(MINUTE / 4);
    assert_eq!(hit("a").await, Some(MINUTE * 3 / 4), "until the window ends");
    assert_eq!(hit("b").await, None, "others are not concerned");
    let asked = || (limit, ["a", "b", "c"].map(str::to_owned));
    let look =
        async || unit!(world.store, asked(), |tx, (limit, who)| throttles::spent(tx, *limit, who).await).await.unwrap();
    assert_eq!(look().await, HashSet::from(["a".to_owned()]), "looking counts nothing");
    assert_eq!(look().await.len(), 1);

    // One that was rightful does not count; a success forgets everything.
    unit!(world.store, (), |tx, ()| throttles::clear(tx, "login", "a").await).await.unwrap();
    for _ in 0..5 {
        assert_eq!(hit("a").await, None);
        unit!(world.store, (), |tx, ()| throttles::forgive(tx, "login", "a").await).await.unwrap();
    }
    for _ in 0..3 {
        hit("a").await;
    }
    assert!(hit("a").await.is_some());
    world.clock.advance(MINUTE);
    assert_eq!(look().await, HashSet::new(), "the window is over");
    assert_eq!(hit("a").await, None, "a new window");

    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let store = world.store.clone();
            tokio::spawn(async move {
                unit!(store, limit, |tx, &limit| throttles::hit(tx, limit, "many").await).await.unwrap().is_none()
            })
        })
        .collect();
    let mut admitted = 0;
    for task in tasks {
        admitted += usize::from(joined(task).await);
    }
    assert_eq!(admitted, 3, "tries side by side are all counted");

    let before = world.clock.advance(MINUTE);
    assert_eq!(unit!(world.store, before, |tx, &before| throttles::prune(tx, before).await).await.unwrap(), 3);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_second_factor_is_begun_confirmed_used_forward_only_and_removed(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let alice = user(store, "alice").await;
    let begin = |byte: u8| unit!(store, (alice, byte), |tx, &(user, byte)| totp::begin(tx, user, &[byte]).await);
    let confirm = |step: i64| unit!(store, (alice, step), |tx, &(user, step)| totp::confirm(tx, user, step).await);
    let advance = |step: i64| unit!(store, (alice, step), |tx, &(user, step)| totp::advance(tx, user, step).await);
    let get = async || totp::get(&mut store.read().await.unwrap(), alice).await.unwrap();

    assert!(!confirm(1).await.unwrap(), "never begun");
    assert!(begin(1).await.unwrap());
    assert!(begin(2).await.unwrap(), "begun anew");
    assert!(confirm(10).await.unwrap());
    assert!(!begin(3).await.unwrap(), "what is on is not replaced");
    assert!(!confirm(11).await.unwrap());
    let on = get().await.unwrap();
    assert_eq!((on.secret.into_inner(), on.confirmed_at, on.last_step), (vec![2], Some(TestClock::START), 10));
    assert!(!advance(10).await.unwrap(), "used");
    assert!(advance(11).await.unwrap());
    assert!(!advance(10).await.unwrap(), "older");

    let codes = |hashes: Vec<[u8; 32]>| {
        unit!(store, (alice, hashes), |tx, (user, hashes)| totp::set_codes(tx, *user, hashes).await)
    };
    let use_code =
        |byte: u8| unit!(store, (alice, byte), |tx, &(user, byte)| totp::use_code(tx, user, &[byte; 32]).await);
    let left = async || totp::count_codes(&mut store.read().await.unwrap(), alice).await.unwrap();
    codes(vec![[1; 32], [2; 32]]).await.unwrap();
    assert!(use_code(1).await.unwrap());
    assert!(!use_code(1).await.unwrap(), "once");
    assert!(!use_code(3).await.unwrap());
    assert_eq!(left().await, 1);
    codes(vec![[3; 32]]).await.unwrap();
    assert!(!use_code(2).await.unwrap(), "replaced");

    let remove = || unit!(store, alice, |tx, &user| totp::remove(tx, user).await);
    assert!(remove().await.unwrap());
    assert!(!remove().await.unwrap());
    assert!(get().await.is_none() && left().await == 0);
}
