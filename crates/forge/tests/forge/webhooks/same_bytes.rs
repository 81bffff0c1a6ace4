//! A delivery says the same however often it is sent; until it is sent first, it says nothing that was taken back.

use super::receiver::Reply;
use super::{Setup, setup};
use abide_core::event::PushedRef;
use abide_forge::By;
use abide_forge::attention::star;
use abide_forge::issues::{self, comment, labels};
use abide_forge::jobs::{Kind, manage};
use abide_forge::webhooks::{Change, Hook, ask, edit, send, show};
use abide_store::{StoreError, webhooks};
use abide_testkit::Engine;
use rstest::rstest;
use serde_json::json;

const ZERO: &str = "0000000000000000000000000000000000000000";

/// Sends until the receiver has got so many, and then dies without noting the answer.
async fn dies_after(setup: &Setup, count: usize) {
    let forge = setup.rig.forge.clone();
    let sending = tokio::spawn(async move { send::catch_up(&forge).await });
    setup.receiver.wait_for(count).await;
    sending.abort();
    let _ = sending.await;
    let freed: Result<u64, StoreError> =
        setup.rig.store.write((), |tx, ()| Box::pin(webhooks::expire_of(tx, "", "nobody"))).await;
    assert_eq!(freed.expect("written"), 1, "the hold of the sender that died");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_try_after_a_crash_sends_the_bytes_of_the_first(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup(engine).await;
    let hook = setup.hook(&["push"]).await;
    let git = |args: &[&str]| setup.rig.git(setup.repo.id, args);
    let one = git(&["rev-parse", "refs/heads/main"]);
    let tree = git(&["hash-object", "-w", "-t", "tree", "/dev/null"]);
    let two = git(&["commit-tree", &tree, "-p", &one, "-m", "two"]);
    git(&["update-ref", "refs/heads/side", &two]);
    let side =
        PushedRef { name: "refs/heads/side".into(), before: ZERO.into(), after: two.clone(), commits: Vec::new() };
    setup.pushed(vec![side]).await;
    setup.take_in().await;
    setup.receiver.next([Reply::Hang]);
    dies_after(&setup, 1).await;
    // The default branch has the commit too, so reading once more would find that the new branch brought nothing.
    git(&["update-ref", "refs/heads/main", &two]);
    encode_as(&setup, &hook, "form").await;
    setup.receiver.let_go();
    setup.deliver().await;
    let got = setup.receiver.got();
    assert_eq!(got.len(), 2);
    assert_eq!(got[0].json()["commits"][0]["message"], "two");
    assert_eq!(got[0].body, got[1].body, "byte for byte");
    assert_eq!(got[0].guid(), got[1].guid());
    assert!(got.iter().all(|got| got.header("content-type") == "application/json"));
    assert_eq!(got[0].header("x-hub-signature-256"), got[1].header("x-hub-signature-256"));

    let sent = setup.deliveries(&hook).await.pop().expect("the push");
    ask::redeliver(&setup.rig.forge, &setup.alice, &setup.repo, &hook, sent.id).await.expect("allowed");
    setup.deliver().await;
    let again = &setup.receiver.got()[2];
    assert_eq!(again.body, got[0].body, "a redelivery too");
    assert_eq!(again.header("content-type"), "application/json");

    ask::ping(&setup.rig.forge, &setup.alice, &setup.repo, &hook).await.expect("allowed");
    setup.deliver().await;
    let ping = &setup.receiver.got()[3];
    assert_eq!(ping.header("content-type"), "application/x-www-form-urlencoded", "a new delivery has the new type");
}

/// Changes the content type of a webhook.
async fn encode_as(setup: &Setup, hook: &Hook, content_type: &str) {
    let change = Change { content_type: Some(content_type.to_owned()), ..Change::default() };
    edit::edit(&setup.rig.forge, &setup.alice, &setup.repo, hook.id, &change).await.expect("allowed");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_waits_says_nothing_that_was_taken_back_meanwhile(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine).await;
    let hook = setup.hook(&["star", "issues", "issue_comment"]).await;
    let (forge, alice, repo) = (&setup.rig.forge, &setup.alice, &setup.repo);
    setup.receiver.next([Reply::Status(503)]);
    star::star(forge, alice, repo).await.expect("allowed");
    setup.deliver().await;
    let new = issues::create::Request { title: "Title".into(), body: "marmalade".into(), ..Default::default() };
    let issue = issues::create::create(forge, alice, repo, new).await.expect("allowed");
    let said = comment::add(forge, alice, repo, issue.number, "marmalade too").await.expect("allowed");
    let label = labels::Request { name: Some("marmalade jar".into()), ..Default::default() };
    labels::create(forge, alice, repo, label).await.expect("allowed");
    let change = issues::change::Change {
        title: Some("marmalade title".into()),
        labels: Some(issues::change::Names::Set(vec!["marmalade jar".into()])),
        ..Default::default()
    };
    issues::change::change(forge, alice, repo, issue.number, change).await.expect("allowed");
    setup.take_in().await;
    // The rows that wait hold no text, whatever becomes of it.
    for waiting in setup.deliveries(&hook).await.iter().filter(|waiting| waiting.attempts == 0) {
        let whole = abide_forge::webhooks::show::delivery(forge, &hook, &waiting.id.to_string()).await.expect("there");
        assert!(!whole.payload.contains("marmalade"), "{}", whole.payload);
    }
    comment::remove(forge, alice, repo, &said.id.to_string()).await.expect("allowed");
    labels::remove(forge, alice, repo, "marmalade jar").await.expect("allowed");
    let change = issues::change::Change { title: Some("Jam".into()), body: Some("honey".into()), ..Default::default() };
    issues::change::change(forge, alice, repo, issue.number, change).await.expect("allowed");
    setup.pass(60);
    setup.deliver().await;
    let got = setup.receiver.got();
    let opened = got.iter().find(|got| got.json()["action"] == "opened").expect("sent").json();
    assert_eq!((&opened["issue"]["body"], &opened["issue"]["title"]), (&json!("honey"), &json!("Jam")));
    // The titles that an issue had are in its timeline, for all who read it.
    let without_titles = |got: &super::receiver::Got| {
        let mut said = got.json();
        said["changes"] = json!(null);
        said.to_string()
    };
    assert!(got.iter().all(|got| !without_titles(got).contains("marmalade")));
    for sent in setup.deliveries(&hook).await {
        let whole = abide_forge::webhooks::show::delivery(forge, &hook, &sent.id.to_string()).await.expect("there");
        assert!(!whole.payload.contains("marmalade too") && !whole.payload.contains("jar"), "{}", whole.payload);
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn text_is_that_of_the_first_try_and_stays_that_until_the_log_is_pruned(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine).await;
    let hook = setup.hook(&["star", "issues"]).await;
    let (forge, alice, repo) = (&setup.rig.forge, &setup.alice, &setup.repo);
    setup.receiver.next([Reply::Status(503), Reply::Status(200), Reply::Status(503)]);
    star::star(forge, alice, repo).await.expect("allowed");
    setup.deliver().await;
    let new = issues::create::Request { title: "Title".into(), body: "first".into(), ..Default::default() };
    let issue = issues::create::create(forge, alice, repo, new).await.expect("allowed");
    let edit = async |body: &str| {
        let change = issues::change::Change { body: Some(body.into()), ..Default::default() };
        issues::change::change(forge, alice, repo, issue.number, change).await.expect("allowed");
    };
    setup.take_in().await;
    // A redelivery of what was never tried has the bytes of the first try too.
    let waiting = setup.deliveries(&hook).await.pop().expect("it waits");
    ask::redeliver(forge, alice, repo, &hook, waiting.id).await.expect("allowed");
    edit("second").await;
    setup.pass(60);
    setup.deliver().await;
    encode_as(&setup, &hook, "form").await;
    edit("third").await;
    setup.pass(60);
    setup.deliver().await;
    let bodies: Vec<_> = setup
        .receiver
        .got()
        .iter()
        // Deliveries that were first tried after the change are forms.
        .filter(|got| {
            serde_json::from_slice::<serde_json::Value>(&got.body).is_ok_and(|json| json["action"] == "opened")
        })
        .map(|got| got.body.clone())
        .collect();
    assert_eq!(bodies.len(), 3, "a try, its retry and the redelivery");
    assert!(bodies.iter().all(|body| *body == bodies[0]), "byte for byte");
    assert_eq!(setup.receiver.got()[2].json()["issue"]["body"], "second");

    // The log shows what the receiver got, to those who administer the repository, until it is pruned.
    let stranger = setup.rig.user("bob").await;
    assert!(show::hook(forge, &stranger, repo, &hook.id.to_string()).await.is_err());
    let whole = show::delivery(forge, &hook, &waiting.id.to_string()).await.expect("there");
    assert_eq!(whole.payload.as_bytes(), &bodies[0][..]);
    setup.rig.clock.advance(forge.settings().webhooks.retention + std::time::Duration::from_secs(1));
    manage::run_now(forge, &By::Operator, Kind::HistoryPrune, json!({})).await.expect("queued");
    setup.rig.run_jobs().await;
    assert!(show::delivery(forge, &hook, &waiting.id.to_string()).await.is_err());
}
