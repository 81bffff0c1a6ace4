//! Issues: numbers, counts, lists, and what is shown to whom.

use crate::support::{World, new_repo, repo, unit, user};
use abide_core::issues::filter::{Sort, Wanted};
use abide_core::issues::{Reason, State};
use abide_core::repo::{Role, Visibility};
use abide_core::{IssueId, RepoId, UserId};
use abide_store::issues::labels::{self, Look};
use abide_store::issues::list::Query;
use abide_store::issues::milestones::{self, Plan};
use abide_store::issues::people::Why;
use abide_store::issues::timeline::NewEntry;
use abide_store::issues::{self, Counts, comments};
use abide_store::repos::{self, Page, Viewer, collaborators};
use abide_store::{Store, StoreError};
use abide_testkit::Engine;
use rstest::rstest;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

const ALL: Page = Page { limit: 100, offset: 0 };

async fn issue(store: &Store, repo: RepoId, author: UserId, title: &str) -> (IssueId, i64) {
    let input = (repo, author, title.to_owned());
    unit!(store, input, |tx, (repo, author, title)| issues::insert(tx, *repo, *author, title, "text").await)
        .await
        .unwrap()
}

fn everything() -> Query {
    Query {
        state: None,
        reason: None,
        author: None,
        assignee: Wanted::Any,
        milestone: Wanted::Any,
        labels: Vec::new(),
        no_label: false,
        since: None,
        words: Vec::new(),
        sort: Sort::Created,
        ascending: false,
        scan: 1000,
    }
}

async fn found(store: &Store, repo: RepoId, query: Query) -> Vec<i64> {
    let mut conn = store.read().await.unwrap();
    let (issues, total) = issues::list::find(&mut conn, repo, &query, ALL).await.unwrap();
    assert_eq!(issues.len() as i64, total, "the count is that of the list: {query:?}");
    issues.iter().map(|issue| issue.number).collect()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn numbers_are_given_once_however_many_ask_at_the_same_time(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let another = world.another_store().await;
    let alice = user(&world.store, "alice").await;
    let (tool, other) = (repo(&world.store, alice, "tool").await, repo(&world.store, alice, "other").await);

    let mut tasks = Vec::new();
    for turn in 0..40 {
        let store = if turn % 2 == 0 { world.store.clone() } else { another.clone() };
        tasks.push(tokio::spawn(async move { issue(&store, tool, alice, "at once").await.1 }));
    }
    let mut numbers = BTreeSet::new();
    for task in tasks {
        assert!(numbers.insert(crate::support::joined(task).await), "a number was given twice");
    }
    assert_eq!(numbers, (1..=40).collect());
    assert_eq!(issue(&world.store, other, alice, "elsewhere").await.1, 1, "each repository counts by itself");

    // Whatever is removed, its number stays taken.
    let mut raw = world.raw().await;
    raw.execute("DELETE FROM issues WHERE number > 30").await;
    assert_eq!(issue(&world.store, tool, alice, "later").await.1, 41);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_unit_takes_no_number(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let alice = user(&world.store, "alice").await;
    let tool = repo(&world.store, alice, "tool").await;
    let refused: Result<(), StoreError> = unit!(world.store, (tool, alice), |tx, &(tool, alice)| {
        issues::insert(tx, tool, alice, "never", "").await?;
        Err(StoreError::Missing)
    })
    .await;
    assert!(refused.is_err());
    assert_eq!(issue(&world.store, tool, alice, "first").await.1, 1);
    let mut conn = world.store.read().await.unwrap();
    assert_eq!(issues::counts(&mut conn, tool).await.unwrap(), Counts { open: 1, closed: 0 });
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn counts_are_those_of_the_lists_through_every_change(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let alice = user(store, "alice").await;
    let tool = repo(store, alice, "tool").await;
    for title in ["a", "b", "c"] {
        issue(store, tool, alice, title).await;
    }
    let steps = [
        (1, State::Closed, Some(Reason::Completed)),
        (2, State::Closed, Some(Reason::NotPlanned)),
        (2, State::Closed, Some(Reason::Completed)),
        (1, State::Open, Some(Reason::Reopened)),
    ];
    for (number, state, reason) in steps {
        unit!(store, (), |tx, _| {
            let issue = issues::by_number(tx, tool, number).await?.unwrap();
            issues::set_state(tx, &issue, state, reason, Some(alice)).await
        })
        .await
        .unwrap();
        let open = found(store, tool, Query { state: Some(State::Open), ..everything() }).await.len() as i64;
        let closed = found(store, tool, Query { state: Some(State::Closed), ..everything() }).await.len() as i64;
        let mut conn = store.read().await.unwrap();
        assert_eq!(issues::counts(&mut conn, tool).await.unwrap(), Counts { open, closed });
        let many = issues::open_of_many(&mut conn, &[tool, RepoId::new(404)]).await.unwrap();
        assert_eq!(many.into_iter().collect::<Vec<_>>(), [(tool, open)]);
        let read = issues::by_number(&mut conn, tool, number).await.unwrap().unwrap();
        assert_eq!((read.state, read.reason), (state, reason));
        assert_eq!(read.closed_by.is_some(), state == State::Closed);
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_filter_leaves_what_it_says(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let store = &world.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let tool = repo(store, alice, "tool").await;
    let other = repo(store, alice, "other").await;
    issue(store, other, alice, "never shown").await;
    for (title, author) in [("Crash on start", alice), ("100% slow", bob), ("Typo", bob)] {
        issue(store, tool, author, title).await;
        world.clock.advance(Duration::from_secs(60));
    }
    let (bug, ui, plan) = unit!(store, (), |tx, _| {
        let look = |name: &str| Look {
            name: name.parse().unwrap(),
            color: "d73a4a".parse().unwrap(),
            description: String::new(),
        };
        let bug = labels::insert(tx, tool, &look("Bug")).await?.id;
        let ui = labels::insert(tx, tool, &look("ui")).await?.id;
        let plan = Plan { title: "V 1".into(), description: String::new(), state: State::Open, due_on: None };
        let number = milestones::insert(tx, tool, Some(alice), &plan).await?;
        let plan = milestones::by_number(tx, tool, number).await?.unwrap().id;
        let one = issues::by_number(tx, tool, 1).await?.unwrap();
        let two = issues::by_number(tx, tool, 2).await?.unwrap();
        labels::attach(tx, one.id, bug).await?;
        labels::attach(tx, two.id, bug).await?;
        labels::attach(tx, two.id, ui).await?;
        assert!(!labels::attach(tx, two.id, ui).await?, "once is enough");
        issues::people::assign(tx, one.id, bob).await?;
        issues::set_milestone(tx, two.id, Some(plan)).await?;
        comments::insert(tx, tool, one.id, bob, "me too").await?;
        issues::set_state(tx, &two, State::Closed, Some(Reason::NotPlanned), Some(alice)).await?;
        Ok::<_, StoreError>((bug, ui, plan))
    })
    .await
    .unwrap();

    let cases: Vec<(Query, &[i64])> = vec![
        (everything(), &[3, 2, 1]),
        (Query { ascending: true, ..everything() }, &[1, 2, 3]),
        (Query { state: Some(State::Open), ..everything() }, &[3, 1]),
        (Query { reason: Some(Reason::NotPlanned), ..everything() }, &[2]),
        (Query { author: Some(bob), ..everything() }, &[3, 2]),
        (Query { assignee: Wanted::Is(bob), ..everything() }, &[1]),
        (Query { assignee: Wanted::Is(alice), ..everything() }, &[]),
        (Query { assignee: Wanted::Some, ..everything() }, &[1]),
        (Query { assignee: Wanted::None, ..everything() }, &[3, 2]),
        (Query { milestone: Wanted::Is(plan), ..everything() }, &[2]),
        (Query { milestone: Wanted::None, ..everything() }, &[3, 1]),
        (Query { milestone: Wanted::Some, ..everything() }, &[2]),
        (Query { labels: vec![bug], ..everything() }, &[2, 1]),
        (Query { labels: vec![bug, ui], ..everything() }, &[2]),
        (Query { no_label: true, ..everything() }, &[3]),
        (Query { words: vec!["crash".into()], ..everything() }, &[1]),
        (Query { words: vec!["text".into(), "t".into()], ..everything() }, &[3, 2, 1]),
        (Query { words: vec!["0%".into()], ..everything() }, &[2]),
        (Query { words: vec!["_".into()], ..everything() }, &[]),
        (Query { sort: Sort::Comments, ..everything() }, &[1, 3, 2]),
        (Query { sort: Sort::Comments, ascending: true, ..everything() }, &[2, 3, 1]),
        (Query { sort: Sort::Updated, ascending: true, ..everything() }, &[3, 1, 2]),
        (Query { scan: 1, ..everything() }, &[3]),
    ];
    for (query, expected) in cases {
        assert_eq!(found(store, tool, query.clone()).await, expected, "{query:?}");
    }
    let mut conn = store.read().await.unwrap();
    let since = issues::by_number(&mut conn, tool, 3).await.unwrap().unwrap().updated_at;
    let later = Query { since: Some(since.plus(Duration::from_secs(1))), ..everything() };
    assert_eq!(found(store, tool, later).await, [2, 1]);
    let page = Page { limit: 1, offset: 1 };
    let (paged, total) = issues::list::find(&mut conn, tool, &everything(), page).await.unwrap();
    assert_eq!((paged[0].number, total), (2, 3));
    let plan = milestones::by_title(&mut conn, tool, "v 1").await.unwrap().unwrap();
    assert_eq!((plan.open_issues, plan.closed_issues), (0, 1));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn names_of_labels_and_milestones_are_taken_whatever_their_case(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let alice = user(&world.store, "alice").await;
    let tool = repo(&world.store, alice, "tool").await;
    let label = |name: &str| {
        let look = Look { name: name.parse().unwrap(), color: Default::default(), description: String::new() };
        unit!(world.store, look, |tx, look| labels::insert(tx, tool, look).await.map(drop))
    };
    label("Bug").await.unwrap();
    assert!(matches!(label("bUG").await, Err(StoreError::Unique)));
    let milestone = |title: &str| {
        let plan = Plan { title: title.into(), description: String::new(), state: State::Open, due_on: None };
        unit!(world.store, plan, |tx, plan| milestones::insert(tx, tool, None, plan).await)
    };
    assert_eq!(milestone("First").await.unwrap(), 1);
    assert!(matches!(milestone("FIRST").await, Err(StoreError::Unique)));
    assert_eq!(milestone("second").await.unwrap(), 2, "what was refused took no number");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_reference_is_shown_to_whoever_may_read_where_it_comes_from(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let (alice, bob, carol) = (user(store, "alice").await, user(store, "bob").await, user(store, "carol").await);
    let tool = repo(store, alice, "tool").await;
    let hidden = abide_store::repos::NewRepo { visibility: Visibility::Private, ..new_repo(bob, "hidden") };
    let hidden = unit!(store, hidden, |tx, new| repos::insert(tx, new).await).await.unwrap();
    let (target, _) = issue(store, tool, alice, "target").await;
    let (source, _) = issue(store, hidden, bob, "secret plan").await;
    unit!(store, (), |tx, _| {
        collaborators::set(tx, hidden, carol, Role::Read).await?;
        let entry = NewEntry {
            kind: "cross-referenced",
            source_repo: Some(hidden),
            source_issue: Some(source),
            once: Some("issue:1".into()),
            ..NewEntry::default()
        };
        assert!(issues::timeline::append(tx, target, Some(bob), &entry).await?);
        assert!(!issues::timeline::append(tx, target, Some(bob), &entry).await?, "told once");
        let entry = NewEntry { kind: "renamed", detail: json!({ "from": "a" }), ..NewEntry::default() };
        issues::timeline::append(tx, target, Some(alice), &entry).await
    })
    .await
    .unwrap();

    let mut conn = store.read().await.unwrap();
    for (user, reads_everything, expected) in
        [(None, false, 1), (Some(alice), false, 1), (Some(bob), false, 2), (Some(carol), false, 2), (None, true, 2)]
    {
        let viewer = Viewer { user, reads_everything };
        let (entries, total) = issues::timeline::page(&mut conn, target, viewer, ALL).await.unwrap();
        assert_eq!((entries.len(), total), (expected, expected as i64), "{viewer:?}");
        let entry = format!("{entries:?}");
        assert_eq!(entry.contains("secret plan"), expected == 2, "{viewer:?}");
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_someone_said_about_hearing_of_an_issue_is_kept(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let tool = repo(store, alice, "tool").await;
    let (id, _) = issue(store, tool, alice, "x").await;
    unit!(store, (), |tx, _| {
        issues::people::involve(tx, id, alice, Why::Author).await?;
        issues::people::subscribe(tx, id, bob, false).await?;
        issues::people::involve(tx, id, bob, Why::Mention).await?;
        issues::people::involve(tx, id, alice, Why::Comment).await
    })
    .await
    .unwrap();
    let mut conn = store.read().await.unwrap();
    let of = issues::people::subscription(&mut conn, id, alice).await.unwrap().unwrap();
    assert_eq!((of.subscribed, of.reason.as_str()), (true, "author"));
    assert!(!issues::people::subscription(&mut conn, id, bob).await.unwrap().unwrap().subscribed);
    let heard = issues::people::subscribers(&mut conn, id, UserId::new(0), 10).await.unwrap();
    assert_eq!(heard, [(alice, "author".to_owned())]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn issues_go_with_their_repository_and_outlive_their_author(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let tool = repo(store, alice, "tool").await;
    let (id, number) = issue(store, tool, bob, "x").await;
    unit!(store, (), |tx, _| {
        let said = comments::insert(tx, tool, id, bob, "y").await?;
        let entry = NewEntry { kind: "commented", comment: Some(said), ..NewEntry::default() };
        issues::timeline::append(tx, id, Some(bob), &entry).await?;
        issues::people::assign(tx, id, bob).await?;
        issues::people::involve(tx, id, bob, Why::Author).await
    })
    .await
    .unwrap();
    let mut raw = world.raw().await;
    raw.execute("DELETE FROM users WHERE name = 'bob'").await;
    let mut conn = store.read().await.unwrap();
    let read = issues::by_number(&mut conn, tool, number).await.unwrap().unwrap();
    assert_eq!((read.author_id, read.comment_count), (None, 1));
    drop(conn);

    unit!(store, tool, |tx, &tool| repos::remove(tx, tool).await).await.unwrap();
    for table in ["issues", "comments", "issue_events", "issue_assignees", "issue_subscriptions", "issue_counters"] {
        assert_eq!(raw.number(&format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
    }
}
