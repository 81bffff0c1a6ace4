//! Users, their tokens and their keys.

use crate::support::{World, new_user, run, sql, unit, user};
use abide_core::policy::Actor;
use abide_core::scope::{Scope, Scopes};
use abide_core::{Timestamp, UserId};
use abide_store::accounts::ssh_keys::{self, NewSshKey};
use abide_store::accounts::tokens::{self, NewToken};
use abide_store::accounts::users::{self, NewUser};
use abide_store::{Sql, Store, StoreError};
use abide_testkit::{Engine, TestClock};
use rstest::rstest;
use std::time::Duration;

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_found_by_name_and_id(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let new = NewUser { email: "Alice@Example.org".into(), site_admin: true, ..new_user("alice") };
    let id = unit!(world.store, new, |tx, new| users::insert(tx, new).await).await.unwrap();
    let bob = user(&world.store, "bob").await;
    let mut conn = world.store.read().await.unwrap();

    let alice = users::by_name(&mut conn, &"ALICE".parse().unwrap()).await.unwrap().unwrap();

    assert_eq!((alice.id, alice.name.as_ref().map(|name| name.as_str())), (id, Some("alice")));
    assert_eq!(
        (alice.email.as_deref(), alice.password_hash.as_ref().map(|hash| hash.expose().as_str())),
        (Some("Alice@Example.org"), Some("$argon2id$"))
    );
    assert_eq!(alice.actor(), Actor::User { id, site_admin: true, suspended: false });
    assert_eq!(users::by_id(&mut conn, id).await.unwrap().unwrap().name, alice.name);
    assert!(users::by_name(&mut conn, &"carol".parse().unwrap()).await.unwrap().is_none());
    assert!(users::by_id(&mut conn, UserId::new(404)).await.unwrap().is_none());
    let page: Vec<UserId> = users::list(&mut conn, id, 10).await.unwrap().iter().map(|user| user.id).collect();
    assert_eq!(page, [bob]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn names_and_addresses_are_taken_once(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    user(&world.store, "alice").await;
    let add = |new: NewUser| unit!(world.store, new, |tx, new| users::insert(tx, new).await);

    let same_name = NewUser { email: "other@example.org".into(), ..new_user("alice") };
    assert!(matches!(add(same_name).await, Err(StoreError::Unique)));
    let same_address = NewUser { email: "ALICE@example.ORG".into(), ..new_user("bob") };
    assert!(matches!(add(same_address).await, Err(StoreError::Unique)));

    let mut conn = world.store.read().await.unwrap();
    assert!(users::by_name(&mut conn, &"bob".parse().unwrap()).await.unwrap().is_none(), "no half account");
    assert_eq!(users::list(&mut conn, UserId::new(0), 10).await.unwrap().len(), 1);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_suspension_is_a_mark_that_can_be_lifted(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let id = user(&world.store, "alice").await;
    let later = world.clock.advance(Duration::from_secs(5));
    let suspend = |on: bool| unit!(world.store, (id, on), |tx, &(id, on)| users::set_suspended(tx, id, on).await);
    let read = async || users::by_id(&mut world.store.read().await.unwrap(), id).await.unwrap().unwrap();

    suspend(true).await.unwrap();
    let suspended = read().await;
    assert_eq!((suspended.suspended_at, suspended.updated_at), (Some(later), later));
    assert_eq!(suspended.actor(), Actor::User { id, site_admin: false, suspended: true });
    suspend(false).await.unwrap();
    assert_eq!(read().await.suspended_at, None);

    unit!(world.store, id, |tx, &id| users::set_password(tx, id, &"$new$".into()).await).await.unwrap();
    assert_eq!(read().await.password_hash, Some("$new$".into()));
}

fn new_token(user_id: UserId, byte: u8) -> NewToken {
    NewToken {
        user_id,
        label: "laptop".into(),
        hash: [byte; 32].into(),
        hint: "x7Qa".into(),
        scopes: Scopes::parse("repo,user:read").unwrap(),
        expires_at: Some(TestClock::START.plus(Duration::from_secs(60))),
    }
}

async fn add_token(store: &Store, new: NewToken) -> Result<i64, StoreError> {
    unit!(store, new, |tx, new| tokens::insert(tx, new).await).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_found_by_its_hash_until_it_ends(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let (alice, bob) = (user(&world.store, "alice").await, user(&world.store, "bob").await);
    let id = add_token(&world.store, new_token(alice, 1)).await.unwrap();
    let endless = NewToken { expires_at: None, ..new_token(alice, 2) };
    add_token(&world.store, endless).await.unwrap();
    let find = async |byte: u8| tokens::by_hash(&mut world.store.read().await.unwrap(), &[byte; 32]).await.unwrap();

    let found = find(1).await.unwrap();
    assert_eq!((found.id, found.user_id, found.hint.as_str()), (id, alice, "x7Qa"));
    assert!(found.scopes.allow(Scope::RepoRead) && !found.scopes.allow(Scope::User));
    assert!(found.is_live(TestClock::START));
    assert!(!found.is_live(found.expires_at.unwrap()));
    assert!(find(2).await.unwrap().is_live(Timestamp::from_micros(i64::MAX)));
    assert!(find(3).await.is_none());

    let revoke = |user: UserId| unit!(world.store, user, |tx, &user| tokens::revoke(tx, user, 1).await);
    assert!(!revoke(bob).await.unwrap(), "not his");
    assert!(revoke(alice).await.unwrap());
    assert!(!revoke(alice).await.unwrap(), "there is nothing left to take");
    assert!(!find(1).await.unwrap().is_live(TestClock::START));

    unit!(world.store, id, |tx, &id| tokens::touch(tx, id).await).await.unwrap();
    assert_eq!(find(1).await.unwrap().last_used_at, Some(TestClock::START));
    let mut conn = world.store.read().await.unwrap();
    assert_eq!(tokens::list(&mut conn, alice, 10).await.unwrap().len(), 2);
    assert!(tokens::list(&mut conn, bob, 10).await.unwrap().is_empty());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_token_needs_a_hash_of_its_own_and_a_user(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let alice = user(&world.store, "alice").await;
    add_token(&world.store, new_token(alice, 1)).await.unwrap();
    assert!(matches!(add_token(&world.store, new_token(alice, 1)).await, Err(StoreError::Unique)));
    assert!(matches!(add_token(&world.store, new_token(UserId::new(404), 2)).await, Err(StoreError::Missing)));
    assert_eq!(world.raw().await.number("SELECT count(*) FROM tokens").await, 1);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_token_whose_scopes_cannot_be_read_is_good_for_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    const WIDEN: Sql = sql("UPDATE tokens SET scopes = 'repo,of-a-newer-version'");
    let world = World::new(engine).await;
    let alice = user(&world.store, "alice").await;
    add_token(&world.store, new_token(alice, 1)).await.unwrap();
    run(&world.store, WIDEN, vec![]).await.unwrap();

    let found = tokens::by_hash(&mut world.store.read().await.unwrap(), &[1; 32]).await.unwrap().unwrap();

    assert!(Scope::ALL.iter().all(|&scope| !found.scopes.allow(scope)));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_key_opens_one_account_only(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let (alice, bob) = (user(&world.store, "alice").await, user(&world.store, "bob").await);
    let key = |user_id, fingerprint: &str| NewSshKey {
        user_id,
        title: "laptop".into(),
        fingerprint: fingerprint.into(),
        public_key: "ssh-ed25519 AAAA".into(),
    };
    let add = |new: NewSshKey| unit!(world.store, new, |tx, new| ssh_keys::insert(tx, new).await);

    let id = add(key(alice, "SHA256:abc")).await.unwrap();
    assert!(matches!(add(key(alice, "SHA256:abc")).await, Err(StoreError::Unique)));
    assert!(matches!(add(key(bob, "SHA256:abc")).await, Err(StoreError::Unique)), "by whomever");
    assert!(matches!(add(key(UserId::new(404), "SHA256:def")).await, Err(StoreError::Missing)));
    // Base64 tells upper from lower case.
    let second = add(key(bob, "SHA256:ABC")).await.unwrap();

    let mut conn = world.store.read().await.unwrap();
    let found = ssh_keys::by_fingerprint(&mut conn, "SHA256:abc").await.unwrap().unwrap();
    assert_eq!((found.id, found.user_id, found.last_used_at), (id, alice, None));
    assert!(ssh_keys::by_fingerprint(&mut conn, "SHA256:def").await.unwrap().is_none());
    assert!(ssh_keys::by_id(&mut conn, alice, second).await.unwrap().is_none(), "not hers");
    assert_eq!(ssh_keys::by_id(&mut conn, bob, second).await.unwrap().unwrap().fingerprint, "SHA256:ABC");
    assert_eq!(ssh_keys::list(&mut conn, alice, 10, 0).await.unwrap().len(), 1);
    assert_eq!(ssh_keys::count(&mut conn, alice).await.unwrap(), 1);
    assert!(ssh_keys::list(&mut conn, alice, 10, 1).await.unwrap().is_empty());
    drop(conn);

    unit!(world.store, id, |tx, &id| ssh_keys::touch(tx, id).await).await.unwrap();
    let remove = |user: UserId| unit!(world.store, (user, id), |tx, &(user, id)| ssh_keys::remove(tx, user, id).await);
    assert!(!remove(bob).await.unwrap(), "not his");
    assert!(remove(alice).await.unwrap());
    assert!(!remove(alice).await.unwrap());
    add(key(bob, "SHA256:abc")).await.unwrap();
}
