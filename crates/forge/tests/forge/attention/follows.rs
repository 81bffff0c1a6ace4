//! Following people.

use super::*;
use crate::lifecycle::world;
use abide_core::policy::DenyCode;
use abide_forge::accounts::suspend;
use abide_forge::attention::{AttentionError, follow};
use abide_forge::{Access, Caller};
use rstest::rstest;

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn following_is_told_once_and_seen_by_both(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let forge = world.forge();
    let (alice, bob) = (world.account("alice").await, world.account("bob").await);
    assert!(follow::follow(forge, &world.bob, &alice).await.expect("followed"));
    assert!(!follow::follow(forge, &world.bob, &alice).await.expect("followed before"));
    assert!(follow::follows(forge, bob.id, alice.id).await.expect("readable"));
    assert!(!follow::follows(forge, alice.id, bob.id).await.expect("readable"));
    assert_eq!(names(&follow::followers(forge, alice.id, FIRST).await.expect("readable")), ["bob"]);
    assert_eq!(names(&follow::following(forge, bob.id, FIRST).await.expect("readable")), ["alice"]);
    assert_eq!(follow::counts(forge, alice.id).await.expect("readable"), (1, 0));
    assert_eq!(follow::counts(forge, bob.id).await.expect("readable"), (0, 1));
    assert!(follow::unfollow(forge, &world.bob, &alice).await.expect("let go"));
    assert!(!follow::unfollow(forge, &world.bob, &alice).await.expect("let go before"));
    assert_eq!(follow::counts(forge, alice.id).await.expect("readable"), (0, 0));
    assert_eq!(world.deeds("bob").await, ["follow", "unfollow"]);
    assert_eq!(world.events("follow").await, 1);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn nobody_follows_themselves_a_ghost_or_without_a_login(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = rig_with(engine, |settings| settings.attention.follows.times = 2).await;
    let world = of(rig).await;
    let forge = world.forge();
    let (alice, bob) = (world.account("alice").await, world.account("bob").await);
    let refused = follow::follow(forge, &world.alice, &alice).await;
    assert!(matches!(refused, Err(AttentionError::Oneself)), "{refused:?}");
    let refused = follow::follow(forge, &Caller::anonymous(None), &alice).await;
    assert!(matches!(refused, Err(AttentionError::Access(Access::Denied(DenyCode::LoginRequired)))), "{refused:?}");

    follow::follow(forge, &world.alice, &bob).await.expect("followed");
    suspend::set_suspended(forge, bob.id, true).await.expect("suspended");
    assert_eq!(follow::counts(forge, alice.id).await.expect("readable"), (0, 0));
    follow::unfollow(forge, &world.alice, &bob).await.expect("one may let go of anyone");
    let refused = follow::follow(forge, &world.alice, &bob).await;
    assert!(matches!(refused, Err(AttentionError::Access(Access::NotFound))), "{refused:?}");
    suspend::set_suspended(forge, bob.id, false).await.expect("back");
    let refused = follow::follow(forge, &world.alice, &bob).await;
    assert!(matches!(refused, Err(AttentionError::TooOften { .. })), "{refused:?}");
}
