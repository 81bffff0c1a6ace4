//! Notifications: recipients, reasons and channels.

mod lifecycle;
mod mails;
mod many;
mod recipients;

use crate::rig::{Rig, rig_with};
use abide_core::notify::Reason;
use abide_core::repo::{Role, Visibility};
use abide_core::{UserId, WatchLevel};
use abide_forge::By;
use abide_forge::attention::watch;
use abide_forge::issues::{Issue, comment, create};
use abide_forge::jobs::{Kind, manage};
use abide_forge::notify::{Filter, Item, inbox};
use abide_forge::repos::create::{self as new_repo, Init};
use abide_forge::repos::{Page, Repo, collaborators};
use abide_forge::{Caller, Forge, Settings, accounts, consumers};
use abide_store::accounts::emails;
use abide_store::{StoreError, repos};
use abide_testkit::Engine;
use mail_parser::{HeaderValue, MessageParser};
use serde_json::json;
use std::collections::BTreeMap;

const FIRST: Page = Page { limit: 1000, offset: 0 };
const SITE: &str = "https://git.example.org";

/// Ann owns, the others are strangers. All but eve have proved that they read their mail.
struct World {
    rig: Rig,
    ann: Caller,
    bob: Caller,
    carol: Caller,
    dave: Caller,
    eve: Caller,
    repo: Repo,
}

async fn world(engine: Engine) -> World {
    world_with(engine, |_| {}).await
}

async fn world_with(engine: Engine, change: impl FnOnce(&mut Settings)) -> World {
    let rig = rig_with(engine, |settings| {
        settings.public_url = SITE.into();
        settings.mail.from = "Forge <forge@example.org>".into();
        change(settings);
    })
    .await;
    let (ann, bob, carol) = (rig.user("ann").await, rig.user("bob").await, rig.user("carol").await);
    let (dave, eve) = (rig.user("dave").await, rig.user("eve").await);
    let repo = make(&rig.forge, &ann, "tool", Visibility::Public).await;
    // Nobody watches it before a test says so.
    watch::clear(&rig.forge, &ann, &repo).await.expect("taken back");
    consumers::catch_up(&rig.forge).await.expect("numbered");
    consumers::register(&rig.forge, &consumers::all()).await.expect("made known");
    let world = World { rig, ann, bob, carol, dave, eve, repo };
    for name in ["ann", "bob", "carol", "dave"] {
        world.verify(name).await;
    }
    world
}

async fn make(forge: &Forge, owner: &Caller, name: &str, visibility: Visibility) -> Repo {
    let request = new_repo::Request {
        name: name.into(),
        description: String::new(),
        visibility,
        default_branch: None,
        init: Some(Init { readme: true, ..Init::default() }),
    };
    new_repo::create(forge, owner, request).await.expect("created").repo
}

/// A mail as its reader gets it.
#[derive(Debug, Clone)]
struct Mail {
    to: String,
    subject: String,
    text: String,
    headers: BTreeMap<String, String>,
}

impl Mail {
    fn parse(bytes: &[u8]) -> Self {
        let mail = MessageParser::default().parse(bytes).expect("a mail");
        let headers = mail.headers().iter().map(|header| {
            let value = match header.value() {
                HeaderValue::Text(text) => text.to_string(),
                HeaderValue::TextList(texts) => texts.join(" "),
                _ => {
                    let raw = &bytes[header.offset_start() as usize..header.offset_end() as usize];
                    String::from_utf8_lossy(raw).trim().to_owned()
                }
            };
            (header.name().to_ascii_lowercase(), value)
        });
        Self {
            to: mail.to().and_then(|to| to.first()).and_then(|to| to.address()).expect("a recipient").to_owned(),
            subject: mail.subject().expect("a subject").to_owned(),
            text: mail.body_text(0).expect("a text").into_owned(),
            headers: headers.collect(),
        }
    }
}

impl World {
    fn forge(&self) -> &Forge {
        &self.rig.forge
    }

    async fn account(&self, name: &str) -> accounts::User {
        accounts::find(self.forge(), &name.parse().expect("a name")).await.expect("readable").expect("there")
    }

    /// Someone proves that they read their mail.
    async fn verify(&self, name: &str) {
        let user = self.account(name).await.id;
        let email = emails::list(&mut self.rig.store.read().await.expect("readable"), user).await.expect("readable");
        let done: Result<bool, StoreError> =
            self.rig.store.write(email[0].id, |tx, id| Box::pin(emails::verify(tx, *id))).await;
        assert!(done.expect("written"));
    }

    async fn watch(&self, caller: &Caller, level: WatchLevel) {
        watch::set(self.forge(), caller, &self.repo, level).await.expect("chosen");
    }

    async fn share(&self, name: &str, role: Role) {
        let user = self.account(name).await;
        collaborators::set(self.forge(), &self.ann, &self.repo, &user, role).await.expect("shared");
    }

    async fn open(&self, caller: &Caller, title: &str, body: &str) -> Issue {
        let request = create::Request { title: title.into(), body: body.into(), ..create::Request::default() };
        create::create(self.forge(), caller, &self.repo, request).await.expect("opened")
    }

    async fn say(&self, caller: &Caller, issue: &Issue, text: &str) {
        comment::add(self.forge(), caller, &self.repo, issue.number, text).await.expect("said");
    }

    async fn repo_now(&self) -> Repo {
        let mut conn = self.rig.store.read().await.expect("readable");
        repos::by_id(&mut conn, self.repo.id, None).await.expect("readable").expect("there")
    }

    /// Everything that happened is taken in.
    async fn settle(&self) {
        consumers::catch_up(self.forge()).await.expect("taken in");
        let failures = consumers::manage::failures(self.forge(), &By::Operator, i64::MAX, 10).await.expect("readable");
        let stuck = consumers::manage::status(self.forge(), &By::Operator).await.expect("readable");
        assert!(failures.is_empty() && stuck.iter().all(|one| one.last_error.is_none()), "{failures:?} {stuck:?}");
    }

    async fn items(&self, caller: &Caller, all: bool) -> Vec<Item> {
        self.settle().await;
        let filter = Filter { all, ..Filter::default() };
        let items = inbox::list(self.forge(), caller, filter, FIRST).await.expect("readable");
        assert_eq!(inbox::count(self.forge(), caller, filter).await.expect("readable"), items.len() as i64);
        if !all {
            assert_eq!(inbox::unread(self.forge(), caller).await.expect("readable"), items.len() as i64);
        }
        items
    }

    /// Unread notifications of someone: reason and title.
    async fn inbox(&self, caller: &Caller) -> Vec<(Reason, String)> {
        self.items(caller, false).await.into_iter().map(|item| (item.reason, item.title)).collect()
    }

    /// Names of the recipients.
    async fn who(&self) -> Vec<&'static str> {
        let everyone =
            [("ann", &self.ann), ("bob", &self.bob), ("carol", &self.carol), ("dave", &self.dave), ("eve", &self.eve)];
        let mut reported = Vec::new();
        for (name, caller) in everyone {
            if !self.inbox(caller).await.is_empty() {
                reported.push(name);
            }
        }
        reported
    }

    /// Everyone has read everything.
    async fn all_read(&self) {
        self.settle().await;
        for caller in [&self.ann, &self.bob, &self.carol, &self.dave, &self.eve] {
            inbox::mark_all(self.forge(), caller, None, None).await.expect("marked");
        }
    }

    /// Writes what is due, and sends it. The mails, the oldest first; they are taken away.
    async fn mails(&self) -> Vec<Mail> {
        self.settle().await;
        manage::run_now(self.forge(), &By::Operator, Kind::NotifyMail, json!({})).await.expect("it ran");
        self.delivered().await
    }

    /// Sends what is written.
    async fn delivered(&self) -> Vec<Mail> {
        // A run gives up after a while, and some tests send more than fits into one.
        let waiting = async || {
            let counts = manage::counts(self.forge(), &By::Operator).await.expect("readable");
            counts.iter().any(|(state, _)| ["waiting", "running"].contains(&state.as_str()))
        };
        while waiting().await {
            self.rig.run_jobs().await;
        }
        let failed = manage::list(self.forge(), &By::Operator, Some("failed"), 10).await.expect("readable");
        assert!(failed.is_empty(), "{failed:?}");
        let Ok(entries) = std::fs::read_dir(self.rig.database.data_dir().join("outbox")) else { return Vec::new() };
        let mut files: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
        files.sort_by_key(|file| {
            let name = file.file_stem().expect("named").to_string_lossy().into_owned();
            name.rsplit('-').next().and_then(|id| id.parse::<i64>().ok())
        });
        let read = |file: &std::path::PathBuf| {
            let bytes = std::fs::read(file).expect("readable");
            std::fs::remove_file(file).expect("removable");
            Mail::parse(&bytes)
        };
        files.iter().map(read).collect()
    }

    /// To whom mails went, and about what.
    async fn mailed(&self) -> Vec<(String, String)> {
        let mut mails: Vec<_> = self.mails().await.into_iter().map(|mail| (mail.to, mail.subject)).collect();
        mails.sort();
        mails
    }
}

fn id(caller: &Caller) -> UserId {
    caller.user_id().expect("an account")
}
