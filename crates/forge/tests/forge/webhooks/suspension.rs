//! A receiver that fails again and again is left in peace, and gets everything once it is back.

use super::receiver::Reply;
use super::sending::happen;
use super::{change, setup};
use crate::log::count_of_kind;
use abide_core::notify::Reason;
use abide_core::webhooks::DeliveryState;
use abide_forge::attention::star;
use abide_forge::notify::{Filter, inbox};
use abide_forge::repos::Page;
use abide_forge::webhooks::{ask, edit};
use abide_store::StoreError;
use abide_store::accounts::emails;
use abide_testkit::Engine;
use mail_parser::MessageParser;
use rstest::rstest;

const QUARTER: u64 = 15 * 60;

#[rstest]
#[case::refusing(Reply::Status(404))]
#[case::broken(Reply::Status(500))]
#[tokio::test(flavor = "multi_thread")]
async fn five_failures_suspend_a_hook_and_nothing_is_dropped(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] reply: Reply,
) {
    let setup = setup(engine).await;
    setup.verify_owner().await;
    let hook = setup.hook(&["star"]).await;
    setup.receiver.always(reply);
    happen(&setup, 5).await;
    // Each of five deliveries has up to eight tries.
    for _ in 0..40 {
        setup.deliver().await;
        if setup.seen(hook.id).await.breaker.open_since.is_some() {
            break;
        }
        setup.pass(3600);
    }
    let suspended = setup.seen(hook.id).await;
    assert_eq!(suspended.breaker.failures, 5);
    let now = abide_core::Clock::now(&setup.rig.clock);
    assert_eq!((suspended.breaker.open_since, suspended.next_at), (Some(now), None), "nothing waits yet");
    let rows = setup.deliveries(&hook).await;
    assert!(rows[1..].iter().all(|row| row.state == DeliveryState::Failed), "{rows:?}");
    assert_eq!(events_of(&setup, "webhook_suspended").await, 1);
    let url = setup.receiver.url();
    let host = url.split('/').nth(2).expect("an address");
    let notice = format!("Webhook to {host} suspended");
    assert_eq!(setup.inbox().await, [(Reason::Lifecycle, notice.clone())]);
    let mail = setup.only_mail().await;
    assert_eq!((mail.0.as_str(), mail.1), ("alice@example.org", format!("[alice/project] {notice}")));
    assert!(mail.2.contains("5 deliveries in a row failed"), "{}", mail.2);
    assert!(mail.2.contains(&format!("/alice/project/settings/webhooks/{}", hook.id)), "{}", mail.2);

    // New events are queued without an attempt.
    setup.receiver.clear();
    unstar(&setup).await;
    setup.pass(60);
    happen(&setup, 6).await;
    setup.deliver().await;
    assert!(setup.receiver.got().is_empty());
    let probe = setup.seen(hook.id).await.next_at.expect("a probe is planned");
    assert_eq!(probe, now.plus(std::time::Duration::from_secs(QUARTER)));

    // The oldest is the probe, every quarter of an hour, and keeps its place.
    for probes in 1..=3 {
        setup.pass(QUARTER);
        setup.deliver().await;
        setup.deliver().await;
        assert_eq!(setup.receiver.got().len(), probes);
    }
    let guids: Vec<_> = setup.receiver.got().iter().map(|got| got.guid()).collect();
    assert!(guids.iter().all(|guid| *guid == guids[0]), "{guids:?}");

    // Back again: the probe arrives and the others follow in order.
    setup.receiver.always(Reply::Status(200));
    setup.receiver.clear();
    setup.pass(QUARTER);
    setup.deliver().await;
    let rows = setup.deliveries(&hook).await;
    let queued: Vec<_> = rows[6..].iter().map(|row| row.guid.clone()).collect();
    let got: Vec<_> = setup.receiver.got().iter().map(|got| got.guid()).collect();
    assert_eq!((got.len(), got), (7, queued));
    assert!(rows[6..].iter().all(|row| row.state == DeliveryState::Ok));
    assert_eq!(setup.seen(hook.id).await.breaker, abide_core::webhooks::Breaker::default());
    assert_eq!(events_of(&setup, "webhook_resumed").await, 1);
    let notice = format!("Webhook to {host} resumed");
    assert_eq!(setup.inbox().await, [(Reason::Lifecycle, notice.clone())]);
    let mail = setup.only_mail().await;
    assert_eq!((mail.0.as_str(), mail.1), ("alice@example.org", format!("[alice/project] {notice}")));
    assert!(mail.2.contains("responds again"), "{}", mail.2);
}

/// Notifications of the repository's owner.
impl super::Setup {
    /// Mail goes only to addresses that somebody has proved to read.
    async fn verify_owner(&self) {
        let owner = self.alice.user_id().expect("an account");
        let list = emails::list(&mut self.rig.store.read().await.expect("readable"), owner).await.expect("readable");
        let done: Result<bool, StoreError> =
            self.rig.store.write(list[0].id, |tx, id| Box::pin(emails::verify(tx, *id))).await;
        assert!(done.expect("written"));
    }

    /// Contents of the inbox.
    async fn inbox(&self) -> Vec<(Reason, String)> {
        self.take_in().await;
        let page = Page { limit: 100, offset: 0 };
        let items = inbox::list(&self.rig.forge, &self.alice, Filter::default(), page).await.expect("readable");
        items.into_iter().map(|item| (item.reason, item.title)).collect()
    }

    /// The one mail that was sent: to whom, about what, and what it says. It is taken away.
    async fn only_mail(&self) -> (String, String, String) {
        self.rig.run_jobs().await;
        let entries = std::fs::read_dir(self.rig.database.data_dir().join("outbox")).expect("something was sent");
        let files: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
        let [file] = &files[..] else { panic!("{files:?}") };
        let bytes = std::fs::read(file).expect("readable");
        std::fs::remove_file(file).expect("removable");
        let mail = MessageParser::default().parse(&bytes).expect("a mail");
        let to = mail.to().and_then(|to| to.first()).and_then(|to| to.address()).expect("a recipient");
        let text = mail.body_text(0).expect("a text");
        (to.to_owned(), mail.subject().expect("a subject").to_owned(), text.into_owned())
    }
}

/// An odd number of changes has left a star.
async fn unstar(setup: &super::Setup) {
    assert!(star::unstar(&setup.rig.forge, &setup.alice, &setup.repo).await.expect("allowed"));
}

async fn events_of(setup: &super::Setup, kind: &str) -> i64 {
    count_of_kind(&setup.rig.store, setup.repo.id, kind).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_by_hand_or_changes_the_hook_does_not_wait_for_the_probe(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine).await;
    let hook = setup.hook(&["star"]).await;
    setup.receiver.always(Reply::Status(410));
    happen(&setup, 7).await;
    setup.deliver().await;
    assert!(setup.seen(hook.id).await.breaker.open_since.is_some());
    assert_eq!(setup.receiver.got().len(), 5);
    ask::ping(&setup.rig.forge, &setup.alice, &setup.repo, &hook).await.expect("allowed");
    setup.deliver().await;
    assert_eq!(setup.receiver.got().len(), 6, "the oldest was tried at once");
    setup.receiver.always(Reply::Status(200));
    setup.receiver.clear();
    edit::edit(&setup.rig.forge, &setup.alice, &setup.repo, hook.id, &change(&setup.receiver.url(), &["star"]))
        .await
        .expect("allowed");
    setup.deliver().await;
    let events: Vec<_> = setup.receiver.got().iter().map(|got| got.event().to_owned()).collect();
    assert_eq!(events, ["star", "star", "ping"]);
}
