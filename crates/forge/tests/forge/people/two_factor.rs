//! The second factor: setting it up, logging in with it, losing the phone.

use super::{LOOPBACK, PASSWORD, cookie, open_site};
use crate::rig::{Rig, rig_with};
use abide_core::InputError as _;
use abide_forge::accounts::login::{self, LoginError, Outcome};
use abide_forge::accounts::totp::{self, TotpError};
use abide_forge::accounts::{Viewer, change_password, suspend};
use abide_testkit::Engine;
use rstest::rstest;
use std::time::Duration;
use totp_rs::{Builder, Secret, Totp};

const STEP: Duration = Duration::from_secs(30);

/// An app that was told the secret.
fn app(secret: &str) -> Totp {
    let secret = Secret::try_from_base32(secret).expect("base 32");
    Builder::new().with_secret(secret).build().expect("usable")
}

fn code(rig: &Rig, app: &Totp) -> String {
    let now = rig.store.clock().now().micros() / 1_000_000;
    app.generate(u64::try_from(now).expect("after 1970")).to_string()
}

/// alice, with the second factor on: she, her app, and her recovery codes.
async fn alice(rig: &Rig) -> (Viewer, Totp, Vec<String>) {
    let id = rig.add("alice", false).await;
    let viewer = rig.viewer(id).await;
    let enrolment = totp::begin(&rig.forge, &viewer).await.expect("begun");
    let app = app(&enrolment.secret_base32);
    let codes = totp::confirm(&rig.forge, &viewer, &code(rig, &app)).await.expect("confirmed");
    rig.clock.advance(STEP);
    (viewer, app, codes)
}

async fn ticket(rig: &Rig) -> String {
    match rig.login("alice", PASSWORD).await.expect("the password is right") {
        Outcome::SecondFactor(ticket) => ticket.0.into_inner(),
        Outcome::In(_) => panic!("no second factor is asked for"),
    }
}

async fn second(rig: &Rig, ticket: &str, code: &str) -> Result<String, LoginError> {
    login::second_factor(&rig.forge, ticket, code, "a browser", LOOPBACK).await.map(|cookie| cookie.0.into_inner())
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_app_reads_the_secret_from_its_address_and_its_picture(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    let id = rig.add("alice", false).await;
    let viewer = rig.viewer(id).await;
    let first = totp::begin(&rig.forge, &viewer).await.expect("begun");
    let again = totp::begin(&rig.forge, &viewer).await.expect("begun anew");
    assert_ne!(first.secret_base32, again.secret_base32);
    let pending = totp::pending(&rig.forge, &viewer).await.expect("readable").expect("it waits");
    assert_eq!(pending.secret_base32, again.secret_base32);

    let read = Totp::from_url(&again.otpauth_url).expect("apps can read it");
    assert_eq!(read.secret().to_base32(), again.secret_base32);
    assert_eq!((read.account_name(), read.issuer()), ("alice", Some("Abide git.example.org")));
    assert!(again.qr_svg.starts_with("<svg ") && !again.qr_svg.contains("style") && !again.qr_svg.contains("script"));

    assert!(!totp::is_on(&rig.forge, &viewer).await.expect("readable"));
    cookie(rig.login("alice", PASSWORD).await);
    let wrong = totp::confirm(&rig.forge, &viewer, "000000").await.expect_err("refused");
    assert_eq!(wrong.field(), Some("code"));
    assert!(!totp::is_on(&rig.forge, &viewer).await.expect("readable"));
    let app = app(&again.secret_base32);
    assert_eq!(totp::confirm(&rig.forge, &viewer, &code(&rig, &app)).await.expect("confirmed").len(), 10);
    assert!(totp::is_on(&rig.forge, &viewer).await.expect("readable"));
    assert!(matches!(totp::begin(&rig.forge, &viewer).await, Err(TotpError::On)));
    assert!(totp::pending(&rig.forge, &viewer).await.expect("readable").is_none());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_secret_is_sealed_at_rest(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let (viewer, app, codes) = alice(&rig).await;
    let mut conn = rig.store.read().await.expect("readable");
    let kept = abide_store::accounts::totp::get(&mut conn, viewer.user.id).await.expect("readable").expect("there");
    let secret = app.secret().as_bytes();
    assert!(!kept.secret.expose().windows(secret.len()).any(|part| part == secret));
    assert_eq!(codes.iter().collect::<std::collections::BTreeSet<_>>().len(), 10, "no two are alike");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_code_of_the_app_works_once(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let (_, app, _) = alice(&rig).await;
    let now = code(&rig, &app);
    let held = ticket(&rig).await;
    let opened = second(&rig, &held, &now).await.expect("logged in");
    assert!(rig.by_cookie(&opened).await.is_some());
    assert!(matches!(second(&rig, &held, &now).await, Err(LoginError::Wrong)), "used");
    rig.clock.advance(STEP);
    assert!(matches!(second(&rig, &held, &now).await, Err(LoginError::Wrong)), "used, and still in its time");
    second(&rig, &held, &code(&rig, &app)).await.expect("the next one works");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_code_that_turned_it_on_is_used_up(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let id = rig.add("alice", false).await;
    let viewer = rig.viewer(id).await;
    let app = app(&totp::begin(&rig.forge, &viewer).await.expect("begun").secret_base32);
    let now = code(&rig, &app);
    totp::confirm(&rig.forge, &viewer, &now).await.expect("confirmed");
    assert!(matches!(second(&rig, &ticket(&rig).await, &now).await, Err(LoginError::Wrong)));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_use_a_code_at_once_one_gets_in(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let (_, app, codes) = alice(&rig).await;
    let held = ticket(&rig).await;
    for code in [code(&rig, &app), codes[0].clone()] {
        let (one, other) = tokio::join!(second(&rig, &held, &code), second(&rig, &held, &code));
        assert!(one.is_ok() != other.is_ok(), "exactly one");
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_code_works_once_however_it_is_typed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let (viewer, _, codes) = alice(&rig).await;
    let left = async || totp::recovery_codes_left(&rig.forge, &viewer).await.expect("readable");
    assert_eq!(left().await, 10);
    second(&rig, &ticket(&rig).await, &codes[0]).await.expect("logged in");
    let sloppy = codes[1].to_uppercase().replace('-', " ");
    second(&rig, &ticket(&rig).await, &sloppy).await.expect("logged in");
    assert_eq!(left().await, 8);
    assert!(matches!(second(&rig, &ticket(&rig).await, &codes[0]).await, Err(LoginError::Wrong)), "used");

    let refused = totp::new_recovery_codes(&rig.forge, &viewer, "wrong horse battery".into()).await;
    assert_eq!(refused.expect_err("refused").field(), Some("current_password"));
    let fresh = totp::new_recovery_codes(&rig.forge, &viewer, PASSWORD.into()).await.expect("replaced");
    assert!(matches!(second(&rig, &ticket(&rig).await, &codes[2]).await, Err(LoginError::Wrong)), "replaced");
    second(&rig, &ticket(&rig).await, &fresh[0]).await.expect("logged in");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_is_ours_short_lived_and_dies_with_the_password(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    let (viewer, app, _) = alice(&rig).await;
    let held = ticket(&rig).await;
    let mut forged = held.clone().into_bytes();
    // Another account's id, under the same signature.
    forged[9] = if forged[9] == b'A' { b'B' } else { b'A' };
    for bad in [String::from_utf8(forged).expect("ASCII"), String::new(), "nonsense".into(), held[1..].to_owned()] {
        assert!(matches!(second(&rig, &bad, &code(&rig, &app)).await, Err(LoginError::Wrong)), "{bad}");
    }
    rig.clock.advance(Duration::from_secs(600));
    assert!(matches!(second(&rig, &held, &code(&rig, &app)).await, Err(LoginError::Wrong)), "too late");

    let held = ticket(&rig).await;
    let new = "another long password".to_owned();
    change_password::change_password(&rig.forge, &viewer, PASSWORD.into(), new).await.expect("changed");
    assert!(matches!(second(&rig, &held, &code(&rig, &app)).await, Err(LoginError::Wrong)), "of the old password");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_of_someone_suspended_meanwhile_opens_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    let (viewer, app, _) = alice(&rig).await;
    let held = ticket(&rig).await;
    suspend::set_suspended(&rig.forge, viewer.user.id, true).await.expect("suspended");
    assert!(matches!(second(&rig, &held, &code(&rig, &app)).await, Err(LoginError::Suspended)));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn guessing_codes_is_stopped_wherever_one_comes_from(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig_with(engine, |settings| settings.login.second_factor = 3).await;
    let (_, app, codes) = alice(&rig).await;
    let held = ticket(&rig).await;
    for _ in 0..3 {
        assert!(matches!(second(&rig, &held, "000000").await, Err(LoginError::Wrong)));
    }
    let held = ticket(&rig).await;
    let elsewhere = Some("192.0.2.7".parse().expect("an address"));
    for right in [&code(&rig, &app), &codes[0]] {
        let refused = login::second_factor(&rig.forge, &held, right, "a browser", elsewhere).await;
        assert!(matches!(refused, Err(LoginError::Throttled { .. })));
    }
    rig.clock.advance(Duration::from_secs(15 * 60));
    second(&rig, &ticket(&rig).await, &code(&rig, &app)).await.expect("logged in");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn turning_it_off_needs_the_password_and_is_told_by_mail(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    let (viewer, _, _) = alice(&rig).await;
    let wrong = totp::disable(&rig.forge, &viewer, "wrong horse battery".into()).await.expect_err("refused");
    assert_eq!(wrong.field(), Some("current_password"));
    assert!(totp::is_on(&rig.forge, &viewer).await.expect("readable"));
    totp::disable(&rig.forge, &viewer, PASSWORD.into()).await.expect("off");
    cookie(rig.login("alice", PASSWORD).await);
    assert!(rig.mails().await[0].subject.contains("turned off"));
    let again = totp::disable(&rig.forge, &viewer, PASSWORD.into()).await;
    assert!(matches!(again, Err(TotpError::Off)));
    assert_eq!((rig.audited("totp_enabled").await, rig.audited("totp_disabled").await), (1, 1));
}
