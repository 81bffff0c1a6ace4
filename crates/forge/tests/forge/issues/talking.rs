//! Opening, changing, commenting, closing: by those who may.

use super::{FIRST, hidden, make, refused, share, world, world_with};
use crate::log::stored_json;
use abide_core::issues::filter::Filter;
use abide_core::repo::{Role, Visibility};
use abide_forge::accounts;
use abide_forge::issues::change::{Change, Names, change, close, reopen};
use abide_forge::issues::list::{self, Wish};
use abide_forge::issues::{IssueError, Reason, State, comment, create, labels, milestones, show, subscribe};
use abide_forge::repos::marks;
use abide_testkit::Engine;
use rstest::rstest;
use std::time::Duration;

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_issue_lives_from_its_opening_to_its_end(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let forge = world.forge();
    let issue = world.open(&world.carol, " It crashes ", "When\r\nstarted").await;
    assert_eq!((issue.number, issue.title.as_str(), issue.body.as_str()), (1, "It crashes", "When\nstarted"));
    assert_eq!(issue.state, State::Open);

    comment::add(forge, &world.bob, &world.repo, 1, "Looking at it").await.expect("said");
    let labels = Some(Names::Set(vec!["bug".into()]));
    let made = labels::Request { name: Some("bug".into()), color: Some("#D73A4A".into()), description: None };
    labels::create(forge, &world.alice, &world.repo, made).await.expect("made");
    let wanted = Change { labels, assignees: Some(Names::Add(vec!["@bob".into()])), ..Change::default() };
    change(forge, &world.bob, &world.repo, 1, wanted.clone()).await.expect("sorted");
    change(forge, &world.bob, &world.repo, 1, wanted).await.expect("nothing to do");
    let renamed = Change { title: Some("It crashes at start".into()), ..Change::default() };
    change(forge, &world.carol, &world.repo, 1, renamed).await.expect("renamed");
    let closed = close(forge, &world.bob, &world.repo, 1, Some(Reason::NotPlanned)).await.expect("closed");
    assert_eq!(
        (closed.state, closed.reason, closed.closed_by),
        (State::Closed, Some(Reason::NotPlanned), world.bob.user_id())
    );
    close(forge, &world.bob, &world.repo, 1, None).await.expect("it is already");
    let again = reopen(forge, &world.carol, &world.repo, 1).await.expect("open again");
    assert_eq!((again.state, again.reason, again.closed_by), (State::Open, Some(Reason::Reopened), None));

    let reported = world.timeline(&world.carol, &issue).await;
    assert_eq!(reported, ["commented", "labeled", "assigned", "renamed", "closed", "reopened"]);
    let kinds = world.kinds().await;
    let expected = [
        "issue_created",
        "issue_comment_created",
        "label_created",
        "issue_labeled",
        "issue_assigned",
        "issue_edited",
        "issue_closed",
        "issue_reopened",
    ];
    assert_eq!(kinds, expected);
    let event = world.events().await.into_iter().find(|event| event.kind == "issue_closed").expect("told");
    let payload: serde_json::Value =
        serde_json::from_str(&stored_json(&world.rig.store, event.seq).await).expect("JSON");
    assert_eq!((&payload["slug"], &payload["number"]), (&"alice/tool".into(), &1.into()));
    assert!(payload["title"].is_null(), "readers take the title from the issue");
    assert!(event.public);

    let detailed = show::detail(forge, world.read(&issue).await).await.expect("readable");
    assert_eq!(detailed.labels[0].color.as_str(), "d73a4a");
    assert_eq!(detailed.assignees[0].name.as_ref().expect("named").as_str(), "bob");
    let reasons: Vec<_> = world.heard_by(&issue).await.into_iter().map(|(_, why)| why).collect();
    assert_eq!(reasons, ["comment", "author"], "by id: bob commented, carol wrote it");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn everyone_does_what_their_part_allows(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let forge = world.forge();
    let repo = &world.repo;
    world.open(&world.alice, "of alice", "").await;
    let said = comment::add(forge, &world.alice, repo, 1, "mine").await.expect("said");
    let id = said.id.to_string();
    let title = || Change { title: Some("other".into()), ..Change::default() };
    let label = || Change { labels: Some(Names::Add(vec!["x".into()])), ..Change::default() };

    refused(close(forge, &world.carol, repo, 1, None).await);
    refused(change(forge, &world.carol, repo, 1, title()).await);
    refused(change(forge, &world.carol, repo, 1, label()).await);
    refused(comment::edit(forge, &world.carol, repo, &id, "hers").await);
    refused(comment::remove(forge, &world.carol, repo, &id).await);
    refused(change(forge, &world.bob, repo, 1, title()).await);
    refused(comment::remove(forge, &world.bob, repo, &id).await);
    let unknown = change(forge, &world.bob, repo, 1, label()).await;
    assert!(matches!(unknown, Err(IssueError::UnknownLabel(_))), "who sorts issues makes no labels: {unknown:?}");
    change(forge, &world.alice, repo, 1, label()).await.expect("the owner does");
    refused(labels::remove(forge, &world.bob, repo, "x").await);
    let nobody = abide_forge::Caller::anonymous(None);
    refused(comment::add(forge, &nobody, repo, 1, "hello").await);
    refused(create::create(forge, &nobody, repo, create::Request { title: "x".into(), ..Default::default() }).await);
    assert_eq!(world.timeline(&nobody, &world.read(&world.open(&world.carol, "hers", "").await).await).await, [""; 0]);

    // Texts of others may be changed with the write role, and that is logged.
    share(forge, &world.alice, repo, "bob", Role::Write).await;
    let hers = comment::add(forge, &world.carol, repo, 2, "rude").await.expect("said");
    comment::remove(forge, &world.bob, repo, &hers.id.to_string()).await.expect("removed");
    change(forge, &world.bob, repo, 2, title()).await.expect("renamed");
    let alive = abide_forge::repos::trail::page(forge, &world.alice, repo, None, 100).await.expect("readable");
    let kept: Vec<_> = alive.iter().map(|row| row.record.action.as_str()).collect();
    assert!(kept.contains(&"issue_comment_removed") && kept.contains(&"issue_moderated"), "{kept:?}");
    assert_eq!(show::show(forge, repo, "2").await.expect("there").comment_count, 0);

    // Labels of a stranger's new issue are left out rather than refused.
    let request = create::Request {
        title: "with wishes".into(),
        labels: vec!["x".into()],
        assignees: vec!["alice".into()],
        ..create::Request::default()
    };
    let wished = create::create(forge, &world.carol, repo, request).await.expect("opened");
    let wished = show::detail(forge, wished).await.expect("readable");
    assert!(wished.labels.is_empty() && wished.assignees.is_empty());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_private_has_no_issues_and_what_is_archived_takes_none(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let forge = world.forge();
    let secret = make(forge, &world.alice, "secret", Visibility::Private).await;
    world.open_in(&world.alice, &secret, "plan", "").await;
    hidden(comment::add(forge, &world.carol, &secret, 1, "hello").await);
    hidden(close(forge, &world.carol, &secret, 1, None).await);
    let absent =
        create::create(forge, &world.carol, &secret, create::Request { title: "x".into(), ..Default::default() });
    hidden(absent.await);
    let event = world.events().await.into_iter().find(|event| event.kind == "issue_created").expect("told");
    assert!(!event.public);

    let issue = world.open(&world.carol, "before", "").await;
    marks::archive(forge, &world.alice, &world.repo).await.expect("archived");
    refused(comment::add(forge, &world.carol, &world.repo, issue.number, "after").await);
    refused(close(forge, &world.alice, &world.repo, issue.number, None).await);
    refused(labels::create(forge, &world.alice, &world.repo, labels::Request::default()).await);
    subscribe::set(forge, &world.carol, &world.repo, &issue, false).await.expect("that is theirs alone");
    assert!(!subscribe::of(forge, &world.carol, &issue).await.expect("readable").expect("set").subscribed);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn limits_are_kept_and_said(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world_with(engine, |settings| {
        let issues = &mut settings.issues;
        (issues.created, issues.window) = (2, Duration::from_secs(60));
        (issues.comments_per_issue, issues.labels, issues.labels_per_issue, issues.body_bytes) = (1, 2, 1, 100);
        (issues.assignees_per_issue, issues.milestones) = (1, 1);
    })
    .await;
    let forge = world.forge();
    let repo = &world.repo;
    world.open(&world.carol, "one", "").await;
    world.open(&world.carol, "two", "").await;
    let request = || create::Request { title: "three".into(), ..create::Request::default() };
    let often = create::create(forge, &world.carol, repo, request()).await;
    assert!(matches!(often, Err(IssueError::TooOften(_))), "{often:?}");
    let other = create::create(forge, &world.bob, repo, request()).await.expect("another one's limit is their own");
    assert_eq!(other.number, 3, "what was refused took no number");
    world.rig.clock.advance(Duration::from_secs(61));
    create::create(forge, &world.carol, repo, request()).await.expect("later it works");

    let too_long = comment::add(forge, &world.bob, repo, 1, &"x".repeat(101)).await;
    assert!(matches!(too_long, Err(IssueError::Invalid { field: "body", .. })), "{too_long:?}");
    comment::add(forge, &world.bob, repo, 1, "one").await.expect("said");
    let full = comment::add(forge, &world.bob, repo, 1, "two").await;
    assert!(matches!(full, Err(IssueError::TooMany { field: "comments", limit: 1 })), "{full:?}");

    let labels = |names: &[&str]| Change {
        labels: Some(Names::Set(names.iter().map(ToString::to_string).collect())),
        ..Change::default()
    };
    change(forge, &world.alice, repo, 1, labels(&["a"])).await.expect("labelled");
    change(forge, &world.alice, repo, 1, labels(&["b"])).await.expect("one instead of the other");
    let many = change(forge, &world.alice, repo, 1, labels(&["a", "b"])).await;
    assert!(matches!(many, Err(IssueError::TooMany { field: "labels", .. })), "{many:?}");
    let many = change(forge, &world.alice, repo, 1, labels(&["c"])).await;
    assert!(matches!(many, Err(IssueError::TooMany { field: "labels", limit: 2 })), "{many:?}");
    let people = Change { assignees: Some(Names::Set(vec!["alice".into(), "bob".into()])), ..Change::default() };
    let many = change(forge, &world.alice, repo, 1, people).await;
    assert!(matches!(many, Err(IssueError::TooMany { field: "assignees", .. })), "{many:?}");
    let plan = |title: &str| milestones::Request { title: Some(title.into()), ..milestones::Request::default() };
    milestones::create(forge, &world.alice, repo, plan("v1")).await.expect("planned");
    let many = milestones::create(forge, &world.alice, repo, plan("v2")).await;
    assert!(matches!(many, Err(IssueError::TooMany { field: "milestones", .. })), "{many:?}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn only_those_with_a_part_are_made_responsible(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let forge = world.forge();
    world.open(&world.alice, "x", "").await;
    let to = |name: &str| Change { assignees: Some(Names::Add(vec![name.into()])), ..Change::default() };
    for name in ["carol", "nobody", "", "../x"] {
        let unknown = change(forge, &world.alice, &world.repo, 1, to(name)).await;
        assert!(matches!(unknown, Err(IssueError::UnknownAssignee(_))), "{name}: {unknown:?}");
    }
    change(forge, &world.alice, &world.repo, 1, to("Bob")).await.expect("bob has a part");
    let bob = accounts::find(forge, &"bob".parse().unwrap()).await.unwrap().unwrap();
    let (people, total) = show::assignable(forge, &world.repo, FIRST).await.expect("readable");
    assert_eq!((people.len(), total), (2, 2));
    let off = Change { assignees: Some(Names::Remove(vec!["bob".into()])), ..Change::default() };
    change(forge, &world.alice, &world.repo, 1, off).await.expect("taken off");
    let filter = Filter::parse("assignee:bob").unwrap();
    let found = list::list(forge, &world.repo, &Wish { filter, ..Wish::default() }, FIRST).await.expect("readable");
    assert_eq!(found.1, 0);
    assert!(bob.suspended_at.is_none());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn milestones_gather_issues_and_lists_find_them(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let forge = world.forge();
    let repo = &world.repo;
    for title in ["one", "two"] {
        world.open(&world.alice, title, "").await;
    }
    let request = milestones::Request { title: Some("Version 1".into()), ..milestones::Request::default() };
    let plan = milestones::create(forge, &world.alice, repo, request.clone()).await.expect("planned");
    let taken = milestones::create(forge, &world.alice, repo, request).await;
    assert!(matches!(taken, Err(IssueError::Taken { field: "title" })), "{taken:?}");
    let into = |milestone| Change { milestone: Some(milestone), ..Change::default() };
    change(forge, &world.bob, repo, 1, into(Some(plan.number))).await.expect("planned");
    let absent = change(forge, &world.bob, repo, 1, into(Some(99))).await;
    assert!(matches!(absent, Err(IssueError::UnknownMilestone(99))), "{absent:?}");
    close(forge, &world.bob, repo, 1, None).await.expect("closed");

    let find = async |text: &str| {
        let wish = Wish { filter: Filter::parse(text).unwrap(), ..Wish::default() };
        let (found, _) = list::list(forge, repo, &wish, FIRST).await.expect("readable");
        found.iter().map(|issue| issue.number).collect::<Vec<_>>()
    };
    assert_eq!(find("milestone:\"version 1\"").await, [1]);
    assert_eq!(find("no:milestone").await, [2]);
    assert_eq!(find("is:closed one").await, [1]);
    assert_eq!(find("label:none-such").await, [0; 0]);
    assert_eq!(find("author:nobody").await, [0; 0]);
    let read = milestones::show(forge, repo, plan.number).await.expect("there");
    assert_eq!((read.open_issues, read.closed_issues), (0, 1));

    milestones::remove(forge, &world.alice, repo, plan.number).await.expect("removed");
    assert_eq!(world.read(&world.open(&world.alice, "three", "").await).await.number, 3);
    assert_eq!(show::show(forge, repo, "1").await.expect("it stays").milestone_id, None);
    let again = milestones::Request { title: Some("Version 1".into()), ..milestones::Request::default() };
    let again = milestones::create(forge, &world.alice, repo, again).await.expect("planned");
    assert_eq!(again.number, 2, "numbers are not given twice");
}
