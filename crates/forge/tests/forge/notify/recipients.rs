//! Recipients of notifications, and their reasons.

use super::*;
use abide_core::WatchLevel::{All, Ignore};
use abide_forge::Access;
use abide_forge::accounts::suspend;
use abide_forge::issues::change::{self, Change, Names};
use abide_forge::issues::{review, subscribe};
use abide_forge::notify::State;
use abide_forge::repos::marks;
use rstest::rstest;
use std::time::Duration;

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn everyone_is_told_for_their_reason_and_never_of_what_they_did_themselves(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    world.watch(&world.bob, All).await;
    let issue = world.open(&world.carol, "Broken", "it is, @dave").await;
    assert_eq!(world.inbox(&world.bob).await, [(Reason::Watching, "Broken".into())]);
    assert_eq!(world.inbox(&world.dave).await, [(Reason::Mention, "Broken".into())]);
    assert_eq!(world.inbox(&world.carol).await, [], "she wrote it");
    assert_eq!(world.inbox(&world.ann).await, [], "owning is not watching");
    world.all_read().await;

    world.say(&world.eve, &issue, "me too").await;
    world.say(&world.ann, &issue, "let us see").await;
    assert_eq!(world.inbox(&world.carol).await, [(Reason::Author, "Broken".into())]);
    assert_eq!(world.inbox(&world.eve).await, [(Reason::Comment, "Broken".into())], "who comments hears of it");
    world.all_read().await;

    world.share("bob", Role::Triage).await;
    let assign = Change { assignees: Some(Names::Add(vec!["bob".into()])), ..Change::default() };
    change::change(world.forge(), &world.ann, &world.repo, issue.number, assign).await.expect("assigned");
    let mut reported: Vec<_> = world.inbox(&world.bob).await.into_iter().map(|(reason, _)| reason).collect();
    reported.sort();
    assert_eq!(reported, [Reason::Assign, Reason::Lifecycle]);
    assert_eq!(world.inbox(&world.carol).await, [], "who is responsible concerns them alone");
    world.all_read().await;

    let other = world.open(&world.ann, "Other", "").await;
    subscribe::set(world.forge(), &world.dave, &world.repo, &other, true).await.expect("subscribed");
    change::close(world.forge(), &world.ann, &world.repo, other.number, None).await.expect("closed");
    assert_eq!(world.inbox(&world.dave).await, [(Reason::Manual, "Other".into())]);
    world.all_read().await;

    // There are no pull requests yet; whoever has one asks this way.
    let eve = "eve".parse().expect("a name");
    review::request(world.forge(), &world.ann, &world.repo, other.number, &eve).await.expect("asked");
    assert_eq!(world.inbox(&world.eve).await, [(Reason::ReviewRequested, "Other".into())]);
    assert_eq!(world.who().await, ["eve"]);
    world.all_read().await;
    world.say(&world.ann, &other, "it waits for you").await;
    assert_eq!(
        world.inbox(&world.eve).await,
        [(Reason::ReviewRequested, "Other".into())],
        "who is asked hears the rest"
    );
    world.all_read().await;

    world.share("carol", Role::Admin).await;
    world.all_read().await;
    marks::archive(world.forge(), &world.carol, &world.repo).await.expect("archived");
    assert_eq!(world.inbox(&world.ann).await, [(Reason::Lifecycle, "Archived".into())]);
    assert_eq!(world.inbox(&world.bob).await, [(Reason::Watching, "Archived".into())]);
    assert_eq!(world.inbox(&world.carol).await, [], "she did it");
    world.all_read().await;

    abide_forge::attention::star::star(world.forge(), &world.dave, &world.repo).await.expect("starred");
    assert_eq!(world.who().await, [""; 0]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn who_ignores_a_repository_hears_only_when_spoken_to(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let issue = world.open(&world.bob, "Broken", "").await;
    world.watch(&world.bob, Ignore).await;
    world.say(&world.ann, &issue, "why?").await;
    assert_eq!(world.inbox(&world.bob).await, []);
    world.say(&world.ann, &issue, "@bob why?").await;
    assert_eq!(world.inbox(&world.bob).await, [(Reason::Mention, "Broken".into())]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_suspended_and_those_who_lost_access_are_told_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    for caller in [&world.bob, &world.carol, &world.dave] {
        world.watch(caller, All).await;
    }
    world.share("dave", Role::Read).await;
    world.all_read().await;
    suspend::set_suspended(world.forge(), id(&world.bob), true).await.expect("suspended");
    let issue = world.open(&world.ann, "Secret", "@bob @carol").await;
    // Before anyone has been told, the repository becomes private.
    marks::set_visibility(world.forge(), &world.ann, &world.repo, Visibility::Private).await.expect("private");
    world.settle().await;
    assert_eq!(world.inbox(&world.carol).await, []);
    assert_eq!(world.inbox(&world.dave).await.len(), 2, "dave still reads it");
    suspend::set_suspended(world.forge(), id(&world.bob), false).await.expect("back");
    marks::set_visibility(world.forge(), &world.ann, &world.repo, Visibility::Public).await.expect("public");
    assert_eq!(world.inbox(&world.bob).await, [], "what was missed stays so, and what happened in private is not told");
    assert_eq!(world.inbox(&world.carol).await, []);
    world.say(&world.ann, &issue, "in public").await;
    assert_eq!(world.inbox(&world.carol).await, [(Reason::Mention, "Secret".into())], "by her subscription");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_may_no_longer_be_read_leaves_inbox_and_count_and_comes_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    world.watch(&world.bob, All).await;
    let issue = world.open(&world.ann, "Plans", "").await;
    let item = world.items(&world.bob, false).await.remove(0);
    marks::set_visibility(world.forge(), &world.ann, &world.repo, Visibility::Private).await.expect("private");
    assert!(world.items(&world.bob, true).await.is_empty());
    let thread = item.thread.to_string();
    let shown = inbox::show(world.forge(), &world.bob, &thread).await;
    assert!(matches!(shown, Err(Access::NotFound)), "{shown:?}");
    assert!(inbox::waiting(world.forge(), &world.bob).await.expect("readable").is_empty());
    world.say(&world.ann, &issue, "among us").await;
    assert!(world.items(&world.bob, true).await.is_empty());

    marks::set_visibility(world.forge(), &world.ann, &world.repo, Visibility::Public).await.expect("public");
    assert_eq!(world.inbox(&world.bob).await, [(Reason::Watching, "Plans".into())], "as he was told in public");
    assert_eq!(inbox::show(world.forge(), &world.bob, &thread).await.expect("there").thread, item.thread);
    let strangers = inbox::show(world.forge(), &world.carol, &thread).await;
    assert!(matches!(strangers, Err(Access::NotFound)), "it is not hers: {strangers:?}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_collaborator_was_told_in_private_is_hidden_from_who_they_are_later(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    marks::set_visibility(world.forge(), &world.ann, &world.repo, Visibility::Private).await.expect("private");
    world.share("bob", Role::Read).await;
    world.all_read().await;
    let issue = world.open(&world.ann, "Plans", "").await;
    assert_eq!(world.inbox(&world.bob).await.len(), 1);
    let bob = world.account("bob").await;
    collaborators::remove(world.forge(), &world.ann, &world.repo, &bob).await.expect("removed");
    assert_eq!(world.inbox(&world.bob).await, []);
    marks::set_visibility(world.forge(), &world.ann, &world.repo, Visibility::Public).await.expect("public");
    assert_eq!(world.inbox(&world.bob).await, [], "it happened in private");
    world.say(&world.ann, &issue, "for everyone").await;
    assert_eq!(world.inbox(&world.bob).await.len(), 1);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_muted_thread_is_silent_until_someone_speaks_to_one(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    world.watch(&world.bob, All).await;
    let issue = world.open(&world.ann, "Noise", "").await;
    let item = world.items(&world.bob, false).await.remove(0);
    assert!(!item.muted);
    inbox::set_muted(world.forge(), &world.bob, &item, true).await.expect("muted");
    let holds = subscribe::of(world.forge(), &world.bob, &issue).await.expect("readable").expect("said");
    assert!(!holds.subscribed, "muting is what unsubscribing from the issue is");
    world.all_read().await;
    world.say(&world.ann, &issue, "more").await;
    assert_eq!(world.inbox(&world.bob).await, []);
    world.say(&world.ann, &issue, "@bob?").await;
    assert_eq!(world.inbox(&world.bob).await, [(Reason::Mention, "Noise".into())]);
    let item = world.items(&world.bob, false).await.remove(0);
    assert!(item.muted, "to be spoken to once is not to listen again");
    inbox::set_muted(world.forge(), &world.bob, &item, false).await.expect("heard again");
    world.all_read().await;
    world.say(&world.ann, &issue, "more").await;
    assert_eq!(world.inbox(&world.bob).await.len(), 1);

    // Changes of the repository are a thread too.
    world.all_read().await;
    marks::archive(world.forge(), &world.ann, &world.repo).await.expect("archived");
    let item = world.items(&world.bob, false).await.remove(0);
    inbox::set_muted(world.forge(), &world.bob, &item, true).await.expect("muted");
    world.all_read().await;
    marks::unarchive(world.forge(), &world.ann, &world.repo).await.expect("unarchived");
    assert_eq!(world.inbox(&world.bob).await, []);
    world.open(&world.ann, "Something else", "").await;
    assert_eq!(world.inbox(&world.bob).await.len(), 1);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_thread_stands_once_in_the_inbox_with_its_strongest_reason(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    world.watch(&world.bob, All).await;
    let issue = world.open(&world.ann, "Long", "").await;
    for text in ["one", "@bob two", "three", "four"] {
        world.rig.clock.advance(Duration::from_secs(1));
        world.say(&world.ann, &issue, text).await;
    }
    let items = world.items(&world.bob, false).await;
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].reason, Reason::Mention, "the mention is not hidden by what came after");
    assert_eq!(items[0].notified_at, abide_core::Clock::now(&world.rig.clock));

    // Read on its page; what comes then is another matter.
    assert!(inbox::opened(world.forge(), &world.bob, &world.repo, &issue).await.expect("opened"));
    assert!(!inbox::opened(world.forge(), &world.bob, &world.repo, &issue).await.expect("opened"));
    assert_eq!(world.inbox(&world.bob).await, []);
    assert_eq!(world.items(&world.bob, true).await[0].state, State::Read);
    world.rig.clock.advance(Duration::from_secs(1));
    let seen = world.rig.clock.clone();
    world.say(&world.carol, &issue, "five").await;
    let item = world.items(&world.bob, false).await.remove(0);
    assert_eq!(item.reason, Reason::Mention, "his subscription came from the mention");
    let before = abide_core::Clock::now(&seen).minus(Duration::from_secs(1));
    assert_eq!(inbox::mark_all(world.forge(), &world.bob, None, Some(before)).await.expect("marked"), 0);
    assert_eq!(world.inbox(&world.bob).await.len(), 1);
    inbox::mark(world.forge(), &world.bob, &item, State::Done).await.expect("put away");
    assert!(world.items(&world.bob, true).await.is_empty());
    world.say(&world.carol, &issue, "six").await;
    assert_eq!(world.items(&world.bob, true).await.len(), 1);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn nobody_without_an_account_has_an_inbox(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let stranger = Caller::anonymous(None);
    assert!(inbox::list(world.forge(), &stranger, Filter::default(), FIRST).await.is_err());
    assert!(inbox::mark_all(world.forge(), &stranger, None, None).await.is_err());
    assert_eq!(inbox::unread(world.forge(), &stranger).await.expect("readable"), 0);
}
