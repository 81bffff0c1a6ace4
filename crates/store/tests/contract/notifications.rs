//! Notifications: once per event, listed as counted, mailed when the window allows.

use crate::support::{World, repo, run, sql, unit, user};
use abide_core::notify::{Hearing, Reason, State, Subject};
use abide_core::{RepoId, ThreadId, Timestamp, UserId, WatchLevel};
use abide_store::attention::inbox::{self, Filter};
use abide_store::attention::lists::{Part, SortKey};
use abide_store::attention::notifications::{self, About, News};
use abide_store::attention::{notification_mail, watches};
use abide_store::repos::{Page, Viewer};
use abide_store::{Sql, Store, StoreError, issues};
use abide_testkit::Engine;
use rstest::rstest;
use std::time::Duration;

const ALL: Page = Page { limit: 1000, offset: 0 };
const WINDOW: Duration = Duration::from_secs(600);
const HIDE: Sql = sql("UPDATE repos SET visibility = $2 WHERE id = $1");
const DELETE: Sql = sql("UPDATE repos SET deleted_at = $2 WHERE id = $1");
const VERIFY: Sql = sql("UPDATE emails SET verified_at = $2 WHERE user_id = $1");

fn viewer(user: UserId) -> Viewer {
    Viewer { user: Some(user), reads_everything: false }
}

async fn thread(store: &Store, repo: RepoId) -> ThreadId {
    let about = About { repo, subject: Subject::Repo, subject_id: repo.get() };
    unit!(store, about, |tx, about| notifications::thread(tx, about).await).await.unwrap()
}

fn news(thread: ThreadId, seq: i64) -> News {
    News { thread, title: format!("news {seq}"), seq, private: false, window: WINDOW }
}

async fn notify(store: &Store, news: News, reason: Reason, people: &[UserId]) -> u64 {
    let unit = (news, people.to_vec());
    unit!(store, unit, |tx, (news, people)| notifications::notify(tx, news, reason, true, people).await).await.unwrap()
}

/// Titles of someone's inbox, which have to be as many as are counted.
async fn titles(store: &Store, user: UserId, filter: Filter) -> Vec<String> {
    let mut conn = store.read().await.unwrap();
    let items = inbox::list(&mut conn, viewer(user), filter, ALL.into()).await.unwrap();
    let counted = inbox::count(&mut conn, viewer(user), filter).await.unwrap();
    assert_eq!(items.len() as i64, counted);
    if filter == Filter::default() {
        assert_eq!(inbox::count_some(&mut conn, viewer(user), 1000).await.unwrap(), counted);
        let waiting = inbox::waiting(&mut conn, viewer(user), 1000).await.unwrap();
        assert_eq!(waiting.iter().map(|waiting| waiting.count).sum::<i64>(), counted);
    }
    items.into_iter().map(|item| item.title).collect()
}

async fn due(store: &Store) -> Vec<(UserId, i64)> {
    let due: Result<Vec<_>, StoreError> = unit!(store, (), |tx, _| {
        let all = notification_mail::due(tx, 100).await?;
        for mail in &all {
            notification_mail::sent(tx, mail).await?;
        }
        Ok(all.into_iter().map(|mail| (mail.user, mail.events)).collect())
    })
    .await;
    due.unwrap()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_event_tells_everyone_once_and_a_thread_is_one_row(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let World { store, .. } = &World::new(engine).await;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let id = repo(store, alice, "tool").await;
    let thread = thread(store, id).await;
    assert_eq!(thread, self::thread(store, id).await, "one thread for one thing");

    assert_eq!(notify(store, news(thread, 5), Reason::Mention, &[alice, bob]).await, 2);
    assert_eq!(notify(store, news(thread, 5), Reason::Watching, &[alice, bob]).await, 0, "they know");
    assert_eq!(notify(store, news(thread, 4), Reason::Watching, &[alice, bob]).await, 0, "they know more");
    assert_eq!(titles(store, bob, Filter::default()).await, ["news 5"]);
    assert_eq!(notify(store, news(thread, 6), Reason::Watching, &[bob]).await, 1);
    assert_eq!(titles(store, bob, Filter::default()).await, ["news 6"]);
    assert_eq!(titles(store, alice, Filter::default()).await, ["news 5"]);
    assert_eq!(due(store).await, [(alice, 1), (bob, 2)]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_shows_what_its_owner_may_read_and_asked_for(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let World { store, clock, .. } = &World::new(engine).await;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let mut repos = Vec::new();
    let start = abide_core::Clock::now(clock);
    for (seq, name) in (1..).zip(["one", "two", "three"]) {
        let id = repo(store, alice, name).await;
        clock.advance(Duration::from_secs(60));
        let reason = if seq == 2 { Reason::Watching } else { Reason::Mention };
        notify(store, news(thread(store, id).await, seq), reason, &[bob]).await;
        repos.push(id);
    }
    let unread = Filter::default();
    let all = Filter { all: true, ..unread };
    assert_eq!(titles(store, bob, unread).await, ["news 3", "news 2", "news 1"]);
    assert_eq!(titles(store, alice, all).await, [""; 0]);
    assert_eq!(titles(store, bob, Filter { taking_part: true, ..unread }).await, ["news 3", "news 1"]);
    assert_eq!(titles(store, bob, Filter { repo: Some(repos[1]), ..unread }).await, ["news 2"]);
    let minute = |n: u64| Some(start.plus(Duration::from_secs(60 * n)));
    assert_eq!(titles(store, bob, Filter { since: minute(1), ..unread }).await, ["news 3", "news 2"]);
    assert_eq!(titles(store, bob, Filter { before: minute(2), ..unread }).await, ["news 1"]);

    // Page by page, from the place where the last one ended.
    let mut conn = store.read().await.unwrap();
    let first = inbox::list(&mut conn, viewer(bob), unread, Part::behind(SortKey::TOP, 2)).await.unwrap();
    let rest = inbox::list(&mut conn, viewer(bob), unread, Part::behind(first[1].sort_key(), 2)).await.unwrap();
    assert_eq!(rest.iter().map(|item| item.title.as_str()).collect::<Vec<_>>(), ["news 1"]);
    drop(conn);

    let threads: Vec<_> = first.iter().chain(&rest).map(|item| item.thread).collect();
    let far = Timestamp::from_micros(i64::MAX);
    let mark = async |thread, state, seen| {
        let unit = (thread, state, seen);
        unit!(store, unit, |tx, &(thread, state, seen)| inbox::set_state(tx, bob, thread, state, seen).await)
            .await
            .unwrap()
    };
    assert!(!mark(threads[0], State::Read, start).await, "it was told after that");
    assert!(mark(threads[0], State::Read, far).await);
    assert!(!mark(threads[0], State::Read, far).await, "it is read");
    assert!(mark(threads[1], State::Done, far).await);
    assert_eq!(titles(store, bob, unread).await, ["news 1"]);
    assert_eq!(titles(store, bob, all).await, ["news 3", "news 1"]);
    clock.advance(Duration::from_secs(60));
    notify(store, news(threads[1], 9), Reason::Watching, &[bob]).await;
    assert_eq!(titles(store, bob, all).await, ["news 9", "news 3", "news 1"], "what is done comes back");

    run(store, HIDE, vec![repos[0].into(), "private".into()]).await.unwrap();
    run(store, DELETE, vec![repos[2].into(), 1_i64.into()]).await.unwrap();
    assert_eq!(titles(store, bob, all).await, ["news 9"]);
    assert!(inbox::one(&mut store.read().await.unwrap(), viewer(bob), threads[2], false).await.unwrap().is_none());
    run(store, HIDE, vec![repos[0].into(), "public".into()]).await.unwrap();
    assert_eq!(titles(store, bob, all).await, ["news 9", "news 1"]);

    let until = start.plus(Duration::from_secs(60));
    let read = unit!(store, until, |tx, &until| inbox::read_all(tx, bob, None, until, false).await).await.unwrap();
    assert_eq!(read, 1, "the others came later");
    let unit = (far, repos[0]);
    let read =
        unit!(store, unit, |tx, &(far, repo)| inbox::read_all(tx, bob, Some(repo), far, false).await).await.unwrap();
    assert_eq!(read, 0, "it is read");
    assert_eq!(titles(store, bob, unread).await, ["news 9"]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_happened_in_private_stays_there_when_the_repository_becomes_public(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let World { store, .. } = &World::new(engine).await;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let id = repo(store, alice, "tool").await;
    let thread = thread(store, id).await;
    notify(store, News { private: true, ..news(thread, 1) }, Reason::Watching, &[alice, bob]).await;
    assert_eq!(titles(store, bob, Filter::default()).await, [""; 0], "bob has no role there any more");
    assert_eq!(titles(store, alice, Filter::default()).await, ["news 1"]);
    notify(store, news(thread, 2), Reason::Watching, &[alice, bob]).await;
    assert_eq!(titles(store, bob, Filter::default()).await, ["news 2"]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn one_mail_goes_in_a_window_and_the_last_word_is_never_lost(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let World { store, clock, .. } = &World::new(engine).await;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    run(store, VERIFY, vec![bob.into(), 1_i64.into()]).await.unwrap();
    let thread = thread(store, repo(store, alice, "tool").await).await;
    notify(store, news(thread, 1), Reason::Watching, &[bob]).await;
    assert_eq!(due(store).await, [(bob, 1)], "the first at once");
    for seq in 2..5 {
        clock.advance(Duration::from_secs(60));
        notify(store, news(thread, seq), Reason::Watching, &[bob]).await;
        assert_eq!(due(store).await, [], "the window is open");
    }
    clock.advance(Duration::from_secs(420));
    assert_eq!(due(store).await, [(bob, 3)], "when it ends, one mail tells of three");
    assert_eq!(due(store).await, []);
    clock.advance(Duration::from_secs(600));
    assert_eq!(due(store).await, [], "nothing has happened since");
    notify(store, news(thread, 5), Reason::Watching, &[bob]).await;
    assert_eq!(due(store).await, [(bob, 1)], "at once again");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn mail_goes_to_verified_addresses_and_only_for_reasons_that_are_wanted(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let World { store, .. } = &World::new(engine).await;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    run(store, VERIFY, vec![bob.into(), 1_i64.into()]).await.unwrap();
    let thread = thread(store, repo(store, alice, "tool").await).await;
    let of = async |user| {
        notification_mail::of(&mut store.read().await.unwrap(), user, thread).await.unwrap().expect("told")
    };
    notify(store, news(thread, 1), Reason::Mention, &[alice, bob]).await;
    assert_eq!((of(alice).await.address, of(bob).await.address.as_deref()), (None, Some("bob@example.org")));
    let want = async |reason, wanted| {
        let unit = (reason, wanted);
        unit!(store, unit, |tx, &(reason, wanted)| notification_mail::set_wanted(tx, bob, reason, wanted).await)
            .await
            .unwrap()
    };
    assert!(of(bob).await.wanted && !want(Reason::Mention, true).await);
    assert!(want(Reason::Mention, false).await && !want(Reason::Mention, false).await);
    assert!(!of(bob).await.wanted);
    let out = notification_mail::opted_out(&mut store.read().await.unwrap(), bob).await.unwrap();
    assert_eq!(out, [Reason::Mention]);
    assert!(want(Reason::Mention, true).await && of(bob).await.wanted);
    let addresses = notification_mail::addresses(&mut store.read().await.unwrap(), &[alice, bob]).await.unwrap();
    assert_eq!(addresses, [(bob, "bob@example.org".to_owned())]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_crowd_is_gone_through_in_pages_with_what_each_has_said(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let World { store, .. } = &World::new(engine).await;
    let alice = user(store, "alice").await;
    let id = repo(store, alice, "tool").await;
    let mut people = Vec::new();
    for n in 0..7 {
        people.push(user(store, &format!("user{n}")).await);
    }
    let (issue, _) = unit!(store, (), |tx, _| issues::insert(tx, id, alice, "title", "").await).await.unwrap();
    let about = About { repo: id, subject: Subject::Issue, subject_id: issue.get() };
    let thread = unit!(store, about, |tx, about| notifications::thread(tx, about).await).await.unwrap();
    let written: Result<(), StoreError> = unit!(store, people.clone(), |tx, people| {
        for &watcher in &people[..4] {
            watches::set(tx, watcher, id, WatchLevel::All).await?;
        }
        watches::set(tx, people[4], id, WatchLevel::Ignore).await?;
        issues::people::subscribe(tx, issue, people[3], true).await?;
        issues::people::subscribe(tx, issue, people[4], true).await?;
        issues::people::subscribe(tx, issue, people[0], false).await?;
        issues::people::subscribe(tx, issue, people[5], false).await
    })
    .await;
    written.unwrap();

    let mut seen = Vec::new();
    let mut after = UserId::new(0);
    loop {
        let mut conn = store.read().await.unwrap();
        let page = notifications::crowd(&mut conn, id, Some(issue), thread, after, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = last.id;
        seen.extend(page.iter().map(|one| (one.id, one.level, one.hearing)));
    }
    let hears = Hearing::Subscribed(Reason::Manual);
    assert_eq!(
        seen,
        [
            (people[0], WatchLevel::All, Hearing::Muted),
            (people[1], WatchLevel::All, Hearing::Unsaid),
            (people[2], WatchLevel::All, Hearing::Unsaid),
            (people[3], WatchLevel::All, hears),
            (people[4], WatchLevel::Ignore, hears),
        ]
    );
    let mut conn = store.read().await.unwrap();
    let few = notifications::people(&mut conn, id, Some(issue), thread, &[people[5], people[6]]).await.unwrap();
    let few: Vec<_> = few.iter().map(|one| (one.id, one.level, one.hearing)).collect();
    let level = WatchLevel::Participating;
    assert_eq!(few, [(people[5], level, Hearing::Muted), (people[6], level, Hearing::Unsaid)]);
    assert!(notifications::people(&mut conn, id, None, thread, &[]).await.unwrap().is_empty());
}
