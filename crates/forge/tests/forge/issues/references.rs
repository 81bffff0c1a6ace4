//! Mentions and references in texts.

use super::{make, share, world};
use crate::log::stored_json;
use abide_core::repo::{Role, Visibility};
use abide_forge::issues::change::{Change, change};
use abide_forge::issues::comment;
use abide_forge::repos::marks;
use abide_testkit::Engine;
use rstest::rstest;

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_named_hears_of_it_unless_they_may_not_read_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let forge = world.forge();
    let issue = world.open(&world.alice, "x", "cc @carol, `@bob`, @nobody and @alice").await;
    let heard = world.heard_by(&issue).await;
    let ids = |list: &[(abide_core::UserId, String)]| list.iter().map(|(id, _)| Some(*id)).collect::<Vec<_>>();
    assert_eq!(ids(&heard), [world.alice.user_id(), world.carol.user_id()], "bob is in code");
    let created = world.events().await.into_iter().find(|event| event.kind == "issue_created").expect("told");
    let payload: serde_json::Value =
        serde_json::from_str(&stored_json(&world.rig.store, created.seq).await).expect("JSON");
    assert_eq!(payload["mentions"], serde_json::json!([world.carol.user_id().map(|id| id.get())]));

    // Changing a text names only whom it did not name before.
    let edited = Change { body: Some("@carol @bob".into()), ..Change::default() };
    change(forge, &world.alice, &world.repo, 1, edited).await.expect("edited");
    let event = world.events().await.into_iter().find(|event| event.kind == "issue_edited").expect("told");
    let payload: serde_json::Value =
        serde_json::from_str(&stored_json(&world.rig.store, event.seq).await).expect("JSON");
    assert_eq!(payload["mentions"], serde_json::json!([world.bob.user_id().map(|id| id.get())]));

    let secret = make(forge, &world.alice, "secret", Visibility::Private).await;
    share(forge, &world.alice, &secret, "bob", Role::Read).await;
    let plan = world.open_in(&world.alice, &secret, "plan", "@bob @carol").await;
    assert_eq!(
        ids(&world.heard_by(&plan).await),
        [world.alice.user_id(), world.bob.user_id()],
        "carol may not read it"
    );
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_reference_is_told_there_once_and_only_to_those_who_may_know(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let forge = world.forge();
    let target = world.open(&world.alice, "target", "").await;
    world.open(&world.carol, "other", "see #1 and #1, #99 and #2").await;
    comment::add(forge, &world.carol, &world.repo, 2, "again: #1").await.expect("said");
    assert_eq!(world.timeline(&world.alice, &target).await, ["cross-referenced"]);

    let secret = make(forge, &world.bob, "secret", Visibility::Private).await;
    world.open_in(&world.bob, &secret, "plan", "because of alice/tool#1").await;
    assert_eq!(world.timeline(&world.bob, &target).await.len(), 2);
    assert_eq!(world.timeline(&world.alice, &target).await.len(), 1, "alice may not know of the other repository");

    // Nobody writes into what they may not read, or into what is archived.
    let quiet = make(forge, &world.alice, "quiet", Visibility::Private).await;
    let plan = world.open_in(&world.alice, &quiet, "plan", "").await;
    world.open(&world.carol, "probe", "alice/quiet#1").await;
    assert_eq!(world.timeline(&world.alice, &plan).await, [""; 0]);
    marks::archive(forge, &world.alice, &quiet).await.expect("archived");
    world.open(&world.alice, "late", "alice/quiet#1").await;
    assert_eq!(world.timeline(&world.alice, &plan).await, [""; 0]);

    // A repository that becomes private hides its references.
    marks::set_visibility(forge, &world.alice, &world.repo, Visibility::Private).await.expect("hidden");
    let open = make(forge, &world.carol, "open", Visibility::Public).await;
    let elsewhere = world.open_in(&world.carol, &open, "elsewhere", "").await;
    world.open(&world.alice, "from inside", "carol/open#1").await;
    assert_eq!(world.timeline(&world.carol, &elsewhere).await, [""; 0]);
    assert_eq!(world.timeline(&world.alice, &elsewhere).await, ["cross-referenced"]);
}
