//! Issues of many repositories: what is found, and by whom.

use super::{FIRST, World, make, share, world, world_with};
use abide_core::issues::filter::{Filter, InvalidFilter, Sort};
use abide_core::repo::{Role, Visibility};
use abide_forge::Caller;
use abide_forge::issues::change::{Change, Names, change, close};
use abide_forge::issues::search::{self, Concern, Found, Wish};
use abide_forge::issues::{IssueError, comment, create, labels, milestones, subscribe};
use abide_forge::repos::{Page, Repo, delete, marks};
use abide_testkit::Engine;
use rstest::rstest;
use std::time::Duration;

/// Results, as `repository#number`.
fn names(found: &Found) -> Vec<String> {
    let names: Vec<_> = found.each().map(|(one, repo)| format!("{}#{}", repo.name, one.issue.number)).collect();
    assert_eq!(names.len(), found.issues.len(), "each is in a repository");
    names
}

impl World {
    async fn find(&self, caller: &Caller, text: &str) -> Vec<String> {
        let found = search::search(self.forge(), caller, text, (None, None), FIRST).await.expect("readable");
        assert_eq!((found.total, found.incomplete), (found.issues.len() as i64, false), "{text}");
        names(&found)
    }

    async fn mine(&self, caller: &Caller, concern: Concern, theirs: bool) -> Vec<String> {
        let wish = Wish { concern, theirs, filter: Filter::default(), since: None };
        let found = search::mine(self.forge(), caller, wish, FIRST).await.expect("readable");
        assert_eq!(found.total, found.issues.len() as i64, "{concern}");
        names(&found)
    }

    async fn change(&self, repo: &Repo, number: i64, to: Change) {
        change(self.forge(), &self.alice, repo, number, to).await.expect("changed");
        self.rig.clock.advance(Duration::from_secs(1));
    }
}

/// alice/tool: 1 of carol, closed; 2 of alice, a bug. alice/secret, which bob reads: 1 of bob, a bug for v1, that names
/// alice. carol/other: 1 of carol, alice's concern.
async fn setup(engine: Engine) -> (World, Repo, Repo) {
    let world = world(engine).await;
    let forge = world.forge();
    let secret = make(forge, &world.alice, "secret", Visibility::Private).await;
    share(forge, &world.alice, &secret, "bob", Role::Read).await;
    let other = make(forge, &world.carol, "other", Visibility::Public).await;
    let open = async |caller: &Caller, repo: &Repo, title: &str, body: &str| {
        world.open_in(caller, repo, title, body).await;
        world.rig.clock.advance(Duration::from_secs(1));
    };
    open(&world.carol, &world.repo, "Crash at start", "").await;
    open(&world.alice, &world.repo, "Slow", "it CRASHES 100%").await;
    open(&world.bob, &secret, "Crash plan", "for @alice").await;
    open(&world.carol, &other, "Crash elsewhere", "").await;
    close(forge, &world.alice, &world.repo, 1, None).await.expect("closed");
    for (repo, number) in [(&world.repo, 2), (&secret, 1)] {
        let request = labels::Request { name: Some("Bug, bad".into()), color: None, description: None };
        labels::create(forge, &world.alice, repo, request).await.expect("made");
        let bug = Change { labels: Some(Names::Add(vec!["bug, bad".into()])), ..Change::default() };
        world.change(repo, number, bug).await;
    }
    let plan = milestones::Request { title: Some("v1".into()), ..milestones::Request::default() };
    milestones::create(forge, &world.alice, &secret, plan).await.expect("planned");
    world.change(&secret, 1, Change { milestone: Some(Some(1)), ..Change::default() }).await;
    let to = Change { assignees: Some(Names::Add(vec!["bob".into()])), ..Change::default() };
    world.change(&world.repo, 2, to).await;
    (world, secret, other)
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_search_finds_in_every_repository_that_one_may_read(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let (world, secret, _) = setup(engine).await;
    let nobody = Caller::anonymous(None);
    let everything = ["other#1", "secret#1", "tool#2", "tool#1"];
    assert_eq!(world.find(&world.bob, "crash").await, everything);
    for stranger in [&world.carol, &nobody] {
        assert_eq!(world.find(stranger, "crash").await, ["other#1", "tool#2", "tool#1"]);
        assert_eq!(world.find(stranger, "plan").await, [""; 0]);
        assert_eq!(world.find(stranger, "repo:alice/secret").await, [""; 0]);
        assert_eq!(world.find(stranger, "milestone:v1").await, [""; 0]);
        assert_eq!(world.find(stranger, "author:bob").await, [""; 0]);
        assert_eq!(world.find(stranger, "mentions:alice").await, [""; 0]);
        assert_eq!(world.find(stranger, "label:\"bug, bad\"").await, ["tool#2"]);
    }
    for (text, expected) in [
        ("", &everything[..]),
        ("is:issue", &everything[..]),
        ("is:closed", &["tool#1"]),
        ("crash is:open user:alice", &["secret#1", "tool#2"]),
        ("repo:alice/tool", &["tool#2", "tool#1"]),
        ("repo:alice/tool plan", &[]),
        ("repo:alice/absent", &[]),
        ("label:\"BUG, bad\"", &["secret#1", "tool#2"]),
        ("label:\"bug, bad\" label:other", &[]),
        ("label:bug", &[]),
        ("no:label author:carol", &["other#1", "tool#1"]),
        ("milestone:V1", &["secret#1"]),
        ("no:milestone user:alice", &["tool#2", "tool#1"]),
        ("author:@me", &["secret#1"]),
        ("assignee:@me", &["tool#2"]),
        ("no:assignee crash", &["other#1", "secret#1", "tool#1"]),
        ("mentions:alice", &["secret#1"]),
        ("mentions:carol", &[]),
        ("author:nobody", &[]),
        ("user:nobody", &[]),
        ("is:pr", &[]),
        ("100%", &["tool#2"]),
        ("crash sort:created-asc", &["tool#1", "tool#2", "secret#1", "other#1"]),
        ("sort:updated", &["tool#2", "secret#1", "tool#1", "other#1"]),
    ] {
        assert_eq!(world.find(&world.bob, text).await, expected, "{text}");
    }
    comment::add(world.forge(), &world.bob, &world.repo, 2, "yes").await.expect("said");
    assert_eq!(world.find(&world.bob, "sort:comments").await[0], "tool#2");

    // Who may read what is asked at the moment of the search.
    marks::set_visibility(world.forge(), &world.alice, &world.repo, Visibility::Private).await.expect("hidden");
    assert_eq!(world.find(&world.carol, "crash").await, ["other#1"]);
    delete::delete(world.forge(), &world.alice, &secret).await.expect("deleted");
    assert_eq!(world.find(&world.alice, "mentions:@me").await, [""; 0]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_search_is_ordered_counted_and_bounded(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world_with(engine, |settings| settings.issues.scan = 4).await;
    let forge = world.forge();
    for number in 1..=5 {
        world.open(&world.alice, &format!("issue {number}"), "").await;
        world.rig.clock.advance(Duration::from_secs(1));
    }
    let find = async |text: &str, order, page| search::search(forge, &world.carol, text, order, page).await;
    let two = |offset| Page { limit: 2, offset };
    let first = find("issue", (None, None), two(0)).await.expect("readable");
    assert_eq!((names(&first), first.total), (vec!["tool#5".to_owned(), "tool#4".to_owned()], 4));
    assert!(first.incomplete, "one more would have to be looked at");
    let other = find("issue", (Some(Sort::Created), Some(true)), two(2)).await.expect("readable");
    assert_eq!(names(&other), ["tool#4", "tool#5"], "of those that changed last");
    let none = find("issue author:carol", (None, None), two(0)).await.expect("readable");
    assert!(none.total == 0 && !none.incomplete, "all of hers were looked at");
    for (text, error) in [
        ("repo:alice/tool repo:alice/other", InvalidFilter::SeveralRepos),
        ("a b c d e f", InvalidFilter::TooManyWords),
    ] {
        let refused = find(text, (None, None), two(0)).await;
        assert!(matches!(refused, Err(IssueError::Filter(ref why)) if *why == error), "{text}: {refused:?}");
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn everyone_finds_what_concerns_them(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (world, secret, other) = setup(engine).await;
    let forge = world.forge();
    assert_eq!(world.mine(&world.bob, Concern::Assigned, false).await, ["tool#2"]);
    assert_eq!(world.mine(&world.bob, Concern::Created, false).await, ["secret#1"]);
    assert_eq!(world.mine(&world.alice, Concern::Mentioned, false).await, ["secret#1"]);
    assert_eq!(world.mine(&world.carol, Concern::Created, false).await, ["other#1", "tool#1"]);
    assert_eq!(world.mine(&world.carol, Concern::Created, true).await, ["other#1"], "tool is not hers");
    assert_eq!(world.mine(&world.carol, Concern::Repos, false).await, ["other#1"]);
    assert_eq!(world.mine(&world.carol, Concern::All, false).await, ["other#1", "tool#1"]);
    assert_eq!(world.mine(&world.bob, Concern::Subscribed, false).await, ["secret#1", "tool#2"]);

    // Who said something before they were named was named all the same; who does not want to hear was it too.
    comment::add(forge, &world.alice, &other, 1, "I see").await.expect("said");
    comment::add(forge, &world.carol, &other, 1, "@alice?").await.expect("said");
    assert_eq!(world.mine(&world.alice, Concern::Mentioned, false).await, ["other#1", "secret#1"]);
    let there = abide_forge::issues::show::show(forge, &other, "1").await.expect("there");
    subscribe::set(forge, &world.alice, &other, &there, false).await.expect("unsubscribed");
    assert!(!world.mine(&world.alice, Concern::Subscribed, false).await.contains(&"other#1".to_owned()));
    assert_eq!(world.mine(&world.alice, Concern::Mentioned, false).await, ["other#1", "secret#1"]);

    // An unreadable repository's issues concern nobody any more.
    let bob = abide_forge::accounts::find(forge, &"bob".parse().unwrap()).await.unwrap().unwrap();
    abide_forge::repos::collaborators::remove(forge, &world.alice, &secret, &bob).await.expect("removed");
    assert_eq!(world.mine(&world.bob, Concern::Created, false).await, [""; 0]);
    assert_eq!(world.mine(&world.bob, Concern::All, false).await, ["tool#2", "tool#1"]);

    let wish = Wish { concern: Concern::All, theirs: false, filter: Filter::default(), since: None };
    assert!(search::mine(forge, &Caller::anonymous(None), wish, FIRST).await.is_err());
    let request = create::Request { title: "late".into(), ..create::Request::default() };
    let late = create::create(forge, &world.bob, &world.repo, request).await.expect("opened");
    let filter = Filter::parse("is:open").unwrap();
    let wish = Wish { concern: Concern::Created, theirs: false, filter, since: Some(late.created_at) };
    assert_eq!(names(&search::mine(forge, &world.bob, wish, FIRST).await.expect("readable")), ["tool#3"]);
}
