//! Logging in with a password: who gets in, and what others learn.

use super::{LOOPBACK, PASSWORD, cookie, open_site};
use crate::rig::rig_with;
use abide_forge::accounts::login::LoginError;
use abide_forge::accounts::password::Cost;
use abide_forge::accounts::suspend;
use abide_testkit::Engine;
use rstest::rstest;
use std::net::IpAddr;
use std::time::Duration;

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_name_or_an_address_and_the_password_open_a_session(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    let id = rig.add("alice", false).await;
    for login in ["alice", " ALICE ", "alice@example.org", "Alice@Example.ORG"] {
        let viewer = rig.by_cookie(&cookie(rig.login(login, PASSWORD).await)).await.expect("logged in");
        assert_eq!(viewer.user.id, id, "{login}");
    }
    assert_eq!(rig.audited("logged_in").await, 4);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_and_an_unknown_account_are_answered_alike(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    rig.add("alice", false).await;
    for (login, password) in [
        ("alice", "wrong horse battery"),
        ("alice", ""),
        ("nobody", PASSWORD),
        ("nobody@example.org", PASSWORD),
        ("", ""),
        ("../../etc", PASSWORD),
        ("a\0b", PASSWORD),
    ] {
        let error = rig.login(login, password).await.err().expect("refused");
        assert!(matches!(error, LoginError::Wrong), "{login:?}: {error}");
        assert_eq!(error.to_string(), LoginError::Wrong.to_string());
    }
    let long = "x".repeat(100_000);
    assert!(matches!(rig.login("alice", &long).await, Err(LoginError::Wrong)));
    assert_eq!(rig.audited("logged_in").await, 0);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_suspension_is_told_to_who_knows_the_password_only(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    let id = rig.add("alice", false).await;
    suspend::set_suspended(&rig.forge, id, true).await.expect("suspended");
    assert!(matches!(rig.login("alice", "wrong horse battery").await, Err(LoginError::Wrong)));
    assert!(matches!(rig.login("alice", PASSWORD).await, Err(LoginError::Suspended)));
    assert_eq!(rig.audited("logged_in").await, 0, "nothing was opened");
    suspend::set_suspended(&rig.forge, id, false).await.expect("lifted");
    cookie(rig.login("alice", PASSWORD).await);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn wrong_passwords_for_an_account_are_counted_by_place(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = rig_with(engine, |settings| settings.login.per_account = 3).await;
    rig.add("alice", false).await;
    rig.add("bob", false).await;
    // A success in between forgets what was counted.
    for _ in 0..2 {
        for _ in 0..2 {
            assert!(matches!(rig.login("alice", "wrong horse battery").await, Err(LoginError::Wrong)));
        }
        cookie(rig.login("alice", PASSWORD).await);
    }
    for login in ["alice", "ALICE", " alice "] {
        assert!(matches!(rig.login(login, "wrong horse battery").await, Err(LoginError::Wrong)));
    }
    // Were the address counted with the name, this would tell whose it is.
    assert!(matches!(rig.login("alice@example.org", "wrong horse battery").await, Err(LoginError::Wrong)));
    let Err(LoginError::Throttled { retry_after }) = rig.login("alice", PASSWORD).await else { panic!("admitted") };
    assert_eq!(retry_after, Duration::from_secs(15 * 60));
    cookie(rig.login("bob", PASSWORD).await);
    let elsewhere: IpAddr = "192.0.2.7".parse().expect("an address");
    cookie(rig.login_from("alice", PASSWORD, Some(elsewhere)).await);
    rig.clock.advance(retry_after);
    cookie(rig.login("alice", PASSWORD).await);

    // Missing accounts are counted alike.
    for _ in 0..3 {
        assert!(matches!(rig.login("nobody", PASSWORD).await, Err(LoginError::Wrong)));
    }
    assert!(matches!(rig.login("nobody", PASSWORD).await, Err(LoginError::Throttled { .. })));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_tries_many_accounts_is_shut(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig_with(engine, |settings| settings.login.per_ip = 5).await;
    rig.add("alice", false).await;
    // Rightful logins do not count.
    for _ in 0..10 {
        cookie(rig.login("alice", PASSWORD).await);
    }
    for number in 0..5 {
        assert!(matches!(rig.login(&format!("nobody{number}"), PASSWORD).await, Err(LoginError::Wrong)));
    }
    assert!(matches!(rig.login("alice", PASSWORD).await, Err(LoginError::Throttled { .. })));
    assert!(matches!(rig.login_from("alice", PASSWORD, LOOPBACK).await, Err(LoginError::Throttled { .. })));
    // The neighbours in an IPv6 network are one place.
    let neighbour = |text: &str| Some(text.parse().expect("an address"));
    for number in 0..5 {
        let ip = neighbour(&format!("2001:db8::{number}"));
        assert!(matches!(rig.login_from(&format!("nobody{number}"), PASSWORD, ip).await, Err(LoginError::Wrong)));
    }
    let refused = rig.login_from("alice", PASSWORD, neighbour("2001:db8::ffff")).await;
    assert!(matches!(refused, Err(LoginError::Throttled { .. })));
    cookie(rig.login_from("alice", PASSWORD, neighbour("2001:db8:1::")).await);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn guesses_side_by_side_are_all_counted(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig_with(engine, |settings| settings.login.per_account = 3).await;
    rig.add("alice", false).await;
    let guesses = (0..8).map(|_| rig.login("alice", "wrong horse battery"));
    let outcomes = futures_util::future::join_all(guesses).await;
    let wrong = outcomes.iter().filter(|outcome| matches!(outcome, Err(LoginError::Wrong))).count();
    assert_eq!(wrong, 3);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_logins_is_sent_away_instead_of_filling_the_memory(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = rig_with(engine, |settings| {
        settings.login.password_cost = Cost::Full;
        settings.login.hashes_at_once = 1;
        settings.login.hashes_waiting = 0;
    })
    .await;
    rig.add("alice", false).await;
    let logins = (0..8).map(|_| rig.login("alice", PASSWORD));
    let outcomes = futures_util::future::join_all(logins).await;
    let crowded = |error: &LoginError| matches!(error, LoginError::Fault(abide_forge::Fault::Crowded));
    assert!(outcomes.iter().any(Result::is_ok), "one is served");
    assert!(outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).all(crowded));
    cookie(rig.login("alice", PASSWORD).await);
}
