//! Text that was removed or edited away is nowhere: no feed, no mail, no inbox, no log.

use crate::log::stored_json;
use crate::rig::{Rig, rig_with};
use abide_core::WatchLevel;
use abide_core::repo::Visibility;
use abide_forge::By;
use abide_forge::attention::watch;
use abide_forge::feeds::{self, Feed, Item, Tail};
use abide_forge::issues::{change, comment, create, labels};
use abide_forge::jobs::{Kind, manage};
use abide_forge::notify::{Filter, inbox};
use abide_forge::repos::{Page, Repo, delete, edit, purge};
use abide_forge::{Caller, consumers};
use abide_store::accounts::emails;
use abide_store::{StoreError, audit, events};
use abide_testkit::Engine;
use rstest::rstest;
use serde_json::json;
use std::time::Duration;

/// Text that was written and removed.
const GONE: &str = "marmalade";

struct World {
    rig: Rig,
    alice: Caller,
    bob: Caller,
    repo: Repo,
}

async fn world(engine: Engine) -> World {
    let rig = rig_with(engine, |_| {}).await;
    let (repo, _) = rig.repo_with_commit().await;
    let (alice, bob) = (rig.caller("alice").await, rig.user("bob").await);
    consumers::register(&rig.forge, &consumers::all()).await.expect("made known");
    let user = bob.user_id().expect("an account");
    let id = emails::list(&mut rig.store.read().await.expect("readable"), user).await.expect("readable")[0].id;
    let _: Result<bool, StoreError> = rig.store.write(id, |tx, id| Box::pin(emails::verify(tx, *id))).await;
    watch::set(&rig.forge, &bob, &repo, WatchLevel::All).await.expect("chosen");
    World { rig, alice, bob, repo }
}

impl World {
    async fn settle(&self) {
        consumers::catch_up(&self.rig.forge).await.expect("taken in");
    }

    /// Everything that any feed or stream shows to anyone.
    async fn feed(&self) -> Vec<Item> {
        let (forge, owner) = (&self.rig.forge, self.alice.user_id().expect("an account"));
        let mut all = Vec::new();
        for feed in [Feed::Public, Feed::Repo(self.repo.id), Feed::Actor(owner), Feed::Home(owner)] {
            all.extend(feeds::read(forge, &self.alice, feed, None, 100).await.expect("readable").items);
        }
        let mut tail = Tail::new(forge, &self.alice, Some(0)).await.expect("readable");
        all.extend(tail.next(Duration::ZERO).await.expect("readable"));
        all
    }

    /// Contents of both logs: they outlive texts of people.
    async fn logged(&self) -> (String, String) {
        let mut conn = self.rig.store.read().await.expect("readable");
        let events = events::after(&mut conn, 0, 10_000).await.expect("readable");
        let audit = audit::page(&mut conn, &audit::Filter::default(), i64::MAX, 1000).await.expect("readable");
        drop(conn);
        let mut stored = String::new();
        for event in events {
            stored += &stored_json(&self.rig.store, event.seq).await;
        }
        (stored, format!("{audit:?}"))
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn removed_and_edited_text_is_in_no_feed_stream_inbox_or_log(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let (forge, alice, repo) = (&world.rig.forge, &world.alice, &world.repo);
    let request = create::Request {
        title: "About marmalade".into(),
        body: "marmalade in the text".into(),
        labels: vec!["marmalade-label".into()],
        ..create::Request::default()
    };
    let issue = create::create(forge, alice, repo, request).await.expect("opened");
    let kept = comment::add(forge, alice, repo, issue.number, "marmalade, and then honey").await.expect("said");
    let gone = comment::add(forge, alice, repo, issue.number, "only marmalade").await.expect("said");
    world.settle().await;
    let before = world.feed().await;
    assert!(before.iter().any(|item| item.excerpt == "only marmalade"), "it was shown while it was there");
    assert!(before.iter().any(|item| item.title == "About marmalade"));

    comment::edit(forge, alice, repo, &kept.id.to_string(), "honey").await.expect("edited");
    comment::remove(forge, alice, repo, &gone.id.to_string()).await.expect("removed");
    let text = change::Change {
        title: Some("About honey".into()),
        body: Some("honey in the text".into()),
        ..change::Change::default()
    };
    change::change(forge, alice, repo, issue.number, text).await.expect("changed");
    labels::remove(forge, alice, repo, "marmalade-label").await.expect("removed");
    for words in ["all about marmalade", "all about honey"] {
        let about = edit::Request { description: Some(words.into()), ..edit::Request::default() };
        edit::edit(forge, alice, repo, about).await.expect("described");
    }
    world.settle().await;

    let reported = world.feed().await;
    assert!(
        reported.iter().any(|item| item.excerpt == "honey" && item.title == "About honey"),
        "the live text is shown"
    );
    for item in &reported {
        assert!(!format!("{item:?}").contains(GONE), "{item:?}");
    }
    let (events, audit) = world.logged().await;
    assert!(!events.contains(GONE), "{events}");
    // The name of a label that someone removed stays with the record of the removal, like every name.
    assert!(!audit.replace("marmalade-label", "").contains(GONE), "{audit}");
    let filter = Filter { all: true, ..Filter::default() };
    let items = inbox::list(forge, &world.bob, filter, Page { limit: 10, offset: 0 }).await.expect("readable");
    assert_eq!(items[0].title, "About honey");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_queued_mail_is_written_when_it_is_sent(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let (forge, alice, repo) = (&world.rig.forge, &world.alice, &world.repo);
    let request = create::Request { title: "A matter".into(), body: "only marmalade".into(), ..Default::default() };
    let issue = create::create(forge, alice, repo, request).await.expect("opened");
    world.settle().await;
    manage::run_now(forge, &By::Operator, Kind::NotifyMail, json!({})).await.expect("queued");
    let change = change::Change { body: Some("honey".into()), ..change::Change::default() };
    change::change(forge, alice, repo, issue.number, change).await.expect("changed");
    world.rig.run_jobs().await;
    let outbox = std::fs::read_dir(world.rig.database.data_dir().join("outbox")).expect("a mail went out");
    let mails: Vec<_> =
        outbox.map(|file| std::fs::read_to_string(file.expect("there").path()).expect("text")).collect();
    assert!(mails.iter().any(|mail| mail.contains("honey") && mail.contains("A matter")), "{mails:?}");
    assert!(mails.iter().all(|mail| !mail.contains(GONE)), "{mails:?}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_is_gone_for_good_leaves_no_description_and_no_commit_message(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let (forge, alice) = (&world.rig.forge, &world.alice);
    let request = abide_forge::repos::create::Request {
        name: "secret".into(),
        description: "described as marmalade".into(),
        visibility: Visibility::Private,
        default_branch: None,
        init: Some(abide_forge::repos::create::Init { readme: true, ..Default::default() }),
    };
    let secret = abide_forge::repos::create::create(forge, alice, request).await.expect("created").repo;
    world.settle().await;
    assert!(world.logged().await.0.contains("Initial commit"), "while it is there, its pushes are told");
    delete::delete(forge, alice, &secret).await.expect("deleted");
    world.settle().await;
    purge::purge(forge, &Caller::operator(), &secret).await.expect("gone");
    world.settle().await;
    let (events, audit) = world.logged().await;
    for left in [&events, &audit] {
        assert!(!left.contains(GONE) && !left.contains("Initial commit"), "{left}");
        assert!(left.contains("star_count") && left.contains("watcher_count") && left.contains("updated_at"), "{left}");
    }
}
