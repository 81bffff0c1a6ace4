//! Accounts beyond their names: addresses, old names, profiles, admins, and what an operator looks for.

use crate::logins::{MINUTE, link, session};
use crate::support::{World, joined, new_repo, new_user, repo, unit, user};
use abide_core::audit::Action;
use abide_core::{Handle, UserId, UserName};
use abide_store::accounts::links::{self, NewLink, Purpose};
use abide_store::accounts::users::{self, Profile};
use abide_store::accounts::{emails, sessions, totp, user_redirects};
use abide_store::repos::{self, Page};
use abide_store::{Store, StoreError, audit};
use abide_testkit::{Engine, TestClock};
use rstest::rstest;
use std::sync::Arc;
use tokio::sync::Barrier;

fn name(text: &str) -> UserName {
    text.parse().unwrap()
}

async fn rename(store: &Store, id: UserId, old: &str, new: &str) -> Result<(), StoreError> {
    let unit = (id, name(old), name(new));
    unit!(store, unit, |tx, (id, old, new)| users::set_name(tx, *id, Some(old), new).await).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_old_name_leads_to_its_holder_and_is_kept_for_them(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let tool = repo(store, alice, "tool").await;
    rename(store, alice, "alice", "ada").await.unwrap();

    let mut conn = store.read().await.unwrap();
    assert!(users::by_name(&mut conn, &name("alice")).await.unwrap().is_none());
    let found = users::by_any_name(&mut conn, &name("alice")).await.unwrap().unwrap();
    assert_eq!((found.id, found.name), (alice, Some(name("ada"))));
    assert_eq!(users::by_any_name(&mut conn, &name("ada")).await.unwrap().unwrap().id, alice);
    assert!(users::by_any_name(&mut conn, &name("carol")).await.unwrap().is_none());
    let moved = repos::by_slug(&mut conn, &name("alice"), &"tool".parse().unwrap(), None).await.unwrap().unwrap();
    assert_eq!((moved.id, moved.slug()), (tool, "ada/tool".to_owned()));
    drop(conn);

    // Nobody else can have it: neither a new account nor another that renames itself.
    let taken = unit!(store, new_user("alice"), |tx, new| users::insert(tx, new).await).await;
    assert!(matches!(taken, Err(StoreError::Unique)));
    assert!(matches!(rename(store, bob, "bob", "alice").await, Err(StoreError::Unique)));
    assert!(matches!(rename(store, bob, "bob", "ada").await, Err(StoreError::Unique)));
    assert_eq!(world.raw().await.number("SELECT count(*) FROM users").await, 2, "no half account");
    assert_eq!(world.raw().await.number("SELECT count(*) FROM user_redirects").await, 1);

    // Its holder can take it back; then the other one is old.
    rename(store, alice, "ada", "alice").await.unwrap();
    let mut conn = store.read().await.unwrap();
    let old = user_redirects::list(&mut conn, alice).await.unwrap();
    assert_eq!(old.iter().map(|old| old.name.as_str()).collect::<Vec<_>>(), ["ada"]);
    assert_eq!(user_redirects::count(&mut conn, alice).await.unwrap(), 1);
    drop(conn);

    // Released, it is free.
    let release = || unit!(store, (), |tx, ()| user_redirects::remove(tx, &name("ada")).await);
    assert!(release().await.unwrap());
    assert!(!release().await.unwrap());
    rename(store, bob, "bob", "ada").await.unwrap();
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_live_name_wins_over_nothing_and_a_deleted_repository_is_not_found_under_an_old_one(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let alice = user(store, "alice").await;
    let tool = repo(store, alice, "tool").await;
    rename(store, alice, "alice", "ada").await.unwrap();
    world.raw().await.execute(&format!("UPDATE repos SET deleted_at = 1 WHERE id = {tool}")).await;
    let mut conn = store.read().await.unwrap();
    assert!(repos::by_slug(&mut conn, &name("alice"), &"tool".parse().unwrap(), None).await.unwrap().is_none());
}

/// A sign-up at the moment a name is given up gets the name only if it was not reserved.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_given_up_at_this_moment_cannot_be_snatched(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    for round in 0..20 {
        let (old, new) = (format!("old{round}"), format!("new{round}"));
        let holder = user(&world.store, &old).await;
        let barrier = Arc::new(Barrier::new(2));
        let snatch = {
            let (store, barrier, old) = (world.store.clone(), barrier.clone(), old.clone());
            tokio::spawn(async move {
                barrier.wait().await;
                let new = users::NewUser { email: format!("thief{round}@example.org"), ..new_user(&old) };
                unit!(store, new, |tx, new| users::insert(tx, new).await).await
            })
        };
        barrier.wait().await;
        rename(&world.store, holder, &old, &new).await.unwrap();
        assert!(matches!(joined(snatch).await, Err(StoreError::Unique)), "round {round}");
        let found = users::by_any_name(&mut world.store.read().await.unwrap(), &name(&old)).await.unwrap();
        assert_eq!(found.unwrap().id, holder);
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn addresses_belong_to_one_account_and_one_of_them_is_primary(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let add = |user: UserId, address: &'static str| {
        unit!(store, (user, address), |tx, &(user, address)| emails::insert(tx, user, address, false).await)
    };
    let second = add(alice, "Ada@Example.org").await.unwrap();
    assert!(matches!(add(bob, "ada@example.ORG").await, Err(StoreError::Unique)));
    assert!(matches!(add(UserId::new(404), "x@example.org").await, Err(StoreError::Missing)));

    let mut conn = store.read().await.unwrap();
    let all = emails::list(&mut conn, alice).await.unwrap();
    assert_eq!(all.iter().map(|email| email.is_primary).collect::<Vec<_>>(), [true, false]);
    assert_eq!(emails::count(&mut conn, alice).await.unwrap(), 2);
    assert!(emails::by_id(&mut conn, bob, second).await.unwrap().is_none(), "not his");
    let (found, of_account) = emails::by_address(&mut conn, "ADA@example.org").await.unwrap().unwrap();
    assert_eq!((found.id, found.user_id, of_account), (second, alice, 2));
    assert!(users::by_email(&mut conn, "ALICE@example.org").await.unwrap().is_some(), "primary");
    assert!(users::by_email(&mut conn, "ada@example.org").await.unwrap().is_none(), "only claimed");
    drop(conn);

    let verify = || unit!(store, second, |tx, &id| emails::verify(tx, id).await);
    assert!(verify().await.unwrap());
    assert!(!verify().await.unwrap());
    assert_eq!(users::by_email(&mut store.read().await.unwrap(), "ada@example.org").await.unwrap().unwrap().id, alice);

    let primary = |user: UserId, id: i64| {
        unit!(store, (user, id), |tx, &(user, id)| match emails::set_primary(tx, user, id).await? {
            true => Ok(()),
            false => Err(StoreError::Missing),
        })
    };
    assert!(primary(bob, second).await.is_err(), "not his");
    primary(alice, second).await.unwrap();
    let read = async |id| users::by_id(&mut store.read().await.unwrap(), id).await.unwrap().unwrap().email;
    assert_eq!(read(alice).await.as_deref(), Some("Ada@Example.org"));
    assert_eq!(read(bob).await.as_deref(), Some("bob@example.org"), "what was refused changed nothing");

    let remove = |user: UserId, id: i64| unit!(store, (user, id), |tx, &(user, id)| emails::remove(tx, user, id).await);
    assert!(!remove(alice, second).await.unwrap(), "the primary one stays");
    assert!(!remove(bob, all[0].id).await.unwrap(), "not his");
    assert!(remove(alice, all[0].id).await.unwrap());
    add(bob, "alice@example.org").await.unwrap();
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn operators_find_people_by_part_of_a_name_or_address(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let alice = user(store, "alice").await;
    user(store, "bob").await;
    let malice = users::NewUser { email: "under_score%@Example.net".into(), ..new_user("malice") };
    unit!(store, malice, |tx, new| users::insert(tx, new).await).await.unwrap();
    repo(store, alice, "one").await;
    let gone = unit!(store, new_repo(alice, "two"), |tx, new| repos::insert(tx, new).await).await.unwrap();
    world.raw().await.execute(&format!("UPDATE repos SET deleted_at = 1 WHERE id = {gone}")).await;

    let find = async |text: &str, limit, offset| {
        let page = Page { limit, offset };
        let (found, total) = users::search(&mut store.read().await.unwrap(), text, page).await.unwrap();
        let names: Vec<_> = found.iter().map(|found| found.user.name.clone().unwrap().to_string()).collect();
        (names.join(" "), total, found.iter().map(|found| found.repos).sum::<i64>())
    };
    assert_eq!(find("", 10, 0).await, ("alice bob malice".into(), 3, 1));
    assert_eq!(find("", 1, 1).await, ("bob".into(), 3, 0));
    assert_eq!(find(" ALICE ", 10, 0).await, ("alice malice".into(), 2, 1));
    assert_eq!(find("example.ORG", 10, 0).await, ("alice bob".into(), 2, 1));
    assert_eq!(find("r_s", 10, 0).await, ("malice".into(), 1, 0), "taken literally");
    assert_eq!(find("%", 10, 0).await, ("malice".into(), 1, 0), "taken literally");
    assert_eq!(find("\\", 10, 0).await, (String::new(), 0, 0));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn profiles_and_admins_are_marked_and_read_back(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let store = &world.store;
    assert!(!users::any(&mut store.read().await.unwrap()).await.unwrap());
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    assert!(users::any(&mut store.read().await.unwrap()).await.unwrap());
    let profile = Profile {
        display_name: Some("Alice".into()),
        bio: "builds".into(),
        website: "https://example.org".into(),
        location: "here".into(),
    };
    unit!(store, (alice, profile), |tx, (id, profile)| users::set_profile(tx, *id, profile).await).await.unwrap();
    let read = users::by_id(&mut store.read().await.unwrap(), alice).await.unwrap().unwrap();
    assert_eq!((read.display_name.as_deref(), read.bio.as_str()), (Some("Alice"), "builds"));
    assert_eq!((read.website.as_str(), read.location.as_str()), ("https://example.org", "here"));

    let admins = || unit!(store, (), |tx, ()| users::lock_admins(tx).await);
    let set = |id: UserId, on: bool| unit!(store, (id, on), |tx, &(id, on)| users::set_admin(tx, id, on).await);
    assert!(admins().await.unwrap().is_empty());
    let any_admin = async || users::any_admin(&mut store.read().await.unwrap()).await.unwrap();
    assert!(!any_admin().await, "two accounts, but none of an administrator");
    set(alice, true).await.unwrap();
    assert!(any_admin().await);
    set(bob, true).await.unwrap();
    assert_eq!(admins().await.unwrap(), [alice, bob]);
    unit!(store, alice, |tx, &id| users::set_suspended(tx, id, true).await).await.unwrap();
    assert_eq!(admins().await.unwrap(), [bob], "who is suspended administers nothing");
    set(bob, false).await.unwrap();
    assert!(admins().await.unwrap().is_empty());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_is_read_from_its_end_by_what_is_asked_for(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let tool = repo(store, alice, "tool").await;
    let entries = [
        (Some(alice), Action::RepoCreated, Some(tool)),
        (Some(bob), Action::LoggedIn, None),
        (None, Action::UserCreated, None),
        (Some(alice), Action::LoggedIn, None),
    ];
    for (actor, action, repo) in entries {
        let entry = audit::Entry { actor, action, repo, ip: None, meta: serde_json::json!({}) };
        unit!(store, entry, |tx, entry| audit::append(tx, entry).await).await.unwrap();
    }
    let page = async |filter: audit::Filter, before, limit| {
        let rows = audit::page(&mut store.read().await.unwrap(), &filter, before, limit).await.unwrap();
        let show = |row: &audit::Named| {
            let actor = row.actor.as_ref().map_or("-", Handle::as_str);
            format!("{actor} {} {}", row.record.action, row.repo.as_deref().unwrap_or("-"))
        };
        (rows.iter().map(show).collect::<Vec<_>>().join("; "), rows.last().map(|row| row.record.id))
    };
    let (newest, last) = page(audit::Filter::default(), i64::MAX, 3).await;
    assert_eq!(newest, "alice logged_in -; - user_created -; bob logged_in -");
    let (rest, _) = page(audit::Filter::default(), last.unwrap(), 3).await;
    assert_eq!(rest, "alice repo_created alice/tool");
    let (of_action, _) =
        page(audit::Filter { action: Some(Action::LoggedIn), ..audit::Filter::default() }, i64::MAX, 9).await;
    assert_eq!(of_action, "alice logged_in -; bob logged_in -");
    let (of_actor, _) = page(audit::Filter { actor: Some(bob), ..audit::Filter::default() }, i64::MAX, 9).await;
    assert_eq!(of_actor, "bob logged_in -");
    let (of_repo, _) = page(audit::Filter { repo: Some(tool), ..audit::Filter::default() }, i64::MAX, 9).await;
    assert_eq!(of_repo, "alice repo_created alice/tool");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_an_account_goes_with_it(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let store = &world.store;
    let alice = user(store, "alice").await;
    rename(store, alice, "alice", "ada").await.unwrap();
    let email = emails::list(&mut store.read().await.unwrap(), alice).await.unwrap()[0].id;
    let new = session(alice, 1, TestClock::START.plus(MINUTE));
    unit!(store, (new, alice, email), |tx, (new, alice, email)| {
        sessions::insert(tx, new, 3).await?;
        links::insert(tx, &link(1, Purpose::Verify, Some(*alice), Some(*email))).await?;
        links::insert(tx, &NewLink { user_id: None, ..link(2, Purpose::Invite, Some(*alice), None) }).await?;
        totp::begin(tx, *alice, &[1]).await?;
        totp::set_codes(tx, *alice, &[[1; 32]]).await
    })
    .await
    .unwrap();
    let mut raw = world.raw().await;
    if engine == Engine::Sqlite {
        raw.execute("PRAGMA foreign_keys = ON").await;
    }
    raw.execute("DELETE FROM users").await;
    for table in ["emails", "user_redirects", "sessions", "totp", "recovery_codes"] {
        assert_eq!(raw.number(&format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
    }
    assert_eq!(
        raw.number("SELECT count(*) FROM one_time_links WHERE created_by IS NULL").await,
        1,
        "an invitation outlives who sent it"
    );
}
