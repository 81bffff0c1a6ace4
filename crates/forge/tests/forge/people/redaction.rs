//! Passwords, tokens, keys and their hashes are not shown where a value is written to a log.

use abide_core::scope::Scopes;
use abide_core::webhooks::{ContentType, Kinds};
use abide_core::{Timestamp, UserId};
use abide_forge::SmtpUrl;
use abide_forge::accounts::login::{self, SecondFactorTicket};
use abide_forge::accounts::sessions::Cookie;
use abide_forge::accounts::standing::Standing;
use abide_forge::accounts::{add_user, sign_up};
use abide_forge::webhooks::{Change, Secret};
use abide_store::accounts::links::{NewLink, Purpose};
use abide_store::accounts::sessions::NewSession;
use abide_store::accounts::tokens::NewToken;
use abide_store::accounts::totp::Totp;
use abide_store::accounts::users::NewUser;
use abide_store::webhooks::Choice;
use std::fmt::Debug;

const SECRET: &str = "hunter2";
const HASH: [u8; 32] = [171; 32];

#[test]
fn debug_output_shows_no_secret_and_no_hash_of_one() {
    let at = Timestamp::from_micros(0);
    let user_id = UserId::new(1);
    let shown: Vec<Box<dyn Debug>> = vec![
        Box::new(login::Request { login: "alice".into(), password: SECRET.into(), agent: "a".into(), ip: None }),
        Box::new(sign_up::Request {
            name: "alice".into(),
            email: "alice@example.org".into(),
            password: SECRET.into(),
            invite: Some(SECRET.into()),
        }),
        Box::new(add_user::Request {
            name: "alice".into(),
            email: "alice@example.org".into(),
            password: SECRET.into(),
            site_admin: false,
            verified: true,
        }),
        Box::new(SecondFactorTicket(SECRET.into())),
        Box::new(Cookie(SECRET.into())),
        Box::new(SmtpUrl(SECRET.into())),
        Box::new(Change { secret: Secret::Set(SECRET.into()), ..Change::default() }),
        Box::new(Standing::Token(HASH.into())),
        Box::new(Standing::Session(HASH.into())),
        Box::new(NewUser {
            name: "alice".parse().expect("a name"),
            email: "alice@example.org".into(),
            password_hash: SECRET.into(),
            site_admin: false,
        }),
        Box::new(NewSession { hash: HASH.into(), user_id, ip: None, agent: "a".into(), expires_at: at }),
        Box::new(NewToken {
            user_id,
            label: "laptop".into(),
            hash: HASH.into(),
            hint: "abcd".into(),
            scopes: Scopes::default(),
            expires_at: None,
        }),
        Box::new(NewLink::new(HASH, Purpose::Reset, at)),
        Box::new(Totp { secret: HASH.to_vec().into(), confirmed_at: None, last_step: 0 }),
        Box::new(Choice {
            url: "https://ci.example/hook".into(),
            content_type: ContentType::Json,
            secret: Some(HASH.to_vec().into()),
            events: Kinds::usual(),
            active: true,
        }),
    ];
    for value in shown {
        let shown = format!("{value:?}");
        assert!(shown.contains("***"), "{shown}");
        assert!(!shown.contains(SECRET) && !shown.contains("171"), "{shown}");
    }
}
