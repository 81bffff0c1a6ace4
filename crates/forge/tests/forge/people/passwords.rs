//! Changing a password, and getting a new one when it is forgotten.

use super::{LOOPBACK, PASSWORD, cookie, open_site};
use crate::rig::rig_with;
use abide_core::InputError as _;
use abide_forge::accounts::change_password::{ChangePasswordError, change_password};
use abide_forge::accounts::confirm::ConfirmError;
use abide_forge::accounts::login::LoginError;
use abide_forge::accounts::reset::{self, ResetError};
use abide_forge::accounts::{emails, sessions, suspend, verify};
use abide_testkit::Engine;
use rstest::rstest;
use std::time::Duration;

const NEW: &str = "an entirely new phrase";

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn changing_the_password_ends_all_other_logins(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    rig.add("alice", false).await;
    let (here, elsewhere) = (cookie(rig.login("alice", PASSWORD).await), cookie(rig.login("alice", PASSWORD).await));
    let viewer = rig.by_cookie(&here).await.expect("logged in");
    let change =
        async |current: &str, new: &str| change_password(&rig.forge, &viewer, current.into(), new.into()).await;
    assert_eq!(change(PASSWORD, "short").await.expect_err("refused").field(), Some("password"));
    assert_eq!(change("wrong horse battery", NEW).await.expect_err("refused").field(), Some("current_password"));
    assert!(rig.by_cookie(&elsewhere).await.is_some(), "nothing has changed");

    change(PASSWORD, NEW).await.expect("changed");
    assert!(rig.by_cookie(&here).await.is_some());
    assert!(rig.by_cookie(&elsewhere).await.is_none());
    assert!(matches!(rig.login("alice", PASSWORD).await, Err(LoginError::Wrong)));
    cookie(rig.login("alice", NEW).await);
    let mails = rig.mails().await;
    assert_eq!((mails.len(), mails[0].subject.as_str()), (1, "Your password was changed"));
}

/// A login that was under way when the password changed must not outlive the change.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_login_with_the_old_password_cannot_slip_in_behind_a_change(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = rig_with(engine, |settings| settings.login.per_account = 1000).await;
    let id = rig.add("alice", false).await;
    let viewer = rig.viewer(id).await;
    let phrase = |round: usize| format!("{PASSWORD} {round}");
    suspend::set_password(&rig.forge, id, phrase(0)).await.expect("set");
    for round in 0..5 {
        let (old, new) = (phrase(round), phrase(round + 1));
        let logins = futures_util::future::join_all((0..3).map(|_| rig.login("alice", &old)));
        let change = change_password(&rig.forge, &viewer, old.clone(), new);
        let (logins, changed) = tokio::join!(logins, change);
        changed.expect("changed");
        for login in logins.into_iter().filter(Result::is_ok) {
            assert!(rig.by_cookie(&cookie(login)).await.is_none(), "round {round}");
        }
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_unattended_browser_cannot_guess_the_password(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig_with(engine, |settings| settings.login.per_account = 3).await;
    let id = rig.add("alice", false).await;
    let viewer = rig.viewer(id).await;
    for _ in 0..3 {
        let wrong = change_password(&rig.forge, &viewer, "wrong horse battery".into(), NEW.into()).await;
        assert!(matches!(wrong, Err(ChangePasswordError::Confirm(ConfirmError::Wrong))));
    }
    let right = change_password(&rig.forge, &viewer, PASSWORD.into(), NEW.into()).await;
    assert!(matches!(right, Err(ChangePasswordError::Confirm(ConfirmError::Throttled { .. }))));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_password_is_set_anew_by_a_link_that_works_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    let id = rig.add("alice", false).await;
    let open = cookie(rig.login("alice", PASSWORD).await);
    reset::ask(&rig.forge, LOOPBACK, " Alice@example.org ").await.expect("asked");
    let mails = rig.mails().await;
    assert_eq!((mails.len(), mails[0].to.as_str()), (1, "alice@example.org"));
    assert!(mails[0].text.contains("the account alice"));
    let token = mails[0].token("reset");
    assert!(reset::is_open(&rig.forge, &token).await.expect("readable"));

    let set = async |token: &str, new: &str| reset::set(&rig.forge, LOOPBACK, token, new.into()).await;
    assert_eq!(set(&token, "short").await.expect_err("refused").field(), Some("password"));
    assert!(matches!(set("nonsense", NEW).await, Err(ResetError::Link)));
    set(&token, NEW).await.expect("set");
    assert!(matches!(set(&token, "yet another phrase").await, Err(ResetError::Link)), "once");
    assert!(!reset::is_open(&rig.forge, &token).await.expect("readable"));
    assert!(rig.by_cookie(&open).await.is_none(), "every login has ended");
    cookie(rig.login("alice", NEW).await);
    // The link came by mail, so the address is proved.
    let viewer = rig.viewer(id).await;
    assert!(emails::list(&rig.forge, &viewer).await.expect("readable")[0].verified_at.is_some());
    assert_eq!(rig.mails().await[0].subject, "Your password was changed");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn asking_tells_nothing_and_leaves_the_same_whatever_address_is_typed(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    rig.add("alice", false).await;
    let gone = rig.add("gone", false).await;
    suspend::set_suspended(&rig.forge, gone, true).await.expect("suspended");
    for address in ["alice@example.org", "nobody@example.org", "gone@example.org"] {
        reset::ask(&rig.forge, LOOPBACK, address).await.expect("asked");
    }
    let mut conn = rig.store.read().await.expect("readable");
    let jobs = abide_store::jobs::list(&mut conn, Some("waiting"), None, 10).await.expect("readable");
    drop(conn);
    assert_eq!(jobs.iter().map(|job| job.kind.as_str()).collect::<Vec<_>>(), ["account:reset"; 3]);
    assert!(jobs.iter().all(|job| !job.payload.contains("example")), "no address is shown with the jobs");
    let mails = rig.mails().await;
    assert_eq!(mails.iter().map(|mail| mail.to.as_str()).collect::<Vec<_>>(), ["alice@example.org"]);
    let refused = reset::ask(&rig.forge, LOOPBACK, "nonsense").await.expect_err("refused");
    assert_eq!(refused.field(), Some("email"));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_merely_claimed_resets_nothing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let id = rig.add("alice", false).await;
    let viewer = rig.viewer(id).await;
    emails::add(&rig.forge, &viewer, "second@example.org").await.expect("added");
    let verification = rig.mails().await.remove(0);
    reset::ask(&rig.forge, LOOPBACK, "second@example.org").await.expect("asked");
    assert!(rig.mails().await.is_empty());
    reset::ask(&rig.forge, LOOPBACK, "alice@example.org").await.expect("asked");
    assert!(rig.mails().await.is_empty(), "the first is not proved either, and no longer the only one");
    verify::confirm(&rig.forge, &verification.token("verify")).await.expect("writable");
    reset::ask(&rig.forge, LOOPBACK, "second@example.org").await.expect("asked");
    assert_eq!(rig.mails().await.len(), 1);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn links_grow_old_die_with_a_newer_one_and_with_a_change(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    let id = rig.add("alice", false).await;
    let viewer = rig.viewer(id).await;
    let ask = async || {
        reset::ask(&rig.forge, LOOPBACK, "alice@example.org").await.expect("asked");
        rig.mails().await.remove(0).token("reset")
    };
    let open = async |token: &str| reset::is_open(&rig.forge, token).await.expect("readable");
    let first = ask().await;
    let second = ask().await;
    assert!(!open(&first).await && open(&second).await);
    rig.clock.advance(Duration::from_secs(3600));
    assert!(!open(&second).await, "too old");
    let third = ask().await;
    change_password(&rig.forge, &viewer, PASSWORD.into(), NEW.into()).await.expect("changed");
    assert!(!open(&third).await);
    assert!(sessions::list(&rig.forge, &viewer).await.expect("readable").len() == 1);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn asking_is_counted_by_place_and_by_address(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig_with(engine, |settings| {
        settings.reset.per_ip = 4;
        settings.reset.per_email = 2;
    })
    .await;
    let client_ip = |text: &str| Some(text.parse().expect("an address"));
    let ask = async |ip, address: &str| reset::ask(&rig.forge, ip, address).await;
    // An address that nobody has is counted like any other.
    for address in ["alice@example.org", "nobody@example.org"] {
        for number in 0..2 {
            ask(client_ip(&format!("192.0.2.{number}")), address).await.expect("asked");
        }
        let refused = ask(client_ip("192.0.2.99"), &address.to_uppercase()).await;
        assert!(matches!(refused, Err(ResetError::Throttled { .. })), "{address}");
    }
    for number in 0..2 {
        ask(client_ip("192.0.2.0"), &format!("x{number}@example.org")).await.expect("asked");
    }
    assert!(matches!(ask(client_ip("192.0.2.0"), "y@example.org").await, Err(ResetError::Throttled { .. })));
    rig.clock.advance(Duration::from_secs(3600));
    ask(client_ip("192.0.2.0"), "alice@example.org").await.expect("asked");
}
