//! Nostr keys as a way in: what a proof is worth, for how long, and how often.

use super::{LOOPBACK, PASSWORD, open_site};
use crate::rig::Rig;
use abide_core::scope::Scope;
use abide_forge::accounts::login::Outcome;
use abide_forge::accounts::nostr::{self, Answer, NostrError};
use abide_forge::accounts::{change_password, confirm::ConfirmError, rename, totp};
use abide_nostr::event::to_json;
use abide_nostr::http_auth::{Body, HttpAuthError, Request};
use abide_store::StoreError;
use abide_store::accounts::user_keys;
use abide_testkit::{Engine, Key};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rstest::rstest;
use std::time::Duration;

const PATH: &str = "/login/nostr";
const MINUTE: Duration = Duration::from_secs(60);

impl Rig {
    fn seconds(&self) -> u64 {
        let now = self.forge.clock().now().micros() / 1_000_000;
        u64::try_from(now).expect("after 1970")
    }

    /// Request of a browser with this challenge.
    fn answer(&self, key: &Key, challenge: &str, bound: &str) -> Answer {
        let url = format!("https://git.example.org{PATH}");
        let tags: &[&[&str]] = &[&["u", &url], &["method", "POST"], &["challenge", challenge]];
        Answer {
            event: to_json(&key.event(self.seconds(), 27_235, tags, "")),
            challenge: challenge.to_owned(),
            bound: bound.to_owned(),
            path: PATH,
        }
    }

    async fn key_login(&self, answer: &Answer) -> Result<Outcome, NostrError> {
        nostr::login(&self.forge, answer, "a browser", LOOPBACK).await
    }

    async fn enter(&self, key: &Key) -> Result<Outcome, NostrError> {
        let challenge = nostr::challenge(&self.forge, "mine");
        self.key_login(&self.answer(key, &challenge, "mine")).await
    }
}

fn cookie(outcome: Result<Outcome, NostrError>) -> String {
    match outcome {
        Ok(Outcome::In(cookie)) => cookie.0.into_inner(),
        Ok(Outcome::SecondFactor(_)) => panic!("a second factor is asked for"),
        Err(error) => panic!("not logged in: {error}"),
    }
}

#[rstest]
#[tokio::test]
async fn a_challenge_ends_and_is_for_one_browser(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let (key, challenge) = (Key::new(1), nostr::challenge(&rig.forge, "mine"));
    for bad in ["", "x", &challenge[1..], &format!("{challenge}A")] {
        let refused = rig.key_login(&rig.answer(&key, bad, "mine")).await;
        assert!(matches!(refused, Err(NostrError::Challenge)), "{bad}");
    }
    assert!(matches!(rig.key_login(&rig.answer(&key, &challenge, "yours")).await, Err(NostrError::Challenge)));
    let early = rig.answer(&key, &challenge, "mine");
    rig.clock.advance(2 * MINUTE);
    let old = rig.key_login(&early).await;
    assert!(matches!(old, Err(NostrError::Proof(HttpAuthError::Time))), "the proof is older than a minute");
    rig.clock.advance(8 * MINUTE);
    let late = rig.key_login(&rig.answer(&key, &challenge, "mine")).await;
    assert!(matches!(late, Err(NostrError::Challenge)), "the challenge is older than ten");
    cookie(rig.enter(&key).await);
}

#[rstest]
#[tokio::test]
async fn of_many_who_send_one_proof_at_once_one_comes_in(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let challenge = nostr::challenge(&rig.forge, "mine");
    let answer = rig.answer(&Key::new(1), &challenge, "mine");
    let (a, b, c, d) =
        tokio::join!(rig.key_login(&answer), rig.key_login(&answer), rig.key_login(&answer), rig.key_login(&answer));
    let ends = [a, b, c, d];
    assert_eq!(ends.iter().filter(|end| end.is_ok()).count(), 1);
    assert_eq!(ends.iter().filter(|end| matches!(end, Err(NostrError::Used))).count(), 3);
    assert_eq!(rig.audited("user_created").await, 1);
}

#[rstest]
#[tokio::test]
async fn two_first_logins_of_one_key_make_one_account(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let key = Key::new(1);
    let answers = [0, 1].map(|_| rig.answer(&key, &nostr::challenge(&rig.forge, "mine"), "mine"));
    let (a, b) = tokio::join!(rig.key_login(&answers[0]), rig.key_login(&answers[1]));
    assert_ne!(cookie(a), cookie(b));
    assert_eq!(rig.audited("user_created").await, 1);
}

#[rstest]
#[tokio::test]
async fn tries_and_new_accounts_are_counted_by_place(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let sign_ups = rig.forge.settings().signup.per_ip;
    for n in 0..sign_ups {
        cookie(rig.enter(&Key::new(u32::try_from(n).unwrap())).await);
    }
    let crowd = rig.enter(&Key::new(5_000)).await;
    assert!(matches!(crowd, Err(NostrError::Throttled { .. })), "as many made accounts as may");
    cookie(rig.enter(&Key::new(0)).await);
    for _ in 0..rig.forge.settings().login.per_ip {
        let _ = rig.key_login(&rig.answer(&Key::new(0), "x", "mine")).await;
    }
    assert!(matches!(rig.enter(&Key::new(0)).await, Err(NostrError::Throttled { .. })));
}

#[rstest]
#[tokio::test]
async fn the_second_factor_is_asked_for_behind_a_key_too(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let key = Key::new(1);
    let viewer = rig.by_cookie(&cookie(rig.enter(&key).await)).await.expect("logged in");
    let enrolment = totp::begin(&rig.forge, &viewer).await.expect("begun");
    let code = totp_of(&enrolment.secret_base32, rig.seconds());
    totp::confirm(&rig.forge, &viewer, &code).await.expect("confirmed");
    assert!(matches!(rig.enter(&key).await, Ok(Outcome::SecondFactor(_))));
}

/// The code of a secret at a time, as an app works it out.
fn totp_of(secret: &str, seconds: u64) -> String {
    let secret = totp_rs::Secret::try_from_base32(secret).expect("a secret");
    totp_rs::Builder::new().with_secret(secret).build().expect("a generator").generate(seconds).to_string()
}

#[rstest]
#[tokio::test]
async fn without_a_password_a_fresh_login_confirms(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = open_site(engine).await;
    let viewer = rig.by_cookie(&cookie(rig.enter(&Key::new(1)).await)).await.expect("logged in");
    rename::pick(&rig.forge, &viewer, "zoe").await.expect("a first name needs no more");
    assert!(matches!(rename::pick(&rig.forge, &viewer, "zoey").await, Err(rename::RenameError::Named)));
    rename::rename(&rig.forge, &viewer, "zoey", String::new()).await.expect("logged in just now");
    rig.clock.advance(16 * MINUTE);
    let stale = rename::rename(&rig.forge, &viewer, "zoe", String::new()).await;
    assert!(matches!(stale, Err(rename::RenameError::Confirm(ConfirmError::Stale))));
    let viewer = rig.by_cookie(&cookie(rig.enter(&Key::new(1)).await)).await.expect("logged in");
    change_password::change_password(&rig.forge, &viewer, String::new(), PASSWORD.into()).await.expect("set");
    let wrong = rename::rename(&rig.forge, &viewer, "zoe", String::new()).await;
    assert!(matches!(wrong, Err(rename::RenameError::Confirm(ConfirmError::Wrong))), "now there is a password");
}

#[rstest]
#[tokio::test]
async fn a_signed_request_has_every_scope_but_administration(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = open_site(engine).await;
    let (key, url) = (Key::new(1), "https://git.example.org/api/v3/user");
    cookie(rig.enter(&key).await);
    let header = |at: u64| {
        let event = key.event(at, 27_235, &[&["u", url], &["method", "GET"]], "");
        format!("Nostr {}", STANDARD.encode(to_json(&event)))
    };
    let request = Request { method: "GET", url, body: Body::Empty };
    let proof = header(rig.seconds());
    let caller = nostr::by_header(&rig.forge, &proof, &request, LOOPBACK).await.expect("a good proof");
    for &scope in Scope::ALL {
        assert_eq!(caller.ensure_scope(scope).is_ok(), scope != Scope::Admin, "{scope}");
    }
    let again = nostr::by_header(&rig.forge, &proof, &request, LOOPBACK).await;
    assert!(matches!(again, Err(NostrError::Used)));

    rig.clock.advance(10 * MINUTE);
    let pruned: Result<u64, StoreError> =
        rig.store.write((), |tx, ()| Box::pin(async move { user_keys::prune(tx).await })).await;
    assert_eq!(pruned.expect("pruned"), 3, "the login's event and challenge, and the request's event");
    let old = nostr::by_header(&rig.forge, &proof, &request, LOOPBACK).await;
    assert!(matches!(old, Err(NostrError::Proof(HttpAuthError::Time))), "what is forgotten is too old to serve");
}
