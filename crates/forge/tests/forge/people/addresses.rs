//! One's own addresses.

use super::open_site;
use crate::rig::rig_with;
use abide_core::InputError as _;
use abide_core::account::SignUpMode;
use abide_forge::accounts::emails::{self, EmailError};
use abide_forge::accounts::verify::{self, ResendError};
use abide_testkit::Engine;
use rstest::rstest;
use std::time::Duration;

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_address_becomes_primary_once_it_is_verified_and_the_one_before_is_told(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    let id = rig.add("alice", false).await;
    let viewer = rig.viewer(id).await;
    let second = emails::add(&rig.forge, &viewer, "Second@example.org").await.expect("added");
    let mails = rig.mails().await;
    assert_eq!(mails[0].to, "Second@example.org");
    let early = emails::make_primary(&rig.forge, &viewer, second).await;
    assert!(matches!(early, Err(EmailError::Unverified)));
    assert!(verify::confirm(&rig.forge, &mails[0].token("verify")).await.expect("writable"));
    emails::make_primary(&rig.forge, &viewer, second).await.expect("primary");
    emails::make_primary(&rig.forge, &viewer, second).await.expect("it is so already");
    let reported = rig.mails().await;
    assert_eq!((reported.len(), reported[0].to.as_str()), (1, "alice@example.org"));
    assert!(reported[0].text.contains("Second@example.org"));

    let all = emails::list(&rig.forge, &viewer).await.expect("readable");
    let first = all.iter().find(|email| !email.is_primary).expect("there").id;
    assert!(matches!(emails::remove(&rig.forge, &viewer, second).await, Err(EmailError::Primary)));
    emails::remove(&rig.forge, &viewer, first).await.expect("removed");
    assert!(matches!(emails::remove(&rig.forge, &viewer, first).await, Err(EmailError::NotFound)));
    for action in ["email_added", "email_verified", "primary_email_changed", "email_removed"] {
        assert_eq!(rig.audited(action).await, 1, "{action}");
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_addresses_of_others_are_out_of_reach(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let (alice, bob) = (rig.add("alice", false).await, rig.add("bob", false).await);
    let (alice, bob) = (rig.viewer(alice).await, rig.viewer(bob).await);
    let hers = emails::add(&rig.forge, &alice, "second@example.org").await.expect("added");
    assert!(matches!(emails::remove(&rig.forge, &bob, hers).await, Err(EmailError::NotFound)));
    assert!(matches!(emails::make_primary(&rig.forge, &bob, hers).await, Err(EmailError::NotFound)));
    assert!(matches!(verify::resend(&rig.forge, &bob, hers).await, Err(ResendError::NotFound)));
    let taken = emails::add(&rig.forge, &bob, "SECOND@example.org").await.expect_err("refused");
    assert_eq!(taken.field(), Some("email"));
    let bad = emails::add(&rig.forge, &bob, "x@example.org\r\nBcc: y@example.org").await.expect_err("refused");
    assert_eq!(bad.field(), Some("email"));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_removed_address_cannot_be_verified_any_more(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let id = rig.add("alice", false).await;
    let viewer = rig.viewer(id).await;
    let second = emails::add(&rig.forge, &viewer, "second@example.org").await.expect("added");
    let token = rig.mails().await[0].token("verify");
    emails::remove(&rig.forge, &viewer, second).await.expect("removed");
    assert!(!verify::confirm(&rig.forge, &token).await.expect("writable"));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_newer_mail_makes_the_older_link_dead_and_links_grow_old(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    let id = rig.sign_up("alice").await;
    let viewer = rig.viewer(id).await;
    let email = emails::list(&rig.forge, &viewer).await.expect("readable")[0].id;
    let first = rig.mails().await[0].token("verify");
    verify::resend(&rig.forge, &viewer, email).await.expect("sent");
    let second = rig.mails().await[0].token("verify");
    let open = async |token: &str| verify::is_open(&rig.forge, token).await.expect("readable");
    assert!(!open(&first).await && open(&second).await);
    rig.clock.advance(Duration::from_secs(3 * 86_400));
    assert!(!open(&second).await);
    verify::resend(&rig.forge, &viewer, email).await.expect("sent");
    let third = rig.mails().await[0].token("verify");
    assert!(verify::confirm(&rig.forge, &third).await.expect("writable"));
    assert!(matches!(verify::resend(&rig.forge, &viewer, email).await, Err(ResendError::Verified)));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn so_many_addresses_and_so_many_mails(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig_with(engine, |settings| {
        settings.signup.mode = SignUpMode::Open;
        settings.accounts.emails = 3;
        settings.mail.per_account = 3;
    })
    .await;
    let id = rig.add("alice", false).await;
    let viewer = rig.viewer(id).await;
    let add = async |address: &str| emails::add(&rig.forge, &viewer, address).await;
    let second = add("second@example.org").await.expect("added");
    add("third@example.org").await.expect("added");
    let refused = add("fourth@example.org").await.expect_err("refused");
    assert!(matches!(refused, EmailError::TooMany(3)) && refused.field() == Some("email"));
    verify::resend(&rig.forge, &viewer, second).await.expect("sent");
    assert!(matches!(verify::resend(&rig.forge, &viewer, second).await, Err(ResendError::Throttled { .. })));
    emails::remove(&rig.forge, &viewer, second).await.expect("removed");
    assert!(matches!(add("fourth@example.org").await, Err(EmailError::Throttled { .. })));
    rig.clock.advance(Duration::from_secs(3600));
    add("fourth@example.org").await.expect("added");
}
