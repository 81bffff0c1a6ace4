//! Accounts: signing up, logging in, what one may change, and what is sent by mail.

mod addresses;
mod admins;
mod deleting;
mod keys;
mod logging_in;
mod logins;
mod mails;
mod names;
mod passwords;
mod redaction;
mod signing_up;
mod smtp;
mod strangers;
mod two_factor;

use crate::rig::{Rig, rig_with};
use abide_core::UserId;
use abide_core::account::SignUpMode;
use abide_forge::By;
use abide_forge::accounts::login::{self, LoginError, Outcome};
use abide_forge::accounts::{Viewer, add_user, sessions, sign_up};
use abide_forge::jobs::{manage, runner};
use abide_testkit::Engine;
use mail_parser::MessageParser;
use std::net::IpAddr;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub const PASSWORD: &str = "correct horse battery";
const LOOPBACK: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

/// A site where everyone may sign up.
async fn open_site(engine: Engine) -> Rig {
    rig_with(engine, |settings| {
        settings.signup.mode = SignUpMode::Open;
        settings.public_url = "https://git.example.org".into();
    })
    .await
}

/// A mail as its reader sees it.
#[derive(Debug, Clone)]
struct Mail {
    to: String,
    subject: String,
    text: String,
}

impl Mail {
    /// The part behind `/PAGE/` in the link of this mail.
    fn token(&self, page: &str) -> String {
        let start = format!("https://git.example.org/{page}/");
        let found = self.text.lines().find_map(|line| line.trim().strip_prefix(&start));
        found.unwrap_or_else(|| panic!("no link to {page}: {}", self.text)).to_owned()
    }
}

impl Rig {
    async fn sign_up(&self, name: &str) -> UserId {
        self.try_sign_up(name, &format!("{name}@example.org"), None).await.expect("signed up")
    }

    async fn try_sign_up(&self, name: &str, email: &str, invite: Option<&str>) -> Result<UserId, sign_up::SignUpError> {
        let request = sign_up::Request {
            name: name.into(),
            email: email.into(),
            password: PASSWORD.into(),
            invite: invite.map(Into::into),
        };
        sign_up::sign_up(&self.forge, LOOPBACK, request).await
    }

    /// Adds an account as the operator does.
    async fn add(&self, name: &str, site_admin: bool) -> UserId {
        let request = add_user::Request {
            name: name.into(),
            email: format!("{name}@example.org"),
            password: PASSWORD.into(),
            site_admin,
            verified: false,
        };
        add_user::add_user(&self.forge, request).await.expect("added")
    }

    /// Someone who is logged in.
    async fn viewer(&self, user: UserId) -> Viewer {
        let cookie = login::open_session(&self.forge, user, "a browser", LOOPBACK).await.expect("opened");
        self.by_cookie(cookie.0.expose()).await.expect("logged in")
    }

    async fn by_cookie(&self, cookie: &str) -> Option<Viewer> {
        sessions::by_cookie(&self.forge, cookie, LOOPBACK).await.expect("readable")
    }

    async fn login(&self, login: &str, password: &str) -> Result<Outcome, LoginError> {
        self.login_from(login, password, LOOPBACK).await
    }

    async fn login_from(&self, login: &str, password: &str, ip: Option<IpAddr>) -> Result<Outcome, LoginError> {
        let request = login::Request { login: login.into(), password: password.into(), agent: "a browser".into(), ip };
        login::login(&self.forge, request).await
    }

    /// Runs every job that waits, and those that they queue.
    pub(crate) async fn run_jobs(&self) {
        let stop = CancellationToken::new();
        let running = tokio::spawn(runner::run(self.forge.clone(), stop.clone()));
        for _ in 0..1000 {
            let counts = manage::counts(&self.forge, &By::Operator).await.expect("readable");
            if counts.iter().all(|(state, _)| ["done", "failed"].contains(&state.as_str())) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        stop.cancel();
        running.await.expect("the runner stops");
    }

    /// The mails in the outbox, oldest first. They are taken away.
    async fn mails(&self) -> Vec<Mail> {
        self.run_jobs().await;
        let Ok(entries) = std::fs::read_dir(self.database.data_dir().join("outbox")) else { return Vec::new() };
        let mut files: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
        files.sort_by_key(|file| {
            let name = file.file_stem().expect("named").to_string_lossy().into_owned();
            name.rsplit('-').next().and_then(|id| id.parse::<i64>().ok())
        });
        let read = |file: &std::path::PathBuf| {
            let bytes = std::fs::read(file).expect("readable");
            std::fs::remove_file(file).expect("removable");
            let mail = MessageParser::default().parse(&bytes).expect("a mail");
            let to = mail.to().and_then(|to| to.first()).and_then(|to| to.address()).expect("a recipient");
            Mail {
                to: to.to_owned(),
                subject: mail.subject().expect("a subject").to_owned(),
                text: mail.body_text(0).expect("a text").into_owned(),
            }
        };
        files.iter().map(read).collect()
    }

    /// How many rows of the audit log tell of an action.
    async fn audited(&self, action: &str) -> usize {
        let filter =
            abide_store::audit::Filter { action: Some(action.parse().expect("an action")), ..Default::default() };
        let mut conn = self.store.read().await.expect("readable");
        abide_store::audit::page(&mut conn, &filter, i64::MAX, 1000).await.expect("readable").len()
    }
}

/// The cookie of a login that needed no second factor.
fn cookie(outcome: Result<Outcome, LoginError>) -> String {
    match outcome {
        Ok(Outcome::In(cookie)) => cookie.0.into_inner(),
        Ok(Outcome::SecondFactor(_)) => panic!("a second factor is asked for"),
        Err(error) => panic!("not logged in: {error}"),
    }
}
