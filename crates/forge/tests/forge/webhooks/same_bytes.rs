//! A delivery says the same however often it is sent; until it is sent first, it says nothing that was taken back.

use super::receiver::Reply;
use super::{Scene, scene};
use abide_forge::issues::{self, comment};
use abide_forge::social::star;
use abide_forge::webhooks::{ask, send};
use abide_store::events::{self, Event};
use abide_store::{StoreError, webhooks};
use abide_testkit::Engine;
use rstest::rstest;
use serde_json::json;

const ZERO: &str = "0000000000000000000000000000000000000000";

/// Sends until the receiver has got so many, and then dies without noting the answer.
async fn dies_after(scene: &Scene, count: usize) {
    let forge = scene.rig.forge.clone();
    let sending = tokio::spawn(async move { send::catch_up(&forge).await });
    scene.receiver.wait_for(count).await;
    sending.abort();
    let _ = sending.await;
    let freed: Result<u64, StoreError> =
        scene.rig.store.write((), |tx, ()| Box::pin(webhooks::expire_of(tx, "", "nobody"))).await;
    assert_eq!(freed.expect("written"), 1, "the hold of the sender that died");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_try_after_a_crash_sends_the_bytes_of_the_first(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let scene = scene(engine).await;
    let hook = scene.hook(&["push"]).await;
    let git = |args: &[&str]| scene.rig.git(scene.repo.id, args);
    let one = git(&["rev-parse", "refs/heads/main"]);
    let tree = git(&["hash-object", "-w", "-t", "tree", "/dev/null"]);
    let two = git(&["commit-tree", &tree, "-p", &one, "-m", "two"]);
    git(&["update-ref", "refs/heads/side", &two]);
    let event = Event {
        actor: scene.alice.user_id(),
        kind: "push",
        repo: Some(scene.repo.id),
        source_kind: "repo",
        source_id: scene.repo.id.get(),
        public: true,
        payload: json!({
            "repo_id": scene.repo.id.get(),
            "refs": [{ "name": "refs/heads/side", "before": ZERO, "after": two }],
        }),
    };
    let written: Result<(), StoreError> =
        scene.rig.store.write(event, |tx, event| Box::pin(async move { events::append(tx, event).await })).await;
    written.expect("written");
    scene.take_in().await;
    scene.receiver.next([Reply::Hang]);
    dies_after(&scene, 1).await;
    // The default branch has the commit too, so reading once more would find that the new branch brought nothing.
    git(&["update-ref", "refs/heads/main", &two]);
    scene.receiver.let_go();
    scene.deliver().await;
    let got = scene.receiver.got();
    assert_eq!(got.len(), 2);
    assert_eq!(got[0].json()["commits"][0]["message"], "two");
    assert_eq!(got[0].body, got[1].body, "byte for byte");
    assert_eq!(got[0].guid(), got[1].guid());
    assert_eq!(got[0].header("x-hub-signature-256"), got[1].header("x-hub-signature-256"));

    let sent = scene.deliveries(&hook).await.pop().expect("the push");
    ask::redeliver(&scene.rig.forge, &scene.alice, &scene.repo, &hook, sent.id).await.expect("allowed");
    scene.deliver().await;
    assert_eq!(scene.receiver.got()[2].body, got[0].body, "a redelivery too");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_waits_says_nothing_that_was_taken_back_meanwhile(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = scene(engine).await;
    let hook = scene.hook(&["star", "issues", "issue_comment"]).await;
    let (forge, alice, repo) = (&scene.rig.forge, &scene.alice, &scene.repo);
    scene.receiver.next([Reply::Status(503)]);
    star::star(forge, alice, repo).await.expect("allowed");
    scene.deliver().await;
    let new = issues::create::Request { title: "Title".into(), body: "marmalade".into(), ..Default::default() };
    let issue = issues::create::create(forge, alice, repo, new).await.expect("allowed");
    let said = comment::add(forge, alice, repo, issue.number, "marmalade too").await.expect("allowed");
    scene.take_in().await;
    comment::remove(forge, alice, repo, &said.id.to_string()).await.expect("allowed");
    let change = issues::change::Change { body: Some("honey".into()), ..Default::default() };
    issues::change::change(forge, alice, repo, issue.number, change).await.expect("allowed");
    scene.pass(60);
    scene.deliver().await;
    let got = scene.receiver.got();
    let opened = got.iter().find(|got| got.json()["action"] == "opened").expect("sent").json();
    assert_eq!(opened["issue"]["body"], "honey");
    assert!(got.iter().all(|got| !String::from_utf8_lossy(&got.body).contains("marmalade")));
    for sent in scene.deliveries(&hook).await {
        let whole = abide_forge::webhooks::show::delivery(forge, &hook, &sent.id.to_string()).await.expect("there");
        assert!(!whole.payload.contains("marmalade"), "{}", whole.payload);
    }
}
