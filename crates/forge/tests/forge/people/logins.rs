//! Who is logged in, and how that ends.

use super::{LOOPBACK, PASSWORD, cookie, open_site};
use crate::rig::rig_with;
use abide_forge::accounts::{login, sessions, suspend};
use abide_testkit::Engine;
use rstest::rstest;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_login_lasts_as_long_as_it_is_used(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    rig.add("alice", false).await;
    let used = cookie(rig.login("alice", PASSWORD).await);
    let unused = cookie(rig.login("alice", PASSWORD).await);
    assert_ne!(used, unused, "every login has a cookie of its own");
    for _ in 0..4 {
        rig.clock.advance(10 * DAY);
        assert!(rig.by_cookie(&used).await.is_some());
        // Written beside the request: shown once it is there.
        let seen = rig.store.clock().now();
        for _ in 0..500 {
            let viewer = rig.by_cookie(&used).await.expect("logged in");
            let all = sessions::list(&rig.forge, &viewer).await.expect("readable");
            if all.iter().any(|session| session.current && session.last_seen_at == seen) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    assert!(rig.by_cookie(&unused).await.is_none(), "after thirty days without use");
    assert!(rig.by_cookie(&used).await.is_some());
    rig.clock.advance(30 * DAY);
    assert!(rig.by_cookie(&used).await.is_none());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_ended_by_its_owner_alone(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let (alice, bob) = (rig.add("alice", false).await, rig.add("bob", false).await);
    let [first, second, third] = [
        cookie(rig.login("alice", PASSWORD).await),
        cookie(rig.login("alice", PASSWORD).await),
        cookie(rig.login("alice", PASSWORD).await),
    ];
    let (viewer, bob) = (rig.by_cookie(&first).await.expect("logged in"), rig.viewer(bob).await);
    assert_eq!(viewer.caller.user_id(), Some(alice));
    let other = rig.by_cookie(&second).await.expect("logged in").session_id;
    let listed = sessions::list(&rig.forge, &viewer).await.expect("readable");
    assert_eq!(listed.len(), 3);
    assert_eq!(listed.iter().filter(|session| session.current).count(), 1);
    assert!(listed.iter().all(|session| session.agent == "a browser" && session.ip.as_deref() == Some("127.0.0.1")));

    assert!(!sessions::end(&rig.forge, &bob, &other).await.expect("writable"), "not his");
    assert!(!sessions::end(&rig.forge, &viewer, "nonsense").await.expect("writable"));
    assert!(sessions::end(&rig.forge, &viewer, &other).await.expect("writable"));
    assert!(rig.by_cookie(&second).await.is_none());
    sessions::log_out(&rig.forge, &third).await.expect("writable");
    sessions::log_out(&rig.forge, &third).await.expect("what is ended is ended");
    assert!(rig.by_cookie(&third).await.is_none());

    cookie(rig.login("alice", PASSWORD).await);
    assert_eq!(sessions::log_out_everywhere(&rig.forge, &viewer).await.expect("writable"), 2);
    assert!(rig.by_cookie(&first).await.is_none());
    assert!(sessions::list(&rig.forge, &bob).await.expect("readable").len() == 1, "others stay");
    for action in ["session_ended", "logged_out", "logged_out_everywhere"] {
        assert_eq!(rig.audited(action).await, 1, "{action}");
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_suspension_ends_every_login(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let alice = rig.add("alice", false).await;
    let open = cookie(rig.login("alice", PASSWORD).await);
    suspend::set_suspended(&rig.forge, alice, true).await.expect("suspended");
    assert!(rig.by_cookie(&open).await.is_none());
    suspend::set_suspended(&rig.forge, alice, false).await.expect("lifted");
    assert!(rig.by_cookie(&open).await.is_none(), "it does not come back");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_account_has_so_many_logins_and_no_more(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig_with(engine, |settings| settings.session.per_user = 2).await;
    let alice = rig.add("alice", false).await;
    let mut cookies = Vec::new();
    for _ in 0..3 {
        rig.clock.advance(Duration::from_secs(1));
        cookies.push(login::open_session(&rig.forge, alice, "\u{7}a\nlong name".repeat(99).as_str(), LOOPBACK).await);
    }
    let cookies: Vec<_> = cookies.into_iter().map(|cookie| cookie.expect("opened").0.into_inner()).collect();
    assert!(rig.by_cookie(&cookies[0]).await.is_none(), "the oldest ended");
    let viewer = rig.by_cookie(&cookies[2]).await.expect("logged in");
    let all = sessions::list(&rig.forge, &viewer).await.expect("readable");
    assert_eq!(all.len(), 2);
    assert!(all[0].agent.chars().count() == 200 && !all[0].agent.contains(char::is_control));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_form_token_belongs_to_one_cookie(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let token = sessions::csrf_token(&rig.forge, "one");
    assert!(sessions::csrf_matches(&rig.forge, "one", &token));
    let other = sessions::csrf_token(&rig.forge, "one");
    assert_ne!(token, other, "it looks different on every page");
    assert!(sessions::csrf_matches(&rig.forge, "one", &other));
    for (cookie, token) in [("two", token.as_str()), ("one", ""), ("one", &token[1..]), ("one", "ü"), ("", &token)] {
        assert!(!sessions::csrf_matches(&rig.forge, cookie, token), "{cookie} {token}");
    }
}
